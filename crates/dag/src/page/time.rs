//! Times for people.

use std::time::Duration;

const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

/// A time in its unit, to three digits: `12.3 ms`.
pub(super) fn brief(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    // By what it is rounded to: 999.7 µs are 1 ms.
    let fits = |(_, unit): &&(&str, f64)| nanos / unit < 999.5;
    let (name, unit) = UNITS.iter().find(fits).unwrap_or(&UNITS[3]);
    let value = nanos / unit;
    let decimals = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    let digits = format!("{value:.decimals$}");
    let digits = if decimals > 0 { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{digits} {name}")
}

/// Where the lines of an axis go that ends at `end`: at a round step, the first at zero, `lines_max` at most.
pub(super) fn ticks(end: Duration, lines_max: u32) -> Vec<Duration> {
    let end = end.as_nanos().max(1);
    let mut step = 1;
    let steps = std::iter::from_fn(|| {
        step *= 10;
        Some([step / 10, step / 5, step / 2])
    });
    let step =
        steps.flatten().find(|step| end / step < u128::from(lines_max)).expect("steps grow beyond any end");
    let nanos = (0..=end / step).map(|nth| nth * step);
    nanos.map(|nanos| Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))).collect()
}
