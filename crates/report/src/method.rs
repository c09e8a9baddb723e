//! The method: networks, workloads, fixed settings, order and seeds, and the stored environment.

use analysis::repetition::Ending;
use model::Pins;
use model::arm::ARM;
use model::level::is_sweep;
use model::pins::CongestionControl;
use model::plan::{Level, Plan};
use model::record::{NetworkCalibration, StreamCalibration};
use model::units::format_rate;
use serde::Serialize;
use serde_json::Value;

use crate::text::{self, clean, clean_line};
use crate::view::View;
use model::number::float;

/// Rows of a table of settings; the result's files have all.
const MAX_ROWS: usize = 400;
/// Runs whose order is shown.
const MAX_ORDERED: usize = 2_000;
/// Characters of a value.
const MAX_VALUE: usize = 600;
/// Levels of nested values that are shown.
const MAX_DEPTH: usize = 8;

/// A table of names and values under a heading.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Settings {
    pub(crate) title: String,
    pub(crate) rows: Vec<(String, String)>,
    /// The number of omitted rows.
    pub(crate) more: usize,
}

/// A network or workload with its description and source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) what: String,
    pub(crate) source: String,
    /// Its reference measurements; empty without any.
    pub(crate) measured: String,
}

/// The order of one block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Block {
    pub(crate) block: u32,
    pub(crate) cells: Vec<String>,
}

/// The networks of the plan, with their reference measurements.
pub(crate) fn networks(plan: &Plan, calibrations: &[NetworkCalibration]) -> Vec<Description> {
    plan.networks
        .iter()
        .map(|network| Description {
            name: clean_line(&network.name),
            title: clean_line(&network.title),
            what: clean_line(&model::network::describe(network)),
            source: clean_line(&network.source),
            measured: calibrations
                .iter()
                .filter(|calibration| calibration.network == network.name)
                .map(reference_measurement)
                .collect::<Vec<_>>()
                .join("; "),
        })
        .collect()
}

/// The results of a network's reference measurements, on a line.
fn reference_measurement(found: &NetworkCalibration) -> String {
    let stream = |direction: &str, stream: &StreamCalibration| {
        let rate = stream.rate.as_ref();
        let rate = rate.map(|rate| format!("{}, ", format_rate(float(rate.measured_bits_per_s))));
        let loss = &stream.loss;
        format!("{direction} {}{} of {} packets lost", rate.unwrap_or_default(), loss.lost, loss.sent)
    };
    let by = if found.backend.is_default() { String::new() } else { format!("by {}: ", found.backend) };
    format!("{by}{}; {}", stream("up", &found.up), stream("down", &found.down))
}

/// The workloads of the plan.
pub(crate) fn workloads(plan: &Plan) -> Vec<Description> {
    plan.workloads
        .iter()
        .map(|named| {
            let (title, what) = match named.workload.page() {
                Some(page) => (clean_line(&page.title), page_detail(page)),
                None => (String::new(), named.describe()),
            };
            let name = clean_line(&named.name);
            Description { name, title, what, source: String::new(), measured: String::new() }
        })
        .collect()
}

fn page_detail(page: &model::Page) -> String {
    let depth = (0..page.resources.len())
        .map(|index| {
            let parent = |index: &usize| page.resources.get(*index).and_then(|resource| resource.named_by);
            std::iter::successors(Some(index), parent).take(page.resources.len()).count()
        })
        .max()
        .unwrap_or(0);
    let levels = text::count(depth.saturating_sub(1), "level", "levels");
    format!("{}, {levels} of dependency", model::page::describe(page))
}

/// The servers that have settings, pins or a back server, one line each.
pub(crate) fn servers(plan: &Plan) -> Option<Settings> {
    let rows = plan.servers.iter().filter_map(|name| {
        let cells = || plan.cells.iter().filter(|cell| cell.level("server") == Some(name));
        let cell = cells().next()?;
        let described = Some(cell.chain.describe()).filter(|described| described != name);
        // Pins that differ between its cells are those of an arm or a sweep.
        let is_own = cells().all(|other| other.pins == cell.pins);
        let differing = cell.pins.as_ref().filter(|_| is_own).map(|pins| differing(pins, &plan.pins));
        let parts: Vec<String> = described.into_iter().chain(differing.into_iter().flatten()).collect();
        (!parts.is_empty()).then(|| (clean_line(name), clean_line(&parts.join("; "))))
    });
    let rows: serde_json::Map<String, Value> =
        rows.map(|(name, described)| (name, described.into())).collect();
    (!rows.is_empty()).then(|| settings("Servers", &Value::Object(rows)))
}

/// The pins that differ from those of the study.
fn differing(pins: &Pins, fixed: &Pins) -> Vec<String> {
    let object = |pins: &Pins| serde_json::to_value(pins).unwrap_or(Value::Null);
    let (Value::Object(own), Value::Object(fixed)) = (object(pins), object(fixed)) else { return Vec::new() };
    let differs = own.iter().filter(|(name, value)| fixed.get(*name) != Some(*value));
    differs.map(|(name, value)| format!("{name} = {value}")).collect()
}

