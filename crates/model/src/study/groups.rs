//! `[[group]]`: client groups that run at the same time. Each is a level of the factor `group`.

use super::clients::ClientsOf;
use super::factors::{FactorKind, levels_of};
use super::{Factor, Study, start};
use crate::error::InputError;
use crate::external::OWN_CLIENT;
use crate::keys;
use crate::named::unknown;
use crate::plan::{Cell, ClientGroup, GroupEnd, PlannedTopology, circle_of_ends};
use crate::reader::{Form, Key, Placed, Table};
use crate::start::Start;
use crate::units;

pub(super) const GROUP_KEYS: &[Key] = keys! {
    "name", "text", "required", r#""tokyo-h2""#, "Its name, a level of the factor `group`.";
    "node", "text", "the topology's `client`", r#""tokyo""#, "The node of its clients, a host.";
    "variant", "text", "the matrix's", r#""h2""#, "Its variant, if `[matrix]` has no factor `variant`.";
    "server", "text", "the matrix's", r#""nginx""#, "Its server, if `[matrix]` has no factor `server`.";
    "workload", "text", "the matrix's", r#""front""#, "Its workload, if `[matrix]` has no factor `workload`.";
    "client", "text", "the matrix's, or `h123`", r#""h123""#, "Its client program, if `[matrix]` has no factor `client`.";
    "clients", "whole number", "the workload's", "10", "The number of its clients.";
    "start", "text or table", "the workload's", r#"{ evenly = "1s" }"#, "When its clients start; [below](#start).";
    "end", "text or table", "`\"done\"`", r#"{ after = "30s" }"#,
        "When it ends: `done` when its work is done; `{ after = TIME }` also after a time; `{ with = GROUP }` also with another group.";
    "background", "boolean", "`false`", "true",
        "Whether it only loads server and links: nothing is compared with it, and it may set what the matrix varies.";
};
pub(super) const END_KEYS: &[Key] = keys! {
    "after", "duration", "none", r#""30s""#, "The time after the clients' start, above 0.";
    "with", "text", "none", r#""viewers""#, "The name of another group.";
};
/// More groups than this are a mistake; every group has its own process.
const MOST_GROUPS: usize = 100;
/// The factors that a group can set.
const OWN_FACTORS: [FactorKind; 4] =
    [FactorKind::Variant, FactorKind::Server, FactorKind::Workload, FactorKind::Client];

/// `[[group]]` as written; all `None` in a study without groups.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupEntry {
    name: Option<Placed<String>>,
    pub(super) node: Option<Placed<String>>,
    variant: Option<Placed<String>>,
    server: Option<Placed<String>>,
    workload: Option<Placed<String>>,
    client: Option<Placed<String>>,
    pub(super) clients: Option<u32>,
    pub(super) start: Option<Start>,
    end: End,
    pub(super) is_background: bool,
}

#[derive(Clone, Debug, Default)]
enum End {
    #[default]
    Done,
    After(u64),
    With(Placed<String>),
}

pub(super) fn read(root: &Table<'_>, most_clients: u32) -> Result<Vec<GroupEntry>, InputError> {
    let tables = root.tables("group")?;
    if let Some(table) = tables.get(MOST_GROUPS) {
        return Err(table.error(format!("a study has at most {MOST_GROUPS} groups; merge some")));
    }
    let mut groups: Vec<GroupEntry> = Vec::with_capacity(tables.len());
    for table in tables {
        let group = read_group(&table.with_keys(GROUP_KEYS)?, most_clients)?;
        let name = group.name.as_ref().filter(|name| groups.iter().any(|other| other.name() == name.value));
        if let Some(name) = name {
            return Err(name.error(format!("there are two groups `{}`; rename one", name.value)));
        }
        groups.push(group);
    }
    if let Some(first) = groups.first()
        && groups.iter().all(|group| group.is_background)
    {
        let problem = "every group is `background`, so nothing is measured; remove the key from one";
        return Err(first.name.as_ref().map_or_else(|| root.error(problem), |name| name.error(problem)));
    }
    Ok(groups)
}

