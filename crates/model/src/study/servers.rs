//! `[server.NAME]`: a server under the study's own name, with its settings, its pins and the server behind
//! it.

use super::factors::FactorKind;
use super::factors::check_name;
use super::hold::{self, Hold};
use super::{Library, Study};
use crate::error::InputError;
use crate::keys;
use crate::named::unknown;
use crate::pins::Pins;
use crate::plan::{BackServer, MOST_RATE, MOST_REQUESTS, Remote, RemoteTrust, ServerChain};
use crate::reader::{Key, Placed, Table};
use crate::tunable::{ServerFacts, Setting, Settings};
use crate::url::Url;
use crate::variant::Variant;

pub(super) const SERVER_KEYS: &[Key] = keys! {
    "use", "text", "NAME", r#""nginx""#, "The server.";
    "set", "table", "none", r#"{ workers = 2, tls_record = "4KiB" }"#,
        "Settings of its tunables; `h123 servers show nginx` lists them.";
    "hold", "table", "the study's", r#"{ congestion_control = "bbr" }"#,
        "The keys of [`[hold]`](#hold) that differ for this server.";
    "node", "text", "the topology's `server`", r#""video-server""#,
        "Its node, a host that packets from the clients reach.";
    "back", "table", "none", r#"{ use = "apache", variant = "h1" }"#, "The server behind it, for a reverse proxy.";
    "url", "text", "none", r#""https://www.example.com/""#,
        "The URL of a server that runs already: h123 starts nothing; [below](#servers-that-already-run). Excludes `use`, `set` and `back`.";
    "cacert", "text", "the system's authorities", r#""ca.pem""#,
        "The file with the certificate authorities to trust instead. Requires `url`.";
    "insecure", "boolean", "`false`", "true", "Accepts any certificate. Requires `url`, excludes `cacert`.";
    "most_requests", "whole number", "`2000`", "5000",
        "The most requests of all runs together, 1 to 1 000 000. Requires `url`.";
    "most_rate", "whole number", "`50`", "10",
        "The most requests per second, within a run and on average over a run and the rest after it, 1 to 10 000. Requires `url`.";
};
pub(super) const BACK_KEYS: &[Key] = keys! {
    "use", "text", "required", r#""nginx""#, "The server.";
    "variant", "text", "required", r#""h1""#, "The variant between the two; both must support it.";
    "set", "table", "none", "{ workers = 4 }", "Settings of its tunables.";
    "back", "table", "none", r#"{ use = "apache", variant = "h1" }"#, "The server behind it, for a reverse proxy behind a proxy.";
};

/// `[server.NAME]` as written.
#[derive(Clone, Debug)]
pub(super) struct ServerEntry {
    pub(super) name: Placed<String>,
    server: Placed<String>,
    set: Vec<NamedSetting>,
    /// The study's with what is held for this server alone.
    pub(super) hold: Option<Hold>,
    node: Option<Placed<String>>,
    back: Option<BackEntry>,
    pub(super) remote: Option<Remote>,
}

/// `[server.NAME.back]` as written.
#[derive(Clone, Debug)]
struct BackEntry {
    server: Placed<String>,
    variant: Placed<String>,
    set: Vec<NamedSetting>,
    back: Option<Box<BackEntry>>,
}

/// More servers behind each other than this are a mistake.
const MOST_BACKS: usize = 8;

/// A tunable's name and the value that it shall have.
type NamedSetting = (Placed<String>, Placed<Setting>);

/// A level of the factor `server`, looked up; its nodes are still to be filled in.
#[derive(Clone, Debug)]
pub(super) struct ServerLevel {
    pub(super) name: String,
    pub(super) chain: ServerChain,
    /// The node of the front server, where the study chooses it.
    pub(super) node: Option<Placed<String>>,
    /// Where they differ from the study's.
    pub(super) pins: Option<Pins>,
}

pub(super) fn read(root: &Table<'_>, hold: &Hold) -> Result<Vec<ServerEntry>, InputError> {
    let Some(table) = root.table("server")? else { return Ok(Vec::new()) };
    let entries = table.named_tables()?.into_iter();
    entries.map(|(name, entry)| read_entry(name, &entry.with_keys(SERVER_KEYS)?, hold)).collect()
}

