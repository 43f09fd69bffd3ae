//! A request that is answered by a graph of steps, under a deadline.
//!
//! ```sh
//! cargo run -p ebbtide --features dag --example typed_graph
//! ```

use std::time::Duration;

use ebbtide::{
    Exit,
    dag::{Env, Graph},
    sleep,
};

fn main() -> Exit {
    ebbtide::run(async |app| {
        let mut graph = Graph::<u64>::new("greeting");
        let name = graph.future("name", (), |cx, ()| {
            let user = **cx.request();
            async move {
                sleep(Duration::from_millis(2)).await; // a lookup, on the loop
                Ok(format!("user {user}"))
            }
        });
        let score = graph.cpu("score", name, |_, name| Ok(name.bytes().map(u64::from).sum::<u64>()));
        let text =
            graph.inline("text", (name, score), |_, (name, score)| Ok(format!("{} has {}", *name, *score)));
        graph.node(score).timeout(Duration::from_millis(500)).fallback(0);

        // Checked once; run for any number of requests at a time.
        let env = Env::new(app.handle().clone()).pool(app.pool()).runners(app.runners());
        let engine = graph.plan(text)?.bind(env)?;
        for user in 1..=3 {
            println!("{}", *engine.run(user).within(Duration::from_secs(1)).await?);
        }
        Ok(())
    })
}
