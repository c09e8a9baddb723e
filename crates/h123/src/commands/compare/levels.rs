//! Which levels of two plans are the same: by their name and their content.
//!
//! Content is what a run meets. Names, titles and sources are not part of it.

use anyhow::Result;
use model::Plan;
use model::arm::ARM;
use model::plan::{Cell, Level};
use serde_json::{Value, json};

/// What the levels of two plans have to do with each other.
#[derive(Debug, Default, PartialEq)]
pub(super) struct MatchedLevels {
    /// Levels with the same name but different contents.
    pub(super) changed: Vec<Level>,
    /// Levels with different names but the same content: that of A, and that of B.
    pub(super) renamed: Vec<(Level, Level)>,
}

/// A level, and what a run with it meets.
type Content = (Level, Value);

impl MatchedLevels {
    /// Compares the workloads, networks and servers of two plans. Only levels without a namesake are matched
    /// by content, and only if one level of each plan has this content.
    ///
    /// # Errors
    /// A plan cannot be written as JSON, which is a fault of h123.
    pub(super) fn of(a: &Plan, b: &Plan) -> Result<MatchedLevels> {
        let (mut changed, mut renamed) = (Vec::new(), Vec::new());
        for contents in [workloads, arms, networks, servers] {
            let (a, b) = (contents(a)?, contents(b)?);
            let namesake = |of: &[Content], level: &Level| of.iter().position(|(known, _)| known == level);
            for (level, content) in &b {
                match namesake(&a, level) {
                    // Settings of servers are differences of the results: comparing them is usual.
                    Some(_) if level.factor == "server" => {}
                    Some(place) if !is_part(&a[place].1, content) => changed.push(level.clone()),
                    Some(_) => {}
                    None => {
                        let same = |(_, other): &&Content| other == content;
                        let [others, own] = [&a, &b].map(|side| side.iter().filter(same).collect::<Vec<_>>());
                        if let ([(other, _)], [_]) = (others.as_slice(), own.as_slice())
                            && namesake(&b, other).is_none()
                        {
                            renamed.push((other.clone(), level.clone()));
                        }
                    }
                }
            }
        }
        Ok(MatchedLevels { changed, renamed })
    }

    /// Gives the levels of A the names that they have in B.
    pub(super) fn rename(&self, levels: &mut [Level]) {
        for level in levels {
            if let Some((_, new)) = self.renamed.iter().find(|(old, _)| old == level) {
                *level = new.clone();
            }
        }
    }
}

/// Whether all contents of one are among those of the other: one plan may have fewer levels of a sweep.
fn is_part(one: &Value, other: &Value) -> bool {
    match (one.as_array(), other.as_array()) {
        (Some(one), Some(other)) => {
            let has = |all: &[Value], some: &[Value]| some.iter().all(|content| all.contains(content));
            has(one, other) || has(other, one)
        }
        _ => one == other,
    }
}

fn level(factor: &str, value: &str) -> Level {
    Level { factor: factor.to_owned(), value: value.to_owned() }
}

fn workloads(plan: &Plan) -> Result<Vec<Content>> {
    of_levels(plan, "workload", |cell| serde_json::to_value(&plan.workload_of(&cell.group).workload))
}

/// Arms may have the workloads instead.
fn arms(plan: &Plan) -> Result<Vec<Content>> {
    of_levels(plan, ARM, |cell| serde_json::to_value(&plan.workload_of(&cell.group).workload))
}

fn networks(plan: &Plan) -> Result<Vec<Content>> {
    of_levels(plan, "network", |cell| serde_json::to_value(plan.network_of(cell)))
}

/// Each level of a factor with the contents of all its cells, each once: several if sweeps change it.
fn of_levels(
    plan: &Plan,
    factor: &str,
    content: impl Fn(&Cell) -> serde_json::Result<Value>,
) -> Result<Vec<Content>> {
    let mut found: Vec<(Level, Vec<Value>)> = Vec::new();
    for cell in &plan.cells {
        let Some(name) = cell.level(factor) else { continue };
        let level = level(factor, name);
        let mut content = content(cell)?;
        strip(&mut content);
        match found.iter_mut().find(|(known, _)| *known == level) {
            Some((_, contents)) if contents.contains(&content) => {}
            Some((_, contents)) => contents.push(content),
            None => found.push((level, vec![content])),
        }
    }
    Ok(found.into_iter().map(|(level, contents)| (level, Value::Array(contents))).collect())
}