fn read_entry(name: Placed<String>, table: &Table<'_>, hold: &Hold) -> Result<ServerEntry, InputError> {
    let server = table.string("use")?.unwrap_or_else(|| name.clone());
    let own = table.table("hold")?.map(|own| hold::read_onto(own, hold)).transpose()?;
    let back = read_back(table)?;
    let node = table.string("node")?;
    let remote = read_remote(table)?;
    Ok(ServerEntry { name, server, set: read_set(table)?, hold: own, node, back, remote })
}

/// Keys of servers that h123 starts, and keys of those that it does not.
const STARTED: [&str; 3] = ["use", "set", "back"];
const NOT_STARTED: [&str; 4] = ["cacert", "insecure", "most_requests", "most_rate"];

fn read_remote(table: &Table<'_>) -> Result<Option<Remote>, InputError> {
    let found = |keys: &[&str]| table.keys().find(|key| keys.contains(&key.value.as_str()));
    let Some(url) = table.parsed("url", Url::parse)? else {
        return found(&NOT_STARTED).map_or(Ok(None), |key| {
            Err(key.error(format!("`{}` requires `url`; add it, or remove the key", key.value)))
        });
    };
    if let Some(key) = found(&STARTED) {
        let problem = "excludes `url`, because h123 does not start that server; remove one of them";
        return Err(key.error(format!("`{}` {problem}", key.value)));
    }
    let trust = match (table.string("cacert")?, table.flag("insecure")?) {
        (Some(file), true) => return Err(file.error("`cacert` excludes `insecure`; remove one of them")),
        (Some(file), false) => RemoteTrust::Authorities(file.value),
        (None, true) => RemoteTrust::Anyone,
        (None, false) => RemoteTrust::System,
    };
    let most_requests =
        table.integer("most_requests", 1..=1_000_000)?.map_or(MOST_REQUESTS, |most| most.value);
    let most_rate = table.integer("most_rate", 1..=10_000)?.map_or(MOST_RATE, |most| most.value);
    Ok(Some(Remote { url: url.value, trust, most_requests, most_rate }))
}

/// The server behind that of a table.
fn read_back(table: &Table<'_>) -> Result<Option<BackEntry>, InputError> {
    let Some(back) = table.table("back")? else { return Ok(None) };
    let table = &back.with_keys(BACK_KEYS)?;
    let (server, variant) =
        (table.required("use", Table::string)?, table.required("variant", Table::string)?);
    let back = read_back(table)?.map(Box::new);
    Ok(Some(BackEntry { server, variant, set: read_set(table)?, back }))
}

fn read_set(table: &Table<'_>) -> Result<Vec<NamedSetting>, InputError> {
    let Some(set) = table.table("set")? else { return Ok(Vec::new()) };
    let read = |name: Placed<String>| Ok((set.required(&name.value, Setting::read)?, name));
    set.keys().map(|name| read(name).map(|(setting, name)| (name, setting))).collect()
}

/// An unused server is usually a name that was changed in one place only.
pub(super) fn check_used(levels: &[Placed<String>], entries: &[ServerEntry]) -> Result<(), InputError> {
    let is_used = |entry: &&ServerEntry| levels.iter().any(|level| level.value == entry.name.value);
    match entries.iter().find(|entry| !is_used(entry)) {
        None => Ok(()),
        Some(unused) => Err(unused.name.error(format!(
            "`[server.{}]` is not used: `server` in `[matrix]` does not name it; add it there, or remove the table",
            unused.name.value
        ))),
    }
}

/// Looks up the levels of the factor `server`.
pub(super) fn resolve(
    study: &Study,
    levels: &[Placed<String>],
    library: &impl Library,
) -> Result<Vec<ServerLevel>, InputError> {
    // Every table must be valid; the plan has only those of the matrix.
    let defined: Vec<ServerLevel> =
        study.servers.iter().map(|entry| resolve_entry(entry, study, library)).collect::<Result<_, _>>()?;
    let mut known = library.servers();
    known.extend(
        defined.iter().map(|level| level.name.clone()).filter(|name| !library.servers().contains(name)),
    );
    let levels: Vec<ServerLevel> = levels
        .iter()
        .map(|level| {
            check_name(level, "", "a server", &known)?;
            match defined.iter().find(|defined| defined.name == level.value) {
                Some(defined) => Ok(defined.clone()),
                None => plain(level, library),
            }
        })
        .collect::<Result<_, _>>()?;
    check_remote(study, &levels)?;
    Ok(levels)
}

