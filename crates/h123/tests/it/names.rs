//! The lab's name server, queried by the system's resolver, by curl, by h123 and by a client in this file.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::str::FromStr;
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};

use crate::permissions::user_command;
use crate::tool::{Ended, H123, folder, machine, repository};

/// What [`ask_from_inside`] asks, as `NAME TYPE` with semicolons between.
const QUESTIONS: &str = "H123_TEST_QUESTIONS";

fn lab(args: &[&str]) -> Ended {
    let files = folder();
    let mut command = Command::new(H123);
    command.arg("lab").args(args).env("TMPDIR", files.path()).current_dir(repository());
    Ended::of(command.output().unwrap())
}

/// Asks questions in a lab, as `NAME TYPE`; the answers as `NAME TYPE: DATA`, and the code where there is
/// none.
fn ask(lab_args: &[&str], questions: &str) -> (Vec<String>, Ended) {
    let probe = std::env::current_exe().unwrap();
    let script = format!(
        "{QUESTIONS}='{questions}' exec {} --exact names::the_client_of_these_tests_asks_and_is_answered --nocapture",
        probe.display()
    );
    let ended = lab(&[lab_args, &["--", "sh", "-c", &script]].concat()).expect(0);
    let answers = ended.stdout.lines().filter_map(|line| line.strip_prefix("answer ")).map(str::to_owned);
    (answers.collect(), ended)
}

/// Outside a lab it builds one and starts itself there; inside, it sends the queries of the environment.
#[test]
fn the_client_of_these_tests_asks_and_is_answered() {
    if let Ok(questions) = std::env::var(QUESTIONS) {
        return ask_from_inside(&questions);
    }
    let _machine = machine();
    let (answers, _) = ask(&["lan", "-q", "--dns", "1ms"], "server A;nobody A");
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(answers[0].starts_with("server A: 10.123."), "{answers:?}");
}

fn ask_from_inside(questions: &str) {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap();
    let server = text.lines().find_map(|line| line.strip_prefix("nameserver ")).unwrap();
    let server = SocketAddr::new(IpAddr::from_str(server).unwrap(), 53);
    for question in questions.split(';') {
        let (name, kind) = question.split_once(' ').unwrap();
        let mut message = Message::query();
        let name = Name::from_str(&format!("{name}.")).unwrap();
        message.add_query(Query::query(name, RecordType::from_str(kind).unwrap()));
        let bytes = message.to_vec().unwrap();
        let began = Instant::now();
        let over_udp = over_udp(server, &bytes);
        println!("took {} us", began.elapsed().as_micros());
        let answer = Message::from_vec(&over_udp).unwrap();
        assert_eq!(answer.metadata.id, message.metadata.id);
        assert_eq!(Message::from_vec(&over_tcp(server, &bytes)).unwrap().answers, answer.answers);
        if answer.answers.is_empty() {
            println!("answer {question}: {:?}", answer.metadata.response_code);
        }
        for record in &answer.answers {
            println!("answer {question}: {}", record.data);
        }
    }
}

fn over_udp(server: SocketAddr, question: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.send_to(question, server).unwrap();
    let mut answer = vec![0; 4096];
    let length = socket.recv(&mut answer).unwrap();
    answer.truncate(length);
    answer
}

fn over_tcp(server: SocketAddr, question: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(&u16::try_from(question.len()).unwrap().to_be_bytes()).unwrap();
    stream.write_all(question).unwrap();
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer).unwrap();
    answer
}

#[test]
fn a_lab_has_the_names_of_its_nodes_at_a_distance() {
    let _machine = machine();
    let questions = "server A;server AAAA;client A;server-v6 AAAA;2.0.123.10.in-addr.arpa PTR;nobody A";
    let (answers, ended) = ask(&["lan", "--dns", "20ms"], questions);
    assert_eq!(
        answers,
        [
            "server A: 10.123.0.2",
            "server AAAA: fd12:3123:123::2",
            "client A: 10.123.0.1",
            "server-v6 AAAA: fd12:3123:123::2",
            "2.0.123.10.in-addr.arpa PTR: server.",
            "nobody A: NXDomain",
        ]
    );
    let took = ended.stdout.lines().filter_map(|line| line.strip_prefix("took ")?.strip_suffix(" us"));
    let took_us: Vec<u64> = took.map(|us| us.parse().unwrap()).collect();
    assert!(
        took_us.len() == 6 && took_us.iter().all(|us| *us >= 20_000),
        "nearer than configured: {took_us:?}"
    );
    assert!(took_us.iter().any(|us| *us < 60_000), "much farther than configured: {took_us:?}");
    assert!(ended.stderr.contains("client-server: no packets"), "on its own link: {}", ended.stderr);
    assert!(ended.stderr.contains("client-names: up "), "{}", ended.stderr);
}

