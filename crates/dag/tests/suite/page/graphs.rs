//! Plans as pictures.

use std::collections::HashSet;

#[cfg(feature = "json")]
use ebbtide_dag::Env;
use ebbtide_dag::{Graph, Handle, Plan};
#[cfg(feature = "json")]
use ebbtide_lifecycle::{time::VirtualClock, wait::block_on};
use proptest::prelude::*;
use roxmltree::Node;

use super::{HOSTILE, all, assert_is_harmless, has_class, layered, number, part, read, sayable, text, tip};

fn small() -> Plan<(), Handle<u32>> {
    let mut graph = Graph::<()>::new("drawn");
    let viewer = graph.future("viewer", (), |_, ()| async { Ok(1) });
    let vm = graph.cpu("vm", viewer, |_, n| Ok(*n));
    let file = graph.blocking("file", (), |_, ()| Ok(1));
    let concat = graph.inline("concat", (vm, file.optional()), |_, _| Ok(1_u32));
    graph.plan(concat).unwrap()
}

#[test]
fn d8_a_plan_is_drawn_as_svg() {
    let svg = small().to_svg();
    let document = read(&svg);
    assert_eq!(document.root_element().tag_name().name(), "svg");
    let told = |node: Node<'_, '_>| (text(part(node, "name").unwrap()), text(part(node, "told").unwrap()));
    let boxes: Vec<_> =
        all(&document, "node").into_iter().filter(|node| part(*node, "name").is_some()).collect();
    let names: Vec<_> = boxes.iter().map(|node| told(*node)).collect();
    let pair = |(name, kind): (&str, &str)| (name.to_owned(), kind.to_owned());
    let expected = [("viewer", "async"), ("vm", "cpu"), ("file", "blocking"), ("concat", "inline")].map(pair);
    assert_eq!(names, expected);
    // Kinds are told by shapes, too: no two have the same.
    let mut shapes: Vec<_> = boxes
        .iter()
        .map(|node| (part(*node, "box").unwrap().attribute("rx"), part(*node, "sides").is_some()))
        .collect();
    shapes.sort_unstable();
    shapes.dedup();
    assert_eq!(shapes.len(), 4);
    let edges: Vec<_> =
        all(&document, "edge").into_iter().filter(|edge| edge.has_attribute("marker-end")).collect();
    assert_eq!((edges.len(), edges.iter().filter(|edge| has_class(**edge, "optional")).count()), (3, 1));
    let outputs: Vec<_> =
        boxes.iter().filter(|node| part(**node, "out").is_some()).map(|node| tip(*node)).collect();
    assert_eq!(outputs, ["concat\ninline"]);
    assert!(svg.contains("@media (prefers-color-scheme: dark)"));
    assert_is_harmless(&document, 0);
}

#[cfg(feature = "json")]
#[test]
fn a_node_of_a_plan_from_data_is_shown_with_what_it_runs() {
    let mut registry = ebbtide_dag::json::Registry::<(), u32>::new();
    registry.op("source").inline(|_, _| Ok(1));
    let plan = r#"{"schema_version": 1, "plan_name": "data", "nodes": [{"node_id": "a", "op": "source"}], "outputs": ["a"]}"#;
    let plan = registry.plan(plan).unwrap();
    let svg = plan.to_svg();
    assert_eq!(text(part(all(&read(&svg), "inline")[0], "told").unwrap()), "source · inline");
    let engine = plan.bind(Env::new(VirtualClock::new())).unwrap();
    let (_, report) = block_on(engine.run(()).reported());
    assert_eq!(report.at(0).op, Some("source"));
    assert!(report.to_html().contains("<td class=\"runs\"><code>source</code> · inline</td>"));
}

#[test]
fn each_kind_has_a_shape_of_its_own() {
    let mut graph = Graph::<()>::new("kinds");
    let inline = graph.inline("inline", (), |_, ()| Ok(()));
    let asynchronous = graph.future("async", inline, |_, _| async { Ok(()) });
    let cpu = graph.cpu("cpu", asynchronous, |_, _| Ok(()));
    let blocking = graph.blocking("blocking", cpu, |_, _| Ok(()));
    let svg = graph.plan(blocking).unwrap().to_svg();
    let document = read(&svg);
    let shape = |node: Node<'_, '_>| {
        let shape = part(node, "box").unwrap();
        let sides = part(node, "sides").is_some();
        (shape.tag_name().name().to_owned(), shape.attribute("rx").map(str::to_owned), sides)
    };
    let kinds = ["inline", "async", "cpu", "blocking"];
    for drawn in [0, 1] {
        // In the graph, and in the legend.
        let shapes: HashSet<_> = kinds.iter().map(|kind| shape(all(&document, kind)[drawn])).collect();
        assert_eq!(shapes.len(), kinds.len(), "{shapes:?}");
    }
    let of = |drawn: usize| shape(all(&document, "cpu")[drawn]).0;
    assert_eq!(
        (of(0), of(1)),
        ("path".to_owned(), "path".to_owned()),
        "inline is the only one that looks like a box"
    );
}

