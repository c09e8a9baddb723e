//! Connections are opened and used as in real use of each version.

use model::number;
use model::variant::HttpVersion;

use super::{Check, Context, Finding, Side, Table, check};
use crate::run::page_of;

pub(super) const CHECK: Check = Check {
    measures: "where variants are compared: connections and requests per connection in the median run; for \
               pages over HTTP/1.1 at least two connections if two resources can be requested at once",
    passes: "2 or more requests per connection",
    caveat: "fewer, or a single HTTP/1.1 connection",
    why: "One request per connection measures handshakes and never multiplexing. HTTP/1.1 on one \
          connection, where it would open several, is a configuration that is not used in practice.",
    remedy: "Let each client load whole pages, or send many requests per connection, and let HTTP/1.1 open \
             its `http1_connections`.",
    reads: &[Table::Connections],
    ..check("connections", judge)
};

/// At least two requests on a connection can be multiplexed.
const LEAST_REQUESTS: f64 = 2.0;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let baseline = context.baseline.as_ref().unwrap_or(&context.own);
    if context.plan.baseline.factor != "variant" {
        return None;
    }
    let (opened, each) = (opened(&context.own)?, per_connection(&context.own)?);
    let wanted = wanted_of_http1(context);
    // A page over HTTP/1.1 opens many connections on purpose.
    let is_alone = wanted.is_none() && per_connection(baseline).is_some_and(|each| each < LEAST_REQUESTS);
    let is_single = each < LEAST_REQUESTS && (is_multiplexed(&context.own) || is_alone);
    let is_narrow = wanted.is_some_and(|wanted| opened < wanted);
    let digits = model::units::three_digits;
    let threshold = match wanted {
        Some(wanted) => format!("at least {} connections", digits(wanted)),
        None => "at least 2 requests per connection".to_owned(),
    };
    let measured = format!("{} connections, {} requests per connection", digits(opened), digits(each));
    Some(Finding::pass_or_caveat(!is_single && !is_narrow, measured, threshold))
}

/// Connections in the median run, if the client reports them.
fn opened(side: &Side<'_>) -> Option<f64> {
    side.median(|run| {
        let opened: u64 = run.groups.iter().map(|facts| facts.connections).sum();
        (opened > 0).then(|| number::float(opened))
    })
}

fn per_connection(side: &Side<'_>) -> Option<f64> {
    side.median(|run| {
        let (opened, rows) =
            run.groups.iter().fold((0, 0), |(o, r), facts| (o + facts.connections, r + facts.rows));
        (opened > 0).then(|| number::float(rows) / number::float(opened))
    })
}

fn is_multiplexed(side: &Side<'_>) -> bool {
    side.cell.clients.iter().any(|group| group.variant.http() != HttpVersion::Http11)
}

/// The connections that a page load over HTTP/1.1 needs at least.
fn wanted_of_http1(context: &Context<'_>) -> Option<f64> {
    let pins = context.plan.pins_of(context.own.cell);
    let of_group = |group: &model::plan::ClientGroup| {
        let page = page_of(context.plan, group).filter(|_| group.variant.http() == HttpVersion::Http11)?;
        let named = |parent: usize| {
            page.resources.iter().filter(|resource| resource.named_by == Some(parent)).count()
        };
        let at_once = (0..page.resources.len()).map(named).max()?;
        // At most two: whether it opens more depends on how soon each resource is done.
        Some(number::count(at_once.min(pins.http1_connections as usize).min(2)))
    };
    context.own.cell.clients.iter().filter_map(of_group).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    fn with_connections(mut bench: Bench, count: usize) -> Bench {
        for record in &mut bench.records {
            let like = record.connections[0].clone();
            record.connections = vec![like; count];
        }
        bench
    }

    #[test]
    fn loops_and_pages_pass() {
        passes("connections", &Bench::closed(&[Variant::H1, Variant::H2c]));
        passes("connections", &Bench::page(&[Variant::H2, Variant::H3]));
        passes("connections", &with_connections(Bench::closed(&[Variant::H1]), 25));
    }

    #[test]
    fn one_request_a_connection_is_a_caveat() {
        caveats(&with_connections(Bench::closed(&[Variant::H1, Variant::H2c]), 50), &["connections"]);
        // HTTP/1.0 as it was.
        let mut other = with_connections(Bench::closed(&[Variant::H1]), 50);
        other.plan.baseline.factor = "server".to_owned();
        silent("connections", &other);
    }

    #[test]
    fn a_page_on_one_connection_of_http1_is_a_caveat() {
        let one = with_connections(Bench::page(&[Variant::H1s]), 1);
        caveats(&one, &["connections"]);
        let mut held = one;
        held.plan.pins.http1_connections = 1;
        passes("connections", &held);
    }
}
