//! Every option of `h123 load`, once, through the command line.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::Value;

use crate::generator::Serving;
use crate::tool::{Ended, folder, h123, machine, repository};

/// `h123 load … --json`, its exit status, and what it printed.
fn load(args: &[&str], code: i32) -> (Value, Ended) {
    let ended = h123([&["load"], args, &["--json"]].concat()).expect(code);
    (serde_json::from_str(&ended.stdout).unwrap(), ended)
}

fn loaded(args: &[&str]) -> Value {
    load(args, 0).0
}

fn completed(json: &Value) -> u64 {
    json["requests"]["completed"].as_u64().unwrap()
}

/// A request as the test's server received it: the peer's address, head and body.
struct RecordedRequest {
    peer: String,
    head: String,
    body: String,
}

/// A server that answers every request with an empty body and reports the request. Its threads end with the
/// test.
fn recorder() -> (String, Receiver<RecordedRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, said) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let seen = seen.clone();
            std::thread::spawn(move || record(stream, &seen));
        }
    });
    (format!("http://{address}"), said)
}

fn record(stream: TcpStream, seen: &Sender<RecordedRequest>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        let peer = writer.peer_addr().ok()?.to_string();
        seen.send(RecordedRequest { peer, head, body: String::from_utf8(body).ok()? }).ok()?;
        writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
    }
}

fn first_lines(seen: &Receiver<RecordedRequest>) -> Vec<String> {
    seen.try_iter().map(|seen| seen.head.lines().next().unwrap().to_owned()).collect()
}

#[test]
fn an_open_loop_follows_its_schedule() {
    let _machine = machine();
    let serving = Serving::start();
    let url = serving.url(0, "/bytes/10");
    let json = loaded(&[&url, "-c", "2", "-t", "2", "--rate", "500", "-d", "400ms", "--warmup", "200ms"]);
    assert_eq!(completed(&json), 200, "the warm-up is not counted");
    assert_eq!(json["schedule"]["never_sent"], 0);
    assert!(json["schedule"]["sent_after_intended_ns"]["p99"].as_u64().is_some());
    assert_eq!(completed(&loaded(&[&url, "--rate", "1k", "-n", "50"])), 50);
    let few = loaded(&[&url, "--rate", "10", "-n", "4", "--warmup", "100ms"]);
    assert!(
        few["duration_ns"].as_u64() >= Some(400_000_000),
        "the schedule's time, not until the last: {few:#}"
    );
    for rate in [&["--rate", "500"][..], &[]] {
        let args = ["-n", "50", "--warmup", "200ms", "-c", "2", "-t", "2"];
        let json = loaded(&[&[url.as_str()], rate, &args].concat());
        assert_eq!(completed(&json), 50, "{rate:?}: the number is that of what is counted");
    }
    let stages = ["--stages", "200ms@100,200ms@100-500,100ms@500", "-c", "3"];
    assert_eq!(completed(&loaded(&[&[url.as_str()], &stages[..]].concat())), 20 + 60 + 50);
    let poisson = |seed: &str| {
        completed(&loaded(&[&url, "--rate", "1000", "-d", "300ms", "--poisson", "--seed", seed, "-c", "4"]))
    };
    let first = poisson("1");
    assert_eq!(first, poisson("1"), "the seed decides how many");
    assert!((200..400).contains(&first), "300 expected, 17 is a standard deviation: {first}");
}

#[test]
fn a_missed_schedule_is_reported_and_counted() {
    let _machine = machine();
    let serving = Serving::start();
    // One connection answers 20 requests a second, and only two may wait.
    let args = [&serving.url(0, "/delay/50"), "--rate", "200", "-d", "300ms", "--queue", "2"];
    let (json, ended) = load(&args, 3);
    let never_sent = json["schedule"]["never_sent"].as_u64().unwrap();
    assert!(never_sent > 30, "{json:#}");
    assert_eq!(never_sent + completed(&json), 60, "none is lost without being counted");
    assert!(ended.stderr.starts_with("warning: the schedule was missed:"), "{}", ended.stderr);
    assert!(json["latency_ns"]["p50"].as_u64().unwrap() >= 50_000_000);
}

