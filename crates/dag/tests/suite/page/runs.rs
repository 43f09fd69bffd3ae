//! Runs as pages.

use std::time::Duration;

use ebbtide_dag::{Failure, Graph, OnTimeout, Policy, Report};
use ebbtide_lifecycle::{
    Reason, Trigger,
    time::{Clock, Deadline},
};
use ebbtide_reactor::sleep;
use roxmltree::{Document, Node};

use super::{HOSTILE, all, assert_is_harmless, has_class, layered, part, read, sayable, text, tip};
use crate::{Latch, MS, World};

/// A run in which about everything happens to some node: of 100 ms, which it does not need.
fn eventful() -> Report {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("eventful");
    let root = graph.future("root", (), |_, ()| async {
        sleep(5 * MS).await;
        Ok(1)
    });
    let slow = |graph: &mut Graph<()>, name: &str| {
        graph.future(name, root, |_, _| async {
            sleep(1_000 * MS).await;
            Ok(1)
        })
    };
    let (late, dropped, fell_back) =
        (slow(&mut graph, "late"), slow(&mut graph, "dropped"), slow(&mut graph, "fell back"));
    graph.node(late).timeout(20 * MS);
    graph.node(dropped).timeout(30 * MS).on_timeout(OnTimeout::Cancel);
    graph.node(fell_back).timeout(40 * MS).on_timeout(OnTimeout::Cancel).fallback(7);
    let failed = graph.cpu("failed", root, |_, _| Err::<i32, _>(Failure::new("no such <user>")));
    let panicked = graph.inline("panicked", root, |_, _| if root_is_odd() { panic!("odd") } else { Ok(1) });
    let after = graph.inline("after", failed, |_, n| Ok(*n));
    let unasked = graph.inline("unasked", root, |_, _| Ok(1));
    graph.node(unasked).when(|_| false);
    let parts = (late.optional(), dropped.optional(), fell_back, failed.optional());
    let answer =
        graph.inline("answer", (parts, panicked.optional(), after.optional(), unasked.optional()), |_, _| {
            Ok(())
        });
    let engine = graph.plan(answer).unwrap().bind(world.env()).unwrap();
    let run = engine.run(()).within(100 * MS).policy(Policy::FinishIndependent);
    let (result, report) = world.runtime.block_on(run.traced());
    result.unwrap();
    report
}

/// Not known to the compiler.
fn root_is_odd() -> bool {
    std::hint::black_box(true)
}

/// The line of a node in the table: its class, and the texts of its cells.
fn line(document: &Document<'_>, name: &str) -> (String, Vec<String>) {
    let is_line = |node: &Node<'_, '_>| node.tag_name().name() == "tr" && node.has_attribute("id");
    let mut lines = document.descendants().filter(is_line);
    let named = |line: &Node<'_, '_>| {
        line.descendants().find(|node| node.tag_name().name() == "code").map(text).as_deref() == Some(name)
    };
    let line = lines.find(named).unwrap_or_else(|| panic!("no line for {name}"));
    let cells = line.children().filter(|cell| cell.is_element()).map(text).collect();
    (line.attribute("class").unwrap().to_owned(), cells)
}

