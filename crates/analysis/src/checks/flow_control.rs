//! The client's flow-control windows do not limit the server.

use model::number;
use model::plan::ClientGroup;
use model::variant::HttpVersion;

use super::{Check, Context, Finding, check};
use crate::run::{RunSummary, page_of};

pub(super) const CHECK: Check = Check {
    measures: "HTTP/2 and HTTP/3 on a route with a rate: the client's windows, compared with the smaller of \
               the bandwidth-delay product and the bytes to send",
    passes: "not smaller",
    caveat: "smaller",
    why: "If a window is smaller than the bandwidth-delay product, the server waits for the client: the \
          window is measured and not the version.",
    remedy: "Raise `stream_window` and `connection_window` in `[hold.http2]` and `[hold.http3]`, or make \
             this the question.",
    ..check("flow_control", judge)
};

/// Flow control: RFC 9113, section 5.2; RFC 9000, section 4.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let network = context.plan.network_of(context.own.cell);
    let bits_per_s = number::float(network.down.rate.mean_bits_per_s()?);
    let held_bytes = bits_per_s / 8.0 * number::float(network.rtt_ns()) / 1e9;
    let pins = context.plan.pins_of(context.own.cell);
    let group = &context.own.cell.group;
    let (stream, connection) = match group.variant.http() {
        HttpVersion::Http2 => (pins.http2.stream_window_bytes, pins.http2.connection_window_bytes),
        HttpVersion::Http3 => (pins.http3.stream_window_bytes, pins.http3.connection_window_bytes),
        HttpVersion::Http10 | HttpVersion::Http11 => return None,
    };
    let (largest, at_once) = responses(context, group)?;
    let (stream, connection) = (f64::from(stream), f64::from(connection));
    let (of_stream, of_connection) = (stream / held_bytes.min(largest), connection / held_bytes.min(at_once));
    let size = |bytes: f64| model::units::format_bytes(bytes);
    Some(Finding::pass_or_caveat(
        of_stream.min(of_connection) >= 1.0,
        format!("windows of {} per stream, {} per connection", size(stream), size(connection)),
        format!("{} (bandwidth-delay product), or the bytes to send", size(held_bytes)),
    ))
}

/// The bytes of the largest response, and of all responses that one connection may carry at once. A loop has
/// only its mean response, once per stream.
fn responses(context: &Context<'_>, group: &ClientGroup) -> Option<(f64, f64)> {
    if let Some(page) = page_of(context.plan, group) {
        let sizes = page.resources.iter().map(|resource| number::float(resource.bytes));
        return Some((sizes.clone().reduce(f64::max)?, sizes.sum()));
    }
    let streams = f64::from(context.plan.workload_of(group).workload.streams().unwrap_or(1));
    let mean = context.own.median(|run: &RunSummary| {
        let facts = run.groups.iter().find(|facts| facts.group == group.group)?;
        (facts.requests_ok > 0).then(|| number::float(facts.body_bytes) / number::float(facts.requests_ok))
    })?;
    Some((mean, mean * streams))
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    #[test]
    fn browsers_windows_pass_and_http1_has_none() {
        passes("flow_control", &Bench::page(&[Variant::H2, Variant::H3]));
        passes("flow_control", &Bench::closed(&[Variant::H2c]));
        silent("flow_control", &Bench::page(&[Variant::H1s]));
    }

    #[test]
    fn a_window_below_the_path_and_the_response_is_a_caveat() {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
        // The largest resource has 7000 bytes, the path holds 938 kB.
        bench.plan.pins.http2.stream_window_bytes = 6_000;
        caveats(&bench, &["flow_control"]);
        bench.plan.pins.http2.stream_window_bytes = 8_000;
        passes("flow_control", &bench);
        // The page has 17 kB in all.
        bench.plan.pins.http2.connection_window_bytes = 16_000;
        caveats(&bench, &["flow_control"]);
    }
}