#[test]
fn a_plan_of_one_node_can_be_drawn() {
    let mut graph = Graph::<()>::new("single");
    let only = graph.inline("only", (), |_, ()| Ok(()));
    let svg = graph.plan(only).unwrap().to_svg();
    let document = read(&svg);
    assert_eq!(all(&document, "name").len(), 1);
}

#[test]
fn names_in_a_picture_are_text_whatever_they_say() {
    for name in HOSTILE {
        let mut graph = Graph::<()>::new(name);
        let node = graph.inline(name, (), |_, ()| Ok(()));
        let svg = graph.plan(node).unwrap().to_svg();
        let document = read(&svg);
        assert_is_harmless(&document, 0);
        assert_eq!(tip(document.root_element()), sayable(name));
        let node = part(document.root_element(), "inline").unwrap();
        assert_eq!(tip(node), format!("{}\ninline", sayable(name)));
    }
}

#[test]
fn a_long_name_is_shortened_in_its_middle_and_told_in_full() {
    let name = format!("begins{}ends", "_".repeat(300));
    let mut graph = Graph::<()>::new("long");
    let node = graph.inline(name.as_str(), (), |_, ()| Ok(()));
    let svg = graph.plan(node).unwrap().to_svg();
    let document = read(&svg);
    let shown = text(all(&document, "name")[0]);
    assert_eq!(shown.chars().count(), 24, "{shown}");
    assert!(shown.starts_with("begins_") && shown.contains('…') && shown.ends_with("_ends"), "{shown}");
    assert!(svg.contains(&format!("<title>{name}\ninline</title>")));
    // Characters that are twice as wide take the room of two.
    let mut graph = Graph::<()>::new("wide");
    let node = graph.inline("名".repeat(40), (), |_, ()| Ok(()));
    let svg = graph.plan(node).unwrap().to_svg();
    assert_eq!(text(all(&read(&svg), "name")[0]).chars().count(), 23 / 2 + 1);
}

#[test]
fn a_plan_is_drawn_the_same_way_every_time() {
    let draw = || {
        let (graph, last) = layered(12, 9);
        graph.plan(last).unwrap().to_svg()
    };
    assert_eq!(draw(), draw());
}

#[test]
fn edges_that_need_not_cross_do_not() {
    // In the order of the graph all three would.
    let mut graph = Graph::<()>::new("uncrossed");
    let [a, b, c] = ["a", "b", "c"].map(|name| graph.inline(name, (), |_, ()| Ok(1)));
    let outputs =
        [("of c", c), ("of b", b), ("of a", a)].map(|(name, input)| graph.inline(name, input, |_, n| Ok(*n)));
    let svg = graph.plan(outputs).unwrap().to_svg();
    let tops = tops_of(&svg);
    let top = |name: &str| tops.iter().find(|(other, _)| other == name).unwrap().1;
    for pair in [["a", "b"], ["b", "c"], ["a", "c"]] {
        let [one, other] = pair;
        let (of_one, of_other) = (top(&format!("of {one}")), top(&format!("of {other}")));
        assert_eq!(top(one) < top(other), of_one < of_other, "{tops:?}");
    }
}

/// The names of boxes, and how far down they are.
fn tops_of(svg: &str) -> Vec<(String, f64)> {
    boxes(svg).into_iter().map(|found| (found.name, found.top)).collect()
}

