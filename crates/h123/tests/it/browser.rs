//! The report in real headless Chromium: tables and figures are there, the console is silent, nothing is fetched.

use std::process::{Command, Output};

use crate::quick;
use crate::tool::folder;

/// The page after loading, and everything that Chromium said.
fn open(report: &std::path::Path) -> (String, String) {
    let profile = folder();
    let browser = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
        .unwrap_or_else(|| panic!("found no Chromium, expected one on PATH: apt-get install chromium"));
    let Output { stdout, stderr, status } = Command::new("timeout")
        .args(["60", browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args([
            "--enable-logging=stderr",
            "--window-size=1280,2000",
            "--virtual-time-budget=2000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", report.display()))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    assert!(status.success(), "{stderr}");
    (String::from_utf8(stdout).unwrap(), stderr)
}

#[test]
fn the_report_shows_its_tables_and_figures_without_a_console_error() {
    let (dom, said) = open(&quick::result().join("report.html"));
    let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:#?}");
    let count = |needle: &str| dom.matches(needle).count();
    assert!(count("<table") >= 4, "{} tables", count("<table"));
    assert!(count("<figure") >= 4, "{} figures", count("<figure"));
    assert!(count("<svg") >= 4, "{} drawings", count("<svg"));
    for text in ["north-carolina", "h1s", "h3", "page load time"] {
        assert!(dom.to_lowercase().contains(text), "{text}");
    }
    for foreign in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert_eq!(count(foreign), 0, "{foreign}");
    }
}

#[test]
fn a_faulty_page_would_have_been_noticed() {
    let folder = folder();
    let page = folder.path().join("faulty.html");
    std::fs::write(&page, "<script>console.error('noticed')</script>").unwrap();
    let (_, said) = open(&page);
    assert!(said.lines().any(|line| line.contains("CONSOLE") && line.contains("noticed")), "{said}");
}