#[test]
fn a_timing_script_is_replayed() {
    let _machine = machine();
    let serving = Serving::start();
    let script = folder();
    let path = script.path().join("script.tsv");
    let other = serving.url(0, "/bytes/30");
    std::fs::write(&path, format!("# one\n0\t/bytes/10\n50.5\t{other}\n120\t/bytes/10\n")).unwrap();
    let path = path.to_str().unwrap();
    let json = loaded(&[&serving.url(0, "/"), "--script", path, "-c", "2"]);
    assert_eq!(completed(&json), 3);
    assert_eq!(json["bytes"]["body"], 50);
    assert!(json["duration_ns"].as_u64().unwrap() >= 120_000_000, "{json:#}");
    assert_eq!(
        completed(&loaded(&[&serving.url(0, "/"), "--timing-script-file", path, "-t", "2", "-c", "2"])),
        3
    );
}

#[test]
fn each_connection_replays_a_script_as_h2loads_clients_do() {
    let _machine = machine();
    let serving = Serving::start();
    let script = folder();
    let path = script.path().join("script.tsv");
    std::fs::write(&path, "0\t/bytes/10\n0\t/delay/80\n30\t/bytes/20\n").unwrap();
    let path = path.to_str().unwrap();
    for (variant, offset, more) in [
        ("h1", 0, &["-t", "2"][..]),
        ("h2c", 2, &["-m", "10"]),
        ("h1", 0, &["--requests-per-connection", "1"]),
    ] {
        let url = serving.url(offset, "/");
        let args = ["--variant", variant, "--script", path, "--script-each", "-c", "5"];
        let json = loaded(&[&[url.as_str()], &args[..], more].concat());
        assert_eq!(completed(&json), 15, "{variant}: five clients, three lines");
        let by_url = json["by_url"].as_array().unwrap();
        assert!(by_url.len() == 3 && by_url.iter().all(|url| url["requests"] == 5), "{json:#}");
        if more[0] == "--requests-per-connection" {
            continue;
        }
        assert_eq!(json["connections"], 5);
        let per = &json["per_connection"]["requests"];
        assert_eq!((&per["min"], &per["max"]), (&3.into(), &3.into()), "{variant}: each the whole of it");
        // On HTTP/1.1 the third request waits behind the slow one, which is reported.
        let late_ns = json["schedule"]["sent_after_intended_ns"]["max"].as_u64().unwrap();
        assert!(variant != "h1" || late_ns >= 45_000_000, "{late_ns}");
        assert!(json["load"].as_str().unwrap().contains("all of it on each connection"), "{json:#}");
    }
}

#[test]
fn requests_are_what_was_asked_for() {
    let _machine = machine();
    let (url, seen) = recorder();
    loaded(&[&format!("{url}/a"), "-n", "1", "-X", "DELETE", "-H", "X-One: 1", "-H", "User-Agent: me"]);
    let request = seen.recv().unwrap();
    assert!(request.head.starts_with("DELETE /a HTTP/1.1\r\n"), "{}", request.head);
    assert!(request.head.contains("\r\nx-one: 1\r\n") && request.head.contains("\r\nuser-agent: me\r\n"));
    assert!(!request.head.contains("h123"), "one user-agent: {}", request.head);
    loaded(&[&format!("{url}/b"), "-n", "1", "--data", "k=v", "-H", "Host: other.test"]);
    let request = seen.recv().unwrap();
    assert!(request.head.starts_with("POST /b HTTP/1.1\r\nhost: other.test\r\n"), "{}", request.head);
    assert_eq!(request.body, "k=v");
    let folder = folder();
    let file = folder.path().join("body");
    std::fs::write(&file, "from a file").unwrap();
    loaded(&[&url, "-n", "1", "-X", "PUT", "--data", &format!("@{}", file.display())]);
    let request = seen.recv().unwrap();
    assert!(request.head.starts_with("PUT / "), "{}", request.head);
    assert_eq!(request.body, "from a file");
}

