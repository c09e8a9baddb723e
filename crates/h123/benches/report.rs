//! Time and memory of `h123 report` for ten million samples, stored like those of a study:
//! `cargo bench -p h123 --bench report -- [SAMPLES]`.

#![expect(clippy::expect_used, reason = "a bench fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::assignment::ClientReport;
use model::record::{RunRecord, ServerReport};
use model::sample::{Outcome, Phase, Sample};
use model::{Plan, PlannedRun};
use store::ResultFolder;

/// The promised limits on two cores.
const MOST_TIME: Duration = Duration::from_secs(10);
const MOST_BYTES: u64 = 1 << 30;
const DEFAULT_SAMPLES: u64 = 10_000_000;

const STUDY: &str = r#"
question = "How long does it take to analyse ten million samples?"
metric = "request_time"
baseline = { variant = "h1s" }
margin = "3%"
runs = 10
topology = "direct"
[matrix]
variant = ["h1s", "h2"]
server = ["origin"]
network = ["own"]
workload = ["much"]
[workload.much]
kind = "closed"
paths = ["/bytes/1000"]
connections = 10
duration = "10s"
"#;

fn main() {
    let asked = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let samples: u64 = asked.unwrap_or(DEFAULT_SAMPLES);
    let place = tempfile::tempdir().expect("a temporary folder");
    let result = place.path().join("result");
    fill(&result, place.path(), samples);
    println!("{samples} samples in {}", size(&result));
    let began = Instant::now();
    let mut report = Command::new(env!("CARGO_BIN_EXE_h123"))
        .arg("report")
        .arg(&result)
        .stdout(Stdio::null())
        .spawn()
        .expect("h123 report");
    let peak_bytes = watch(&mut report);
    let took = began.elapsed();
    println!("h123 report: {:.1} s, {} MB at most in memory", took.as_secs_f64(), peak_bytes / 1_000_000);
    let is_met = took <= MOST_TIME && peak_bytes <= MOST_BYTES;
    println!(
        "promised: {} s, {} MB: {}",
        MOST_TIME.as_secs(),
        MOST_BYTES / 1_000_000,
        if is_met { "met" } else { "missed" }
    );
    if !is_met && samples >= DEFAULT_SAMPLES {
        std::process::exit(1);
    }
}

/// A result with this many samples, compacted as at the end of a study.
fn fill(result: &Path, place: &Path, samples: u64) {
    let study = place.join("much.toml");
    fs::write(&study, STUDY).expect("the study");
    let planned = Command::new(env!("CARGO_BIN_EXE_h123"))
        .args(["plan", "--json"])
        .arg(&study)
        .output()
        .expect("h123 plan");
    let plan: Plan = serde_json::from_slice(&planned.stdout).expect("a plan");
    let mut folder = ResultFolder::create(result, 0).expect("the result's folder");
    folder.write_json("plan.json", &plan).expect("the plan");
    folder.write_json("environment.json", &serde_json::json!({})).expect("the environment");
    for run in &plan.runs {
        folder.append(&record(run, samples / plan.runs.len() as u64)).expect("a run");
    }
    folder.compact().expect("compaction");
}

/// A run whose requests take about a millisecond, with a long tail.
fn record(run: &PlannedRun, samples: u64) -> RunRecord {
    let mut state = run.seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let version = if run.cell == 0 { model::HttpVersion::Http11 } else { model::HttpVersion::Http2 };
    let rows = (0..samples).map(|request| {
        let intended_ns = request * 10_000;
        let tail_ns = if random() % 100 == 0 { random() % 50_000_000 } else { 0 };
        let done_ns = intended_ns + 500_000 + random() % 1_000_000 + tail_ns;
        Sample {
            request,
            url: 0,
            connection: Some(u32::try_from(request % 10).unwrap_or(0)),
            phase: Phase::Measure,
            intended_ns,
            sent_ns: Some(intended_ns + 1_000),
            first_byte_ns: Some(done_ns - 20_000),
            done_ns: Some(done_ns),
            status: Some(200),
            version: Some(version),
            request_header_raw_bytes: 60,
            request_header_wire_bytes: 66,
            response_header_raw_bytes: 100,
            response_header_wire_bytes: 120,
            request_body_bytes: 0,
            response_body_bytes: 1000,
            expected_body_bytes: Some(1000),
            ..Sample::default()
        }
    });
    let client = ClientReport {
        urls: vec!["/bytes/1000".to_owned()],
        finished_ns: samples * 10_000,
        cpu_user_ns: samples * 1_000,
        ..ClientReport::default()
    };
    RunRecord {
        run: run.run,
        cell: run.cell,
        block: run.block,
        began_unix_ns: 0,
        took_ns: samples * 10_000,
        content: None,
        outcome: Outcome::Ok,
        samples: rows.collect(),
        connections: Vec::new(),
        player: Vec::new(),
        page_events: Vec::new(),
        clients: vec![client],
        servers: vec![ServerReport::default()],
        server_requests: Vec::new(),
        links: Vec::new(),
        round_trips: Vec::new(),
        readings: Vec::new(),
    }
}

/// Waits until the process has ended; returns its peak memory in bytes (`VmHWM`, proc(5)).
fn watch(child: &mut Child) -> u64 {
    let path = format!("/proc/{}/status", child.id());
    let mut peak_bytes = 0;
    loop {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"));
        let peak: Option<u64> = peak.and_then(|text| text.trim().parse().ok());
        peak_bytes = peak_bytes.max(peak.unwrap_or(0) * 1024);
        if let Some(ended) = child.try_wait().expect("h123 report") {
            assert!(matches!(ended.code(), Some(0 | 3)), "h123 report ended with {ended}");
            return peak_bytes;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn size(result: &Path) -> String {
    let files = fs::read_dir(result.join("samples")).expect("samples").flatten();
    let bytes: u64 = files.filter_map(|file| file.metadata().ok()).map(|data| data.len()).sum();
    format!("{} MB", bytes / 1_000_000)
}
