//! The options of queueing disciplines as bytes (linux/pkt_sched.h).

use std::io;

use model::network::kernel::{Delay, Fate, KernelQueue, PARETO_SCALE, Shaper};
use model::network::{Codel, Distribution, Loss};
use model::number::float;

use crate::netlink_bytes::Bytes;

/// How many packets a delay can hold: as many as in the user-space emulator.
#[expect(clippy::cast_possible_truncation, reason = "2^17")]
pub(super) const CAPACITY_PACKETS: u32 = path::path::CAPACITY_PACKETS as u32;
/// The limit of a qdisc that has no queue and must not drop packets.
const NO_LIMIT: u32 = i32::MAX as u32;

/// enum of TCA_NETEM_*.
const NETEM_DELAY_DIST: u16 = 2;
const NETEM_REORDER: u16 = 3;
const NETEM_LOSS: u16 = 5;
const NETEM_RATE: u16 = 6;
const NETEM_RATE64: u16 = 8;
const NETEM_LATENCY64: u16 = 10;
const NETEM_JITTER64: u16 = 11;
/// Since Linux 6.6; older kernels ignore it.
const NETEM_PRNG_SEED: u16 = 14;
/// Inside TCA_NETEM_LOSS: Gilbert and Elliott's model.
const NETEM_LOSS_GE: u16 = 2;
/// The unit of a table's entries is the jitter divided by this (NETEM_DIST_SCALE).
const TABLE_SCALE: f64 = 8192.0;
/// The longest table that the kernel takes (NETEM_DIST_MAX).
const TABLE_ENTRIES: u32 = 16_384;

/// enum of TCA_TBF_*.
const TBF_PARMS: u16 = 1;
const TBF_RATE64: u16 = 4;
const TBF_BURST: u16 = 6;
/// TC_LINKLAYER_ETHERNET: no table of rates.
const LINKLAYER_ETHERNET: u8 = 1;

/// enum of TCA_CODEL_* and of TCA_FQ_CODEL_*, whose first values are equal.
const CODEL_TARGET: u16 = 1;
const CODEL_LIMIT: u16 = 2;
const CODEL_INTERVAL: u16 = 3;
const CODEL_ECN: u16 = 4;
const FQ_CODEL_FLOWS: u16 = 5;
const FQ_CODEL_QUANTUM: u16 = 6;
const FQ_CODEL_DROP_BATCH_SIZE: u16 = 8;
const FQ_CODEL_MEMORY_LIMIT: u16 = 9;

const NS_PER_US: u64 = 1_000;

/// The packet scheduler's clock: converts nanoseconds to ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    numerator: u64,
    denominator: u64,
}

impl Ticks {
    /// Reads /proc/net/psched.
    pub(super) fn read() -> io::Result<Ticks> {
        let text = std::fs::read_to_string("/proc/thread-self/net/psched")?;
        Ticks::parse(&text).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("unexpected text in /proc/net/psched: `{}`", text.trim()),
            )
        })
    }

    /// Parses four 32-bit numbers in hexadecimal: ticks per microsecond as numerator and denominator, the
    /// clock's frequency and the timer's frequency.
    fn parse(text: &str) -> Option<Ticks> {
        let mut numbers = text.split_whitespace().map(|number| u64::from_str_radix(number, 16).ok());
        let (numerator, denominator) = (numbers.next()??, numbers.next()??);
        let frequency = numbers.next()??;
        // At a frequency of 1 GHz a tick is a nanosecond.
        let numerator = if frequency == 1_000_000_000 { denominator } else { numerator };
        let frequency_mhz = frequency.checked_div(1_000_000).filter(|mhz| *mhz > 0)?;
        Some(Ticks {
            numerator: numerator.checked_mul(frequency_mhz)?,
            denominator: denominator.checked_mul(NS_PER_US).filter(|denominator| *denominator > 0)?,
        })
    }

    fn of_ns(self, ns: u64) -> u32 {
        let ticks = u128::from(ns) * u128::from(self.numerator) / u128::from(self.denominator);
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }
}

