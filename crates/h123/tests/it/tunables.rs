//! Every tunable of every server with a value that is not its default, on the real server: only this finds a
//! template with a setting that the server rejects.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::tool::{Ended, H123, cell, check, folder, machine, median, repository, summary};

/// The settings of each server; none is the default.
const SET: [(&str, &str); 8] = [
    (
        "origin",
        "workers = 2, streams = 17, http2_window = \"70KiB\", keepalive = \"77s\", media = \"just_in_time\", \
         index_cache = false, missing_status = \"503\", cacheable = true",
    ),
    (
        "nginx",
        "workers = 2, sendfile = true, tls_record = \"4KiB\", keepalive = \"77s\", keepalive_requests = 177, \
         streams = 17, http2_chunk = \"4KiB\", http3_stream_buffer = \"32KiB\", quic_gso = true, \
         cacheable = true",
    ),
    (
        "apache",
        "workers = 2, keepalive = \"7700ms\", keepalive_requests = 177, sendfile = true, mmap = false, streams = 17, \
         tls_warmup = \"0B\", tls_idle = \"7s\", http2_window = \"70KiB\", push = true",
    ),
    ("caddy", "workers = 2, keepalive = \"7700ms\""),
    ("lighttpd", "workers = 2, keepalive = \"7s\", keepalive_requests = 177, sendfile = false"),
    ("nghttpd", "workers = 2, streams = 17, header_table = \"8KiB\", padding = \"17B\""),
    (
        "nghttpx",
        "workers = 2, tls_warmup = \"0B\", tls_idle = \"7s\", keepalive = \"7700ms\", streams = 17, \
         http2_window = \"70KiB\", back_connections = 3",
    ),
    (
        "haproxy",
        "workers = 2, tls_record = \"4KiB\", keepalive = \"7700ms\", streams = 17, http2_window = \"70KiB\", \
         quic_gso = false",
    ),
];
/// Needs tickets, which a page's fresh client cannot have: `load_tls` has tested it by hand.
const NEEDS_RESUMPTION: &str = "early_data";
/// Servers that need a server behind them.
const PROXIES: [&str; 2] = ["nghttpx", "haproxy"];

/// The names that a server's description declares.
fn declared(server: &str) -> BTreeSet<String> {
    let text =
        std::fs::read_to_string(repository().join("servers").join(server).join("server.toml")).unwrap();
    let tables = text.split("[[tunable]]\n").skip(1);
    let name =
        |table: &str| table.strip_prefix("name = \"")?.split_once('"').map(|(name, _)| name.to_owned());
    tables.map(|table| name(table).unwrap()).collect()
}

#[test]
fn every_tunable_is_taken_by_the_server_itself() {
    let _machine = machine();
    let place = folder();
    let mut servers = BTreeMap::new();
    for (server, set) in SET {
        let named: BTreeSet<String> =
            set.split(", ").map(|pair| pair.split_once(" = ").unwrap().0.to_owned()).collect();
        let mut declared = declared(server);
        declared.remove(NEEDS_RESUMPTION);
        assert_eq!(named, declared, "{server}: set them all here");
        let back =
            if PROXIES.contains(&server) { "\nback = { use = \"origin\", variant = \"h1\" }" } else { "" };
        servers.insert(
            server,
            format!("[server.tuned-{server}]\nuse = \"{server}\"\nset = {{ {set} }}{back}\n"),
        );
    }
    let names: Vec<String> = servers.keys().map(|server| format!("\"tuned-{server}\"")).collect();
    let tables: String = servers.values().map(String::as_str).collect();
    let study = format!(
        "question = \"Do they take it?\"\nmetric = \"page_load_time\"\nbaseline = {{ variant = \"h2\" }}\nmargin = \"3%\"\n\
         runs = 1\n[matrix]\nvariant = [\"h2\"]\nserver = [{}]\nnetwork = [\"lan\"]\nworkload = [\"small\"]\n\
         [workload.small]\nkind = \"page\"\npage = \"small\"\n[hold]\nkey_exchange = \"secp256r1\"\n{tables}",
        names.join(", ")
    );
    std::fs::write(place.path().join("study.toml"), study).unwrap();
    let mut command = Command::new(H123);
    command.args(["run", "study.toml", "--out", "out"]).current_dir(place.path());
    let ended = Ended::of(command.output().unwrap());
    ended.expect_measured();
    let summary = summary(&place.path().join("out"));
    for (server, _) in SET {
        let cell = cell(&summary, &[&format!("tuned-{server}")]);
        assert_eq!(cell["runs_ok"], 1, "{server}: {cell:#}");
        assert_eq!(median(cell, "requests"), 3.0, "{server}: {cell:#}");
        for sound in ["version", "status", "body_content", "failed_requests"] {
            assert_eq!(check(cell, sound)["result"], "pass", "{server}: {cell:#}");
        }
    }
}