/// A server by the name of its adapter, with its default settings.
fn plain(level: &Placed<String>, library: &impl Library) -> Result<ServerLevel, InputError> {
    let facts = library.server(&level.value).map_err(|problem| level.error(problem))?;
    if facts.needs_back {
        return Err(level.error(needs_back(&level.value, &level.value)));
    }
    let chain = ServerChain::alone("", &level.value);
    Ok(ServerLevel { name: level.value.clone(), chain, node: None, pins: None })
}

fn resolve_entry(
    entry: &ServerEntry,
    study: &Study,
    library: &impl Library,
) -> Result<ServerLevel, InputError> {
    let pins = entry.hold.as_ref().map(|hold| hold.pins.clone()).filter(|pins| *pins != study.hold.pins);
    let name = entry.name.value.clone();
    if let Some(remote) = &entry.remote {
        let chain = ServerChain { remote: Some(remote.clone()), ..ServerChain::alone("", &name) };
        return Ok(ServerLevel { name, chain, node: entry.node.clone(), pins });
    }
    let facts = facts(&entry.server, library)?;
    let server = &entry.server.value;
    if entry.back.is_none() && facts.needs_back {
        return Err(entry.name.error(needs_back(server, &entry.name.value)));
    }
    let mut backs = Vec::new();
    let mut before = (server, facts.clone());
    let mut next = entry.back.as_ref();
    while let Some(back) = next {
        if backs.len() == MOST_BACKS {
            return Err(back
                .server
                .error(format!("at most {MOST_BACKS} servers are behind each other; remove some")));
        }
        let (found, resolved) = resolve_back(back, before.0, &before.1, library)?;
        backs.push(resolved);
        before = (&back.server.value, found);
        next = back.back.as_deref();
    }
    let chain = ServerChain {
        node: String::new(),
        server: server.clone(),
        set: resolve_set(&entry.set, &facts, server)?,
        backs,
        remote: None,
    };
    Ok(ServerLevel { name, chain, node: entry.node.clone(), pins })
}

fn facts(server: &Placed<String>, library: &impl Library) -> Result<ServerFacts, InputError> {
    check_name(server, "`use`: ", "a server", &library.servers())?;
    library.server(&server.value).map_err(|problem| server.error(problem))
}

fn needs_back(server: &str, level: &str) -> String {
    format!(
        "`{server}` is a proxy and requires a server behind it; add `[server.{level}.back]` with `use = \"nginx\"` and \
         `variant = \"h1\"`"
    )
}

fn resolve_back(
    back: &BackEntry,
    proxy: &str,
    proxy_facts: &ServerFacts,
    library: &impl Library,
) -> Result<(ServerFacts, BackServer), InputError> {
    let (server, variant) = (&back.server, &back.variant);
    let names = |variants: &[Variant]| variants.iter().map(|variant| variant.name()).collect::<Vec<_>>();
    if proxy_facts.back_variants.is_empty() {
        let problem =
            format!("`{proxy}` is not a proxy and has no server behind it; remove `back`, or use a proxy");
        return Err(server.error(problem));
    }
    let found = facts(server, library)?;
    if found.needs_back && back.back.is_none() {
        return Err(server.error(format!(
            "`use`: `{}` is a proxy that requires a server behind it; add a `back`, or write a server that requires none",
            server.value
        )));
    }
    let parsed: Option<Variant> = variant.value.parse().ok();
    let noun = format!("a variant of `{proxy}` towards a server behind it");
    let asked = parsed.filter(|parsed| proxy_facts.back_variants.contains(parsed)).ok_or_else(|| {
        variant.error(format!(
            "`variant`: {}",
            unknown(&variant.value, &noun, &names(&proxy_facts.back_variants))
        ))
    })?;
    if !found.variants.contains(&asked) {
        let noun = format!("a variant of the server `{}`", server.value);
        let problem = unknown(&variant.value, &noun, &names(&found.variants));
        return Err(variant.error(format!("`variant`: {problem}")));
    }
    let set = resolve_set(&back.set, &found, &server.value)?;
    let resolved = BackServer { node: String::new(), server: server.value.clone(), variant: asked, set };
    Ok((found, resolved))
}

fn resolve_set(set: &[NamedSetting], facts: &ServerFacts, server: &str) -> Result<Settings, InputError> {
    set.iter()
        .map(|(name, value)| {
            let tunable = facts.tunable(&name.value, server).map_err(|problem| name.error(problem))?;
            let setting = tunable.setting(&value.value).map_err(|problem| value.error(problem))?;
            Ok((name.value.clone(), setting))
        })
        .collect()
}

