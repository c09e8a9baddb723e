//! `h123 lab`: commands inside emulated networks, as root and as an ordinary user; and the remains of killed
//! labs.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::permissions::{user_command, user_may_be_realtime};
use crate::tool::{Ended, H123, folder, h123, machine, processes_with, repository};

/// Runs `h123 lab` with its files in a folder of the test.
fn lab(files: &TempDir, args: &[&str]) -> Ended {
    Ended::of(command(files, args).output().unwrap())
}

fn command(files: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(H123);
    command.arg("lab").args(args).env("TMPDIR", files.path()).current_dir(repository());
    command.env("H123_RUNTIME_DIR", files.path());
    command
}

/// The round trips that ping prints, in milliseconds.
fn round_trips_ms(ping: &str) -> Vec<f64> {
    let times = ping.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next()?.parse().ok());
    times.collect()
}

/// Starts a lab whose command prints `ready` and then sleeps; returns after that line.
fn sleeping(files: &TempDir, marker: &str) -> Child {
    let script = format!("echo ready; exec sleep {marker}");
    let mut child =
        command(files, &["lan", "--", "sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

fn wait_until_gone(text: &str) {
    let began = Instant::now();
    while !processes_with(text).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "left behind: {:?}", processes_with(text));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The entries of the labs' folder without its lock.
fn labs_left(files: &Path) -> Vec<String> {
    let bases = std::fs::read_dir(files).unwrap().flatten();
    let names = bases.flat_map(|base| std::fs::read_dir(base.path()).unwrap().flatten());
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != "gate")
        .collect()
}

#[test]
fn a_ping_takes_the_networks_time() {
    let _machine = machine();
    let files = folder();
    let ended = lab(&files, &["north-carolina", "--", "ping", "-n", "-c", "2", "server"]).expect(0);
    let found = round_trips_ms(&ended.stdout);
    assert_eq!(found.len(), 2, "{}", ended.stdout);
    assert!(found.iter().all(|ms| *ms >= 150.0), "faster than the network: {found:?}");
    assert!(found.iter().any(|ms| *ms < 200.0), "slower than the network by far: {found:?}");
    assert!(ended.stderr.contains("client-server: up 2 packets; down 2 packets;"), "{}", ended.stderr);
    if Path::new("/proc/sys/net/ipv6").exists() {
        let six = lab(&files, &["lan", "-q", "--", "ping", "-n", "-c", "1", "server-v6"]).expect(0);
        assert_eq!((round_trips_ms(&six.stdout).len(), six.stderr.as_str()), (1, ""), "{}", six.stdout);
    }
    assert_eq!(labs_left(files.path()), [""; 0]);
}

#[test]
fn an_ordinary_user_has_the_same() {
    let _machine = machine();
    let files = folder();
    let mut command = user_command();
    command.args(["lab", "lan", "--serve", "--", "sh", "-c"]);
    command.arg(
        "ping -n -c 1 server && curl --silent --fail --cacert $H123_CA https://server:8441/bytes/9 | wc -c",
    );
    let ended = Ended::of(command.env("TMPDIR", files.path()).current_dir("/").output().unwrap());
    let ended = ended.expect(0);
    assert!(ended.stderr.contains("h1s  https://server:8441/"), "{}", ended.stderr);
    assert_eq!(round_trips_ms(&ended.stdout).len(), 1, "{}", ended.stdout);
    assert_eq!(ended.stdout.lines().last(), Some("9"), "{}", ended.stdout);
    // `without real-time priority` where, and only where, this machine refuses it to this user.
    let warns = ended.stderr.contains("late; without real-time priority (`h123 doctor`)");
    assert_eq!(warns, !user_may_be_realtime(), "{}", ended.stderr);
}

/// A browser with its sandbox, which refuses root and needs a new user namespace.
#[test]
fn a_browser_runs_as_a_user() {
    let _machine = machine();
    for (mut command, expected) in [(Command::new(H123), "65534\n"), (user_command(), "65534\n")] {
        let files = folder();
        command.args(["lab", "lan", "-q", "--as-user", "--", "id", "-u"]);
        let ended =
            Ended::of(command.env("TMPDIR", files.path()).current_dir("/").output().unwrap()).expect(0);
        let own = rustix::process::geteuid().as_raw();
        let expected = if own == 0 { expected.to_owned() } else { format!("{own}\n") };
        assert_eq!(ended.stdout, expected);
    }
    let files = folder();
    let mut command = user_command();
    command.args(["lab", "lan", "-q", "--serve", "--as-user", "--", "sh", "-c"]);
    let browser = "for name in chromium chromium-browser google-chrome; do command -v $name && break; done";
    command.arg(format!(
        "exec timeout 60 \"$({browser})\" --headless=new --disable-gpu --disable-dev-shm-usage --user-data-dir={} \
         --dump-dom http://server:8080/small/",
        files.path().join("profile").display()
    ));
    let mut command_in = command.env("TMPDIR", files.path()).env("HOME", files.path()).current_dir("/");
    command_in = command_in.env_remove("XDG_RUNTIME_DIR").env_remove("DBUS_SESSION_BUS_ADDRESS");
    let ended = Ended::of(command_in.output().unwrap()).expect(0);
    assert!(ended.stdout.contains("<html") || ended.stdout.contains("<!DOCTYPE"), "{}", ended.stdout);
}

#[test]
fn the_command_has_the_terminals_place() {
    let _machine = machine();
    let files = folder();
    // Standard input, output, environment, working directory and exit status are the command's.
    let script = "read line; echo \"$line $H123_LAB $H123_NODE\"; pwd; exit 7";
    let mut child = command(&files, &["lan", "-q", "--node", "server", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"spoken\n").unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap()).expect(7);
    assert_eq!(ended.stdout, format!("spoken lan server\n{}\n", repository().display()));
    assert_eq!(lab(&files, &["lan", "-q", "--", "sh", "-c", "kill -KILL $$"]).code, 128 + 9);
    let absent = lab(&files, &["lan", "-q", "--", "no-such-command"]).expect(127);
    assert!(absent.stderr.contains("there is no command `no-such-command`"), "{}", absent.stderr);
    let data = lab(&files, &["lan", "-q", "--", "/etc/passwd"]).expect(126);
    assert!(data.stderr.contains("/etc/passwd"), "{}", data.stderr);
}

#[test]
fn signals_reach_the_command_and_its_answer_counts() {
    let _machine = machine();
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::HUP, "HUP")] {
        let files = folder();
        let script = format!("trap 'echo told; exit 3' {name}; echo ready; while :; do sleep 0.05; done");
        let mut child = command(&files, &["lan", "-q", "--", "sh", "-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "told");
        assert_eq!(child.wait().unwrap().code(), Some(3));
    }
    // Ctrl-C of a terminal reaches both; the tool leaves it to the command.
    let files = folder();
    let mut child = sleeping(&files, "86401.5");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(child.try_wait().unwrap().is_none(), "the command goes on, so the lab does");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn the_next_start_and_clean_remove_the_remains_of_a_killed_lab() {
    let _machine = machine();
    let files = folder();
    for (round, removed_by) in ["clean", "start"].into_iter().enumerate() {
        let marker = format!("8640{}.25", round + 2);
        let mut child = sleeping(&files, &marker);
        let pid = child.id().to_string();
        let listed = lab(&files, &["--list"]).expect(0);
        assert!(listed.stdout.contains(&pid) && listed.stdout.contains("running"), "{}", listed.stdout);
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        wait_until_gone(&format!("sleep {marker}"));
        let listed = lab(&files, &["--list"]).expect(0);
        assert!(listed.stdout.contains(&pid) && listed.stdout.contains("killed"), "{}", listed.stdout);
        if removed_by == "clean" {
            let cleaned = lab(&files, &["--clean"]).expect(0);
            assert!(cleaned.stdout.contains(&pid), "{}", cleaned.stdout);
        } else {
            lab(&files, &["lan", "-q", "--", "true"]).expect(0);
        }
        assert_eq!(labs_left(files.path()), [""; 0], "after {removed_by}");
        let listed = lab(&files, &["--list"]).expect(0);
        assert!(listed.stdout.contains("no lab runs"), "{}", listed.stdout);
    }
}

/// A lab that is killed at any moment leaves nothing, and the next one starts.
#[test]
fn a_lab_killed_during_its_start_does_not_block_the_next() {
    let _machine = machine();
    let (files, logs) = (folder(), folder());
    let pcap = logs.path().join("lab.pcapng");
    let pcap = pcap.to_str().unwrap();
    let as_either = |is_user: bool| {
        let mut tool = if is_user { user_command() } else { Command::new(H123) };
        tool.arg("lab").env("TMPDIR", files.path()).env("H123_RUNTIME_DIR", files.path()).current_dir("/");
        tool
    };
    for (round, after_ms) in [0, 60, 120, 180, 240, 300, 400, 500, 600, 700].into_iter().enumerate() {
        let is_user = round % 2 == 1;
        let words = logs.path().join(format!("{after_ms}.log"));
        let mut starting = as_either(is_user);
        starting.args(["shared", "--cross", "--dns", "3ms", "--pcap", &format!("{pcap}-{after_ms}")]);
        starting.args(["--", "sleep", "86410"]).stdout(Stdio::null());
        let mut child = starting.stderr(std::fs::File::create(&words).unwrap()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(after_ms));
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        let status = child.wait().unwrap();
        let words = std::fs::read_to_string(words).unwrap();
        assert_eq!(status.signal(), Some(9), "after {after_ms} ms: {words}");
        let began = Instant::now();
        while let left @ [_, ..] = &processes_in(files.path())[..] {
            assert!(began.elapsed() < Duration::from_secs(20), "after {after_ms} ms left behind: {left:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut next = as_either(is_user);
        next.args(["shared", "--cross", "--dns", "3ms", "--pcap", &format!("{pcap}-{after_ms}")]);
        Ended::of(next.args(["--", "true"]).output().unwrap()).expect(0);
        assert_eq!(labs_left(files.path()), [""; 0], "after {after_ms} ms");
    }
}

/// The processes whose files are in a folder, by their environment: processes of a lab inherit it.
fn processes_in(files: &Path) -> Vec<String> {
    let needle = format!("TMPDIR={}", files.display());
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_one = |process: &PathBuf| {
        let variables = std::fs::read(process.join("environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|variable| variable == needle.as_bytes())
    };
    let describe = |process: PathBuf| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        format!("{}: {}", process.display(), String::from_utf8_lossy(&line).replace('\0', " "))
    };
    processes.filter(is_one).map(describe).collect()
}

#[test]
fn wrong_usage_is_one_line_and_starts_nothing() {
    for (args, expected) in [
        (&["lann", "--", "true"][..], "`lann` is not a topology or a network; did you mean `lan`?"),
        (&["north-carolna", "--", "true"], "did you mean `north-carolina`?"),
        (&["lan"], "the command is missing; write one after `--`, as in `h123 lab lan -- bash`"),
        (&["lan", "--node", "sever", "--", "true"], "did you mean `server`?"),
        (&["lan", "--serve", "ngnx", "--", "true"], "--serve: `ngnx` is not a server"),
        (&["direct", "--network", "tokyo", "--", "true"], "--network requires an emulated network"),
        (&["direct", "--backend", "netem", "--", "true"], "--backend requires an emulated network"),
        (&["lan", "--serve", "--serve", "server=nginx", "--", "true"], "the node `server` has two servers"),
        (
            &["campus", "--serve", "switch=origin", "--", "true"],
            "--serve: `switch` is a switch and has no address",
        ),
        (&["lan", "--dns", "11s", "--", "true"], "--dns: `11s` is too long; write at most 10s"),
        (&["lan", "--serve", "clint=origin", "--", "true"], "did you mean `client`?"),
        (
            &["lan", "--also", "client", "--", "true"],
            "--also: `client` is not a command in a node; write NODE=SHELL_COMMAND",
        ),
        (&["campus", "--node", "web-sever", "--", "true"], "did you mean `web-server`?"),
        (&["proxied", "--network", "lan", "--", "true"], "write LINK=NETWORK"),
        (&["proxied", "--network", "proxy-sever=lan", "--", "true"], "did you mean `proxy-server`?"),
        (&["campus", "--cross", "--", "true"], "--cross: `campus` has no cross-traffic"),
        (&["direct", "--cross", "--", "true"], "--cross: `direct` has no cross-traffic"),
        (&["./no-such.toml", "--", "true"], "cannot read the topology `./no-such.toml`"),
        (&["lan", "ping", "-c", "2"], "the command comes after `--`, as in `h123 lab lan -- ping …`"),
        (&[], "<NAME>"),
        (&["--list", "--clean"], "--clean"),
        (&["lan", "--describe", "--", "true"], "--describe"),
    ] {
        let files = folder();
        let ended = lab(&files, args).expect(2);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
        assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_network_is_described() {
    let ended = h123(["lab", "north-carolina", "--describe"]).expect(0);
    for text in [
        "node server: 10.123.0.2/24, fd12:3123:123::2/64",
        "link client-server: north-carolina, RTT 150 ms, 50 Mbit/s",
        "client → server: 75 ms",
        "source: ",
    ] {
        assert!(ended.stdout.contains(text), "{text} in:\n{}", ended.stdout);
    }
}

#[test]
fn a_campus_has_a_router_a_switch_and_two_servers() {
    let _machine = machine();
    let files = folder();
    let args = ["campus", "--network", "client-router=north-carolina", "--node", "client", "--"];
    let script = "ping -n -c 1 192.168.2.2 && ping -n -c 1 video-server && ip route get 192.168.2.3";
    let ended = lab(&files, &[&args[..], &["sh", "-c", script]].concat()).expect(0);
    let found = round_trips_ms(&ended.stdout);
    assert!(found.len() == 2 && found.iter().all(|ms| *ms >= 150.0), "{}", ended.stdout);
    assert!(ended.stdout.contains("ttl=63"), "one router on the route: {}", ended.stdout);
    assert!(ended.stdout.contains("via 192.168.1.1"), "{}", ended.stdout);
    let bridge = lab(
        &files,
        &["campus", "--node", "switch", "-q", "--", "ip", "-d", "link", "show", "master", "bridge"],
    );
    assert_eq!(bridge.expect(0).stdout.matches("bridge_slave").count(), 3, "a real bridge with three ports");
}

#[test]
fn delays_of_chained_links_add_up() {
    let _machine = machine();
    let files = folder();
    let text = "title = \"Two links\"\n[[node]]\nname = \"client\"\n[[node]]\nname = \"middle\"\nrole = \"router\"\n\
                [[node]]\nname = \"server\"\n[[link]]\nends = [\"client\", \"middle\"]\nnetwork = \"north-carolina\"\n\
                [[link]]\nends = [\"middle\", \"server\"]\nnetwork = \"frankfurt\"\n";
    let file = files.path().join("chain.toml");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    for server in ["server", "server-v6"] {
        let ended = lab(&files, &[file, "--", "ping", "-n", "-c", "3", server]).expect(0);
        let found = round_trips_ms(&ended.stdout);
        // 150 ms and 7 ms; a busy machine may add to some, but none can be faster.
        assert!(found.len() == 3 && found.iter().all(|ms| *ms >= 157.0), "{server}: {found:?}");
        assert!(found.iter().any(|ms| *ms < 180.0), "{server}: {found:?}");
        for link in
            ["client-middle: up 3 packets; down 3 packets", "middle-server: up 3 packets; down 3 packets"]
        {
            assert!(ended.stderr.contains(link), "{link} in {}", ended.stderr);
        }
    }
    std::fs::write(file, text.replace("frankfurt", "frankfort")).unwrap();
    let wrong = lab(&files, &[file, "--", "true"]).expect(2);
    assert!(wrong.stderr.contains("chain.toml:14:11: `frankfort` is not a network"), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("did you mean `frankfurt`?"), "{}", wrong.stderr);
}

#[test]
fn every_site_has_its_own_distance_and_a_proxy_forwards_nothing() {
    let _machine = machine();
    let files = folder();
    for (site, least_ms, most_ms) in
        [("tokyo", 280.0, 320.0), ("frankfurt", 7.0, 40.0), ("amsterdam", 0.3, 30.0)]
    {
        let ended =
            lab(&files, &["sites", "-q", "--node", site, "--", "ping", "-n", "-c", "2", "server"]).expect(0);
        let found = round_trips_ms(&ended.stdout);
        assert!(found.len() == 2 && found.iter().all(|ms| *ms >= least_ms), "{site}: {found:?}");
        assert!(found.iter().any(|ms| *ms < most_ms), "{site}: {found:?}");
    }
    let script = "ping -n -c 1 proxy && ! ping -n -c 1 -W 1 server";
    let ended = lab(&files, &["proxied", "-q", "--", "sh", "-c", script]).expect(0);
    assert_eq!(round_trips_ms(&ended.stdout).len(), 1, "{}", ended.stdout);
}

/// The packets of this direction in a link's line, and those that its full queue dropped.
fn packets_and_drops(ended: &Ended, link: &str, direction: &str) -> (u64, u64) {
    let line = ended.stderr.lines().find(|line| line.starts_with(&format!("{link}: "))).unwrap();
    let part = line.split([':', ';']).find_map(|part| part.trim().strip_prefix(direction)).unwrap();
    let number = |text: &str| text.trim().split(' ').next().unwrap().parse().unwrap();
    let dropped = part.split(',').find(|part| part.ends_with("dropped by the full queue"));
    (number(part), dropped.map_or(0, number))
}

#[test]
fn cross_traffic_shares_the_queue() {
    let _machine = machine();
    let ping = ["ping", "-n", "-c", "8", "-i", "0.3", "server"];
    let files = folder();
    let alone = lab(&files, &[&["shared", "--"][..], &ping].concat()).expect(0);
    assert_eq!(packets_and_drops(&alone, "near-far", "down"), (8, 0), "{}", alone.stderr);
    let flows = [
        "http://cross-server:8080/bytes/100000000",
        "https://cross-server:8443/bytes/100000000 --variant h3 --cacert $H123_CA",
    ];
    for flow in flows {
        let also = format!("cross-client=$H123 load -d 20s {flow}");
        // Another congestion control may keep the queue short.
        let args = [
            "shared",
            "--congestion-control",
            "cubic",
            "--serve",
            "cross-server=origin",
            "--also",
            &also,
            "--",
        ];
        let ended = lab(&files, &[&args[..], &ping].concat()).expect(0);
        let (packets, dropped) = packets_and_drops(&ended, "near-far", "down");
        assert!(packets > 500 && dropped > 0, "the flow of others fills the queue: {}", ended.stderr);
        // The queue holds 100 ms; how full a flow keeps it does not matter here.
        let longest = round_trips_ms(&ended.stdout).into_iter().fold(0.0, f64::max);
        assert!(longest > 60.0, "{flow}: a ping waited behind it: {}", ended.stdout);
        assert!(!ended.stderr.contains("--also"), "{}", ended.stderr);
    }
    let ended = lab(&files, &[&["shared", "--cross", "--"][..], &ping].concat()).expect(0);
    assert!(packets_and_drops(&ended, "near-far", "down").0 > 500, "the topology's own: {}", ended.stderr);
    let failing = lab(&files, &["shared", "--also", "cross-client=exit 3", "--", "sleep", "0.3"]).expect(0);
    assert!(
        failing.stderr.contains("--also cross-client=exit 3: ended before the command (exit status: 3)"),
        "{}",
        failing.stderr
    );
}

#[test]
fn an_ordinary_user_has_routers_switches_and_cross_traffic_too() {
    let _machine = machine();
    let files = folder();
    let as_user = |args: &[&str]| {
        let mut command = user_command();
        command.arg("lab").args(args).env("TMPDIR", files.path()).current_dir("/");
        Ended::of(command.output().unwrap()).expect(0)
    };
    let campus = as_user(&["campus", "--node", "client", "--", "ping", "-n", "-c", "1", "192.168.2.2"]);
    assert!(campus.stdout.contains("ttl=63"), "{}", campus.stdout);
    let also = "cross-client=$H123 load -d 20s http://cross-server:8080/bytes/100000000";
    let args = ["shared", "--serve", "cross-server=origin", "--also", also, "--", "sleep", "2"];
    let shared = as_user(&args);
    assert!(packets_and_drops(&shared, "near-far", "down").0 > 500, "{}", shared.stderr);
}

#[test]
fn direct_is_this_machine() {
    let _machine = machine();
    let files = folder();
    let script = r#"config=$(dirname "$H123_CA")/server/config.json
        port=$(sed -n 's/.*"h1s": "127.0.0.1:\([0-9]*\)".*/\1/p' "$config")
        curl --silent --fail --cacert "$H123_CA" "https://localhost:$port/bytes/9" | wc -c; readlink /proc/self/ns/net"#;
    let ended = lab(&files, &["direct", "--serve", "--", "sh", "-c", script]).expect(0);
    let own = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(ended.stdout, format!("9\n{}\n", own.display()), "{}", ended.stderr);
}

/// Keys of a network instead of a file, and a second and third process that enter and change the running lab.
#[test]
fn a_network_of_options_is_entered_and_changed() {
    let _machine = machine();
    let files = folder();
    for as_user in [false, true] {
        let lab = |args: &[&str]| {
            let mut tool = if as_user { user_command() } else { Command::new(H123) };
            tool.arg("lab").args(args).env("TMPDIR", files.path());
            tool.env("H123_RUNTIME_DIR", files.path()).current_dir("/");
            tool
        };
        let mut running = lab(&["--rtt", "40ms", "--rate", "10Mbit/s", "--queue", "100ms", "--serve", "--"]);
        running.args(["sh", "-c", "echo ready; read line; ping -n -c 1 server"]);
        let mut running =
            running.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let ask = |args: &[&str]| Ended::of(lab(args).output().unwrap());
        let script = "ping -n -c 1 client && echo $H123_LAB $H123_NODE && test -r $H123_CA && pwd; exit 7";
        let inside = ask(&["--enter", "custom", "server", "--", "sh", "-c", script]).expect(7);
        assert!(round_trips_ms(&inside.stdout)[0] >= 40.0, "{}", inside.stdout);
        assert!(inside.stdout.ends_with("custom server\n/\n"), "{}", inside.stdout);
        let wrong = ask(&["--enter", "custom", "sever", "--", "true"]).expect(2);
        assert!(wrong.stderr.contains("did you mean `server`?"), "{}", wrong.stderr);
        let changed = ask(&["--change", "custom", "client-server", "--rtt", "90ms", "--rebind"]).expect(0);
        assert_eq!(
            changed.stdout,
            "client-server: RTT 90 ms, 10 Mbit/s, queue 125 kB; the NAT forgot its mappings\n"
        );
        for (args, expected) in [
            (&["--change", "custom", "--rtt", "90"][..], "`90` is not a duration"),
            (&["--change", "custom", "client-sever", "--rtt", "90ms"], "did you mean `client-server`?"),
            (&["--change", "custom"], "--change requires a change"),
            (&["--change", "custon", "--rtt", "1ms"], "did you mean `custom`?"),
        ] {
            let refused = ask(args).expect(2);
            assert!(refused.stderr.contains(expected), "{}", refused.stderr);
        }
        running.stdin.take().unwrap().write_all(b"go on\n").unwrap();
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(round_trips_ms(&rest.join("\n"))[0] >= 90.0, "{rest:?}");
        assert!(running.wait().unwrap().success());
        assert!(ask(&["--enter", "custom"]).expect(2).stderr.contains("no lab runs"));
    }
}

/// By hand a program chooses its own congestion control; asked, the lab fixes it.
#[test]
fn congestion_control_and_mtu_are_pinned_on_request_only() {
    let _machine = machine();
    let files = folder();
    let script = "$H123 load --congestion-control reno -d 1s http://server:8080/bytes/100000 >/dev/null & \
                  sleep 0.5; ss -tni state established; ip link show eth0; wait";
    let args = ["--rtt", "10ms", "-q", "--serve", "--", "sh", "-c", script];
    let free = lab(&files, &args).expect(0);
    assert!(free.stdout.contains(" reno ") && free.stdout.contains("mtu 1500"), "{}", free.stdout);
    let pinned = lab(&files, &[&["--congestion-control", "cubic", "--mtu", "1400B"][..], &args].concat());
    let pinned = pinned.expect(0);
    assert!(!pinned.stdout.contains(" reno ") && pinned.stdout.contains(" cubic "), "{}", pinned.stdout);
    assert!(pinned.stdout.contains("mtu 1400"), "{}", pinned.stdout);
}

/// QUIC meets a firewall that drops UDP; TCP passes.
#[test]
fn blocked_udp_stops_http3_alone() {
    let _machine = machine();
    let files = folder();
    let load = "$H123 load -n 1 --connect-timeout 1s --cacert $H123_CA";
    let script = format!(
        "{load} --variant h2 https://server:8442/bytes/9 && ! {load} --variant h3 https://server:8443/bytes/9"
    );
    let ended = lab(&files, &["lan", "--udp", "blocked", "--serve", "--", "sh", "-c", &script]).expect(0);
    assert!(ended.stderr.contains("dropped by the rule for UDP or the NAT"), "{}", ended.stderr);
}

/// A seed that the user did not choose is printed, and repeats what it decided.
#[test]
fn a_random_seed_is_printed_and_repeats_the_losses() {
    let _machine = machine();
    let files = folder();
    let ping = ["--loss", "50%", "--", "sh", "-c", "ping -n -q -c 20 -i 0.01 -W 0.2 server; true"];
    let received = |ended: &Ended| {
        let line = ended.stdout.lines().find(|line| line.contains("received")).unwrap();
        line.split(", ").nth(1).unwrap().to_owned()
    };
    let first = lab(&files, &ping).expect(0);
    let seed = first.stderr.lines().find_map(|line| line.strip_prefix("seed ")?.split(';').next());
    let seed = seed.unwrap_or_else(|| panic!("no seed in {}", first.stderr));
    let again = lab(&files, &[&["--seed", seed][..], &ping].concat()).expect(0);
    assert_eq!(received(&first), received(&again), "seed {seed}");
    assert!(!again.stderr.contains("seed "), "{}", again.stderr);
    let other = lab(&files, &ping).expect(0);
    assert!(other.stderr.contains("seed ") && !other.stderr.contains(&format!("seed {seed};")));
}

/// `ping` needs no privileges in a lab.
#[test]
fn a_user_without_privileges_pings() {
    let _machine = machine();
    let files = folder();
    for mut tool in [Command::new(H123), user_command()] {
        tool.args(["lab", "lan", "-q", "--as-user", "--", "ping", "-n", "-c", "1", "server"]);
        tool.env("TMPDIR", files.path()).env("H123_RUNTIME_DIR", files.path()).current_dir("/");
        let ended = Ended::of(tool.output().unwrap()).expect(0);
        assert_eq!(round_trips_ms(&ended.stdout).len(), 1, "{}", ended.stdout);
    }
}

/// The command has run: its status counts, and what was captured before stays readable.
#[test]
fn a_full_disk_ends_the_capture_and_not_the_command() {
    let _machine = machine();
    let files = folder();
    let file = files.path().join("full.pcapng");
    // A limit on the size of files fails like a full disk.
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec {H123} lab lan --pcap {} -- \
         sh -c 'ping -n -q -c 100 -i 0.01 -s 1400 server; exit 3'",
        file.display()
    );
    let mut tool = Command::new("sh");
    tool.args(["-c", &script]).env("TMPDIR", files.path()).env("H123_RUNTIME_DIR", files.path());
    let ended = Ended::of(tool.current_dir(repository()).output().unwrap()).expect(3);
    assert!(ended.stderr.contains("the capture is incomplete: writing a capture"), "{}", ended.stderr);
    assert!(ended.stdout.contains("100 received"), "{}", ended.stdout);
    let read = Command::new("tshark").args(["-r", file.to_str().unwrap()]).env("HOME", files.path()).output();
    assert!(read.unwrap().status.success(), "the file ends with a whole record");
}

/// A topology of hundreds of nodes is a few lines and is built within seconds, and a kill leaves nothing of
/// it.
#[test]
fn a_lab_runs_where_its_process_group_is_unknown() {
    let _machine = machine();
    // As `docker exec` starts it: the group's leader is outside of the PID namespace.
    let mut command = Command::new("unshare");
    command.args([
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        H123,
        "lab",
        "lan",
        "--",
        "echo",
        "ran",
    ]);
    let ended = Ended::of(command.stdin(Stdio::null()).output().unwrap()).expect(0);
    assert_eq!(ended.stdout, "ran\n", "{}", ended.stderr);
}

#[test]
fn hundreds_of_nodes_are_built_and_end_with_the_lab() {
    const CLIENTS: usize = 300;
    let _machine = machine();
    let files = folder();
    let topology = files.path().join("many.toml");
    let text = format!(
        "title = \"Many clients\"\n[[node]]\nname = \"client\"\ncount = {CLIENTS}\n[[node]]\nname = \"router\"\n\
         role = \"router\"\n[[node]]\nname = \"server\"\n[[link]]\nends = [\"client\", \"router\"]\nnetwork = \"dsl\"\n\
         [[link]]\nends = [\"router\", \"server\"]\n"
    );
    std::fs::write(&topology, text).unwrap();
    // Few open files suffice for the shell that starts the lab, and the command has as many.
    let script =
        "ping -n -c 1 server && ping -n -c 1 client-1 && ulimit -Sn && echo ready && exec sleep 86420";
    let mut tool = Command::new("sh");
    tool.args(["-c", "ulimit -Sn 512; exec \"$@\"", "sh", H123, "lab", topology.to_str().unwrap()]);
    tool.args(["--node", &format!("client-{CLIENTS}"), "--", "sh", "-c", script]);
    tool.env("TMPDIR", files.path()).env("H123_RUNTIME_DIR", files.path()).stdout(Stdio::piped());
    let mut child = tool.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let lines: Vec<String> = lines.take_while(|line| line != "ready").collect();
    let found = round_trips_ms(&lines.join("\n"));
    assert!(found.len() == 2 && found[1] > found[0], "to the server and to another client: {lines:#?}");
    assert_eq!(lines.last().unwrap(), "512", "{lines:#?}");
    let parent = format!("PPid:\t{}\n", child.id());
    let is_child = |entry: &std::fs::DirEntry| {
        std::fs::read_to_string(entry.path().join("status")).is_ok_and(|status| status.contains(&parent))
    };
    let children = std::fs::read_dir("/proc").unwrap().flatten().filter(is_child);
    let children: Vec<PathBuf> = children.map(|entry| entry.path()).collect();
    assert!(children.len() > CLIENTS + 2, "a process in each node: {}", children.len());
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    wait_until_gone("sleep 86420");
    let began = Instant::now();
    while children.iter().any(|path| path.exists()) {
        assert!(began.elapsed() < Duration::from_secs(20), "processes remain");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Without enough open files the lab says so before it builds anything.
#[test]
fn a_low_limit_of_open_files_is_named() {
    let _machine = machine();
    let files = folder();
    let mut tool = Command::new("sh");
    tool.args(["-c", "ulimit -n 200; exec \"$@\"", "sh", H123, "lab", "lan", "--", "true"]);
    let ended =
        Ended::of(tool.env("H123_RUNTIME_DIR", files.path()).current_dir(repository()).output().unwrap());
    let ended = ended.expect(1);
    assert!(
        ended
            .stderr
            .contains("open files: a lab of 2 nodes and 1 links needs 280, but the limit is 200; raise it"),
        "{}",
        ended.stderr
    );
}

/// UDP above the rate is dropped, so HTTP/3 takes seconds for what HTTP/2 takes in a moment.
#[test]
fn throttled_udp_slows_http3_alone() {
    let _machine = machine();
    let files = folder();
    let load = "$H123 load -n 1 --json -q --cacert $H123_CA";
    let script = format!(
        "{load} --variant h2 https://server:8442/bytes/300000 && {load} --variant h3 https://server:8443/bytes/300000"
    );
    let ended =
        lab(&files, &["lan", "-q", "--udp", "1Mbit/s", "--serve", "--", "sh", "-c", &script]).expect(0);
    let took = |json: serde_json::Value| json["duration_ns"].as_f64().unwrap() / 1e9;
    let found = serde_json::Deserializer::from_str(&ended.stdout).into_iter().map(Result::unwrap).map(took);
    let found: Vec<f64> = found.collect();
    // 300 kB at 1 Mbit/s take 2.4 s less the bucket's burst.
    assert!(found.len() == 2 && found[0] < found[1] / 2.0 && found[1] > 1.5, "{found:?}");
}

/// All packets of the client leave from another port from then on: QUIC continues, TCP does not.
#[test]
fn a_rebinding_nat_breaks_tcp_and_not_quic() {
    let _machine = machine();
    let files = folder();
    std::fs::create_dir_all(files.path().join("networks")).unwrap();
    let text = "title = \"T\"\nsource = \"S\"\nrtt = \"20ms\"\nrate = \"4Mbit/s\"\n[[timeline]]\nat = \"1500ms\"\n\
                rebinding = true\n";
    std::fs::write(files.path().join("networks/nat.toml"), text).unwrap();
    std::fs::write(files.path().join("upload"), vec![b'x'; 2_000_000]).unwrap();
    // Transfers of 4 s, so that the mapping changes in their middle. QUIC uploads: a client that only
    // receives has nothing to send from its new port once no packet arrives.
    let script = "curl --silent --output body --max-time 8 --cacert $H123_CA https://server:8442/bytes/2000000; echo $?; \
                  $H123 load -n 1 --json -q --cacert $H123_CA --variant h3 --data @upload https://server:8443/echo";
    let run = |script: &str| {
        let mut tool = command(&files, &["nat", "-q", "--serve", "--", "sh", "-c", script]);
        Ended::of(tool.current_dir(files.path()).output().unwrap()).expect(0).stdout
    };
    let (tcp, quic) = script.split_once("; echo $?; ").unwrap();
    // Packets of the old mapping are lost (28: curl's own time runs out). The server resets the connection if
    // the client's next packet is the first of the new mapping (56).
    let code = run(&format!("{tcp}; echo $?"));
    assert!(["28\n", "56\n"].contains(&code.as_str()), "{code}");
    let json: serde_json::Value = serde_json::from_str(&run(quic)).unwrap();
    assert_eq!(json["requests"]["failed"], 0, "{json:#}");
    assert_eq!(json["requests"]["completed"], 1, "{json:#}");
}