#[test]
fn d8_a_run_is_one_page_with_its_graph_its_timeline_and_its_nodes() {
    let report = eventful();
    let page = report.to_html();
    let document = read(&page);
    assert_is_harmless(&document, 1);
    assert!(!page.contains("http:") && !page.contains("https:"), "it loads nothing");
    let svg = |class: &str| {
        let svgs = all(&document, class).into_iter().filter(|node| node.tag_name().name() == "svg");
        svgs.map(|svg| svg.descendants().filter(|node| node.tag_name().name() == "a").count())
            .collect::<Vec<_>>()
    };
    // The graph has a box for each node; the timeline has a bar for each that has begun.
    assert_eq!((svg("graph"), svg("timeline")), (vec![9], vec![7]));
    for link in document.descendants().filter_map(|node| node.attribute("href")) {
        let target = link.strip_prefix('#').unwrap();
        assert!(
            document.descendants().any(|node| node.attribute("id") == Some(target)),
            "{link} leads nowhere"
        );
    }
    let heading = document.descendants().find(|node| node.tag_name().name() == "h1").map(text).unwrap();
    assert_eq!(heading, "eventful ok");
    let facts: Vec<String> =
        all(&document, "facts")[0].children().filter(Node::is_element).map(text).collect();
    assert_eq!(facts[..2], ["Total45 ms ", "Deadline100 ms 55 ms left"]);
    let ends = "2 ok, 2 skipped, 1 fell back, 1 late, 1 timed out, 2 failed";
    assert_eq!(facts[2].replace('\u{a0}', " "), format!("Nodes9 {ends}"));
    assert_eq!(facts[3], "Critical path3 nodes ran 45 ms, queued 0 ns");
}

#[test]
fn each_end_of_a_node_is_told_in_colour_and_in_words() {
    let report = eventful();
    let page = report.to_html();
    let document = read(&page);
    let expected = [
        ("root", "ok", "ok", ""),
        (
            "late",
            "late",
            "timed out, late",
            "it took longer than its 20 ms; it went on, and its output was discarded",
        ),
        ("dropped", "timed-out", "timed out", "it took longer than its 30 ms"),
        ("fell back", "fell-back", "fell back", "timed out after 40ms"),
        ("failed", "failed", "failed", "no such <user>"),
        ("panicked", "failed", "panicked", "odd"),
        ("after", "skipped", "skipped", "because of failed"),
        ("unasked", "skipped", "skipped", "its condition did not hold"),
        ("answer", "ok", "ok", ""),
    ];
    for (name, class, word, why) in expected {
        let (found, cells) = line(&document, name);
        assert_eq!((found.as_str(), cells[7].as_str(), cells[8].as_str()), (class, word, why), "{name}");
    }
    // Those that have to be looked at are told at the top, the worst first.
    let troubles = all(&document, "troubles")[0].children().filter(Node::is_element);
    let names: Vec<String> = troubles.map(|trouble| text(trouble.first_element_child().unwrap())).collect();
    assert_eq!(names, ["failed", "panicked", "dropped", "late", "fell back"]);
}

#[test]
fn the_critical_path_is_marked_wherever_it_is_shown() {
    let page = eventful().to_html();
    let document = read(&page);
    let path = text(all(&document, "path")[0]).replace('\u{a0}', " ");
    assert_eq!(path, "critical root 5 ms → fell back 40 ms → answer 0 ns");
    let rings = all(&document, "ring").into_iter().map(|ring| tip(ring.parent_element().unwrap()));
    let names: Vec<String> = rings.map(|tip| tip.lines().next().unwrap().to_owned()).collect();
    // In the graph, and in the timeline, whose lanes are drawn from the left.
    assert_eq!(names, ["root", "fell back", "answer", "root", "fell back", "answer"]);
    let edges = all(&document, "edge").into_iter().filter(|edge| edge.has_attribute("marker-end"));
    assert_eq!(edges.filter(|edge| has_class(*edge, "critical")).count(), 2);
}

#[test]
fn bars_lie_where_their_times_are_and_none_covers_another() {
    let page = eventful().to_html();
    let document = read(&page);
    let bars: Vec<_> = all(&document, "timeline")[0]
        .descendants()
        .filter(|node| node.tag_name().name() == "a")
        .map(|bar| {
            let of = |name| part(bar, "box").unwrap().attribute(name).unwrap().parse::<f64>().unwrap();
            (tip(bar).lines().next().unwrap().to_owned(), [of("x"), of("y"), of("width"), of("height")])
        })
        .collect();
    let bar = |name: &str| bars.iter().find(|(other, _)| other == name).unwrap().1;
    let [root, late] = [bar("root"), bar("late")];
    // 5 ms and 20 ms, one after the other.
    assert!((late[2] / root[2] - 4.0).abs() < 0.01 && (root[0] + root[2] - late[0]).abs() < 0.2, "{bars:?}");
    for (nth, (name, one)) in bars.iter().enumerate() {
        for (_, other) in &bars[nth + 1..] {
            let apart =
                |at: usize| one[at] + one[at + 2] <= other[at] || other[at] + other[at + 2] <= one[at];
            assert!(apart(0) || apart(1), "{name}: {bars:?}");
        }
    }
}