#[test]
fn the_systems_resolver_asks_it_as_root_and_as_a_user() {
    let _machine = machine();
    let script =
        "getent ahostsv4 server && getent hosts client-v6 && ! getent hosts nobody && cat /etc/resolv.conf";
    let args = ["lab", "campus", "--dns", "5ms", "--node", "client", "--", "sh", "-c"];
    let script = script.replace("server", "web-server").replace("client-v6", "video-server-v6");
    for mut command in [user_command(), Command::new(H123)] {
        let files = folder();
        command.args(args).arg(&script).env("TMPDIR", files.path()).current_dir("/");
        let ended = Ended::of(command.output().unwrap()).expect(0);
        assert!(ended.stdout.contains("192.168.2.2"), "{}", ended.stdout);
        assert!(ended.stdout.contains("fd12:3123:123:1::3"), "{}", ended.stdout);
        assert!(ended.stdout.contains("nameserver 10.123."), "{}", ended.stdout);
        let line = ended.stderr.lines().find(|line| line.starts_with("client-names: ")).unwrap();
        assert!(!line.ends_with("no packets"), "{line}");
    }
    let own = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    assert!(!own.contains("10.123."), "the machine's own file is unchanged");
}

#[test]
fn servers_are_announced_and_the_dns_phase_is_real() {
    let _machine = machine();
    let (answers, _) = ask(
        &["lan", "--dns", "0ms", "--serve", "--serve", "client=nginx"],
        "server HTTPS;_8442._https.server HTTPS;client HTTPS;server A;server AAAA",
    );
    assert!(answers.contains(&"server A: 10.123.0.2".to_owned()), "{answers:#?}");
    assert!(answers.contains(&"server AAAA: NoError".to_owned()), "servers have no IPv6: {answers:#?}");
    let own: Vec<&String> = answers.iter().filter(|answer| answer.starts_with("server HTTPS: ")).collect();
    for (priority, alpn, port) in [(1, "h3", 8443), (2, "h2", 8442), (3, "http/1.1", 8441)] {
        let is_it = |answer: &&&String| {
            answer.contains(&format!("HTTPS: {priority} server. alpn={alpn}"))
                && answer.contains(&format!("port={port}"))
                && answer.contains("ipv4hint=10.123.0.2")
        };
        assert_eq!(own.iter().filter(is_it).count(), 1, "{alpn} in {answers:#?}");
    }
    assert_eq!(answers.iter().filter(|answer| answer.starts_with("_8442._https.server")).count(), 3);
    let nginx: Vec<&String> = answers.iter().filter(|answer| answer.starts_with("client HTTPS: ")).collect();
    assert!(nginx.iter().any(|answer| answer.contains("alpn=h2")), "what it serves here: {answers:#?}");
    let script = "$H123 trace https://server:8442/bytes/9 --variant h2 --cacert $H123_CA --json && \
                  curl --silent --fail --output /dev/null --cacert $H123_CA --write-out '\\n%{time_namelookup}\\n' https://server:8441/bytes/9";
    let ended = lab(&["lan", "--dns", "50ms", "--serve", "--", "sh", "-c", script]).expect(0);
    let dns_ns = ended.stdout.split("\"dns_ns\":").nth(1).unwrap();
    let dns_ns: u64 =
        dns_ns.trim_start().split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    assert!(dns_ns >= 50_000_000, "{dns_ns} in {}", ended.stdout);
    let lookup: f64 = ended.stdout.lines().last().unwrap().parse().unwrap();
    assert!(lookup >= 0.05, "{lookup} s in {}", ended.stdout);
}

#[test]
fn wrong_distances_are_one_line() {
    for (args, expected) in [
        (&["lan", "--dns", "20", "--", "true"][..], "--dns: `20` is not a duration"),
        (&["direct", "--dns", "20ms", "--", "true"], "--dns: `direct` has no nodes"),
        (&["campus", "--dns", "1ms", "--node", "switch", "--", "true"], "--dns: the switch `switch`"),
    ] {
        let ended = lab(args).expect(2);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
    }
}

