//! Both servers send TLS records of the same size.

use super::{Check, Context, Finding, Side, Table, check};

pub(super) const CHECK: Check = Check {
    measures: "encrypted variants over TCP: the size of TLS records according to the servers' descriptions, \
               compared with the baseline",
    passes: "equal",
    caveat: "different",
    why: "Small TLS records cost more each, and a client has to wait for the end of a large one. Different \
          record sizes are a difference of configuration.",
    remedy: "Configure the same record size for all variants of the server (`tls_warmup = \"0B\"`, \
             `tls_record`), or make this the question.",
    reads: &[Table::Servers],
    ..check("records_match", judge)
};

/// Judged if both servers' descriptions give the size.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let (own, other) = (records(&context.own)?, records(context.baseline.as_ref()?)?);
    let describe = |size: &str| match size.parse::<u32>() {
        Ok(bytes) => format!("{bytes} bytes"),
        Err(_) => size.to_owned(),
    };
    let threshold = format!("{}, as in the baseline", describe(&other));
    Some(Finding::pass_or_caveat(own == other, format!("records: {}", describe(&own)), threshold))
}

fn records(side: &Side<'_>) -> Option<String> {
    let variant = side.cell.group.variant;
    let has_records = variant.is_encrypted() && !variant.is_quic();
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