fn read_group(table: &Table<'_>, most_clients: u32) -> Result<GroupEntry, InputError> {
    let name = table.required("name", Table::text)?;
    Ok(GroupEntry {
        name: Some(name),
        node: table.string("node")?,
        variant: table.string("variant")?,
        server: table.string("server")?,
        workload: table.string("workload")?,
        client: table.string("client")?,
        clients: table.integer("clients", 1..=most_clients)?.map(|clients| clients.value),
        start: start::read(table)?,
        end: read_end(table)?,
        is_background: table.flag("background")?,
    })
}

fn read_end(table: &Table<'_>) -> Result<End, InputError> {
    let table = match table.form("end")? {
        None => return Ok(End::Done),
        Some(Form::Text(text)) if text.value == "done" => return Ok(End::Done),
        Some(Form::Text(text)) => {
            let problem = "write `done`, `{ after = \"30s\" }` or `{ with = \"GROUP\" }`";
            return Err(text.error(format!("`end`: found `{}`; {problem}", text.value)));
        }
        Some(Form::Table(table)) => table.with_keys(END_KEYS)?,
    };
    match (table.parsed("after", units::parse_duration_ns)?, table.string("with")?) {
        (Some(after), None) if after.value > 0 => Ok(End::After(after.value)),
        (Some(after), None) => Err(after.error("`after` is 0; write a longer time")),
        (None, Some(group)) => Ok(End::With(group)),
        (None, None) => Err(table.error("`end` has neither `after` nor `with`; add one of them")),
        (Some(_), Some(group)) => Err(group.error("`with` excludes `after`; remove one of them")),
    }
}

impl GroupEntry {
    /// Its name; empty for the only group of a study without `[[group]]`.
    pub(super) fn name(&self) -> &str {
        self.name.as_ref().map_or("", |name| name.value.as_str())
    }

    /// Its own level of a factor, in place of the matrix's.
    pub(super) fn own(&self, kind: FactorKind) -> Option<&Placed<String>> {
        match kind {
            FactorKind::Variant => self.variant.as_ref(),
            FactorKind::Server => self.server.as_ref(),
            FactorKind::Workload => self.workload.as_ref(),
            FactorKind::Client => self.client.as_ref(),
            FactorKind::Network | FactorKind::Backend | FactorKind::Group => None,
        }
    }

    /// The node of its clients.
    pub(super) fn node(&self, topology: &PlannedTopology) -> String {
        self.node.as_ref().map_or_else(|| topology.client.clone(), |node| node.value.clone())
    }

    /// An error about its node.
    pub(super) fn node_error(&self, problem: &str) -> InputError {
        let problem = format!("`node`: {problem}");
        self.node.as_ref().map_or_else(|| self.error(problem.clone()), |node| node.error(problem.clone()))
    }

    fn error(&self, problem: String) -> InputError {
        match &self.name {
            Some(name) => name.error(problem),
            None => InputError { place: crate::error::Place::command_line(), problem },
        }
    }
}

impl Study {
    /// The groups are the factor that changes fastest, so that the cells of a run follow each other.
    pub(super) fn set_groups(&mut self, groups: Vec<GroupEntry>) {
        let names: Vec<Placed<String>> = groups.iter().filter_map(|group| group.name.clone()).collect();
        if !names.is_empty() {
            let levels = Placed { value: names, place: self.matrix.place.clone() };
            self.matrix.value.push(Factor { kind: FactorKind::Group, levels });
        }
        self.groups = if groups.is_empty() { vec![GroupEntry::default()] } else { groups };
    }

    /// The levels of a factor in the matrix, then those that only groups name, each once.
    pub(super) fn named_levels(&self, kind: FactorKind) -> Vec<Placed<String>> {
        let mut levels = levels_of(&self.matrix.value, kind).to_vec();
        for own in self.groups.iter().filter_map(|group| group.own(kind)) {
            if levels.iter().all(|level| level.value != own.value) {
                levels.push(own.clone());
            }
        }
        levels
    }

    /// The first group's node, if every group has one: then the topology needs no `client`.
    pub(super) fn first_group_node(&self) -> Option<&Placed<String>> {
        let nodes: Vec<&Placed<String>> =
            self.groups.iter().map(|group| group.node.as_ref()).collect::<Option<_>>()?;
        nodes.first().copied()
    }

