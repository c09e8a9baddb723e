//! Every fault that a person can put into a study, and the properties of every plan.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::backend::Backend;
use crate::media::{
    Media, MediaFolder, MediaSite, MediaSource, Presentation, Representation, Segment, Track, TrackKind,
};
use crate::monitor::MonitorRate;
use crate::plan::{Cell, NamedWorkload, PlannedTopology, PublishedValue, RemoteTrust};
use crate::plan_text::plan_text;
use crate::player::{Cmcd, LivePlay, Player, Rule, Seek, constant_rate_video};
use crate::schedule::{Arrivals, Rate, Schedule, Share, Stage};
use crate::statistic::Statistic;
use crate::topology::Topology;
use crate::tunable::{Contents, ServerFacts, Tunable, TunableKind};
use crate::url::Url;
use crate::variant::Variant;
use crate::workload::{ClosedLoop, LoopLoad, OpenLoop, ThinkTime, Workload, WorkloadKind};

const QUICK: &str = include_str!("../../../../studies/quick.toml");

/// The data files of the repository, and two broken ones.
struct TestLibrary;

const NETWORKS: &[(&str, &str)] = &[
    ("lan", include_str!("../../../../networks/lan.toml")),
    ("north-carolina", include_str!("../../../../networks/north-carolina.toml")),
    ("broken", "title = 'x'\nsource = 'y'\nrtt = '150'\n"),
    ("wavy", "title = 'x'\nsource = 'y'\nrtt = '50ms'\njitter = '5ms'\n"),
    ("dsl", include_str!("../../../../networks/dsl.toml")),
    ("tokyo", include_str!("../../../../networks/tokyo.toml")),
    ("frankfurt", include_str!("../../../../networks/frankfurt.toml")),
    ("amsterdam", include_str!("../../../../networks/amsterdam.toml")),
];
const TOPOLOGIES: &[(&str, &str)] = &[
    ("pair", include_str!("../../../../topologies/pair.toml")),
    ("campus", include_str!("../../../../topologies/campus.toml")),
    ("outside", include_str!("../../../../topologies/outside.toml")),
    ("proxied", include_str!("../../../../topologies/proxied.toml")),
    ("shared", include_str!("../../../../topologies/shared.toml")),
    ("sites", include_str!("../../../../topologies/sites.toml")),
];
const PAGES: &[(&str, &str)] = &[
    ("small", include_str!("../../../../pages/small.toml")),
    ("large", include_str!("../../../../pages/large.toml")),
    ("broken", "title = 'x'\n[[resource]]\npath = 'x'\nkind = 'html'\nsizes = ['1kB']\n"),
];

const MEDIA: &[(&str, &str)] = &[
    ("clip", include_str!("../../../../media/clip.toml")),
    ("broken", "title = 'x'\nsegment = '2s'\nlength = '1min'\n[video]\nladder = ['1Mbit']\n"),
];

/// Lists of URLs, timing scripts and a body.
const REQUEST_FILES: &[(&str, &str)] = &[
    ("urls/few.txt", "# three\n/bytes/1000\n\n/echo?a POST <bodies/a.json\n/echo POST a=b c\n"),
    ("urls/plain.txt", "/bytes/1000\n/bytes/{random:10-20}\n"),
    ("urls/host.txt", "/bytes/1\nhttps://a.test/x?y\n"),
    ("urls/space.txt", "/bytes/1\n/a b\n"),
    ("urls/pattern.txt", "/bytes/{random:9-1}\n"),
    ("urls/body.txt", "\n/a POST @missing\n"),
    ("urls/empty.txt", "# nothing\n"),
    ("bodies/a.json", "{}"),
    ("scripts/short.tsv", "0\t/bytes/1000\n500\t/bytes/2000\n2000\t/bytes/1000\n"),
    ("scripts/back.tsv", "5\t/a\n4\t/b\n"),
    (
        "session",
        r#"{"h123_script":1,"title":"an evening","origin":"https://tv.test","recorded":"by hand","variant":"h2"}
{"at_ms":0,"url":"/bytes/1000"}
{"at_ms":10,"url":"https://tv.test/bytes/2000"}
{"at_ms":1000,"url":"/bytes/2000","range":"0-499","status":206,"bytes":500,"after":[0,1],"gap_ms":50}
"#,
    ),
    (
        "elsewhere",
        "{\"h123_script\":1}\n{\"at_ms\":0,\"url\":\"/a\"}\n{\"at_ms\":0,\"url\":\"https://a.test/b\"}\n",
    ),
];

