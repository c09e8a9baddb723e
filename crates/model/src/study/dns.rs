//! `dns`: clients ask a name server for the server's address.

use super::Study;
use super::factors::FactorKind;
use crate::error::InputError;
use crate::external::OWN_CLIENT;
use crate::network::Network;
use crate::plan::{DIRECT, PlannedTopology, add_name_server};
use crate::reader::{Placed, Table};
use crate::topology::{Topology, parse_name_server_rtt_ns};

pub(super) fn read(root: &Table<'_>) -> Result<Option<Placed<u64>>, InputError> {
    root.parsed("dns", parse_name_server_rtt_ns)
}

/// The round trip to the name server, if the study has one.
pub(super) fn resolve(
    study: &Study,
    topology: &PlannedTopology,
    networks: &[Network],
    nodes: &[&str],
) -> Result<Option<u64>, InputError> {
    let Some(dns) = &study.dns else { return Ok(None) };
    if topology.name == DIRECT {
        let problem =
            format!("`dns` excludes the topology `{DIRECT}`, which has no other node; remove one of them");
        return Err(dns.error(problem));
    }
    // External clients do not report their DNS lookups, and many cache the address.
    let clients = study.named_levels(FactorKind::Client);
    if let Some(external) = clients.iter().find(|client| client.value != OWN_CLIENT) {
        return Err(external.error(format!(
            "`dns` excludes the client `{}`, which does not report its DNS lookup; use `{OWN_CLIENT}` only",
            external.value
        )));
    }
    let built = match topology.built.as_slice() {
        [] => networks.iter().map(Topology::pair).collect(),
        built => built.to_vec(),
    };
    for mut built in built {
        add_name_server(&mut built, dns.value, nodes.iter().copied())
            .map_err(|problem| dns.error(format!("`dns`: {problem}")))?;
    }
    Ok(Some(dns.value))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SHORT, assert_fault, parse};
    use crate::topology::NAME_SERVER;
    use crate::units::NANOS_PER_MS;

    const RUNS: &str = "runs = 2";

    #[test]
    fn the_client_alone_has_a_link_to_the_name_server() {
        let plan = parse(&SHORT.replace(RUNS, "runs = 5\ndns = '20ms'")).unwrap();
        assert_eq!(plan.dns_rtt_ns, Some(20 * NANOS_PER_MS));
        let topology = plan.topology_of(&plan.cells[0]).unwrap();
        assert!(topology.name_server_of("client").is_some());
        assert_eq!(topology.name_server_of("server"), None);
        let link = topology.links.iter().find(|link| link.name == format!("client-{NAME_SERVER}")).unwrap();
        assert_eq!(link.network.as_ref().unwrap().rtt_ns(), 20 * NANOS_PER_MS);
        let without = parse(SHORT).unwrap();
        assert_eq!(without.topology_of(&without.cells[0]).unwrap().links.len() + 1, topology.links.len());
        assert_eq!(
            plan.cells[0].expected_run_ns - without.cells[0].expected_run_ns,
            20 * NANOS_PER_MS,
            "the DNS lookup is part of the prediction"
        );
    }

    #[test]
    fn every_topology_of_a_study_has_room_for_it() {
        let shared =
            SHORT.replace(RUNS, "runs = 5\ndns = '5ms'\ntopology = 'shared'").replace("\"lan\"", "\"own\"");
        let plan = parse(&shared).unwrap();
        let topology = plan.topology_of(&plan.cells[0]).unwrap();
        assert!(topology.name_server_of(&plan.topology.client).is_some());
    }

    #[test]
    fn faults_of_dns() {
        assert_fault(
            5,
            "runs = 5\ndns = \"20\"",
            "6:7: `dns`: `20` is not a duration; write a number and a unit (ns, us, µs, ms, s, min, h), such as `150ms`",
        );
        assert_fault(
            5,
            "runs = 5\ndns = \"11s\"",
            "6:7: `dns`: `11s` is too long; write at most 10s, because resolvers give up then",
        );
        let with_topology =
            |key: &str| parse(&SHORT.replace(RUNS, &format!("runs = 5\ndns = '5ms'\n{key}"))).unwrap_err();
        let direct = with_topology("topology = 'direct'");
        assert!(
            direct.contains("`dns` excludes the topology `direct`") || direct.contains("write `own`"),
            "{direct}"
        );
        let external = SHORT
            .replace(RUNS, "runs = 5\ndns = '5ms'")
            .replace("[matrix]", "[matrix]\nclient = [\"h123\", \"wrk\"]");
        let external = parse(&external).unwrap_err();
        assert!(external.contains("`dns` excludes the client `wrk`"), "{external}");
    }
}
