//! The same study on two backends: the lab's own emulator, and what this kernel has of netem.

use std::process::Command;

use crate::tool::{Ended, H123, cell, check, folder, h123, machine, median, summary};

/// A rate alone needs no netem; a delay does.
const RATE: &str = "title = \"rate\"\nsource = \"a test\"\nrate = \"50Mbit/s\"\n";
const DELAY: &str = "title = \"delay\"\nsource = \"a test\"\nrtt = \"10ms\"\nrate = \"50Mbit/s\"\n";
const STUDY: &str = "question = \"Do they agree?\"\nmetric = \"page_load_time\"\nmargin = \"5%\"\nruns = 1\n\
                     baseline = { backend = \"user-space\" }\nbackends = [\"user-space\", \"netem\"]\n\
                     [matrix]\nvariant = [\"h1\"]\nserver = [\"origin\"]\nnetwork = [\"rate\", \"delay\"]\n\
                     workload = [\"w\"]\n[workload.w]\nkind = \"page\"\npage = \"small\"\n";

#[test]
fn a_study_runs_on_both_and_continues_without_netem() {
    let _machine = machine();
    let files = folder();
    std::fs::create_dir(files.path().join("networks")).unwrap();
    for (file, text) in [("networks/rate.toml", RATE), ("networks/delay.toml", DELAY), ("both.toml", STUDY)] {
        std::fs::write(files.path().join(file), text).unwrap();
    }
    let out = files.path().join("out");
    let mut command = Command::new(H123);
    command.args(["run", "both.toml", "-q", "--out"]).arg(&out).current_dir(files.path());
    let ended = Ended::of(command.output().unwrap());
    ended.expect_measured();
    let summary = summary(&out);
    let has_netem = h123(["doctor"]).stdout.contains("✓ netem");
    for network in ["rate", "delay"] {
        for backend in ["user-space", "netem"] {
            let cell = cell(&summary, &[network, backend]);
            if backend == "netem" && network == "delay" && !has_netem {
                assert_eq!(cell["status"], "unsupported", "{cell:#}");
                assert!(
                    cell["reasons"].to_string().contains("queueing discipline `netem` is not available here"),
                    "{cell:#}"
                );
                continue;
            }
            assert_eq!((cell["runs_ok"].as_u64(), median(cell, "requests")), (Some(1), 3.0), "{cell:#}");
            assert!(median(cell, "wire_bytes_down") > 20_000.0, "{cell:#}");
            // Both have reference measurements; only one reports its lateness.
            for known in ["calibration", "network_rate", "network_loss"] {
                assert!(check(cell, known)["measured"].is_string(), "{cell:#}");
            }
            let checks = cell["validity"].as_array().unwrap();
            let knows_lateness = checks.iter().any(|check| check["check"] == "emulator_late");
            assert_eq!(knows_lateness, backend == "user-space", "{cell:#}");
        }
    }
}

#[test]
fn a_network_that_netem_cannot_emulate_is_wrong_usage() {
    let files = folder();
    for (args, expected) in [
        (
            &["lab", "train", "--backend", "netem", "--", "true"][..],
            "--backend: the backend netem does not support `up.",
        ),
        (&["lab", "lan", "--backend", "netm", "--", "true"], "did you mean `netem`?"),
        (
            &["lab", "lan", "--backend", "netem", "--pcap", "a.pcapng", "--", "true"],
            "--pcap does not work with the backend netem",
        ),
        (
            &["plan", "quick", "--backend", "netem", "--network", "4g"],
            "command line: `backends`: the backend netem does not support",
        ),
        (&["plan", "quick", "--backend", "netm"], "command line: `backends`: `netm` is not a backend"),
    ] {
        let ended = Ended::of(Command::new(H123).args(args).current_dir(files.path()).output().unwrap());
        let ended = ended.expect(2);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
        assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 0);
    }
}
