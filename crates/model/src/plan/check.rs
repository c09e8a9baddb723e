//! The one validator of plans that are read back: every index leads somewhere, and every value is one that a
//! study can have. Code that has a plan relies on it.

use std::collections::BTreeSet;

use crate::named::unknown;
use crate::page::parse_host;
use crate::plan::{Cell, ClientGroup, GroupEnd, PLAN_VERSION, Plan, circle_of_ends};
use crate::player::Player;
use crate::request_path::check_request_path;
use crate::schedule::Share;
use crate::script::{Replay, Script};
use crate::statistic::Statistic;
use crate::topology::Topology;
use crate::version::version_of;
use crate::workload::Workload;

/// The longest name of a study, factor or level, in bytes.
const LONGEST_NAME_BYTES: usize = 1_000;

/// A check of one part, whose error is the end of a sentence.
type Checked = Result<(), String>;

impl Plan {
    /// Reads `plan.json`.
    ///
    /// # Errors
    /// It is not JSON, has another version or another form, or contradicts itself.
    pub fn from_json(json: &[u8]) -> Result<Plan, String> {
        let version = version_of(json).map_err(|error| error.to_string())?;
        if version != PLAN_VERSION {
            return Err(format!(
                "it contains a plan of version {version}, but this h123 reads version {PLAN_VERSION}; use the \
                 h123 that began it"
            ));
        }
        let plan: Plan = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        plan.check().map_err(|problem| format!("it contradicts itself: {problem}"))?;
        Ok(plan)
    }

    /// Checks that the plan is one that a study can resolve to.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Checked {
        check_name("study", &self.study)?;
        if !(self.margin_share > 0.0 && self.margin_share.is_finite()) {
            return Err(format!("`margin_share` is {}; it is above 0", self.margin_share));
        }
        if self.statistic == Statistic::Iqr {
            return Err(format!("`statistic` is {}, which has no better direction", self.statistic));
        }
        if self.runs_per_cell == 0 || self.cells.is_empty() || self.workloads.is_empty() {
            return Err("it has no runs, cells or workloads".to_owned());
        }
        let built = &self.topology.built;
        if !built.is_empty() && built.len() != self.networks.len() {
            return Err(format!("it has {} networks and {} topologies", self.networks.len(), built.len()));
        }
        for topology in built {
            check_topology(topology).map_err(|problem| format!("topology `{}`: {problem}", topology.name))?;
        }
        self.workloads.iter().try_for_each(|named| {
            check_name("workload", &named.name)?;
            check_workload(&named.workload).map_err(|problem| format!("workload `{}`: {problem}", named.name))
        })?;
        self.check_media()?;
        self.classes.iter().try_for_each(|class| check_name("class", &class.name))?;
        let mut known = BTreeSet::new();
        for (index, cell) in self.cells.iter().enumerate() {
            self.check_cell(index, cell).map_err(|problem| format!("cell {index}: {problem}"))?;
            let levels = cell.levels.iter().map(|level| (level.factor.as_str(), level.value.as_str()));
            if !known.insert((levels.collect::<Vec<_>>(), cell.backend.name())) {
                return Err(format!("cell {index}: it is a second cell `{}`", cell.label()));
            }
        }
        self.check_runs()
    }

    fn check_media(&self) -> Checked {
        let mut known = BTreeSet::new();
        for media in &self.media {
            check_name("media", &media.name)?;
            if !known.insert(&media.name) {
                return Err(format!("two media have the name `{}`", media.name));
            }
            let check = || {
                media.presentation.check()?;
                media.presentation.segments().try_for_each(|segment| check_request_path(&segment.url))
            };
            check().map_err(|problem| format!("media `{}`: {problem}", media.name))?;
        }
        Ok(())
    }

    fn check_cell(&self, index: usize, cell: &Cell) -> Checked {
        if cell.cell as usize != index {
            return Err(format!("its number is {}", cell.cell));
        }
        check_index("network", cell.network, self.networks.len())?;
        if cell.level(&self.baseline.factor).is_none() {
            let factors: Vec<&str> = cell.levels.iter().map(|level| level.factor.as_str()).collect();
            return Err(unknown(&self.baseline.factor, "a factor", &factors));
        }
        cell.levels.iter().try_for_each(|level| {
            check_name("factor", &level.factor)?;
            check_name("level", &level.value)
        })?;
        check_index("workload", cell.group.workload, self.workloads.len())?;
        let before = index.checked_sub(1).map(|before| &self.cells[before]);
        match (cell.group.group, before) {
            (0, _) => {}
            (number, Some(before)) if before.group.group + 1 == number => {
                let same = |other: &Cell| (other.backend, other.pins.clone());
                if same(before) != same(cell) {
                    return Err("its backend or pins differ from those of its run".to_owned());
                }
            }
            (number, _) => return Err(format!("its client group {number} follows no group {}", number - 1)),
        }
        if let GroupEnd::With(other) = cell.group.end {
            let groups = &self.cells[index - usize::from(cell.group.group)..];
            let groups: Vec<&ClientGroup> = (0_u16..)
                .zip(groups)
                .take_while(|(number, cell)| cell.group.group == *number)
                .map(|(_, cell)| &cell.group)
                .collect();
            check_index("client group", other.into(), groups.len())?;
            if let Some(circle) = circle_of_ends(&groups, cell.group.group) {
                return Err(format!("the ends of its client groups wait for each other: {circle}"));
            }
        }
        Ok(())
    }

    fn check_runs(&self) -> Checked {
        let mut block = 0;
        for (index, run) in self.runs.iter().enumerate() {
            let problem = if run.run as usize != index {
                Err(format!("its number is {}", run.run))
            } else if run.block < block {
                Err(format!("block {} follows block {block}", run.block))
            } else {
                check_index("cell", run.cell as usize, self.cells.len()).and_then(|()| {
                    match self.cells_of_run(run.cell) {
                        [] => Err(format!("its cell {} is not the first of a run", run.cell)),
                        _ => Ok(()),
                    }
                })
            };
            problem.map_err(|problem| format!("run {index}: {problem}"))?;
            block = run.block;
        }
        let in_block = self.runs_per_block();
        if self.runs.len() < in_block * self.runs_per_cell as usize {
            return Err(format!("it has {} runs; a block has {in_block}", self.runs.len()));
        }
        Ok(())
    }
}

