//! A plan as text of at most 80 columns: the output of `h123 plan`.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use crate::arm::ARM;
use crate::external::OWN_CLIENT;
use crate::level::is_sweep;
use crate::monitor::MonitorRate;
use crate::network;
use crate::pins::{Pins, TlsVersion};
use crate::plan::{Cell, GroupEnd, Level, OutsideRequests, Plan};
use crate::start::Start;
use crate::units::{format_bytes, format_expected, format_ns, three_digits};
use crate::variant::Variant;

const WIDTH: usize = 80;
const LABEL_WIDTH: usize = 10;
/// Factors with longer names are paths of sweeps.
const MOST_LABEL_WIDTH: usize = 36;
const NAME_WIDTH: usize = 20;
/// Further cells and blocks are only counted.
const MOST_CELLS_SHOWN: usize = 40;
const MOST_BLOCKS_SHOWN: usize = 10;
const MOST_LEVELS_SHOWN: usize = 40;

/// The plan as text: question, matrix, cells, order, fixed settings, expected duration.
pub fn plan_text(plan: &Plan) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = write_plan(&mut text, plan);
    text
}

fn write_plan(out: &mut String, plan: &Plan) -> fmt::Result {
    writeln!(out, "Study {}", plan.study)?;
    wrap(out, 2, 2, "", plan.question.split_whitespace(), " ")?;
    writeln!(out)?;
    let of = if plan.statistic.is_median() { String::new() } else { format!("{} of ", plan.statistic) };
    entry(out, "metric", &format!("{of}{}", plan.metric))?;
    entry(out, "baseline", &format!("{} = {}", plan.baseline.factor, plan.baseline.value))?;
    let margin = three_digits(plan.margin_share * 100.0);
    entry(out, "margin", &format!("{margin} %: smaller differences do not matter"))?;
    entry(out, "topology", &plan.topology.describe())?;
    for media in &plan.media {
        entry(out, "media", &format!("{}: {}", media.name, media.describe()))?;
    }
    for class in &plan.classes {
        entry(out, "class", &format!("{}: {}", class.name, class.paths.join(", ")))?;
    }
    if let Some(warm) = plan.warm {
        entry(out, "warm", &format!("a separate client uses the server before every run: {warm}"))?;
    }
    if let Some(state) = plan.page_cache {
        entry(out, "files", state.describe())?;
    }
    if let Some(rtt_ns) = plan.dns_rtt_ns {
        let rtt = format_ns(rtt_ns);
        entry(out, "names", &format!("every run asks a name server, {rtt} away, for the server's address"))?;
    }
    if let Some(asked) = plan.outside_requests() {
        entry(out, "requests", &outside(plan, asked))?;
    }
    let expected = format_expected(plan.expected_ns());
    let runs = plan.least_runs().len();
    let (cells, per_cell) = (plan.cells.len(), plan.runs_per_cell);
    let more = plan.repetition.map_or(String::new(), |rule| format!(", {}", rule.describe()));
    entry(out, "runs", &format!("{runs} = {} × {per_cell} each{more}", count(cells, "cell")))?;
    if plan.monitor != MonitorRate::default() {
        entry(out, "monitor", &plan.monitor.to_string())?;
    }
    let least = if plan.repetition.is_some() { "at least " } else { "" };
    entry(out, "expected", &format!("{least}about {expected}, including setup"))?;
    write_matrix(out, plan)?;
    write_groups(out, plan)?;
    write_cells(out, plan)?;
    write_order(out, plan)?;
    write_servers(out, plan)?;
    write_pins(out, plan)
}

/// What a study asks of servers that h123 does not start.
fn outside(plan: &Plan, asked: OutsideRequests) -> String {
    let OutsideRequests { each_run, runs, all } = asked;
    let limits = plan.remote_cells().map(|(_, remote)| (remote.most_requests, remote.most_rate));
    let (most, rate) = limits.min().unwrap_or_default();
    let rests = plan.run_cells().map(|cell| plan.rest_ns(cell.cell)).filter(|rest_ns| *rest_ns > 0);
    let rest = format_ns(rests.max().unwrap_or(0));
    format!(
        "{all} outside: {runs} runs × about {each_run}; the limit is {most}. Runs begin up to {rest} apart, for {rate} \
         requests per second on average"
    )
}

