//! The rules of players decide like the players: compared with tables that the real ones made
//! (`scripts/abr-decisions`).

use model::media::TrackKind;
use model::player::Rule;

use super::{ActiveRule, Download, Progress, Situation};

const MS: u64 = 1_000_000;

/// A line of a table: its kind, and its numbers.
fn read(line: &str) -> Option<(&str, Vec<i64>)> {
    let (kind, rest) = line.split_once(',')?;
    let (_, rest) = if kind == "t" { rest.split_once(',')? } else { ("", rest) };
    Some((kind, rest.split(',').map(|number| number.parse().unwrap()).collect()))
}

/// A session of a table: one player over one trace.
struct Session {
    rule: ActiveRule,
    segment_ns: u64,
    goal_ns: u64,
    ladder: Vec<u64>,
    before: Option<usize>,
    requested_ns: u64,
    has_media: bool,
}

/// The decisions of a table that the rule took alike, and all.
#[derive(Debug, Default, PartialEq)]
struct Alike {
    choices: (usize, usize),
    abandoned: (usize, usize),
    kept: (usize, usize),
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap()
}

fn place(number: i64) -> usize {
    usize::try_from(number).unwrap()
}

impl Session {
    fn choose(&mut self, now_ms: i64, buffer_ms: i64) -> usize {
        self.requested_ns = unsigned(now_ms) * MS;
        self.rule.choose(&Situation {
            ladder: &self.ladder,
            kind: TrackKind::Video,
            segment_ns: self.segment_ns,
            goal_ns: self.goal_ns,
            buffered_ns: unsigned(buffer_ms) * MS,
            before: self.before,
            is_live: false,
            now_ns: self.requested_ns,
        })
    }

    fn judge(&mut self, numbers: &[i64]) -> Option<usize> {
        let [now, buffer, segment, chosen, received, first, first_bytes, pieces, _] = numbers else {
            panic!("a judgement has nine numbers: {numbers:?}");
        };
        let bytes = self.ladder[place(*chosen)] * (self.segment_ns / MS) / 8000;
        self.rule.judge(&Progress {
            ladder: &self.ladder,
            segment: place(*segment),
            place: place(*chosen),
            bytes: Some(bytes),
            received_bytes: unsigned(*received),
            segment_ns: self.segment_ns,
            goal_ns: self.goal_ns,
            buffered_ns: unsigned(*buffer) * MS,
            requested_ns: self.requested_ns,
            first: (*first >= 0).then(|| (unsigned(*first) * MS, unsigned(*first_bytes))),
            pieces: u32::try_from(*pieces).unwrap(),
            has_media: self.has_media,
            is_live: false,
            now_ns: unsigned(*now) * MS,
        })
    }

    fn arrive(&mut self, numbers: &[i64]) {
        let [now, buffer, _, chosen, bytes, requested, first] = numbers else {
            panic!("an arrival has seven numbers: {numbers:?}");
        };
        self.rule.handle_download(&Download {
            place: place(*chosen),
            bytes: unsigned(*bytes),
            segment_ns: self.segment_ns,
            buffered_ns: unsigned(*buffer) * MS,
            requested_ns: unsigned(*requested) * MS,
            first_byte_ns: unsigned(*first) * MS,
            done_ns: unsigned(*now) * MS,
        });
        self.before = Some(place(*chosen));
        self.has_media = true;
    }
}

/// Replays a table with the rule of a name: it sees what the player saw, whatever it would have decided
/// itself.
fn replay(name: &str, table: &str) -> Alike {
    let rule = Rule::adaptive(name).unwrap();
    let mut alike = Alike::default();
    let mut session: Option<Session> = None;
    let count = |of: &mut (usize, usize), is_alike: bool| {
        of.0 += usize::from(is_alike);
        of.1 += 1;
    };
    for (kind, numbers) in table.lines().filter(|line| !line.starts_with('#')).filter_map(read) {
        if kind == "t" {
            session = Some(Session {
                rule: ActiveRule::new(rule),
                segment_ns: unsigned(numbers[0]) * MS,
                goal_ns: unsigned(numbers[1]) * MS,
                ladder: numbers[2..].iter().map(|rate| unsigned(*rate)).collect(),
                before: None,
                requested_ns: 0,
                has_media: false,
            });
            continue;
        }
        let session = session.as_mut().unwrap();
        match kind {
            "c" => {
                let chosen = session.choose(numbers[0], numbers[1]);
                count(&mut alike.choices, chosen == place(numbers[3]));
                session.before = Some(place(numbers[3]));
            }
            "p" => {
                let (found, expected) = (session.judge(&numbers), usize::try_from(numbers[8]).ok());
                match expected {
                    Some(_) => {
                        count(&mut alike.abandoned, found == expected);
                        session.before = expected;
                        session.requested_ns = unsigned(numbers[0]) * MS;
                    }
                    None => count(&mut alike.kept, found.is_none()),
                }
            }
            "d" => session.arrive(&numbers),
            other => panic!("no event `{other}`"),
        }
    }
    alike
}

#[test]
fn rules_of_players_decide_like_the_players() {
    for (name, table) in [
        ("dashjs", include_str!("../../../../scripts/abr-decisions/tables/dashjs.csv")),
        ("dashjs_bola", include_str!("../../../../scripts/abr-decisions/tables/dashjs_bola.csv")),
        ("dashjs_throughput", include_str!("../../../../scripts/abr-decisions/tables/dashjs_throughput.csv")),
        ("hlsjs", include_str!("../../../../scripts/abr-decisions/tables/hlsjs.csv")),
    ] {
        let alike = replay(name, table);
        let Alike { choices, abandoned, kept } = alike;
        // 25 traces, of which 18 are recorded, each with 70 segments of 2 s and 40 of 4 s.
        assert_eq!(choices.1, 25 * 110, "{name}: {choices:?}");
        for (alike, all) in [choices, abandoned, kept] {
            assert!(
                alike * 100 >= all * 98,
                "{name}: {alike} of {all}; {choices:?}, {abandoned:?}, {kept:?}"
            );
        }
    }
}