#[test]
fn an_upload_and_a_range_on_every_variant() {
    let _machine = machine();
    let serving = Serving::start();
    let folder = folder();
    let file = folder.path().join("body");
    std::fs::write(&file, vec![b'x'; 3_000_000]).unwrap();
    let data = format!("@{}", file.display());
    for (offset, variant) in (0..).zip(["h1", "h1s", "h2c", "h2", "h3"]) {
        let ca = serving.ca();
        let common = ["--variant", variant, "--cacert", &ca, "-n", "4"];
        let json = loaded(&[&[serving.url(offset, "/echo").as_str(), "--data", &data], &common[..]].concat());
        assert_eq!(completed(&json), 4, "{variant}");
        assert_eq!(json["bytes"]["body"], 4 * "3000000\n".len(), "{variant}: each answer is the length");
        assert!(json["bytes"]["sent"].as_u64().unwrap() > 12_000_000, "{variant}");
        let range = [serving.url(offset, "/bytes/1000"), "-H".into(), "Range: bytes=0-99".into()];
        let range: Vec<&str> = range.iter().map(String::as_str).chain(common).collect();
        let json = loaded(&range);
        assert_eq!(json["bytes"]["body"], 400, "{variant}");
        assert_eq!(json["statuses"]["206"], 4, "{variant}");
    }
}

#[test]
fn urls_come_from_a_list_in_order_or_at_random() {
    let _machine = machine();
    let (one, seen_one) = recorder();
    let (two, seen_two) = recorder();
    let folder = folder();
    let list = folder.path().join("urls.txt");
    std::fs::write(&list, format!("{one}/a\n{two}/x POST k=v\n/b PUT\n# none\n{one}/c\n")).unwrap();
    let list = list.to_str().unwrap();
    let json = loaded(&["--urls", list, &one, "-n", "200"]);
    assert_eq!(completed(&json), 200);
    let (of_one, of_two) = (first_lines(&seen_one), first_lines(&seen_two));
    // Each host's connection takes its own URLs in turn; their numbers depend on speed.
    let turn = ["GET /a HTTP/1.1", "PUT /b HTTP/1.1", "GET /c HTTP/1.1"];
    assert!(
        !of_one.is_empty() && of_one.iter().zip(turn.iter().cycle()).all(|(line, wanted)| line == wanted),
        "{of_one:?}"
    );
    assert!(!of_two.is_empty() && of_two.iter().all(|line| line == "POST /x HTTP/1.1"), "{of_two:?}");
    assert_eq!(of_one.len() + of_two.len(), 200);
    assert_eq!(json["connections"], 2, "one to each host");
    let drawn = |seed: &str| {
        loaded(&["--urls", list, &one, "-n", "30", "--random", "--rate", "3000", "--seed", seed]);
        (first_lines(&seen_one), first_lines(&seen_two).len())
    };
    let first = drawn("1");
    assert_eq!(first, drawn("1"));
    assert_ne!(first, drawn("2"));
    loaded(&[&format!("{one}/{{random:1-7000}}.ts"), "-n", "20", "--seed", "3"]);
    let lines = first_lines(&seen_one);
    let distinct: std::collections::BTreeSet<&String> = lines.iter().collect();
    assert!(distinct.len() > 15, "{lines:?}");
    assert!(
        lines.iter().all(|line| line.starts_with("GET /") && line.ends_with(".ts HTTP/1.1")),
        "{lines:?}"
    );
}