    /// The levels of a factor that are measured and not only background.
    pub(super) fn is_measured(&self, kind: FactorKind, level: &str) -> bool {
        let in_matrix = levels_of(&self.matrix.value, kind).iter().any(|known| known.value == level);
        self.groups.iter().filter(|group| !group.is_background).any(|group| match group.own(kind) {
            Some(own) => own.value == level,
            None => in_matrix,
        })
    }

    /// Every factor is in the matrix or set by every group, and not both.
    ///
    /// # Errors
    /// The first factor of which that is not true.
    pub(super) fn check_factors(&self) -> Result<(), InputError> {
        let has = |kind: FactorKind| self.matrix.value.iter().any(|factor| factor.kind == kind);
        for kind in OWN_FACTORS {
            let name = kind.name();
            for group in self.groups.iter().filter(|group| !group.is_background) {
                if let Some(own) = group.own(kind).filter(|_| has(kind)) {
                    return Err(own.error(format!(
                        "`{name}` is also a factor of `[matrix]`, which varies it; remove one of them, or make the \
                         group `background`"
                    )));
                }
            }
            if has(kind) || kind == FactorKind::Client {
                continue;
            }
            if let Some(group) = self.groups.iter().find(|group| group.own(kind).is_none()) {
                return Err(group.error(format!(
                    "the group `{}` has no `{name}`; add it there, or a factor `{name}` to `[matrix]`",
                    group.name()
                )));
            }
        }
        Ok(())
    }

    /// The end of each group.
    ///
    /// # Errors
    /// A group that does not exist, or groups that wait for each other.
    pub(super) fn resolve_ends(&self) -> Result<Vec<GroupEnd>, InputError> {
        let names: Vec<&str> = self.groups.iter().map(GroupEntry::name).collect();
        let ends = self.groups.iter().map(|group| match &group.end {
            End::Done => Ok(GroupEnd::Done),
            End::After(ns) => Ok(GroupEnd::AfterNs(*ns)),
            End::With(other) => match names.iter().position(|name| *name == other.value) {
                Some(place) => Ok(GroupEnd::With(u16::try_from(place).unwrap_or(u16::MAX))),
                None => Err(other
                    .error(format!("`with`: {}", unknown(&other.value, "a group of this study", &names)))),
            },
        });
        ends.collect()
    }
}

/// Checks that the groups of every run can run together.
///
/// # Errors
/// Ends wait for each other, servers have different pins, one page has two deliveries, or an external client
/// cannot do what its group wants.
pub(super) fn check_together(
    study: &Study,
    cells: &[Cell],
    workloads: &[ClientsOf],
) -> Result<(), InputError> {
    for run in cells.chunk_by(|_, next| next.group.group > 0) {
        let groups: Vec<&ClientGroup> = run.iter().map(|cell| &cell.group).collect();
        for (entry, cell) in study.groups.iter().zip(run) {
            if let (Some(circle), End::With(other)) = (circle_of_ends(&groups, cell.group.group), &entry.end)
            {
                return Err(other.error(format!(
                    "the ends of the groups wait for each other: {circle}; write another `end` for one of them"
                )));
            }
            if cell.pins != run[0].pins {
                return Err(entry.error(format!(
                    "the servers of the groups `{}` and `{}` have a different `hold`, and the machine has one of each \
                     setting; write the same",
                    run[0].group.name, cell.group.name
                )));
            }
            let page = |cell: &Cell| workloads[cell.group.workload].named.workload.page();
            let is_other = |other: &&Cell| match (page(cell), page(other)) {
                (Some(own), Some(page)) => own.name == page.name && own.delivery != page.delivery,
                _ => false,
            };
            if let Some(other) = run.iter().find(is_other) {
                return Err(entry.error(format!(
                    "the groups `{}` and `{}` load one page with different `push`, `early_hints` or `document_delay`, and \
                     a server has one of each; write the same",
                    other.group.name, cell.group.name
                )));
            }
            check_external(cell, run).map_err(|problem| match &entry.name {
                Some(name) => name.error(problem),
                None => study.matrix.error(problem),
            })?;
        }
    }
    Ok(())
}

