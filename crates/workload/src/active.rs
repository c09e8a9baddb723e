//! A workload of any kind.

use std::sync::Arc;

use model::Workload;
use model::media::ByteRange;
use model::options::Options;
use model::player::PlayerEvent;
use model::sample::{Cause, Phase};

use crate::closed::{ClosedPlan, ClosedSource};
use crate::cmcd::CmcdKeys;
use crate::open::{OpenPlan, OpenSource};
use crate::page::{PageLoader, PageTree};
use crate::player::{Video, VideoPlayer};
use crate::script::{ScriptPlan, ScriptSource};
use crate::source::{Beginning, Connections, Content, Due, NeverSent, Offer, RequestSource, Seeds};
use crate::url_table::UrlTable;

/// Any workload, with all that its clients share: paths, page, script. Cheap to begin many times.
#[derive(Clone, Debug)]
pub enum SharedWorkload {
    /// One page from cold.
    Page(Arc<PageTree>),
    /// Closed loop.
    Closed(Arc<ClosedPlan>),
    /// Open loop.
    Open(Arc<OpenPlan>),
    /// A video that is played.
    Player(Arc<Video>),
    /// A timing script that is replayed.
    Script(Arc<ScriptPlan>),
}

/// Any workload of one client.
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
    /// A timing script that is replayed.
    Script(ScriptSource),
}

impl SharedWorkload {
    /// The workload of an assignment for `clients` clients.
    pub fn new(workload: &Workload, options: &Options, clients: u32) -> Self {
        match workload {
            Workload::Page(page) => SharedWorkload::Page(Arc::new(PageTree::new(page))),
            Workload::Closed(closed) => SharedWorkload::Closed(Arc::new(ClosedPlan::new(closed, options))),
            Workload::Open(open) => SharedWorkload::Open(Arc::new(OpenPlan::new(open, options, clients))),
            Workload::Player(player) => SharedWorkload::Player(Arc::new(Video::new(player))),
            Workload::Script(script) => SharedWorkload::Script(Arc::new(ScriptPlan::new(script, options))),
        }
    }

    /// Begins one client's work.
    pub fn begin(&self, seeds: Seeds, beginning: Beginning) -> ActiveWorkload {
        let now = beginning.client_ns;
        match self.clone() {
            SharedWorkload::Page(tree) => ActiveWorkload::Page(PageLoader::new(tree, now)),
            SharedWorkload::Closed(plan) => ActiveWorkload::Closed(ClosedSource::new(plan, seeds, beginning)),
            SharedWorkload::Open(plan) => ActiveWorkload::Open(OpenSource::new(plan, seeds, beginning)),
            SharedWorkload::Player(video) => ActiveWorkload::Player(VideoPlayer::new(video, seeds, now)),
            SharedWorkload::Script(plan) => ActiveWorkload::Script(ScriptSource::new(plan, beginning)),
        }
    }

    /// When the group's loop ends by the clock, if it does: clients that have not begun by then have nothing
    /// to do. The group begins at `group_ns`.
    pub fn ends_ns(&self, group_ns: u64) -> Option<u64> {
        match self {
            SharedWorkload::Closed(plan) => plan.ends_ns(group_ns),
            SharedWorkload::Open(plan) => plan.ends_ns(group_ns),
            SharedWorkload::Page(_) | SharedWorkload::Player(_) | SharedWorkload::Script(_) => None,
        }
    }
}

/// A method that calls the same method of the workload at hand: the only match on all workloads besides those
/// of [`SharedWorkload`]. Calls stay static, because a generator's own cost is part of every measurement.
macro_rules! forward {
    (fn $name:ident($self:ident: $receiver:ty $(, $argument:ident: $type:ty)*) $(-> $result:ty)?) => {
        fn $name($self: $receiver $(, $argument: $type)*) $(-> $result)? {
            match $self {
                ActiveWorkload::Page(source) => source.$name($($argument),*),
                ActiveWorkload::Closed(source) => source.$name($($argument),*),
                ActiveWorkload::Open(source) => source.$name($($argument),*),
                ActiveWorkload::Player(source) => source.$name($($argument),*),
                ActiveWorkload::Script(source) => source.$name($($argument),*),
            }
        }
    };
}

impl RequestSource for ActiveWorkload {
    forward!(fn paths(self: &Self) -> Vec<&str>);
    forward!(fn poll_request(self: &mut Self, target: usize, now: u64) -> Option<Due>);
    forward!(fn handle_done(self: &mut Self, url: u32, is_ok: bool, now: u64));
    forward!(fn is_finished(self: &Self, now: u64) -> bool);
    forward!(fn connections(self: &Self, limit: u32) -> Connections);
    forward!(fn targets(self: &Self) -> usize);
    forward!(fn expected_body_bytes(self: &Self, url: u32) -> Option<u64>);
    forward!(fn awaits_connections(self: &Self) -> bool);
    forward!(fn handle_connections(self: &mut Self, now: u64));
    forward!(fn handle_time(self: &mut Self, now: u64));
    forward!(fn handle_body(self: &mut Self, url: u32, received_bytes: u64, now: u64));
    forward!(fn handle_offer(self: &mut Self, path: &str, cause: Cause, now: u64) -> Offer);
    forward!(fn cause(self: &Self, url: u32) -> Cause);
    forward!(fn handle_body_end(self: &mut Self, url: u32, now: u64));
    forward!(fn waiting(self: &Self, target: usize) -> usize);
    forward!(fn has_queue(self: &Self) -> bool);
    forward!(fn is_paced(self: &Self) -> bool);
    forward!(fn next_ns(self: &Self) -> Option<u64>);
    forward!(fn range(self: &Self, url: u32) -> Option<ByteRange>);
    forward!(fn cmcd(self: &Self, url: u32) -> Option<CmcdKeys>);
    forward!(fn take_cancelled(self: &mut Self) -> Option<u32>);
    forward!(fn wants_body(self: &Self, url: u32) -> bool);
    forward!(fn handle_content(self: &mut Self, url: u32, content: &Content<'_>, urls: &mut UrlTable));
    forward!(fn take_player_events(self: &mut Self) -> Vec<PlayerEvent>);
    forward!(fn give_up(self: &mut Self) -> NeverSent);
    forward!(fn left(self: &Self) -> u64);
    forward!(fn warmup_ends_ns(self: &Self) -> u64);
    forward!(fn phase(self: &Self, intended_ns: u64) -> Phase);
    forward!(fn phase_at_end(self: &Self, begun: Phase, done_ns: u64) -> Phase);
    forward!(fn think_ns(self: &mut Self) -> u64);
    forward!(fn opened_by(self: &Self, now: u64) -> (u32, Option<u64>));
}
