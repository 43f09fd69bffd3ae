//! `ebbtide check`: every mistake of each plan.

use std::fmt::Write;

use ebbtide::dag::PlanError;
use serde_json::{Value, json};

use crate::{
    args,
    fault::{Fault, code},
    library::Library,
    registry::Registry,
    terminal::{Terminal, visible},
};

pub(crate) fn check(args: &args::Check, library: &Library, terminal: Terminal) -> Result<(), Fault> {
    let registry = crate::registry::for_checking();
    let (mut wrong, mut unread) = (0, None);
    for wanted in &args.plans {
        let (place, verdict) = match library.read(wanted) {
            Ok(found) => (found.path.display().to_string(), Ok(verdict(&registry, &found.text))),
            Err(fault) => (wanted.display().to_string(), Err(fault)),
        };
        let is_right = matches!(&verdict, Ok(Verdict { mistakes, .. }) if mistakes.is_empty());
        let text = if args.json { as_json(&place, &verdict) } else { as_text(&place, &verdict, terminal) };
        terminal.print(text)?;
        if let Err(fault) = verdict {
            if !args.json {
                terminal.complain(&fault);
            }
            unread.get_or_insert(fault.code);
        } else if !is_right {
            wrong += 1;
        }
    }
    match unread {
        Some(code) => Err(Fault::new(code, "")),
        None if wrong > 0 => Err(Fault::new(code::DATA, "")),
        None => Ok(()),
    }
}

/// What there is to say of a plan.
struct Verdict {
    name: String,
    nodes: usize,
    mistakes: Vec<PlanError>,
    warnings: Vec<PlanError>,
}

fn verdict(registry: &Registry, text: &str) -> Verdict {
    match registry.plan(text) {
        Ok(plan) => Verdict {
            name: plan.name().to_owned(),
            nodes: plan.len(),
            mistakes: Vec::new(),
            warnings: plan.warnings().to_vec(),
        },
        Err(errors) => Verdict {
            name: String::new(),
            nodes: 0,
            mistakes: errors.iter().cloned().collect(),
            warnings: Vec::new(),
        },
    }
}

fn as_text(place: &str, verdict: &Result<Verdict, Fault>, terminal: Terminal) -> String {
    let mut text = String::new();
    let Ok(Verdict { name, nodes, mistakes, warnings }) = verdict else { return text };
    let (place, name) = (visible(place), visible(name));
    let _ = match (mistakes.len(), nodes) {
        (0, 1) => writeln!(text, "{place}: {}, plan {name} of 1 node", terminal.green("ok")),
        (0, _) => writeln!(text, "{place}: {}, plan {name} of {nodes} nodes", terminal.green("ok")),
        (1, _) => writeln!(text, "{place}: {}", terminal.red("1 mistake")),
        (many, _) => writeln!(text, "{place}: {}", terminal.red(format_args!("{many} mistakes"))),
    };
    for said in mistakes.iter().chain(warnings) {
        let _ = writeln!(text, "  {said}");
    }
    text
}

fn as_json(place: &str, verdict: &Result<Verdict, Fault>) -> String {
    let said = |errors: &[PlanError]| -> Value {
        let one = |error: &PlanError| {
            json!({
                "code": error.code.to_string(),
                "place": error.place,
                "message": error.message,
                "hint": error.hint,
            })
        };
        errors.iter().map(one).collect()
    };
    let json = match verdict {
        Ok(Verdict { name, nodes, mistakes, warnings }) if mistakes.is_empty() => {
            json!({"file": place, "ok": true, "plan": name, "nodes": nodes, "warnings": said(warnings)})
        }
        Ok(Verdict { mistakes, .. }) => json!({"file": place, "ok": false, "mistakes": said(mistakes)}),
        Err(fault) => json!({"file": place, "ok": false, "error": fault.message, "hint": fault.hint}),
    };
    format!("{json}\n")
}
