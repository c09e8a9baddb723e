//! The servers have a worker for each connection of the clients.

use model::plan::{Cell, Plan, connections_each};
use model::units::counted;

use super::{Check, Context, Finding, Table, check};

pub(super) const CHECK: Check = Check {
    measures: "connections that all clients of a server have open at most, against those that its workers serve at the \
               same time according to its description; also of the servers behind it",
    passes: "at most as many",
    caveat: "more",
    why: "Connections beyond the limit wait for a worker or are refused. The study then measures a setting of the \
          server, and not what the server or the version of HTTP can do.",
    remedy: "Raise the server's limit (such as `workers`), lower the number of clients, or make the limit the question.",
    reads: &[Table::Servers],
    ..check("server_limit", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let limits = context.own.ok().flat_map(|run| run.server_concurrency.iter().enumerate());
    let known = limits.filter_map(|(place, limit)| limit.map(|limit| (limit, place)));
    let (limit, place) = known.min()?;
    let connections = connections_at_once(context.plan, context.own.cell);
    let server = if place == 0 { "the server" } else { "a server behind it" };
    let measured = format!("up to {} at once", counted(connections, "connection"));
    let threshold = format!("at most {limit}, which {server} serves at the same time");
    Some(Finding::pass_or_caveat(connections <= limit, measured, threshold))
}

/// The most connections to a cell's server at the same time: of all client groups that use it in the run.
fn connections_at_once(plan: &Plan, cell: &Cell) -> u64 {
    let first = cell.cell.saturating_sub(cell.group.group.into());
    let groups = plan.cells_of_run(first).iter().filter(|other| other.chain == cell.chain);
    let each = |other: &Cell| {
        let workload = &plan.workload_of(&other.group).workload;
        let each = connections_each(workload, other.group.variant, plan.pins_of(other));
        u64::from(each).saturating_mul(other.group.clients.into())
    };
    groups.map(each).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use model::plan::BackServer;
    use model::tunable::Settings;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    /// This many clients with two connections each, and servers behind each other with these limits.
    fn with(clients: u32, limits: &[Option<u64>]) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1]);
        bench.plan.workloads[0].workload.as_loop_mut().unwrap().connections = 2;
        bench.plan.cells[0].group.clients = clients;
        let back = |_: &Option<u64>| BackServer {
            node: "back".to_owned(),
            server: "apache".to_owned(),
            variant: Variant::H1,
            set: Settings::new(),
        };
        bench.plan.cells[0].chain.backs = limits[1..].iter().map(back).collect();
        for record in &mut bench.records {
            let server = record.servers[0].clone();
            record.servers = vec![server; limits.len()];
            for (server, limit) in record.servers.iter_mut().zip(limits) {
                server.concurrency = *limit;
            }
        }
        bench
    }

    #[test]
    fn a_worker_for_each_connection_passes() {
        passes("server_limit", &with(32, &[Some(64)]));
        passes("server_limit", &with(1, &[None, Some(2)]));
    }

    #[test]
    fn servers_that_report_no_limit_are_not_judged() {
        silent("server_limit", &with(1000, &[None]));
    }

    #[test]
    fn more_connections_than_workers_are_a_caveat() {
        caveats(&with(33, &[Some(64)]), &["server_limit"]);
        caveats(&with(33, &[None, Some(64)]), &["server_limit"]);
    }
}