/// Whether h123 does not start the servers of any level.
pub(super) fn have_remote(levels: &[ServerLevel]) -> bool {
    levels.iter().any(|level| level.chain.remote.is_some())
}

/// Refuses what a study cannot do with servers that h123 does not start.
fn check_remote(study: &Study, levels: &[ServerLevel]) -> Result<(), InputError> {
    let Some(remote) = levels.iter().find(|level| level.chain.remote.is_some()) else { return Ok(()) };
    let excluded = [
        (study.server_time, "server_time", "its log is not here"),
        (study.warm.is_some(), "warm", "it is in use already"),
        (study.dns.is_some(), "dns", "its name is not one of the lab"),
    ];
    match excluded.iter().find(|(is_set, ..)| *is_set) {
        None => Ok(()),
        Some((_, key, why)) => {
            let place = study.server_level(&remote.name).unwrap_or(&study.metric);
            Err(place.error(format!(
                "`{key}` excludes the server `{}`, which h123 does not start ({why}); remove `{key}`",
                remote.name
            )))
        }
    }
}

/// The most servers behind a level's; 0 without proxies.
pub(super) fn most_backs(levels: &[ServerLevel]) -> usize {
    levels.iter().map(|level| level.chain.backs.len()).max().unwrap_or(0)
}

