//! Both cells have the same TLS, and all handshakes are of one kind.

use std::collections::BTreeMap;

use model::external::OWN_CLIENT;
use model::sample::HandshakeKind;

use super::{Check, CheckOutcome, Context, Finding, GroupFacts, Side, Table, check};

pub(super) const CHECK: Check = Check {
    measures: "TLS version, cipher suite and key exchange, compared with the baseline; and whether all \
               handshakes are of one kind (cold, resumed or with early data)",
    passes: "equal, one kind",
    caveat: "several kinds of handshake",
    invalidates: "a different version, cipher or key exchange",
    why: "A different TLS version, cipher or key exchange takes a different time, and a resumed handshake is \
          shorter: the comparison then measures TLS.",
    remedy: "Pin them in `[hold]`, give every server a certificate and tickets of the same kind, and study \
             cold and resumed handshakes separately.",
    reads: &[Table::Connections],
    ..check("tls_match", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let own = sum(&context.own, |facts| &facts.tls);
    if own.is_empty() {
        let is_encrypted = context.own.cell.group.variant.is_encrypted();
        let is_external = context.own.cell.group.client != OWN_CLIENT;
        return (is_encrypted && is_external)
            .then(|| Finding::not_reported("the client does not report what TLS it negotiated"));
    }
    let kinds = sum(&context.own, |facts| &facts.handshakes);
    let baseline = context.baseline.as_ref().map(|side| sum(side, |facts| &facts.tls)).unwrap_or_default();
    let differs = !baseline.is_empty() && !own.keys().eq(baseline.keys());
    let result = match (differs, kinds.len() > 1) {
        (true, _) => CheckOutcome::Invalid,
        (false, true) => CheckOutcome::Caveat,
        (false, false) => CheckOutcome::Pass,
    };
    let kinds = kinds.iter().map(|(kind, count)| format!("{count} {}", name(*kind))).collect::<Vec<_>>();
    let threshold = match baseline.is_empty() {
        true => "one kind of handshake".to_owned(),
        false => format!("{}, as in the baseline; one kind of handshake", describe(&baseline)),
    };
    let measured = format!("{}; {} handshakes", describe(&own), kinds.join(", "));
    Some(Finding { result, measured, threshold })
}

/// Over all runs that succeeded and all client groups.
fn sum<K: Ord + Clone>(side: &Side<'_>, of: fn(&GroupFacts) -> &BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let mut all = BTreeMap::new();
    for (key, count) in side.ok().flat_map(|run| &run.groups).flat_map(of) {
        *all.entry(key.clone()).or_default() += count;
    }
    all
}

fn describe(tls: &BTreeMap<String, u64>) -> String {
    tls.keys().map(String::as_str).collect::<Vec<_>>().join(" and ")
}

const fn name(kind: HandshakeKind) -> &'static str {
    match kind {
        HandshakeKind::Cold => "cold",
        HandshakeKind::Resumed => "resumed",
        HandshakeKind::Early => "early",
    }
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes, silent};

    #[test]
    fn equal_settings_pass_and_cleartext_has_none() {
        passes("tls_match", &Bench::page(&[Variant::H1s, Variant::H2, Variant::H3]));
        silent("tls_match", &Bench::page(&[Variant::H1, Variant::H2c]));
    }

    #[test]
    fn another_cipher_invalidates() {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
        for record in bench.records.iter_mut().filter(|record| record.cell == 1) {
            record.connections[0].cipher_suite = Some("TLS_CHACHA20_POLY1305_SHA256".to_owned());
        }
        assert!(fails("tls_match", &bench).measured.contains("CHACHA20"));
    }

    #[test]
    fn mixed_handshakes_are_a_caveat() {
        let mut bench = Bench::page(&[Variant::H1s]);
        bench.records[0].connections[0].resumed = true;
        caveats(&bench, &["tls_match"]);
    }
}
