//! Ops to try engines with: a source, a wait, and work.
//!
//! Each is given to a [`Registry`] by a function that says how it makes or passes on a value.

use std::time::Duration;

use ebbtide_lifecycle::time::{Clock, SystemClock, Timer};

use super::{node::MILLISECONDS_MAX, param::Param, registry::Registry};
use crate::failure::Failure;

/// Registers `fixed_source`, which gives `rows(row_count)`: async, and ready at once.
pub fn fixed_source<R, V, F>(registry: &mut Registry<R, V>, rows: F)
where
    R: Send + Sync + 'static,
    V: Send + Sync + 'static,
    F: Fn(u64) -> V + Send + Sync + 'static,
{
    registry
        .op("fixed_source")
        .about("gives some rows at once")
        .param(Param::integer("row_count", 0..).about("how many"))
        .future(move |_, call| {
            let output = rows(call.params.integer("row_count").unsigned_abs());
            async move { Ok(output) }
        });
}

/// Registers `sleep`, which waits for `duration_ms` by `timer` and passes its first input on, or `otherwise()` if it
/// has none. With `fail_after_sleep` it fails then.
pub fn sleep<R, V, T, F>(registry: &mut Registry<R, V>, timer: T, otherwise: F)
where
    R: Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    T: Timer<Sleep: Send> + Clone + Send + Sync + 'static,
    F: Fn() -> V + Clone + Send + Sync + 'static,
{
    registry
        .op("sleep")
        .about("waits, and passes its first input on")
        .inputs(0..)
        .param(milliseconds("duration_ms").about("how long it waits"))
        .param(Param::bool("fail_after_sleep").default(false).about("whether it fails then"))
        .future(move |_, call| {
            let (timer, otherwise) = (timer.clone(), otherwise.clone());
            async move {
                match timer.sleep(duration(call.params.integer("duration_ms"))) {
                    Some(sleep) => sleep.await,
                    None => std::future::pending().await,
                }
                if call.params.bool("fail_after_sleep") {
                    return Err(Failure::new("told to fail after its sleep"));
                }
                let first = call.inputs.into_first();
                Ok(first.map_or_else(otherwise, |input| input.into_inner()))
            }
        });
}

/// Registers `busy_cpu`, which keeps a CPU busy for `busy_wait_ms` in real time, whatever the engine's clock says, and
/// passes its input on.
pub fn busy_cpu<R, V>(registry: &mut Registry<R, V>)
where
    R: Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    registry
        .op("busy_cpu")
        .about("keeps a CPU busy, and passes its input on")
        .inputs(1..=1)
        .param(milliseconds("busy_wait_ms").about("how long it is busy"))
        .run(|_, call| {
            let busy = duration(call.params.integer("busy_wait_ms"));
            let start = SystemClock.now();
            while SystemClock.now().duration_since(start) < busy {
                std::hint::spin_loop();
            }
            let input = call.inputs.into_first().expect("it has one input");
            Ok(input.into_inner())
        });
}

fn milliseconds(name: &str) -> Param {
    Param::integer(name, 0..=MILLISECONDS_MAX as i64)
}

fn duration(milliseconds: i64) -> Duration {
    Duration::from_millis(milliseconds.unsigned_abs())
}