/// A netem that drops and duplicates packets.
pub(super) fn fate(fate: &Fate, seed: u64) -> Vec<u8> {
    let independent = match fate.loss {
        Loss::Independent { share } => share,
        Loss::None | Loss::GilbertElliott { .. } => 0.0,
    };
    let model = match fate.loss {
        // The kernel takes the loss 1 - k in the good state and h in the bad state (`loss_gilb_ell` in
        // net/sched/sch_netem.c).
        Loss::GilbertElliott { p, r, h, k } => Some(Bytes::default().attribute(
            NETEM_LOSS_GE,
            [p, r, h, 1.0 - k].into_iter().fold(Bytes::default(), |bytes, share| bytes.u32(per_2_32(share))),
        )),
        Loss::None | Loss::Independent { .. } => None,
    };
    let (loss, duplicate) = (per_2_32(independent), per_2_32(fate.duplicate_share));
    qopt(NO_LIMIT, loss, 0, duplicate)
        .maybe(NETEM_LOSS, model)
        .attribute(NETEM_PRNG_SEED, Bytes::default().u64(seed))
        .done()
}

/// A netem that sends at a rate and then delays. Jitter and reordering are in [`delay`].
pub(super) fn serialiser(bytes_per_s: Option<u64>, delay_ns: u64) -> Vec<u8> {
    let rate = bytes_per_s.map(|rate| {
        // Rate, overhead of a packet, size and overhead of a cell.
        Bytes::default().u32(u32::try_from(rate).unwrap_or(u32::MAX)).u32(0).u32(0).u32(0)
    });
    let wide = bytes_per_s.filter(|rate| *rate > u64::from(u32::MAX)).map(|rate| Bytes::default().u64(rate));
    qopt(CAPACITY_PACKETS, 0, 0, 0)
        .attribute(NETEM_LATENCY64, Bytes::default().u64(delay_ns))
        .maybe(NETEM_RATE, rate)
        .maybe(NETEM_RATE64, wide)
        .done()
}

/// A netem that draws a delay for each packet.
pub(super) fn delay(delay: &Delay, seed: u64) -> Vec<u8> {
    let gap = delay.reorder.map_or(0, |reorder| u32::try_from(reorder.gap).unwrap_or(u32::MAX));
    let jitter_ns = delay.jitter.map(|(spread_ns, distribution)| spread_ns * scale(distribution));
    let table = delay.jitter.and_then(|(_, distribution)| table(distribution));
    // The share, and its correlation.
    let reorder = delay.reorder.map(|reorder| Bytes::default().u32(per_2_32(reorder.share)).u32(0));
    qopt(CAPACITY_PACKETS, 0, gap, 0)
        .attribute(NETEM_LATENCY64, Bytes::default().u64(delay.delay_ns))
        .maybe(NETEM_JITTER64, jitter_ns.map(|ns| Bytes::default().u64(ns)))
        .maybe(NETEM_DELAY_DIST, table.map(|table| Bytes::default().i16s(&table)))
        .maybe(NETEM_REORDER, reorder)
        .attribute(NETEM_PRNG_SEED, Bytes::default().u64(seed))
        .done()
}

/// A token bucket filter without its queue.
pub(super) fn shaper(shaper: &Shaper, ticks: &Ticks) -> Vec<u8> {
    let rate = u32::try_from(shaper.bytes_per_s).unwrap_or(u32::MAX);
    let burst_ns = u128::from(shaper.burst_bytes) * 1_000_000_000 / u128::from(shaper.bytes_per_s.max(1));
    let burst_ticks = ticks.of_ns(u64::try_from(burst_ns).unwrap_or(u64::MAX));
    // struct tc_ratespec: cell, link layer, overhead, alignment, smallest packet, rate.
    let ratespec = |bytes: Bytes, layer: u8, rate: u32| bytes.u8(0).u8(layer).u16(0).u16(0).u16(0).u32(rate);
    // No peak rate. A limit would create a queue, which is replaced at once.
    let parms = ratespec(ratespec(Bytes::default(), LINKLAYER_ETHERNET, rate), LINKLAYER_ETHERNET, 0)
        .u32(0)
        .u32(burst_ticks)
        .u32(0);
    let wide = (shaper.bytes_per_s > u64::from(u32::MAX)).then(|| Bytes::default().u64(shaper.bytes_per_s));
    let burst = u32::try_from(shaper.burst_bytes).unwrap_or(u32::MAX);
    Bytes::default()
        .attribute(TBF_PARMS, parms)
        .maybe(TBF_RATE64, wide)
        .attribute(TBF_BURST, Bytes::default().u32(burst))
        .done()
}

