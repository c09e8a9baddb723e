//! The trees of queueing disciplines.

use model::network::kernel::KernelDirection;

use super::options::{self, Ticks};
use crate::netlink::Qdisc;

/// The root of an interface (TC_H_ROOT).
pub(super) const ROOT: u32 = u32::MAX;

/// Handles: the minor number of a qdisc is 0, the minor number of its class 1.
pub(super) const FATE: u32 = 1 << 16;
pub(super) const SHAPER: u32 = 2 << 16;
pub(super) const QUEUE: u32 = 3 << 16;
pub(super) const SERIALISER: u32 = 4 << 16;
pub(super) const DELAY: u32 = 5 << 16;
pub(super) const COUNTER: u32 = 6 << 16;
const CLASS: u32 = 1;

/// The qdiscs of the first device: loss and duplication, queue and rate. Parents precede children.
pub(super) fn first(direction: &KernelDirection, seed: u64, ticks: &Ticks) -> Vec<Qdisc> {
    let mut chain = Chain::default();
    if let Some(fate) = &direction.fate {
        chain.add("netem", FATE, options::fate(fate, seed));
    }
    if let Some(shaper) = &direction.shaper {
        chain.add("tbf", SHAPER, options::shaper(shaper, ticks));
        let (kind, options) = options::queue(&shaper.queue);
        chain.add(kind, QUEUE, options);
    }
    chain.or_counter()
}

/// The qdiscs of the second device: the rate again, and the delay. A netem that draws a delay for each packet
/// is the child of the rate's netem, because a single netem would add rate and delay up.
pub(super) fn second(direction: &KernelDirection, seed: u64) -> Vec<Qdisc> {
    let mut chain = Chain::default();
    let rate = direction.serialiser_bytes_per_s;
    match direction.delay.as_ref().filter(|delay| delay.may_reorder()) {
        Some(delay) => {
            if rate.is_some() {
                chain.add("netem", SERIALISER, options::serialiser(rate, 0));
            }
            // A different random stream than the loss.
            chain.add("netem", DELAY, options::delay(delay, !seed));
        }
        None => {
            let delay_ns = direction.delay.map_or(0, |delay| delay.delay_ns);
            if rate.is_some() || delay_ns > 0 {
                chain.add("netem", SERIALISER, options::serialiser(rate, delay_ns));
            }
        }
    }
    chain.or_counter()
}

/// Qdiscs, each the child of its predecessor.
#[derive(Default)]
struct Chain(Vec<Qdisc>);

impl Chain {
    fn add(&mut self, kind: &'static str, handle: u32, options: Vec<u8>) {
        let parent = self.0.last().map_or(ROOT, |above| above.handle | CLASS);
        self.0.push(Qdisc { kind, handle, parent, options });
    }

    /// A qdisc that only counts, where there is no other.
    fn or_counter(mut self) -> Vec<Qdisc> {
        if self.0.is_empty() {
            self.add("pfifo", COUNTER, options::counter());
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use model::network::{Direction, Distribution, Jitter, LinkRate, Loss, Order, Reorder};

    use super::*;

    fn shape(direction: &Direction) -> [Vec<(&'static str, u32, u32)>; 2] {
        let direction = KernelDirection::of(direction, 1500).unwrap();
        let ticks = Ticks::read().unwrap();
        [first(&direction, 1, &ticks), second(&direction, 1)]
            .map(|qdiscs| qdiscs.iter().map(|qdisc| (qdisc.kind, qdisc.handle >> 16, qdisc.parent)).collect())
    }

    #[test]
    fn the_order_is_loss_queue_and_rate_delay() {
        let rate = LinkRate::Constant { bits_per_s: 8_000_000 };
        let plain = Direction { rate, delay_ns: 5_000_000, ..Direction::default() };
        let below = |major: u32| major << 16 | 1;
        let [first, second] = shape(&plain);
        assert_eq!(first, [("tbf", 2, ROOT), ("pfifo", 3, below(2))]);
        assert_eq!(second, [("netem", 4, ROOT)]);
        let loss = Loss::Independent { share: 0.1 };
        let order = Order::Free { correlation: 0.0 };
        let jitter = Some(Jitter { spread_ns: 1_000_000, distribution: Distribution::Normal, order });
        let [first, second] = shape(&Direction { loss, jitter, ..plain.clone() });
        assert_eq!(first, [("netem", 1, ROOT), ("tbf", 2, below(1)), ("pfifo", 3, below(2))]);
        assert_eq!(second, [("netem", 4, ROOT), ("netem", 5, below(4))]);
        let reorder = Some(Reorder { share: 0.5, gap: 1 });
        let [first, second] = shape(&Direction { rate: LinkRate::Unlimited, reorder, ..plain });
        assert_eq!((first, second), (vec![("pfifo", 6, ROOT)], vec![("netem", 5, ROOT)]));
        let [first, second] = shape(&Direction::default());
        assert_eq!((first, second), (vec![("pfifo", 6, ROOT)], vec![("pfifo", 6, ROOT)]));
    }
}
