//! What a middlebox does to UDP: it blocks all of it, or drops what exceeds a token bucket.

use model::network::UdpRule;

/// A nanosecond at 1 bit/s.
const WORK_PER_BYTE: u128 = 8_000_000_000;

/// The rule and, with a rate, its bucket.
#[derive(Debug)]
pub(crate) struct Middlebox {
    rule: Option<UdpRule>,
    /// What the bucket lacks until it is full, in bits times nanoseconds per second.
    missing: u128,
    latest_ns: u64,
}

impl Middlebox {
    /// The bucket is full at first.
    pub(crate) const fn new(rule: Option<UdpRule>) -> Self {
        Middlebox { rule, missing: 0, latest_ns: 0 }
    }

    /// Applies another rule from now on; a bucket with the same rule keeps its level.
    pub(crate) fn change(&mut self, rule: Option<UdpRule>) {
        if self.rule != rule {
            *self = Middlebox { latest_ns: self.latest_ns, ..Middlebox::new(rule) };
        }
    }

    /// Whether a packet of UDP passes. Packets arrive in the order of time.
    pub(crate) fn passes(&mut self, arrival_ns: u64, length_bytes: u64) -> bool {
        let Some(rule) = self.rule else { return true };
        let UdpRule::Policed { bits_per_s, burst_bytes } = rule else { return false };
        let passed_ns = arrival_ns.saturating_sub(self.latest_ns);
        self.latest_ns = self.latest_ns.max(arrival_ns);
        self.missing = self.missing.saturating_sub(u128::from(bits_per_s) * u128::from(passed_ns));
        let after = self.missing + u128::from(length_bytes) * WORK_PER_BYTE;
        let fits = after <= u128::from(burst_bytes) * WORK_PER_BYTE;
        if fits {
            self.missing = after;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_bucket_passes_its_burst_and_then_its_rate() {
        let mut policed =
            Middlebox::new(Some(UdpRule::Policed { bits_per_s: 8_000_000, burst_bytes: 10_000 }));
        let passed = (0..20).filter(|_| policed.passes(0, 1000)).count();
        assert_eq!(passed, 10, "the burst");
        // 1000 bytes a millisecond, offered twice that.
        let passed = (1..=2000).filter(|packet| policed.passes(packet * MS / 2, 1000)).count();
        assert_eq!(passed, 1000, "the rate");
        let passed = (0..20).filter(|_| policed.passes(100_000 * MS, 1000)).count();
        assert_eq!(passed, 10, "the bucket holds no more than its burst");
    }

    #[test]
    fn a_change_opens_blocks_and_keeps_the_level() {
        let rule = Some(UdpRule::Policed { bits_per_s: 8, burst_bytes: 1000 });
        let mut policed = Middlebox::new(rule);
        assert!(policed.passes(0, 1000) && !policed.passes(0, 1000));
        policed.change(rule);
        assert!(!policed.passes(1, 1000), "the same rule keeps the level");
        policed.change(Some(UdpRule::Blocked));
        assert!(!policed.passes(2, 1));
        policed.change(None);
        assert!(policed.passes(3, u64::MAX));
    }
}
