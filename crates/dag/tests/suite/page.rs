//! A run as one page, and a plan as a picture.

mod graphs;
mod runs;

use std::str::FromStr;

use ebbtide_dag::{Graph, Handle};
use roxmltree::{Document, Node, ParsingOptions};

/// What is drawn and written is read as strictly as can be: as XML.
fn read(text: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// All elements with this class.
fn all<'a>(document: &'a Document<'_>, class: &str) -> Vec<Node<'a, 'a>> {
    document.descendants().filter(|node| has_class(*node, class)).collect()
}

fn has_class(node: Node<'_, '_>, class: &str) -> bool {
    node.attribute("class").is_some_and(|classes| classes.split(' ').any(|other| other == class))
}

/// The first child with this class.
fn part<'a>(node: Node<'a, 'a>, class: &str) -> Option<Node<'a, 'a>> {
    node.descendants().find(|part| has_class(*part, class))
}

/// All text in an element, in order.
fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|text| text.text()).collect()
}

/// What is shown when a pointer rests on an element.
fn tip(node: Node<'_, '_>) -> String {
    node.children()
        .find(|child| child.has_tag_name("title") || child.tag_name().name() == "title")
        .map(text)
        .unwrap()
}

fn number<T: FromStr>(node: Node<'_, '_>, attribute: &str) -> T {
    let value = node.attribute(attribute).unwrap();
    value.parse().unwrap_or_else(|_| panic!("{attribute} is {value}"))
}

/// Names that try to be something else.
const HOSTILE: [&str; 7] = [
    "<script>alert(1)</script>",
    "\" onload=\"alert(1)",
    "' onclick='alert(1)",
    "]]>",
    "</style></title></svg>",
    "&lt;b&amp;",
    "a\u{1}b\u{fffe}c",
];

/// What becomes of a name that XML cannot say.
fn sayable(name: &str) -> String {
    name.replace(['\u{1}', '\u{fffe}'], "\u{fffd}")
}

/// Nothing in it is run but our own script, and nothing is loaded.
fn assert_is_harmless(document: &Document<'_>, scripts: usize) {
    let is_script = |node: &Node<'_, '_>| node.tag_name().name() == "script";
    assert_eq!(document.descendants().filter(is_script).count(), scripts);
    for node in document.descendants() {
        for attribute in node.attributes() {
            assert!(!attribute.name().starts_with("on"), "{}={}", attribute.name(), attribute.value());
            assert!(!["src", "action", "data"].contains(&attribute.name()), "{}", attribute.name());
            let is_link = attribute.name() == "href";
            assert!(!is_link || attribute.value().starts_with('#'), "a link to {}", attribute.value());
        }
    }
}

/// So many layers of so many nodes, each with two inputs of the layer before.
fn layered(layers: usize, wide: usize) -> (Graph<()>, Vec<Handle<u64>>) {
    let mut graph = Graph::<()>::new("layered");
    let mut last: Vec<Handle<u64>> = Vec::new();
    for layer in 0..layers {
        let inputs = |nth: usize| match last.as_slice() {
            [] => Vec::new(),
            last => vec![last[nth * 7 % wide], last[(nth * 7 + 1) % wide]],
        };
        let node = |nth| graph.inline(format!("n{layer}.{nth}"), inputs(nth), |_, _| Ok(1));
        last = (0..wide).map(node).collect();
    }
    (graph, last)
}
