//! The cell and its baseline received the same bodies.
//!
//! The content of a page is known and compared byte by byte (`body_content`). That of a loop's URLs is not:
//! their bodies get a checksum, all of those below 32 kB and a sample of larger ones: the first 300 requests
//! of a client and one of 16 after them. If one body in a hundred differs, 300 bodies miss it in 5 % of all
//! cases.

use std::collections::{BTreeMap, BTreeSet};

use model::number;

use super::{Check, CheckOutcome, Context, Finding, Side, check, counted, percent};
use crate::rows::Bodies;

pub(super) const CHECK: Check = Check {
    measures: "CRC-32 of the bodies of each URL, compared with the baseline's: all bodies below 32 kB; of larger \
               ones those of the first 300 requests of a client and one of 16 after them. A URL with more than 8 \
               different bodies in both cells changes with each response and is not compared; nor are live streams",
    passes: "equal",
    caveat: "different, from a server with a `url`: its content may change at any time",
    invalidates: "different",
    why: "Servers that send different bodies do different work, and clients that receive them too: one may \
          compress, or send an error page with status 200.",
    remedy: "Save the responses of both sides (`curl -v`) and compare them. Serve the same files, with the same \
             content coding.",
    ..check("contents_match", judge)
};

/// Judged if both cells have the same workload and checksums of the same URLs.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let baseline = context.baseline.as_ref()?;
    if context.own.cell.group.workload != baseline.cell.group.workload {
        return None;
    }
    // The manifest of a live stream changes, and each client numbers the URLs in it as it learns of them.
    let player = context.plan.workload_of(&context.own.cell.group).workload.player();
    if player.is_some_and(|player| player.live.is_some()) {
        return None;
    }
    let (own, other) = (Contents::of(&context.own), Contents::of(baseline));
    let common: Vec<(&Bodies, &Bodies)> = own
        .urls
        .iter()
        .filter_map(|(url, bodies)| Some((bodies, other.urls.get(url)?)))
        .filter(|(own, other)| own.checked > 0 && other.checked > 0)
        .collect();
    if common.is_empty() {
        return None;
    }
    let compared = || common.iter().filter(|(own, other)| !(own.vary() && other.vary()));
    let sum = |of: fn(&Bodies) -> u64| compared().map(|(own, _)| of(own)).sum::<u64>();
    let (checked, all) = (sum(|bodies| bodies.checked), sum(|bodies| bodies.all));
    let unlike: u64 = compared().map(|(own, other)| own.unlike(other)).sum();
    let unlike_baseline: u64 = compared().map(|(own, other)| other.unlike(own)).sum();
    let urls = compared().filter(|(own, other)| own.unlike(other) + other.unlike(own) > 0).count();
    let mut parts = vec![match urls {
        0 => format!("equal: {checked} of {}", bodies(all)),
        _ => format!(
            "{unlike} of {} differ from the baseline's, {unlike_baseline} of the baseline's from them, of {}",
            bodies(checked),
            counted(urls as u64, "URL")
        ),
    }];
    let varying = common.len() - compared().count();
    if varying > 0 {
        parts.push(format!("{} not compared: the content changes", counted(varying as u64, "URL")));
    }
    if own.kinds != other.kinds {
        parts.push(format!("content {}, baseline {}", listed(&own.kinds), listed(&other.kinds)));
    }
    if checked < all {
        parts.push(format!("{} of the bodies checked", percent(number::float(checked) / number::float(all))));
    }
    let result = match urls {
        0 => CheckOutcome::Pass,
        _ => context.unless_outside(CheckOutcome::Invalid),
    };
    Some(Finding { result, measured: parts.join("; "), threshold: "as in the baseline".to_owned() })
}

fn bodies(count: u64) -> String {
    if count == 1 { "1 body".to_owned() } else { format!("{count} bodies") }
}

