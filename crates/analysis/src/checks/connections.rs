//! Connections are opened and used as in real use of each version.

use std::collections::BTreeMap;

use model::number;
use model::sample::ServerClose;
use model::units::three_digits;
use model::variant::HttpVersion;

use super::{
    Check, Context, Finding, Side, Table, check, counted, is_multiplexed, percent_beside, single_requests,
};
use crate::run::{RunSummary, page_of};

pub(super) const CHECK: Check = Check {
    measures: "(a) connections that the client opened because the server had ended others, as a share of the \
               requests, in the median run; (b) requests per connection in the median run, compared with the \
               baseline's if both sides have the same versions of HTTP; where variants or arms are compared also (c) \
               requests per connection, unless a page has one resource or the workload allows no more, and (d) for pages over HTTP/1.1, the \
               number of connections, if two resources can be requested at once",
    passes: "(a) margin; (b) less than twice as many or half as many; (c) 2 or more; (d) 2 or more",
    caveat: "more, or fewer",
    why: "One request per connection measures handshakes and never multiplexing. HTTP/1.1 on one \
          connection, where it would open several, is a configuration that is not used in practice. A server \
          that ends connections makes its clients open others.",
    remedy: "Let each client load whole pages, or send many requests per connection, and let HTTP/1.1 \
             open its `http1_connections`. Configure the server to keep connections open (keep-alive).",
    reads: &[Table::Connections],
    ..check("connections", judge)
};

/// At least two requests on a connection can be multiplexed.
const LEAST_REQUESTS: f64 = 2.0;
/// Equal clients open about as many connections to equally configured servers.
const APART_FACTOR: f64 = 2.0;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let own = Usage::of(&context.own)?;
    let baseline = context.baseline.as_ref().and_then(Usage::of);
    let margin = context.plan.margin_share;
    let mut faults = Vec::new();
    if own.replaced_share > margin {
        let share = percent_beside(own.replaced_share, &[margin]);
        faults.push(format!("the server ended connections for {share} of the requests ({})", own.causes));
    }
    let version = |side: &Side<'_>| side.cell.group.variant.http();
    let is_same = |side: &Side<'_>| version(&context.own) == version(side);
    let other = baseline.as_ref().zip(context.baseline.as_ref()).filter(|(_, side)| is_same(side));
    if let Some((other, _)) = other {
        let apart = (own.each / other.each).max(other.each / own.each);
        if apart >= APART_FACTOR {
            faults.push(format!("{} times apart from the baseline", three_digits(apart)));
        }
    }
    if context.compares_versions() {
        faults.extend(unlike_real_use(context, &own, baseline.as_ref()));
    }
    let mut measured = own.describe();
    if let Some(baseline) = &baseline {
        measured = format!("{measured}; baseline: {}", baseline.describe());
    }
    let passes = faults.is_empty();
    let measured = [vec![measured], faults].concat().join("; ");
    let threshold = match wanted_of_http1(context) {
        Some(1.0) => "at least 1 connection, kept open by the server".to_owned(),
        Some(wanted) => format!("at least {} connections, kept open by the server", three_digits(wanted)),
        None => "at least 2 requests per connection, kept open by the server".to_owned(),
    };
    Some(Finding::pass_or_caveat(passes, measured, threshold))
}

/// What differs from the real use of the variant.
fn unlike_real_use(context: &Context<'_>, own: &Usage, baseline: Option<&Usage>) -> Option<String> {
    let wanted = wanted_of_http1(context);
    if wanted.is_some_and(|wanted| own.opened < wanted) {
        return Some("HTTP/1.1 would open more connections".to_owned());
    }
    // A page over HTTP/1.1 opens many connections on purpose.
    let is_alone = wanted.is_none() && baseline.unwrap_or(own).each < LEAST_REQUESTS;
    let is_single = own.each < LEAST_REQUESTS && (is_multiplexed(context.own.cell) || is_alone);
    // The check `single_requests` judges a workload that allows no more.
    let may_be =
        single_requests::most_each(context.plan, context.own.cell).is_none_or(|each| each >= LEAST_REQUESTS);
    (is_single && may_be && !has_one_resource(context)).then(|| "nothing was multiplexed".to_owned())
}

/// How the median run of a cell used connections.
struct Usage {
    opened: f64,
    /// Requests per connection.
    each: f64,
    /// Connections that replaced others which the server had ended, per request.
    replaced_share: f64,
    /// Why the server ended connections.
    causes: String,
}

impl Usage {
    /// `None` if no client reports its connections.
    fn of(side: &Side<'_>) -> Option<Usage> {
        let sums = |run: &RunSummary| {
            let (opened, rows) =
                run.groups.iter().fold((0, 0), |(o, r), facts| (o + facts.connections, r + facts.rows));
            (opened > 0 && rows > 0).then(|| (number::float(opened), number::float(rows)))
        };
        let replaced =
            |run: &RunSummary| run.groups.iter().flat_map(|facts| facts.replaced.values()).sum::<u64>();
        let mut causes: BTreeMap<ServerClose, u64> = BTreeMap::new();
        for (cause, count) in side.ok().flat_map(|run| &run.groups).flat_map(|facts| &facts.replaced) {
            *causes.entry(*cause).or_default() += count;
        }
        let most = causes.into_iter().max_by_key(|(_, count)| *count);
        Some(Usage {
            opened: side.median(|run| Some(sums(run)?.0))?,
            each: side.median(|run| sums(run).map(|(opened, rows)| rows / opened))?,
            replaced_share: side.median(|run| Some(number::float(replaced(run)) / sums(run)?.1))?,
            causes: most.map(|(cause, _)| describe(cause).to_owned()).unwrap_or_default(),
        })
    }

