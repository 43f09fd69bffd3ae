//! `ebbtide graph`: a plan, drawn.

use std::fs;

use crate::{args, fault::Fault, library::Library, registry, terminal::Terminal};

pub(crate) fn graph(args: &args::Graph, library: &Library, terminal: Terminal) -> Result<(), Fault> {
    let plan = registry::read(&registry::for_checking(), library, &args.plan)?;
    let drawing = match args.format {
        args::Form::Dot => plan.dot(),
        args::Form::Mermaid => plan.mermaid(),
        args::Form::Svg => plan.to_svg(),
    };
    match &args.output {
        Some(path) => fs::write(path, drawing).map_err(|error| Fault::unwritable(path, &error)),
        None => terminal.print(drawing),
    }
}
