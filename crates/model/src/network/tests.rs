use super::*;
use crate::units::NANOS_PER_MS as MS;

const HEAD: &str = "title = 'x'\nsource = 'y'\n";

fn trace(file: &str) -> Result<DataFile, String> {
    let text = match file {
        "a.trace" => "0\n1\n2\n",
        "bad.trace" => "0\nx\n",
        "a.csv" => "0s,10Mbit/s\n1s,2Mbit/s\n",
        _ => return Err(format!("networks/{file} does not exist")),
    };
    Ok(DataFile { file: format!("networks/{file}"), text: text.to_owned() })
}

fn parse(lines: &str) -> Result<Network, String> {
    let text = format!("{HEAD}{lines}\n");
    Network::parse_with("n", Source { file: "n.toml", text: &text }, &trace)
        .map_err(|error| error.to_string())
}

fn down(lines: &str) -> Direction {
    parse(lines).unwrap().down
}

#[track_caller]
fn assert_fault(lines: &str, expected: &str) {
    let found = parse(lines).unwrap_err();
    assert!(found.contains(expected), "{found}\nshould contain {expected}");
}

#[test]
fn rtt_is_split_and_bdp_resolved() {
    let network = parse("rtt = '150ms'\nrate = '50Mbit/s'\nqueue = '1bdp'").unwrap();
    assert_eq!(network.rtt_ns(), 150 * MS);
    assert_eq!(network.up.delay_ns, 75 * MS);
    assert_eq!(network.down.queue, Queue::bytes(937_500));
    assert_eq!(describe(&network), "RTT 150 ms, 50 Mbit/s, queue 938 kB");
    assert!(network.is_impaired() && !parse("").unwrap().is_impaired());
}

#[test]
fn a_direction_overrides_what_is_common() {
    let network =
        parse("delay = '9ms'\nrate = '50Mbit/s'\nloss = '1%'\n[up]\nrate = '5Mbit/s'\ndelay = '11ms'")
            .unwrap();
    assert_eq!((network.up.delay_ns, network.down.delay_ns), (11 * MS, 9 * MS));
    assert_eq!(network.up.rate, LinkRate::Constant { bits_per_s: 5_000_000 });
    assert_eq!(network.up.loss, Loss::Independent { share: 0.01 });
    assert_eq!(describe(&network), "RTT 20 ms, 50 Mbit/s down, 5 Mbit/s up, queue 1000 packets, 1% loss");
}

#[test]
fn jitter_in_short_and_in_full() {
    let jitter = |lines: &str| down(&format!("delay = '30ms'\n{lines}")).jitter.unwrap();
    let kept = |spread_ns, distribution, correlation_ns| Jitter {
        spread_ns,
        distribution,
        order: Order::Kept { correlation_ns },
    };
    assert_eq!(jitter("jitter = '15ms'"), kept(15 * MS, Distribution::Normal, 150 * MS));
    assert_eq!(jitter("jitter = '1ms'"), kept(MS, Distribution::Normal, 50 * MS));
    assert_eq!(
        jitter("jitter = { spread = '2ms', distribution = 'pareto' }"),
        kept(2 * MS, Distribution::Pareto, 200 * MS)
    );
    assert_eq!(
        jitter("jitter = { spread = '2ms', distribution = 'uniform', correlation = '1s' }"),
        kept(2 * MS, Distribution::Uniform, 1000 * MS)
    );
    let free = jitter("jitter = { spread = '15ms', order = 'free', correlation = '25%' }");
    assert_eq!(free.order, Order::Free { correlation: 0.25 });
    assert_eq!(down("delay = '30ms'\njitter = '0ms'").jitter, None);
    assert!(down("delay = '30ms'\njitter = { spread = '15ms', order = 'free' }").may_reorder());
    assert_fault("delay = '3ms'\njitter = '4ms'", "n.toml:4:10: `jitter` is 4 ms, above the delay of 3 ms");
    assert_fault(
        "delay = '30ms'\njitter = { spread = '10ms', correlation = '79ms' }",
        "n.toml:4:43: `correlation` is 79 ms, too short to keep packets in order; write at least 8 times the spread, 80 ms",
    );
    assert_fault("delay = '30ms'\njitter = { distribution = 'normal' }", "4:10: [jitter] has no `spread`");
    assert_fault(
        "delay = '30ms'\njitter = { spread = '1ms', distribution = 'norml' }",
        "`norml` is not a distribution; did you mean `normal`? The choices are normal, uniform, pareto",
    );
    assert_fault(
        "delay = '9ms'\njitter = { spread = '1ms', order = 'free', correlation = '100%' }",
        "write less",
    );
}

