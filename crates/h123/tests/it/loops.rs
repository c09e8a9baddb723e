//! The study `loops` in short form: an open and a closed loop, from the file to the report.

use crate::tool::{cell, check, folder, h123, machine, median, summary};

#[test]
fn open_and_closed_loops_are_planned_run_stored_analysed_and_reported() {
    let _machine = machine();
    let folder = folder();
    let out = folder.path().join("loops");
    let args = ["run", "loops", "--runs", "2", "--variant", "h1s", "--variant", "h3", "--out"];
    let ended = h123(args.into_iter().chain([out.to_str().unwrap()]));
    ended.expect_measured();
    let words = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("400 requests/s as a Poisson process"), "{words}");
    let summary = summary(&out);
    assert_eq!(summary["runs_stored"], 8);
    for variant in ["h1s", "h3"] {
        let steady = cell(&summary, &[variant, "steady"]);
        for sound in ["version", "status", "failed_requests", "emulator_drops"] {
            assert_eq!(check(steady, sound)["result"], "pass", "{steady:#}");
        }
        assert!(check(steady, "missed_schedule")["measured"].as_str().unwrap().ends_with("never sent"));
        assert!((median(steady, "never_sent") - 0.0).abs() < 1e-9, "{steady:#}");
        // 600 are due; the standard deviation of a Poisson process is 24.5.
        let requests = median(steady, "requests");
        assert!((450.0..750.0).contains(&requests), "{requests}");
        assert!(median(steady, "request_time") > 300_000.0, "no quicker than the network");
        assert!(median(steady, "schedule_lag") <= median(steady, "request_time"));
        assert!(median(steady, "client_cpu_per_request") > 0.0);
        let greedy = cell(&summary, &[variant, "greedy"]);
        let rate = median(greedy, "requests_per_second");
        assert!((100.0..20_000.0).contains(&rate), "six at once, at least 0.3 ms each: {rate}");
        assert!(greedy["metrics"].get("schedule_lag").is_none());
        let checks = greedy["validity"].as_array().unwrap();
        assert!(checks.iter().all(|check| check["check"] != "missed_schedule"));
        assert!(greedy["metrics"]["request_time"]["samples"].as_u64().unwrap() > 100);
    }
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    for part in ["open loop over 1 path", "closed loop over 1 path", "Schedule lag", "Missed schedule"] {
        assert!(report.contains(part), "no {part} in the report");
    }
    let plan = h123(["plan", "loops"]).expect(0).stdout;
    for part in ["open loop over 1 path", "after 300 ms of warm-up", "closed loop over 1 path"] {
        let words = plan.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(part), "no {part} in:\n{plan}");
    }
}