fn names(files: &[(&str, &str)]) -> Vec<String> {
    files.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn file(folder: &str, files: &[(&str, &str)], name: &str) -> Result<DataFile, String> {
    let found = files.iter().find(|(known, _)| *known == name).ok_or("no such file")?;
    Ok(DataFile { file: format!("{folder}/{name}.toml"), text: found.1.to_owned() })
}

impl Library for TestLibrary {
    fn networks(&self) -> Vec<String> {
        let mut all = names(NETWORKS);
        all.push("unreadable".into());
        all
    }

    fn topologies(&self) -> Vec<String> {
        names(TOPOLOGIES)
    }

    fn topology(&self, name: &str) -> Result<DataFile, String> {
        file("topologies", TOPOLOGIES, name)
    }

    fn pages(&self) -> Vec<String> {
        names(PAGES)
    }

    fn media(&self) -> Vec<String> {
        names(MEDIA)
    }

    fn media_file(&self, name: &str) -> Result<DataFile, String> {
        file("media", MEDIA, name)
    }

    fn media_folder(&self, name: &str, folder: &str, _: Option<&str>) -> Result<Media, String> {
        if folder != "made" {
            return Err(format!("{folder} does not exist"));
        }
        let path = |file: &str| format!("/media/{name}/{file}");
        let segment = Segment { url: path("video/1.m4s"), range: None, bytes: Some(1000) };
        let representation = Representation {
            name: "video".into(),
            bits_per_s: 8000,
            initialization: None,
            later_initializations: Vec::new(),
            segments: vec![segment],
        };
        let track = Track {
            kind: TrackKind::Video,
            durations_ns: vec![1_000_000_000],
            representations: vec![representation],
        };
        let files = [("video/1.m4s", 1000), ("manifest.mpd", 500), ("notes.txt", 50)];
        let files = files.into_iter().map(|(file, bytes)| (path(file), bytes)).collect();
        let source = MediaFolder { folder: folder.into(), manifest: "manifest.mpd".into(), files };
        Ok(Media {
            name: name.into(),
            presentation: Presentation { tracks: vec![track] },
            source: MediaSource::Folder(source),
            titles: 0,
            live_window_ns: None,
        })
    }

    fn media_site(&self, name: &str, manifest: &Url, _: &RemoteTrust) -> Result<Media, String> {
        if manifest.host != "site.test" {
            return Err(format!("{manifest} does not answer"));
        }
        let media = self.media_folder(name, "made", None)?;
        let source = MediaSource::Site(MediaSite {
            manifest: manifest.clone(),
            origin: "https://cdn.test".to_owned(),
        });
        Ok(Media { source, ..media })
    }

    fn servers(&self) -> Vec<String> {
        vec!["origin".into(), "nginx".into(), "nghttpx".into()]
    }

    fn server(&self, name: &str) -> Result<ServerFacts, String> {
        let count = TunableKind::Count { least: 1, most: 512 };
        let workers =
            Tunable { name: "workers".into(), meaning: "processes".into(), kind: count, default: None };
        let is_proxy = name == "nghttpx";
        Ok(ServerFacts {
            variants: if name == "nginx" { vec![Variant::H1, Variant::H1s] } else { Variant::ALL.to_vec() },
            back_variants: if is_proxy { vec![Variant::H1, Variant::H2c] } else { Vec::new() },
            needs_back: is_proxy,
            contents: match name {
                "nginx" => Contents::Files,
                "origin" => Contents::Origin,
                _ => Contents::Unknown,
            },
            takes_feeds: name == "nginx",
            tunables: vec![workers],
        })
    }

    fn clients(&self) -> Vec<String> {
        vec!["h2load".into(), "wrk".into(), "broken".into()]
    }

    fn check_client(
        &self,
        client: &str,
        variant: Variant,
        named: &NamedWorkload,
    ) -> Result<Option<String>, String> {
        match (client, variant, &named.workload) {
            ("broken", ..) => Err("clients/broken/client.toml:1:1: it is empty".into()),
            (_, _, Workload::Page(_)) => Ok(Some(format!("{client} loads no pages"))),
            ("wrk", Variant::H2, _) => Ok(Some("wrk speaks no h2".into())),
            _ => Ok(None),
        }
    }

    fn checks(&self) -> Vec<String> {
        vec!["version".into(), "client_waited".into()]
    }

    fn figures(&self) -> Vec<String> {
        vec!["runs".into(), "ecdf".into(), "lines".into()]
    }

    fn metrics(&self) -> Vec<MetricFacts> {
        let fact = |name: &str, workloads, requires, values| MetricFacts {
            name: name.to_owned(),
            unit: "ns",
            workloads,
            is_comparable: true,
            requires,
            counts_first_visits: name == "availability",
            values,
        };
        vec![
            fact("page_load_time", &WorkloadKind::ALL, None, ValuesPerRun::One),
            fact("server_time", &WorkloadKind::ALL, Some(Requirement::ServerTime), ValuesPerRun::Requests),
            fact("time_to_first_byte", &[WorkloadKind::Page], None, ValuesPerRun::One),
            fact("request_time", &WorkloadKind::ALL, None, ValuesPerRun::Requests),
            fact("availability", &WorkloadKind::ALL, None, ValuesPerRun::Share),
        ]
    }

    fn network(&self, name: &str) -> Result<DataFile, String> {
        if name == "unreadable" {
            return Err("networks/unreadable.toml is not readable".into());
        }
        file("networks", NETWORKS, name)
    }

    fn trace(&self, file: &str) -> Result<DataFile, String> {
        Err(format!("there is no trace `{file}`"))
    }

    fn page(&self, name: &str) -> Result<DataFile, String> {
        file("pages", PAGES, name)
    }

    fn request_file(&self, name: &str) -> Result<DataFile, String> {
        let text = match name {
            // As many lines as the name says.
            many if many.starts_with("urls/many-") => {
                let count: u32 = many["urls/many-".len()..].parse().unwrap();
                (0..count).map(|path| format!("/bytes/{}\n", path % 7000)).collect()
            }
            name => match REQUEST_FILES.iter().find(|(known, _)| *known == name) {
                Some((_, text)) => (*text).to_owned(),
                None => return Err(format!("there is no file {name}")),
            },
        };
        Ok(DataFile { file: name.to_owned(), text })
    }

    fn replay(&self, name: &str) -> Result<DataFile, String> {
        self.request_file(name)
    }
}

pub(super) fn number(key: &'static str, number: u64) -> Override {
    Override { key, value: OverrideValue::Number(number) }
}

pub(super) fn full() -> Override {
    Override { key: "full", value: OverrideValue::Full }
}

pub(super) fn text(key: &'static str, text: &str) -> Override {
    Override { key, value: OverrideValue::Text(text.to_owned()) }
}

pub(super) fn list(key: &'static str, names: &[&str]) -> Override {
    Override { key, value: OverrideValue::List(names.iter().map(|name| (*name).to_owned()).collect()) }
}

pub(super) fn parse_with(text: &str, overrides: &[Override]) -> Result<Plan, String> {
    let source = Source { file: "s.toml", text };
    Study::parse("s", source, overrides, &TestLibrary).map_err(|error| error.to_string())
}

pub(crate) fn parse(text: &str) -> Result<Plan, String> {
    parse_with(text, &[])
}

fn quick() -> Plan {
    let source = Source { file: "studies/quick.toml", text: QUICK };
    Study::parse("quick", source, &[], &TestLibrary).unwrap()
}

/// A short study without a fault. Lines are numbered in the tests below.
pub(crate) const SHORT: &str = r#"question = "Which?"
metric = "page_load_time"
baseline = { variant = "h1s" }
margin = "3%"
runs = 2
[matrix]
variant = ["h1s", "h3"]
server = ["origin"]
network = ["lan"]
workload = ["small"]
[workload.small]
kind = "page"
page = "small"
[hold]
mtu = "1500B"
"#;

/// The error after one line of the short study was replaced.
fn fault(line: usize, replacement: &str) -> String {
    let mut lines: Vec<&str> = SHORT.lines().collect();
    lines[line - 1] = replacement;
    parse(&lines.join("\n")).unwrap_err()
}

pub(super) fn assert_fault(line: usize, replacement: &str, expected: &str) {
    let error = fault(line, replacement);
    assert_eq!(error, format!("s.toml:{expected}"), "with `{replacement}`");
}

#[test]
fn short_study_is_without_fault() {
    let plan = parse(SHORT).unwrap();
    assert_eq!(plan.cells.len(), 2);
    assert_eq!(plan.seed, 1);
    assert_eq!(plan.study_text, SHORT);
    assert_eq!(plan.cells[1].label(), "h3 · origin · lan · small");
    assert_eq!(plan.cells[1].group.variant, Variant::H3);
}

#[test]
fn quick_states_the_defaults() {
    let plan = quick();
    assert_eq!(plan.pins, crate::pins::Pins::default());
    assert_eq!(plan.cells.len(), 20);
    assert_eq!(plan.runs.len(), 100);
    assert_eq!(plan.networks[1].rtt_ns(), 150_000_000);
    assert!(plan.expected_ns() < 120_000_000_000, "{} ns", plan.expected_ns());
    let page = |index: usize| match &plan.workloads[index].workload {
        Workload::Page(page) => (page.name.clone(), page.total_bytes(), page.resources.len()),
        _ => panic!("not a page"),
    };
    assert_eq!(page(0), ("small".into(), 20_000, 3));
    assert_eq!(page(1), ("large".into(), 1_600_000, 55));
}

#[test]
fn large_page_has_two_levels_below_the_document() {
    let plan = quick();
    let Workload::Page(page) = &plan.workloads[1].workload else { panic!("not a page") };
    assert_eq!(page.children(0).count(), 52);
    let style_sheet = page.resources.iter().position(|resource| resource.path == "/large/main.css").unwrap();
    let fonts: Vec<&str> =
        page.children(style_sheet).map(|index| page.resources[index].path.as_str()).collect();
    assert_eq!(fonts, ["/large/font1.woff2", "/large/font2.woff2"]);
}

#[test]
fn networks_are_what_the_studies_say() {
    let plan = quick();
    let describe = |index: usize| crate::network::describe(&plan.networks[index]);
    assert_eq!(describe(0), "RTT 300 µs, 100 Mbit/s, queue 1000 packets");
    assert_eq!(describe(1), "RTT 150 ms, 50 Mbit/s, queue 938 kB");
}

#[test]
fn faults_of_keys_and_types() {
    assert_fault(
        2,
        "metrik = \"x\"",
        "2:1: `metrik` is not a key of the study; did you mean `metric`? The choices are question, metric, statistic, baseline, \
         margin, runs, precision, budget, most_runs, seed, except, full, topology, backends, matrix, workload, media, class, arm, server, \
         group, hold, cores, server_time, warm, page_cache, dns, accept, claim, monitor, figures, published, csv",
    );
    assert_fault(
        5,
        "runs = \"5\"",
        "5:8: `runs` is the string \"5\"; write a whole number from 1 to 10000, such as `runs = 5`",
    );
    assert_fault(
        5,
        "runs = 5\nserver_time = 1",
        "6:15: `server_time` is the number 1; write `true` or `false`, such as `server_time = true`",
    );
    let rates = "is not a monitor rate; write a whole number from `1Hz` to `10Hz`, or `off`";
    assert_fault(5, "runs = 5\nmonitor = \"50Hz\"", &format!("6:11: `monitor`: `50Hz` {rates}"));
    assert_fault(
        5,
        "runs = 5\nmonitor = 2",
        "6:11: `monitor` is the number 2; write a string, such as `monitor = \"10Hz\"`",
    );
    assert_fault(5, "runs = 0", "5:8: `runs` is 0; write a whole number from 1 to 10000");
    assert_fault(5, "runs = -1", "5:8: `runs` is -1; write a whole number from 1 to 10000");
    assert_fault(
        5,
        "runs = 2.5",
        "5:8: `runs` is the number 2.5; write a whole number from 1 to 10000, such as `runs = 5`",
    );
    assert_fault(5, "", "1:1: the study has no `runs`; add one, such as `runs = 5`");
    assert_fault(
        4,
        "margin = 3",
        "4:10: `margin` is the number 3; write a string, such as `margin = \"3%\"`",
    );
    assert_fault(
        4,
        "margin = \"120%\"",
        "4:10: `margin`: `120%` is not a share; write one from 0% to 100%, such as `3%`",
    );
    assert!(fault(4, "margin = \"0%\"").starts_with("s.toml:4:10: `margin`: 0% is too low; write more"));
    assert!(fault(4, "margin = \"3").starts_with("s.toml:4:"));
    assert!(fault(4, "runs = 3").starts_with("s.toml:5:1: "), "the same key twice");
    assert!(fault(1, "question = ' '").starts_with("s.toml:1:12: `question` is empty; write"));
    assert_eq!(
        parse("").unwrap_err(),
        "s.toml:1:1: the study has no `question`; add one, such as `question = \"Which version loads our page soonest?\"`"
    );
}

/// The short study with these lines in the place of its number of runs.
fn repeated(lines: &str) -> Result<crate::plan::Plan, String> {
    parse(&SHORT.replace("runs = 2", lines))
}

#[test]
fn a_plan_with_more_runs_begins_with_its_own() {
    let plan = repeated("runs = 5").unwrap();
    let more = plan.with_runs(8).unwrap();
    assert_eq!((more.runs_per_cell, more.runs.len()), (8, 16));
    assert_eq!(more.runs[..10], plan.runs);
    assert_eq!(more.runs, repeated("runs = 8").unwrap().runs, "as if it had been planned so");
    assert_eq!(plan.with_runs(5).unwrap(), plan);
    let refused = |plan: &Plan, runs| plan.with_runs(runs).unwrap_err();
    assert!(refused(&plan, 4).contains("has 5 runs; write --runs 6 or more"));
    assert!(refused(&plan, 10_001).contains("is above 10000"));
    let ruled = repeated("runs = 5\nprecision = \"2%\"").unwrap();
    assert!(refused(&ruled, 8).contains("Begin a study without `precision`"));
    let mut other = plan;
    other.runs[0].seed += 1;
    assert!(refused(&other, 8).contains("another version of h123"));
}

#[test]
fn runs_are_added_block_by_block_and_follow_from_the_seed() {
    let plan = repeated("runs = 5\nprecision = \"2%\"\nbudget = \"30min\"\nmost_runs = 8").unwrap();
    let rule = plan.repetition.unwrap();
    assert_eq!((rule.precision_share, rule.budget_ns, rule.most_runs), (0.02, Some(1_800_000_000_000), 8));
    assert_eq!((plan.runs_per_cell, plan.least_runs().len(), plan.runs.len()), (5, 10, 16));
    // The first blocks are those of a study without the rule.
    let fixed = repeated("runs = 5").unwrap();
    assert_eq!(plan.least_runs(), fixed.runs);
    assert_eq!(plan.expected_ns(), fixed.expected_ns());
    assert_eq!(repeated("runs = 5\nprecision = \"2%\"").unwrap().runs.len(), 200);
    let text = plan_text(&plan).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("10 = 2 cells × 5 each, then more until ±2 %, at most 8 each or 30 min 0 s"),
        "{text}"
    );
    assert!(text.contains("Order: 5 blocks of 2 runs, up to 8, each"), "{text}");
    let overridden = [number("runs", 9)];
    let text = SHORT.replace("runs = 2", "runs = 5\nprecision = \"2%\"\nmost_runs = 8");
    let plan = Study::parse("s", Source { file: "s.toml", text: &text }, &overridden, &TestLibrary).unwrap();
    assert_eq!(plan.runs.len(), 18, "as many as the command line asks for are allowed");
}

