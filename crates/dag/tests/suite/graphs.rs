//! What is wrong with a graph is told at once, and what is right can be drawn.

use ebbtide_dag::{Code, Env, Graph, Missing, NODES_MAX};
use ebbtide_lifecycle::{time::VirtualClock, wait::block_on};

#[test]
fn d6_all_that_is_wrong_is_told_at_once() {
    let mut other = Graph::<()>::new("other");
    let foreign = other.inline("foreign", (), |_, ()| Ok(1));
    let mut graph = Graph::<()>::new("wrong");
    let first = graph.inline("twice", (), |_, ()| Ok(1));
    graph.inline("twice", first, |_, _| Ok(()));
    graph.inline("", (), |_, ()| Ok(()));
    graph.inline("lost", foreign, |_, _| Ok(()));
    let errors = graph.plan((first, foreign)).unwrap_err();
    assert_eq!(errors.codes(), [Code::P005, Code::P004, Code::P007, Code::P015]);
    let text = errors.to_string();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.contains("P005 node \"twice\": there are two of this name, at crates/dag/tests"), "{text}");
    assert!(text.contains("P007 node \"lost\", input 0: the handle is of another graph"), "{text}");
}

#[test]
fn d6_a_graph_without_nodes_is_refused() {
    let errors = Graph::<()>::new("empty").plan(()).unwrap_err();
    assert_eq!(errors.codes(), [Code::P003]);
}

#[test]
fn d6_a_circle_is_refused_and_named() {
    let mut graph = Graph::<()>::new("circle");
    let a = graph.inline("a", (), |_, ()| Ok(true));
    let b = graph.inline("b", a, |_, a| Ok(*a));
    let c = graph.inline("c", b, |_, b| Ok(*b));
    graph.inline("behind", c, |_, c| Ok(*c));
    graph.node(a).only_if(c);
    let errors = graph.plan(c).unwrap_err();
    assert_eq!(errors.to_string(), "P009 node \"a\": nodes depend on each other: a -> b -> c -> a");

    let mut graph = Graph::<()>::new("self");
    let a = graph.inline("a", (), |_, ()| Ok(true));
    graph.node(a).only_if(a);
    assert_eq!(graph.plan(a).unwrap_err().codes(), [Code::P008]);
}

#[test]
fn d6_of_a_long_circle_the_message_names_some() {
    let mut graph = Graph::<()>::new("long circle");
    let first = graph.inline("n0", (), |_, ()| Ok(true));
    let mut last = first;
    for n in 1..50 {
        last = graph.inline(format!("n{n}"), last, |_, before| Ok(*before));
    }
    graph.node(first).only_if(last);
    let text = graph.plan(last).unwrap_err().to_string();
    assert!(text.ends_with("n10 -> n11 -> … 38 more … -> n0"), "{text}");
}

#[test]
fn too_many_nodes_are_refused_by_a_limit() {
    let graph_of = |nodes: usize| {
        let mut graph = Graph::<()>::new("large");
        let mut last = graph.inline("0", (), |_, ()| Ok(0_u32));
        for n in 1..nodes {
            last = graph.inline(n.to_string(), last, |_, n| Ok(*n + 1));
        }
        (graph, last)
    };
    let (graph, last) = graph_of(NODES_MAX + 1);
    let errors = graph.plan(last).unwrap_err();
    assert_eq!(errors.codes(), [Code::P018]);
    assert!(errors.to_string().contains("65536 nodes, and may have 65535"), "{errors}");
    // The longest chain that is allowed overflows no stack, neither run nor dropped.
    let (graph, last) = graph_of(NODES_MAX);
    let engine = graph.plan(last).unwrap().bind(Env::new(VirtualClock::new())).unwrap();
    assert_eq!(*block_on(engine.run(())).unwrap(), NODES_MAX as u32 - 1);
    drop(engine);
}

#[test]
fn a_node_that_feeds_no_output_is_run_and_warned_of() {
    let mut graph = Graph::<()>::new("warned");
    let a = graph.inline("a", (), |_, ()| Ok(()));
    let b = graph.inline("b", a, |_, _| Ok(()));
    graph.inline("log", b, |_, _| Ok(()));
    let plan = graph.plan(b).unwrap();
    let warnings: Vec<_> = plan.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["W001 node \"log\": it feeds no output; it is run for its effects only"]);
}