#[test]
fn a_run_that_exceeds_its_deadline_says_so_first() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("slow");
    let quick = graph.inline("quick", (), |_, ()| Ok(1));
    let read_ = graph.future("read", quick, |_, _| async {
        sleep(100 * MS).await;
        Ok(1)
    });
    let answer = graph.inline("answer", read_, |_, n| Ok(*n));
    let engine = graph.plan(answer).unwrap().bind(world.env()).unwrap();
    let (result, report) = world.runtime.block_on(engine.run(()).within(40 * MS).traced());
    assert!(result.is_err());
    let page = report.to_html();
    let document = read(&page);
    assert_eq!(
        text(document.descendants().find(|node| node.tag_name().name() == "h1").unwrap()),
        "slow deadline exceeded"
    );
    let error = text(all(&document, "error")[0]);
    assert_eq!(error, "R001 request deadline exceeded: running [read], not started [answer]");
    assert_eq!(text(all(&document, "over")[0]), "exceeded");
    assert_eq!(all(&document, "deadline").len(), 2, "a line and its label");
    // What the run waited for is what had not ended.
    assert!(
        text(all(&document, "path")[0]).ends_with("read\u{a0}> 40 ms"),
        "{}",
        text(all(&document, "path")[0])
    );
    let (class, cells) = line(&document, "read");
    assert_eq!((class.as_str(), cells[5].as_str()), ("late", "> 40 ms"));
    assert_eq!(line(&document, "answer").0, "not-started");
}

#[test]
fn a_cancelled_run_shows_what_was_given_up_on() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("cancelled");
    let (latch, begun, release) = Latch::new();
    let waits = graph.future("waits", (), |_, ()| std::future::pending::<Result<i32, Failure>>());
    let works = graph.cpu("works", (), move |_, ()| {
        latch.wait();
        Ok(1)
    });
    let engine = graph.plan((waits, works)).unwrap().bind(world.env()).unwrap();
    let trigger = Trigger::new();
    let run = engine.run(()).cancelled_by(&trigger.token()).traced();
    let stops = std::thread::spawn(move || {
        begun.recv().unwrap();
        trigger.fire(Reason::requested("enough"));
    });
    let (result, report) = world.runtime.block_on(run);
    assert!(result.is_err());
    stops.join().unwrap();
    let page = report.to_html();
    let document = read(&page);
    assert_eq!(line(&document, "waits").0, "cancelled");
    let (class, cells) = line(&document, "works");
    assert_eq!((class.as_str(), cells[7].as_str()), ("late", "cancelled, late"));
    release.send(()).unwrap();
    world.settle(&engine);
}

#[test]
fn a_run_without_times_has_a_page_without_a_timeline() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("plain");
    let only = graph.inline("only", (), |_, ()| Ok(()));
    let engine = graph.plan(only).unwrap().bind(world.env()).unwrap();
    let (_, report) = world.runtime.block_on(engine.run(()).reported());
    let page = report.to_html();
    let document = read(&page);
    assert!(all(&document, "timeline").is_empty() && page.contains("the run was not traced"));
    assert_eq!(line(&document, "only").1, ["only", "inline", "", "–", "–", "–", "–", "ok", ""]);
    // A run that did not begin has one, too.
    let expired = engine.run(()).deadline(Deadline::at(world.clock.now())).traced();
    let (_, report) = world.runtime.block_on(expired);
    let page = report.to_html();
    let document = read(&page);
    assert_eq!(text(all(&document, "error")[0]), "R002 deadline exceeded before the run started");
    assert_eq!(line(&document, "only").0, "not-started");
    assert!(page.contains("no node has begun") && !page.contains("not traced"));
}

