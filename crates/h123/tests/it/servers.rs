//! Every described server, in every variant that it supports, and a new one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::external;
use crate::permissions::user_command;
use crate::tool::{Ended, H123, cell, check, folder, machine, median, repository, summary};

const VARIANTS: [&str; 5] = ["h1", "h1s", "h2c", "h2", "h3"];
/// The variants that each server of `studies/servers.toml` supports in Debian.
const SPOKEN: [(&str, &[&str]); 6] = [
    ("origin", &VARIANTS),
    ("nginx", &["h1", "h1s", "h2c", "h2"]),
    ("apache", &["h1", "h1s", "h2c", "h2"]),
    ("caddy", &VARIANTS),
    ("lighttpd", &["h1", "h1s", "h2c", "h2"]),
    ("nghttpd", &["h2c", "h2"]),
];

/// The variants that each proxy of `studies/proxies.toml` supports in Debian, to clients and to the server
/// behind it.
const PROXIES: [(&str, &[&str], &[&str]); 4] = [
    ("nghttpx", &["h1", "h1s", "h2c", "h2"], &["h1", "h1s", "h2c", "h2"]),
    ("haproxy", &["h1", "h1s", "h2c", "h2"], &["h1", "h1s", "h2c", "h2"]),
    ("caddy", &VARIANTS, &["h1", "h1s", "h2c", "h2"]),
    ("nginx", &["h1", "h1s", "h2c", "h2"], &["h1", "h1s"]),
];

/// The right protocol, the right bytes, and every run succeeds.
fn expect_sound(cell: &Value, requests: f64, bytes: f64) {
    assert_eq!(cell["runs_ok"], 1, "{cell:#}");
    assert_eq!(
        (median(cell, "requests"), median(cell, "body_bytes_received")),
        (requests, bytes),
        "{cell:#}"
    );
    for sound in ["version", "status", "body_length", "body_content", "failed_requests", "all_requested"] {
        assert_eq!(check(cell, sound)["result"], "pass", "{cell:#}");
    }
}

/// Runs `studies/servers.toml` once, over the small page.
fn run_all(mut command: Command) -> Value {
    let _machine = machine();
    let folder = folder();
    let out = folder.path().join("out");
    command.args(["run", "servers", "--runs", "1", "--workload", "small", "--out"]).arg(&out);
    let ended = Ended::of(command.current_dir(folder.path()).output().unwrap());
    ended.expect_measured();
    summary(&out)
}

fn expect_all_speak(summary: &Value, is_new: bool) {
    for (server, spoken) in SPOKEN {
        for variant in VARIANTS {
            let cell = cell(summary, &[server, variant]);
            // A newer nginx has HTTP/3 too.
            let may_more = server == "nginx" && cell["status"] != "unsupported";
            let must_more = server == "nginx" && is_new;
            if spoken.contains(&variant) || may_more || must_more {
                expect_sound(cell, 3.0, 20_000.0);
            } else {
                assert_eq!(cell["status"], "unsupported", "{cell:#}");
                assert!(cell["reasons"].to_string().contains(variant), "{cell:#}");
            }
        }
    }
}