/// Loads of a little page that begin with a DNS lookup, over two networks.
const STUDY: &str = "question = 'How long is a DNS lookup?'\nmetric = 'page_load_time'\nmargin = '10%'\nruns = 1\nseed = 1\n\
    dns = '60ms'\nbaseline = { variant = 'h1s' }\n[matrix]\nvariant = ['h1s', 'h3']\nserver = ['origin']\n\
    network = ['lan']\nworkload = ['page']\n[workload.page]\nkind = 'page'\npage = 'small'\n";
const DNS_LOOKUP_NS: u64 = 60_000_000;

#[test]
fn a_study_about_the_dns_lookup_has_to_ask_for_one() {
    let place = folder();
    let text = STUDY.replace("dns = '60ms'\n", "").replace("page_load_time", "dns_lookup_time");
    std::fs::write(place.path().join("study.toml"), text).unwrap();
    let output = Command::new(H123).args(["plan", "study.toml"]).current_dir(place.path()).output().unwrap();
    let ended = Ended::of(output).expect(2);
    let expected = "study.toml:2:10: `metric`: `dns_lookup_time` requires `dns`";
    let first = ended.stderr.lines().next().unwrap_or_default();
    // The excerpt of the file follows.
    assert!(first.contains(expected) && ended.stderr.lines().count() == 4, "{}", ended.stderr);
}

#[test]
fn a_studys_clients_look_the_server_up_before_they_connect() {
    let _machine = machine();
    let place = folder();
    std::fs::write(place.path().join("study.toml"), STUDY).unwrap();
    let args = ["run", "study.toml", "-q", "--out", "out"];
    let ended = Ended::of(Command::new(H123).args(args).current_dir(place.path()).output().unwrap());
    ended.expect_measured();
    let out = place.path().join("out");
    let records: Vec<_> = store::ResultFolder::open(&out).unwrap().records().unwrap().collect();
    assert_eq!(records.len(), 2);
    for record in records {
        let record = record.unwrap();
        assert!(record.outcome.is_ok(), "{:?}", record.outcome);
        let dns_lookup = record.clients[0].dns_lookup.unwrap();
        assert!(dns_lookup.ended_ns - dns_lookup.began_ns >= DNS_LOOKUP_NS, "{dns_lookup:?}");
        assert!(
            record.connections.iter().all(|row| row.opened_ns >= dns_lookup.ended_ns),
            "no client connects before"
        );
        let asked = record.links.iter().find(|link| link.link == "client-names").unwrap();
        // The client queries an address of each family.
        assert_eq!((asked.up.packets_in, asked.down.packets_in), (2, 2), "{asked:?}");
        let done_ns = record.samples.iter().filter_map(|sample| sample.done_ns).max().unwrap();
        let summary = crate::tool::summary(&out);
        let variant = if record.cell == 0 { "h1s" } else { "h3" };
        let cell = crate::tool::cell(&summary, &[variant]);
        assert_eq!(crate::tool::check(cell, "dns_lookup")["result"], "pass", "{cell:#}");
        let load_ns = crate::tool::median(cell, "page_load_time");
        #[expect(clippy::cast_precision_loss, reason = "below 2^53 ns")]
        let from_question_ns = (done_ns - dns_lookup.began_ns) as f64;
        assert!((load_ns - from_question_ns).abs() < 1.0, "the DNS lookup is part of the load");
    }
    let phases = std::fs::read_to_string(out.join("figures/phases.csv")).unwrap();
    assert_eq!(phases.lines().filter(|line| line.contains(",DNS lookup,ns,")).count(), 2, "{phases}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("at a name server with an RTT of 60 ms"), "the method says so");
}

/// A name leads each node to an address that it reaches.
#[test]
fn both_sides_of_a_proxy_have_its_address_there() {
    let _machine = machine();
    for (node, other, expected) in [("client", "server", "10.123.0.2"), ("server", "client", "10.123.1.1")] {
        let also = format!("{other}=true");
        let args = ["proxied", "--dns", "1ms", "--node", node, "--also", &also];
        let (answers, _) = ask(&args, &format!("proxy A;{other} A"));
        assert_eq!(answers, [format!("proxy A: {expected}"), format!("{other} A: NXDomain")], "from {node}");
    }
}