/// An external client is one process that runs until it is done, and finds its server by /etc/hosts.
fn check_external(cell: &Cell, run: &[Cell]) -> Result<(), String> {
    let client = &cell.group.client;
    if client == OWN_CLIENT {
        return Ok(());
    }
    if cell.group.clients > 1 && cell.group.start != Start::Together {
        return Err(format!(
            "`start`: all clients of `{client}` start together; remove the key, or use `{OWN_CLIENT}`"
        ));
    }
    if cell.group.end != GroupEnd::Done {
        return Err(format!("`end`: `{client}` ends when it is done; remove the key, or use `{OWN_CLIENT}`"));
    }
    let is_other = |other: &&Cell| {
        other.group.client != OWN_CLIENT
            && other.group.node == cell.group.node
            && other.chain.node != cell.chain.node
    };
    match run.iter().find(is_other) {
        None => Ok(()),
        Some(other) => Err(format!(
            "the groups `{}` and `{}` have external clients in the node `{}`, which knows one server only; choose \
             another `node` for one of them",
            other.group.name, cell.group.name, cell.group.node
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{GroupEnd, Plan};
    use crate::start::Start;
    use crate::study::tests::{SHORT, parse};
    use crate::variant::Variant;

    /// [`SHORT`] without the factor `variant`, with these groups.
    fn with_groups(groups: &str) -> String {
        let text = SHORT.replace("variant = [\"h1s\", \"h3\"]\n", "");
        assert_ne!(text, SHORT);
        let text = text.replace("baseline = { variant = \"h1s\" }", "baseline = { group = \"one\" }");
        format!("{text}\n{groups}")
    }

    const TWO: &str = "[[group]]\nname = 'one'\nvariant = 'h1s'\n\
                       [[group]]\nname = 'two'\nvariant = 'h2'\nend = { with = 'one' }\n";

    fn plan(groups: &str) -> Plan {
        parse(&with_groups(groups)).unwrap_or_else(|error| panic!("{error}"))
    }

    fn fault(groups: &str) -> String {
        parse(&with_groups(groups)).unwrap_err()
    }

    #[test]
    fn each_group_is_a_cell_of_one_run() {
        let plan = plan(TWO);
        let [one, two] = plan.cells.as_slice() else { panic!("{:#?}", plan.cells) };
        assert_eq!((one.group.variant, two.group.variant), (Variant::H1s, Variant::H2));
        assert_eq!((one.level("group"), two.level("group")), (Some("one"), Some("two")));
        assert_eq!((one.group.group, two.group.group), (0, 1));
        assert_eq!(two.group.end, GroupEnd::With(0));
        assert_eq!(plan.cells_of_run(0).len(), 2);
        assert!(plan.cells_of_run(1).is_empty(), "no run begins with the second group");
        assert_eq!((plan.runs_per_block(), plan.runs.len()), (1, plan.runs_per_cell as usize));
        assert!(plan.runs.iter().all(|run| run.cell == 0));
        assert_eq!(plan.chains_of_run(0).len(), 1, "they share the server");
        assert_eq!((plan.servers_of(one), plan.servers_of(two)), (0..1, 0..1));
        let json = serde_json::to_vec(&plan).unwrap();
        assert_eq!(Plan::from_json(&json).unwrap(), plan);
        assert!(crate::plan_text::plan_text(&plan).contains("its client groups together"));
    }

    #[test]
    fn groups_can_have_their_own_servers() {
        let groups = TWO
            .replace("'h1s'\n", "'h1s'\nserver = 'origin'\n")
            .replace("'h2'\n", "'h2'\nserver = 'nginx'\n");
        let text = with_groups(&groups).replace("server = [\"origin\"]\n", "");
        let plan = parse(&text).unwrap();
        assert_eq!(plan.chains_of_run(0).len(), 2);
        assert_eq!((plan.servers_of(&plan.cells[0]), plan.servers_of(&plan.cells[1])), (0..1, 1..2));
    }

    #[test]
    fn groups_in_other_nodes_have_their_own_routes() {
        let groups = TWO
            .replace("'h1s'\n", "'h1s'\nnode = 'tokyo'\n")
            .replace("'h2'\n", "'h2'\nnode = 'frankfurt'\nclients = 7\nstart = { evenly = '1s' }\n");
        let text = with_groups(&groups)
            .replace("runs = 2", "runs = 2\ntopology = 'sites'")
            .replace("[\"lan\"]", "[\"own\"]");
        let plan = parse(&text).unwrap();
        let [tokyo, frankfurt] = plan.cells.as_slice() else { panic!("{:#?}", plan.cells) };
        let rtt = |cell| plan.network_of(cell).rtt_ns();
        assert!(rtt(tokyo) > 10 * rtt(frankfurt), "{} {}", rtt(tokyo), rtt(frankfurt));
        assert_eq!(plan.network_of(frankfurt).name, "own, from frankfurt");
        assert_eq!((tokyo.group.clients, frankfurt.group.clients), (1, 7));
        assert_eq!(
            (tokyo.group.start, frankfurt.group.start),
            (Start::Together, Start::Evenly { over_ns: 1_000_000_000 })
        );
        let client = |cell| {
            let topology = plan.topology_of(cell).unwrap();
            topology.nodes[topology.client].name.clone()
        };
        assert_eq!((client(tokyo), client(frankfurt)), ("tokyo".to_owned(), "frankfurt".to_owned()));
        assert!(plan.has_reference(tokyo.network) && plan.has_reference(frankfurt.network));
    }

    #[test]
    fn the_clients_of_groups_can_be_swept() {
        let swept = |sweep: &str| {
            parse(
                &with_groups(TWO)
                    .replace("workload = [\"small\"]", &format!("workload = [\"small\"]\n{sweep}")),
            )
        };
        let of = |plan: &Plan| plan.cells.iter().map(|cell| cell.group.clients).collect::<Vec<_>>();
        let both = swept("clients = [1, 50]").unwrap();
        assert_eq!(of(&both), [1, 1, 50, 50]);
        assert_eq!((both.runs_per_block(), both.cells_of_run(2).len()), (2, 2));
        let one = swept("\"group.two.clients\" = [1, 50]").unwrap();
        assert_eq!(of(&one), [1, 1, 1, 50]);
        let except = with_groups(TWO).replace("runs = 2", "runs = 2\nexcept = [{ group = \"two\" }]");
        let fault = parse(&except).unwrap_err();
        assert!(fault.contains("leaves out single client groups"), "{fault}");
    }

    #[test]
    fn servers_can_be_in_different_nodes() {
        let groups =
            TWO.replace("'h1s'\n", "'h1s'\nserver = 'web'\n").replace("'h2'\n", "'h2'\nserver = 'video'\n");
        let servers = "[server.web]\nuse = 'origin'\nnode = 'web-server'\n\
                       [server.video]\nuse = 'origin'\nnode = 'video-server'\n";
        let text = with_groups(&format!("{groups}{servers}"))
            .replace("server = [\"origin\"]\n", "")
            .replace("runs = 2", "runs = 2\ntopology = { name = 'campus', server = 'web-server' }")
            .replace("[\"lan\"]", "[\"own\"]");
        let plan = parse(&text).unwrap();
        let nodes: Vec<&str> = plan.chains_of_run(0).into_iter().map(|chain| chain.node.as_str()).collect();
        assert_eq!(nodes, ["web-server", "video-server"]);
        assert_eq!(plan.network_of(&plan.cells[1]).name, "own, to video-server");
        let wrong = parse(&text.replace("node = 'video-server'", "node = 'router'")).unwrap_err();
        assert!(wrong.contains("`node`: `router` is not a host"), "{wrong}");
    }

    #[test]
    fn a_background_group_may_differ_from_the_matrix() {
        let text = format!(
            "{}[[group]]\nname = 'measured'\n[[group]]\nname = 'bulk'\nbackground = true\nvariant = 'h2'\n\
             workload = 'bulk'\nend = {{ after = '5s' }}\n[workload.bulk]\nkind = 'closed'\n\
             paths = ['/bytes/1000000']\nduration = '60s'\n",
            SHORT
        );
        let plan = parse(&text).unwrap();
        assert_eq!((plan.cells.len(), plan.runs_per_block()), (4, 2));
        let bulk: Vec<_> = plan.cells.iter().filter(|cell| cell.group.is_background).collect();
        assert_eq!(bulk.len(), 2);
        assert!(bulk.iter().all(|cell| cell.group.variant == Variant::H2));
        assert!(bulk.iter().all(|cell| cell.group.end == GroupEnd::AfterNs(5_000_000_000)));
        assert!(bulk.iter().all(|cell| (5..6).contains(&(cell.expected_run_ns / 1_000_000_000))), "not 60 s");
    }

    #[test]
    fn one_process_of_an_external_client_is_all_clients() {
        let text = SHORT.replace("page_load_time", "request_time").replace(
            "kind = \"page\"\npage = \"small\"",
            "kind = \"closed\"\npaths = [\"/bytes/1\"]\nconnections = 2\nrequests = 3\nclients = 50",
        );
        let text = text.replace("[matrix]", "[matrix]\nclient = [\"h2load\"]");
        let plan = parse(&text).unwrap();
        assert!(plan.cells.iter().all(|cell| cell.group.clients == 50 && cell.unsupported.is_none()));
        let merged = plan.workloads[0].workload.merged(50).unwrap();
        assert_eq!((merged.connections(), merged.requests()), (100, Some(150)));
        assert_eq!(plan.workloads[0].workload.merged(u32::MAX), None);
        let fault =
            parse(&text.replace("clients = 50", "clients = 50\nstart = { evenly = '1s' }")).unwrap_err();
        assert!(fault.contains("`start`: all clients of `h2load` start together"), "{fault}");
        // Only a closed loop of one client is the same as those of many.
        let page = SHORT.replace("[matrix]", "[matrix]\nclient = [\"h2load\"]");
        let plan = parse(&page.replace("page = \"small\"", "page = \"small\"\nclients = 2")).unwrap();
        let reason = plan.cells[0].unsupported.as_deref().unwrap();
        assert!(reason.contains("2 clients"), "{reason}");
    }

    #[test]
    fn faults_of_groups() {
        for (groups, expected) in [
            (TWO.replace("'h2'", "'h5'"), "`h5` is not a variant"),
            (TWO.replace("'two'", "'one'"), "there are two groups `one`; rename one"),
            (TWO.replace("variant = 'h2'\n", ""), "the group `two` has no `variant`; add it there"),
            (TWO.replace("with = 'one'", "with = 'on'"), "`with`: `on` is not a group of this study"),
            (
                TWO.replace("with = 'one'", "with = 'two'"),
                "the ends of the groups wait for each other: two, two",
            ),
            (
                TWO.replace("'h1s'\n", "'h1s'\nend = { with = 'two' }\n"),
                "the ends of the groups wait for each other: one, two, one",
            ),
            (TWO.replace("{ with = 'one' }", "'never'"), "`end`: found `never`; write `done`"),
            (TWO.replace("with = 'one'", "after = '0s'"), "`after` is 0"),
            (TWO.replace("{ with = 'one' }", "{ }"), "`end` has neither `after` nor `with`"),
            (TWO.replace("'h2'\n", "'h2'\nnode = 'moon'\n"), "`node`: `moon` is not a host"),
            (TWO.replace("'h2'\n", "'h2'\nserver = 'nginx'\n"), "`server` is also a factor of `[matrix]`"),
            (TWO.replace("'h2'\n", "'h2'\nclients = 0\n"), "`clients` is 0"),
            (TWO.replace("'h2'\n", "'h2'\nstart = 'soon'\n"), "`start`: found `soon`; write `together`"),
            (TWO.replace("'h2'\n", "'h2'\nstart = {}\n"), "`start` is empty"),
            (TWO.replace("'h2'\n", "'h2'\nstart = { ramp = '0s' }\n"), "`ramp`: 0 is too short"),
            (TWO.replace("'h2'\n", "'h2'\nstart = { ramp = '1s', evenly = '1s' }\n"), "several periods"),
            (TWO.replace("'h2'\n", "'h2'\nclient = 'wrk'\n"), "`end`: `wrk` ends when it is done"),
            (
                TWO.replace("'h1s'\n", "'h1s'\nbackground = true\n")
                    .replace("'h2'\n", "'h2'\nbackground = true\n"),
                "every group is `background`",
            ),
        ] {
            let fault = fault(&groups);
            assert!(fault.contains(expected), "{groups}\n{fault}");
        }
    }
}
