//! `load --samples FILE.parquet`: rows that are written while the test runs, and numbers that do not depend
//! on them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::generator::Serving;
use crate::tool::{Ended, H123, folder, h123, machine, repository};

/// Sums over the rows of a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rows {
    rows: u64,
    measured: u64,
    ok: u64,
    body_bytes: u64,
    header_bytes: u64,
    latencies_ns: Vec<u64>,
    requests: Vec<(i64, i64)>,
    paths: std::collections::BTreeSet<String>,
}

fn read(path: &Path) -> Rows {
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let place = |name: &str| schema.columns().iter().position(|column| column.name() == name).unwrap();
    let places = ["group", "request", "path", "phase", "outcome", "intended_ns", "done_ns"].map(place);
    let [group, request, path, phase, outcome, intended, done] = places;
    let (body, header) = (place("response_body_bytes"), place("response_header_wire_bytes"));
    let mut rows = Rows::default();
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        rows.rows += 1;
        rows.requests.push((row.get_long(group).unwrap(), row.get_long(request).unwrap()));
        rows.paths.insert(row.get_string(path).unwrap().clone());
        if row.get_string(phase).unwrap() == "measure" {
            rows.measured += 1;
            if row.get_string(outcome).unwrap() == "ok" {
                rows.ok += 1;
                rows.body_bytes += u64::try_from(row.get_long(body).unwrap()).unwrap();
                rows.header_bytes += u64::try_from(row.get_long(header).unwrap()).unwrap();
                let latency_ns = row.get_long(done).unwrap() - row.get_long(intended).unwrap();
                rows.latencies_ns.push(u64::try_from(latency_ns).unwrap());
            }
        }
    }
    rows.latencies_ns.sort_unstable();
    rows.requests.sort_unstable();
    rows
}

#[test]
fn rows_and_numbers_agree() {
    let _machine = machine();
    let serving = Serving::start();
    let folder = folder();
    let file = folder.path().join("rows.parquet");
    let list = folder.path().join("urls");
    std::fs::write(&list, "/bytes/100\n/bytes/2000\n/no-such\n").unwrap();
    let (url, samples) = (serving.url(2, "/"), file.to_str().unwrap());
    // More than one portion of rows from each of two threads.
    let load = ["load", &url, "--variant", "h2c", "-n", "30000", "-c", "4", "-m", "5", "-t", "2", "--json"];
    let rest = ["--urls", list.to_str().unwrap(), "--samples", samples];
    let ended = h123(load.into_iter().chain(rest)).expect(3);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let rows = read(&file);
    assert_eq!((rows.rows, rows.measured), (30_000, 30_000));
    assert_eq!(json["rows"]["written"], 30_000);
    assert_eq!(json["requests"]["completed"], rows.ok);
    assert_eq!(json["requests"]["failed"], rows.measured - rows.ok);
    assert_eq!(json["bytes"]["body"], rows.body_bytes);
    assert_eq!(json["bytes"]["response_header_wire"], rows.header_bytes);
    assert_eq!(json["phases"]["transfer_ns"]["count"], rows.ok);
    assert_eq!(json["per_connection"]["requests"]["count"], 4);
    assert_eq!(rows.paths.len(), 3);
    rows.requests.windows(2).for_each(|pair| assert_ne!(pair[0], pair[1], "no row twice"));
    for (name, per_mille) in [("p50", 500), ("p99", 990), ("p99_9", 999)] {
        let index = (rows.latencies_ns.len() * per_mille).div_ceil(1000) - 1;
        let (found, exact) = (json["latency_ns"][name].as_u64().unwrap(), rows.latencies_ns[index]);
        assert!(found.abs_diff(exact) * 1000 <= exact, "{name}: {found}, exactly {exact}");
    }
    let means = (json["latency_ns"]["mean"].as_f64().unwrap(), mean(&rows.latencies_ns));
    assert!((means.0 / means.1 - 1.0).abs() < 1e-3, "{means:?}");
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

#[test]
fn a_file_that_cannot_be_is_refused_before_the_load() {
    let folder = folder();
    let taken = folder.path().join("taken.parquet");
    std::fs::write(&taken, "another's").unwrap();
    let nowhere = folder.path().join("no/such/rows.parquet");
    // No server listens there: a request would have failed with status 3.
    let load = |samples: &str| h123(["load", "http://127.0.0.1:1/", "-n", "1", "--samples", samples]);
    for (path, why) in [(&taken, "the file exists"), (&nowhere, "No such file or directory")] {
        let ended = load(path.to_str().unwrap()).expect(2);
        assert!(ended.stderr.contains("--samples") && ended.stderr.contains(why), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "another's");
    let odd = load("rows.csv").expect(2);
    assert!(odd.stderr.contains("write `none` or a new FILE.parquet"), "{}", odd.stderr);
    // Wrong usage elsewhere leaves nothing behind either.
    let rows = folder.path().join("rows.parquet");
    h123(["load", "http://127.0.0.1:1/", "--poisson", "--samples", rows.to_str().unwrap()]).expect(2);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only what was there");
}

fn start(url: &str, samples: &Path) -> Child {
    Command::new(H123)
        .args(["load", url, "-d", "1min", "-c", "4", "--json", "--quiet", "--samples"])
        .arg(samples)
        .current_dir(repository())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the file next to the final one has a row group, and returns its name.
fn wait_for_rows(folder: &Path) -> String {
    let begin = Instant::now();
    loop {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // The magic word alone is four bytes long.
            if name.ends_with(".partial") && entry.metadata().unwrap().len() > 1000 {
                return name;
            }
        }
        assert!(begin.elapsed() < Duration::from_secs(50), "no rows after 50 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_interrupted_test_leaves_a_readable_file_and_a_killed_one_none() {
    let _machine = machine();
    let serving = Serving::start();
    let (folder, url) = (folder(), serving.url(0, "/bytes/1"));
    let file = folder.path().join("rows.parquet");
    let child = start(&url, &file);
    wait_for_rows(folder.path());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap()).expect(130);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let rows = read(&file);
    assert!(rows.rows >= 65_536, "at least a row group: {}", rows.rows);
    assert_eq!(json["rows"]["written"], rows.rows);
    assert_eq!(json["requests"]["completed"], rows.ok);
    std::fs::remove_file(&file).unwrap();
    let mut child = start(&url, &file);
    let partial = wait_for_rows(folder.path());
    child.kill().unwrap();
    child.wait().unwrap();
    let left: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(left, [partial], "no file of that name, and what was begun says that it is partial");
}
