//! `ebbtide ops`: what plans are made of.

use std::fmt::Write;

use ebbtide::dag::json::{OpInfo, Param, Presence, nearest};
use serde_json::{Value, json};

use crate::{
    args,
    fault::{Fault, code},
    registry,
    terminal::Terminal,
};

pub(crate) fn ops(args: &args::Ops, terminal: Terminal) -> Result<(), Fault> {
    let registry = registry::for_checking();
    let mut ops: Vec<&OpInfo> = registry.ops().collect();
    ops.sort_by(|a, b| a.name().cmp(b.name()));
    if let Some(wanted) = &args.name {
        let names: Vec<&str> = ops.iter().map(|op| op.name()).collect();
        if !names.contains(&wanted.as_str()) {
            let fault = Fault::new(code::USAGE, format!("there is no op \"{wanted}\""));
            return Err(match nearest(wanted, names) {
                Some(near) => fault.hint(format!("did you mean {near}?")),
                None => fault.hint("`ebbtide ops` lists those that there are"),
            });
        }
        ops.retain(|op| op.name() == wanted);
    }
    if args.json {
        let ops: Vec<Value> = ops.into_iter().map(as_json).collect();
        return terminal.print(format!("{:#}\n", Value::from(ops)));
    }
    let mut text = String::new();
    for op in ops {
        let shown = op.to_string();
        let (name, rest) = shown.split_at(op.name().len());
        let _ = writeln!(text, "{}{rest}", terminal.bold(name));
    }
    terminal.print(text)
}

fn as_json(op: &OpInfo) -> Value {
    let (least, most) = op.inputs().into_inner();
    let most = if most == usize::MAX { Value::Null } else { most.into() };
    let param = |param: &Param| {
        let (required, default) = match param.presence() {
            Presence::Required => (true, Value::Null),
            Presence::Default(value) => (false, value.clone()),
            _ => (false, Value::Null),
        };
        json!({
            "name": **param.name(),
            "type": param.kind().to_string(),
            "required": required,
            "default": default,
            "about": param.sentence(),
        })
    };
    json!({
        "op": op.name(),
        "about": op.about(),
        "kind": op.kind().to_string(),
        "inputs": {"min": least, "max": most},
        "params": op.params().iter().map(param).collect::<Vec<_>>(),
    })
}