#[test]
fn faults_of_the_rule_that_adds_runs() {
    for (lines, expected) in [
        ("runs = 4\nprecision = \"2%\"", "5:8: `runs` is 4, too few for `precision`; write at least 5"),
        ("runs = 5\nprecision = \"0%\"", "6:13: `precision`: 0% is too low; write more"),
        ("runs = 5\nprecision = 2", "6:13: `precision` is the number 2; write a string, such as"),
        ("runs = 5\nbudget = \"30min\"", "6:10: `budget` requires `precision`"),
        ("runs = 5\nmost_runs = 9", "6:13: `most_runs` requires `precision`"),
        (
            "runs = 9\nprecision = \"2%\"\nmost_runs = 8",
            "7:13: `most_runs` is 8, below `runs`; write at least 9",
        ),
    ] {
        let error = repeated(lines).unwrap_err();
        assert!(error.starts_with(&format!("s.toml:{expected}")), "{error}");
    }
}

#[test]
fn faults_of_the_matrix() {
    assert_fault(
        7,
        "variant = []",
        "7:11: `variant` is an empty list; write one such as `[\"h1s\", \"h2\", \"h3\"]`",
    );
    assert_fault(
        7,
        "variant = \"h3\"",
        "7:11: `variant` is the string \"h3\"; write a list, such as `variant = [\"h1s\", \"h2\", \"h3\"]`",
    );
    assert_fault(7, "variant = [\"h3\", \"h1s\", \"h3\"]", "7:25: `variant`: `h3` appears twice; remove one");
    assert_fault(
        7,
        "variant = [\"h1s\", \"h4\"]",
        "7:19: `h4` is not a variant; the choices are h1, h1s, h2c, h2, h3",
    );
    assert_fault(
        8,
        "server = [\"ngnix\"]",
        "8:11: `ngnix` is not a server; did you mean `nginx`? The choices are origin, nginx, nghttpx",
    );
    assert_fault(
        9,
        "network = [\"lan\", \"north_carolina\"]",
        "9:19: `north_carolina` is not a network; did you mean `north-carolina`? The choices are lan, north-carolina, broken, wavy, dsl, tokyo, frankfurt, amsterdam, unreadable",
    );
    assert_fault(
        10,
        "workload = [\"smal\"]",
        "10:13: `smal` is not a `[workload.NAME]` that this study defines; did you mean `small`? The only choice is small",
    );
    assert_fault(
        9,
        "netwrok = [\"lan\"]",
        "9:1: `netwrok` is not a key of [matrix]; did you mean `network`? The choices are variant, server, network, workload, client, arm",
    );
    assert_fault(9, "", "6:1: [matrix] has no `network`; add one, such as `network = [\"lan\", \"tram\"]`");
    let empty = SHORT.replace(
        "variant = [\"h1s\", \"h3\"]\nserver = [\"origin\"]\nnetwork = [\"lan\"]\nworkload = [\"small\"]\n",
        "",
    );
    assert_eq!(
        parse(&empty).unwrap_err(),
        "s.toml:6:1: [matrix] has no `variant`; add one, such as `variant = [\"h1s\", \"h2\", \"h3\"]`"
    );
}

#[test]
fn accepted_checks_must_exist() {
    let accepting = SHORT.replace("runs = 2", "runs = 2\naccept = [\"client_waited\"]");
    assert_eq!(parse(&accepting).unwrap().accepted, ["client_waited"]);
    let both = ["version".to_owned(), "client_waited".to_owned()];
    let added = Override { key: "accept", value: OverrideValue::Added(both.into()) };
    let plan = parse_with(&accepting, &[added]).unwrap();
    assert_eq!(plan.accepted, ["client_waited", "version"]);
    let error = parse(&accepting.replace("client_waited", "client_waits")).unwrap_err();
    assert!(error.contains(":6:11: `accept`: `client_waits` is not a check"), "{error}");
}

#[test]
fn faults_of_names() {
    assert_fault(
        2,
        "metric = \"page_load\"",
        "2:10: `metric`: `page_load` is not a metric; did you mean `page_load_time`? The choices are page_load_time, server_time, time_to_first_byte, request_time, availability",
    );
    assert_fault(
        3,
        "baseline = { variant = \"h2\" }",
        "3:24: `baseline`: `h2` is not a level of `variant` in the matrix; the choices are h1s, h3",
    );
    assert!(fault(3, "baseline = {}").contains("`baseline` has 0 factors; write one"));
    let two = fault(3, "baseline = { variant = \"h1s\", network = \"lan\" }");
    assert!(two.contains("`baseline` has 2 factors; write one"), "{two}");
    assert_fault(
        3,
        "baseline = \"h1s\"",
        "3:12: `baseline` is the string \"h1s\"; write a table, such as `baseline = { variant = \"h1s\" }`",
    );
    assert_fault(
        13,
        "page = \"smal\"",
        "13:8: `page`: `smal` is not a page; did you mean `small`? The choices are small, large, broken",
    );
}

#[test]
fn faults_of_workloads() {
    assert_fault(
        12,
        "kind = \"pages\"",
        "12:8: `kind`: `pages` is not a kind of workload; did you mean `page`? The choices are page, closed, open, player, script",
    );
    assert_fault(12, "", "11:1: [workload.small] has no `kind`; add one, such as `kind = \"page\"`");
    assert!(fault(13, "page = \"small\"\nclients = 0").starts_with("s.toml:14:11: `clients` is 0; write"));
    let connections = fault(13, "page = \"small\"\nconnections = 4");
    assert!(connections.starts_with("s.toml:14:1: `connections` is not a key of [workload.small]"));
    let text = |lines: &str| {
        SHORT.replace("kind = \"page\"\npage = \"small\"", &format!("kind = \"closed\"\n{lines}"))
    };
    let error = |lines: &str| parse(&text(lines)).unwrap_err();
    assert!(error("page = \"small\"").contains("`page` is not a key of [workload.small]"));
    assert!(error("paths = []").contains("is an empty list"));
    assert!(
        error("paths = [\"a\"]\nduration = \"1s\"").starts_with("s.toml:13:10: `paths`: `a` is not a path")
    );
    assert!(error("paths = [\"/\"]").contains("has neither `duration` nor `requests`"));
    let both = error("paths = [\"/\"]\nrequests = 5\nduration = \"1s\"");
    assert!(both.starts_with("s.toml:14:12: `requests` excludes `duration`"), "{both}");
    assert!(
        error("paths = [\"/\"]\nduration = \"1 lightyear\"")
            .contains("`duration`: `1 lightyear` is not a duration")
    );
    let plan = parse(&text("paths = [\"/\"]\nduration = \"2s\"\nwarmup = \"3s\"\nconnections = 10")).unwrap();
    assert!(plan.cells[0].expected_run_ns > 5_000_000_000, "the warm-up comes before the duration");
}

fn open_study(lines: &str) -> String {
    SHORT.replace(
        "kind = \"page\"\npage = \"small\"",
        &format!("kind = \"open\"\npaths = [\"/bytes/1\"]\n{lines}"),
    )
}

#[test]
fn an_open_loop_is_resolved_and_planned() {
    let plan = parse(&open_study(
        "rate = \"2k\"\narrivals = \"poisson\"\nduration = \"4s\"\nwarmup = \"1s\"\nconnections = 6\nstreams = 3\nqueue = 50",
    ))
    .unwrap();
    let rate = Rate(2_000_000);
    let schedule = Schedule {
        stages: vec![Stage { from: rate, to: rate, duration_ns: Some(4_000_000_000) }],
        arrivals: Arrivals::Poisson,
        share: Share::WHOLE,
    };
    let load = LoopLoad { connections: 6, streams: 3, warmup_ns: 1_000_000_000, ..LoopLoad::new("/bytes/1") };
    let expected = Workload::Open(OpenLoop { load, schedule, queue_limit: 50 });
    assert_eq!(plan.workloads[0].workload, expected);
    assert!(plan.cells[0].expected_run_ns > 5_000_000_000);
    let text = plan_text(&plan);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let described = "open loop over 1 path: 2000 requests/s as a Poisson process on 6 connections × 3 streams, for 4 s after 1 s of warm-up";
    assert!(words.contains(described), "{text}");
    let stages = parse(&open_study("stages = [\"5s@100\", \"10s@100-400\"]")).unwrap();
    assert!(stages.cells[0].expected_run_ns > 15_000_000_000);
    let counted = parse(&open_study("rate = \"100\"\nrequests = 500")).unwrap();
    assert!(counted.cells[0].expected_run_ns > 5_000_000_000);
}

#[test]
fn the_think_time_of_a_closed_loop_is_resolved_and_planned() {
    let study = |lines: &str| parse(&open_study(lines).replace("\"open\"", "\"closed\""));
    let without = study("requests = 10").unwrap();
    for (line, think, described) in [
        ("", ThinkTime::default(), "1 connection × 1 stream, 10 requests"),
        (
            "think_time = \"2s\"",
            ThinkTime { least_ns: 2 * 1_000_000_000, most_ns: 2 * 1_000_000_000 },
            "stream, think time 2 s, 10",
        ),
        (
            "think_time = \"0s-3s\"",
            ThinkTime { least_ns: 0, most_ns: 3 * 1_000_000_000 },
            "think time 0 ns to 3 s, 10",
        ),
    ] {
        let plan = study(&format!("requests = 10\n{line}")).unwrap();
        let load = LoopLoad { requests: Some(10), ..LoopLoad::new("/bytes/1") };
        let expected = Workload::Closed(ClosedLoop { think, ..ClosedLoop::new(load, None) });
        assert_eq!(plan.workloads[0].workload, expected);
        let words = plan_text(&plan).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(described), "{words}");
        let longer_ns = plan.cells[0].expected_run_ns - without.cells[0].expected_run_ns;
        assert_eq!(longer_ns, 10 * think.most_ns, "{line}");
    }
    for (line, expected) in [
        ("think_time = \"2\"", "`think_time`: `2` is not a duration"),
        ("think_time = \"2s-1s\"", "`think_time`: write the shorter time of `2s-1s` first"),
    ] {
        let error = study(&format!("requests = 10\n{line}")).unwrap_err();
        assert!(error.contains("15:14: ") && error.contains(expected), "{error}");
    }
    assert!(
        parse(&open_study("rate = \"1\"\nrequests = 5\nthink_time = \"1s\""))
            .unwrap_err()
            .contains("not a key")
    );
}