#[test]
fn connections_are_opened_and_closed_as_asked() {
    let _machine = machine();
    let serving = Serving::start();
    for (offset, variant) in (0..).zip(["h1", "h1s", "h2c", "h2", "h3"]) {
        let (url, ca) = (serving.url(offset, "/bytes/10"), serving.ca());
        let common = [url.as_str(), "--variant", variant, "--cacert", &ca, "-n", "12"];
        let each = |requests: &str, connections: &str| {
            loaded(&[&common[..], &["--requests-per-connection", requests, "-c", connections]].concat())
        };
        let json = each("1", "2");
        assert_eq!((completed(&json), json["connections"].as_u64()), (12, Some(12)), "{variant}");
        let json = each("4", "1");
        assert_eq!((completed(&json), json["connections"].as_u64()), (12, Some(3)), "{variant}");
    }
    let url = serving.url(0, "/bytes/10");
    let json = loaded(&[&url, "--requests-per-connection", "1", "--rate", "400", "-n", "40", "-c", "20"]);
    assert_eq!(json["connections"], 40, "one for each request");
}

#[test]
fn think_times_and_ramps_slow_a_closed_loop() {
    let _machine = machine();
    let serving = Serving::start();
    let url = serving.url(0, "/bytes/10");
    let json = loaded(&[&url, "-n", "6", "--think-time", "20ms"]);
    assert!(json["duration_ns"].as_u64().unwrap() >= 5 * 20_000_000, "{json:#}");
    assert_eq!(completed(&loaded(&[&url, "-n", "20", "-c", "4", "--think", "0ms-2ms"])), 20);
    let json = loaded(&[&url, "-d", "300ms", "-c", "3", "--ramp-up", "100s"]);
    assert_eq!(json["connections"], 1, "the second comes after 33 s");
    assert_eq!(loaded(&[&url, "-d", "300ms", "-c", "3", "--ramp-up", "100ms"])["connections"], 3);
}

#[test]
fn limits_of_time_are_failures_of_their_kind() {
    let _machine = machine();
    let serving = Serving::start();
    for (offset, variant) in (0..).zip(["h1", "h1s", "h2c", "h2", "h3"]) {
        let (url, ca) = (serving.url(offset, "/delay/20000"), serving.ca());
        let args = [&url, "--variant", variant, "--cacert", &ca, "-n", "3", "-m", "3", "--timeout", "50ms"];
        let (json, _) = load(&args, 3);
        assert_eq!(json["requests"]["failures"]["timeout"], 3, "{variant}: {json:#}");
    }
    // A listener that accepts nothing: TLS never begins.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let (json, ended) = load(&[&url, "-k", "-n", "2", "--connect-timeout", "60ms"], 3);
    assert_eq!(json["requests"]["failures"]["timeout"], 2, "{json:#}");
    drop((silent, ended));
}

#[test]
fn too_many_failures_end_a_test() {
    let _machine = machine();
    let serving = Serving::start();
    let args = [&serving.url(0, "/status/503"), "-n", "100000", "--stop-at-failed", "5%"];
    let (json, ended) = load(&args, 3);
    assert_eq!(json["requests"]["failed"], 100);
    assert!(
        ended.stderr.contains("100 of 100 requests failed, more than the limit of 5 %"),
        "{}",
        ended.stderr
    );
}

