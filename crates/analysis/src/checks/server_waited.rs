//! The server did not wait for a core.

use super::{Check, Context, Finding, RunSummary, Table, check, percent, waiting};

pub(super) const CHECK: Check = Check {
    measures: "time that the server's threads were runnable but had no core, as a share of the client's \
               time, in the median run and in each run; threads that wait for others of the same servers are not \
               counted",
    passes: "as `client_waited`",
    caveat: "more",
    why: "Time that the server waits for a core counts as its own or the network's.",
    remedy: "Use a machine with one core each for client, server and emulator, or a network with a lower \
             rate.",
    reads: &[Table::Clients, Table::Servers],
    ..check("server_waited", judge)
};

/// It never invalidates: the waiting time bounds the delay, but while the link has a backlog, the server's
/// next bytes would have waited anyway.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let shares = context.own.disturbance(|run: &RunSummary| waiting::server_share(context, run))?;
    let allowed = waiting::allowed_share(context)?;
    let measured = shares.describe(allowed, allowed, "of the client's time");
    let threshold = percent(allowed);
    Some(Finding { result: shares.grade(allowed, f64::INFINITY), measured, threshold })
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes};

    fn with_waiting(run_queue_ns: u64) -> Bench {
        let mut bench = Bench::page(&[Variant::H2]);
        for record in &mut bench.records {
            for client in &mut record.clients {
                client.started_ns = 1_000;
                client.finished_ns = 1_000 + 100_000_000;
            }
            for server in &mut record.servers {
                server.run_queue_ns = run_queue_ns;
            }
        }
        bench
    }

    #[test]
    fn waiting_for_a_slice_passes() {
        passes("server_waited", &with_waiting(2_900_000));
    }

    #[test]
    fn threads_of_a_saturated_server_may_wait_for_each_other() {
        let mut bench = with_waiting(90_000_000_000);
        caveats(&bench, &["server_waited"]);
        for server in bench.records.iter_mut().flat_map(|record| &mut record.servers) {
            (server.cpu_user_ns, server.cpu_system_ns) = (50_000_000, 48_000_000);
        }
        passes("server_waited", &bench);
    }

    #[test]
    fn waiting_in_a_minority_of_runs_is_a_caveat() {
        let mut bench = with_waiting(2_900_000);
        bench.records[0].servers[0].run_queue_ns = 50_000_000;
        caveats(&bench, &["server_waited"]);
    }

    #[test]
    fn more_is_caveated_and_never_invalidated() {
        caveats(&with_waiting(4_000_000), &["server_waited"]);
        caveats(&with_waiting(90_000_000), &["server_waited"]);
    }
}
