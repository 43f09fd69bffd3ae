//! CPU work off the loop, under a deadline: whoever waits goes on in time, and the late job is waited for at the stop.
//!
//! ```sh
//! cargo run -p ebbtide --example offload_with_timeout
//! ```

use std::{hint::black_box, time::Duration};

use ebbtide::{Exit, lifecycle::time::Deadline};

fn main() -> Exit {
    ebbtide::run(async |app| {
        for (size, patience) in [(1_000, 1_000), (20_000_000, 1)] {
            let deadline = Deadline::after(app.handle(), Duration::from_millis(patience));
            let sum =
                app.pool().offload_with_timeout(app.handle(), deadline, move || sum_of_squares(size)).await;
            match sum {
                Ok(sum) => println!("{size} squares: {sum:?}"),
                Err(elapsed) => println!("{size} squares: {elapsed}, after {patience} ms"),
            }
        }
        // The pool is drained before the loop stops: a job that has begun runs to its end.
        Ok(())
    })
}

fn sum_of_squares(count: u64) -> u64 {
    (1..=count).fold(0, |sum: u64, n| sum.wrapping_add(black_box(n * n)))
}