fn listed(kinds: &BTreeSet<&str>) -> String {
    let name = |kind: &&str| if kind.is_empty() { "without a type".to_owned() } else { format!("`{kind}`") };
    kinds.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The bodies of a cell, by group and URL, and their media types and content codings.
struct Contents<'a> {
    urls: BTreeMap<(usize, u32), Bodies>,
    kinds: BTreeSet<&'a str>,
}

impl<'a> Contents<'a> {
    fn of(side: &Side<'a>) -> Contents<'a> {
        let mut contents = Contents { urls: BTreeMap::new(), kinds: BTreeSet::new() };
        for (group, facts) in side.ok().flat_map(|run| run.groups.iter().enumerate()) {
            for (url, bodies) in &facts.bodies {
                contents.urls.entry((group, *url)).or_default().merge(bodies);
                let text = |kind: &u16| facts.contents.get(usize::from(*kind)).map(String::as_str);
                contents.kinds.extend(bodies.kinds.iter().filter_map(text));
            }
        }
        contents
    }
}

#[cfg(test)]
mod tests {
    use model::player::LivePlay;
    use model::variant::Variant;
    use model::workload::Workload;

    use crate::fixtures::{Bench, fails, passes, silent};

    /// Every body has the checksum that `of` gives for its cell, run and request.
    fn with(of: impl Fn(u32, u32, u64) -> Option<u32>) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1s, Variant::H2]);
        for record in &mut bench.records {
            record.clients[0].contents = vec!["text/plain".to_owned()];
            for sample in &mut record.samples {
                sample.content = Some(0);
                sample.response_body_crc32 = of(record.cell, record.block, sample.request);
            }
        }
        bench
    }

    fn measured(bench: &Bench) -> String {
        let summary = bench.summary();
        let found = summary.cells[1].validity.iter().find(|check| check.check == "contents_match");
        found.unwrap().measured.clone()
    }

    #[test]
    fn equal_bodies_pass() {
        let bench = with(|_, _, request| (request < 25).then_some(7));
        passes("contents_match", &bench);
        assert_eq!(measured(&bench), "equal: 125 of 250 bodies; 50% of the bodies checked");
    }

    #[test]
    fn one_changed_byte_in_one_run_is_invalid_on_either_side() {
        for cell in [0, 1] {
            let bench =
                with(|own, block, request| Some(if (own, block, request) == (cell, 3, 9) { 8 } else { 7 }));
            let [unlike, unlike_baseline] = if cell == 1 { [1, 0] } else { [0, 1] };
            let expected = format!(
                "{unlike} of 250 bodies differ from the baseline's, {unlike_baseline} of the baseline's from them, of 1 URL"
            );
            assert_eq!(fails("contents_match", &bench).measured, expected);
        }
    }

    #[test]
    fn live_streams_are_not_compared() {
        let mut bench = with(|cell, _, _| Some(cell));
        let mut live = Bench::player(&[Variant::H1s]).plan.workloads.remove(0);
        if let Workload::Player(player) = &mut live.workload {
            let manifest = "/media/film/manifest.mpd".to_owned();
            let (latency_ns, duration_ns, most_requests) = (1, 1, None);
            player.live = Some(LivePlay { manifest, latency_ns, catch_up: true, duration_ns, most_requests });
        }
        bench.plan.workloads = vec![live];
        silent("contents_match", &bench);
    }

    #[test]
    fn a_content_coding_is_named() {
        let mut bench = with(|cell, _, _| Some(cell));
        for record in bench.records.iter_mut().filter(|record| record.cell == 1) {
            record.clients[0].contents = vec!["text/plain, gzip".to_owned()];
        }
        let found = fails("contents_match", &bench).measured;
        assert!(found.ends_with("; content `text/plain, gzip`, baseline `text/plain`"), "{found}");
    }

    #[test]
    fn content_that_changes_with_each_response_is_not_compared() {
        let bench =
            with(|cell, block, request| Some(cell * 1000 + block * 50 + u32::try_from(request).unwrap()));
        passes("contents_match", &bench);
        assert_eq!(measured(&bench), "equal: 0 of 0 bodies; 1 URL not compared: the content changes");
        silent("contents_match", &with(|_, _, _| None));
    }
}
