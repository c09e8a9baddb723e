//! Every known flaw of the published studies, with what finds it. The list is the source of
//! `docs/studies/flaws.md`; the tests here and in `published.rs` run a short form of each study as published
//! and expect its flaws.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::published::{measure_short, replaced, run_changed};
use crate::tool::{H123, folder, machine, repository};

/// Set to write the tables instead of comparing them.
const UPDATE: &str = "H123_UPDATE_DOCS";
const BEGIN: &str = "<!-- flaws: ";
const END: &str = "<!-- end of flaws -->";

/// A flaw of a published study.
struct Flaw {
    /// The study file that repeats it.
    study: &'static str,
    /// The flaw in a sentence.
    flaw: &'static str,
    /// What finds it; each has a row of the table.
    findings: &'static [Finding],
}

/// What finds a flaw, or why nothing does.
enum Finding {
    /// A check with this result in a cell that has these levels. Its measured value contains a text.
    Check { name: &'static str, result: &'static str, levels: &'static [&'static str], says: &'static str },
    /// A claim of the study with this text is refuted.
    Refuted { kind: &'static str, text: &'static str },
    /// A claim of the study with this text is not shown; with other runs it may be refuted.
    NotShown { kind: &'static str, text: &'static str },
    /// A claim that only the whole study refutes.
    RefutedAtFullSize { kind: &'static str, text: &'static str, reason: &'static str },
    /// Checks find the flaw, but the study as published does not repeat it here.
    NotRepeated { checks: &'static [&'static str], reason: &'static str },
    /// No check can find it.
    NoCheck { reason: &'static str },
}

use Finding::{Check, NoCheck, NotRepeated, NotShown, Refuted, RefutedAtFullSize};

/// The papers: what the names of their studies begin with, and who wrote them.
const PAPERS: [(&str, &str); 5] = [
    ("aalto", "Aalto University"),
    ("hds", "Adobe HDS"),
    ("uva", "University of Amsterdam"),
    ("dncs", "University of Trento"),
    ("bbc-dash", "BBC R&D"),
];

const AALTO: &[Flaw] = &[
    Flaw {
        study: "aalto-as-published",
        flaw: "The case called HTTP/1 is two HTTP/2 sessions of ten streams, one after the other; no HTTP/1.1 \
               connection exists.",
        findings: &[Check {
            name: "arms_match",
            result: "caveat",
            levels: &["HTTP/2"],
            says: "different: workload; both speak HTTP/2 to the client; the arm called HTTP/1.1 speaks HTTP/2",
        }],
    },
    Flaw {
        study: "aalto-push-as-published",
        flaw: "The server that pushes opens a file that does not exist, so the pushed page is empty.",
        findings: &[Check {
            name: "workloads_match",
            result: "invalid",
            levels: &["push"],
            says: "0 body bytes",
        }],
    },
    Flaw {
        study: "aalto-push-as-published",
        flaw: "The client of the pushing server stops at the end of the page; the other one waits for the style \
               sheet.",
        findings: &[
            Check {
                name: "ends_match",
                result: "caveat",
                levels: &["push"],
                says: "ends with the last of 1 resource",
            },
            Check { name: "workloads_match", result: "invalid", levels: &["push"], says: "1 request" },
        ],
    },
    Flaw {
        study: "aalto-push-as-published",
        flaw: "The client without push requests the style sheet again in every data callback.",
        findings: &[NotRepeated {
            checks: &["all_requested"],
            reason: "h123's page loads request every resource once",
        }],
    },
    Flaw {
        study: "aalto-as-published",
        flaw: "One timer starts before the session is built, the other after it.",
        findings: &[NotRepeated {
            checks: &["events_match"],
            reason: "both arms have h123's client, which starts its times at the same event",
        }],
    },
    Flaw {
        study: "aalto-as-published",
        flaw: "Times come from `system_clock`, which may step.",
        findings: &[NotRepeated { checks: &["clock"], reason: "h123's client reads the monotonic clock" }],
    },
    Flaw {
        study: "aalto-as-published",
        flaw: "Jitter is drawn for each packet, so packets overtake each other.",
        findings: &[Check {
            name: "jitter_order",
            result: "caveat",
            levels: &["HTTP/2"],
            says: "of the packets overtook others",
        }],
    },
    Flaw {
        study: "aalto-as-published",
        flaw: "The network has no loss and no rate, and the connections have no TLS.",
        findings: &[NoCheck {
            reason: "a network with delay alone is a valid question; the report's headings state its rate and loss",
        }],
    },
];

const HDS: &[Flaw] = &[
    Flaw {
        study: "hds-as-published",
        flaw: "Fragment numbers were counted, but those of HDS are not contiguous: some fragments do not exist.",
        findings: &[
            Check {
                name: "url_list",
                result: "invalid",
                levels: &["module", "siege"],
                says: "1 of 5 paths not in the media",
            },
            Check {
                name: "missing_urls",
                result: "invalid",
                levels: &["module", "h123"],
                says: "1 URL never succeeded",
            },
        ],
    },
    Flaw {
        study: "hds-as-published",
        flaw: "The server's 503 for these fragments counted as failures of the module.",
        findings: &[
            Check {
                name: "failed_requests",
                result: "invalid",
                levels: &["module", "siege"],
                says: "of 600 requests",
            },
            Check {
                name: "status",
                result: "invalid",
                levels: &["module", "h123"],
                says: "of 600 responses with 503",
            },
        ],
    },
    Flaw {
        study: "hds-as-published",
        flaw: "The module cut from an archive of five fragments; the static servers had one fragment.",
        findings: &[
            Check {
                name: "workloads_match",
                result: "invalid",
                levels: &["module", "siege"],
                says: "body bytes per request",
            },
            Check {
                name: "arms_match",
                result: "caveat",
                levels: &["module", "siege"],
                says: "different: server, workload",
            },
        ],
    },
    Flaw {
        study: "hds-ab-as-published",
        flaw: "ab requested one URL, so the module's cache was measured.",
        findings: &[Check {
            name: "urls",
            result: "caveat",
            levels: &["module"],
            says: "one path, in a comparison of servers with caches",
        }],
    },
    Flaw {
        study: "hds-as-published",
        flaw: "22 GB of copies were served from 4 GB of memory.",
        findings: &[NotRepeated {
            checks: &["page_cache", "disk"],
            reason: "the titles are links to one copy, which is in memory",
        }],
    },
    Flaw {
        study: "hds-as-published",
        flaw: "Apache had 256 workers for more users.",
        findings: &[Check {
            name: "server_limit",
            result: "caveat",
            levels: &["Apache", "siege"],
            says: "up to 300 connections at once",
        }],
    },
    Flaw {
        study: "hds-as-published",
        flaw: "Each user of the large runs made one request.",
        findings: &[Check {
            name: "single_requests",
            result: "caveat",
            levels: &["Apache", "siege"],
            says: "at most 1 request per connection",
        }],
    },
    Flaw {
        study: "hds-as-published",
        flaw: "The servers were not warmed up.",
        findings: &[Check {
            name: "cold_server",
            result: "caveat",
            levels: &["module", "siege"],
            says: "the study has no `warm`",
        }],
    },
    Flaw {
        study: "hds-as-published",
        flaw: "The client could not saturate nginx.",
        findings: &[Check {
            name: "saturation",
            result: "caveat",
            levels: &["nginx", "siege"],
            says: "of a core, route 0% of its rate",
        }],
    },
    Flaw {
        study: "hds-as-published",
        flaw: "Five batches were averaged without their spread.",
        findings: &[Check {
            name: "precision",
            result: "caveat",
            levels: &["Apache", "siege"],
            says: "known to",
        }],
    },
    Flaw {
        study: "hds-as-published",
        flaw: "The overhead was stated as 17 % with 100 users, but the table's values give 22 %.",
        findings: &[NoCheck {
            reason: "h123 does not check the arithmetic of a text; the study file has the ratio of the table",
        }],
    },
];

const UVA: &[Flaw] = &[
    Flaw {
        study: "uva-as-published",
        flaw: "h2load spoke no HTTP/1.1: the arm called HTTP/1.1 is HTTP/2 to a proxy.",
        findings: &[Check {
            name: "arms_match",
            result: "caveat",
            levels: &["HTTP/2"],
            says: "both speak HTTP/2 to the client; the arm called HTTP/1.1 speaks HTTP/2",
        }],
    },
    Flaw {
        study: "uva-as-published",
        flaw: "Two servers were compared, not two protocols.",
        findings: &[Check {
            name: "arms_match",
            result: "caveat",
            levels: &["HTTP/2"],
            says: "different: server",
        }],
    },
    Flaw {
        study: "uva-as-published",
        flaw: "Each client made one request, so nothing was multiplexed.",
        findings: &[Check {
            name: "single_requests",
            result: "caveat",
            levels: &["HTTP/2"],
            says: "at most 1 request per connection",
        }],
    },
    Flaw {
        study: "uva-as-published",
        flaw: "Only the first URL was requested, so the size of the page made no difference.",
        findings: &[Check {
            name: "urls",
            result: "caveat",
            levels: &["HTTP/2"],
            says: "one path, in a comparison of servers with caches",
        }],
    },
    Flaw {
        study: "uva-as-published",
        flaw: "Means of means were compared.",
        findings: &[Check {
            name: "mean_of_means",
            result: "caveat",
            levels: &["HTTP/1.1", "frankfurt"],
            says: "the mean of the runs' means",
        }],
    },
    Flaw {
        study: "uva-as-published",
        flaw: "The means have no interval.",
        findings: &[Check { name: "runs", result: "caveat", levels: &["HTTP/2"], says: "runs" }],
    },
    Flaw {
        study: "uva-as-published",
        flaw: "The virtual machines were burstable.",
        findings: &[NotRepeated {
            checks: &["cpu_credits", "cpu_steal"],
            reason: "the study cannot take CPU time from its machine",
        }],
    },
    Flaw {
        study: "uva-as-published",
        flaw: "Failed requests were logged, and their runs were used.",
        findings: &[NotRepeated {
            checks: &["failed_requests"],
            reason: "today's servers answer all requests; the check fires in `hds-as-published`",
        }],
    },
    Flaw {
        study: "uva-as-published",
        flaw: "TIME-WAIT at the server was read as a property of the version; it is at the end that closes first.",
        findings: &[Check {
            name: "time_wait",
            result: "caveat",
            levels: &[],
            says: "up to 0 sockets in TIME-WAIT at the server",
        }],
    },
];

const DNCS: &[Flaw] = &[
    Flaw {
        study: "dncs-httpstat-as-published",
        flaw: "httpstat asked for HTTP/3 and was answered over HTTP/2.",
        findings: &[Check {
            name: "arms_match",
            result: "caveat",
            levels: &["HTTP/3"],
            says: "the arm called HTTP/3 speaks HTTP/2",
        }],
    },
    Flaw {
        study: "dncs-as-published",
        flaw: "Differences of milliseconds between single runs decided.",
        findings: &[
            Check { name: "runs", result: "caveat", levels: &["HTTP/2"], says: "1 run, without an interval" },
            NotShown { kind: "value", text: "HTTP/1.1 over TCP is faster than HTTP/2." },
        ],
    },
    Flaw {
        study: "dncs-heavy-as-published",
        flaw: "The number of requests of a page differed between the protocols.",
        findings: &[
            Check { name: "workloads_match", result: "invalid", levels: &["HTTP/2"], says: "123 requests" },
            Check { name: "arms_match", result: "caveat", levels: &["HTTP/2"], says: "different: workload" },
        ],
    },
    Flaw {
        study: "dncs-as-published",
        flaw: "The benefit in congested networks is praised, and the network was never impaired.",
        findings: &[Refuted { kind: "impaired", text: "The network is impaired." }],
    },
    Flaw {
        study: "dncs-as-published",
        flaw: "The migration of connections is praised and was not measured.",
        findings: &[NotShown {
            kind: "value",
            text: "HTTP/3 keeps its connections when the client's address changes.",
        }],
    },
    Flaw {
        study: "dncs-video-as-published",
        flaw: "Dropped frames are those of a remote X display.",
        findings: &[NoCheck {
            reason: "a count of frames does not tell where they were shown; h123's browsers have no display",
        }],
    },
    Flaw {
        study: "dncs-video-as-published",
        flaw: "57 to 140 MB/s cannot be the bit rate of the clip.",
        findings: &[Check {
            name: "impossible_values",
            result: "caveat",
            levels: &["HTTP/2", "one player"],
            says: "no representation of the video has more than",
        }],
    },
    Flaw {
        study: "dncs-as-published",
        flaw: "A time to first byte of 2 to 6 ms leaves out the handshakes that its definition includes.",
        findings: &[Check {
            name: "impossible_values",
            result: "caveat",
            levels: &["HTTP/2"],
            says: "published: time_to_first_byte 3.21 ms; its parts take longer",
        }],
    },
    Flaw {
        study: "dncs-video-as-published",
        flaw: "The start-up time is from another player than the other metrics.",
        findings: &[Check {
            name: "players_match",
            result: "caveat",
            levels: &["HTTP/2", "another player"],
            says: "which another player plays",
        }],
    },
];

const BBC: &[Flaw] = &[
    Flaw {
        study: "bbc-dash-as-published",
        flaw: "Clients and proxy share one host.",
        findings: &[Check {
            name: "shared_host",
            result: "caveat",
            levels: &["h2"],
            says: "one host, and its loopback interface",
        }],
    },
    Flaw {
        study: "bbc-dash-as-published",
        flaw: "The server's time includes the time in which the client receives the response.",
        findings: &[Check {
            name: "server_draining",
            result: "caveat",
            levels: &["h2"],
            says: "while the client receives the response",
        }],
    },
    Flaw {
        study: "bbc-dash-as-published",
        flaw: "Three runs are pooled, without an interval over runs.",
        findings: &[
            Check { name: "runs", result: "caveat", levels: &["h2"], says: "runs" },
            RefutedAtFullSize {
                kind: "pooled",
                text: "The requests of all runs may be taken together.",
                reason: "a few clients do not load the proxy, so their runs hardly differ",
            },
        ],
    },
    Flaw {
        study: "bbc-dash-as-published",
        flaw: "The session was recorded over h2 and replayed over every version.",
        findings: &[
            Check {
                name: "script_variant",
                result: "caveat",
                levels: &["HTTPS/1.1"],
                says: "recorded over h2, replayed over h1s",
            },
            NotShown { kind: "script", text: "A session that was recorded over h2 fits every version." },
        ],
    },
    Flaw {
        study: "bbc-dash-as-published",
        flaw: "TLS records are dynamic for HTTP/2 only.",
        findings: &[Check {
            name: "records_match",
            result: "caveat",
            levels: &["h2"],
            says: "records: dynamic",
        }],
    },
    Flaw {
        study: "bbc-dash-as-published",
        flaw: "h2-RF is called the best by median and interquartile range, although its range is above that of h2.",
        findings: &[NotShown {
            kind: "best",
            text: "h2-RF is the best HTTP/2, by median and by interquartile range.",
        }],
    },
];

/// All flaws, in the order of [`PAPERS`].
const FLAWS: [&[Flaw]; 5] = [AALTO, HDS, UVA, DNCS, BBC];

fn flaws() -> impl Iterator<Item = &'static Flaw> {
    FLAWS.into_iter().flatten()
}

/// Expects that the short run of a study as published found each of its flaws.
pub(crate) fn expect_flaws(study: &str, summary: &Value) {
    let known: Vec<_> = flaws().filter(|flaw| flaw.study == study).collect();
    assert!(!known.is_empty(), "{study} has no flaws");
    for Flaw { flaw, findings, .. } in known {
        for finding in *findings {
            let complaint = match finding {
                Check { name, result, levels, says } => check_complaint(summary, name, result, levels, says),
                Refuted { text, .. } => claim_complaint(summary, text, &["refuted"]),
                NotShown { text, .. } => claim_complaint(summary, text, &["not_shown", "refuted"]),
                RefutedAtFullSize { text, .. } => {
                    claim_complaint(summary, text, &["holds", "not_shown", "refuted"])
                }
                NotRepeated { .. } | NoCheck { .. } => None,
            };
            assert!(complaint.is_none(), "{study}: {flaw} {}", complaint.unwrap());
        }
    }
}

/// What cells with these levels say instead, unless the check fired in one of them.
fn check_complaint(summary: &Value, name: &str, result: &str, levels: &[&str], says: &str) -> Option<String> {
    let cells = summary["cells"].as_array().unwrap().iter();
    let about = cells.filter(|cell| {
        let has =
            |wanted: &&str| cell["levels"].as_array().unwrap().iter().any(|level| level["value"] == *wanted);
        levels.iter().all(has)
    });
    let validity = about.filter_map(|cell| cell["validity"].as_array()).flatten();
    let found: Vec<&Value> = validity.filter(|check| check["check"] == name).collect();
    let fired =
        |check: &&Value| check["result"] == result && check["measured"].as_str().unwrap().contains(says);
    (!found.iter().any(fired)).then(|| format!("{name} did not fire in {levels:?}: {found:#?}"))
}

/// What a claim's results are instead, unless one of them is among these.
fn claim_complaint(summary: &Value, text: &str, results: &[&str]) -> Option<String> {
    let claims = summary["claims"].as_array().unwrap().iter();
    let found: Vec<&Value> = claims.filter(|claim| claim["text"] == text).collect();
    let is_expected = found.iter().any(|claim| results.iter().any(|result| claim["result"] == *result));
    (!is_expected).then(|| format!("the claim is none of {results:?}: {found:#?}"))
}

#[test]
fn flaws_of_the_study_of_multiplexing_are_found() {
    let _machine = machine();
    let folder = folder();
    for study in ["aalto-as-published", "aalto-push-as-published"] {
        let summary = measure_short(study, &[], &[], &folder.path().join(study));
        expect_flaws(study, &summary);
    }
}

/// Shorter fragments: which path ab requests does not depend on its length.
#[test]
fn the_flaw_of_the_first_hds_benchmark_is_found() {
    let _machine = machine();
    let folder = folder();
    let changes = [("titles = 7000", "titles = 5"), ("6.4Mbit/s", "640kbit/s")];
    let summary = measure_short("hds-ab-as-published", &changes, &[], &folder.path().join("out"));
    expect_flaws("hds-ab-as-published", &summary);
}

/// At 0.3 ms some clients have closed their connections before others end, so that sockets are in TIME-WAIT;
/// at 7 ms some wait much longer than others.
#[test]
fn flaws_of_the_study_of_amsterdam_are_found() {
    let _machine = machine();
    let folder = folder();
    let short = |text: String| replaced(&text, "clients = [1, 50, 250, 750]", "clients = [300]");
    let options = ["--network", "amsterdam", "--network", "frankfurt", "--runs", "2"];
    let summary = run_changed("uva-as-published", short, &options, &folder.path().join("out"));
    expect_flaws("uva-as-published", &summary);
}

#[test]
fn flaws_of_the_study_of_trento_about_pages_are_found() {
    let _machine = machine();
    let folder = folder();
    let summary = run_changed("dncs-as-published", |text| text, &[], &folder.path().join("out"));
    expect_flaws("dncs-as-published", &summary);
}

/// A clip of seconds, and players that are as close to its live edge.
#[test]
fn flaws_of_the_study_of_trento_about_video_are_found() {
    let _machine = machine();
    let folder = folder();
    let mut make = Command::new(H123);
    make.args(["content", "make", "trento-clip", "--length", "6s", "--segment", "1s"]);
    make.args(["--video", "360p@400kbit/s"]).current_dir(folder.path());
    let made = make.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let short = |text: String| {
        let changes = [
            ("segment = \"3s\"", "segment = \"1s\""),
            ("latency = \"9s\"", "latency = \"3s\""),
            ("latency = \"12s\"", "latency = \"4s\""),
            ("duration = \"90s\"", "duration = \"3s\""),
            ("duration = \"9s\"", "duration = \"2s\""),
        ];
        changes.iter().fold(text, |text, (written, short)| replaced(&text, written, short))
    };
    let arms = ["--arm", "HTTP/2", "--arm", "HTTP/1.1"];
    let summary = run_changed("dncs-video-as-published", short, &arms, &folder.path().join("out"));
    expect_flaws("dncs-video-as-published", &summary);
}

/// Every entry names a study, a check and a claim that exist.
#[test]
fn flaws_name_what_exists() {
    let read = |path: String| fs::read_to_string(repository().join(path)).unwrap();
    let (checks, claims) = (read("docs/results.md".to_owned()), read("docs/studies.md".to_owned()));
    let is_check = |name: &str| checks.contains(&format!("\n| `{name}` | "));
    for Flaw { study, flaw, findings } in flaws() {
        let text = read(format!("studies/{study}.toml"));
        assert!(!findings.is_empty(), "{flaw}");
        for finding in *findings {
            match finding {
                Check { name, .. } => assert!(is_check(name), "{name}"),
                Refuted { kind, text: claim }
                | NotShown { kind, text: claim }
                | RefutedAtFullSize { kind, text: claim, .. } => {
                    let entry = format!("text = \"{claim}\"\nkind = \"{kind}\"\n");
                    assert!(text.contains(&entry) && claims.contains(&format!("\n| `{kind}` | ")), "{entry}");
                }
                NotRepeated { checks, .. } => assert!(checks.iter().all(|name| is_check(name)), "{checks:?}"),
                NoCheck { .. } => {}
            }
        }
    }
}

/// Each study as published has flaws, and each paper's flaws are of its studies.
#[test]
fn every_study_as_published_has_flaws() {
    let files = fs::read_dir(repository().join("studies")).unwrap();
    let names = files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned());
    let published: BTreeSet<String> = names.filter(|name| name.ends_with("-as-published")).collect();
    let known: BTreeSet<String> = flaws().map(|flaw| flaw.study.to_owned()).collect();
    assert_eq!(known, published);
    for ((begin, _), flaws) in PAPERS.into_iter().zip(FLAWS) {
        assert!(flaws.iter().all(|flaw| flaw.study.starts_with(begin)), "{begin}");
    }
}