#[test]
fn loss_by_share_by_bursts_and_by_states() {
    assert_eq!(down("loss = '3%'").loss, Loss::Independent { share: 0.03 });
    assert_eq!(down("loss = '0%'").loss, Loss::None);
    assert_eq!(down("loss = { share = '3%' }").loss, Loss::Independent { share: 0.03 });
    let Loss::GilbertElliott { p, r, h, k } = down("loss = { share = '2%', burst = '4 packets' }").loss
    else {
        panic!("expected Gilbert's model");
    };
    assert!((p - 0.25 * 0.02 / 0.98).abs() < 1e-12 && (r - 0.25).abs() < 1e-12, "{p} {r}");
    assert!((h.abs(), k) == (0.0, 1.0));
    let by_states = down("loss = { p = '1%', r = '9%', h = '50%', k = '90%' }").loss;
    assert_eq!(by_states, Loss::GilbertElliott { p: 0.01, r: 0.09, h: 0.5, k: 0.9 });
    assert!((by_states.mean_share() - (0.1 * 0.5 + 0.9 * 0.1)).abs() < 1e-12);
    assert_fault("loss = '120%'", "n.toml:3:8: `loss`: `120%` is not a share");
    assert_fault("loss = { share = '1%', p = '1%' }", "n.toml:3:8: `loss` mixes models");
    assert_fault("loss = { p = '1%' }", "`loss` mixes models");
    assert_fault(
        "loss = { share = '80%', burst = '2 packets' }",
        "a loss of 80% in bursts of 2 packets is impossible",
    );
    assert_fault(
        "loss = { share = '1%', burst = '0.5 packets' }",
        "is not a mean length; write one such as `4 packets`",
    );
    assert_fault("loss = { p = '0%', r = '0%' }", "the state never changes");
    assert_eq!(down("lose = ['7', '3', '4-5', '20-30']").lost_packets, [(3, 5), (7, 7), (20, 30)]);
    assert_fault(
        "lose = ['0']",
        "n.toml:3:9: `lose`: `0` is not a packet; write the number of a packet from 1",
    );
    assert_fault("lose = ['9-3']", "`9-3` is not a packet");
}