/// Names reach terminals, file names and reports.
fn check_name(what: &str, name: &str) -> Checked {
    match name {
        "" => Err(format!("a {what} has no name")),
        name if name.len() > LONGEST_NAME_BYTES => {
            Err(format!("the name of a {what} has {} bytes", name.len()))
        }
        name if name.chars().any(char::is_control) => {
            Err(format!("the name {name:?} of a {what} contains a control character"))
        }
        _ => Ok(()),
    }
}

fn check_index(what: &str, index: usize, count: usize) -> Checked {
    if index < count { Ok(()) } else { Err(format!("it names {what} {index} of {count}")) }
}

fn check_workload(workload: &Workload) -> Checked {
    if let Some(load) = workload.as_loop()
        && (load.connections == 0 || load.streams == 0 || load.paths.is_empty())
    {
        return Err("it has no connections, streams or paths".to_owned());
    }
    if let Workload::Script(script) = workload {
        check_script(script)?;
    }
    if let Some(page) = workload.page() {
        check_name("page", &page.name)?;
        if page.resources.is_empty() {
            return Err("its page has no resources".to_owned());
        }
        for (index, resource) in page.resources.iter().enumerate() {
            match resource.named_by {
                Some(parent) if parent >= index => {
                    return Err(format!("resource {index} is named by resource {parent}, which follows it"));
                }
                None if index > 0 => return Err(format!("resource {index} is named by no other")),
                _ => {}
            }
            check_index("host", resource.origin.into(), page.host_count())?;
        }
        for host in &page.hosts {
            parse_host(host)?;
        }
        let delivery = &page.delivery;
        for resource in delivery.push.iter().chain(&delivery.early_hints) {
            check_index("resource", *resource, page.resources.len())?;
        }
    }
    if let Some(player) = workload.player() {
        check_player(player)?;
    }
    workload.paths().iter().try_for_each(|path| check_request_path(path))
}

