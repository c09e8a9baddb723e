//! What a change of the client's address costs.

use model::number::float;

use super::{ANY, Metric, Table, duration};

pub(super) const METRICS: &[Metric] = &[Metric {
    start: "the client's address is gone, for the first time in the run",
    end: "bytes of a response arrive again, over a connection that migrated or over a later one",
    reads: &[Table::Clients],
    ..duration("recovery_time", "Time until bytes flow again", ANY, |view| {
        let change = view.clients().find_map(|client| client.address_change)?;
        change.received_ns?.checked_sub(change.at_ns).map(float)
    })
}];

#[cfg(test)]
mod tests {
    use model::assignment::AddressChange;
    use model::variant::Variant;

    use crate::fixtures::{Bench, summary_of};

    #[test]
    fn bytes_flow_again_or_there_is_no_time() {
        let mut bench = Bench::player(&[Variant::H2]);
        let mut recovery_ns = |address_change| {
            bench.records[0].clients[0].address_change = address_change;
            summary_of(&bench.plan, &bench.records[0]).value("recovery_time")
        };
        assert_eq!(recovery_ns(None), None, "the address stayed");
        let change = AddressChange { at_ns: 1_000, received_ns: None };
        assert_eq!(recovery_ns(Some(change)), None, "nothing arrived");
        assert_eq!(recovery_ns(Some(AddressChange { received_ns: Some(51_000), ..change })), Some(50e3));
    }
}
