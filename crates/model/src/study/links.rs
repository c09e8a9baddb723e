//! What the links of a run have to carry: the bytes of all clients of all groups, and how long that takes.

use super::Study;
use super::clients::ClientsOf;
use crate::error::InputError;
use crate::media::MediaLengths;
use crate::network::Direction;
use crate::plan::{Cell, GroupEnd, PlannedTopology};
use crate::predict::{LAB_NS, LIMIT_FACTOR, transmission_ns};
use crate::topology::Topology;
use crate::units::{NANOS_PER_S, format_bytes, format_expected, format_rate};

/// A run whose links need longer is a mistake in a number or a unit.
const LONGEST_RUN_NS: u64 = 3600 * NANOS_PER_S;

/// The bytes that a link carries in one direction.
struct Load<'a> {
    link: &'a str,
    direction: &'a Direction,
    /// Whether it is the direction of the link as the topology names its ends.
    is_forward: bool,
    bytes: u64,
}

impl Load<'_> {
    fn takes_ns(&self) -> u64 {
        transmission_ns(self.bytes, self.direction)
    }
}

/// Lengthens the predictions and limits of cells whose links have to carry more than one client receives.
///
/// # Errors
/// The links of a run need longer than [`LONGEST_RUN_NS`].
pub(super) fn carry(
    study: &Study,
    topology: &PlannedTopology,
    pairs: &[Topology],
    workloads: &[ClientsOf],
    media: &MediaLengths<'_>,
    cells: &mut [Cell],
) -> Result<(), InputError> {
    for run in cells.chunk_by_mut(|_, next| next.group.group > 0) {
        let mut loads: Vec<Load<'_>> = Vec::new();
        // A group that ends early needs not carry all.
        for cell in run.iter().filter(|cell| cell.group.end == GroupEnd::Done) {
            let built = topology.built.get(cell.network).or_else(|| pairs.get(cell.network));
            let named = &workloads[cell.group.workload].named;
            let of_all = |bytes: u64| bytes.saturating_mul(u64::from(cell.group.clients));
            let bytes =
                [named.workload.least_body_bytes(media), named.least_request_body_bytes()].map(of_all);
            add(&mut loads, built, bytes);
        }
        let slowest = loads.iter().max_by_key(|load| load.takes_ns());
        let takes_ns = slowest.map_or(0, Load::takes_ns);
        if let Some(slowest) = slowest.filter(|_| takes_ns > LONGEST_RUN_NS) {
            let rate = slowest.direction.rate.mean_bits_per_s().unwrap_or(0);
            return Err(study.matrix.error(format!(
                "a run of the cell `{}` cannot end within {}: the link `{}` has to carry {} of bodies at {}, which \
                 takes {}; reduce clients, requests or sizes, or raise the rate",
                run[0].label(),
                format_expected(LONGEST_RUN_NS),
                slowest.link,
                format_bytes(crate::number::float(slowest.bytes)),
                format_rate(crate::number::float(rate)),
                format_expected(takes_ns)
            )));
        }
        let late = run.iter().find(|cell| cell.group.start.over_ns() > LONGEST_RUN_NS);
        if let Some(late) = late {
            return Err(study.matrix.error(format!(
                "a run of the cell `{}` cannot end within {}: its clients start {}; write a shorter `start`",
                late.label(),
                format_expected(LONGEST_RUN_NS),
                late.group.start.describe()
            )));
        }
        for cell in run.iter_mut().filter(|cell| cell.expected_run_ns > 0) {
            let start_ns = cell.group.start.over_ns();
            cell.expected_run_ns = cell.expected_run_ns.saturating_add(start_ns).max(takes_ns);
            let limit_ns = cell.run_limit_ns.max(takes_ns.saturating_mul(LIMIT_FACTOR));
            cell.run_limit_ns = limit_ns.saturating_add(start_ns);
        }
        let done_ns: Vec<u64> = run.iter().map(|cell| cell.expected_run_ns).collect();
        for cell in run.iter_mut() {
            let ends_ns = match cell.group.end {
                GroupEnd::Done => continue,
                GroupEnd::AfterNs(after_ns) => after_ns.saturating_add(LAB_NS),
                GroupEnd::With(other) => done_ns.get(usize::from(other)).copied().unwrap_or(u64::MAX),
            };
            cell.expected_run_ns = cell.expected_run_ns.min(ends_ns);
        }
    }
    Ok(())
}

