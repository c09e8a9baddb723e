//! Real examples and malformed texts.

use super::*;

const STAT: &[u8] =
    b"4242 (nginx: ) w (x) S 4200 4199 4199 0 -1 4194624 1201 0 3 0 127 2045 0 0 20 0 4 0 991823 61865984 \
    1540 18446744073709551615 1 1 0 0 0 0 0 4096 81925 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

const STATUS: &[u8] =
    b"Name:\th123-worker\nUmask:\t0022\nState:\tR (running)\nVmPeak:\t  123456 kB\nVmHWM:\t   34900 kB\n\
    VmRSS:\t   30720 kB\nThreads:\t5\nvoluntary_ctxt_switches:\t1729\nnonvoluntary_ctxt_switches:\t42\n";

const PROC_STAT: &[u8] = b"cpu  300 5 200 9000 12 3 44 7 0 0\ncpu0 100 2 150 4000 10 1 40 3 0 0\n\
    cpu13 200 3 50 5000 2 2 4 4 0 0\nintr 123 0 0\nctxt 999\n";

const SNMP: &[u8] = b"Ip: Forwarding DefaultTTL\nIp: 2 64\n\
    Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors\n\
    Tcp: 1 200 120000 -1 1178 1172 0 42 6 346095017 351346091 9 0 44 0\n\
    Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors\n\
    Udp: 170 1 7 171 7 2 0 0 0\n";

const DEV: &[u8] = b"Inter-|   Receive                                                |  Transmit\n \
    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
    lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0\n  eth0: 59483 412 0 3 0 0 0 0 1820394 1290 0 5 0 0 0 0\n\
    eth0:1: 1 2 0 3 0 0 0 0 4 5 0 6 0 0 0 0\n";

#[test]
fn a_stat_whose_name_has_parentheses() {
    let stat = Stat::parse(STAT).unwrap();
    assert_eq!(stat.name, b"nginx: ) w (x");
    assert_eq!((stat.state, stat.group, stat.major_faults, stat.threads), (b'S', 4199, 3, 4));
    assert_eq!((stat.user_ticks, stat.system_ticks, stat.started_ticks), (127, 2045, 991_823));
}

#[test]
fn status_and_schedstat() {
    let expected = Status {
        resident_bytes: 30720 * 1024,
        peak_resident_bytes: 34900 * 1024,
        voluntary_switches: 1729,
        involuntary_switches: 42,
    };
    assert_eq!(Status::parse(STATUS), expected);
    let expected = Schedule { ran_ns: 123_456_789, waited_ns: 2_000, slices: 17 };
    assert_eq!(Schedule::parse(b"123456789 2000 17\n"), Some(expected));
    assert_eq!(Schedule::parse(b"123456789 2000\n"), None);
}

#[test]
fn cores_are_read_and_their_sum_is_not() {
    let found: Vec<_> = cores(PROC_STAT).collect();
    let first = CoreTicks { user: 102, system: 150, idle: 4000, iowait: 10, irq: 1, softirq: 40, steal: 3 };
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], (0, first));
    assert_eq!((found[1].0, found[1].1.user, found[1].1.steal), (13, 203, 4));
}

#[test]
fn counters_are_found_by_prefix_and_name() {
    let wanted: [(Counter, usize); 5] = [
        (("Tcp", "RetransSegs"), 0),
        (("Udp", "RcvbufErrors"), 1),
        (("", "Udp6RcvbufErrors"), 1),
        (("Tcp", "CurrEstab"), 2),
        (("Tcp", "Unknown"), 3),
    ];
    let mut values = [0; 4];
    add_pairs(SNMP, &wanted, &mut values);
    add_lines(b"Ip6InReceives   \t4\nUdp6RcvbufErrors                \t5\n", &wanted, &mut values);
    assert_eq!(values, [9, 12, 6, 0], "a sum over both families; a column with -1 harms no other");
}

#[test]
fn sockets_are_counted() {
    let text = b"sockets: used 30\nTCP: inuse 9 orphan 0 tw 20017 alloc 9 mem 0\nUDP: inuse 1 mem 164\n";
    assert_eq!(socket_count(text, "TCP", "tw"), Some(20_017));
    assert_eq!(socket_count(text, "UDP", "inuse"), Some(1));
    assert_eq!(socket_count(text, "TCP6", "inuse"), None);
    assert_eq!(socket_count(b"TCP: inuse", "TCP", "inuse"), None);
}

#[test]
fn interfaces_are_read() {
    let found: Vec<_> = interfaces(DEV).collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[1], (&b"eth0"[..], [59_483, 412, 3, 1_820_394, 1290, 5]));
    assert_eq!(found[2].0, b"eth0:1");
}

#[test]
fn processes_have_names_that_people_know() {
    let named: [(&[u8], &[u8], &str); 9] = [
        (b"/opt/bin/h123\0load\0--assignment\0-\0", b"h123", "h123 load"),
        (b"nginx: worker process\0\0\0\0", b"nginx", "nginx: worker process"),
        (b"nginx: master process /usr/sbin/nginx -c /x/nginx.conf\0", b"nginx", "nginx: master process"),
        (b"/usr/sbin/apache2\0-X\0-d\0/x\0", b"apache2", "apache2"),
        (
            b"/c/root/usr/lib/x/ld-linux-x86-64.so.2\0--argv0\0nghttpd\0--library-path\0/c\0",
            b"ld-linux",
            "nghttpd",
        ),
        (b"/usr/bin/caddy\0run\0--config\0/x\0", b"caddy", "caddy run"),
        (b"wrk\0http://10.0.0.1/\0", b"wrk", "wrk"),
        (b"", b"kworker", "kworker"),
        (b"\x1b[2J\xff\0", b"x", "\u{fffd}[2J\u{fffd}"),
    ];
    for (command, thread, name) in named {
        assert_eq!(process_name(command, thread), name);
    }
    assert_eq!(process_name(&[b'a'; 5000], b"").chars().count(), MOST_NAME_CHARS);
}

/// Every parser on every beginning of the examples, and on examples with bytes changed, by a fixed sequence.
#[test]
fn nothing_makes_a_parser_fail() {
    let all = |text: &[u8]| {
        let wanted: [(Counter, usize); 2] = [(("Tcp", "InSegs"), 0), (("", "Udp6InDatagrams"), 9)];
        let mut values = [0; 1];
        let _ = (Stat::parse(text), Status::parse(text), Schedule::parse(text));
        let _ = (cores(text).count(), interfaces(text).count(), socket_count(text, "TCP", "tw"));
        add_pairs(text, &wanted, &mut values);
        add_lines(text, &wanted, &mut values);
        let _ = process_name(text, text);
    };
    let mut state = 1_u64;
    for example in
        [STAT, STATUS, PROC_STAT, SNMP, DEV, &b"Tcp: A\nTcp: 99999999999999999999999\n"[..], b"cpu", b"()"]
    {
        (0..example.len()).for_each(|end| all(&example[..end]));
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let [at, byte, ..] = (state >> 32).to_le_bytes();
            let mut text = example.to_vec();
            let place = usize::from(at) * text.len() / 256;
            text[place] = byte;
            all(&text);
        }
    }
    assert_eq!(number_of(b"18446744073709551616"), None, "more than 64 bits");
    assert_eq!(number_of(b"-1"), None);
}
