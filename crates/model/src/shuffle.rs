//! Seeded order: a generator of 64-bit numbers and an unbiased shuffle, so that a plan depends on its seed
//! alone.

/// SplitMix64: 64 bits of state, one addition and two multiplications a number, every seed as good as
/// another.
///
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014; the
/// constants are those of the variant in `java.util.SplittableRandom`. The sequence is part of the plan's
/// format: a study with the same seed must give the same plan in every later version.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix64 {
    /// A generator whose whole sequence follows from `seed`.
    pub const fn new(seed: u64) -> Self {
        SplitMix64 { state: seed }
    }

    /// The next number, uniform over all 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next number below `bound`, without bias: numbers from the incomplete last stretch are drawn again.
    ///
    /// A `bound` of 0 gives 0.
    pub const fn next_below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let incomplete = (u64::MAX % bound + 1) % bound;
        loop {
            let number = self.next_u64();
            if number <= u64::MAX - incomplete {
                return number % bound;
            }
        }
    }

    /// Puts `items` into random order, each order equally likely (Fisher and Yates, in Durstenfeld's form).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            #[expect(clippy::cast_possible_truncation, reason = "below `last + 1`, which is a usize")]
            let chosen = self.next_below(last as u64 + 1) as usize;
            items.swap(last, chosen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_is_the_published_one() {
        // The first outputs for seed 1234567, as other implementations of SplitMix64 print them.
        let mut numbers = SplitMix64::new(1_234_567);
        assert_eq!(numbers.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(numbers.next_u64(), 3_203_168_211_198_807_973);
        assert_eq!(numbers.next_u64(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut numbers = SplitMix64::new(7);
        let mut seen = [0_u32; 6];
        for _ in 0..6000 {
            seen[usize::try_from(numbers.next_below(6)).unwrap()] += 1;
        }
        // 1000 each expected; 6 standard deviations are 173.
        assert!(seen.iter().all(|&count| (827..=1173).contains(&count)), "seed 7: {seen:?}");
        assert_eq!(numbers.next_below(1), 0);
        assert_eq!(numbers.next_below(0), 0);
    }

    #[test]
    fn every_order_of_three_is_equally_likely() {
        let mut numbers = SplitMix64::new(11);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            numbers.shuffle(&mut items);
            *seen.entry(items).or_insert(0_u32) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|&count| (827..=1173).contains(&count)), "seed 11: {seen:?}");
    }
}