#[test]
fn every_server_supports_every_variant_of_its_description() {
    let known: BTreeSet<_> = std::fs::read_dir(repository().join("servers"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let plain = SPOKEN.iter().map(|(server, _)| (*server).to_owned());
    let tested: BTreeSet<_> = plain.chain(PROXIES.iter().map(|(proxy, ..)| (*proxy).to_owned())).collect();
    assert_eq!(known, tested, "a server that the studies `servers` and `proxies` leave out");
    expect_all_speak(&run_all(Command::new(H123)), false);
}

#[test]
fn every_server_serves_an_ordinary_user() {
    expect_all_speak(&run_all(user_command()), false);
}

/// Every proxy with every variant to clients and HTTP/1.1 behind it, and with HTTP/2 to clients and every
/// variant behind it. As root and, in the first part, as an ordinary
/// user.
#[test]
fn every_proxy_supports_its_variants_on_both_sides() {
    let _machine = machine();
    let place = folder();
    let run = |mut command: Command, name: &str, args: &[String]| {
        let out = place.path().join(name);
        command.args(["run", "proxies", "--runs", "1", "--workload", "small", "--out"]).arg(&out).args(args);
        let ended = Ended::of(command.current_dir(place.path()).output().unwrap());
        ended.expect_measured();
        (summary(&out), out)
    };
    let fronts: Vec<String> = PROXIES
        .iter()
        .flat_map(|(proxy, ..)| ["--server".to_owned(), format!("{proxy}-h1")])
        .chain(["--server".to_owned(), "direct".to_owned()])
        .collect();
    for (name, command) in [("root", Command::new(H123)), ("user", user_command())] {
        let (summary, out) = run(command, name, &fronts);
        for (proxy, spoken, _) in PROXIES {
            for variant in spoken {
                expect_sound(cell(&summary, &[&format!("{proxy}-h1"), variant]), 3.0, 20_000.0);
            }
        }
        // The request went through both servers, by their logs.
        let report: Value =
            serde_json::from_str(&std::fs::read_to_string(out.join("plan.json")).unwrap()).unwrap();
        let is_h2_by_nginx = |run: &&Value| {
            let cell = usize::try_from(run["cell"].as_u64().unwrap()).unwrap();
            let levels = report["cells"][cell]["levels"].to_string();
            levels.contains("nginx-h1") && levels.contains("\"h2\"")
        };
        let number = report["runs"].as_array().unwrap().iter().find(is_h2_by_nginx).unwrap()["run"].clone();
        for (server, version) in [("server", "HTTP/2.0"), ("back", "HTTP/1.1")] {
            let log = out.join(format!("logs/run-{:06}/{server}/access.log", number.as_u64().unwrap()));
            let log = std::fs::read_to_string(log).unwrap();
            assert_eq!(
                log.lines().filter(|line| line.contains(version) && line.contains("GET")).count(),
                3,
                "{log}"
            );
        }
    }
    let backs: Vec<String> = PROXIES
        .iter()
        .flat_map(|(proxy, _, backs)| backs.iter().map(move |back| format!("{proxy}-{back}")))
        .filter(|server| !server.ends_with("-h1"))
        .flat_map(|server| ["--server".to_owned(), server])
        .chain(["--variant", "h2", "--server", "direct"].map(str::to_owned))
        .collect();
    let (summary, _) = run(Command::new(H123), "backs", &backs);
    for (proxy, _, backs) in PROXIES {
        for back in backs.iter().filter(|back| **back != "h1") {
            expect_sound(cell(&summary, &[&format!("{proxy}-{back}"), "h2"]), 3.0, 20_000.0);
        }
    }
}

/// Apache pushes what a page names, where the study has it pushed and the client takes it.
#[test]
fn a_server_pushes_where_a_study_wants_it() {
    let _machine = machine();
    let place = folder();
    let study = r#"
question = "What is pushed?"
metric = "page_load_time"
baseline = { server = "asked" }
margin = "3%"
runs = 1
[matrix]
variant = ["h2c", "h2"]
server = ["asked", "pushed"]
network = ["lan"]
workload = ["page"]
[workload.page]
kind = "page"
page = "small"
[server.asked]
use = "apache"
[server.pushed]
use = "apache"
set = { push = true }
hold = { http2 = { push = true } }
"#;
    std::fs::write(place.path().join("study.toml"), study).unwrap();
    let out = place.path().join("out");
    let mut command = Command::new(H123);
    command.args(["run", "study.toml", "--out"]).arg(&out).current_dir(place.path());
    let ended = Ended::of(command.output().unwrap());
    ended.expect_measured();
    let summary = summary(&out);
    for variant in ["h2c", "h2"] {
        let bytes = |server| median(cell(&summary, &[server, variant]), "wire_bytes_down");
        // What is pushed is not requested.
        assert!(bytes("pushed") < bytes("asked") + 1_000.0, "{} {}", bytes("pushed"), bytes("asked"));
        assert_eq!(median(cell(&summary, &["pushed", variant]), "pushes_used"), 2.0);
    }
}

/// Without root, from the mirror of the machine's own apt configuration; nothing of the system changes.
#[test]
fn newer_servers_are_installed_and_nginx_has_http3() {
    let place = folder();
    let servers = place.path().join("servers");
    let mut command = user_command();
    command.args(["servers", "install", "--folder"]).arg(&servers).current_dir(place.path());
    Ended::of(command.output().unwrap()).expect(0);
    let left: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["servers"], "nothing else is left");
    let with = |mut command: Command| {
        command.env("H123_SERVERS", &servers);
        command
    };
    let listed = Ended::of(with(user_command()).arg("servers").output().unwrap()).expect(0);
    for server in ["nginx", "caddy", "apache", "haproxy", "lighttpd", "nghttpd", "nghttpx"] {
        let is_installed =
            |line: &str| line.trim_start().starts_with(server) && line.contains(servers.to_str().unwrap());
        assert!(listed.stdout.lines().any(is_installed), "{}", listed.stdout);
    }
    expect_all_speak(&run_all(with(user_command())), true);
    let out = place.path().join("proxied");
    let mut proxied = with(Command::new(H123));
    proxied.args(["run", "proxies", "--runs", "1", "--workload", "small", "--variant", "h3"]);
    proxied.args(["--server", "direct", "--server", "haproxy-h1", "--server", "nginx-h1", "--out"]).arg(&out);
    let ended = Ended::of(proxied.current_dir(place.path()).output().unwrap());
    ended.expect_measured();
    for proxy in ["haproxy-h1", "nginx-h1"] {
        expect_sound(cell(&summary(&out), &[proxy, "h3"]), 3.0, 20_000.0);
    }
    let mut command = with(user_command());
    external::expect_http3(&mut command, place.path());
    let external =
        Command::new(H123).args(["servers", "install", "--folder"]).arg(place.path()).output().unwrap();
    let refused = Ended::of(external).expect(2);
    assert!(refused.stderr.contains("contains other files"), "{}", refused.stderr);
}

/// Debian packages lighttpd's TLS module separately.
#[test]
fn a_server_without_its_tls_module_has_the_other_variants() {
    let place = folder();
    let server = place.path().join("servers/lighttpd");
    std::fs::create_dir_all(&server).unwrap();
    for name in ["server.toml", "lighttpd.conf.jinja"] {
        let text = std::fs::read_to_string(repository().join("servers/lighttpd").join(name)).unwrap();
        std::fs::write(server.join(name), text.replace("/mod_openssl.so", "/mod_absent.so")).unwrap();
    }
    let missing = |variant| {
        format!(
            "/mod_absent.so, which {variant} requires; install it with `apt-get install lighttpd-mod-openssl`"
        )
    };
    let output = |command| Command::new(H123).arg(command).current_dir(place.path()).output().unwrap();
    let servers = Ended::of(output("servers")).expect(0).stdout;
    let row = servers.lines().find(|line| line.trim_start().starts_with("lighttpd")).unwrap();
    assert!(row.contains(" h1 h2c ") && !row.contains("OpenSSL"), "{servers}");
    let doctor = Ended::of(output("doctor")).expect(0).stdout;
    assert!(doctor.contains("✓ server lighttpd: ") && doctor.contains(", h1 h2c ("), "{doctor}");
    for text in [&servers, &doctor] {
        assert!(text.contains(&missing("h1s")) && text.contains(&missing("h2")), "{text}");
    }
}

/// The code blocks of a page, in a language.
fn code_blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(repository().join("docs").join(page)).unwrap();
    let begin = format!("```{language}\n");
    let blocks = text.split(&begin).skip(1);
    blocks.map(|rest| rest.split_once("```").unwrap().0.to_owned()).collect()
}

