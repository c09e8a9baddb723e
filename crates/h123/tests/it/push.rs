//! Server push and Early Hints in round trips: what each saves over a network that has a delay and no rate.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::tool::{Ended, H123, cell, folder, machine, median, summary};

const RTT_NS: f64 = 60e6;

/// A document and a chain of style sheets, each of which names the next.
fn page(name: &str, sheets: usize) -> String {
    let mut text = format!("title = '{sheets} style sheets in a chain'\n");
    let mut parent = format!("/{name}/");
    text += &format!("[[resource]]\npath = '{parent}'\nkind = 'html'\nsizes = ['1kB']\n");
    for number in 1..=sheets {
        let path = format!("/{name}/{number}.css");
        text +=
            &format!("[[resource]]\npath = '{path}'\nkind = 'css'\nnamed_by = '{parent}'\nsizes = ['1kB']\n");
        parent = path;
    }
    text
}

const STUDY: &str = r#"
question = "How many round trips do push and hints save?"
metric = "page_load_time"
baseline = { workload = "requested" }
margin = "5%"
runs = 3

[matrix]
variant = ["h2c"]
server = ["origin", "nghttpd", "apache"]
network = [{ rtt = "60ms" }]
workload = ["requested", "pushed", "hinted", "chain", "slow", "slow-hinted"]

[workload.requested]
kind = "page"
page = "one"

[workload.pushed]
kind = "page"
page = "one"
push = ["/one/1.css"]

[workload.hinted]
kind = "page"
page = "one"
early_hints = ["/one/1.css"]

[workload.chain]
kind = "page"
page = "two"

[workload.slow]
kind = "page"
page = "one"
document_delay = "120ms"

[workload.slow-hinted]
kind = "page"
page = "one"
document_delay = "120ms"
early_hints = ["/one/1.css"]
"#;

fn write_pages(folder: &Path) {
    std::fs::create_dir_all(folder.join("pages")).unwrap();
    for (name, sheets) in [("one", 1), ("two", 2)] {
        std::fs::write(folder.join(format!("pages/{name}.toml")), page(name, sheets)).unwrap();
    }
}

/// The run's outcome, for a cell that is unsupported.
fn reason(cell: &Value) -> String {
    assert_eq!(cell["runs_ok"], 0, "{cell:#}");
    cell.to_string()
}

#[test]
fn push_saves_a_round_trip_and_hints_save_the_wait() {
    let _machine = machine();
    let folder = folder();
    write_pages(folder.path());
    std::fs::write(folder.path().join("push.toml"), STUDY).unwrap();
    let mut command = Command::new(H123);
    command.args(["run", "push.toml", "--out", "out"]).current_dir(folder.path());
    let ended = Ended::of(command.output().unwrap());
    assert!([0, 3].contains(&ended.code), "stdout:\n{}\nstderr:\n{}", ended.stdout, ended.stderr);
    let summary = summary(&folder.path().join("out"));
    let of = |server, workload| cell(&summary, &[server, workload]);
    // Connect, document, style sheets.
    let expected = [
        ("requested", 3.0, &["origin", "nghttpd", "apache"][..]),
        ("pushed", 2.0, &["origin", "nghttpd", "apache"]),
        ("chain", 4.0, &["origin", "nghttpd", "apache"]),
        ("hinted", 3.0, &["origin", "apache"]),
        // The document takes 2 round trips, during which the style sheet arrives.
        ("slow", 5.0, &["origin"]),
        ("slow-hinted", 4.0, &["origin"]),
    ];
    for (workload, round_trips, servers) in expected {
        for server in servers {
            let load_ns = median(of(server, workload), "page_load_time");
            let found = load_ns / RTT_NS;
            assert!((found / round_trips - 1.0).abs() < 0.08, "{server}, {workload}: {found} round trips");
        }
    }
    let counted = |cell: &Value, names: [&str; 3]| names.map(|name| median(cell, name));
    for server in ["origin", "nghttpd", "apache"] {
        let pushes = counted(of(server, "pushed"), ["pushes_used", "pushes_unused", "pushes_late"]);
        assert_eq!(pushes, [1.0, 0.0, 0.0], "{server}");
        assert_eq!(median(of(server, "pushed"), "requests"), 2.0, "a pushed response has a row");
        assert!(of(server, "requested")["metrics"].get("pushes_used").is_none());
    }
    for server in ["origin", "apache"] {
        // Apache repeats its hints for index.html, which counts as too late.
        let hints = ["hints_used", "hints_unused"].map(|name| median(of(server, "hinted"), name));
        assert_eq!(hints, [1.0, 0.0], "{server}");
    }
    assert!(reason(of("nghttpd", "hinted")).contains("nghttpd never sends Early Hints (103) over h2c"));
    assert!(reason(of("apache", "slow")).contains("apache never delays documents over h2c"));
}