#[test]
fn queues_and_their_disciplines() {
    let queue = |value: &str| down(&format!("rtt = '40ms'\nrate = '10Mbit/s'\nqueue = {value}")).queue;
    assert_eq!(queue("'100 packets'"), Queue::packets(100));
    assert_eq!(queue("{ limit = '2bdp' }"), Queue::bytes(100_000));
    let codel = Codel { target_ns: 5 * MS, interval_ns: 100 * MS, ecn: false };
    assert_eq!(
        queue("{ discipline = 'codel', ecn = true, target = '2ms' }"),
        Queue {
            limit: QueueLimit::Packets(1000),
            discipline: Discipline::Codel(Codel { target_ns: 2 * MS, ecn: true, ..codel })
        }
    );
    assert_eq!(
        queue("{ discipline = 'fq-codel', flows = 16, quantum = '300B', limit = '64kB' }"),
        Queue {
            limit: QueueLimit::Bytes(64_000),
            discipline: Discipline::FqCodel { codel, flows: 16, quantum_bytes: 300 }
        }
    );
    assert_eq!(queue("{ discipline = 'fq-codel' }").limit, QueueLimit::Packets(10_240));
    let inherited =
        parse("rate = '1Mbit/s'\nqueue = { discipline = 'codel' }\n[up]\nqueue = '30 packets'").unwrap();
    assert_eq!(
        inherited.up.queue,
        Queue { limit: QueueLimit::Packets(30), discipline: Discipline::Codel(codel) }
    );
    assert_fault(
        "rate = '1Mbit/s'\nqueue = { limit = '9kB', ecn = true }",
        "4:26: the discipline `drop-tail` has no `ecn`",
    );
    assert_fault(
        "rate = '1Mbit/s'\nqueue = { discipline = 'codel', flows = 3 }",
        "the discipline `codel` has no `flows`",
    );
    assert_fault("rate = '1Mbit/s'\nqueue = { discipline = 'fqcodel' }", "did you mean `fq-codel`?");
    assert_fault("rate = '1Mbit/s'\nqueue = '1000B'", "write at least one full frame, 1514B");
    assert_fault("rate = '1Mbit/s'\nqueue = '0 packets'", "is not a queue; write one such as");
    assert_fault("queue = '1bdp'", "n.toml:3:9: `queue` requires a `rate`");
    assert_fault(
        "rate = '1Mbit/s'\nqueue = { discipline = 'codel', target = '1s' }",
        "`target` is not below `interval`",
    );
}

#[test]
fn rates_constant_varying_and_from_files() {
    assert_eq!(down("rate = 'unlimited'").rate, LinkRate::Unlimited);
    let varying = "rate = { mean = '20Mbit/s', steps = { every = '15s', spread = '30%' }, drift = { over = '1s', spread = '40%' } }";
    let LinkRate::Varying { mean_bits_per_s: 20_000_000, steps: Some(steps), drift: Some(drift) } =
        down(varying).rate
    else {
        panic!("expected steps and drift about 20 Mbit/s");
    };
    assert_eq!((steps.every_ns, drift.every_ns), (15_000 * MS, 1000 * MS));
    assert_eq!(
        down("rate = { mahimahi = 'a.trace' }").rate,
        LinkRate::Opportunities(Opportunities { at_ms: vec![(0, 1), (1, 1), (2, 1)] })
    );
    let steps = down("rate = { csv = 'a.csv', repeat = '2s' }").rate;
    assert_eq!(steps.mean_bits_per_s(), Some(6_000_000));
    assert_fault("rate = '0Mbit/s'", "n.toml:3:8: `rate`: 0 is too low");
    assert_fault("rate = { mahimahi = 'bad.trace' }", "networks/bad.trace:2:1: `x` is not a time");
    assert_fault("rate = { mahimahi = 'none' }", "n.toml:3:8: `rate`: networks/none does not exist");
    assert_fault("rate = { mean = '1Mbit/s' }", "`mean` requires `steps` or `drift`");
    assert_fault("rate = { drift = { over = '1s', spread = '1%' } }", "[rate] has no `mean`");
    assert_fault("rate = { mean = '1Mbit/s', csv = 'a.csv' }", "`rate` has several of");
    assert_fault("rate = { mahimahi = 'a.trace', repeat = '3s' }", "`repeat` requires `csv`");
    assert_fault("rate = {}", "`rate` is empty");
    assert_fault(
        "rate = { csv = 'a.csv', repeat = '1s' }",
        "networks/a.csv:1:1: a row is at or after `repeat`",
    );
}

