//! The server is one that h123 started.

use super::{Check, CheckOutcome, Context, Finding, check};

pub(super) const CHECK: Check = Check {
    measures: "whether h123 started the cell's server",
    passes: "never: cells whose server h123 starts are not judged",
    caveat: "the server has a `url`",
    why: "Much of such a server is unknown: its congestion control and initial window, its TLS records, its caches, \
          the load by others, and the network up to the lab. Over TCP the gateway's kernel sends to the client, with \
          the study's congestion control, so a lossy link recovers at once, without the server's distance; QUIC is \
          between client and server. That favours HTTP/1.1 and HTTP/2 the more, the farther away the server is.",
    remedy: "Read small differences with care. To compare with everything else fixed, measure the same page on a \
             server that h123 starts.",
    ..check("outside", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let remote = context.own.cell.chain.remote.as_ref()?;
    let variant = context.own.cell.group.variant;
    let path = if variant.is_quic() { "QUIC reaches it end to end" } else { "TCP is relayed at the gateway" };
    Some(Finding {
        result: CheckOutcome::Caveat,
        measured: format!("{} runs already; {path}", remote.url.origin()),
        threshold: "a server that h123 starts".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use model::plan::{MOST_RATE, MOST_REQUESTS, Remote, RemoteTrust};
    use model::url::Url;
    use model::variant::Variant;

    use super::super::CheckOutcome;
    use crate::fixtures::{Bench, caveats, silent};

    #[test]
    fn a_server_with_a_url_is_a_caveat() {
        silent("outside", &Bench::page(&[Variant::H2]));
        for (variant, part) in [(Variant::H2, "TCP is relayed"), (Variant::H3, "QUIC reaches it")] {
            let mut bench = Bench::page(&[variant]);
            bench.plan.cells[0].chain.remote = Some(Remote {
                url: Url::parse("https://www.example.test/").unwrap(),
                trust: RemoteTrust::System,
                most_requests: MOST_REQUESTS,
                most_rate: MOST_RATE,
            });
            caveats(&bench, &["outside"]);
            let summary = bench.summary();
            let found = summary.cells[0].validity.iter().find(|found| found.check == "outside").unwrap();
            assert_eq!(found.result, CheckOutcome::Caveat);
            assert!(found.measured.contains(part), "{}", found.measured);
        }
    }
}