#[test]
fn tables_of_flaws_are_current() {
    let path = page();
    let written = fs::read_to_string(&path).unwrap();
    let mut current = String::new();
    let mut rest = written.as_str();
    for ((name, _), flaws) in PAPERS.into_iter().zip(FLAWS) {
        let begin = format!("{BEGIN}{name} -->\n");
        let (before, after) = rest.split_once(&begin).unwrap_or_else(|| panic!("no table of {name}"));
        let (_, after) = after.split_once(END).unwrap();
        current += &format!("{before}{begin}\n{}\n{END}", table(flaws));
        rest = after;
    }
    current += rest;
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, current).unwrap();
    } else {
        assert!(written == current, "{} is stale; run `make docs`", path.display());
    }
}

fn page() -> PathBuf {
    repository().join("docs/studies/flaws.md")
}

fn table(flaws: &[Flaw]) -> String {
    let mut table = "| flaw | found by | run in which it was found | result | a part of what it says |\n\
                     |---|---|---|---|---|\n"
        .to_owned();
    for Flaw { study, flaw, findings } in flaws {
        findings.iter().for_each(|finding| table += &format!("| {flaw} | {} |\n", row(study, finding)));
    }
    table
}

/// The cells of a row after the flaw.
fn row(study: &str, finding: &Finding) -> String {
    match finding {
        Check { name, result, levels, says } => {
            let place = if levels.is_empty() { "any cell".to_owned() } else { levels.join(", ") };
            format!("`{name}` | `{study}`: {place} | {result} | {says}")
        }
        Refuted { kind, text } => format!("claim `{kind}` | `{study}` | refuted | {text}"),
        NotShown { kind, text } => format!("claim `{kind}` | `{study}` | not shown, or refuted | {text}"),
        RefutedAtFullSize { kind, text, reason } => {
            format!("claim `{kind}` | `{study}`, whole study only: {reason} | refuted | {text}")
        }
        NotRepeated { checks, reason } => {
            let names: Vec<String> = checks.iter().map(|name| format!("`{name}`")).collect();
            format!("{} | none: {reason} | – | –", names.join(", "))
        }
        NoCheck { reason } => format!("no check: {reason} | – | – | –"),
    }
}
