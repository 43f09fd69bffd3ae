//! A loop with a thread of its own: what it accepted it runs, what it refuses comes back.
//!
//! ```sh
//! cargo run -p ebbtide --example post_and_stop
//! ```

use ebbtide::{Error, reactor::EventLoop};

fn main() -> Result<(), Error> {
    let events = EventLoop::new();
    events.start()?;
    for number in 1..=3 {
        events.post(move || println!("{number}, on the loop"))?;
    }
    events.stop(); // the three have run

    let refused = events.post(|| println!("four")).expect_err("it has stopped");
    println!("{refused}; so it is run here:");
    (refused.work)();
    println!("{}", events.balance());
    Ok(())
}