#[test]
fn d5_an_engine_says_what_it_needs_and_was_not_given() {
    let mut graph = Graph::<()>::new("pool");
    let node = graph.cpu("rank", (), |_, ()| Ok(()));
    let missing = graph.plan(node).unwrap().bind(Env::new(VirtualClock::new())).unwrap_err();
    assert_eq!(missing, Missing::Pool { node: "rank".into() });
    let mut graph = Graph::<()>::new("runners");
    let node = graph.future("read", (), |_, ()| async { Ok(()) });
    graph.node(node).on_timeout(ebbtide_dag::OnTimeout::Detach);
    let missing = graph.plan(node).unwrap().bind(Env::new(VirtualClock::new())).unwrap_err();
    assert_eq!(missing, Missing::Runners { node: "read".into() });
}

#[test]
fn d8_a_plan_can_be_drawn() {
    let mut graph = Graph::<()>::new("drawn");
    let viewer = graph.future("viewer", (), |_, ()| async { Ok(1) });
    let vm = graph.cpu("v\"m", viewer, |_, n| Ok(*n));
    let file = graph.blocking("file", (), |_, ()| Ok(1));
    let concat = graph.inline("concat", (vm, file.optional()), |_, _| Ok(()));
    let plan = graph.plan(concat).unwrap();
    let mermaid = "flowchart LR\n  n0([\"viewer\"])\n  n1[\"v#quot;m\"]\n  n2[[\"file\"]]\n  n3(\"concat\")\n  \
                   n0 --> n1\n  n1 --> n3\n  n2 -.-> n3\n  style n3 stroke-width:3px\n";
    assert_eq!(plan.mermaid(), mermaid);
    let dot = "digraph \"drawn\" {\n  rankdir=LR;\n  n0 [label=\"viewer\", shape=box, style=rounded];\n  \
               n1 [label=\"v\\\"m\", shape=box];\n  n2 [label=\"file\", shape=box, style=dashed];\n  \
               n3 [label=\"concat\", shape=ellipse, penwidth=2];\n  n0 -> n1;\n  n1 -> n3;\n  \
               n2 -> n3 [style=dashed];\n}\n";
    assert_eq!(plan.dot(), dot);
}

#[test]
fn d6_a_circle_is_found_whoever_depends_on_it_and_whatever_else_is_wrong() {
    let mut graph = Graph::<()>::new("circles");
    // More nodes than anybody would try, which only depend on a circle, stand before it.
    let behind: Vec<_> = (0..100).map(|n| graph.inline(format!("behind {n}"), (), |_, ()| Ok(()))).collect();
    for (first, second) in [("a", "b"), ("c", "d")] {
        let first = graph.inline(first, (), |_, ()| Ok(true));
        let second = graph.inline(second, first, |_, first| Ok(*first));
        graph.node(first).only_if(second);
        for behind in &behind {
            graph.node(*behind).only_if(second);
        }
    }
    graph.inline("a", (), |_, ()| Ok(()));
    let errors = graph.plan(behind[0]).unwrap_err();
    assert_eq!(errors.codes(), [Code::P005, Code::P009, Code::P009]);
    let text = errors.to_string();
    assert!(text.contains("a -> b -> a\n") && text.ends_with("c -> d -> c"), "{text}");
}

#[test]
fn a_mistake_is_one_line_whatever_the_names_are() {
    let mut graph = Graph::<()>::new("lines");
    graph.inline("two\nlines\u{1b}[31m", (), |_, ()| Ok(()));
    let node = graph.inline("two\nlines\u{1b}[31m", (), |_, ()| Ok(()));
    let text = graph.plan(node).unwrap_err().to_string();
    assert!(text.starts_with("P005 node \"two\\nlines\\u{1b}[31m\": there are two"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let mut graph = Graph::<()>::new("lines");
    let node = graph.inline("two\nlines", (), |_, ()| Ok(()));
    assert!(graph.plan(node).unwrap().mermaid().contains("\"two lines\""));
}