/// Every command of `docs/servers.md`, as root (where the tests run as root) and as an ordinary user.
#[test]
fn a_new_server_is_described_and_compared() {
    let _machine = machine();
    let place = folder();
    let described = place.path().join("servers/hypercorn");
    std::fs::create_dir_all(&described).unwrap();
    let (description, templates) = (code_blocks("servers.md", "toml"), code_blocks("servers.md", "jinja"));
    let files = ["server.toml", "hypercorn.toml.jinja", "files.py.jinja"];
    let texts: Vec<_> = description.iter().chain(&templates).collect();
    assert_eq!(texts.len(), files.len());
    for (file, text) in files.iter().zip(texts) {
        std::fs::write(described.join(file), text).unwrap();
    }
    for (index, mut command) in [Command::new(H123), user_command()].into_iter().enumerate() {
        let out: PathBuf = place.path().join(format!("out{index}"));
        let args = [
            "run",
            "quick",
            "--server",
            "hypercorn",
            "--network",
            "lan",
            "--workload",
            "large",
            "--runs",
            "1",
        ];
        command.args(args).arg("--out").arg(&out).current_dir(place.path());
        let ended = Ended::of(command.output().unwrap());
        ended.expect_measured();
        let summary = summary(&out);
        for variant in ["h1", "h1s", "h2c", "h2"] {
            expect_sound(cell(&summary, &[variant]), 55.0, 1_600_000.0);
        }
        let has_quic = Path::new("/usr/lib/python3/dist-packages/aioquic").exists();
        let expected = if has_quic { "ok" } else { "unsupported" };
        assert_eq!(cell(&summary, &["h3"])["status"], expected);
    }
    expect_last_words(place.path());
}

/// A configuration with which the server ends: the reason is its own message, and the study continues.
fn expect_last_words(place: &Path) {
    let template = place.join("servers/hypercorn/files.py.jinja");
    let broken = std::fs::read_to_string(&template).unwrap().replace("import pathlib", "import pathlob");
    std::fs::write(&template, broken).unwrap();
    let out = place.join("broken");
    let args =
        ["run", "quick", "--server", "hypercorn", "--network", "lan", "--workload", "small", "--runs", "1"];
    let ended = Command::new(H123)
        .args(args)
        .args(["--variant", "h1", "--variant", "h1s", "--out", out.to_str().unwrap()])
        .current_dir(place)
        .output()
        .unwrap();
    let ended = Ended::of(ended).expect(3);
    assert!(ended.stdout.contains("pathlob"), "{}", ended.stdout);
    let summary = summary(&out);
    for variant in ["h1", "h1s"] {
        let cell = cell(&summary, &[variant]);
        assert_eq!((&cell["status"], &cell["runs_failed"]), (&Value::from("failed"), &Value::from(1)));
        assert!(cell["reasons"].to_string().contains("pathlob"), "{cell:#}");
    }
}