#[test]
fn reordering_duplication_delay_steps_and_outages() {
    assert_eq!(down("delay = '1ms'\nreorder = '25%'").reorder, Some(Reorder { share: 0.25, gap: 1 }));
    assert_eq!(down("delay = '1ms'\nreorder = { gap = 5 }").reorder, Some(Reorder { share: 1.0, gap: 5 }));
    assert_fault("reorder = '25%'", "n.toml:3:11: `reorder` requires a `delay`");
    assert!((down("duplicate = '2%'").duplicate_share - 0.02).abs() < 1e-12);
    let steps = down("delay = '20ms'\ndelay_steps = { every = '15s', spread = '8ms' }").delay_steps;
    assert_eq!(steps, Some(DelaySteps { every_ns: 15_000 * MS, spread_ns: 8 * MS }));
    assert_fault(
        "delay = '2ms'\ndelay_steps = { every = '15s', spread = '8ms' }",
        "`spread` exceeds `delay`",
    );
    let outages =
        down("outages = { every = '15s', lasts = '100ms', packets = 'wait', at_random = true }").outages;
    let times = OutageTimes::Every { every_ns: 15_000 * MS, lasts_ns: 100 * MS, at_random: true };
    assert_eq!(outages, Some(Outages { packets: OutagePackets::Wait, times }));
    assert_fault("outages = { every = '1s', lasts = '1s' }", "n.toml:3:11: `lasts` is not below `every`");
    assert_fault("outages = { every = '1s', lasts = '0s' }", "`lasts`: 0 is too short");
}

#[test]
fn the_timeline_holds_whole_directions() {
    let network = parse(
        "delay = '10ms'\nrate = '50Mbit/s'\n\
         [[timeline]]\nat = '12s'\nrate = '1Mbit/s'\n\
         [[timeline]]\nat = '20s'\nfor = '2s'\ndown.loss = '30%'\n\
         [[timeline]]\nat = '21s'\nfor = '500ms'\noutage = 'lost'\n\
         [[timeline]]\nat = '30s'\nhandover = true\nrtt = '80ms'",
    )
    .unwrap();
    let seconds: Vec<f64> = network.timeline.iter().map(|change| change.at_ns as f64 / 1e9).collect();
    assert_eq!(seconds, [12.0, 20.0, 21.0, 21.5, 22.0, 30.0]);
    let slow = LinkRate::Constant { bits_per_s: 1_000_000 };
    assert!(network.timeline.iter().all(|change| change.up.rate == slow && change.down.rate == slow));
    let loss: Vec<f64> = network.timeline.iter().map(|change| change.down.loss.mean_share()).collect();
    assert_eq!(loss, [0.0, 0.3, 0.3, 0.3, 0.0, 0.0]);
    assert!(network.timeline.iter().all(|change| change.up.loss == Loss::None));
    let out: Vec<bool> = network.timeline.iter().map(|change| change.up.outages.is_some()).collect();
    assert_eq!(out, [false, false, true, false, false, false]);
    let handovers: Vec<bool> = network.timeline.iter().map(|change| change.handover).collect();
    assert_eq!(handovers, [false, false, false, false, false, true]);
    assert_eq!((network.timeline[4].up.delay_ns, network.timeline[5].up.delay_ns), (10 * MS, 40 * MS));
    assert!(describe(&network).ends_with("6 changes during the run"));
}

#[test]
fn timeline_faults() {
    let fault = |lines: &str, expected: &str| {
        assert_fault(&format!("rate = '9Mbit/s'\n[[timeline]]\n{lines}"), expected)
    };
    fault("rate = '1Mbit/s'", "n.toml:4:1: [[timeline]] has no `at`");
    fault("at = '1s'", "n.toml:4:1: [[timeline]] changes nothing");
    fault("at = '1s'\nfor = '0s'\nloss = '1%'", "`for`: 0 is too short");
    fault("at = '1s'\nfor = '1s'\nhandover = true", "`for` excludes `handover`");
    fault("at = '1s'\nqueue = { discipline = 'codel' }", "n.toml:6:9: the timeline changes the `discipline`");
    fault(
        "at = '1s'\noutages = { every = '2s', lasts = '1s' }",
        "n.toml:6:1: `outages` is not a key of [[timeline]]",
    );
    fault("at = '1s'\njitter = '5ms'", "n.toml:6:10: `jitter` is 5 ms, above the delay of 0 ns");
    assert_fault("timeline = 3", "`timeline` is the number 3; write tables `[[timeline]]`");
}

