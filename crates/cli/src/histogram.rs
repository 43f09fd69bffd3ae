//! How long many things took, in little memory: each time falls into a bucket that is about 3% wide.

use std::time::Duration;

/// Each power of two is cut into so many buckets.
const PARTS: u64 = 32;
const PART_BITS: u32 = PARTS.trailing_zeros();

/// How many buckets there are: those below the first cut power, and those of each further one.
const BUCKETS: usize = (64 - PART_BITS as usize + 1) * PARTS as usize;

/// Counts by length, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS].into(), count: 0, max: 0 }
    }
}

impl Histogram {
    pub(crate) fn record(&mut self, length: Duration) {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.count += 1;
        self.max = self.max.max(nanos);
    }

    /// Counts those of another one, too.
    pub(crate) fn add(&mut self, other: &Self) {
        for (count, of_other) in self.counts.iter_mut().zip(&other.counts) {
            *count += of_other;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    pub(crate) fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// So large a share took no longer than this.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let wanted = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(top(bucket).min(self.max));
            }
        }
        self.max()
    }
}

/// Which bucket a length falls into.
fn bucket(nanos: u64) -> usize {
    if nanos < PARTS {
        return nanos as usize;
    }
    let power = nanos.ilog2() - PART_BITS;
    // The bits below the leading one say which part.
    let part = (nanos >> power) - PARTS;
    ((u64::from(power) + 1) * PARTS + part) as usize
}

/// The longest that falls into a bucket.
fn top(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket;
    }
    let power = bucket / PARTS - 1;
    let bottom = (bucket % PARTS + PARTS) << power;
    bottom + ((1 << power) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_is_in_the_bucket_that_ends_at_it_or_after_it() {
        let mut lengths: Vec<u64> = (0..200).collect();
        lengths.extend((7..64).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]));
        lengths.push(u64::MAX);
        for length in lengths {
            let bucket = bucket(length);
            assert!(top(bucket) >= length, "{length}");
            assert!(bucket == 0 || top(bucket - 1) < length, "{length}");
            assert!(top(bucket) - length <= length / PARTS, "{length}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_lengths() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), Duration::ZERO);
        for length in 1..=1000 {
            histogram.record(Duration::from_micros(length));
        }
        for (share, expected) in [(0.5, 500), (0.99, 990), (0.999, 999), (1.0, 1000)] {
            let found = histogram.quantile(share).as_nanos() as f64 / 1e3;
            assert!((found / f64::from(expected) - 1.0).abs() < 0.04, "{share}: {found}");
        }
        assert_eq!(histogram.max(), Duration::from_millis(1));
    }
}
