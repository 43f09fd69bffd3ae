//! How long to wait before the next try.

use std::time::Duration;

/// Doubles from try to try, up to a limit, and takes a part off, so that those who lost the same server do not all
/// come back at the same moment.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    most: Duration,
    failures: u32,
    /// What the parts are made of: it differs from link to link, and from try to try.
    count: u64,
}

/// Beyond this many doublings every limit is reached.
const DOUBLINGS_MAX: u32 = 20;

impl Backoff {
    pub(crate) fn new(first: Duration, most: Duration, seed: u64) -> Self {
        Self { first, most, failures: 0, count: seed }
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Between a half and the whole of what it has come to.
    pub(crate) fn pause(&mut self) -> Duration {
        let whole = self.first.saturating_mul(1 << self.failures.min(DOUBLINGS_MAX)).min(self.most);
        self.failures += 1;
        self.count = self.count.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let part = scatter(self.count) >> 40;
        whole / 2 + (whole / 2).mul_f64(part as f64 / (1 << 24) as f64)
    }
}

/// The finish of splitmix64 (Steele, Lea and Flood 2014): neighbours come far apart.
fn scatter(mut number: u64) -> u64 {
    number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_limit_and_are_not_all_the_same() {
        let (first, most) = (Duration::from_millis(50), Duration::from_secs(2));
        let mut backoff = Backoff::new(first, most, 7);
        let waits: Vec<_> = (0..40).map(|_| backoff.pause()).collect();
        for (index, wait) in waits.iter().enumerate() {
            let whole = first.saturating_mul(1 << index.min(20)).min(most);
            assert!(*wait >= whole / 2 && *wait <= whole, "{index}: {wait:?}");
        }
        assert!(waits[10..].windows(2).any(|pair| pair[0] != pair[1]));
        backoff.reset();
        assert!(backoff.pause() <= first);
    }
}
