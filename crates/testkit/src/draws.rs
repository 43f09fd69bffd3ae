//! Numbers that a seed says. The generator is `SplitMix64`, by Steele, Lea and Flood.

use std::time::Duration;

/// A stream of numbers: the same seed and the same purpose give the same.
#[derive(Clone, Debug)]
pub struct Draws {
    state: u64,
}

impl Draws {
    /// The numbers of `seed` for one purpose. Streams of different purposes have nothing to do with each other, so that
    /// one who draws more does not change what others draw.
    #[must_use]
    pub fn new(seed: u64, purpose: u64) -> Self {
        let mut of_purpose = Self { state: purpose };
        Self { state: seed ^ of_purpose.next() }
    }

    /// Any number.
    #[expect(clippy::should_implement_trait, reason = "they have no end")]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `below`, or 0 if that is 0.
    pub fn below(&mut self, below: u64) -> u64 {
        self.next() % below.max(1)
    }

    /// True once in so many times; never for 0.
    pub fn one_in(&mut self, times: u32) -> bool {
        self.below(times.into()) == 0 && times != 0
    }

    /// A number from 1 to below `2^bits`, small ones as often as large ones: what is worth looking at happens early in
    /// most programs, and late in some.
    pub fn magnitude(&mut self, bits: u32) -> u64 {
        let top = 1 << self.below(bits.into());
        top + self.below(top)
    }

    /// A time from a millisecond to `up_to`, short ones as often as long ones.
    pub fn duration(&mut self, up_to: Duration) -> Duration {
        let most = u64::try_from(up_to.as_millis()).unwrap_or(u64::MAX).max(1);
        Duration::from_millis(self.magnitude(most.ilog2() + 1).min(most))
    }

    /// One of `choices`.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_purpose_give_the_same_and_others_do_not() {
        let draw = |seed, purpose| Draws::new(seed, purpose).next();
        assert_eq!(draw(1, 1), draw(1, 1));
        assert_ne!(draw(1, 1), draw(2, 1));
        assert_ne!(draw(1, 1), draw(1, 2));
    }

    #[test]
    fn magnitudes_stay_in_their_bounds_and_reach_both() {
        let mut draws = Draws::new(0, 0);
        let drawn: Vec<_> = (0..10_000).map(|_| draws.magnitude(10)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&1), Some(&1023)));
        let short = drawn.iter().filter(|drawn| **drawn < 32).count();
        assert!((4_500..5_500).contains(&short), "half of the bits, half of the time: {short}");
        assert!((0..1000).all(|_| draws.duration(Duration::from_secs(2)) <= Duration::from_secs(2)));
        assert!((0..100).all(|_| !draws.one_in(0)));
    }
}
