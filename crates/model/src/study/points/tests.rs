//! Arms, sweeps and exceptions: their cells, and every fault that a person can put into them.

use std::collections::BTreeSet;

use super::super::tests::{list, parse, parse_with};
use crate::arm::Difference;
use crate::network::Loss;
use crate::plan::{Cell, Plan};
use crate::plan_text::plan_text;
use crate::tunable::Setting;

/// A study of one loop, whose `[matrix]` ends with these lines.
fn study(matrix: &str, rest: &str) -> String {
    format!(
        r#"question = "q"
metric = "request_time"
baseline = {{ variant = "h1s" }}
margin = "3%"
runs = 2
[matrix]
variant = ["h1s", "h2"]
server = ["origin"]
network = ["lan"]
workload = ["load"]
{matrix}
[workload.load]
kind = "closed"
paths = ["/bytes/1000"]
requests = 100
{rest}"#
    )
}

/// Two arms in place of variant and workload.
const ARMS: &str = r#"question = "q"
metric = "request_time"
baseline = { arm = "one connection" }
margin = "3%"
runs = 2
[matrix]
arm = ["one connection", "ten connections"]
server = ["origin"]
network = ["lan"]
[arm."one connection"]
variant = "h2c"
workload = "streams"
[arm."ten connections"]
variant = "h1"
workload = "connections"
hold = { http1_connections = 10 }
differs = ["workload", "hold"]
[workload.streams]
kind = "closed"
paths = ["/bytes/1000"]
requests = 100
streams = 20
[workload.connections]
kind = "closed"
paths = ["/bytes/1000"]
requests = 100
connections = 10
"#;

fn plan(text: &str) -> Plan {
    let plan = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    plan.check().unwrap();
    plan
}

fn labels(plan: &Plan) -> Vec<String> {
    plan.cells.iter().map(Cell::label).collect()
}

fn connections(plan: &Plan, cell: &Cell) -> u32 {
    plan.workload_of(&cell.group).workload.as_loop().unwrap().connections
}

#[track_caller]
fn assert_error(text: &str, expected: &str) {
    let error = parse(text).unwrap_err();
    assert!(error.contains(expected), "{error}\nshould contain {expected}");
}

#[test]
fn a_sweep_of_a_workload_is_a_factor() {
    let plan = plan(&study("\"workload.load.connections\" = [1, 10, 100]", ""));
    let values: Vec<u32> = plan.cells.iter().map(|cell| connections(&plan, cell)).collect();
    assert_eq!(values, [1, 10, 100, 1, 10, 100], "the last factor of the matrix changes fastest");
    assert_eq!(plan.cells[1].level("workload.load.connections"), Some("10"));
    assert_eq!(labels(&plan)[4], "h2 · origin · lan · load · connections 10");
    let names: Vec<&str> = plan.workloads.iter().map(|named| named.name.as_str()).collect();
    assert_eq!(names, ["load, connections 1", "load, connections 10", "load, connections 100"]);
    assert_eq!(plan.networks.len(), 1, "equal networks are shared");
    assert_eq!(plan.networks[0].name, "lan");
    assert_eq!(plan.runs.len(), 12);
    let block: BTreeSet<u32> = plan.runs[..6].iter().map(|run| run.cell).collect();
    assert_eq!(block.len(), 6, "a block has every cell of every point once");
}