/// A queue's kind and options.
pub(super) fn queue(queue: &KernelQueue) -> (&'static str, Vec<u8>) {
    let number = |number: u32| Bytes::default().u32(number);
    match *queue {
        KernelQueue::Packets(packets) => ("pfifo", number(packets).done()),
        KernelQueue::Bytes(bytes) => ("bfifo", number(bytes).done()),
        KernelQueue::Codel { packets, codel } => ("codel", codel_options(packets, codel).done()),
        KernelQueue::FqCodel { packets, codel, flows, quantum_bytes } => {
            let options = codel_options(packets, codel)
                .attribute(FQ_CODEL_FLOWS, number(flows))
                .attribute(FQ_CODEL_QUANTUM, number(quantum_bytes))
                // RFC 8290, section 4.1: drop one packet when the queue is full. Only packets limit the
                // queue.
                .attribute(FQ_CODEL_DROP_BATCH_SIZE, number(1))
                .attribute(FQ_CODEL_MEMORY_LIMIT, number(NO_LIMIT));
            ("fq_codel", options.done())
        }
    }
}

fn codel_options(packets: u32, Codel { target_ns, interval_ns, ecn }: Codel) -> Bytes {
    let number = |number: u32| Bytes::default().u32(number);
    Bytes::default()
        .attribute(CODEL_TARGET, number(microseconds(target_ns)))
        .attribute(CODEL_LIMIT, number(packets))
        .attribute(CODEL_INTERVAL, number(microseconds(interval_ns)))
        .attribute(CODEL_ECN, number(u32::from(ecn)))
}

/// The options of a `pfifo` that only counts packets.
pub(super) fn counter() -> Vec<u8> {
    Bytes::default().u32(CAPACITY_PACKETS).done()
}

/// struct tc_netem_qopt; attributes give latency and jitter in nanoseconds.
fn qopt(limit_packets: u32, loss: u32, gap: u32, duplicate: u32) -> Bytes {
    Bytes::default().u32(0).u32(limit_packets).u32(loss).u32(gap).u32(duplicate).u32(0)
}

/// A probability in netem's unit: all 32 bits set means 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
fn per_2_32(share: f64) -> u32 {
    (share * 4_294_967_296.0).round().clamp(0.0, f64::from(u32::MAX)) as u32
}

fn microseconds(ns: u64) -> u32 {
    u32::try_from(ns / NS_PER_US).unwrap_or(u32::MAX)
}

/// The factor by which a table's entries are smaller and its jitter is larger.
const fn scale(distribution: Distribution) -> u64 {
    match distribution {
        Distribution::Pareto => PARETO_SCALE,
        Distribution::Normal | Distribution::Uniform => 1,
    }
}

/// The quantiles of a distribution at the middles of equal shares; netem draws one for each packet. `None`
/// for the uniform distribution, which netem has built in.
fn table(distribution: Distribution) -> Option<Vec<i16>> {
    let units = TABLE_SCALE / float(scale(distribution));
    let entry = |index: u32| {
        let share = (f64::from(index) + 0.5) / f64::from(TABLE_ENTRIES);
        let value = (path::jitter_quantile(distribution, share) * units).round();
        #[expect(clippy::cast_possible_truncation, reason = "clamped to what fits")]
        let value = value.clamp(f64::from(i16::MIN), f64::from(i16::MAX)) as i16;
        value
    };
    match distribution {
        Distribution::Uniform => None,
        Distribution::Normal | Distribution::Pareto => Some((0..TABLE_ENTRIES).map(entry).collect()),
    }
}

#[cfg(test)]
mod tests {
    use model::network::Reorder;

    use super::*;
    use crate::netlink_bytes::{attributes, u32_at, u64_at};