/// The most representations of a track.
const MOST_REPRESENTATIONS: usize = 64;

/// The tracks of a player: each of another kind, complete, and on the server of the study.
fn check_player(player: &Player) -> Checked {
    if player.live.is_some() {
        return Ok(());
    }
    player.presentation.check()?;
    let tracks = &player.presentation.tracks;
    for (index, track) in tracks.iter().enumerate() {
        let kind = track.kind;
        if tracks[..index].iter().any(|other| other.kind == kind) {
            return Err(format!("it has several {kind} tracks; a player plays one"));
        }
        if track.representations.len() > MOST_REPRESENTATIONS {
            return Err(format!("its {kind} has more than {MOST_REPRESENTATIONS} representations"));
        }
        if track.durations_ns.contains(&0) {
            return Err(format!("a segment of its {kind} has no duration"));
        }
    }
    let outside = player.presentation.segments().find(|segment| !segment.url.starts_with('/'));
    outside.map_or(Ok(()), |segment| {
        let shown = crate::formats::shown(&segment.url);
        Err(format!("its segment `{shown}` is not on the server of the study"))
    })
}

fn check_script(script: &Script) -> Checked {
    let Script { entries, load, .. } = script;
    if !entries.is_sorted_by_key(|entry| entry.at_ns) {
        return Err("its script is not in order of time".to_owned());
    }
    if entries.is_empty() || script.speed.0 == 0 {
        return Err("its script has no requests, or the speed 0".to_owned());
    }
    if script.replay == Replay::Dependency && script.share != Share::WHOLE {
        return Err("its clients share a script whose requests wait for each other".to_owned());
    }
    let most = entries.iter().map(|entry| entry.url as usize).max().unwrap_or(0);
    check_index("path", most, load.paths.len())?;
    for (place, entry) in entries.iter().enumerate() {
        entry.after.iter().try_for_each(|other| check_index("request", *other as usize, place))?;
    }
    Ok(())
}