fn write_matrix(out: &mut String, plan: &Plan) -> fmt::Result {
    let factors: Vec<&str> =
        plan.cells.first().map_or(Vec::new(), |cell| cell.levels.iter().map(|l| l.factor.as_str()).collect());
    let levels: Vec<Vec<&str>> = factors.iter().map(|factor| levels_of(plan, factor)).collect();
    let sizes: Vec<String> = levels.iter().map(|levels| levels.len().to_string()).collect();
    let product: usize = levels.iter().map(Vec::len).product();
    let left_out = product.saturating_sub(plan.cells.len());
    let without = if left_out > 0 { format!(" − {left_out} left out") } else { String::new() };
    writeln!(out, "\nMatrix: {}{without} = {}", sizes.join(" × "), count(plan.cells.len(), "cell"))?;
    let longest = factors.iter().map(|factor| factor.chars().count() + 2).max().unwrap_or(0);
    let width = longest.clamp(LABEL_WIDTH, MOST_LABEL_WIDTH);
    for (factor, levels) in factors.iter().zip(levels) {
        match *factor {
            "network" => {
                write_described(out, (factor, width), &levels, |name| {
                    described(plan, factor, name, |cell| network::describe(plan.network_of(cell)))
                })?;
            }
            "workload" => {
                write_described(out, (factor, width), &levels, |name| {
                    described(plan, factor, name, |cell| describe_workload(plan, cell))
                })?;
            }
            ARM => {
                write_described(out, (factor, width), &levels, |name| {
                    let found = plan.cells.iter().find(|cell| cell.level(factor) == Some(name))?;
                    Some(describe_arm(plan, found, name))
                })?;
            }
            _ => {
                let more = levels.len().saturating_sub(MOST_LEVELS_SHOWN);
                let more = (more > 0).then(|| format!("… and {more} more"));
                let shown = levels.into_iter().take(MOST_LEVELS_SHOWN).chain(more.as_deref());
                wrap(out, 2, 2 + width, factor, shown, ", ")?;
            }
        }
    }
    Ok(())
}

/// What a level stands for; of the first cell, where a sweep or an arm changes it.
fn described(plan: &Plan, factor: &str, level: &str, describe: impl Fn(&Cell) -> String) -> Option<String> {
    // Groups in the background have their own workload.
    let cells = plan.cells.iter().filter(|cell| !cell.group.is_background);
    let cells = cells.filter(|cell| cell.level(factor) == Some(level));
    let all: BTreeSet<(usize, usize)> = cells
        .clone()
        .map(|cell| match factor {
            "network" => (cell.network, 0),
            _ => (0, cell.group.workload),
        })
        .collect();
    let first = describe(cells.clone().next()?);
    Some(if all.len() > 1 { format!("{first}; the first of {}", all.len()) } else { first })
}

fn describe_workload(plan: &Plan, cell: &Cell) -> String {
    plan.workload_of(&cell.group).describe()
}

/// The levels that an arm bundles, and its declared differences.
fn describe_arm(plan: &Plan, cell: &Cell, name: &str) -> String {
    let mut parts = Vec::new();
    let group = &cell.group;
    if cell.level("variant").is_none() {
        parts.push(group.variant.to_string());
    }
    if cell.level("server").is_none() {
        parts.push(cell.chain.describe());
    }
    if cell.level("client").is_none() && group.client != OWN_CLIENT {
        parts.push(group.client.clone());
    }
    if cell.level("network").is_none() {
        parts.push(plan.network_of(cell).name.clone());
    }
    if cell.level("workload").is_none() {
        parts.push(format!("{} ({})", plan.workload_of(group).name, describe_workload(plan, cell)));
    }
    let arm = plan.arms.iter().find(|arm| arm.name == name);
    let differs: Vec<&str> =
        arm.into_iter().flat_map(|arm| &arm.differs).map(|difference| difference.name()).collect();
    if !differs.is_empty() {
        parts.push(format!("may differ in {}", differs.join(" and ")));
    }
    parts.join("; ")
}

/// One line for each level, with its description.
fn write_described(
    out: &mut String,
    (factor, label_width): (&str, usize),
    levels: &[&str],
    about: impl Fn(&str) -> Option<String>,
) -> fmt::Result {
    let width = levels.iter().map(|level| level.chars().count()).max().unwrap_or(0);
    for (index, level) in levels.iter().enumerate() {
        let label = if index == 0 { factor } else { "" };
        let about = about(level).unwrap_or_default();
        let indent = 2 + label_width + width + 2;
        let head = format!("{label:<label_width$}{level:<width$}");
        wrap(out, 2, indent, &head, about.split(' '), " ")?;
    }
    Ok(())
}

