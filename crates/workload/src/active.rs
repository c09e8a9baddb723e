//! A workload of any kind.

use model::Workload;
use model::options::Options;
use model::player::PlayerEvent;
use model::sample::Phase;

use crate::closed::ClosedSource;
use crate::open::OpenSource;
use crate::page::PageLoader;
use crate::player::VideoPlayer;
use crate::source::{Connections, Due, NeverSent, RequestSource, Seeds};

/// Any workload.
#[derive(Clone, Debug)]
pub enum ActiveWorkload {
    /// One page from cold.
    Page(PageLoader),
    /// Closed loop.
    Closed(ClosedSource),
    /// Open loop.
    Open(OpenSource),
    /// A video that is played.
    Player(VideoPlayer),
}

impl ActiveWorkload {
    /// The workload of an assignment, beginning at `now` (nanoseconds since the run's start).
    pub fn new(workload: &Workload, options: &Options, seeds: Seeds, now: u64) -> Self {
        match workload {
            Workload::Page(page) => ActiveWorkload::Page(PageLoader::new(page.clone(), now)),
            Workload::Closed(closed) => {
                ActiveWorkload::Closed(ClosedSource::new(closed, options, seeds, now))
            }
            Workload::Open(open) => ActiveWorkload::Open(OpenSource::new(open, options, seeds, now)),
            Workload::Player(player) => ActiveWorkload::Player(VideoPlayer::new(player.clone(), now)),
        }
    }
}

/// A method that calls the same method of the workload at hand: the only match on all workloads besides
/// [`ActiveWorkload::new`]. Calls stay static, because a generator's own cost is part of every measurement.
macro_rules! forward {
    (fn $name:ident($self:ident: $receiver:ty $(, $argument:ident: $type:ty)*) $(-> $result:ty)?) => {
        fn $name($self: $receiver $(, $argument: $type)*) $(-> $result)? {
            match $self {
                ActiveWorkload::Page(source) => source.$name($($argument),*),
                ActiveWorkload::Closed(source) => source.$name($($argument),*),
                ActiveWorkload::Open(source) => source.$name($($argument),*),
                ActiveWorkload::Player(source) => source.$name($($argument),*),
            }
        }
    };
}

impl RequestSource for ActiveWorkload {
    forward!(fn paths(self: &Self) -> Vec<&str>);
    forward!(fn poll_request(self: &mut Self, target: usize, now: u64) -> Option<Due>);
    forward!(fn handle_done(self: &mut Self, is_ok: bool, now: u64));
    forward!(fn is_finished(self: &Self, now: u64) -> bool);
    forward!(fn connections(self: &Self, limit: u32) -> Connections);
    forward!(fn targets(self: &Self) -> usize);
    forward!(fn expected_body_bytes(self: &Self, url: u32) -> Option<u64>);
    forward!(fn handle_time(self: &mut Self, now: u64));
    forward!(fn handle_body(self: &mut Self, url: u32, received_bytes: u64, now: u64));
    forward!(fn waiting(self: &Self, target: usize) -> usize);
    forward!(fn has_queue(self: &Self) -> bool);
    forward!(fn is_paced(self: &Self) -> bool);
    forward!(fn next_ns(self: &Self) -> Option<u64>);
    forward!(fn take_player_events(self: &mut Self) -> Vec<PlayerEvent>);
    forward!(fn give_up(self: &mut Self) -> NeverSent);
    forward!(fn left(self: &Self) -> u64);
    forward!(fn warmup_ends_ns(self: &Self) -> u64);
    forward!(fn phase(self: &Self, intended_ns: u64) -> Phase);
    forward!(fn think_ns(self: &mut Self) -> u64);
    forward!(fn opened_by(self: &Self, now: u64) -> (u32, Option<u64>));
}
