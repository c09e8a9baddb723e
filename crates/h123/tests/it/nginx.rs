//! The same study against a real nginx; what it does not have is recorded as unsupported.

use crate::tool::{cell, folder, h123, machine, median, summary};

#[test]
fn quick_runs_against_a_real_nginx() {
    let _machine = machine();
    let folder = folder();
    let out = folder.path().join("out");
    let args = ["run", "quick", "--server", "nginx", "--runs", "2", "--network", "lan", "--out"];
    let ended = h123(args.into_iter().chain([out.to_str().unwrap()]));
    assert!(matches!(ended.code, 0 | 3), "stdout:\n{}\nstderr:\n{}", ended.stdout, ended.stderr);
    let summary = summary(&out);
    for page in ["small", "large"] {
        for variant in ["h1", "h1s", "h2c", "h2"] {
            let cell = cell(&summary, &[variant, page]);
            assert_eq!(cell["runs_ok"], 2, "{cell:#}");
            let bytes = if page == "small" { 20_000.0 } else { 1_600_000.0 };
            assert_eq!(
                median(cell, "body_bytes_received"),
                bytes,
                "the pages are the origin's, byte for byte"
            );
            assert_eq!(crate::tool::check(cell, "version")["result"], "pass");
        }
        // Debian's stable nginx has no HTTP/3; a newer one has.
        let h3 = cell(&summary, &["h3", page]);
        if h3["status"] == "unsupported" {
            assert!(h3["reasons"].to_string().contains("http_v3"), "{h3:#}");
        } else {
            assert_eq!(h3["runs_ok"], 2, "{h3:#}");
        }
    }
    let listed = h123(["servers"]).expect(0);
    assert!(listed.stdout.contains("nginx") && listed.stdout.contains("origin"), "{}", listed.stdout);
}
