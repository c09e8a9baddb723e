use super::*;

const WRK: &str = "\
Running 2s test @ http://127.0.0.1:21080/small
  1 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   152.03us   61.77us   2.91ms   93.12%
    Req/Sec    66.10k     4.02k   71.95k    72.50%
  131522 requests in 2.00s, 45.91MB read
Requests/sec:  65742.18
Transfer/sec:     22.95MB
";

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

const SIEGE: &str = "\
New configuration template added to /home/someone/.siege
Run siege -C to view the current settings in that file
{\t\"transactions\":\t\t\t       31507,
\t\"availability\":\t\t\t      100.00,
\t\"elapsed_time\":\t\t\t        1.93,
\t\"data_transferred\":\t\t        3.85,
\t\"transaction_rate\":\t\t    16324.87,
\t\"successful_transactions\":\t       31507,
\t\"failed_transactions\":\t\t           0
}
";

const AB: &str = "\
Server Software:        nginx/1.22.1
Document Length:        128 bytes

Concurrency Level:      10
Time taken for tests:   2.000 seconds
Complete requests:      130014
Failed requests:        0
Keep-Alive requests:    130014
Requests per second:    65006.91 [#/sec] (mean)
Time per request:       0.154 [ms] (mean)
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

#[test]
fn good_outputs_are_read() {
    assert_eq!(wrk(WRK).unwrap(), Answer { requests: 131_522, per_second: 65_742.18 });
    assert_eq!(h2load(H2LOAD).unwrap(), Answer { requests: 176_241, per_second: 88_120.5 });
    assert_eq!(siege(SIEGE).unwrap(), Answer { requests: 31_507, per_second: 16_324.87 });
    assert_eq!(ab(AB).unwrap(), Answer { requests: 130_014, per_second: 65_006.91 });
    assert_eq!(oha(OHA).unwrap(), Answer { requests: 102_469, per_second: 51_234.5 });
    assert_eq!(h123(H123).unwrap(), Answer { requests: 131_000, per_second: 65_400.25 });
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
        assert!(parser(&good[..cut]).is_err(), "{name}: cut");
        for (other, _, text) in ALL {
            assert!(name == other || parser(text).is_err(), "{name} read the output of {other}");
        }
    }
}

#[test]
fn failures_are_errors() {
    let wrong = WRK.replace("Requests/sec", "  Non-2xx or 3xx responses: 7\nRequests/sec");
    assert!(error(wrk, &wrong).contains("Non-2xx or 3xx responses: 7"));
    let wrong =
        WRK.replace("Requests/sec", "  Socket errors: connect 0, read 3, write 0, timeout 0\nRequests/sec");
    assert!(error(wrk, &wrong).contains("read 3"));
    assert!(error(h2load, &H2LOAD.replace("0 errored", "12 errored")).contains("12 failed"));
    assert!(error(h2load, &H2LOAD.replace("176341 2xx", "41 2xx")).contains("41 answers 2xx"));
    assert!(error(siege, &SIEGE.replace("          0\n}", "          4\n}")).contains("4 failed"));
    assert!(
        error(siege, &SIEGE.replace("       31507,\n\t\"failed", "       31000,\n\t\"failed"))
            .contains("31000")
    );
    assert!(error(ab, &AB.replace("Failed requests:        0", "Failed requests:        9")).contains('9'));
    assert!(error(ab, &AB.replace("Time per", "Non-2xx responses: 8\nTime per")).contains("Non-2xx"));
    assert!(error(oha, &OHA.replace("\"200\"", "\"502\"")).contains("502"));
    assert!(
        error(oha, &OHA.replace("aborted due to deadline", "connection reset")).contains("connection reset")
    );
    assert!(error(h123, &H123.replace("\"failed\": 0", "\"failed\": 2")).contains("2 failed"));
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
    assert!(error(wrk, &WRK.replace("131522 requests", "0 requests")).contains("no completed request"));
    assert!(
        error(h2load, &H2LOAD.replace("176241 succeeded", "0 succeeded")).contains("no completed request")
    );
    assert!(error(ab, &AB.replace("130014", "0")).contains("no completed request"));
    assert!(error(siege, &SIEGE.replace("31507", "0")).contains("no completed request"));
    assert!(error(h123, &H123.replace("131000", "0")).contains("no completed request"));
    assert!(error(wrk, &WRK.replace("65742.18", "nan")).contains("NaN"));
    assert!(error(wrk, &WRK.replace("65742.18", "65k")).contains("expected a number"));
}

#[test]
fn ab_without_kept_connections_is_another_work() {
    let wrong = AB.replace("Keep-Alive requests:    130014", "Keep-Alive requests:    0");
    assert!(error(ab, &wrong).contains("kept connections"));
}
