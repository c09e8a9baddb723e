//! Both arms cut what they send into TLS records of the same size.

use super::{Check, CheckOutcome, Context, Finding, Side};

pub(super) const CHECK: Check = Check {
    name: "records_match",
    why: "Small TLS records cost more each and large ones make the client wait for a whole one: a server that cuts one variant \
          otherwise than the other is compared with itself.",
    remedy: "Set the server's record size alike for its variants (`tls_warmup = \"0B\"`, `tls_record`), or ask that question on \
             purpose.",
    judge,
};

/// What the servers' descriptions say of their TLS records over TCP, where both arms have such; a difference is a caveat, and
/// what nobody says is not judged.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let (own, other) = (records(&context.own)?, records(context.baseline.as_ref()?)?);
    let result = if own == other { CheckOutcome::Pass } else { CheckOutcome::Caveat };
    let words = |size: &str| match size.parse::<u32>() {
        Ok(bytes) => format!("{bytes} bytes"),
        Err(_) => size.to_owned(),
    };
    Some(Finding {
        result,
        measured: format!("records: {}", words(&own)),
        threshold: format!("{}, as the baseline", words(&other)),
    })
}

fn records(side: &Side<'_>) -> Option<String> {
    let over_tcp = |variant: model::Variant| variant.is_encrypted() && !variant.is_quic();
    let has_records = side.cell.clients.iter().all(|group| over_tcp(group.variant));
    side.ok().filter(|_| has_records).find_map(|run| run.sends.tls_records.clone())
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    fn with_records(sizes: [&str; 2]) -> Bench {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
        for record in &mut bench.records {
            record.servers[0].sends.tls_records = Some(sizes[record.cell as usize].to_owned());
        }
        bench
    }

    #[test]
    fn the_same_size_passes_and_an_unknown_one_is_not_judged() {
        passes("records_match", &with_records(["16384", "16384"]));
        silent("records_match", &Bench::page(&[Variant::H1s, Variant::H2]));
        silent("records_match", &Bench::page(&[Variant::H1, Variant::H1s]));
    }

    #[test]
    fn dynamic_records_of_one_variant_are_a_caveat() {
        caveats(&with_records(["16384", "dynamic"]), &["records_match"]);
    }
}