    /// As every kernel of today has it: ticks of 64 ns.
    const TICKS: &str = "000003e8 00000040 000f4240 3b9aca00\n";
    const QOPT_BYTES: usize = 24;

    fn words(bytes: &[u8]) -> Vec<u32> {
        (0..bytes.len() / 4).filter_map(|word| u32_at(bytes, word * 4)).collect()
    }

    fn attribute(options: &[u8], wanted: u16) -> Option<&[u8]> {
        attributes(&options[QOPT_BYTES..]).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
    }

    #[test]
    fn ticks_are_those_of_the_scheduler() {
        let ticks = Ticks::parse(TICKS).unwrap();
        assert_eq!(ticks.of_ns(64_000), 1000);
        assert_eq!(ticks.of_ns(1_000_000), 15_625);
        let nanoseconds = Ticks::parse("000003e8 000003e8 3b9aca00 3b9aca00").unwrap();
        assert_eq!(nanoseconds.of_ns(1_000), 1_000, "a clock of nanoseconds");
        for text in ["", "000003e8", "000003e8 00000000 000f4240 0", "x y z"] {
            assert_eq!(Ticks::parse(text), None, "{text}");
        }
    }

    #[test]
    fn independent_loss_is_in_the_structure() {
        let options = fate(&Fate { loss: Loss::Independent { share: 0.25 }, duplicate_share: 0.5 }, 7);
        assert_eq!(words(&options[..QOPT_BYTES]), [0, NO_LIMIT, 1 << 30, 0, 1 << 31, 0]);
        assert_eq!(u64_at(attribute(&options, 14).unwrap(), 0), Some(7));
        assert_eq!(attribute(&options, 5), None);
        assert_eq!(per_2_32(1.0), u32::MAX);
        assert_eq!(per_2_32(0.01), 42_949_673);
    }