#[test]
fn sockets_are_set_as_asked() {
    let _machine = machine();
    let (url, seen) = recorder();
    loaded(&[
        &url,
        "-n",
        "6",
        "-c",
        "3",
        "--requests-per-connection",
        "2",
        "--source",
        "127.0.0.2,127.0.0.3",
    ]);
    let peers: std::collections::BTreeSet<String> =
        seen.try_iter().map(|seen| seen.peer.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(peers.into_iter().collect::<Vec<_>>(), ["127.0.0.2", "127.0.0.3"]);
    let settings =
        ["--nagle", "--send-buffer", "64KiB", "--receive-buffer", "64KiB", "--congestion-control", "reno"];
    assert_eq!(completed(&loaded(&[&[url.as_str(), "-n", "5"], &settings[..]].concat())), 5);
    // Below the largest number that the kernel takes, far above what any machine permits.
    let huge = h123(["load", &url, "-n", "5", "--quiet", "--receive-buffer", "512MiB"]).expect(0);
    assert_eq!(huge.stderr.lines().count(), 1, "{}", huge.stderr);
    for part in [
        "warning: the kernel grants a receive buffer of ",
        "instead of 537 MB",
        "sysctl -w net.core.rmem_max=536870912",
    ] {
        assert!(huge.stderr.contains(part), "{part}: {}", huge.stderr);
    }
    let coalesced = loaded(&[&url, "-n", "50", "-c", "5", "--coalesce", "30us", "--fail-if", "failed>0"]);
    assert_eq!(completed(&coalesced), 50);
    assert!(coalesced["warnings"].to_string().contains("every read waited 30 µs"), "{coalesced}");
}

#[test]
fn hosts_are_where_the_options_say() {
    let _machine = machine();
    let serving = Serving::start();
    let ca = serving.ca();
    let port = serving.port + 3;
    let named = format!("https://localhost:{port}/bytes/10");
    let elsewhere = ["https://nowhere.invalid/bytes/10", "--cacert", &ca, "-n", "2", "--variant", "h2"];
    let to = format!("nowhere.invalid:443:127.0.0.1:{port}");
    let (json, _) = load(&[&elsewhere[..], &["--connect-to", &to]].concat(), 3);
    assert_eq!(json["requests"]["failures"]["tls"], 2, "the certificate is not nowhere.invalid's: {json:#}");
    assert_eq!(
        completed(&loaded(&[&elsewhere[..], &["--connect-to", &to, "--sni", "localhost"]].concat())),
        2
    );
    let resolved = format!("localhost:{port}:127.0.0.1");
    let args = [named.as_str(), "--cacert", &ca, "-n", "2", "--variant", "h2"];
    assert_eq!(completed(&loaded(&[&args[..], &["--resolve", &resolved]].concat())), 2);
    assert_eq!(completed(&loaded(&[&args[..], &["-4"]].concat())), 2);
}

#[test]
fn contradictions_are_one_line() {
    let folder = folder();
    let list = folder.path().join("list");
    std::fs::write(&list, "/a\n").unwrap();
    let list = list.to_str().unwrap();
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let url = "http://127.0.0.1:1/";
    for (args, expected) in [
        (
            &[url, "--rate", "10", "--stages", "1s@5"][..],
            "'--rate <PER_SECOND>' cannot be used with '--stages",
        ),
        (&[url, "--rate", "10", "--coalesce", "30us"], "'--coalesce <TIME>' cannot be used with"),
        (&[url, "--fail-if", "p99>5ms", "--coalesce", "30us"], "it cannot be used with --fail-if 'p99>5ms'"),
        (
            &[url, "--hgrm", "out.hgrm", "--coalesce", "30us"],
            "'--hgrm <FILE>' cannot be used with '--coalesce <TIME>'",
        ),
        (&[url, "--rate", "10", "--think-time", "1s"], "'--think-time <TIME>' cannot be used with"),
        (&[url, "--stages", "1s@5", "--ramp-up", "1s"], "'--ramp-up <TIME>' cannot be used with"),
        (&[url, "--stages", "1s@5", "-d", "1s"], "cannot be used with"),
        (&[url, "--stages", "1s@0"], "--stages without any request"),
        (
            &[url, "--script", list, "-d", "1s"],
            "'--script <FILE>' cannot be used with '--duration <DURATION>'",
        ),
        (&[url, "--script", list, "--urls", list], "'--script <FILE>' cannot be used with '--urls <FILE>'"),
        (&[url, "--script-each"], "--script-each requires --script"),
        (
            &[url, "--script", list, "--script-each", "-n", "5"],
            "'--script-each' cannot be used with '--requests <REQUESTS>'",
        ),
        (&[url, "--script", list], "line 1: `/a` is not a request; write `<milliseconds>"),
        (&["--urls", list], "the path `/a` has no host; add a URL"),
        (&[url, "--urls", empty.to_str().unwrap()], &format!("--urls {} contains no URL", empty.display())),
        (
            &[url, "--cacert", empty.to_str().unwrap()],
            &format!("--cacert {}: cannot read the CA certificate", empty.display()),
        ),
        (&[url, "--cacert", "/no/such/ca"], "--cacert /no/such/ca: "),
        (&[url, "-c", "none"], "(see `h123 load --help`)"),
        (&[url, "-H", "X: a\r\nEvil: 1"], "header `X: a\\r\\nEvil: 1`: "),
        (&[url, "-X", "GET\nPUT"], "`GET\\nPUT` is not a method"),
        (&[url, "-H", "Content-Length: 9"], "header `Content-Length: 9`: h123 sets this field itself"),
        (&[url, "--urls", "/no/such/list"], "--urls /no/such/list: "),
        (&[url, "--poisson"], "--poisson requires --rate or --stages"),
        (&[url, "--random"], "--random requires --urls"),
        (&[url, "-4", "-6"], "'--ipv4' cannot be used with '--ipv6'"),
        (&[url, "-t", "2"], "2 threads for 1 connection; use"),
        (&[url, "-H", "nonsense"], "header `nonsense`: write `Name: value`"),
        (&[url, "-H", "Connection: close"], "h123 sets this field itself"),
        (&[url, "-X", "GE T"], "`GE T` is not a method"),
        (&[url, "--data", "@/no/such/file"], "cannot read the body /no/such/file: "),
        (&[url, "--connect-to", "a:b"], "--connect-to `a:b` is not a redirection"),
        (&[url, "--resolve", "a:b"], "--resolve `a:b` is not an address"),
        (&[url, "--congestion-control", "vegas"], "unknown congestion control `vegas`"),
        (&["http://127.0.0.1:1/{random:5-1}"], "`{random:5-1}` is not a range"),
    ] {
        let ended = h123([&["load"], args].concat());
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
    }
}

/// The options that a help text lists by their long names; descriptions are further to the right.
fn options_of(help: &str) -> Vec<&str> {
    let is_option = |line: &&str| line.trim_start().starts_with('-') && line.find('-') < Some(8);
    help.lines()
        .filter(is_option)
        .filter_map(|line| line.split([' ', ',', '[', '=']).find(|word| word.starts_with("--")))
        .collect()
}

/// Whether `text` contains `option` as a separate word, and not as the beginning of another option.
fn has_option(text: &str, option: &str) -> bool {
    text.match_indices(option).any(|(at, _)| {
        let after = text[at + option.len()..].chars().next();
        !after.is_some_and(|next| next.is_ascii_alphanumeric() || next == '-')
    })
}

#[test]
fn every_option_of_the_help_is_documented_and_the_rarer_ones_have_examples() {
    let help = h123(["load", "--help"]).expect(0).stdout;
    let (listed, examples) = help.split_once("\nExamples").unwrap();
    let options = options_of(listed);
    assert!(options.len() > 60 && options.contains(&"--connections"), "{options:?}");
    let docs = std::fs::read_to_string(repository().join("docs/load.md")).unwrap();
    let missing: Vec<_> =
        options.iter().filter(|option| **option != "--help" && !has_option(&docs, option)).collect();
    assert!(missing.is_empty(), "not in docs/load.md: {missing:?}");
    for option in [
        "--resume",
        "--early-data",
        "--migrate-at",
        "--push",
        "--tls",
        "--cert",
        "--samples",
        "--coalesce",
        "--resolve",
        "--connect-to",
        "--sni",
        "--script-each",
        "--stages",
    ] {
        let of_option = listed.lines().map(str::trim).filter(|line| line.starts_with("Example:"));
        let has_example =
            has_option(examples, option) || of_option.into_iter().any(|line| has_option(line, option));
        assert!(options.contains(&option) && has_example, "no {option} in:\n{examples}");
    }
    for line in examples.lines().filter(|line| line.starts_with("  ")) {
        let used = line.split_whitespace().filter(|word| word.starts_with("--"));
        for option in used {
            assert!(options.contains(&option), "{option} of an example is no option: {line}");
        }
    }
    assert!(examples.contains("SSLKEYLOGFILE=") && help.contains("{random:1-7000}"));
}