#[test]
fn faults_of_open_loops() {
    for (lines, expected) in [
        ("", "11:1: [workload.small] has no `rate` or `stages`; add one of them"),
        (
            "rate = \"10\"",
            "11:1: [workload.small] has neither `duration` nor `requests`; add one of them to end the run",
        ),
        (
            "rate = \"0\"\nduration = \"1s\"",
            "14:8: `rate`: `0` is out of bounds; write 0.001 to 100000k requests per second",
        ),
        (
            "rate = 10\nduration = \"1s\"",
            "14:8: `rate` is the number 10; write a string, such as `rate = \"200/s\"`",
        ),
        ("rate = \"10\"\nduration = \"0s\"", "15:12: `duration`: 0 is too short; write a duration above 0"),
        ("rate = \"10\"\nstages = [\"1s@5\"]", "15:10: `stages` excludes `rate`; remove one of them"),
        (
            "stages = [\"1s@5\"]\nduration = \"1s\"",
            "15:12: `duration` excludes `stages`, which have their own durations; remove `duration`",
        ),
        (
            "stages = [\"1s@5\", \"1s\"]",
            "14:19: `stages`: `1s` is not a stage; write one such as `10s@100` or `10s@100-1000`",
        ),
        ("stages = [\"1s@0\"]", "14:10: `stages` has no rate above 0; add a stage such as `5s@100`"),
        (
            "rate = \"1000k\"\nduration = \"1min\"",
            "14:8: a run has 60000000 requests; write at most 5000000, because each has a row",
        ),
        (
            "rate = \"10\"\nduration = \"1s\"\narrivals = \"poison\"",
            "16:12: `arrivals`: `poison` is not an arrival process; did you mean `poisson`? The choices are even, poisson",
        ),
        (
            "rate = \"10\"\nduration = \"1s\"\nrates = 5",
            "16:1: `rates` is not a key of [workload.small]; did you mean `rate`? The choices are kind, clients, \
             start, visit, paths, urls, media, order, connections, streams, requests, duration, warmup, rate, stages, arrivals, queue, \
             requests_per_connection, connect_timeout, request_timeout, method, headers, body",
        ),
    ] {
        assert_eq!(parse(&open_study(lines)).unwrap_err(), format!("s.toml:{expected}"), "with `{lines}`");
    }
}

const LADDER: &str = "ladder = [\"1Mbit/s\", \"2.5Mbit/s\", \"8Mbit/s\"]";

fn video_study(lines: &str) -> String {
    SHORT.replace("kind = \"page\"\npage = \"small\"", &format!("kind = \"player\"\n{lines}"))
}

#[test]
fn a_video_is_resolved_and_planned() {
    let rest = "segment = \"2s\"\nsegments = 30\nbuffer = \"12s\"\nrule = \"throughput\"";
    let plan = parse(&video_study(&format!("{LADDER}\n{rest}"))).unwrap();
    let player = Player {
        presentation: constant_rate_video(&[1_000_000, 2_500_000, 8_000_000], 2_000_000_000, 30),
        goal_ns: 12_000_000_000,
        startup_ns: 2_000_000_000,
        rebuffer_ns: 2_000_000_000,
        rule: Rule::Throughput,
        seeks: Vec::new(),
        live: None,
        cmcd: None,
        browser: None,
        origin: None,
    };
    assert_eq!(plan.workloads[0].workload, Workload::Player(player.clone()));
    assert_eq!(plan.cells[0].expected_run_ns / 1_000_000_000, 60, "as long as its media");
    let words = plan_text(&plan).split_whitespace().collect::<Vec<_>>().join(" ");
    let described = "video: 30 segments of 2 s at 1, 2.5 or 8 Mbit/s, throughput rule, buffer 12 s";
    assert!(words.contains(described), "{words}");
    let lengths: Vec<(String, u64)> = plan.segments().into_iter().collect();
    let expected = [("/bytes/2000000", 2_000_000), ("/bytes/250000", 250_000), ("/bytes/625000", 625_000)];
    assert_eq!(lengths, expected.map(|(path, bytes)| (path.to_owned(), bytes)));

    let resumed = video_study(&format!("{LADDER}\n{rest}")).replace("mtu = \"1500B\"", "resumption = true");
    let fault = "`resumption` is true, but the workload `small` (video) has a fresh client";
    assert!(parse(&resumed).unwrap_err().contains(fault));
    let fixed =
        rest.replace("\"throughput\"", "\"fixed\"\nrepresentation = \"2500kbit/s\"\nstartup = \"5s\"");
    let plan = parse(&video_study(&format!("{LADDER}\n{fixed}"))).unwrap();
    let rule = Rule::Fixed { bits_per_s: 2_500_000 };
    let expected = Player { rule, startup_ns: 5_000_000_000, rebuffer_ns: 5_000_000_000, ..player.clone() };
    assert_eq!(plan.workloads[0].workload, Workload::Player(expected));
    let sought =
        format!("{rest}\nrebuffer = \"1s\"\nseek = [\"8s to 30s\", \"31s to 4s\"]\ncmcd = \"query\"");
    let plan = parse(&video_study(&format!("{LADDER}\n{sought}"))).unwrap();
    let s = 1_000_000_000;
    let seeks = vec![Seek { at_ns: 8 * s, to_ns: 30 * s }, Seek { at_ns: 31 * s, to_ns: 4 * s }];
    let expected = Player { seeks, rebuffer_ns: s, cmcd: Some(Cmcd::Query), ..player };
    assert_eq!(plan.workloads[0].workload, Workload::Player(expected));
    for rule in Rule::NAMES.into_iter().filter(|name| *name != "fixed") {
        parse(&video_study(&format!("{LADDER}\n{}", rest.replace("throughput", rule)))).unwrap();
    }
}

#[test]
fn a_live_stream_is_resolved_and_planned() {
    let lines = "manifest = \"/live/a.mpd\"\nlatency = \"9s\"\ncatch_up = true\nduration = \"60s\"\nbuffer = \"12s\"\nrule = \"hlsjs\"";
    let plan = parse(&video_study(lines)).unwrap();
    let Workload::Player(player) = &plan.workloads[0].workload else { panic!("not a player") };
    let live = LivePlay {
        manifest: "/live/a.mpd".to_owned(),
        latency_ns: 9_000_000_000,
        catch_up: true,
        duration_ns: 60_000_000_000,
        most_requests: None,
    };
    assert_eq!((player.live.as_ref(), player.rule), (Some(&live), Rule::Hlsjs));
    assert_eq!((player.media_ns(), player.requests_at_once()), (60_000_000_000, 3));
    assert_eq!(plan.cells[0].expected_run_ns / 1_000_000_000, 60);
    for (change, expected) in [
        (
            ("rule", "ladder = [\"1Mbit/s\"]\nrule"),
            "`ladder` is for media on demand; remove it, or remove `manifest`",
        ),
        (("latency = \"9s\"\n", ""), "has no `latency`; add one"),
        (
            ("manifest = \"/live/a.mpd\"", "ladder = [\"1Mbit/s\"]"),
            "`latency` is for live streams; add `manifest`, or remove it",
        ),
    ] {
        let fault = parse(&video_study(&lines.replace(change.0, change.1))).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    }
}

#[test]
fn faults_of_videos() {
    let rest = "segment = \"2s\"\nsegments = 30\nbuffer = \"12s\"";
    let whole = format!("{LADDER}\n{rest}\nrule = \"throughput\"");
    let change = |from: &str, to: &str| whole.replace(from, to);
    for (lines, expected) in [
        (
            rest.to_owned(),
            "11:1: [workload.small] has no `ladder`; add one, such as `ladder = [\"1Mbit/s\", \"2.5Mbit/s\", \
             \"8Mbit/s\"]`",
        ),
        (
            change("\"2.5Mbit/s\"", "\"9Mbit/s\""),
            "13:33: `ladder`: `8Mbit/s` is not above the rate before it; sort them",
        ),
        (
            change("\"2.5Mbit/s\"", "\"fast\""),
            "13:22: `ladder`: `fast` is not a rate; write a number and a unit (bit/s, kbit/s, Mbit/s, Gbit/s), such as `50Mbit/s`",
        ),
        (
            change("\"1Mbit/s\"", "\"3bit/s\""),
            "13:11: `ladder`: a segment of `3bit/s` has 0 bytes; its bounds are 1 to 64000000",
        ),
        (change("\"2s\"", "\"0s\""), "14:11: `segment`: 0 is too short; write a duration above 0"),
        (
            change("segments = 30", "segments = 0"),
            "15:12: `segments` is 0; write a whole number from 1 to 10000",
        ),
    ] {
        assert_eq!(parse(&video_study(&lines)).unwrap_err(), format!("s.toml:{expected}"), "with `{lines}`");
    }
}