#[test]
fn a_timeline_repeats_no_trace_without_end() {
    let long: String = (0..300_000).map(|ms| format!("{ms}\n")).collect();
    let trace = |file: &str| Ok(DataFile { file: file.to_owned(), text: long.clone() });
    let entries: String =
        (1..=8).map(|second| format!("[[timeline]]\nat = '{second}s'\nloss = '{second}%'\n")).collect();
    let parse = |entries: &str| {
        let text = format!("{HEAD}rate = {{ mahimahi = 'long.trace' }}\n{entries}");
        Network::parse_with("n", Source { file: "n.toml", text: &text }, &trace)
            .map_err(|error| error.to_string())
    };
    // Two directions of 300 000 steps: six changes are 3.6 million, the seventh is too much.
    assert_eq!(parse(&entries[..entries.len() / 8 * 6]).unwrap().timeline.len(), 6);
    let fault = parse(&entries).unwrap_err();
    assert!(
        fault.starts_with("n.toml:23:6: the changes up to this one have traces of 4200000 steps"),
        "{fault}"
    );
}

#[test]
fn faults_name_the_place() {
    assert_fault("rtt = '150'", "n.toml:3:7: `rtt`: `150` is not a duration");
    assert_fault("rate = '1Mbit/s'\nqueue = 7", "n.toml:4:9: `queue` is the number 7; write a string");
    assert_fault("spede = 1", "n.toml:3:1: `spede` is not a key of the network");
    assert_fault("jiter = '1ms'", "did you mean `jitter`?");
    assert_fault("rtt = '1ms'\n[up]\ndelay = '1ms'", "n.toml:5:9: `up.delay` excludes `rtt`");
    assert_fault("rtt = '1ms'\ndelay = '1ms'", "`delay` excludes `rtt`");
    assert_fault("[up]\nlos = '1%'", "n.toml:4:1: `los` is not a key of [up]");
    assert_fault("[up\n", "n.toml:3:4: ");
    let empty = Network::parse("n", Source { file: "n.toml", text: "title = ''\n" }).unwrap_err().to_string();
    assert!(empty.starts_with("n.toml:1:9: `title` is empty"), "{empty}");
}

#[test]
fn what_is_certain_leaves_chance_out() {
    let lines =
        "delay = '9ms'\nrate = '1Mbit/s'\nloss = '1%'\njitter = '1ms'\nreorder = '1%'\nduplicate = '1%'";
    let expected = Direction {
        delay_ns: 9 * MS,
        rate: LinkRate::Constant { bits_per_s: 1_000_000 },
        ..Direction::default()
    };
    assert_eq!(down(lines).certain(), expected);
    let varying = down("rate = { mahimahi = 'a.trace' }\nqueue = '7 packets'");
    assert_eq!(varying.certain(), Direction { queue: Queue::packets(7), ..Direction::default() });
}

#[test]
fn a_resolved_network_survives_json() {
    let lines = "delay = '9ms'\nrate = { csv = 'a.csv' }\nloss = { share = '1%', burst = '3 packets' }\njitter = '1ms'\n\
                 queue = { discipline = 'fq-codel' }\n[[timeline]]\nat = '1s'\nhandover = true";
    let network = parse(lines).unwrap();
    let json = serde_json::to_string(&network).unwrap();
    assert_eq!(serde_json::from_str::<Network>(&json).unwrap(), network);
}

#[test]
fn a_queue_is_a_time_at_the_rate() {
    assert_eq!(down("rate = '10Mbit/s'\nqueue = '100ms'").queue, Queue::bytes(125_000));
    assert_eq!(down("rate = '10kbit/s'\nqueue = { limit = '1ms' }").queue, Queue::bytes(FULL_FRAME_BYTES));
    assert_fault("queue = { limit = '1s' }\n[[timeline]]\nat = '1s'\nrate = '1Mbit/s'", "requires a `rate`");
    assert_fault("rate = '1Mbit/s'\nqueue = '0s'", "`0s` is not a queue");
}