/// Adds the bytes that come from the server, and those that go to it, to the links on the route.
fn add<'a>(loads: &mut Vec<Load<'a>>, built: Option<&'a Topology>, [down, up]: [u64; 2]) {
    let Some(built) = built else { return };
    for hop in built.route().unwrap_or_default() {
        let link = &built.links[hop.link];
        let Some(network) = &link.network else { continue };
        let directions =
            if hop.is_forward { [&network.down, &network.up] } else { [&network.up, &network.down] };
        for ((direction, bytes), is_back) in directions.into_iter().zip([down, up]).zip([true, false]) {
            let is_forward = hop.is_forward != is_back;
            let same = |load: &&mut Load<'_>| load.link == link.name && load.is_forward == is_forward;
            match loads.iter_mut().find(same) {
                Some(load) => load.bytes = load.bytes.saturating_add(bytes),
                None => loads.push(Load { link: &link.name, direction, is_forward, bytes }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::study::tests::{SHORT, parse};
    use crate::units::NANOS_PER_S;

    /// Loops of this many requests of 1 MB over a link of 8 Mbit/s: 1 s each.
    fn text(requests: u32, clients: u32) -> String {
        SHORT
            .replace("[\"lan\"]", "[{ rtt = \"10ms\", rate = \"8Mbit/s\" }]")
            .replace("metric = \"page_load_time\"", "metric = \"request_time\"")
            .replace(
                "kind = \"page\"\npage = \"small\"",
                &format!(
                    "kind = \"closed\"\npaths = [\"/bytes/1000000\"]\nrequests = {requests}\nclients = {clients}"
                ),
            )
    }

    fn plan(requests: u32, clients: u32) -> Plan {
        parse(&text(requests, clients)).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn links_carry_segments_of_media() {
        let film = "[media.film]\nsegment = '8s'\nlength = '20s'\ntitles = 7\n\
                    [media.film.video]\nladder = ['1Mbit/s']\n";
        let requests = |paths: &str| text(30, 1).replace("paths = [\"/bytes/1000000\"]", paths);
        // Three segments of 8, 8 and 4 s at the rate of the media, each ten times, over a link of eight times
        // that rate.
        for paths in [
            "media = 'film'",
            "paths = ['/media/film/video-1000k/1.m4s', '/media/film/{random:1-7}/video-1000k/2.m4s', '/media/film/7/video-1000k/3.m4s']",
        ] {
            let plan = parse(&format!("{}{film}", requests(paths))).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(plan.cells[0].expected_run_ns, 25 * NANOS_PER_S, "{paths}");
        }
    }

    #[test]
    fn links_carry_request_bodies_too() {
        let with = format!("requests = 20\nbody = '{}'", "x".repeat(100_000));
        let down = text(20, 1).replace(
            "rate = \"8Mbit/s\"",
            "name = \"asymmetric\", down = { rate = \"8Mbit/s\" }, up = { rate = \"1Mbit/s\" }",
        );
        let up = down.replace("/bytes/1000000", "/echo").replace("requests = 20", &with);
        let plan = parse(&up).unwrap_or_else(|error| panic!("{error}"));
        // 20 × 100 kB at 1 Mbit/s.
        assert_eq!(plan.cells[0].expected_run_ns, 16 * NANOS_PER_S);
        let down = down.replace("/bytes/1000000", "/bytes/100000");
        assert!(parse(&down).unwrap().cells[0].expected_run_ns < 4 * NANOS_PER_S);
    }

    #[test]
    fn clients_that_start_for_hours_are_refused() {
        let fault = parse(&text(2, 9).replace("clients = 9", "clients = 9\nstart = { evenly = '100h' }"));
        let fault = fault.unwrap_err();
        assert!(fault.contains("cannot end within") && fault.contains("write a shorter `start`"), "{fault}");
    }

    #[test]
    fn links_carry_the_bytes_of_every_client() {
        let one = plan(2, 1);
        let many = plan(2, 96);
        for cell in &many.cells {
            assert_eq!(cell.expected_run_ns, 192 * NANOS_PER_S);
            assert!(
                cell.run_limit_ns > 1000 * NANOS_PER_S,
                "a run that needs 192 s is not stuck after 100 s"
            );
        }
        assert!(one.cells[0].expected_run_ns < many.cells[0].expected_run_ns);
    }

    #[test]
    fn servers_of_files_get_the_bodies_of_loops() {
        let files: Vec<(String, u64)> = plan(1, 1).segments().into_iter().collect();
        assert_eq!(files, [("/bytes/1000000".to_owned(), 1_000_000)]);
        let large = parse(&text(1, 1).replace("/bytes/1000000", "/bytes/64000001")).unwrap();
        assert!(large.segments().is_empty(), "too long for a file");
    }

    #[test]
    fn groups_share_the_links_on_both_routes() {
        let groups = "[[group]]\nname = 'a'\n[[group]]\nname = 'b'\nclients = 9\n";
        let plan = parse(&format!("{}{groups}", text(1, 1))).unwrap();
        let expected: Vec<u64> = plan.cells.iter().map(|cell| cell.expected_run_ns / NANOS_PER_S).collect();
        assert_eq!(expected, [10; 4]);
    }

    #[test]
    fn a_run_that_cannot_end_is_refused_with_the_arithmetic() {
        let fault = parse(&text(10, 1000)).unwrap_err();
        assert!(
            fault.contains(
                "the link `client-server` has to carry 10 GB of bodies at 8 Mbit/s, which takes 2 h 46 min"
            ),
            "{fault}"
        );
    }
}
