//! What is read as the server's ceiling is one, and what is read as latency is not the queue before a server at its ceiling.

use super::{Check, CheckOutcome, Context, Finding, Side, percent};
use crate::number;
use crate::run::RunSummary;

pub(super) const CHECK: Check = Check {
    name: "saturation",
    why: "Requests per second of a closed loop are a ceiling only where something is at its limit; and the times of a server at \
          its limit are those of the queue before it, whose length is the number of connections.",
    remedy: "For a ceiling, ask for more connections or streams; for latency, for fewer, or for an open loop below the ceiling.",
    judge,
};

/// From this share of a core on a server is at its limit, of a link's rate the link.
const FULL_SHARE: f64 = 0.85;
/// Shorter loads are bursts.
const LEAST_BUSY_NS: f64 = 100e6;

/// The servers' CPU time over the client's time, as a share of the one core that a server has, and the bytes down over the way's
/// rate, both in the median run; judged for loops, by the study's metric.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let metric = context.plan.metric.as_str();
    let is_ceiling = metric == "requests_per_second";
    let is_latency = ["request_time", "service_time", "wait_time"].contains(&metric);
    let is_loop = context.own.cell.clients.iter().all(|group| crate::run::is_loop(context.plan, group));
    let is_open = context.own.ok().flat_map(|run| &run.groups).any(|facts| facts.is_open);
    if !is_loop || !(is_latency || is_ceiling && !is_open) {
        return None;
    }
    let server = context.own.median(server_share)?;
    let link = link_share(context, &context.own).unwrap_or(0.0);
    let is_full = server >= FULL_SHARE;
    let passes = if is_ceiling { is_full || link >= FULL_SHARE } else { !is_full };
    let (expected, of) = match is_ceiling {
        true => ("at least", "of a core, or of the way's rate"),
        false => ("below", "of a core"),
    };
    Some(Finding {
        result: if passes { CheckOutcome::Pass } else { CheckOutcome::Caveat },
        measured: format!("server {} of a core, way {} of its rate", percent(server), percent(link)),
        threshold: format!("{expected} {} {of}", percent(FULL_SHARE)),
    })
}

/// Of all servers of the chain, which share their core; groups run one after the other.
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
            record.servers[0].cpu_user_ns = crate::number::nearest(crate::number::float(busy_ns) * cpu_share);
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
    fn a_full_way_is_a_ceiling_too() {
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