#[test]
fn factors_have_the_order_of_the_file() {
    let text = study("", "").replace("[matrix]\n", "[matrix]\n\"network.loss\" = \"0%..2% in 3\"\n");
    let plan = plan(&text);
    assert_eq!(plan.cells[0].levels[0].factor, "network.loss");
    let losses: Vec<f64> =
        plan.cells.iter().map(|cell| plan.network_of(cell).down.loss.mean_share() * 100.0).collect();
    assert_eq!(losses, [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
    let names: Vec<&str> = plan.networks.iter().map(|network| network.name.as_str()).collect();
    assert_eq!(names, ["lan, loss 0%", "lan, loss 1%", "lan, loss 2%"]);
    assert!(plan.cells.iter().all(|cell| cell.level("network") == Some("lan")));
}

#[test]
fn a_network_key_replaces_that_of_directions_and_timeline() {
    let networks = r#"["dsl", { rtt = "20ms", loss = "9%" }, "lan"]"#;
    let text = study("\"network.rate\" = [\"3Mbit/s\"]\n\"network.rtt\" = [\"40ms\", \"80ms\"]", "");
    let plan = plan(&text.replace("[\"lan\"]", networks));
    assert_eq!(plan.networks.len(), 6);
    for network in &plan.networks {
        let rates = [&network.up, &network.down].map(|direction| direction.rate.constant_bits_per_s());
        assert_eq!(rates, [Some(3_000_000); 2], "{}", network.name);
    }
    let names: Vec<&str> = plan.networks.iter().map(|network| network.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "dsl, rtt 40ms",
            "rtt-20ms-loss-9%, rtt 40ms",
            "lan, rtt 40ms",
            "dsl, rtt 80ms",
            "rtt-20ms-loss-9%, rtt 80ms",
            "lan, rtt 80ms"
        ]
    );
    assert_eq!(plan.networks[3].rtt_ns(), 80_000_000);
    assert_eq!(plan.networks[4].rtt_ns(), 80_000_000);
    assert_ne!(plan.networks[4].up.loss, Loss::None, "other keys stay");
    assert_eq!(plan.cells[2].level("network"), Some("rtt-20ms-loss-9%"), "its level keeps its name");
}

#[test]
fn any_key_can_vary() {
    let hold = plan(&study("\"hold.http2.max_frame\" = [\"16KiB\", \"64KiB\"]", ""));
    let frames: Vec<u32> = hold.cells.iter().map(|cell| hold.pins_of(cell).http2.max_frame_bytes).collect();
    assert_eq!(frames, [16_384, 65_536, 16_384, 65_536]);
    assert!(hold.cells[0].pins.is_none() && hold.cells[1].pins.is_some());
    assert_eq!(hold.workloads.len(), 1);

    let server = plan(&study("\"server.origin.workers\" = \"1..4 in 4 log\"", ""));
    let workers = |cell: &Cell| cell.chain.set["workers"].clone();
    let found: Vec<Setting> = server.cells[..4].iter().map(workers).collect();
    assert_eq!(found, [1, 2, 3, 4].map(Setting::Number));
    let held = plan(&study("\"server.origin.hold.initial_window_packets\" = [10, 32]", ""));
    assert_eq!(held.pins_of(&held.cells[1]).initial_window_packets, 32);

    let short = plan(&study("\"workload.streams\" = [1, 5]", ""));
    let streams = |cell: &Cell| short.workload_of(&cell.group).workload.as_loop().unwrap().streams;
    assert_eq!(short.cells.iter().map(streams).collect::<Vec<_>>(), [1, 5, 1, 5]);
    assert_eq!(plan(&study("clients = [1]", "")).cells[0].level("clients"), Some("1"));

    let sites =
        study("\"topology.client\" = [\"tokyo\", \"frankfurt\"]", "").replace("[\"lan\"]", "[\"own\"]");
    let sites = plan(&sites.replace("runs = 2", "runs = 2\ntopology = \"sites\""));
    let nodes: Vec<&str> = sites.cells.iter().map(|cell| cell.group.node.as_str()).collect();
    assert_eq!(nodes, ["tokyo", "frankfurt", "tokyo", "frankfurt"]);
    let client = |cell: &Cell| {
        let topology = sites.topology_of(cell).unwrap();
        topology.nodes[topology.client].name.clone()
    };
    assert_eq!(sites.cells.iter().map(client).collect::<Vec<_>>(), nodes);
    assert!(sites.networks[0].rtt_ns() > 2 * sites.networks[1].rtt_ns());
    assert_eq!(sites.topology.client, "tokyo or frankfurt");
}

#[test]
fn two_sweeps_are_multiplied_and_name_what_depends_on_them() {
    let text =
        study("\"workload.load.connections\" = [1, 2]\n\"network.rtt\" = \"10ms..30ms step 10ms\"", "");
    let plan = plan(&text);
    assert_eq!(plan.cells.len(), 12);
    assert_eq!((plan.networks.len(), plan.workloads.len()), (3, 2));
    assert_eq!(plan.networks[2].name, "lan, rtt 30ms");
    assert_eq!(labels(&plan)[5], "h1s · origin · lan · load · connections 2 · rtt 30ms");
    for cell in &plan.cells {
        let rtt = format!("{}ms", plan.network_of(cell).rtt_ns() / 1_000_000);
        assert_eq!(cell.level("network.rtt"), Some(rtt.as_str()));
        let number = connections(&plan, cell).to_string();
        assert_eq!(cell.level("workload.load.connections"), Some(number.as_str()));
    }
}

#[test]
fn a_swept_level_may_be_the_baseline_and_published() {
    let published = "[[published]]\nsource = \"Doe\"\nlevels = { \"network.loss\" = \"2%\", variant = \"h2\" }\nratio = 2\n";
    let text = study("\"network.loss\" = [\"0%\", \"2%\"]", published);
    let text = text.replace("{ variant = \"h1s\" }", "{ \"network.loss\" = \"0%\" }");
    let plan = plan(&text);
    assert_eq!((plan.baseline.factor.as_str(), plan.baseline.value.as_str()), ("network.loss", "0%"));
    let factors: Vec<&str> = plan.published[0].levels.iter().map(|level| level.factor.as_str()).collect();
    assert_eq!(factors, ["variant", "network.loss"], "in the order of the matrix");
    let number =
        text.replace("\"network.loss\" = [\"0%\", \"2%\"]", "\"workload.load.connections\" = [1, 2]");
    let number = number.split("[[published]]").next().unwrap();
    let number = number.replace("{ \"network.loss\" = \"0%\" }", "{ \"workload.load.connections\" = 1 }");
    assert_eq!(self::plan(&number).baseline.value, "1", "a number needs no quotes");
}

#[test]
fn an_arm_is_one_factor() {
    let plan = plan(ARMS);
    assert_eq!(labels(&plan), ["one connection · origin · lan", "ten connections · origin · lan"]);
    let [one, ten] = plan.cells.as_slice() else { panic!("{:?}", plan.cells) };
    assert_eq!([one, ten].map(|cell| cell.group.variant.name()), ["h2c", "h1"]);
    assert_eq!([one, ten].map(|cell| connections(&plan, cell)), [1, 10]);
    assert_eq!([one, ten].map(|cell| plan.pins_of(cell).http1_connections), [6, 10]);
    assert_eq!(plan.workloads.len(), 2);
    assert_eq!(plan.workload_of(&ten.group).name, "connections");
    let arms: Vec<&str> = plan.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(arms, ["one connection", "ten connections"]);
    assert_eq!(plan.arms[1].differs, [Difference::Workload, Difference::Hold]);
    let again = Plan::from_json(serde_json::to_string(&plan).unwrap().as_bytes()).unwrap();
    assert_eq!(again, plan);
}

#[test]
fn arms_and_sweeps_are_multiplied() {
    let text =
        ARMS.replace("network = [\"lan\"]", "network = [\"lan\"]\n\"network.rtt\" = [\"5ms\", \"50ms\"]");
    let plan = plan(&text);
    assert_eq!(
        labels(&plan),
        [
            "one connection · origin · lan · rtt 5ms",
            "one connection · origin · lan · rtt 50ms",
            "ten connections · origin · lan · rtt 5ms",
            "ten connections · origin · lan · rtt 50ms"
        ]
    );
    assert_eq!(plan.networks.len(), 2, "both arms use the same networks");
    assert_eq!(plan.networks[1].name, "lan, rtt 50ms");
    // A sweep of a workload that one arm uses.
    let one =
        ARMS.replace("network = [\"lan\"]", "network = [\"lan\"]\n\"workload.streams.streams\" = [1, 20]");
    let one = self::plan(&one);
    assert_eq!((one.cells.len(), one.workloads.len()), (4, 3));
}

#[test]
fn sweeps_that_another_key_decides_are_refused() {
    let shadowed = ARMS.replace(
        "network = [\"lan\"]",
        "network = [\"lan\"]\n\"network.delay\" = [\"30ms\", \"40ms\"]\n\"network.rtt\" = [\"5ms\", \"50ms\"]",
    );
    let fault = parse(&shadowed).unwrap_err();
    assert!(
        fault.contains(
            "`network.delay`: the levels `30ms` and `40ms` do the same everywhere, because another key"
        ),
        "{fault}"
    );
}

#[test]
fn arms_can_bundle_servers_and_networks() {
    let text = ARMS
        .replace("server = [\"origin\"]\nnetwork = [\"lan\"]\n", "")
        .replace("variant = \"h2c\"", "variant = \"h2c\"\nserver = \"wide\"\nnetwork = \"dsl\"")
        .replace("variant = \"h1\"", "variant = \"h1\"\nserver = \"nginx\"\nnetwork = \"lan\"");
    let plan = plan(&format!("{text}[server.wide]\nuse = \"origin\"\nset = {{ workers = 4 }}\n"));
    assert_eq!(labels(&plan), ["one connection", "ten connections"]);
    assert_eq!(plan.servers, ["wide", "nginx"]);
    assert_eq!(plan.cells[0].chain.set["workers"], Setting::Number(4));
    let networks: Vec<&str> = plan.cells.iter().map(|cell| plan.network_of(cell).name.as_str()).collect();
    assert_eq!(networks, ["dsl", "lan"]);
}

#[test]
fn the_command_line_chooses_arms_and_levels() {
    let three = ARMS.replace(", \"ten connections\"]", ", \"ten connections\", \"third\"]")
        + "[arm.third]\nvariant = \"h1\"\nworkload = \"streams\"\n";
    assert_eq!(plan(&three).cells.len(), 3);
    let arms = |arms: &[&str]| parse_with(&three, &[list("matrix.arm", arms)]);
    let two = arms(&["one connection", "third"]).unwrap();
    assert_eq!(labels(&two), ["one connection · origin · lan", "third · origin · lan"]);
    let error = arms(&["third"]).unwrap_err();
    assert_eq!(
        error,
        "command line: `arm` is only third, without the baseline `one connection`; add it, or change the baseline in the \
         study"
    );
    let error = arms(&["fourth"]).unwrap_err();
    assert!(error.starts_with("command line: `fourth` is not an `[arm.NAME]`"), "{error}");
    let error = parse_with(ARMS, &[list("matrix.variant", &["h2"])]).unwrap_err();
    assert!(
        error.starts_with("command line: `variant` is a factor, and `[arm.one connection]` gives it too"),
        "{error}"
    );
    let swept = study("\"network.loss\" = [\"0%\", \"2%\"]", "");
    let dsl = parse_with(&swept, &[list("matrix.network", &["dsl", "lan"])]).unwrap();
    assert_eq!((dsl.cells.len(), dsl.networks.len()), (8, 4));
}

#[test]
fn combinations_are_left_out() {
    let with = |except: &str| {
        study("\"workload.load.streams\" = [1, 5, 9]", "").replacen(
            "runs = 2",
            &format!("runs = 2\nexcept = {except}"),
            1,
        )
    };
    let left = plan(&with(
        r#"[{ variant = "h1s", "workload.load.streams" = 5 }, { "workload.load.streams" = "9" }]"#,
    ));
    let label = |variant: &str, streams: u32| format!("{variant} · origin · lan · load · streams {streams}");
    assert_eq!(labels(&left), [label("h1s", 1), label("h2", 1), label("h2", 5)]);
    assert!(left.cells.iter().zip(0..).all(|(cell, number)| cell.cell == number));
    assert_eq!(left.workloads.len(), 2, "what no cell uses is not in the plan");
    assert_eq!(left.runs.len(), 6);
    // Without sweeps, too; and a whole point may contradict itself if it is left out.
    let plain = study("", "").replacen("runs = 2", "runs = 2\nexcept = [{ variant = \"h2\" }]", 1);
    assert_eq!(labels(&plan(&plain)), ["h1s · origin · lan · load"]);
    let broken = with(r#"[{ "workload.load.streams" = 99999 }]"#).replace("[1, 5, 9]", "[1, 99999]");
    assert_eq!(plan(&broken).cells.len(), 2);
    let fewer = parse_with(&plain, &[list("matrix.variant", &["h1s"])]).unwrap();
    assert_eq!(fewer.cells.len(), 1, "the command line may leave out the level of an exception");
}

#[test]
fn faults_of_exceptions() {
    for (except, expected) in [
        (
            "[{ variant = \"h3\" }]",
            "6:23: `except`: `h3` is not a level of `variant` in the matrix; the choices are h1s, h2",
        ),
        (
            "[{ varant = \"h2\" }]",
            "6:13: `except`: `varant` is not a factor of the matrix; did you mean `variant`?",
        ),
        ("[{}]", "6:11: `except` has an empty combination; write its levels"),
        ("[{ variant = [] }]", "6:23: `variant` is a list; write a string"),
        ("[\"h2\"]", "6:11: `except` is the string \"h2\"; write tables"),
        ("[{ server = \"origin\" }]", "6:1: `except` leaves out every cell; remove a combination"),
        (
            "[{ variant = \"h1s\" }]",
            "6:1: `except` leaves out every cell of the baseline `h1s`; keep one to compare with",
        ),
    ] {
        let text = study("", "").replacen("runs = 2", &format!("runs = 2\nexcept = {except}"), 1);
        assert_error(&text, &format!("s.toml:{expected}"));
    }
}

/// The last lines of a matrix, and the end of their error.
const FAULTY_SWEEPS: &[(&str, &str)] = &[
    ("clients = [1, 200000]", "11:15: `clients` is 200000; write a whole number from 1 to 100000"),
    ("clients = \"1..10\"", "11:11: `clients`: `1..10` is not a range; write one such as"),
    ("clients = \"10..1 step 1\"", "11:11: `clients`: the range ends at `1`, not above its start `10`"),
    ("clients = \"1..9 in 1\"", "11:11: `clients`: `in 1` is not a number of values"),
    ("clients = \"1..9 step 0\"", "11:11: `clients`: the step `0` is 0"),
    ("clients = \"1..5000 step 1\"", "11:11: `clients`: the range has 5000 values; at most 1000 are allowed"),
    ("\"network.rtt\" = \"1ms..5% in 3\"", "11:17: `network.rtt`: `1ms` is a duration and `5%` a share"),
    ("clients = 5", "11:11: `clients` is a single value; write a list such as `[1, 10, 100]`, or a range"),
    ("clients = []", "11:11: `clients` has 0 levels; write 1 to 1000"),
    ("clients = [[1]]", "11:12: `clients` has a list or a table as a level"),
    ("\"workload.load.streams\" = [1, 1]", "11:31: `workload.load.streams`: `1` appears twice; remove one"),
    (
        "\"workload.load.connection\" = [1]",
        "11:1: `connection` is not a key of [workload.load]; did you mean `connections`?",
    ),
    (
        "\"workload.laod.streams\" = [1]",
        "11:1: `workload.laod.streams`: `laod` is not a `[workload.NAME]` that this study defines; did you mean `load`?",
    ),
    (
        "\"workload.stream\" = [1]",
        "11:1: `workload.stream`: `stream` is not a key of this study's workloads; did you mean `streams`?",
    ),
    ("\"workload.load\" = [1]", "11:1: `workload.load` has no key; write one, such as `workload.load.KEY`"),
    ("\"workload.load.streams\" = [0]", "11:28: `streams` is 0; write a whole number from 1 to 10000"),
    ("\"hold.mtuu\" = [\"1400B\"]", "11:1: `mtuu` is not a key of [hold]; did you mean `mtu`?"),
    ("\"hold.mtu\" = [\"14B\"]", "11:15: `mtu`: `14B` is out of bounds"),
    (
        "\"server.nginx.workers\" = [1]",
        "11:1: `server.nginx.workers`: `nginx` is not a server of the matrix; the only choice is origin",
    ),
    ("\"server.origin.worker\" = [1]", "11:1: `worker` is not a tunable of the server `origin`"),
    (
        "\"network.delays\" = [\"1ms\"]",
        "11:21: `network.delays`: `delays` is not a key of the network; did you mean `delay`?",
    ),
    ("\"network.loss\" = [\"1%\", \"101%\"]", "11:25: `network.loss`: `loss`: `101%` is not a share"),
    ("\"network.loss\" = [1]", "11:19: `network.loss`: `loss` is the number 1; write a string, such as"),
    ("\"topology.client\" = [\"x\"]", "topology"),
    (
        "\"netwrok.loss\" = [\"1%\"]",
        "11:1: `netwrok.loss`: `netwrok` is not a part of the study with keys to sweep; did you mean `network`?",
    ),
    ("\"network.\" = [\"1%\"]", "11:1: `network.` is not the path of a key"),
    (
        "\"group.a.clients\" = [1]",
        "11:1: `group.a.clients`: `a` is not the name of a `[[group]]`; there is none",
    ),
    (
        "clients = [1]\n\"workload.load.clients\" = [1]",
        "12:1: `workload.load.clients` is swept twice, by `clients` and by `workload.load.clients`; remove one of them",
    ),
    (
        "\"workload.streams\" = [1]\n\"workload.load.streams\" = [2]",
        "12:1: `workload.load.streams` is swept twice",
    ),
    (
        "\"network.down.loss\" = [\"1%\"]\n\"network.loss\" = [\"2%\"]",
        "12:1: `network.loss` is swept twice, by `network.down.loss` and by `network.loss`; remove one of them",
    ),
    (
        "\"network.rate\" = [\"1Mbit/s\"]\n\"network.up.rate\" = [\"2Mbit/s\"]",
        "12:1: `network.up.rate` is swept twice, by `network.rate` and by `network.up.rate`; remove one of them",
    ),
];

#[test]
fn faults_of_sweeps() {
    for (sweep, expected) in FAULTY_SWEEPS {
        assert_error(&study(sweep, ""), expected);
    }
    let own = study("\"network.loss\" = [\"1%\"]", "").replace("[\"lan\"]", "[\"own\"]");
    let topology = "runs = 2\ntopology = { name = \"sites\", client = \"tokyo\" }";
    let own = own.replace("runs = 2", topology);
    assert_error(&own, "`network.loss` excludes the level `own`");
    let large = study(
        "\"workload.load.streams\" = \"1..1000 step 1\"\n\"workload.load.connections\" = \"1..11 step 1\"",
        "",
    );
    assert_error(&large, "s.toml:6:1: the matrix has more than 10000 cells; remove levels");
    let half = study(
        "\"workload.load.streams\" = \"1..1000 step 1\"\n\"workload.load.connections\" = \"1..6 step 1\"",
        "",
    );
    assert_error(&half, "s.toml:6:1: the matrix has more than 10000 cells; remove levels");
    let runs = study("\"workload.load.streams\" = \"1..1000 step 1\"", "").replace("runs = 2", "runs = 600");
    assert_error(&runs, "s.toml:6:1: 2000 cells of 600 runs each exceed 1000000 runs; reduce cells or runs");
}

/// What stands in [`ARMS`], what stands there instead, and the end of the error.
const FAULTY_ARMS: &[(&str, &str, &str)] = &[
    (
        "\"ten connections\"]",
        "\"ten\"]",
        "s.toml:7:26: `ten` is not an `[arm.NAME]` that this study defines; did you mean `ten connections`?",
    ),
    (
        ", \"ten connections\"]",
        "]",
        "s.toml:13:6: `[arm.ten connections]` is not used: `arm` in `[matrix]` names one connection; add it there",
    ),
    (
        "variant = \"h2c\"\n",
        "",
        "s.toml:10:6: `[arm.one connection]` has no `variant`, which `[arm.ten connections]` has; add one",
    ),
    (
        "server = [\"origin\"]\n",
        "",
        "s.toml:9:6: `[arm.one connection]` has no `server`, and `[matrix]` has none; add it to every arm",
    ),
    (
        "server = [\"origin\"]",
        "server = [\"origin\"]\nvariant = [\"h1\"]",
        "s.toml:9:1: `variant` is a factor, and `[arm.one connection]` gives it too",
    ),
    (
        "arm = [\"one connection\", \"ten connections\"]\n",
        "",
        "`[arm.NAME]` requires the factor `arm`; add `arm = [\"NAME\"]` to `[matrix]`",
    ),
    (
        "variant = \"h2c\"",
        "variants = \"h2c\"",
        "s.toml:11:1: `variants` is not a key of [arm.one connection]; did you mean `variant`?",
    ),
    ("variant = \"h2c\"", "variant = \"h9\"", "s.toml:11:11: `h9` is not a variant; the choices are"),
    ("variant = \"h2c\"", "variant = 2", "s.toml:11:11: `variant` is the number 2; write a string"),
    (
        "workload = \"streams\"",
        "workload = \"stream\"",
        "s.toml:18:11: `[workload.streams]` is not used: no arm names it",
    ),
    (
        "\"workload\", \"hold\"]",
        "\"workloads\"]",
        "s.toml:17:12: `differs`: `workloads` is not a difference of arms; did you mean `workload`?",
    ),
    (
        "http1_connections = 10",
        "http1_connections = 0",
        "s.toml:16:30: `http1_connections` is 0; write a whole number from 1 to 1000",
    ),
    (
        "http1_connections = 10",
        "http1_connection = 10",
        "`http1_connection` is not a key of [hold]; did you mean `http1_connections`?",
    ),
    (
        "network = [\"lan\"]",
        "network = [\"lan\"]\n\"hold.http1_connections\" = [1, 2]",
        "s.toml:10:1: `hold.http1_connections` is swept and `[arm.ten connections]` sets `hold.http1_connections`; remove one of them",
    ),
    (
        "{ arm = \"one connection\" }",
        "{ variant = \"h1\" }",
        "`baseline`: `variant` is not a factor of the matrix; the choices are arm, server, network",
    ),
    (
        "{ arm = \"one connection\" }",
        "{ arm = \"one\" }",
        "`baseline`: `one` is not a level of `arm` in the matrix; did you mean `one connection`?",
    ),
];

#[test]
fn faults_of_arms() {
    for (found, instead, expected) in FAULTY_ARMS {
        assert!(ARMS.contains(*found), "{found}");
        assert_error(&ARMS.replacen(found, instead, 1), expected);
    }
    let without = ARMS.split("[arm.").next().unwrap().to_owned()
        + "[workload.streams]\nkind = \"page\"\npage = \"small\"\n";
    assert_error(&without, "s.toml:7:7: `arm` has no tables; add one such as `[arm.NAME]` for each level");
    let unknown = ARMS
        .replace("workload = \"streams\"", "workload = \"strems\"")
        .replace("[workload.streams]", "[workload.connections2]");
    assert_error(&unknown, "s.toml:18:11: `[workload.connections2]` is not used");
}

#[test]
fn points_in_words() {
    let text =
        ARMS.replace("network = [\"lan\"]", "network = [\"lan\"]\n\"network.rtt\" = \"5ms..105ms in 11\"");
    insta::assert_snapshot!(plan_text(&plan(&text)));
}

#[test]
fn ten_thousand_cells_are_resolved() {
    let text = study(
        "\"workload.load.streams\" = \"1..1000 step 1\"\n\"workload.load.connections\" = \"1..5 step 1\"",
        "",
    );
    let plan = parse(&text).unwrap();
    assert_eq!((plan.cells.len(), plan.workloads.len(), plan.networks.len()), (10_000, 5_000, 1));
    assert_eq!(plan.workloads[4_999].name, "load, streams 1000, connections 5");
}