#[test]
fn faults_of_players() {
    let whole = format!("{LADDER}\nsegment = \"2s\"\nsegments = 30\nbuffer = \"12s\"\nrule = \"throughput\"");
    let change = |from: &str, to: &str| whole.replace(from, to);
    for (lines, expected) in [
        (
            format!("{whole}\nstartup = \"13s\""),
            "18:11: `startup` exceeds `buffer`, so that playback never begins; write at most `buffer`",
        ),
        (
            format!("{whole}\nrebuffer = \"13s\""),
            "18:12: `rebuffer` exceeds `buffer`, so that playback never resumes; write at most `buffer`",
        ),
        (
            format!("{whole}\nseek = [\"8s - 9s\"]"),
            "18:9: `seek`: `8s - 9s` is not a jump; write two times of the media, such as `8s to 30s`",
        ),
        (
            format!("{whole}\nseek = [\"8s to 9s\", \"9s to 30s\"]"),
            "18:21: `seek`: playback begins at 9 s, and never reaches `9s`; write a later time",
        ),
        (
            format!("{whole}\nseek = [\"8s to 60s\"]"),
            "18:9: `seek`: the jump is not before the end at 60 s; write earlier times",
        ),
        (
            change("throughput", "troughput"),
            "17:8: `rule`: `troughput` is not a rule; did you mean `throughput`? The choices are fixed, throughput, buffer, \
             bola, dashjs, dashjs_throughput, dashjs_bola, hlsjs",
        ),
        (
            change("throughput", "fixed"),
            "11:1: [workload.small] has no `representation`; add one, such as `representation = \"2.5Mbit/s\"`",
        ),
        (
            format!("{}\nrepresentation = \"2Mbit/s\"", change("throughput", "fixed")),
            "18:18: `representation` is not in the ladder; write one of 1, 2.5 or 8 Mbit/s",
        ),
        (
            format!("{whole}\nrepresentation = \"1Mbit/s\""),
            "18:18: `representation` requires the rule `fixed`; remove it, as the rule is `throughput`",
        ),
        (
            format!("{whole}\nconnections = 2"),
            "18:1: `connections` is not a key of [workload.small]; the choices are kind, clients, start, visit, media, \
             ladder, segment, segments, manifest, latency, catch_up, duration, requests, buffer, startup, rebuffer, seek, rule, \
             representation, player, cmcd",
        ),
    ] {
        assert_eq!(parse(&video_study(&lines)).unwrap_err(), format!("s.toml:{expected}"), "with `{lines}`");
    }
}

#[test]
fn a_workload_that_the_matrix_does_not_name_is_a_fault() {
    assert_fault(
        14,
        "[workload.other]\nkind = \"page\"\npage = \"large\"\n[hold]",
        "14:11: `[workload.other]` is not used: `workload` in `[matrix]` names small; add it there, or remove the table",
    );
}

#[test]
fn a_metric_that_the_workload_has_not_is_refused() {
    let closed = "kind = \"closed\"\npaths = [\"/\"]\nduration = \"1s\"";
    let text = SHORT
        .replace("kind = \"page\"\npage = \"small\"", closed)
        .replace("page_load_time", "time_to_first_byte");
    assert_eq!(
        parse(&text).unwrap_err(),
        "s.toml:2:10: `metric`: workload `small`: `time_to_first_byte` cannot compare it; choose one of page_load_time, server_time, request_time, availability"
    );
}

/// The short study with this metric and statistic, and a loop with these keys in place of the page.
fn about(metric: &str, statistic: &str, of_loop: Option<&str>) -> Result<Plan, String> {
    let keys = format!("metric = \"{metric}\"\nstatistic = \"{statistic}\"");
    let text = SHORT.replace("metric = \"page_load_time\"", &keys);
    let kind = "kind = \"page\"\npage = \"small\"";
    let of_loop = of_loop.map(|keys| format!("kind = \"closed\"\npaths = [\"/\"]\n{keys}"));
    parse(&of_loop.map_or(text.clone(), |keys| text.replace(kind, &keys)))
}

#[test]
fn verdicts_may_be_about_another_statistic() {
    assert_eq!(parse(SHORT).unwrap().statistic, Statistic::Median);
    let plan = about("request_time", "p99", Some("duration = \"1s\"")).unwrap();
    assert_eq!(plan.statistic, Statistic::P99);
    assert!(plan_text(&plan).contains("p99 of request_time"), "{}", plan_text(&plan));
    let (plain, json) = (parse(SHORT).unwrap(), |plan: &Plan| serde_json::to_string(plan).unwrap());
    assert!(json(&plan).contains("\"statistic\":\"p99\"") && !json(&plain).contains("\"statistic\""));
    assert_eq!(Plan::from_json(json(&plan).as_bytes()).unwrap(), plan);
    for (metric, statistic, of_loop) in [
        ("page_load_time", "mean", None),
        ("availability", "median", Some("duration = \"1s\"")),
        ("request_time", "p99", Some("requests = 100")),
        ("request_time", "p999", Some("requests = 1000")),
    ] {
        let plan = about(metric, statistic, of_loop).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(plan.statistic.name(), statistic);
    }
}

#[test]
fn a_statistic_that_no_run_can_have_is_refused() {
    for (metric, statistic, of_loop, expected) in [
        (
            "page_load_time",
            "p98",
            None,
            "`statistic`: `p98` is not a statistic; the choices are median, mean,",
        ),
        (
            "page_load_time",
            "iqr",
            None,
            "`statistic`: `iqr` says how much values differ and not which are better",
        ),
        (
            "page_load_time",
            "p99",
            None,
            "`statistic`: a run has one value of `page_load_time`, so it has no p99; write `median` or `mean`",
        ),
        (
            "availability",
            "mean",
            Some("duration = \"1s\""),
            "`statistic`: `availability` is a share of all requests, which has no mean; remove `statistic`",
        ),
        (
            "request_time",
            "p99",
            Some("requests = 99"),
            "`statistic`: workload `small` makes at most 99 requests per run, and a p99 needs at least 100",
        ),
        (
            "request_time",
            "p90",
            None,
            "`statistic`: workload `small` makes at most 3 requests per run, and a p90 needs at least 10",
        ),
    ] {
        let fault = about(metric, statistic, of_loop).unwrap_err();
        assert!(fault.starts_with(&format!("s.toml:3:13: {expected}")), "{metric}, {statistic}: {fault}");
    }
}

#[test]
fn faults_of_what_is_held() {
    assert_fault(
        15,
        "mtu = \"1500\"",
        "15:7: `mtu`: `1500` is not a size; write a number and a unit (B, kB, MB, GB, KiB, MiB, GiB), such as `20kB`",
    );
    assert!(
        fault(15, "mtu = \"68B\"")
            .contains("`mtu`: `68B` is out of bounds; write a size from 1280B to 9000B")
    );
    assert!(
        fault(15, "congestion_control = \"cubik\"")
            .ends_with("did you mean `cubic`? The choices are cubic, reno, bbr")
    );
    assert!(fault(15, "congestion-control = \"cubic\"").contains("did you mean `congestion_control`?"));
    assert!(
        fault(15, "quic_datagram = \"1480B\"")
            .contains("`quic_datagram` has 1480 bytes, too many for an `mtu` of 1500; write at most 1452B")
    );
    assert!(
        fault(15, "tls_version = \"1.2\"")
            .contains("`tls_version` is 1.2, which excludes the variant `h3`; write 1.3")
    );
    assert!(
        fault(15, "resumption = true")
            .starts_with("s.toml:15:14: `resumption` is true, but the workload `small`")
    );
    let suite = fault(15, "tls_version = \"1.2\"\ncipher_suite = \"TLS_AES_128_GCM_SHA256\"");
    assert!(suite.starts_with("s.toml:16:16: `cipher_suite` is a suite of TLS 1.3"), "{suite}");
    let window = fault(15, "[hold.http2]\nconnection_window = \"10kB\"");
    assert!(window.contains("`10kB` is out of bounds; write a size from 65535B to 2147483647B"), "{window}");
    assert!(fault(15, "[hold.http2]\nstream_windw = \"1MiB\"").contains("a key of [hold.http2]"));
    assert!(
        fault(15, "[hold.http3]\nqpack_table = \"17MiB\"")
            .contains("`qpack_table`: `17MiB` is out of bounds; write a size from 0B to 16777216B")
    );
    let with_table = SHORT.replace("mtu = \"1500B\"", "[hold.http3]\nqpack_table = \"4KiB\"");
    assert_eq!(parse(&with_table).unwrap().pins.http3.qpack_table_bytes, 4096);
    let small_mtu = parse(&SHORT.replace("1500B", "1280B")).unwrap();
    assert_eq!(small_mtu.pins.quic_datagram_bytes, 1232);
}

#[test]
fn a_fault_in_a_data_file_names_that_file() {
    assert!(
        fault(9, "network = [\"broken\"]")
            .starts_with("networks/broken.toml:3:7: `rtt`: `150` is not a duration")
    );
    assert!(fault(13, "page = \"broken\"").starts_with("pages/broken.toml:3:8: `x` is not a path"));
    assert_fault(9, "network = [\"unreadable\"]", "9:12: networks/unreadable.toml is not readable");
}

/// The short study over a topology, with these networks.
fn over(topology: &str, network: &str) -> Result<Plan, String> {
    parse(
        &SHORT.replace("[matrix]", &format!("topology = {topology}\n[matrix]")).replace("[\"lan\"]", network),
    )
}