/// What the client groups of a run are; of a study without `[[group]]`, how many clients begin when.
fn write_groups(out: &mut String, plan: &Plan) -> fmt::Result {
    let Some(first) = plan.run_cells().next() else { return Ok(()) };
    let groups = plan.cells_of_run(first.cell);
    let is_plain = |cell: &Cell| cell.group.clients == 1 && cell.group.start == Start::Together;
    if groups.len() == 1 && plan.cells.iter().all(is_plain) {
        return Ok(());
    }
    writeln!(out, "\nClients of a run")?;
    let name = |cell: &Cell| if cell.group.name.is_empty() { "group" } else { &cell.group.name }.to_owned();
    let width = groups.iter().map(|cell| name(cell).chars().count()).max().unwrap_or(0).min(MOST_LABEL_WIDTH);
    for cell in groups {
        let about = describe_group(plan, cell);
        let label = format!("{:<width$}", name(cell));
        wrap(out, 2, 2 + width + 2, &format!("{label}  "), about.split(' '), " ")?;
    }
    Ok(())
}

/// What a client group does, where, how often and until when; over all cells of the group.
fn describe_group(plan: &Plan, cell: &Cell) -> String {
    let own = plan.cells.iter().filter(|other| other.group.group == cell.group.group);
    let (least, most) = own.clone().fold((u32::MAX, 0), |(least, most), cell| {
        (least.min(cell.group.clients), most.max(cell.group.clients))
    });
    let clients = match (least, most) {
        (1, 1) => "1 client".to_owned(),
        (least, most) if least == most => format!("{most} clients"),
        (least, most) => format!("{least} to {most} clients"),
    };
    let start = match cell.group.start {
        Start::Together => "start together".to_owned(),
        start => format!("start {}", start.describe()),
    };
    let start = if most == 1 && cell.group.start == Start::Together { None } else { Some(start) };
    let is_alone = cell.group.name.is_empty();
    let one = |found: std::collections::BTreeSet<String>, noun: &str| match found.len() {
        1 => found.into_iter().next(),
        several => Some(format!("{several} {noun}")),
    };
    let described = [
        one(own.clone().map(|cell| cell.group.variant.to_string()).collect(), "variants"),
        one(own.clone().map(|cell| cell.chain.describe()).collect(), "servers")
            .map(|name| format!("at {name}")),
        one(own.clone().map(|cell| plan.workload_of(&cell.group).name.clone()).collect(), "workloads"),
        Some(format!("in the node {}", cell.group.node)),
    ];
    let end = match cell.group.end {
        GroupEnd::Done => None,
        GroupEnd::AfterNs(ns) => Some(format!("end after {}", format_ns(ns))),
        GroupEnd::With(other) => {
            let of_run = plan.cells_of_run(cell.cell - u32::from(cell.group.group));
            of_run.get(usize::from(other)).map(|other| format!("end with {}", other.group.name))
        }
    };
    let background = cell.group.is_background.then(|| "in the background".to_owned());
    let described = described.into_iter().flatten().filter(|_| !is_alone);
    let parts =
        [Some(clients)].into_iter().flatten().chain(start).chain(described).chain(end).chain(background);
    parts.collect::<Vec<_>>().join(", ")
}

fn write_cells(out: &mut String, plan: &Plan) -> fmt::Result {
    let Some(first) = plan.cells.first() else { return Ok(()) };
    let widths: Vec<usize> = first
        .levels
        .iter()
        .map(|level| {
            let names = levels_of(plan, &level.factor);
            names.into_iter().map(|name| name.chars().count()).max().unwrap_or(0)
        })
        .collect();
    writeln!(out, "\nCells, and what one run of each is expected to take")?;
    for cell in plan.cells.iter().take(MOST_CELLS_SHOWN) {
        let mut line = format!("{:>5} ", cell.cell);
        for (level, width) in cell.levels.iter().zip(&widths) {
            write!(line, " {:<width$} ", level.value)?;
        }
        writeln!(out, "{}", clip(&format!("{line} {:>7}", expected(cell))))?;
        if let Some(reason) = &cell.unsupported {
            wrap(out, 8, 8, "", format!("unsupported: {reason}").split(' '), " ")?;
        }
    }
    if plan.cells.len() > MOST_CELLS_SHOWN {
        writeln!(out, "      … and {}", count(plan.cells.len() - MOST_CELLS_SHOWN, "more cell"))?;
    }
    Ok(())
}

fn expected(cell: &Cell) -> String {
    if cell.unsupported.is_some() {
        return "-".to_owned();
    }
    format_ns(cell.expected_run_ns)
}

