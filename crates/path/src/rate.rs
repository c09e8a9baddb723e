//! A link of constant rate: one packet at a time, exact to a fraction of a nanosecond.

const BITS_PER_BYTE: u128 = 8;
const NANOS_PER_S: u128 = 1_000_000_000;

/// When the link is free again. The remainder of each division is carried on, so a busy link never drifts.
#[derive(Debug)]
pub(crate) struct Rate {
    /// `None` is unlimited: a packet departs when it arrives.
    bits_per_s: Option<u64>,
    free_at_ns: u64,
    /// What is left of the last division, in units of 1 / `bits_per_s` nanoseconds.
    remainder: u128,
}

impl Rate {
    pub(crate) const fn new(bits_per_s: Option<u64>) -> Self {
        Rate { bits_per_s, free_at_ns: 0, remainder: 0 }
    }

    pub(crate) const fn is_unlimited(&self) -> bool {
        self.bits_per_s.is_none()
    }

    /// Begins a transmission at `start_ns`, or when the link is free if that is later; returns the time of
    /// departure. A rate of 0 (which the resolved model does not hold) never lets a packet depart.
    pub(crate) fn transmit(&mut self, start_ns: u64, length_bytes: u64) -> u64 {
        if start_ns > self.free_at_ns {
            self.free_at_ns = start_ns;
            self.remainder = 0;
        }
        if let Some(bits_per_s) = self.bits_per_s {
            let bits_per_s = u128::from(bits_per_s);
            let work = u128::from(length_bytes) * BITS_PER_BYTE * NANOS_PER_S + self.remainder;
            let took_ns = work.checked_div(bits_per_s).unwrap_or(u128::MAX);
            self.remainder = work.checked_rem(bits_per_s).unwrap_or(0);
            self.free_at_ns = self.free_at_ns.saturating_add(u64::try_from(took_ns).unwrap_or(u64::MAX));
        }
        self.free_at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialisation_time_is_exact() {
        let mut rate = Rate::new(Some(50_000_000));
        assert_eq!(rate.transmit(0, 1514), 242_240);
        assert_eq!(rate.transmit(0, 1514), 484_480, "a busy link queues");
        assert_eq!(rate.transmit(1_000_000, 1514), 1_242_240, "an idle link starts at the arrival");
    }

    #[test]
    fn a_busy_link_does_not_drift() {
        const PACKETS: u64 = 1_000_000;
        for bits_per_s in [3, 9_999_991, 49_999_999, 1_000_000_007] {
            let mut rate = Rate::new(Some(bits_per_s));
            let mut bits = 0_u128;
            let mut departure_ns = 0;
            for packet in 0..PACKETS {
                let length = if bits_per_s == 3 { 1 } else { 64 + packet % 1451 };
                bits += u128::from(length) * BITS_PER_BYTE;
                departure_ns = rate.transmit(0, length);
            }
            let exact_ns = bits * NANOS_PER_S / u128::from(bits_per_s);
            assert_eq!(u128::from(departure_ns), exact_ns, "at {bits_per_s} bit/s");
        }
    }
}
