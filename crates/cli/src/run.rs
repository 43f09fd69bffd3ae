//! `ebbtide run`: one request, answered.

use std::{fmt::Write, fs, sync::Arc};

use ebbtide::dag::{Report, RunError};

use crate::{
    args,
    engine::{Engine, Outputs, run_fault},
    fault::Fault,
    inside,
    library::Library,
    registry, request, sources,
    terminal::{Terminal, visible},
};

/// What became of the run.
struct Ended {
    result: Result<Vec<u8>, RunError>,
    report: Option<Report>,
}

pub(crate) fn run(args: args::Run, library: Library, terminal: Terminal) -> Result<(), Fault> {
    let as_json = args.json;
    let ended = answer(args, library, terminal);
    if as_json && let Err(fault) = &ended {
        // What the run failed with counts, also where that cannot be said.
        terminal.announce(format!("{}\n", fault.as_json()));
    }
    ended
}

fn answer(args: args::Run, library: Library, terminal: Terminal) -> Result<(), Fault> {
    let outputs = (args.trace.clone(), args.report.clone());
    let explain = args.explain;
    let app = inside::brief(&args.terms);
    let Ended { result, report } = inside::run_brief(app, async move |app| {
        let endpoints = sources::endpoints(&args.sources, &app).await?;
        let registry = ebbtide_rank::registry(app.handle().clone(), &endpoints);
        let plan = registry::read(&registry, &library, &args.plan)?;
        let request = Arc::new(request::request(&app, &args.request, &plan).await?);
        for warning in plan.warnings() {
            terminal.warn(warning);
        }
        let engine = Engine::bind(&app, plan, &endpoints, &args.terms)?;
        let run = engine.run(request.clone()).cancelled_by(&app.token());
        let wants_report = args.trace.is_some() || args.report.is_some() || args.explain || args.timings;
        let (result, report) = if wants_report {
            let (result, report) = run.traced().await;
            (result, Some(report))
        } else {
            (run.await, None)
        };
        let answer = |outputs: Outputs| {
            let mut answer = Vec::new();
            engine.write(&request, &outputs, report.as_ref().filter(|_| args.timings), &mut answer);
            answer.push(b'\n');
            answer
        };
        Ok(Ended { result: result.map(answer), report })
    })?;
    if let Some(report) = &report {
        let (trace, page) = outputs;
        if let Some(path) = trace {
            fs::write(&path, report.chrome_trace()).map_err(|error| Fault::unwritable(&path, &error))?;
        }
        if let Some(path) = page {
            fs::write(&path, report.to_html()).map_err(|error| Fault::unwritable(&path, &error))?;
        }
        if explain {
            terminal.tell(visible(&explanation(report)));
        }
    }
    terminal.print(result.map_err(|error| run_fault(&error))?)
}

/// What the time went into.
fn explanation(report: &Report) -> String {
    let mut text = format!("plan {} took {:.1?}; the critical path:\n", report.plan, report.took());
    let path = report.critical_path();
    if path.is_empty() {
        text.push_str("  no node has ended\n");
    }
    for step in path {
        let node = &report.at(step.node);
        let _ = writeln!(
            text,
            "  {:<24} ran {:>10}, queued {:>10}",
            node.name,
            format!("{:.1?}", step.ran),
            format!("{:.1?}", step.waited)
        );
    }
    let _ = write!(text, "{report}");
    text
}
