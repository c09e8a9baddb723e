//! A load allows what the compared versions of HTTP differ in.

use model::number;
use model::plan::Cell;
use model::plan::Plan;
use model::units::three_digits;

use super::{Check, Context, Finding, check, is_multiplexed};

pub(super) const CHECK: Check = Check {
    measures: "loops that end after a number of requests, where variants, arms or servers are compared: the most \
               requests per connection that the workload allows. HTTP/1.1 may have one request per connection if the baseline has more",
    passes: "2 or more",
    caveat: "fewer",
    why: "With one request per connection, connections are set up and thrown away: nothing is multiplexed, kept open or \
          compressed by an earlier request, so the versions of HTTP have nothing to differ in but their handshakes, and \
          servers are compared by how they accept connections.",
    remedy: "Give each client several `requests` for each of its `connections`, such as all resources of a page.",
    ..check("single_requests", judge)
};

const LEAST_EACH: f64 = 2.0;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let is_judged = context.compares_versions() || context.compares_servers();
    let own = most_each(context.plan, context.own.cell).filter(|_| is_judged)?;
    let baseline = context.baseline.as_ref().and_then(|side| most_each(context.plan, side.cell));
    let is_alone = baseline.unwrap_or(own) < LEAST_EACH;
    let is_fault = own < LEAST_EACH && (is_multiplexed(context.own.cell) || is_alone);
    let measured = if own.is_finite() {
        format!("at most {} per connection", plural(own))
    } else {
        "any number per connection".to_owned()
    };
    Some(Finding::pass_or_caveat(!is_fault, measured, "at least 2 requests per connection"))
}

/// The requests that a connection of a loop has at most, if all have the same number; infinite where a time
/// ends the loop. `None` of other workloads.
pub(super) fn most_each(plan: &Plan, cell: &Cell) -> Option<f64> {
    let named = plan.workload_of(&cell.group);
    let load = named.workload.as_loop()?;
    let ends = load.requests.map_or(f64::INFINITY, |all| number::float(all) / f64::from(load.connections));
    let allowed = named.options.connections.requests_each.map_or(f64::INFINITY, number::float);
    Some(ends.min(allowed))
}

fn plural(each: f64) -> String {
    if each == 1.0 { "1 request".to_owned() } else { format!("{} requests", three_digits(each)) }
}

#[cfg(test)]
mod tests {
    use model::plan::Level;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    fn with(variants: &[Variant], requests: Option<u64>, connections: u32) -> Bench {
        let mut bench = Bench::closed(variants);
        let load = bench.plan.workloads[0].workload.as_loop_mut().unwrap();
        (load.requests, load.connections) = (requests, connections);
        bench
    }

    #[test]
    fn several_requests_pass_and_pages_are_not_judged() {
        passes("single_requests", &with(&[Variant::H1, Variant::H2], Some(50), 5));
        passes("single_requests", &with(&[Variant::H1, Variant::H2], None, 5));
        silent("single_requests", &Bench::page(&[Variant::H1]));
    }

    #[test]
    fn one_request_for_each_connection_is_a_caveat() {
        caveats(&with(&[Variant::H2, Variant::H2], Some(50), 50), &["single_requests"]);
        caveats(&with(&[Variant::H1, Variant::H1s], Some(50), 30), &["single_requests"]);
        let mut limited = with(&[Variant::H2, Variant::H3], None, 1);
        limited.plan.workloads[0].options.connections.requests_each = Some(1);
        caveats(&limited, &["single_requests"]);
    }

    #[test]
    fn one_request_is_a_caveat_in_a_comparison_of_servers_and_of_nothing_else() {
        let mut bench = with(&[Variant::H1], Some(50), 50);
        bench.plan.baseline = Level { factor: "workload".to_owned(), value: "loop".to_owned() };
        silent("single_requests", &bench);
        bench.plan.baseline.factor = "server".to_owned();
        caveats(&bench, &["single_requests", "urls"]);
    }

    #[test]
    fn http1_may_have_a_connection_for_each_request_of_the_other() {
        // Cell 0 is the baseline, HTTP/2 with one connection for all requests.
        let mut bench = with(&[Variant::H2, Variant::H1s], Some(50), 1);
        let mut other = bench.plan.workloads[0].clone();
        other.workload.as_loop_mut().unwrap().connections = 50;
        bench.plan.workloads.push(other);
        bench.plan.cells[1].group.workload = 1;
        passes("single_requests", &bench);
    }
}
