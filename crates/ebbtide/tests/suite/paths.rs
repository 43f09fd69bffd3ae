//! One path to each item.

use std::{fs, path::Path};

/// The features that are crates, in the order of `crates.rs`.
const CRATES: [&str; 7] = ["dag", "mailbox", "offload", "reactor", "redis", "shutdown", "timeout"];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names that `pub use ebbtide_lifecycle…` brings.
fn shown(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, begin) in source.match_indices("pub use ebbtide_lifecycle") {
        let rest = &source[at + begin.len()..];
        let text = &rest[..rest.find(';').expect("a use ends")];
        let words: Vec<_> = text
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|word| !word.is_empty())
            .collect();
        // `as lifecycle`, and all that begins with a capital: modules are on the way.
        names.extend(
            words.iter().filter(|word| **word == "lifecycle" || word.starts_with(char::is_uppercase)),
        );
    }
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn what_a_crate_shows_of_another_is_hidden() {
    let facade = read("src/crates.rs");
    let mut count = 0;
    for name in CRATES {
        let after = facade.split(&format!("pub mod {name} {{")).nth(1).expect("each crate is a module");
        let module = &after[..after.find("\n}").expect("a module ends")];
        for item in shown(&read(&format!("../{name}/src/lib.rs"))) {
            let is_hidden =
                module.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == item);
            assert!(is_hidden, "ebbtide::{name}::{item} is a second path: hide it in crates.rs");
            count += 1;
        }
    }
    assert!(count > 15, "that is what there is to hide: {count}");
}

#[test]
fn each_item_has_the_path_that_the_rule_gives_it() {
    use ebbtide::{
        Exit, app, block_on, dag, lifecycle, mailbox, offload, reactor, redis, run, shutdown, sleep,
        sleep_until, spawn, spawn_named, timeout, yield_now,
    };
    fn of<T>() {}
    of::<(Exit, app::Builder, app::StartError, app::NotSpawned)>();
    of::<(dag::Graph<()>, dag::json::Registry<(), ()>, mailbox::RedisMailbox, mailbox::worker::Retry)>();
    of::<(offload::Pool, reactor::Handle, redis::Link, shutdown::Coordinator, timeout::First<(), ()>)>();
    of::<(lifecycle::Reason, lifecycle::time::Deadline, lifecycle::wait::Elapsed)>();
    block_on(async {
        sleep(std::time::Duration::ZERO).await;
        sleep_until(reactor::now()).await;
        yield_now().await;
        spawn(async {}).unwrap().await.unwrap();
        spawn_named("named", async {}).unwrap().await.unwrap();
    });
    assert!(run(async |_| Ok(())).is_clean());
}
