//! A browser's command line and profile, from its templates.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use minijinja::value::Value;
use model::Variant;
use model::assignment::{Assignment, Target, Trust};
use model::options::Visit;

use super::description::Browser;
use super::firefox::Reach;
use crate::clients::description::ARGUMENTS;
use crate::clients::run::ExternalSpec;
use crate::description::write_files;
use crate::privileges::{Privileges, as_nobody};
use crate::program::ProgramInfo;
use crate::template::{Variables, fill};

/// How a browser is started.
#[derive(Clone, Debug)]
pub(crate) struct Launch<'a> {
    /// Its new profile; an absolute path of a folder that exists.
    pub(crate) profile: &'a Path,
    /// This tool's program, `{{self}}` in a template.
    pub(crate) tool: &'a Path,
    pub(crate) privileges: Privileges,
    /// The variant to force; `None` to let it choose.
    pub(crate) variant: Option<Variant>,
    /// Whether the profile has been at the server before.
    pub(crate) visit: Visit,
    /// Host and port of the document.
    pub(crate) authority: String,
    /// The hosts of the page, the document's first; no others resolve. Empty for all.
    pub(crate) targets: Vec<&'a Target>,
    /// The hashes of the servers' keys, separated by commas.
    pub(crate) key_hash: &'a str,
    /// Whether others than h123 started the servers, which may have further keys.
    pub(crate) is_outside: bool,
    /// Whom the user trusts.
    pub(crate) trust: &'a Trust,
}

impl<'a> Launch<'a> {
    /// How to load the page of an assignment.
    pub(crate) fn of(assignment: &'a Assignment, spec: &ExternalSpec<'a>, profile: &'a Path) -> Launch<'a> {
        let target = &assignment.target;
        let further = &assignment.options.requests.further_targets;
        Launch {
            profile,
            tool: spec.tool,
            privileges: Privileges::of_this_process(),
            variant: Some(target.variant),
            visit: assignment.options.connections.visit,
            authority: authority_with_port(target),
            targets: std::iter::once(target).chain(further).collect(),
            key_hash: spec.key_hash,
            is_outside: spec.is_outside,
            trust: &target.trust,
        }
    }

    /// Whether any certificate is accepted, because Chromium cannot be told what the user trusts. h123 has
    /// verified it before the study.
    fn trusts_any(&self) -> bool {
        self.is_outside && !matches!(self.trust, Trust::System)
    }

    /// What a browser may reach that is told an address for a name, and connects to the port of the URL.
    ///
    /// # Errors
    /// A host of the page has another port or address here, with the remedy.
    pub(super) fn reach(&self, browser: &str) -> Result<Reach<'a>, String> {
        let address = |target: &&Target| {
            let authority = authority_with_port(target);
            let host = host(&authority).to_owned();
            let (ip, port) = (target.address.ip(), target.address.port());
            if authority.rsplit_once(':').is_none_or(|(_, own)| own != port.to_string()) {
                return Err(format!(
                    "{browser} cannot reach {authority} at another port, which is {port} here"
                ));
            }
            let fixed = match host.as_str() {
                "localhost" => Some(ip.is_loopback()),
                host => host.parse::<IpAddr>().ok().map(|own| own == ip),
            };
            if fixed == Some(false) {
                return Err(format!(
                    "{browser} cannot reach {host} at another address, which is {ip} here; use a host name in the URL"
                ));
            }
            Ok((host, ip))
        };
        let addresses = self.targets.iter().map(address).collect::<Result<_, _>>()?;
        Ok(Reach { addresses, trust: self.trust })
    }
}

impl Browser {
    /// Writes the files of the profile and fills the command in.
    ///
    /// # Errors
    /// A template cannot be filled in, or a file cannot be written.
    pub(crate) fn start_command(&self, info: &ProgramInfo, launch: &Launch<'_>) -> Result<Vec<String>> {
        let variables = variables(info, launch, self.has_sandbox(launch.privileges));
        let profile = launch.profile;
        let files = self.files_folder.as_ref().map_or(profile.to_owned(), |name| profile.join(name));
        fs::create_dir_all(&files).with_context(|| format!("cannot create {}", files.display()))?;
        write_files(&self.files, &self.folder, &files, &info.version, &info.build, &variables)?;
        let forced = launch.variant.and_then(|variant| self.variant(variant));
        let arguments = forced.map_or(&[][..], |entry| &entry.arguments);
        let words: Vec<String> = self
            .command
            .iter()
            .flat_map(|word| if word == ARGUMENTS { arguments.to_vec() } else { vec![word.clone()] })
            .collect();
        let mut command = fill(&words, &self.file(), &info.version, &info.build, &variables)?;
        ensure!(!command.is_empty(), "{}: the command is empty; write a program", self.file());
        if launch.privileges == Privileges::RootOfUserNamespace {
            // A browser refuses root, and its sandbox needs another user.
            command.splice(0..0, as_nobody());
        }
        Ok(command)
    }
}