impl Study {
    /// A level of `server`, with its place in the file.
    pub(super) fn server_level(&self, name: &str) -> Option<&Placed<String>> {
        let factor = self.matrix.value.iter().find(|factor| factor.kind == FactorKind::Server)?;
        factor.levels.value.iter().find(|level| level.value == name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SHORT, list, parse, parse_with, text};
    use crate::pins::CongestionControl;
    use crate::plan_text::plan_text;
    use crate::tunable::Setting;
    use crate::variant::Variant;

    const TABLES: &str = r#"
[server.wide]
use = "origin"
set = { workers = 4 }
hold = { congestion_control = "bbr" }
[server.behind]
use = "nghttpx"
[server.behind.back]
use = "nginx"
variant = "h1"
set = { workers = 2 }
"#;

    fn study() -> String {
        let short = SHORT.replace("[\"origin\"]", "[\"origin\", \"wide\", \"behind\"]");
        format!("{short}{TABLES}")
    }

    #[test]
    fn a_server_has_settings_pins_and_another_behind_it() {
        let plan = parse(&study()).unwrap();
        let cell =
            |server: &str| plan.cells.iter().find(|cell| cell.level("server") == Some(server)).unwrap();
        let wide = cell("wide");
        assert_eq!(wide.chain.set["workers"], Setting::Number(4));
        assert_eq!(plan.pins_of(wide).congestion_control, CongestionControl::Bbr);
        assert_eq!(plan.pins_of(cell("origin")), &plan.pins);
        let back = cell("behind").chain.backs[0].clone();
        assert_eq!((back.server.as_str(), back.node.as_str(), back.variant), ("nginx", "back", Variant::H1));
        assert_eq!(plan.adapters().into_iter().collect::<Vec<_>>(), ["nghttpx", "nginx", "origin"]);
        let topology = plan.topology_of(cell("behind")).unwrap();
        let (proxy, back) = (topology.position("server").unwrap(), topology.position("back").unwrap());
        assert!(topology.route_between(proxy, back).is_some());
        assert!(topology.route_between(topology.client, back).is_none(), "clients reach the proxy alone");
        let text = plan_text(&plan);
        assert!(text.contains("nghttpx → nginx (workers = 2) over h1"), "{text}");
        assert!(text.contains("origin (workers = 4); congestion control: bbr"), "{text}");
    }

    #[test]
    fn proxies_stand_behind_each_other() {
        let chain = "[server.behind]\nuse = \"nghttpx\"\nback = { use = \"nghttpx\", variant = \"h2c\", back = { use = \
                     \"nginx\", variant = \"h1\" } }\n";
        let study = study().split("[server.behind]").next().unwrap().to_owned() + chain;
        let plan = parse(&study).unwrap();
        let cell = plan.cells.iter().find(|cell| cell.level("server") == Some("behind")).unwrap();
        let backs: Vec<_> = cell.chain.backs.iter().map(|back| (back.node.as_str(), back.variant)).collect();
        assert_eq!(backs, [("back", Variant::H2c), ("back-2", Variant::H1)]);
        let topology = plan.topology_of(cell).unwrap();
        let [back, last] = ["back", "back-2"].map(|name| topology.position(name).unwrap());
        assert!(topology.route_between(back, last).is_some());
        assert_eq!(cell.chain.describe(), "nghttpx → nghttpx over h2c → nginx over h1");
        let own = [
            text("topology", "proxied"),
            list("matrix.network", &["own"]),
            list("matrix.server", &["behind"]),
        ];
        let only = study.split("[server.wide]").next().unwrap().to_owned() + chain;
        let plan = parse_with(&only, &own).unwrap();
        assert_eq!(plan.topology.backs, ["server", "back-2"]);
        let fault = parse(&study.replace(", back = { use = \"nginx\", variant = \"h1\" }", "")).unwrap_err();
        assert!(fault.contains("`nghttpx` is a proxy that requires a server behind it"), "{fault}");
    }

    #[test]
    fn a_proxy_runs_in_a_node_of_the_topology() {
        let study = study().replace("[\"origin\", \"wide\", \"behind\"]", "[\"behind\"]");
        let study = study.split("[server.wide]").next().unwrap().to_owned()
            + "[server.behind]"
            + study.split("[server.behind]").nth(1).unwrap();
        let own = [text("topology", "proxied"), list("matrix.network", &["own"])];
        let plan = parse_with(&study, &own).unwrap();
        assert_eq!(
            (plan.topology.server.as_str(), plan.topology.backs.as_slice()),
            ("proxy", &["server".to_owned()][..])
        );
        assert_eq!(plan.cells[0].chain.node, "proxy");
        assert!(plan.networks[0].rtt_ns() < 20_000_000, "as far as the proxy");
        let far = plan.cells[0].expected_run_ns;
        assert!(far > 300_000_000 + parse(&study).unwrap().cells[0].expected_run_ns, "{far}");
        let plain = parse_with(SHORT, &own).unwrap_err();
        assert!(plain.contains("or a reverse proxy on that host"), "{plain}");
        let mixed = study.replace("[\"behind\"]", "[\"behind\", \"origin\"]");
        let mixed = parse_with(&mixed, &own).unwrap_err();
        assert!(mixed.contains("`origin` is on the proxy's node"), "{mixed}");
    }

    #[test]
    fn faults_name_the_place() {
        for (found, instead, expected) in [
            ("workers = 4", "workers = 0", ":19:19: `workers` is 0; write a whole number from 1 to 512"),
            ("workers = 4", "worker = 4", ":19:9: `worker` is not a tunable of the server `origin`"),
            ("use = \"origin\"", "use = \"orign\"", ":18:7: `use`: `orign` is not a server"),
            ("\"bbr\"", "\"bbr9\"", ":20:31: `congestion_control`: `bbr9` is not"),
            (
                "variant = \"h1\"\n",
                "variant = \"h3\"\n",
                ":25:11: `variant`: `h3` is not a variant of `nghttpx` towards",
            ),
            (
                "variant = \"h1\"\n",
                "variant = \"h2c\"\n",
                ":25:11: `variant`: `h2c` is not a variant of the server `nginx`",
            ),
            ("variant = \"h1\"\n", "", ":23:1: [server.behind.back] has no `variant`"),
            ("use = \"nghttpx\"", "use = \"origin\"", ":24:7: `origin` is not a proxy"),
            ("use = \"nginx\"", "use = \"nghttpx\"", ":24:7: `use`: `nghttpx` is a proxy that requires"),
            ("\"wide\", ", "", ":17:9: `[server.wide]` is not used"),
            ("set = { workers = 2 }", "sett = 1", ":26:1: `sett` is not a key of [server.behind.back]"),
        ] {
            let study = study();
            assert!(study.contains(found), "{found}");
            let error = parse(&study.replacen(found, instead, 1)).unwrap_err();
            assert!(error.contains(expected), "{error}\nshould contain {expected}");
        }
        let alone = parse(&SHORT.replace("[\"origin\"]", "[\"nghttpx\"]")).unwrap_err();
        assert!(alone.contains("`nghttpx` is a proxy and requires a server behind it"), "{alone}");
        let unknown = parse(&study().replace("\"wide\", ", "\"wid\", ")).unwrap_err();
        assert!(unknown.contains("did you mean `wide`?") || unknown.contains("is not used"), "{unknown}");
    }
}