#[test]
fn a_topology_is_named_or_chosen_in_full() {
    let pair = over("\"pair\"", "[\"lan\"]").unwrap();
    assert_eq!(pair.topology, PlannedTopology::default());
    assert_eq!(pair.topology_of(&pair.cells[0]), Some(Topology::pair(&pair.networks[0])));
    assert!(plan_text(&pair).contains("  topology  pair: client and server, joined by one link\n"));

    let direct = over("\"direct\"", "[\"own\"]").unwrap();
    assert_eq!(direct.topology_of(&direct.cells[0]), None);
    assert!(!direct.networks[0].is_impaired());

    let shared = over("\"shared\"", "[\"dsl\", \"tokyo\"]").unwrap();
    assert_eq!(shared.topology.link.as_deref(), Some("near-far"));
    let of = |cell: usize| shared.topology_of(&shared.cells[cell]).unwrap();
    assert_eq!(of(0).links[2].network.as_ref().unwrap().name, "dsl");
    assert_eq!(of(1).links[2].network.as_ref().unwrap().name, "tokyo");
    assert_eq!((shared.networks[1].name.as_str(), shared.networks[1].rtt_ns()), ("tokyo", 280_000_000));
    assert_eq!(of(0).cross.len(), 1);
    let text = plan_text(&shared);
    assert!(
        text.contains("  topology  shared: client to server by client-near, near-far, far-server;"),
        "{text}"
    );
    assert!(
        text.replace("\n            ", " ")
            .contains("cross-traffic of 1 × h1 from cross-server to cross-client"),
        "{text}"
    );
    let alone = over("{ name = \"shared\", cross = false }", "[\"dsl\"]").unwrap();
    assert!(alone.topology_of(&alone.cells[0]).unwrap().cross.is_empty());
    let lead_ns = shared.cells[0].expected_run_ns - alone.cells[0].expected_run_ns;
    assert_eq!(lead_ns, 1_000_000_000, "cross-traffic begins earlier");

    let sites = over("{ name = \"sites\", client = \"tokyo\" }", "[\"own\"]").unwrap();
    assert_eq!((sites.networks[0].name.as_str(), sites.networks[0].rtt_ns()), ("own", 280_000_000));
    assert_eq!((sites.cells[0].group.node.as_str(), sites.cells[0].chain.node.as_str()), ("tokyo", "server"));
    let campus = over("{ name = \"campus\", server = \"web-server\" }", "[\"tokyo\"]").unwrap();
    assert_eq!(campus.networks[0].rtt_ns(), 280_000_000);
    let linked = "{ name = \"campus\", server = \"web-server\", link = \"web-server-switch\" }";
    let linked = over(linked, "[\"tokyo\", \"own\"]").unwrap();
    assert_eq!(linked.networks[0].rtt_ns(), 280_300_000, "that of the other link too");
    assert_eq!(linked.networks[1].rtt_ns(), 300_000);
    let read: Plan = serde_json::from_str(&serde_json::to_string(&linked).unwrap()).unwrap();
    assert_eq!(read, linked);
}

#[test]
fn a_topology_that_cannot_be_is_named_with_its_place() {
    for (topology, network, expected) in [
        ("\"shard\"", "[\"own\"]", "6:12: `topology`: `shard` is not a topology"),
        (
            "3",
            "[\"own\"]",
            "6:12: `topology` is the number 3; write a string, such as `topology = \"shared\"`",
        ),
        ("{ client = \"tokyo\" }", "[\"own\"]", "[topology] has no `name`"),
        ("{ name = \"sites\", clint = \"tokyo\" }", "[\"own\"]", "6:30: `clint` is not a key of [topology]"),
        (
            "\"sites\"",
            "[\"own\"]",
            "6:12: `topology`: `sites` has no node `client`; choose one, such as `topology = { name = \"sites\", client = \"tokyo\" }`",
        ),
        (
            "{ name = \"sites\", client = \"tokio\" }",
            "[\"own\"]",
            "6:39: `client`: `tokio` is not a host of the topology `sites`",
        ),
        ("{ name = \"campus\", server = \"router\" }", "[\"own\"]", "`server`: `router` is not a host"),
        ("{ name = \"sites\", client = \"tokyo\" }", "[\"lan\"]", "10:12: several links have a network"),
        (
            "{ name = \"shared\", link = \"near-fra\" }",
            "[\"lan\"]",
            "`link`: `near-fra` is not a link of the topology `shared`",
        ),
        ("\"shared\"", "[\"lam\"]", "10:12: `lam` is not a network"),
        ("\"pair\"", "[\"own\"]", "10:12: `own` is not a network"),
        ("\"direct\"", "[\"lan\"]", "10:12: the topology `direct` is"),
        ("{ name = \"direct\", cross = false }", "[\"own\"]", "this topology has no choice"),
        (
            "\"proxied\"",
            "[\"own\"]",
            "6:12: `topology`: packets find no route from the node `client` to `server`, because a host between them forwards nothing; choose two nodes that reach each other, or a reverse proxy on that host",
        ),
    ] {
        let error = over(topology, network).unwrap_err();
        assert!(
            error.starts_with("s.toml:") && error.contains(expected),
            "{error}\nshould contain {expected}"
        );
    }
    let direct = text("topology", "direct");
    let error = parse_with(SHORT, std::slice::from_ref(&direct)).unwrap_err();
    assert!(error.contains("write `own`"), "{error}");
    let plan = parse_with(SHORT, &[direct, list("matrix.network", &["own"])]).unwrap();
    assert_eq!(plan.topology.name, "direct");
}

#[test]
fn the_command_line_overrides_and_its_faults_say_so() {
    let overrides = [
        list("matrix.server", &["nginx"]),
        list("matrix.network", &["north-carolina", "lan"]),
        number("runs", 7),
        number("seed", 9),
    ];
    let margin = parse_with(SHORT, &[text("margin", "7%")]).unwrap().margin_share;
    assert!((margin - 0.07).abs() < 1e-12, "{margin}");
    let plan = parse_with(SHORT, &overrides).unwrap();
    assert_eq!((plan.runs.len(), plan.seed, plan.servers.join(",")), (28, 9, "nginx".to_owned()));
    assert_eq!(plan.cells[0].label(), "h1s · nginx · north-carolina · small");

    let error = |given: Override| parse_with(SHORT, &[given]).unwrap_err();
    assert!(error(text("margin", "3")).starts_with("command line: `margin`: `3` is not a share"));
    assert_eq!(
        error(list("matrix.server", &["ngnx"])),
        "command line: `ngnx` is not a server; did you mean `nginx`? The choices are origin, nginx, nghttpx"
    );
    assert_eq!(
        error(list("matrix.variant", &["h2", "h3"])),
        "command line: `variant` is only h2, h3, without the baseline `h1s`; add it, or change the baseline in the study"
    );
    assert_eq!(error(number("runs", 0)), "command line: `runs` is 0; write a whole number from 1 to 10000");
    assert!(
        error(number("seed", u64::MAX)).starts_with("command line: `seed` is 18446744073709551615; write")
    );
    assert!(error(list("matrix.workload", &[])).contains("is an empty list"));
}

#[test]
fn a_matrix_too_large_is_refused() {
    let study = |workloads: usize| {
        let names: Vec<String> = (0..workloads).map(|number| format!("\"w{number}\"")).collect();
        let tables: Vec<String> = names
            .iter()
            .map(|name| format!("[workload.{name}]\nkind = \"page\"\npage = \"small\"\n"))
            .collect();
        let text = SHORT.replace("[\"small\"]", &format!("[{}]", names.join(", ")));
        let small = "[workload.small]\nkind = \"page\"\npage = \"small\"\n";
        text.replace("runs = 2", "runs = 10000").replace(small, &tables.concat())
    };
    assert_eq!(parse(&study(1)).unwrap().runs.len(), 20_000);
    assert_eq!(
        parse(&study(51)).unwrap_err(),
        "s.toml:6:1: 102 cells of 10000 runs each exceed 1000000 runs; reduce cells or runs"
    );
    let most = "has 1001 entries; at most 1000 are allowed";
    assert!(fault(9, &format!("network = [{}]", vec!["'lan'"; 1001].join(", "))).ends_with(most));
    let comment = format!("{SHORT}#{}", "x".repeat(256 << 10));
    assert!(parse(&comment).unwrap_err().ends_with("at most 262144 are allowed"));
    let every = study(900)
        .replace("[\"h1s\", \"h3\"]", "[\"h1\", \"h1s\", \"h2c\", \"h2\", \"h3\"]")
        .replace("[\"origin\"]", "[\"origin\", \"nginx\"]")
        .replace("[\"lan\"]", "[\"lan\", \"north-carolina\"]");
    let cells = parse(&every).unwrap_err();
    assert_eq!(cells, "s.toml:6:1: the matrix has more than 10000 cells; remove levels");
}

#[test]
fn quick_in_words() {
    insta::assert_snapshot!(plan_text(&quick()));
}

/// 200 cells, 12 runs each, with long names and closed loops.
fn crowded() -> Plan {
    let names: Vec<String> =
        (1..=10).map(|number| format!("\"{}-{number}\"", "many-words".repeat(2))).collect();
    let tables: Vec<String> = names
        .iter()
        .map(|name| {
            format!(
                "[workload.{name}]\nkind = \"closed\"\npaths = [\"/bytes/128\", \"/bytes/4096\"]\n\
                 connections = 10\nstreams = 10\nduration = \"1.5s\"\nwarmup = \"0.5s\"\n"
            )
        })
        .collect();
    let text = SHORT
        .replace("[workload.small]\nkind = \"page\"\npage = \"small\"\n", &tables.concat())
        .replace("[\"small\"]", &format!("[{}]", names.join(", ")))
        .replace("[\"h1s\", \"h3\"]", "[\"h1\", \"h1s\", \"h2c\", \"h2\", \"h3\"]")
        .replace("[\"origin\"]", "[\"origin\", \"nginx\"]")
        .replace("[\"lan\"]", "[\"lan\", \"north-carolina\"]");
    parse_with(&text, &[number("runs", 12)]).unwrap()
}

#[test]
fn a_crowded_plan_in_words() {
    insta::assert_snapshot!(plan_text(&crowded()));
}

#[test]
fn the_monitors_rate_is_the_files_or_the_command_lines() {
    let with = |text: &str, rate: Option<&str>| {
        let overrides: Vec<Override> = rate.map(|rate| self::text("monitor", rate)).into_iter().collect();
        parse_with(text, &overrides).map(|plan| plan.monitor)
    };
    let ten = SHORT.replacen("runs = ", "monitor = \"10Hz\"\nruns = ", 1);
    assert_eq!(with(SHORT, None), Ok(MonitorRate::Hertz(2)));
    assert_eq!(with(&ten, None), Ok(MonitorRate::Hertz(10)));
    assert_eq!(with(&ten, Some("off")), Ok(MonitorRate::Off));
    let problem = with(&ten, Some("fast")).unwrap_err();
    assert!(problem.starts_with("command line: `monitor`: `fast` is not a monitor rate"), "{problem}");
    assert!(plan_text(&parse_with(&ten, &[]).unwrap()).contains("monitor   10Hz"));
}

#[test]
fn words_fit_the_screen() {
    for text in [plan_text(&quick()), plan_text(&parse(SHORT).unwrap()), plan_text(&crowded())] {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
        }
    }
}

/// The seeds that a study can have: TOML's whole numbers that are not negative.
const SEEDS: std::ops::RangeInclusive<u64> = 0..=i64::MAX as u64;

