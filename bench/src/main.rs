//! Every figure of the README, against peers, in one run. Run by `cargo xtask bench AREA`.

mod contest;
mod dag;
mod engine;
mod lifecycle;
mod r#loop;
mod mailbox;
mod offload;
mod peers;
mod shutdown;
mod timeout;

use std::{env, fs, process::ExitCode};

use contest::Table;

fn exit(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (area, file) = match args.as_slice() {
        // Parts that are measured in a process of their own.
        ["serve", server, requests] => return exit(r#loop::serve(server, requests)),
        ["memory", runtime, kind] => return exit(r#loop::measure_in_this_process(runtime, kind)),
        ["serve-bare"] => return exit(engine::serve_bare()),
        [area] => (*area, None),
        [area, "--write", file] => (*area, Some(*file)),
        _ => {
            eprintln!("usage: ebbtide-bench AREA [--write FILE]");
            return ExitCode::FAILURE;
        }
    };
    let tables: Option<Vec<Table>> = match area {
        "dag" => dag::run(None),
        "engine" => engine::run(None),
        "lifecycle" => Some(lifecycle::run()),
        "loop" => r#loop::run(None),
        "mailbox" => mailbox::run(None),
        "offload" => Some(offload::run()),
        "shutdown" => Some(shutdown::run()),
        "timeout" => Some(timeout::run()),
        _ => match area.split_once('/') {
            Some(("dag", part)) => dag::run(Some(part)),
            Some(("engine", part)) => engine::run(Some(part)),
            Some(("loop", part)) => r#loop::run(Some(part)),
            Some(("mailbox", part)) => mailbox::run(Some(part)),
            _ => None,
        },
    };
    let Some(tables) = tables else {
        eprintln!("there is no area {area:?}");
        return ExitCode::FAILURE;
    };
    let markdown: Vec<String> = tables.iter().map(Table::to_string).collect();
    let markdown = markdown.join("\n");
    println!("\n{markdown}");
    if let Some(file) = file
        && let Err(error) = fs::write(file, markdown)
    {
        eprintln!("{file}: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