fn check_topology(topology: &Topology) -> Checked {
    let nodes = topology.nodes.len();
    let of_cross = topology.cross.iter().flat_map(|cross| [cross.from, cross.to]);
    for node in [topology.client, topology.server].into_iter().chain(of_cross) {
        check_index("node", node, nodes)?;
    }
    for (node, interface) in topology.links.iter().flat_map(|link| link.ends) {
        check_index("node", node, nodes)?;
        check_index("interface", interface, topology.nodes[node].interfaces.len())?;
    }
    for node in &topology.nodes {
        check_name("node", &node.name)?;
        node.routes
            .iter()
            .try_for_each(|route| check_index("interface", route.interface, node.interfaces.len()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::plan_text::plan_text;
    use crate::study::tests::{SHORT, parse};

    fn plan() -> Value {
        let metric = "metric = \"page_load_time\"";
        let text = SHORT.replace(metric, &format!("{metric}\nstatistic = \"mean\""));
        let text = format!(
            "{text}[media.film]\nsegment = \"2s\"\nlength = \"4s\"\n[media.film.video]\nladder = [\"1Mbit/s\"]\n"
        );
        serde_json::to_value(parse(&text).unwrap()).unwrap()
    }

    fn problem(pointer: &str, value: Value) -> String {
        let mut plan = plan();
        *plan.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        Plan::from_json(plan.to_string().as_bytes()).unwrap_err()
    }

    #[test]
    fn contradictions_are_refused_at_their_place() {
        for (pointer, value, expected) in [
            ("/version", json!(99), "it contains a plan of version 99, but this h123 reads version"),
            ("/study", json!("a\u{1b}[2J"), "contains a control character"),
            ("/media/0/name", json!("film\n"), "the name \"film\\n\" of a media contains a control"),
            ("/media/0/presentation/tracks/0/durations_ns/0", json!([]), "invalid type"),
            (
                "/media/0/presentation/tracks/0/durations_ns",
                json!([1]),
                "`video-1000k` has 2 segments and 1 durations",
            ),
            ("/media/0/presentation/tracks", json!([]), "media `film`: it has no tracks"),
            (
                "/workloads/0/workload/resources/0",
                json!({ "path": "/", "kind": "html", "bytes": 9, "named_by": null, "named_at_bytes": 0, "origin": 1 }),
                "it names host 1 of 1",
            ),
            ("/cells/0/network", json!(7), "cell 0: it names network 7 of 1"),
            ("/cells/0/group/workload", json!(7), "cell 0: it names workload 7 of 1"),
            ("/cells/0/group/group", json!(1), "cell 0: its client group 1 follows no group 0"),
            ("/cells/1/cell", json!(0), "cell 1: its number is 0"),
            ("/runs/1/cell", json!(9), "run 1: it names cell 9 of 2"),
            ("/runs/1/run", json!(5), "run 1: its number is 5"),
            ("/baseline/factor", json!("colour"), "`colour` is not a factor"),
            ("/margin_share", json!(0.0), "`margin_share` is 0"),
            ("/statistic", json!("iqr"), "`statistic` is iqr"),
            ("/runs", json!([]), "it has 0 runs; a block has 2"),
        ] {
            let problem = problem(pointer, value);
            assert!(problem.contains(expected), "{pointer}: {problem}");
        }
        for (end, expected) in [
            (1, "cell 1: it names client group 1 of 1"),
            (0, "cell 1: the ends of its client groups wait for each other"),
        ] {
            let mut group = plan()["cells"][1]["group"].clone();
            group["end"] = json!({ "with": end });
            let problem = problem("/cells/1/group", group);
            assert!(problem.contains(expected), "{problem}");
        }
        let mut escaping = plan();
        escaping["workloads"][0]["workload"]["hosts"] = json!(["../a.test"]);
        let problem = Plan::from_json(escaping.to_string().as_bytes()).unwrap_err();
        assert!(problem.contains("`../a.test` is not a host name"), "{problem}");
        assert!(Plan::from_json(b"null").is_err());
    }

    #[test]
    fn plans_of_older_versions_are_named_although_their_players_had_another_form() {
        let mut plan = plan();
        plan["version"] = json!(9);
        plan["workloads"][0]["workload"] = json!({
            "kind": "player", "ladder_bits_per_s": [1_000_000], "segment_ns": 2_000_000_000, "segments": 30
        });
        let problem = Plan::from_json(plan.to_string().as_bytes()).unwrap_err();
        assert_eq!(
            problem,
            "it contains a plan of version 9, but this h123 reads version 10; use the h123 that began it"
        );
    }

    /// Every place in a document.
    fn places(value: &Value, at: &str, all: &mut Vec<String>) {
        all.push(at.to_owned());
        match value {
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, item)| places(item, &format!("{at}/{index}"), all));
            }
            Value::Object(entries) => {
                entries.iter().for_each(|(key, item)| places(item, &format!("{at}/{key}"), all));
            }
            _ => {}
        }
    }

    #[test]
    fn no_single_change_makes_a_plan_that_panics() {
        let (original, mut all) = (plan(), Vec::new());
        places(&original, "", &mut all);
        let mut accepted = 0;
        for place in &all {
            for value in [
                json!(0),
                json!(4_000_000_000_u32),
                json!(-1),
                json!(""),
                json!("\r\n"),
                json!([]),
                json!(null),
            ] {
                let mut changed = original.clone();
                *changed.pointer_mut(place).unwrap() = value;
                let Ok(plan) = Plan::from_json(changed.to_string().as_bytes()) else { continue };
                accepted += 1;
                plan_text(&plan);
                let _ = (plan.pages(), plan.segments(), plan.expected_ns(), plan.least_runs().len());
                for cell in &plan.cells {
                    let _ = (plan.topology_of(cell), plan.pins_of(cell), plan.network_of(cell));
                }
            }
        }
        assert!(accepted > 0, "some changes make another valid plan");
    }
}