fn variables(info: &ProgramInfo, launch: &Launch<'_>, has_sandbox: bool) -> Variables {
    let text = |path: &Path| Value::from(path.display().to_string());
    Variables::from([
        ("self", text(launch.tool)),
        ("program", text(&info.program)),
        ("version", Value::from(info.version.as_str())),
        ("profile", text(launch.profile)),
        ("variant", Value::from(launch.variant.map_or("", |variant| variant.name()))),
        ("visit", Value::from(launch.visit.name())),
        ("authority", Value::from(launch.authority.as_str())),
        ("authorities", Value::from(authorities(launch))),
        ("host", Value::from(host(&launch.authority))),
        ("port", Value::from(launch.authority.rsplit_once(':').map_or("", |(_, port)| port))),
        ("resolver_rules", Value::from(resolver_rules(&launch.targets, launch.visit == Visit::Upgrade))),
        ("key_hash", Value::from(launch.key_hash)),
        ("trusts_any", Value::from(launch.trusts_any())),
        ("has_sandbox", Value::from(has_sandbox)),
    ])
}

/// Host and port of the document and of the further hosts of the page, separated by commas.
fn authorities(launch: &Launch<'_>) -> String {
    let further = launch.targets.iter().skip(1).map(|target| authority_with_port(target));
    let mut all: Vec<String> = std::iter::once(launch.authority.clone()).chain(further).collect();
    let mut known = BTreeSet::new();
    all.retain(|authority| known.insert(authority.clone()));
    all.join(",")
}

/// The host of an authority with a port, without the brackets of IPv6.
fn host(authority: &str) -> &str {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Host and port of a target, also where the port is the scheme's default.
fn authority_with_port(target: &Target) -> String {
    let has_port = target
        .authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    let default = if target.variant.is_encrypted() { 443 } else { 80 };
    if has_port { target.authority.clone() } else { format!("{}:{default}", target.authority) }
}

/// The names that resolve, and that no others do (Chromium's `--host-resolver-rules`); empty for all. On all
/// ports where HTTP/3 is at another one than the page's URL.
fn resolver_rules(targets: &[&Target], on_all_ports: bool) -> String {
    if targets.is_empty() {
        return String::new();
    }
    let mut rules: Vec<String> = Vec::new();
    for target in targets {
        let ip = match target.address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let authority = authority_with_port(target);
        let rule = match on_all_ports {
            true => format!("MAP {} {ip}", authority.rsplit_once(':').map_or("", |(host, _)| host)),
            false => format!("MAP {authority} {ip}:{}", target.address.port()),
        };
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules.push("MAP * ~NOTFOUND".to_owned());
    rules.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Browsers;

    fn target(variant: Variant, authority: &str, address: &str) -> Target {
        Target {
            variant,
            address: address.parse().unwrap(),
            authority: authority.to_owned(),
            server_name: authority.to_owned(),
            trust: Trust::System,
        }
    }

    #[test]
    fn only_the_hosts_of_the_page_resolve() {
        let targets = [
            target(Variant::H3, "a.test", "10.0.0.2:8443"),
            target(Variant::H1, "b.test", "10.0.0.2:80"),
            target(Variant::H2, "[fd00::2]:444", "[fd00::2]:444"),
            target(Variant::H3, "a.test", "10.0.0.2:8443"),
        ];
        assert_eq!(
            resolver_rules(&targets.iter().collect::<Vec<_>>(), false),
            "MAP a.test:443 10.0.0.2:8443, MAP b.test:80 10.0.0.2:80, MAP [fd00::2]:444 [fd00::2]:444, MAP * ~NOTFOUND"
        );
    }

    #[test]
    fn http3_of_an_alternative_service_is_on_any_port_of_the_host() {
        let targets = [
            target(Variant::H3, "a.test", "10.0.0.2:8442"),
            target(Variant::H3, "[fd00::2]:444", "[fd00::2]:444"),
        ];
        assert_eq!(
            resolver_rules(&targets.iter().collect::<Vec<_>>(), true),
            "MAP a.test 10.0.0.2, MAP [fd00::2] [fd00::2], MAP * ~NOTFOUND"
        );
    }

    #[test]
    fn a_browser_that_maps_no_ports_reaches_hosts_at_their_own() {
        let reach = |authority: &str, address: &str| {
            let target = target(Variant::H2, authority, address);
            let launch = Launch {
                profile: Path::new("/p"),
                tool: Path::new("/t"),
                privileges: Privileges::User,
                variant: None,
                visit: Visit::First,
                authority: authority.to_owned(),
                targets: vec![&target],
                key_hash: "",
                is_outside: true,
                trust: &Trust::System,
            };
            launch.reach("mine").map(|reach| reach.addresses)
        };
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let found = reach("a.test", "10.0.0.2:443");
        assert_eq!(found, Ok(vec![("a.test".to_owned(), ip("10.0.0.2"))]));
        assert_eq!(reach("[fd00::2]:444", "[fd00::2]:444"), Ok(vec![("fd00::2".to_owned(), ip("fd00::2"))]));
        for (authority, address, expected) in [
            ("a.test", "10.0.0.2:8443", "mine cannot reach a.test:443 at another port, which is 8443 here"),
            ("127.0.0.1:443", "10.0.0.2:443", "mine cannot reach 127.0.0.1 at another address"),
            ("localhost:443", "10.0.0.2:443", "mine cannot reach localhost at another address"),
        ] {
            let problem = reach(authority, address).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }

    #[test]
    fn only_root_has_no_sandbox() {
        let chromium = Browsers::find("chromium").unwrap();
        assert!(!chromium.has_sandbox(Privileges::Root));
        assert!(
            [Privileges::RootOfUserNamespace, Privileges::User].iter().all(|all| chromium.has_sandbox(*all))
        );
        assert!(Browsers::find("firefox").unwrap().has_sandbox(Privileges::Root));
    }
}
