use super::*;

/// Outputs of the tools that studies run too, as recorded for their parsers.
const WRK: &str = include_str!("../../../../crates/workload/src/formats/clients/recorded/wrk.txt");
const SIEGE: &str = include_str!("../../../../crates/workload/src/formats/clients/recorded/siege.txt");
const AB: &str = include_str!("../../../../crates/workload/src/formats/clients/recorded/ab.txt");
const AB_FILE: &str = include_str!("../../../../crates/workload/src/formats/clients/recorded/ab.csv");

const H2LOAD: &str = "\
starting benchmark...
spawning thread #0: 10 total client(s). Timing-based test with 0s of warm-up time and 2s of main duration.
Application protocol: h2c
Main benchmark duration is over for thread #0. Stopping all clients.

finished in 2.00s, 88120.50 req/s, 15.13MB/s
requests: 176241 total, 176341 started, 176241 done, 176241 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 176341 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 30.25MB (31723380) total, 5.88MB (6168435) headers (space savings 79.41%), 21.51MB (22558848) data
";

const OHA: &str = r#"{
  "summary": {"successRate": 1.0, "total": 2.0, "requestsPerSec": 51234.5},
  "statusCodeDistribution": {"200": 102469},
  "errorDistribution": {"aborted due to deadline": 10}
}"#;

const H123: &str =
    r#"{"requests": {"completed": 131000, "failed": 0, "failures": {}, "per_second": 65400.25}}"#;

type Parser = fn(&str) -> Result<Answer>;

const ALL: &[(&str, Parser, &str)] = &[
    ("wrk", wrk, WRK),
    ("h2load", h2load, H2LOAD),
    ("siege", siege, SIEGE),
    ("ab", ab, AB),
    ("oha", oha, OHA),
    ("h123", h123, H123),
];

fn error(parser: Parser, text: &str) -> String {
    format!("{:#}", parser(text).expect_err(text))
}

fn wrk(text: &str) -> Result<Answer> {
    client(Format::Wrk, text, "", 4)
}

fn siege(text: &str) -> Result<Answer> {
    client(Format::Siege, text, "", 4)
}

fn ab(text: &str) -> Result<Answer> {
    client(Format::Ab, text, AB_FILE, 4)
}

#[test]
fn good_outputs_are_read() {
    let of = |requests, per_second| Answer { requests, per_second, report_cpu_ns: 0 };
    assert_eq!(h2load(H2LOAD).unwrap(), of(176_241, 88_120.5));
    assert_eq!(oha(OHA).unwrap(), of(102_469, 51_234.5));
    assert_eq!(h123(H123).unwrap(), of(131_000, 65_400.25));
    // siege's own rate is 17131.20: its duration has steps of 10 ms.
    assert_eq!(siege(SIEGE).unwrap(), of(21_414, 21_414.0 / 1.25));
    let found = wrk(WRK).unwrap();
    assert_eq!((found.requests, found.report_cpu_ns), (48_665, 545_000));
    assert!((found.per_second - 48_665.0 / 1.004_860).abs() < 0.01, "{found:?}");
    let found = ab(AB).unwrap();
    assert!(AB.contains(&format!("Complete requests:      {}", found.requests)), "{found:?}");
}

#[test]
fn nothing_is_read_from_empty_cut_or_external_text() {
    for (name, parser, good) in ALL {
        assert!(parser("").is_err(), "{name}: empty");
        assert!(parser("{}").is_err(), "{name}: an empty object");
        let mut cut = good.len() / 3;
        while !good.is_char_boundary(cut) {
            cut += 1;
        }
        // After a third of its text wrk has printed its sums, and the times that follow are not needed.
        assert!(*name == "wrk" || parser(&good[..cut]).is_err(), "{name}: cut");
        for (other, _, text) in ALL {
            assert!(name == other || parser(text).is_err(), "{name} read the output of {other}");
        }
    }
}

#[test]
fn failures_are_errors() {
    let sums = "48665 8662370 0 0 0 0 0";
    assert!(error(wrk, &WRK.replace(sums, "48665 8662370 0 0 0 7 0")).contains("7 requests failed"));
    assert!(error(wrk, &WRK.replace(sums, "48665 8662370 0 3 0 0 0")).contains("3 requests failed"));
    assert!(error(h2load, &H2LOAD.replace("0 errored", "12 errored")).contains("12 requests failed"));
    assert!(error(h2load, &H2LOAD.replace("176341 2xx", "41 2xx")).contains("41 answers were 2xx"));
    let failed = SIEGE.replace("\"failed_transactions\":\t\t           0", "\"failed_transactions\": 4");
    assert!(error(siege, &failed).contains("4 requests failed"));
    let fewer =
        SIEGE.replace("\"successful_transactions\":\t       21414", "\"successful_transactions\": 21410");
    assert!(error(siege, &fewer).contains("4 requests failed"));
    assert!(error(oha, &OHA.replace("\"200\"", "\"502\"")).contains("502"));
    assert!(
        error(oha, &OHA.replace("aborted due to deadline", "connection reset")).contains("connection reset")
    );
    assert!(error(h123, &H123.replace("\"failed\": 0", "\"failed\": 2")).contains("2 requests failed"));
}

#[test]
fn the_reason_of_a_failed_test_is_found() {
    let failed = r#"{"errors": [{"kind": "tls", "count": 3, "first_reason": "alert 40"}]}"#;
    assert_eq!(h123_failure(failed).as_deref(), Some("tls: alert 40"));
    for none in [H123, WRK, "", r#"{"errors": []}"#] {
        assert_eq!(h123_failure(none), None);
    }
}

#[test]
fn no_request_is_an_error_and_never_a_zero() {
    assert!(
        error(wrk, &WRK.replace("1004860 48665 8662370", "1004860 0 0")).contains("no request succeeded")
    );
    assert!(
        error(h2load, &H2LOAD.replace("176241 succeeded", "0 succeeded")).contains("no request succeeded")
    );
    assert!(error(siege, &SIEGE.replace("21414", "0")).contains("no request succeeded"));
    assert!(error(h123, &H123.replace("131000", "0")).contains("no request succeeded"));
}
