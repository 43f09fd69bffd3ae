//! The program `ebbtide`.
//!
//! # Reading order
//! 1. `args`: what can be said. `fault`: what can go wrong, and the exit codes.
//! 2. `library`, `registry`, `sources`, `request`, `engine`: from a name on the command line to a run.
//! 3. `inside`: how a command runs as an app. Then the commands, a file each.

#![forbid(unsafe_code)]

mod args;
mod bench;
mod check;
mod engine;
mod fault;
mod graph;
mod histogram;
mod inside;
mod library;
mod loops;
mod ops;
mod plans;
mod registry;
mod request;
mod run;
mod serve;
mod sources;
mod stdin;
mod terminal;
mod worker;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::{
    args::{Cli, Command, When},
    fault::Fault,
    library::Library,
    terminal::Terminal,
};

fn main() -> ExitCode {
    let (terminal, ended) = match Cli::try_parse() {
        Ok(cli) => {
            let terminal = Terminal::new(cli.color);
            (terminal, run(cli, terminal))
        }
        // Not by clap, which takes no notice of what cannot be written.
        Err(help) if !help.use_stderr() => {
            let terminal = Terminal::new(When::Auto);
            (terminal, terminal.help(&help))
        }
        Err(error) => error.exit(),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            terminal.complain(&fault);
            fault.exit_code()
        }
    }
}

fn run(cli: Cli, terminal: Terminal) -> Result<(), Fault> {
    let library = Library::new(cli.folder);
    match cli.command {
        Command::Run(args) => run::run(args, library, terminal),
        Command::Check(args) => check::check(&args, &library, terminal),
        Command::Graph(args) => graph::graph(&args, &library, terminal),
        Command::Ops(args) => ops::ops(&args, terminal),
        Command::Plans(args) => plans::plans(&args, &library, terminal),
        Command::Bench(args) => bench::bench(args, library, terminal),
        Command::Serve(args) => serve::serve(args, library, terminal),
        Command::Worker(args) => worker::worker(args, library, terminal),
        Command::Send(args) => worker::send(args, terminal),
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "ebbtide", &mut script);
            terminal.print(script)
        }
    }
}