/// Removes the names of a network or a page, which are the same wherever they stand in the document.
fn strip(content: &mut Value) {
    match content {
        Value::Object(entries) => {
            for name in ["name", "title", "source"] {
                if entries.get(name).is_some_and(Value::is_string) {
                    entries.remove(name);
                }
            }
            entries.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Each level of the factor `server`: the servers with their settings, and the pins of its cells.
pub(super) fn servers(plan: &Plan) -> Result<Vec<Content>> {
    let mut servers: Vec<Content> = Vec::new();
    for cell in &plan.cells {
        // Arms may have the servers instead.
        let Some(name) = cell.level("server") else { continue };
        let level = level("server", name);
        if servers.iter().any(|(known, _)| *known == level) {
            continue;
        }
        let mut chain = serde_json::to_value(&cell.chain)?;
        // The topology decides the node.
        chain["node"] = Value::Null;
        let backs = chain.get_mut("backs").and_then(Value::as_array_mut);
        backs.into_iter().flatten().for_each(|back| back["node"] = Value::Null);
        servers.push((level, json!({ "servers": chain, "pins": &cell.pins })));
    }
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::DataFiles;
    use model::error::Source;
    use model::study::Study;

    /// A plan on these two networks, which the matrix describes.
    fn plan(first: &str, second: &str, page: &str, server: &str) -> Plan {
        let text = format!(
            "question = 'q'\nmetric = 'page_load_time'\nbaseline = {{ variant = 'h1s' }}\nmargin = '3%'\nruns = 2\n\
             [matrix]\nvariant = ['h1s', 'h2']\nserver = ['{server}']\nnetwork = [{first}, {second}]\nworkload = ['front']\n\
             [workload.front]\nkind = 'page'\npage = '{page}'\n[server.{server}]\nuse = 'nginx'\n"
        );
        let source = Source { file: "s.toml", text: &text };
        Study::parse("s", source, &[], &DataFiles::default()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn named(plan: &mut Plan, network: usize, name: &str) {
        let old = std::mem::replace(&mut plan.networks[network].name, name.to_owned());
        let levels = plan.cells.iter_mut().flat_map(|cell| &mut cell.levels);
        levels.filter(|level| level.value == old).for_each(|level| level.value = name.to_owned());
    }

    const NEAR: &str = "{ rtt = '5ms' }";
    const FAR: &str = "{ rtt = '80ms', loss = '1%' }";

    #[test]
    fn the_same_content_matches_under_other_names() {
        let a = plan(NEAR, FAR, "small", "one");
        assert_eq!(MatchedLevels::of(&a, &a).unwrap(), MatchedLevels::default());
        let mut b = plan(NEAR, FAR, "small", "two");
        named(&mut b, 1, "far-away");
        b.networks[1].title = "another title".to_owned();
        let found = MatchedLevels::of(&a, &b).unwrap();
        assert_eq!(found.changed, []);
        let far = a.networks[1].name.as_str();
        let renamed = vec![
            (level("network", far), level("network", "far-away")),
            (level("server", "one"), level("server", "two")),
        ];
        assert_eq!(found.renamed, renamed);
        let mut levels = a.cells[1].levels.clone();
        found.rename(&mut levels);
        assert!(
            levels.contains(&level("server", "two")) && levels.contains(&level("variant", "h1s")),
            "{levels:?}"
        );
    }

    #[test]
    fn the_same_name_with_another_content_does_not_match() {
        let a = plan(NEAR, FAR, "small", "one");
        let mut b = plan(NEAR, "{ rtt = '81ms', loss = '1%' }", "large", "one");
        named(&mut b, 1, &a.networks[1].name.clone());
        let found = MatchedLevels::of(&a, &b).unwrap();
        let changed = vec![level("workload", "front"), level("network", &a.networks[1].name)];
        assert_eq!(found, MatchedLevels { changed, renamed: Vec::new() });
        let mut other_words = a.clone();
        other_words.networks[0].source = "another source".to_owned();
        assert_eq!(MatchedLevels::of(&a, &other_words).unwrap(), MatchedLevels::default());
    }

    #[test]
    fn swept_networks_are_compared_level_by_level() {
        let swept = |losses: &str, rtt: &str| {
            let text = format!(
                "question = 'q'\nmetric = 'page_load_time'\nbaseline = {{ variant = 'h1s' }}\nmargin = '3%'\nruns = 2\n\
                 [matrix]\nvariant = ['h1s', 'h2']\nserver = ['nginx']\nnetwork = [{{ name = 'n', rtt = '{rtt}' }}]\n\
                 'network.loss' = {losses}\nworkload = ['front']\n[workload.front]\nkind = 'page'\npage = 'small'\n"
            );
            let source = Source { file: "s.toml", text: &text };
            Study::parse("s", source, &[], &DataFiles::default()).unwrap_or_else(|error| panic!("{error}"))
        };
        let a = swept("['0%', '1%', '2%']", "20ms");
        assert_eq!(MatchedLevels::of(&a, &swept("['0%', '2%']", "20ms")).unwrap(), MatchedLevels::default());
        let far = MatchedLevels::of(&a, &swept("['0%', '2%']", "21ms")).unwrap();
        assert_eq!(far.changed, [level("network", "n")]);
    }

    #[test]
    fn two_levels_with_one_content_are_not_matched() {
        let a = plan(NEAR, FAR, "small", "one");
        let mut b = a.clone();
        b.networks[0] = a.networks[1].clone();
        named(&mut b, 0, "x");
        named(&mut b, 1, "y");
        assert_eq!(MatchedLevels::of(&a, &b).unwrap().renamed, []);
    }
}