proptest! {
    #[test]
    fn every_block_holds_every_cell_once(
        variants in proptest::sample::subsequence(vec!["h1", "h2c", "h2", "h3"], 0..=4),
        networks in proptest::sample::subsequence(vec!["lan", "north-carolina"], 1..=2),
        runs in 1_u32..20,
        seed in SEEDS,
    ) {
        let variants = [&["h1s"][..], &variants].concat();
        let overrides = [
            list("matrix.variant", &variants),
            list("matrix.network", &networks),
            number("runs", runs.into()),
            number("seed", seed),
        ];
        let plan = parse_with(SHORT, &overrides).unwrap();
        prop_assert_eq!(plan.cells.len(), variants.len() * networks.len());
        prop_assert_eq!(plan.runs.len(), plan.cells.len() * runs as usize);
        let all: BTreeSet<u32> = (0..).take(plan.cells.len()).collect();
        for (block, planned) in plan.runs.chunks(plan.cells.len()).enumerate() {
            prop_assert!(planned.iter().all(|run| run.block as usize == block));
            prop_assert_eq!(planned.iter().map(|run| run.cell).collect::<BTreeSet<_>>(), all.clone());
        }
        prop_assert!(plan.runs.iter().enumerate().all(|(index, run)| run.run as usize == index));
        prop_assert!(plan.cells.iter().enumerate().all(|(index, cell)| cell.cell as usize == index));
        let labels: BTreeSet<String> = plan.cells.iter().map(crate::plan::Cell::label).collect();
        prop_assert_eq!(labels.len(), plan.cells.len());
        let seeds: BTreeSet<u64> = plan.runs.iter().map(|run| run.seed).collect();
        prop_assert_eq!(seeds.len(), runs as usize, "blocks differ");
        let of_blocks: BTreeSet<(u32, u64)> = plan.runs.iter().map(|run| (run.block, run.seed)).collect();
        prop_assert_eq!(of_blocks.len(), runs as usize, "the cells of a block share a seed");
    }

    #[test]
    fn the_seed_decides_the_plan(seed in SEEDS, other in SEEDS) {
        prop_assume!(seed != other);
        let with = |seed| {
            let source = Source { file: "quick.toml", text: QUICK };
            Study::parse("quick", source, &[number("seed", seed)], &TestLibrary).unwrap()
        };
        prop_assert_eq!(with(seed), with(seed));
        let order = |seed| with(seed).runs.iter().map(|run| run.cell).collect::<Vec<_>>();
        prop_assert_ne!(order(seed), order(other));
    }

    #[test]
    fn a_plan_survives_json(seed in SEEDS, runs in 1_u32..4, percent in 1_u32..=100) {
        let text = SHORT.replace("3%", &format!("{percent}%"));
        let overrides = [number("seed", seed), number("runs", runs.into())];
        let plan = parse_with(&text, &overrides).unwrap();
        let json = serde_json::to_string(&plan).unwrap();
        prop_assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    }

    #[test]
    fn no_text_breaks_the_reader(text in "\\PC{0,200}", at in 0_usize..400, piece in "[\\[\\]{}=\"'a-z0-9.\n ]{0,12}") {
        let _ = parse(&text);
        let mut broken = SHORT.to_owned();
        broken.insert_str(at.min(broken.len()), &piece);
        let _ = parse(&broken);
    }
}

#[test]
fn several_backends_are_a_factor_and_one_is_not() {
    let with = |line: &str| parse(&format!("{line}\n{SHORT}"));
    let both = with("backends = [\"netem\", \"user-space\"]").unwrap();
    let one = parse(SHORT).unwrap();
    assert_eq!(both.cells.len(), 2 * one.cells.len());
    let backends: Vec<Backend> = both.cells.iter().take(3).map(|cell| cell.backend).collect();
    assert_eq!(backends, [Backend::Netem, Backend::UserSpace, Backend::Netem], "it changes fastest");
    assert_eq!(both.cells[0].level("backend"), Some("netem"));
    assert!(
        one.cells.iter().all(|cell| cell.backend == Backend::UserSpace && cell.level("backend").is_none())
    );
    assert!(
        !serde_json::to_string(&one).unwrap().contains("backend"),
        "what a plan was before stays readable"
    );

    let kernel = with("backends = [\"netem\"]").unwrap();
    assert_eq!(kernel.cells.len(), one.cells.len());
    assert!(
        kernel.cells.iter().all(|cell| cell.backend == Backend::Netem && cell.level("backend").is_none())
    );
    assert!(plan_text(&kernel).contains("  backend             netem"), "{}", plan_text(&kernel));
    let text = plan_text(&both);
    assert!(text.contains("  backend   netem, user-space\n"), "{text}");

    let overrides = [list("backends", &["netem"])];
    let text = format!("backends = [\"netem\", \"user-space\"]\n{SHORT}");
    assert_eq!(parse_with(&text, &overrides).unwrap().cells, kernel.cells);
    assert_eq!(
        parse_with(&text, &[list("backends", &["netm"])]).unwrap_err(),
        "command line: `backends`: `netm` is not a backend; did you mean `netem`? The choices are user-space, netem"
    );
}

#[test]
fn a_baseline_may_be_a_backend_of_several() {
    let baseline = |lines: &str| {
        let text =
            SHORT.replace("baseline = { variant = \"h1s\" }", "baseline = { backend = \"user-space\" }");
        assert_ne!(text, SHORT);
        parse(&format!("{lines}{text}"))
    };
    let plan = baseline("backends = [\"user-space\", \"netem\"]\n").unwrap();
    assert_eq!((plan.baseline.factor.as_str(), plan.baseline.value.as_str()), ("backend", "user-space"));
    let problem = baseline("").unwrap_err();
    assert!(problem.contains("write several `backends` to compare"), "{problem}");
}

#[test]
fn a_backend_that_cannot_honour_a_network_is_refused() {
    let fault = |lines: &str, expected: &str| {
        let found = parse(&format!("{lines}\n{SHORT}")).unwrap_err();
        assert!(found.contains(expected), "{found}\nshould contain {expected}");
    };
    fault("backends = []", "1:12: `backends` is an empty list");
    fault("backends = [\"netem\", \"netem\"]", "1:22: `backend`: `netem` appears twice; remove one");
    fault(
        "backends = [\"kernel\"]",
        "1:13: `backends`: `kernel` is not a backend; the choices are user-space, netem",
    );
    let wavy = [list("matrix.network", &["lan", "wavy"])];
    let found = parse_with(&format!("backends = [\"user-space\", \"netem\"]\n{SHORT}"), &wavy).unwrap_err();
    let expected = "1:27: `backends`: the backend netem does not support `up.jitter` of the network `wavy`: it \
                    draws a delay for each packet";
    assert!(found.contains(expected), "{found}");
    assert!(parse_with(SHORT, &wavy).is_ok());
    let text = SHORT.replace("[matrix]", "[matrix]\nbackend = [\"netem\"]");
    let found = parse(&text).unwrap_err();
    assert!(found.contains("`[matrix]` has no factor `backend`; write `backends = "), "{found}");
}

/// The same study with a closed loop in addition to its page, and these clients.
fn with_clients(clients: &str) -> String {
    SHORT
        .replace("variant = [\"h1s\", \"h3\"]", "variant = [\"h1s\", \"h2\"]")
        .replace("workload = [\"small\"]", &format!("workload = [\"small\", \"loop\"]\n{clients}"))
        + "[workload.loop]\nkind = 'closed'\npaths = ['/']\nconnections = 2\nstreams = 1\nrequests = 5\n"
}

#[test]
fn a_study_without_clients_has_our_own_and_no_such_factor() {
    let plan = parse(&with_clients("")).unwrap();
    assert!(plan.cells.iter().all(|cell| cell.group.client == "h123" && cell.level("client").is_none()));
    assert!(plan.cells.iter().all(|cell| cell.unsupported.is_none()) && plan.external_clients().is_empty());
    let json = serde_json::to_string(&plan).unwrap();
    assert!(
        !json.contains("\"client\":\"h123") && !json.contains("unsupported"),
        "plans of before stay as they were"
    );
}

#[test]
fn what_a_client_cannot_do_is_known_before_any_run() {
    let plan = parse(&with_clients("client = [\"h123\", \"h2load\", \"wrk\"]")).unwrap();
    assert_eq!((plan.cells.len(), plan.external_clients()), (12, vec!["h2load", "wrk"]));
    let reason = |levels: [&str; 3]| {
        let has = |cell: &&Cell| levels.iter().all(|level| cell.levels.iter().any(|own| own.value == *level));
        plan.cells.iter().find(has).unwrap().unsupported.clone()
    };
    assert_eq!(reason(["h2", "loop", "h2load"]), None);
    assert_eq!(reason(["h2", "loop", "wrk"]).as_deref(), Some("wrk speaks no h2"));
    assert_eq!(reason(["h1s", "loop", "wrk"]), None);
    assert_eq!(reason(["h1s", "small", "h2load"]).as_deref(), Some("h2load loads no pages"));
    assert_eq!(reason(["h1s", "small", "h123"]), None);
    let text = plan_text(&plan);
    assert!(
        text.contains("client    h123, h2load, wrk") && text.contains("unsupported: wrk speaks no h2"),
        "{text}"
    );
    let again: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(again, plan);
}

#[test]
fn the_command_line_names_clients_too() {
    let overrides = [list("matrix.client", &["wrk"])];
    let plan = parse_with(&with_clients(""), &overrides).unwrap();
    assert!(plan.cells.iter().all(|cell| cell.level("client") == Some("wrk")));
    let error = parse_with(SHORT, &[list("matrix.client", &["wkr"])]).unwrap_err();
    assert!(error.contains("`wkr` is not a client; did you mean `wrk`?"), "{error}");
}