    fn describe(&self) -> String {
        let noun = |value: f64, noun: &str| match value {
            1.0 => counted(1, noun),
            _ => format!("{} {noun}s", three_digits(value)),
        };
        format!("{}, {} per connection", noun(self.opened, "connection"), noun(self.each, "request"))
    }
}

/// The reason as the server gave it.
fn describe(cause: ServerClose) -> &'static str {
    match cause {
        ServerClose::CloseOption => "`Connection: close` in the response",
        ServerClose::Http10 => "HTTP/1.0 without keep-alive",
        ServerClose::NoLength => "a response without a length",
        ServerClose::Unannounced => "without an announcement in a response",
    }
}

/// Whether all groups load pages of one resource, which nothing can multiplex.
fn has_one_resource(context: &Context<'_>) -> bool {
    page_of(context.plan, &context.own.cell.group).is_some_and(|page| page.resources.len() < 2)
}

/// The connections that the page loads of all clients over HTTP/1.1 need at least.
fn wanted_of_http1(context: &Context<'_>) -> Option<f64> {
    if !context.compares_versions() {
        return None;
    }
    let pins = context.plan.pins_of(context.own.cell);
    let group = &context.own.cell.group;
    let page = page_of(context.plan, group).filter(|_| group.variant.http() == HttpVersion::Http11)?;
    let named =
        |parent: usize| page.resources.iter().filter(|resource| resource.named_by == Some(parent)).count();
    let at_once = (0..page.resources.len()).map(named).max()?;
    // At most two: whether it opens more depends on how soon each resource is done.
    let each = number::count(at_once.min(pins.http1_connections as usize).min(2));
    Some(each * f64::from(group.clients))
}

#[cfg(test)]
mod tests {
    use model::plan::Level;
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::{Bench, caveats, passes};

    fn with_connections(mut bench: Bench, count: usize) -> Bench {
        for record in &mut bench.records {
            let like = record.connections[0].clone();
            record.connections = vec![like; count];
        }
        bench
    }

    /// The server of a cell ends each of this many connections, one after the other.
    fn closing(mut bench: Bench, cell: u32, count: u32, cause: ServerClose) -> Bench {
        for record in bench.records.iter_mut().filter(|record| record.cell == cell) {
            let like = record.connections[0].clone();
            let row = |connection: u32| model::sample::ConnectionRow {
                connection,
                opened_ns: 1000 + u64::from(connection) * 1_000_000,
                closed_ns: Some(1000 + (u64::from(connection) + 1) * 1_000_000),
                server_close: Some(cause),
                ..like.clone()
            };
            record.connections = (0..count).map(row).collect();
        }
        bench
    }

    fn of_servers(mut bench: Bench) -> Bench {
        for (cell, server) in bench.plan.cells.iter_mut().zip(["a", "b"]) {
            let level = |factor: &str, value: &str| Level { factor: factor.into(), value: value.into() };
            cell.levels = vec![level("server", server), level("variant", "h1")];
        }
        bench.plan.baseline = Level { factor: "server".into(), value: "a".into() };
        bench
    }

    fn measured(bench: &Bench, cell: usize) -> String {
        let summary = bench.summary();
        summary.cells[cell]
            .validity
            .iter()
            .find(|check| check.check == "connections")
            .unwrap()
            .measured
            .clone()
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
        // The study asks about servers, and the client opens a connection for each request on purpose.
        let other = with_connections(of_servers(Bench::closed(&[Variant::H1, Variant::H1])), 50);
        passes("connections", &other);
    }

    #[test]
    fn a_server_that_ends_connections_is_a_caveat_for_variants_and_for_servers() {
        let page = closing(Bench::page(&[Variant::H1, Variant::H2c]), 0, 3, ServerClose::CloseOption);
        caveats(&page, &["connections"]);
        let expected =
            "the server ended connections for 66.7% of the requests (`Connection: close` in the response)";
        assert!(measured(&page, 0).ends_with(expected), "{}", measured(&page, 0));
        let servers = of_servers(Bench::closed(&[Variant::H1, Variant::H1]));
        let servers = closing(servers, 1, 50, ServerClose::Http10);
        let found = measured(&servers, 1);
        let expected =
            "50 connections, 1 request per connection; baseline: 1 connection, 50 requests per connection; ";
        assert!(found.starts_with(expected) && found.contains("HTTP/1.0 without keep-alive"), "{found}");
        assert!(found.ends_with("50 times apart from the baseline"), "{found}");
        let summary = servers.summary();
        let check = summary.cells[1].validity.iter().find(|check| check.check == "connections").unwrap();
        assert_eq!(check.result, crate::summary::CheckOutcome::Caveat);
    }

    #[test]
    fn connections_that_no_other_replaces_pass() {
        passes("connections", &closing(Bench::closed(&[Variant::H1]), 0, 1, ServerClose::Unannounced));
    }

    #[test]
    fn a_page_of_one_resource_has_nothing_to_multiplex() {
        let mut bench = Bench::page(&[Variant::H2, Variant::H3]);
        if let model::workload::Workload::Page(page) = &mut bench.plan.workloads[0].workload {
            page.resources.truncate(1);
        }
        bench.records.iter_mut().for_each(|record| record.samples.truncate(1));
        passes("connections", &bench);
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