fn write_order(out: &mut String, plan: &Plan) -> fmt::Result {
    let blocks = plan.runs_per_cell as usize;
    let most = plan.repetition.map_or(String::new(), |rule| format!(", up to {}", rule.most_runs));
    let in_block = plan.runs_per_block();
    let head = format!("Order: {} of {}{most}, each", count(blocks, "block"), count(in_block, "run"));
    let together = if in_block < plan.cells.len() { ", its client groups together" } else { "" };
    writeln!(out, "\n{head} with every cell once{together}, shuffled (seed {})", plan.seed)?;
    let width = plan.cells.len().saturating_sub(1).to_string().len();
    for block in plan.least_runs().chunks(in_block.max(1)).take(MOST_BLOCKS_SHOWN) {
        let number = block.first().map_or(0, |run| run.block) + 1;
        let shown = block.iter().take(MOST_CELLS_SHOWN).map(|run| format!("{:>width$}", run.cell));
        let more = block.len().checked_sub(MOST_CELLS_SHOWN).filter(|more| *more > 0);
        let cells: Vec<String> = shown.chain(more.map(|more| format!("… and {more} more"))).collect();
        wrap(out, 2, 2 + LABEL_WIDTH, &format!("block {number}"), cells.iter().map(String::as_str), " ")?;
    }
    if blocks > MOST_BLOCKS_SHOWN {
        writeln!(out, "  … and {}", count(blocks - MOST_BLOCKS_SHOWN, "more block"))?;
    }
    Ok(())
}

/// The servers that a study has given settings, pins or another server behind them.
fn write_servers(out: &mut String, plan: &Plan) -> fmt::Result {
    let mut lines = Vec::new();
    for name in &plan.servers {
        let cells = || plan.cells.iter().filter(|cell| cell.level("server") == Some(name));
        let Some(cell) = cells().next() else { continue };
        let held = pin_lines(plan, &plan.pins);
        // Pins that differ between its cells are those of an arm or a sweep.
        let is_own = cells().all(|other| other.pins == cell.pins);
        let own = pin_lines(plan, plan.pins_of(cell)).into_iter();
        let own = own.filter(|line| is_own && !held.contains(line));
        let own = own.map(|(name, value)| format!("{name}: {value}"));
        let words = Some(cell.chain.describe()).filter(|words| words != name);
        let is_swept = cells().any(|other| other.chain != cell.chain);
        let swept = is_swept.then(|| "the first of several".to_owned());
        let parts: Vec<String> = words.into_iter().chain(own).chain(swept).collect();
        if !parts.is_empty() {
            lines.push((name, parts.join("; ")));
        }
    }
    if !lines.is_empty() {
        writeln!(out, "\nServers")?;
    }
    for (name, value) in lines {
        wrap(out, 2, 2 + NAME_WIDTH, name, value.split(' '), " ")?;
    }
    Ok(())
}

fn write_pins(out: &mut String, plan: &Plan) -> fmt::Result {
    let varying = varying_pins(plan);
    writeln!(
        out,
        "\nFixed in every cell{}",
        if varying.is_empty() { "" } else { ", unless stated otherwise" }
    )?;
    for (name, mut value) in pin_lines(plan, &plan.pins) {
        for (_, other) in varying.iter().filter(|(other, _)| *other == name) {
            write!(value, "; or {other}")?;
        }
        wrap(out, 2, 2 + NAME_WIDTH, name, value.split(' '), " ")?;
    }
    Ok(())
}