#[test]
fn errors_of_clients_name_their_place() {
    for (clients, expected) in [
        ("client = [\"h2laod\"]", "s.toml:11:11: `h2laod` is not a client"),
        ("client = []", "s.toml:11:10: `client` is an empty list"),
        ("client = [\"wrk\", \"wrk\"]", "`client`: `wrk` appears twice"),
        ("client = [\"broken\"]", "s.toml:11:11: clients/broken/client.toml:1:1: it is empty"),
        ("clinet = [\"wrk\"]", "`clinet` is not a key"),
    ] {
        let error = parse(&with_clients(clients)).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let baseline = with_clients("client = [\"h123\", \"wrk\"]")
        .replace("{ variant = \"h1s\" }", "{ client = \"h123\" }");
    assert_eq!(parse(&baseline).unwrap().baseline.factor, "client");
    let without = with_clients("").replace("{ variant = \"h1s\" }", "{ client = \"h123\" }");
    assert!(parse(&without).unwrap_err().contains("`client` is not a factor of the matrix"));
}

#[test]
fn chosen_figures_must_exist() {
    assert_eq!(parse(SHORT).unwrap().figures, None);
    let choosing = SHORT.replace("runs = 2", "runs = 2\nfigures = [\"lines\", \"ecdf\"]");
    assert_eq!(parse(&choosing).unwrap().figures, Some(vec!["lines".to_owned(), "ecdf".to_owned()]));
    let none = SHORT.replace("runs = 2", "runs = 2\nfigures = []");
    assert_eq!(parse(&none).unwrap().figures, Some(Vec::new()));
    for (found, expected) in [
        (
            "[\"line\"]",
            "6:12: `figures`: `line` is not a figure; did you mean `lines`? The choices are runs, ecdf, lines",
        ),
        ("[\"ecdf\", \"ecdf\"]", "6:20: `figures`: `ecdf` appears twice; remove one"),
        (
            "\"ecdf\"",
            "6:11: `figures` is the string \"ecdf\"; write a list, such as `figures = [\"lines\", \"ecdf\"]`",
        ),
    ] {
        let error = parse(&SHORT.replace("runs = 2", &format!("runs = 2\nfigures = {found}"))).unwrap_err();
        assert_eq!(error, format!("s.toml:{expected}"));
    }
}

/// The short study with an entry of what others published at its end.
fn with_published(lines: &str) -> String {
    format!("{SHORT}\n[[published]]\n{lines}")
}

const PUBLISHED: &str = "source = \"Doe, 2024\"\nlevels = { variant = \"h3\", network = \"lan\" }\nmetric = \"time_to_first_byte\"\nratio = 0.85";

#[test]
fn what_others_published_is_in_the_plan() {
    let plan = parse(&with_published(PUBLISHED)).unwrap();
    let level = |factor: &str, value: &str| crate::plan::Level { factor: factor.into(), value: value.into() };
    let levels = vec![level("variant", "h3"), level("network", "lan")];
    let expected = crate::plan::Published::ratio("Doe, 2024", levels, "time_to_first_byte", 0.85);
    assert_eq!(plan.published, [expected]);
    let short = "source = \"x\"\nlevels = { variant = \"h3\" }\nratio = 2";
    let plan = parse(&with_published(short)).unwrap();
    assert_eq!(
        (plan.published[0].metric.as_str(), plan.published[0].ratio_to_baseline()),
        ("page_load_time", Some(2.0))
    );
    let pair = "source = \"x\"\nlevels = { variant = \"h1s\" }\nagainst = { variant = \"h3\" }\nstatistic = \"iqr\"\nratio = 2";
    let entry = parse(&with_published(pair)).unwrap().published.remove(0);
    assert_eq!((entry.against, entry.statistic), (Some(level("variant", "h3")), Some(crate::Statistic::Iqr)));
    for (value, expected) in [
        ("\"2rtt\"", PublishedValue::RoundTrips(2.0)),
        ("\"120ms\"", PublishedValue::Value(120e6)),
        ("\"8Mbit/s\"", PublishedValue::Value(8e6)),
        ("\"0.995\"", PublishedValue::Value(0.995)),
    ] {
        let value = format!("source = \"x\"\nlevels = {{ variant = \"h1s\" }}\nvalue = {value}");
        let entry = parse(&with_published(&value)).unwrap().published.remove(0);
        assert_eq!((entry.value, entry.ratio_to_baseline()), (expected, None));
        let written = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<crate::plan::Published>(&written).unwrap(), entry);
    }
    assert!(parse(SHORT).unwrap().published.is_empty());
    let elsewhere = [list("matrix.network", &["dsl"])];
    let plan = parse_with(&with_published(PUBLISHED), &elsewhere).unwrap();
    assert!(plan.published.is_empty(), "what the command line left out takes its figures with it");
}

/// What is replaced by what, in which line of the entry the fault is, and how it is told.
const PUBLISHED_FAULTS: &[(&str, &str, usize, &str)] = &[
    (
        "source = \"Doe, 2024\"\n",
        "",
        0,
        "1: [[published]] has no `source`; add one, such as `source = \"Doe, Protocols compared, 2024, table 3\"`",
    ),
    (
        "Doe, 2024",
        " ",
        1,
        "10: `source` is empty; write one such as `source = \"Doe, Protocols compared, 2024, table 3\"`",
    ),
    ("ratio = 0.85", "", 0, "1: [[published]] has neither `ratio` nor `value`; add one of them"),
    (
        "ratio = 0.85",
        "ratio = 0.85\nvalue = \"2rtt\"",
        4,
        "9: `ratio` and `value` are both there; remove one of them",
    ),
    (
        "ratio = 0.85",
        "value = \"2rtt\"\nagainst = { variant = \"h2\" }",
        5,
        "13: `against` needs `ratio`; a `value` is not divided by anything",
    ),
    (
        "ratio = 0.85",
        "ratio = 0.85\nagainst = { variant = \"h3\" }",
        2,
        "22: `levels`: `h3` is the level in `against`; write a level of `variant` that is compared with it",
    ),
    (
        "ratio = 0.85",
        "ratio = \"0.85\"",
        4,
        "9: `ratio` is the string \"0.85\"; write a number, such as `ratio = 0.85`",
    ),
    (
        "ratio = 0.85",
        "ratio = inf",
        4,
        "9: `ratio` is the number inf; write a number, such as `ratio = 0.85`",
    ),
    (
        "ratio = 0.85",
        "ratio = 0",
        4,
        "9: `ratio` is 0; write the level's published value divided by the other's, above 0",
    ),
    (
        "ratio = 0.85",
        "ratio = -0.5",
        4,
        "9: `ratio` is -0.5; write the level's published value divided by the other's, above 0",
    ),
    (
        "ratio",
        "ration",
        4,
        "1: `ration` is not a key of [[published]]; did you mean `ratio`? The choices are source, levels, against, metric, statistic, ratio, value",
    ),
    (
        "{ variant = \"h3\", network = \"lan\" }",
        "\"h3\"",
        2,
        "10: `levels` is the string \"h3\"; write a table, such as `levels = { variant = \"h2\", network = \"tokyo\" }`",
    ),
    (
        "network = ",
        "netwrk = ",
        2,
        "28: `levels`: `netwrk` is not a factor of the matrix; did you mean `network`? The choices are variant, server, network, workload",
    ),
    (
        "variant = \"h3\", ",
        "",
        2,
        "10: `levels` has no `variant`; add the level that is compared with the baseline",
    ),
    (
        "\"h3\"",
        "\"h1s\"",
        2,
        "22: `levels`: `h1s` is the baseline; write a level of `variant` that is compared with it",
    ),
    (
        "\"lan\"",
        "\"tokyo\"",
        2,
        "38: `levels`: `tokyo` is not a level of `network` in the matrix; the only choice is lan",
    ),
    (
        "network = \"lan\"",
        "client = \"wrk\"",
        2,
        "28: `levels`: `client` is not a factor of the matrix; the choices are variant, server, network, workload",
    ),
    (
        "time_to_first_byte",
        "first_byte",
        3,
        "10: `metric`: `first_byte` is not a metric; the choices are page_load_time, server_time, time_to_first_byte, request_time, availability",
    ),
];

#[test]
fn faults_of_what_others_published() {
    let begin = SHORT.lines().count() + 2;
    for &(from, to, line, expected) in PUBLISHED_FAULTS {
        let entry = PUBLISHED.replacen(from, to, 1);
        assert_ne!(entry, PUBLISHED);
        let error = parse(&with_published(&entry)).unwrap_err();
        assert_eq!(error, format!("s.toml:{}:{expected}", begin + line), "{entry}");
    }
}

#[test]
fn networks_can_be_written_in_the_matrix() {
    let plan = |network: &str| {
        let text =
            QUICK.replacen("network = [\"lan\", \"north-carolina\"]", &format!("network = {network}"), 1);
        assert_ne!(text, QUICK);
        Study::parse("quick", Source { file: "quick.toml", text: &text }, &[], &TestLibrary)
            .map_err(|error| error.to_string())
    };
    let found = plan(
        "[\"lan\", { rtt = \"20ms\", loss = \"1%\" }, { name = \"office\", udp = \"blocked\", up = { delay = \"2ms\" } }]",
    )
    .unwrap();
    let names: Vec<&str> = found.networks.iter().map(|network| network.name.as_str()).collect();
    assert_eq!(names, ["lan", "rtt-20ms-loss-1%", "office"]);
    assert_eq!(found.networks[1].rtt_ns(), 20_000_000);
    assert!(found.networks[2].up.udp.is_some() && found.networks[2].up.delay_ns == 2_000_000);
    for (network, expected) in [
        ("[{ rtt = \"20\" }]", "`rtt`: `20` is not a duration"),
        ("[{ rt = \"20ms\" }]", "did you mean `rtt`?"),
        ("[{ up = { delay = \"2ms\" } }]", "needs a name; add `name = \"…\"`"),
        ("[{}]", "the network is empty"),
        ("[{ name = \"lan\", rtt = \"2ms\" }]", "there is a network file `lan`"),
        ("[{ rtt = \"2ms\" }, { rtt = \"2ms\" }]", "appears twice"),
        ("[]", "`network` is an empty list"),
        ("[7]", "strings and tables only"),
    ] {
        let error = plan(network).unwrap_err();
        assert!(error.contains(expected), "{network}: {error}");
    }
}
