//! Firefox as the client of a cell.

use std::process::Command;

use crate::chromium::{attempt, check_site, dies_with_h123, runs_as_a_user, takes_the_round_trips, write};
use crate::outside::site;
use crate::tool::{Ended, H123, cell, folder, machine, summary};

/// A name of the site, which `/etc/hosts` has in a mount namespace of the test.
const NAME: &str = "site.h123.test";
const WITH_HOSTS: &str = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";

#[test]
fn a_page_in_firefox_takes_the_round_trips_of_its_handshakes() {
    takes_the_round_trips("firefox");
}

#[test]
fn an_ordinary_user_has_firefoxs_sandbox() {
    runs_as_a_user("firefox");
}

#[test]
fn firefox_dies_with_h123() {
    // Its processes share a home, which is the profile.
    dies_with_h123("firefox", 3, |profile| {
        let home = format!("HOME={}", profile.display());
        let processes = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            String::from_utf8_lossy(&environment).contains(&home).then(|| format!("{:?}", entry.file_name()))
        });
        processes.collect()
    });
}

#[test]
fn a_page_of_a_site_is_compared_in_firefox() {
    let _machine = machine();
    let (site, folder) = (site(), folder());
    write(folder.path(), "");
    let hosts = folder.path().join("hosts");
    std::fs::write(&hosts, format!("127.0.0.1 localhost {NAME}\n")).unwrap();
    let page = |host: &str, out: &str| {
        let url = format!("https://{host}:{}/", site.ports[0]);
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["--mount", "sh", "-c", WITH_HOSTS]).arg(&hosts).args([H123, "page", &url]);
        command.args(["--browser", "firefox", "--network", "far", "--runs", "1", "--insecure", "--out", out]);
        Ended::of(command.current_dir(folder.path()).output().unwrap())
    };
    attempt(|out| {
        page(NAME, out).expect_measured();
        let summary = summary(&folder.path().join(out));
        ["h1s", "h2"].iter().try_for_each(|variant| check_site(cell(&summary, &[variant])))
    });
    let fixed = page("127.0.0.1", "fixed");
    let summary = summary(&folder.path().join("fixed"));
    let cell = cell(&summary, &["h2"]);
    assert_eq!(cell["status"], "unsupported", "{cell:#}");
    assert!(cell.to_string().contains("use a host name in the URL"), "{cell:#}\n{}", fixed.stderr);
}