#[derive(Debug)]
struct Found {
    name: String,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

/// Where the boxes of a picture are.
fn boxes(svg: &str) -> Vec<Found> {
    let document = read(svg);
    let found = |node: Node<'_, '_>| {
        let name = text(part(node, "name")?);
        let place = node.attribute("transform")?.strip_prefix("translate(")?.strip_suffix(')')?;
        let (left, top) = place.split_once(' ')?;
        let outline = part(node, "box")?;
        let (width, height) = (number(outline, "width"), number(outline, "height"));
        Some(Found { name, left: left.parse().ok()?, top: top.parse().ok()?, width, height })
    };
    all(&document, "node").into_iter().filter_map(found).collect()
}

/// How far down the edges of a picture come by, in the places in which they have one.
fn levels(svg: &str) -> Vec<f64> {
    let document = read(svg);
    let edges = all(&document, "edge").into_iter().filter(|edge| edge.has_attribute("marker-end"));
    let ways: Vec<String> = edges.map(|edge| edge.attribute("d").unwrap().replace('C', " C")).collect();
    // Each stretch is `Cx y x y x y` or `Mx y`, and may go on level with `Hx`.
    let stretches =
        ways.iter().flat_map(|way| way.split(['M', 'C'])).filter(|stretch| !stretch.trim().is_empty());
    let level = |stretch: &str| stretch.split('H').next()?.split_whitespace().last()?.parse().ok();
    stretches.map(|stretch| level(stretch).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn each_node_stands_to_the_right_of_its_inputs_and_on_no_other(
        inputs in prop::collection::vec(prop::collection::btree_set(0_usize..60, 0..4), 1..60),
    ) {
        let mut graph = Graph::<()>::new("random");
        let (mut handles, mut edges) = (Vec::<Handle<u32>>::new(), Vec::new());
        for (nth, inputs) in inputs.iter().enumerate() {
            let inputs: Vec<usize> = inputs.iter().copied().filter(|input| *input < nth).collect();
            edges.extend(inputs.iter().map(|input| (*input, nth)));
            let inputs: Vec<_> = inputs.into_iter().map(|input| handles[input]).collect();
            handles.push(graph.inline(format!("n{nth}"), inputs, |_, _| Ok(1)));
        }
        let svg = graph.plan(handles).unwrap().to_svg();
        let boxes = boxes(&svg);
        prop_assert_eq!(boxes.len(), inputs.len());
        for (from, to) in edges {
            prop_assert!(boxes[from].left + boxes[from].width < boxes[to].left, "{:?}", boxes);
        }
        // No band is empty that is wider than the gap between two boxes.
        let mut taken: Vec<(f64, f64)> = boxes.iter().map(|found| (found.top, found.top + found.height)).collect();
        taken.extend(levels(&svg).into_iter().map(|level| (level - 3.0, level + 3.0)));
        taken.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut bottom = 0.0_f64;
        for (top, end) in taken {
            prop_assert!(top - bottom < 16.5, "nothing between {} and {}", bottom, top);
            bottom = bottom.max(end);
        }
        for (nth, one) in boxes.iter().enumerate() {
            for other in &boxes[nth + 1..] {
                let beside = one.left + one.width <= other.left || other.left + other.width <= one.left;
                let below = one.top + one.height <= other.top || other.top + other.height <= one.top;
                prop_assert!(beside || below, "{:?} and {:?}", one, other);
            }
        }
    }
}

/// How many nodes a large plan has.
const LARGE: usize = 10_000;

#[test]
fn ten_thousand_nodes_are_drawn_with_bounded_work() {
    let wide = || layered(2, LARGE / 2);
    let deep = || layered(LARGE / 2, 2);
    let square = || layered(100, 100);
    for build in [wide as fn() -> (Graph<()>, Vec<Handle<u64>>), deep, square] {
        let (graph, last) = build();
        let plan = graph.plan(last).unwrap();
        let mut svg = String::new();
        let used = allocation_counter::measure(|| svg = plan.to_svg());
        assert_eq!(all(&read(&svg), "dot").len(), LARGE);
        assert!(svg.len() < 200 * LARGE, "{} bytes", svg.len());
        // What is done is done to what lies in memory: so many blocks and bytes for each node.
        assert!(used.count_total < 20 * LARGE as u64, "{used:?}");
        assert!(used.bytes_total < 5_000 * LARGE as u64, "{used:?}");
    }
}

#[test]
fn of_very_many_edges_some_are_drawn_and_that_is_told() {
    // Each depends on all before it: half a million edges.
    let mut graph = Graph::<()>::new("dense");
    let mut handles: Vec<Handle<u32>> = Vec::new();
    for nth in 0..1_001 {
        handles.push(graph.inline(format!("n{nth}"), handles.clone(), |_, _| Ok(1)));
    }
    let plan = graph.plan(handles[1_000]).unwrap();
    let mut svg = String::new();
    let used = allocation_counter::measure(|| svg = plan.to_svg());
    assert!(svg.contains("30000 of 500500 edges are drawn"), "{}", &svg[..6_000]);
    assert!(svg.len() < 1_000_000, "{} bytes", svg.len());
    assert!(used.count_total < 300_000, "{used:?}");
}

#[test]
fn long_edges_of_a_plan_in_full_are_drawn_with_bounded_work() {
    // Each of 200 depends on all before it: more than a million bends, if each were drawn.
    let mut graph = Graph::<()>::new("dense");
    let mut handles: Vec<Handle<u32>> = Vec::new();
    for nth in 0..200 {
        handles.push(graph.inline(format!("n{nth}"), handles.clone(), |_, _| Ok(1)));
    }
    let plan = graph.plan(handles[199]).unwrap();
    let mut svg = String::new();
    let used = allocation_counter::measure(|| svg = plan.to_svg());
    assert_eq!(boxes(&svg).len(), 200);
    assert!(used.bytes_total < 40_000_000, "{used:?}");
}