/// The settings that are fixed in every cell.
pub(crate) fn pins(plan: &Plan) -> Settings {
    let mut value = serde_json::to_value(&plan.pins).unwrap_or(Value::Null);
    let backend = plan.cells.first().map(|cell| cell.backend);
    if let (Value::Object(pins), Some(backend)) = (&mut value, backend)
        && !backend.is_default()
        && plan.cells.iter().all(|cell| cell.backend == backend)
    {
        pins.insert("backend".to_owned(), backend.name().into());
    }
    if let Value::Object(pins) = &mut value
        && compares_paced_with_unpaced(plan)
    {
        pins.insert("pacing".to_owned(), PACING.into());
    }
    if let (Value::Object(pins), Some(varying)) = (&mut value, varying(plan)) {
        pins.insert("in other cells".to_owned(), clean_line(&varying).into());
    }
    settings("Fixed settings", &value)
}

/// What arms and sweeps change of the pins; those of single servers are stated with the servers.
fn varying(plan: &Plan) -> Option<String> {
    let is_varied = |level: &Level| level.factor == ARM || is_sweep(&level.factor);
    let cells = plan.cells.iter().filter(|cell| cell.levels.iter().any(is_varied));
    let mut others: Vec<String> = Vec::new();
    for pins in cells.filter_map(|cell| cell.pins.as_ref()) {
        let other = differing(pins, &plan.pins).join("; ");
        if !others.contains(&other) {
            others.push(other);
        }
    }
    (!others.is_empty()).then(|| others.join(", or "))
}

/// A difference of the compared stacks that no setting removes.
const PACING: &str =
    "QUIC paces its packets, TCP on Linux does not (only BBR does): part of the compared stacks";

/// Whether cells with QUIC and cells with TCP are in the plan, and TCP does not pace.
fn compares_paced_with_unpaced(plan: &Plan) -> bool {
    let has = |is_quic: bool| plan.cells.iter().any(|cell| cell.group.variant.is_quic() == is_quic);
    has(true) && has(false) && plan.pins.congestion_control != CongestionControl::Bbr
}

/// The environment, one table for each part.
pub(crate) fn environment(environment: &Value) -> Vec<Settings> {
    let Value::Object(map) = environment else { return vec![settings("Environment", environment)] };
    let is_nested = |value: &Value| match value {
        Value::Object(_) => true,
        Value::Array(items) => items.iter().any(|item| item.is_object() || item.is_array()),
        _ => false,
    };
    // The version of the file does not matter here.
    let plain = map.iter().filter(|(key, value)| *key != "version" && !is_nested(value));
    let plain: serde_json::Map<String, Value> = plain.map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut tables = Vec::new();
    if !plain.is_empty() {
        tables.push(settings("Machine and tool", &Value::Object(plain)));
    }
    for (key, value) in map.iter().filter(|(_, value)| is_nested(value)).take(MAX_ROWS) {
        let (programs, rest) = programs(value);
        if let Some(programs) = programs {
            tables.insert(0, settings("Servers and clients, with their versions", &programs));
        }
        if rest.as_object().is_none_or(|rest| !rest.is_empty()) {
            tables.push(settings(&text::capital(&spelled(key)), &rest));
        }
    }
    tables
}

/// The versions of servers and clients among notes, and the other notes.
fn programs(notes: &Value) -> (Option<Value>, Value) {
    let Value::Object(map) = notes else { return (None, notes.clone()) };
    let is_program = |key: &str| key.starts_with("server ") || key.starts_with("client ");
    let (programs, rest): (serde_json::Map<_, _>, serde_json::Map<_, _>) =
        map.clone().into_iter().partition(|(key, _)| is_program(key));
    ((!programs.is_empty()).then_some(Value::Object(programs)), Value::Object(rest))
}

fn settings(title: &str, value: &Value) -> Settings {
    let mut rows = Vec::new();
    flatten("", value, 0, &mut rows);
    let more = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    Settings { title: title.to_owned(), rows, more }
}

fn flatten(path: &str, value: &Value, depth: usize, rows: &mut Vec<(String, String)>) {
    let join = |key: &str| if path.is_empty() { spelled(key) } else { format!("{path} · {}", spelled(key)) };
    match value {
        Value::Object(map) if depth < MAX_DEPTH => {
            for (key, value) in map {
                flatten(&join(key), value, depth + 1, rows);
            }
        }
        Value::Array(items)
            if items.iter().any(|item| item.is_object() || item.is_array()) && depth < MAX_DEPTH =>
        {
            for (index, item) in items.iter().enumerate() {
                flatten(&join(&(index + 1).to_string()), item, depth + 1, rows);
            }
        }
        other => {
            let bare = [" ns", " bytes"].iter().find_map(|unit| path.strip_suffix(unit)).unwrap_or(path);
            let name = if path.is_empty() { "value" } else { bare };
            rows.push((name.to_owned(), show(path, other)));
        }
    }
}

