//! A run as one page: a feed with a node that is late, one that fails and can be done without, one that is skipped, and
//! CPU nodes on two threads.
//!
//! Writes the page of the run to the path that it is given, and its plan as SVG beside it.

use std::{env, fs, hint::black_box, path::PathBuf, time::Duration};

use ebbtide_dag::{Env, Failure, Graph, Handle, Policy, Retry};
use ebbtide_offload::Pool;
use ebbtide_reactor::{Runtime, sleep};
use ebbtide_timeout::Runners;

const MS: Duration = Duration::from_millis(1);

type Rows = Vec<u64>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = env::args_os().nth(1).map_or_else(|| env::temp_dir().join("ebbtide-feed.html"), PathBuf::from);
    let mut runtime = Runtime::new();
    let pool = Pool::builder().cpu_threads(2).start()?;
    let runners = Runners::new(&runtime.handle(), runtime.handle())?;
    let env = Env::new(runtime.handle()).pool(&pool).runners(&runners);

    let (graph, feed) = feed();
    let plan = graph.plan(feed)?;
    fs::write(path.with_extension("svg"), plan.to_svg())?;
    let run = plan.bind(env)?.run(7).within(120 * MS).policy(Policy::FinishIndependent).traced();
    let (feed, report) = runtime.block_on(run);
    fs::write(&path, report.to_html())?;
    // On a machine that is busy with other things the deadline may come first. The page says so, too.
    match feed {
        Ok(rows) => println!("{} rows", rows.len()),
        Err(error) => println!("{error}"),
    }
    println!("the page is in {}", path.display());
    Ok(())
}

/// What a viewer is shown.
fn feed() -> (Graph<u64>, Handle<Rows>) {
    let mut graph = Graph::<u64>::new("feed");
    let viewer = graph.future("viewer", (), |cx, ()| {
        let user = **cx.request();
        async move {
            sleep(3 * MS).await;
            Ok(user)
        }
    });
    let read = |graph: &mut Graph<u64>, name: &str, time: Duration| {
        graph.future(name, viewer, move |_, viewer| async move {
            sleep(time).await;
            Ok((1..=50).map(|n| *viewer * 100 + n).collect::<Rows>())
        })
    };
    let follow = read(&mut graph, "follow", 12 * MS);
    let recommendation = read(&mut graph, "recommendation", 21 * MS);
    let trends = read(&mut graph, "trends_of_the_region_and_season", 400 * MS);
    graph.node(trends).timeout(60 * MS);
    let ads = graph.future("ads", viewer, |cx, _| {
        let attempt = cx.attempt();
        async move {
            sleep(4 * MS).await;
            Err::<Rows, _>(Failure::new(format!("ads.example: connection refused (attempt {attempt})")))
        }
    });
    graph.node(ads).retry(Retry::times(2).backoff(2 * MS, 2 * MS));
    let experiments = graph.inline("experiments", viewer, |_, _| Ok(Rows::new()));
    graph.node(experiments).when(|cx| **cx.request() == 1);
    let blocked =
        graph.blocking("blocklist", (), |_, ()| Ok((1..10).map(|n| busy(n, 400)).collect::<Rows>()));

    let score = |graph: &mut Graph<u64>, name: &str, rows: Handle<Rows>, work: u64| {
        graph.cpu(name, rows, move |_, rows| Ok(rows.iter().map(|row| busy(*row, work)).collect::<Rows>()))
    };
    let from_follow = score(&mut graph, "score_follow", follow, 9_000);
    let history = score(&mut graph, "history", follow, 6_000);
    let social = score(&mut graph, "social", follow, 4_000);
    let from_recommendation = score(&mut graph, "score_recommendation", recommendation, 8_000);
    let sources = (
        from_follow,
        from_recommendation,
        history,
        social,
        (trends.optional(), ads.optional(), experiments.optional()),
    );
    let concat = graph.inline("concat", sources, |_, (follow, recommendation, history, social, _)| {
        let all = follow.iter().chain(recommendation.iter()).chain(history.iter()).chain(social.iter());
        Ok(all.copied().collect::<Rows>())
    });
    let filter = graph.inline("filter", (concat, blocked), |_, (rows, blocked)| {
        Ok(rows.iter().filter(|row| !blocked.contains(row)).copied().collect::<Rows>())
    });
    let rank = score(&mut graph, "rank", filter, 2_500);
    let take = graph.inline("take", rank, |_, rows| Ok(rows.iter().take(20).copied().collect::<Rows>()));
    (graph, take)
}

/// Keeps a CPU busy for a while.
fn busy(row: u64, work: u64) -> u64 {
    (0..work).fold(row, |sum, n| black_box(sum.rotate_left(5) ^ n))
}
