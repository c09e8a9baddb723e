//! A throughput that is read as a maximum is one, and a response time is not the queue of a saturated server.

use model::number;

use super::{Check, Context, Finding, RunSummary, Side, Table, check, percent, percent_beside};

pub(super) const CHECK: Check = Check {
    measures: "loops of 100 ms or more: the servers' CPU time and the load of the route. For \
               `requests_per_second` of closed loops, one of them must be at its limit (85 %). For response \
               times, the server must not be",
    passes: "as required",
    caveat: "otherwise",
    why: "The throughput of a closed loop is a maximum only if something is at its limit. The response \
          times of a server at its limit are those of its queue, whose length is the number of connections.",
    remedy: "For the maximum throughput, use more connections or streams; for response times, use fewer, or \
             an open loop below the maximum.",
    reads: &[Table::Clients, Table::Servers, Table::Links],
    ..check("saturation", judge)
};

/// From this share of a core, a server is at its limit; from this share of its rate, a link.
const FULL_SHARE: f64 = 0.85;
/// Shorter loads are bursts.
const LEAST_BUSY_NS: f64 = 100e6;

/// A server has one core.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let metric = context.plan.metric.as_str();
    let is_throughput = metric == "requests_per_second";
    let is_latency = context.is_response_time();
    let is_loop = crate::run::is_loop(context.plan, &context.own.cell.group);
    let is_open = context.own.ok().flat_map(|run| &run.groups).any(|facts| facts.is_open);
    if !is_loop || !(is_latency || is_throughput && !is_open) {
        return None;
    }
    let server = context.own.median(server_share)?;
    let link = link_share(context, &context.own).unwrap_or(0.0);
    let is_full = server >= FULL_SHARE;
    let passes = if is_throughput { is_full || link >= FULL_SHARE } else { !is_full };
    let (expected, of) = match is_throughput {
        true => ("at least", "of a core, or of the route's rate"),
        false => ("below", "of a core"),
    };
    Some(Finding::pass_or_caveat(
        passes,
        format!(
            "server {} of a core, route {} of its rate",
            percent_beside(server, &[FULL_SHARE]),
            percent_beside(link, &[FULL_SHARE])
        ),
        format!("{expected} {} {of}", percent(FULL_SHARE)),
    ))
}

/// The servers of a chain share their core, and groups run one after the other.
fn server_share(run: &RunSummary) -> Option<f64> {
    let busy_ns = busy_ns(run);
    let cpu_ns = number::float(run.server_cpu_ns.iter().sum());
    (busy_ns >= LEAST_BUSY_NS && !run.server_cpu_ns.is_empty()).then(|| cpu_ns / busy_ns)
}

fn busy_ns(run: &RunSummary) -> f64 {
    number::float(run.groups.iter().map(|facts| facts.busy_ns).sum())
}

fn link_share(context: &Context<'_>, side: &Side<'_>) -> Option<f64> {
    let bits_per_s = number::float(context.plan.network_of(side.cell).down.rate.mean_bits_per_s()?);
    side.median(|run| {
        let busy_ns = busy_ns(run);
        let bytes = run.links.iter().map(|link| link.down.bytes_out).max()?;
        (busy_ns > 0.0).then(|| number::float(bytes) * 8.0 / (busy_ns / 1e9) / bits_per_s)
    })
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    fn with(metric: &str, cpu_share: f64) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1s]);
        bench.plan.metric = metric.to_owned();
        for record in &mut bench.records {
            let busy_ns = record.clients[0].finished_ns - record.clients[0].started_ns;
            record.servers[0].cpu_user_ns = model::number::nearest(model::number::float(busy_ns) * cpu_share);
            record.servers[0].cpu_system_ns = 0;
        }
        bench
    }

    #[test]
    fn a_busy_server_is_a_ceiling_and_no_latency() {
        passes("saturation", &with("requests_per_second", 0.95));
        caveats(&with("request_time", 0.95), &["saturation"]);
    }

    #[test]
    fn an_idle_server_has_latency_and_no_ceiling() {
        passes("saturation", &with("request_time", 0.3));
        caveats(&with("requests_per_second", 0.3), &["saturation"]);
    }

    #[test]
    fn a_share_below_the_threshold_is_not_printed_as_the_threshold() {
        let summary = with("requests_per_second", 0.8497).summary();
        let found = summary.cells[0].validity.iter().find(|check| check.check == "saturation").unwrap();
        assert!(found.measured.starts_with("server 84.97% of a core"), "{}", found.measured);
        assert_eq!(found.threshold, "at least 85% of a core, or of the route's rate");
    }

    #[test]
    fn a_full_link_is_a_ceiling_too() {
        let mut bench = with("requests_per_second", 0.3);
        for record in &mut bench.records {
            let busy_ns = record.clients[0].finished_ns - record.clients[0].started_ns;
            record.links[0].down.bytes_out = busy_ns / 8 * 50 / 1000;
        }
        passes("saturation", &bench);
    }

    #[test]
    fn pages_and_open_loops_have_no_ceiling() {
        silent("saturation", &Bench::page(&[Variant::H1s]));
        let mut open = Bench::open(&[Variant::H1s]);
        open.plan.metric = "requests_per_second".to_owned();
        silent("saturation", &open);
    }
}
