//! A feed for a viewer: who he is, whom he follows and what is recommended, ranked and put together.
//!
//! Prints the plan as a Mermaid diagram, what the run gave, what it spent its time on, and the file with its trace,
//! which opens in Perfetto or in `chrome://tracing`.

use std::{env, fs, time::Duration};

use ebbtide_dag::{Env, Graph};
use ebbtide_offload::Pool;
use ebbtide_reactor::{Runtime, sleep};
use ebbtide_timeout::Runners;

/// What is asked for.
struct Request {
    user: u64,
}

type Rows = Vec<u64>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut runtime = Runtime::new();
    let pool = Pool::new()?;
    let runners = Runners::new(&runtime.handle(), runtime.handle())?;

    let mut graph = Graph::<Request>::new("feed");
    let viewer = graph.future("viewer", (), |cx, ()| {
        let user = cx.request().user;
        async move {
            sleep(Duration::from_millis(2)).await;
            Ok(user)
        }
    });
    let follow = graph.future("follow", viewer, |_, viewer| async move {
        sleep(Duration::from_millis(5)).await;
        Ok((1..=5).map(|n| *viewer * 100 + n).collect::<Rows>())
    });
    let recs = graph.future("recs", viewer, |_, viewer| async move {
        sleep(Duration::from_millis(8)).await;
        Ok((1..=5).map(|n| *viewer * 1000 + n).collect::<Rows>())
    });
    // The last consumer gets the rows themselves: nothing is copied.
    let vm_follow = graph.cpu("vm follow", follow, |_, rows| Ok(rank(rows.into_inner())));
    let vm_recs = graph.cpu("vm recs", recs, |_, rows| Ok(rank(rows.into_inner())));
    let concat = graph.inline("concat", (vm_follow, vm_recs.optional()), |_, (follow, recs)| {
        let recs = recs.map(|recs| recs.into_inner()).unwrap_or_default();
        Ok(follow.into_inner().into_iter().chain(recs).collect::<Rows>())
    });
    graph.node(recs).timeout(Duration::from_millis(500)).fallback(Rows::new());

    let plan = graph.plan(concat)?;
    println!("{}", plan.mermaid());
    let engine = plan.bind(Env::new(runtime.handle()).pool(&pool).runners(&runners))?;
    let run = engine.run(Request { user: 7 }).within(Duration::from_secs(1)).traced();
    let (feed, report) = runtime.block_on(run);
    println!("{:?}\n\n{report}\n\ncritical path:", *feed?);
    for step in report.critical_path() {
        println!("  {}: waited {:.1?}, ran {:.1?}", report.at(step.node).name, step.waited, step.ran);
    }
    let file = env::temp_dir().join("ebbtide-feed.json");
    fs::write(&file, report.chrome_trace())?;
    println!("\nthe trace is in {}", file.display());
    Ok(())
}

/// The best first.
fn rank(mut rows: Rows) -> Rows {
    rows.sort_unstable_by_key(|row| std::cmp::Reverse(*row));
    rows
}