#[test]
fn a_critical_path_is_shortened_only_where_that_saves_room() {
    for (nodes, left_out) in [(12, None), (14, None), (15, Some("… 3 more nodes …"))] {
        let mut world = World::new();
        let mut graph = Graph::<()>::new("chain");
        let mut last = graph.inline("n0", (), |_, ()| Ok(0));
        for nth in 1..nodes {
            last = graph.inline(format!("n{nth}"), last, |_, n| Ok(*n));
        }
        let engine = graph.plan(last).unwrap().bind(world.env()).unwrap();
        let (_, report) = world.runtime.block_on(engine.run(()).traced());
        let page = report.to_html();
        let path = text(all(&read(&page), "path")[0]);
        assert_eq!(path.contains("more node"), left_out.is_some(), "{path}");
        assert!(left_out.is_none_or(|left_out| path.contains(left_out)), "{path}");
    }
}

#[test]
fn whatever_names_and_errors_say_is_text() {
    for hostile in HOSTILE {
        let mut world = World::new();
        let mut graph = Graph::<()>::new(hostile);
        let node = graph.cpu(hostile, (), move |_, ()| Err::<(), _>(Failure::new(hostile)));
        let engine = graph.plan(node).unwrap().bind(world.env()).unwrap();
        let (_, report) = world.runtime.block_on(engine.run(()).traced());
        let page = report.to_html();
        let document = read(&page);
        assert_is_harmless(&document, 1);
        let (_, cells) = line(&document, &sayable(hostile));
        assert_eq!(cells[8], sayable(hostile));
        assert!(text(all(&document, "error")[0]).ends_with(&sayable(hostile)));
    }
}

#[test]
fn a_page_is_the_same_every_time() {
    let report = eventful();
    assert_eq!(report.to_html(), report.clone().to_html());
}

#[test]
fn a_page_of_many_nodes_lists_those_that_stand_out_and_is_bounded() {
    let mut world = World::new();
    let (mut graph, last) = layered(100, 100);
    let failed = graph.inline("failed", (), |_, ()| Err::<(), _>(Failure::new("no")));
    let engine = graph.plan((last, failed.optional())).unwrap().bind(world.env()).unwrap();
    let run = engine.run(()).policy(Policy::FinishIndependent).traced();
    let (result, report) = world.runtime.block_on(run);
    result.unwrap();
    let mut page = String::new();
    let used = allocation_counter::measure(|| page = report.to_html());
    let document = read(&page);
    assert_eq!(all(&document, "time").len(), 4 * (2_000 + 1), "so many lines, and the head");
    assert_eq!(line(&document, "failed").0, "failed");
    assert!(page.contains("2000 of 10001 nodes are listed"));
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
    assert!(used.count_total < 800_000, "{used:?}");
}

#[test]
fn times_are_told_in_their_units() {
    let mut report = eventful();
    let mut told = |nanos: u64| {
        report.total = Duration::from_nanos(nanos);
        let page = report.to_html();
        let document = read(&page);
        let total = all(&document, "facts")[0].first_element_child().map(text).unwrap();
        total.trim().strip_prefix("Total").unwrap().to_owned()
    };
    let cases = [
        (0, "0 ns"),
        (850, "850 ns"),
        (1_000, "1 µs"),
        (12_345, "12.3 µs"),
        (999_700, "1 ms"),
        (9_996_000, "10 ms"),
        (1_500_000_000, "1.5 s"),
        (75_000_000_000, "75 s"),
        (7_200_000_000_000, "7200 s"),
    ];
    for (nanos, expected) in cases {
        assert_eq!(told(nanos), expected);
    }
}