/// A value for people; its name ends with the unit.
fn show(path: &str, value: &Value) -> String {
    let text = match value {
        Value::Null => text::NONE.to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => clean(text),
        Value::Number(number) => match number.as_u64() {
            Some(n) if path.ends_with(" ns") => text::duration(n),
            Some(n) if path.ends_with("bytes") => format!("{} B", text::grouped(n)),
            _ => number.to_string(),
        },
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        // Spaces, so that the command can be copied.
        Value::Array(items) if path == "command" => {
            items.iter().map(|item| show("", item)).collect::<Vec<_>>().join(" ")
        }
        Value::Array(items) => items.iter().map(|item| show("", item)).collect::<Vec<_>>().join(", "),
        Value::Object(_) => value.to_string(),
    };
    text::shorten(&text, MAX_VALUE)
}

/// A key in words, with abbreviations in capitals; a key with a dot is a name of the kernel and is unchanged.
fn spelled(key: &str) -> String {
    if key.contains('.') {
        return clean_line(key);
    }
    const ABBREVIATIONS: [&str; 10] =
        ["cpu", "tls", "mtu", "quic", "rtt", "http", "http1", "http2", "http3", "tcp"];
    let word = |word: &str| {
        if ABBREVIATIONS.contains(&word) { word.to_uppercase() } else { word.to_owned() }
    };
    clean_line(&key.split('_').map(word).collect::<Vec<_>>().join(" "))
}

/// The planned order of the runs.
pub(crate) fn order(view: &View<'_>) -> Vec<Block> {
    let most = view.runs_per_cell() * view.plan().cells.len();
    let runs = view.plan().runs.iter().take(most.min(MAX_ORDERED));
    let blocks = text::by_key(runs.map(|run| (run.block, view.cell_name(run.cell))));
    blocks.into_iter().map(|(block, cells)| Block { block, cells }).collect()
}

/// The number, order and seeds of runs.
pub(crate) fn describe_order(view: &View<'_>) -> String {
    let plan = view.plan();
    let per_cell = view.runs_per_cell();
    let rule = describe_repetition(view).map(|sentence| format!(" {sentence}")).unwrap_or_default();
    let runs = per_cell * plan.cells.len();
    let rest = match runs > MAX_ORDERED {
        true => format!(" The order of the first {MAX_ORDERED} runs is below; plan.json has all."),
        false => String::new(),
    };
    format!(
        "{} of each of {}, {} in total.{rule} Runs are executed in blocks. Each block has one run of every cell, in random \
         order (seed {}), so that drift of the machine affects all cells equally. Each run has a new lab, server and clients, \
         and the seed of its block in plan.json.{rest}",
        text::count(per_cell, "run", "runs"),
        text::count(plan.cells.len(), "cell", "cells"),
        text::count(runs, "run", "runs"),
        plan.seed
    )
}

/// Why the repetition rule added no more runs; `None` without a rule.
pub(crate) fn describe_repetition(view: &View<'_>) -> Option<String> {
    let (reached, rule) = (view.summary().repetition?, view.plan().repetition?);
    let asked = text::percent(reached.precision_share);
    let widest = reached.widest_share.map_or_else(
        || "there is no interval yet".to_owned(),
        |width| format!("the widest interval is ±{}", text::percent(width)),
    );
    let blocks = text::count(reached.blocks as usize, "block", "blocks");
    Some(match reached.ended_by {
        Some(Ending::Precision) => {
            format!(
                "The study added runs until every interval was within ±{asked}: after {blocks}, {widest}."
            )
        }
        Some(Ending::Budget) => {
            let budget = rule.budget_ns.map_or(String::new(), |ns| format!(" of {}", text::duration(ns)));
            format!(
                "The time budget{budget} ended before every interval was within ±{asked}: after {blocks}, {widest}."
            )
        }
        Some(Ending::MostRuns) => format!(
            "The study reached its maximum of {} before every interval was within ±{asked}: {widest}.",
            text::count(rule.most_runs as usize, "run", "runs")
        ),
        Some(Ending::NothingToMeasure) => {
            format!("The study added no runs: after {blocks}, there are no intervals to narrow.")
        }
        None => {
            format!("The study adds runs until every interval is within ±{asked}; after {blocks}, {widest}.")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_come_first_and_commands_can_be_copied() {
        let stored = serde_json::json!({
            "version": 1,
            "command": ["h123", "run", "quick"],
            "kernel_settings": { "net.ipv4.tcp_rmem": "4096 131072" },
            "notes": { "server origin": "0.1.0", "CPUs": "server [0]" },
        });
        let tables = environment(&stored);
        let titles: Vec<&str> = tables.iter().map(|table| table.title.as_str()).collect();
        let expected =
            ["Servers and clients, with their versions", "Machine and tool", "Kernel settings", "Notes"];
        assert_eq!(titles, expected);
        let row = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(tables[0].rows, [row("server origin", "0.1.0")]);
        assert_eq!(tables[1].rows, [row("command", "h123 run quick")]);
        assert_eq!(tables[2].rows, [row("net.ipv4.tcp_rmem", "4096 131072")]);
    }
}