    #[test]
    fn gilbert_and_elliotts_loss_is_nested() {
        let loss = Loss::GilbertElliott { p: 0.25, r: 0.5, h: 0.125, k: 0.75 };
        let options = fate(&Fate { loss, duplicate_share: 0.0 }, 1);
        assert_eq!(words(&options[..QOPT_BYTES]), [0, NO_LIMIT, 0, 0, 0, 0]);
        // TCA_NETEM_LOSS of 24 bytes holds NETEM_LOSS_GE of 20: p, r, h, 1 - k.
        let model = &options[QOPT_BYTES..QOPT_BYTES + 24];
        let header = |length: u16, kind: u16| [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        assert_eq!(model[..8], [header(24, 5), header(20, 2)].concat());
        assert_eq!(words(&model[8..]), [1 << 30, 1 << 31, 1 << 29, 1 << 30]);
    }

    #[test]
    fn a_serialiser_has_rate_and_latency() {
        let options = serialiser(Some(12_500_000), 75_000_000);
        assert_eq!(words(&options[..QOPT_BYTES]), [0, CAPACITY_PACKETS, 0, 0, 0, 0]);
        assert_eq!(u64_at(attribute(&options, 10).unwrap(), 0), Some(75_000_000));
        assert_eq!(words(attribute(&options, 6).unwrap()), [12_500_000, 0, 0, 0]);
        assert_eq!(attribute(&options, 8), None);
        let wide = serialiser(Some(5_000_000_000), 0);
        assert_eq!(words(attribute(&wide, 6).unwrap())[0], u32::MAX);
        assert_eq!(u64_at(attribute(&wide, 8).unwrap(), 0), Some(5_000_000_000));
    }

    #[test]
    fn a_delay_has_jitter_table_and_gap() {
        let reorder = Some(Reorder { share: 0.25, gap: 5 });
        let jitter = Some((15_000_000, Distribution::Uniform));
        let options = delay(&Delay { delay_ns: 30_000_000, jitter, reorder }, 3);
        assert_eq!(words(&options[..QOPT_BYTES]), [0, CAPACITY_PACKETS, 0, 5, 0, 0]);
        assert_eq!(u64_at(attribute(&options, 11).unwrap(), 0), Some(15_000_000));
        assert_eq!(words(attribute(&options, 3).unwrap()), [1 << 30, 0]);
        assert_eq!(attribute(&options, 2), None, "netem's own distribution is the uniform one");
        let jitter = Some((1_000_000, Distribution::Pareto));
        let options = delay(&Delay { delay_ns: 30_000_000, jitter, reorder: None }, 3);
        assert_eq!(u64_at(attribute(&options, 11).unwrap(), 0), Some(8_000_000));
        assert_eq!(attribute(&options, 2).map(<[u8]>::len), Some(2 * TABLE_ENTRIES as usize));
        assert_eq!(attribute(&options, 3), None);
    }

    /// What netem computes from a table has mean 0 and the spread as standard deviation, and its largest is
    /// not cut off.
    #[test]
    fn tables_have_the_moments_of_their_distribution() {
        for (distribution, largest) in [(Distribution::Normal, 4.0), (Distribution::Pareto, 23.0)] {
            let table = table(distribution).unwrap();
            let values: Vec<f64> = table
                .iter()
                .map(|entry| f64::from(*entry) / TABLE_SCALE * scale(distribution) as f64)
                .collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let deviation =
                (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt();
            assert!(
                mean.abs() < 1e-3 && (deviation - 1.0).abs() < 3e-3,
                "{distribution:?}: {mean} {deviation}"
            );
            let found = values.iter().copied().fold(f64::MIN, f64::max);
            assert!((found - largest).abs() < 1.0, "{distribution:?}: {found}");
            assert!(table.is_sorted());
        }
    }

    #[test]
    fn a_token_bucket_has_rate_and_burst_in_ticks_and_bytes() {
        let queue = KernelQueue::Packets(1);
        let bucket = Shaper { bytes_per_s: 1_000_000, burst_bytes: 1764, queue };
        let options = shaper(&bucket, &Ticks::parse(TICKS).unwrap());
        let mut found = attributes(&options);
        let (kind, parms) = found.next().unwrap();
        // struct tc_tbf_qopt: two tc_ratespec of 12 bytes, limit, buffer, mtu. 1764 µs are 27 562 ticks.
        assert_eq!((kind, parms.len()), (1, 36));
        assert_eq!(parms[..2], [0, 1], "no cells, Ethernet");
        assert_eq!(words(&parms[8..]), [1_000_000, u32::from_ne_bytes([0, 1, 0, 0]), 0, 0, 0, 27_562, 0]);
        assert_eq!(found.next(), Some((6, 1764_u32.to_ne_bytes().as_slice())));
        assert_eq!(found.next(), None);
        let wide = Shaper { bytes_per_s: 5_000_000_000, ..bucket };
        let options = shaper(&wide, &Ticks::parse(TICKS).unwrap());
        assert!(
            attributes(&options).any(|(kind, value)| kind == 4 && u64_at(value, 0) == Some(5_000_000_000))
        );
    }

    #[test]
    fn queues_have_the_kernels_units() {
        assert_eq!(queue(&KernelQueue::Packets(99)), ("pfifo", 99_u32.to_ne_bytes().to_vec()));
        assert_eq!(queue(&KernelQueue::Bytes(9_000)), ("bfifo", 9_000_u32.to_ne_bytes().to_vec()));
        let codel = Codel { target_ns: 5_000_000, interval_ns: 100_000_000, ecn: true };
        let numbers = |options: &[u8]| -> Vec<(u16, u32)> {
            attributes(options).filter_map(|(kind, value)| Some((kind, u32_at(value, 0)?))).collect()
        };
        let (kind, options) = queue(&KernelQueue::Codel { packets: 7, codel });
        assert_eq!((kind, numbers(&options)), ("codel", vec![(1, 5_000), (2, 7), (3, 100_000), (4, 1)]));
        let flows = KernelQueue::FqCodel { packets: 7, codel, flows: 64, quantum_bytes: 1514 };
        let (kind, options) = queue(&flows);
        let expected =
            vec![(1, 5_000), (2, 7), (3, 100_000), (4, 1), (5, 64), (6, 1514), (8, 1), (9, NO_LIMIT)];
        assert_eq!((kind, numbers(&options)), ("fq_codel", expected));
    }
}
