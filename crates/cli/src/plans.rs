//! `ebbtide plans`: what there is in the plans folder.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::{
    args,
    fault::{Fault, code},
    library::{Library, stem},
    registry,
    terminal::Terminal,
};

pub(crate) fn plans(args: &args::Plans, library: &Library, terminal: Terminal) -> Result<(), Fault> {
    let paths = library.paths().map_err(|error| {
        Fault::new(code::NO_INPUT, format!("cannot list {}: {error}", library.folder().display()))
            .hint("say where plans are with --plans FOLDER")
    })?;
    let registry = registry::for_checking();
    let (mut text, mut rows) = (String::new(), Vec::new());
    for path in paths {
        let name = stem(&path);
        let read = library.read(path.as_os_str()).and_then(|found| {
            registry.plan(&found.text).map_err(|errors| {
                let mistakes = errors.iter().count();
                Fault::data(if mistakes == 1 {
                    "1 mistake".to_owned()
                } else {
                    format!("{mistakes} mistakes")
                })
            })
        });
        let _ = match &read {
            Ok(plan) => writeln!(
                text,
                "{:<16} {:>4} {:<5}  {}",
                name,
                plan.len(),
                if plan.len() == 1 { "node" } else { "nodes" },
                plan.deadline().map_or_else(|| "no deadline".to_owned(), |deadline| format!("{deadline:?}"))
            ),
            Err(fault) => writeln!(text, "{name:<16} {}", terminal.red(&fault.message)),
        };
        rows.push(match &read {
            Ok(plan) => json!({
                "name": name,
                "file": path.display().to_string(),
                "nodes": plan.len(),
                "deadline_ms": plan.deadline().map(|deadline| deadline.as_secs_f64() * 1e3),
                "outputs": plan.outputs().iter().map(|output| &**output).collect::<Vec<_>>(),
                "sample_request": plan.sample_request(),
            }),
            Err(fault) => json!({"name": name, "file": path.display().to_string(), "error": fault.message}),
        });
    }
    if args.json {
        return terminal.print(format!("{:#}\n", Value::from(rows)));
    }
    if rows.is_empty() {
        terminal.warn(format_args!("there are no plans in {}", library.folder().display()));
    }
    terminal.print(text)
}