#[test]
fn udp_is_open_blocked_or_limited() {
    let rule = |text: &str| down(text).udp;
    assert_eq!(
        (rule(""), rule("udp = 'open'"), rule("udp = 'blocked'")),
        (None, None, Some(UdpRule::Blocked))
    );
    let policed = |bits_per_s, burst_bytes| Some(UdpRule::Policed { bits_per_s, burst_bytes });
    assert_eq!(rule("udp = '8Mbit/s'"), policed(8_000_000, 50_000));
    assert_eq!(rule("udp = '80kbit/s'"), policed(80_000, 15_140));
    assert_eq!(rule("udp = { rate = '8Mbit/s', burst = '2kB' }"), policed(8_000_000, 2000));
    assert_eq!(rule("udp = 'blocked'\n[down]\nudp = 'open'"), None);
    assert_eq!(describe(&parse("udp = 'blocked'").unwrap()), "RTT 0 ns, no rate limit, UDP blocked");
    assert_fault("udp = 'closed'", "`udp`: `closed` is not a rate");
    assert_fault("udp = '0bit/s'", "0 is too low; write a rate above 0, or `blocked`");
    assert_fault("udp = { burst = '2kB' }", "has no `rate`");
    assert!(parse("udp = 'blocked'").unwrap().is_impaired());
    assert!(!parse("udp = 'blocked'").unwrap().certain().is_impaired(), "probes are UDP");
    let unsupported = kernel::check(&parse("udp = 'blocked'").unwrap(), 1500).unwrap_err();
    assert_eq!(unsupported.key, "up.udp");
}

#[test]
fn a_rebinding_is_an_event_of_the_timeline() {
    let network = parse("[[timeline]]\nat = '2s'\nrebinding = true").unwrap();
    assert!(network.timeline[0].rebinding && !network.timeline[0].handover && network.is_impaired());
    assert_fault("[[timeline]]\nat = '2s'\nfor = '1s'\nrebinding = true", "`for` excludes `rebinding`");
}

fn changed(lines: &str, keys: &[(&str, &str)]) -> Result<Network, String> {
    let keys: Vec<_> = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    parse(lines).unwrap().changed(&keys, &trace)
}

#[test]
fn single_keys_change_a_network() {
    let lines = "rtt = '40ms'\nrate = '10Mbit/s'\njitter = '4ms'\n[[timeline]]\nat = '1s'\nloss = '2%'";
    let found =
        changed(lines, &[("rtt", "80ms"), ("queue", "100ms"), ("up", "{ rate = '1Mbit/s' }")]).unwrap();
    assert_eq!((found.rtt_ns(), found.down.queue), (80 * MS, Queue::bytes(125_000)));
    assert_eq!(found.up.queue, Queue::bytes(12_500), "each direction at its own rate");
    assert_eq!(found.up.jitter, parse(lines).unwrap().up.jitter, "the rest stays");
    let later = &found.timeline[0];
    assert_eq!((later.down.delay_ns, later.down.loss), (40 * MS, Loss::Independent { share: 0.02 }));
    assert_eq!(changed("rtt = '40ms'\nloss = '1%'", &[]), parse("rtt = '40ms'\nloss = '1%'"));
    assert_eq!(changed("loss = '1%'", &[("loss", "0%")]).unwrap().up.loss, Loss::None);
    for (keys, expected) in [
        (&[("rtt", "40")][..], "`40` is not a duration"),
        (&[("rtt", "2ms")], "the delay of 1 ms is below the network's `jitter` of 4 ms"),
        (&[("speed", "2ms")], "`speed` is not a key"),
        (&[("rate", "unlimited"), ("queue", "1bdp")], "requires a `rate`"),
        (&[("loss", "{ share = '1%'")], ""),
        (&[("rtt", "1ms\" }")], "is not a duration"),
    ] {
        let found = changed(lines, keys).unwrap_err();
        assert!(found.contains(expected), "{found}");
    }
    assert!(changed("", &[("queue", "10 packets")]).unwrap_err().contains("`queue` requires a `rate`"));
    let codel = changed(lines, &[("queue", "{ discipline = 'codel' }")]).unwrap();
    assert!(parse(lines).unwrap().check_live_change(&codel).is_err());
    assert!(codel.check_live_change(&codel).is_ok());
}