/// What arms and sweeps change of the pins. The pins of single servers are stated with the servers.
fn varying_pins(plan: &Plan) -> Vec<(&'static str, String)> {
    let is_of_point =
        |level: &Level| level.factor == ARM || (is_sweep(&level.factor) && level.factor.contains("hold."));
    let is_varied = plan.cells.first().is_some_and(|cell| cell.levels.iter().any(is_of_point));
    let held = pin_lines(plan, &plan.pins);
    let mut seen: Vec<&Pins> = Vec::new();
    let mut lines = Vec::new();
    for pins in plan.cells.iter().filter_map(|cell| cell.pins.as_ref()).filter(|_| is_varied) {
        if seen.contains(&pins) {
            continue;
        }
        seen.push(pins);
        for line in pin_lines(plan, pins) {
            if !held.contains(&line) && !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// Those of the pins that mean something to the plan's variants.
fn pin_lines(plan: &Plan, pins: &Pins) -> Vec<(&'static str, String)> {
    let has = |wanted: fn(&Variant) -> bool| plan.cells.iter().any(|cell| wanted(&cell.group.variant));
    let mut entries = vec![
        ("congestion control", pins.congestion_control.name().to_owned()),
        ("initial window", count(pins.initial_window_packets as usize, "packet")),
        ("MTU", format!("{} bytes", pins.mtu_bytes)),
    ];
    let kernel = plan.cells.iter().filter(|cell| !cell.backend.is_default()).count();
    if kernel > 0 && kernel == plan.cells.len() {
        entries.push(("backend", plan.cells[0].backend.to_string()));
    }
    if plan.server_time {
        entries.push(("server time", "measured: every request carries a unique id".to_owned()));
    }
    if has(|variant| variant.is_encrypted()) {
        entries.push(("TLS", tls(pins)));
    }
    if has(|variant| matches!(variant, Variant::H1 | Variant::H1s)) {
        entries
            .push(("HTTP/1.1", format!("at most {}", count(pins.http1_connections as usize, "connection"))));
    }
    if has(|variant| matches!(variant, Variant::H2c | Variant::H2)) {
        let http2 = &pins.http2;
        let windows = windows(http2.stream_window_bytes, http2.connection_window_bytes);
        let (table, frame) = (size(http2.header_table_bytes), size(http2.max_frame_bytes));
        entries.push(("HTTP/2", format!("{windows}, header table {table}, frames up to {frame}")));
    }
    if has(|variant| variant.is_quic()) {
        let http3 = &pins.http3;
        let windows = windows(http3.stream_window_bytes, http3.connection_window_bytes);
        let (table, datagram) = (size(http3.qpack_table_bytes), pins.quic_datagram_bytes);
        entries.push(("HTTP/3", format!("{windows}, QPACK table {table}, datagrams up to {datagram} bytes")));
    }
    entries
}

fn tls(pins: &Pins) -> String {
    let version = match pins.tls_version {
        TlsVersion::V12 => "1.2".to_owned(),
        TlsVersion::V13 => format!("1.3, {:?}", pins.cipher_suite),
    };
    let exchange = format!("{:?}", pins.key_exchange).to_lowercase();
    let resumption = if pins.resumption { "sessions resumed" } else { "no resumption" };
    format!("{version}, {exchange}, {resumption}")
}

fn windows(stream: u32, connection: u32) -> String {
    format!("windows {} a stream, {} a connection", size(stream), size(connection))
}

/// A size as people state windows: in MiB or KiB where it is a whole number of them.
fn size(bytes: u32) -> String {
    match bytes {
        0 => "0 B".to_owned(),
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        bytes => format_bytes(f64::from(bytes)),
    }
}

/// The levels of a factor, in the order of the matrix.
fn levels_of<'a>(plan: &'a Plan, factor: &str) -> Vec<&'a str> {
    let mut levels = Vec::new();
    for level in plan.cells.iter().filter_map(|cell| cell.level(factor)) {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    levels
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn entry(out: &mut String, label: &str, value: &str) -> fmt::Result {
    wrap(out, 2, 2 + LABEL_WIDTH, label, value.split(' '), " ")
}

/// Writes `head` at column `first` and the words from column `indent`, on as many lines as they need.
fn wrap<'a>(
    out: &mut String,
    first: usize,
    indent: usize,
    head: &str,
    words: impl Iterator<Item = &'a str>,
    between: &str,
) -> fmt::Result {
    let mut line = format!("{:first$}{head:<width$}", "", width = indent.saturating_sub(first));
    let mut is_fresh = true;
    for word in words {
        let needed = between.len() + word.chars().count();
        // One column stays for the comma at the line's end.
        if !is_fresh && line.chars().count() + needed >= WIDTH {
            writeln!(out, "{}", clip(format!("{line}{between}").trim_end()))?;
            line = format!("{:indent$}", "");
            is_fresh = true;
        }
        if !is_fresh {
            line.push_str(between);
        }
        line.push_str(word);
        is_fresh = false;
    }
    writeln!(out, "{}", clip(line.trim_end()))
}

/// A line cut to the screen's width; only names that are longer than any sensible one get here.
fn clip(line: &str) -> String {
    if line.chars().count() <= WIDTH {
        return line.to_owned();
    }
    line.chars().take(WIDTH - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_wrapped() {
        let words: Vec<String> = (100..140).map(|number| number.to_string()).collect();
        let mut out = String::new();
        wrap(&mut out, 2, 12, "block 1", words.iter().map(String::as_str), ", ").unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[0].starts_with("  block 1   100, 101,") && lines[0].ends_with(','), "{out}");
        assert!(lines[1].starts_with("            1"));
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{out}");
    }
}
