//! The columns of the table `player`.

use model::player::{PlayerEvent, PlayerEventKind};

use super::{Of, Row, of_columns};
use crate::table::value::{Column, Value, integer, text};

type Event = Of<PlayerEvent>;

impl Row for Event {
    const TABLE: &'static str = "player";
    const MEANING: &'static str = "one row per event of a video's player, in the order of time";

    fn columns() -> Vec<Column<Self>> {
        let mut columns = of_columns();
        columns.extend([
            integer(
                "group",
                "1",
                "the client group, as in the table `requests`",
                |r: &Event| r.is.group.into(),
                |r, v| v.to(&mut r.is.group),
            ),
            integer(
                "at_ns",
                "ns",
                "when it happened, since the run's start, on the clock of `requests`",
                |r: &Event| r.is.at_ns.into(),
                |r, v| v.to(&mut r.is.at_ns),
            ),
            text(
                "event",
                "`requested`, `arrived`, `playing` (began or went on), `stalled`, `ended` or `failed`",
                |r: &Event| Value::Text(r.is.what.name()),
                |r, v| v.to_named(&mut r.is.what),
            ),
            integer(
                "segment",
                "1",
                "the segment that it is about, from 0; of playback, the one that is shown or due to be shown",
                |r: &Event| r.is.segment.into(),
                |r, v| v.to(&mut r.is.segment),
            ),
            integer(
                "representation_bits_per_s",
                "bit/s",
                "the representation of that segment, by its bit rate",
                |r: &Event| r.is.bits_per_s.into(),
                |r, v| v.to(&mut r.is.bits_per_s),
            ),
            integer(
                "buffered_ns",
                "ns",
                "media buffered from then on: arrived and not yet shown",
                |r: &Event| r.is.buffered_ns.into(),
                |r, v| v.to(&mut r.is.buffered_ns),
            ),
        ]);
        columns
    }

    fn blank() -> Self {
        let is = PlayerEvent {
            group: 0,
            at_ns: 0,
            what: PlayerEventKind::Requested,
            segment: 0,
            bits_per_s: 0,
            buffered_ns: 0,
        };
        Of { run: 0, cell: 0, is }
    }

    fn run(&self) -> u32 {
        self.run
    }
}
