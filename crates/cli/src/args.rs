//! What can be said on the command line.

use std::{
    ffi::OsString,
    io,
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    time::Duration,
};

use clap::{Args, Parser, Subcommand, ValueEnum, builder::NonEmptyStringValueParser};
use clap_complete::Shell;

/// What every command has stands behind what it has of its own.
const LAST: usize = 900;

/// Runs plans: graphs of I/O and CPU steps that answer a request under a deadline.
#[derive(Debug, Parser)]
#[command(
    name = "ebbtide",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  ebbtide run plans/feed.json                          answer the plan's sample request
  ebbtide run feed --request '{\"user_id\": 7}' --explain
  ebbtide check plans/*.json                           every mistake, with its place
  ebbtide bench feed --requests 100000 --concurrency 100
  ebbtide serve plans/feed.json --listen 127.0.0.1:8080

Exit codes:
   0  well
   1  a run failed, or an answer is missing
   2  the command line is wrong
  65  a plan, a request or an endpoints file is wrong
  66  a file is not there, or cannot be read
  69  an address cannot be listened at, or a server cannot be reached
  70  the program itself has failed
  71  the system has no threads to give
  74  the result cannot be written
  75  the stop ran out of time, and work was abandoned
  76  a second signal ended the process
  77  a third signal did"
)]
pub(crate) struct Cli {
    /// Where plans are that are called by their name
    #[arg(
        long = "plans",
        global = true,
        display_order = LAST,
        value_name = "FOLDER",
        env = "EBBTIDE_PLANS",
        default_value = "plans"
    )]
    pub(crate) folder: PathBuf,

    /// When to use colours
    #[arg(long, global = true, display_order = LAST, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answers one request
    Run(Run),
    /// Looks for mistakes in plans
    Check(Check),
    /// Draws a plan
    Graph(Graph),
    /// Lists the ops that plans are made of
    Ops(Ops),
    /// Lists the plans of a folder
    Plans(Plans),
    /// Answers many requests, and measures
    Bench(Bench),
    /// Answers requests over HTTP
    Serve(Serve),
    /// Answers requests from a queue
    Worker(Worker),
    /// Puts requests into a queue
    Send(Send),
    /// Prints what a shell needs to complete the commands
    Completions(Completions),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ebbtide run feed                                     the plan's sample request
  ebbtide run feed --request '{\"user_id\": 7}'
  echo '{\"user_id\": 7}' | ebbtide run feed
  ebbtide run feed --redis redis://127.0.0.1:6379 --deadline-ms 50
  ebbtide run feed --report feed.html --trace feed.json --explain")]
pub(crate) struct Run {
    /// A file, or the name of a plan in the plans folder
    pub(crate) plan: OsString,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    #[command(flatten)]
    pub(crate) terms: Terms,
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Write a trace for Perfetto or `chrome://tracing`
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write a page about the run
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Say on standard error what the time went into: the critical path, and what became of each node
    #[arg(long)]
    pub(crate) explain: bool,
    /// Add the times of each node to the result
    #[arg(long)]
    pub(crate) timings: bool,
    /// Print errors as JSON, too
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which request.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// The request, as JSON
    #[arg(long, value_name = "JSON", conflicts_with = "request_file")]
    pub(crate) request: Option<String>,
    /// A file with the request; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) request_file: Option<PathBuf>,
    /// Set a parameter of the request
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) params: Vec<(String, String)>,
}

/// On what terms requests are answered.
#[derive(Clone, Debug, Args)]
pub(crate) struct Terms {
    /// How long a run may take; by default what the plan says
    #[arg(long, value_name = "MS", value_parser = millis, allow_negative_numbers = true)]
    pub(crate) deadline_ms: Option<Duration>,
    /// How long a node may take that has no timeout of its own
    #[arg(long, value_name = "MS", value_parser = millis, allow_negative_numbers = true)]
    pub(crate) node_timeout_ms: Option<Duration>,
    /// How many threads there are for CPU nodes; by default one for each CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) cpu_threads: Option<u16>,
    /// What a failed node means for the others
    #[arg(long, value_name = "POLICY", default_value = "fail-fast")]
    pub(crate) policy: PolicyArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PolicyArg {
    /// Nothing further begins
    FailFast,
    /// All nodes are run that do not depend on it
    FinishIndependent,
}

/// What plans read from.
#[derive(Clone, Debug, Args)]
pub(crate) struct Sources {
    /// Read from this JSON file instead of the embedded data
    #[arg(long, value_name = "FILE", conflicts_with_all = ["redis", "endpoints"])]
    pub(crate) store: Option<PathBuf>,
    /// Read from this Redis server
    #[arg(long, value_name = "URL", conflicts_with = "endpoints")]
    pub(crate) redis: Option<String>,
    /// How long that server may take to be connected to, and to answer
    #[arg(long, value_name = "MS", value_parser = millis, allow_negative_numbers = true, requires = "redis")]
    #[arg(default_value = "1000")]
    pub(crate) redis_timeout_ms: Duration,
    /// A file that says what each endpoint is
    #[arg(long, value_name = "FILE")]
    pub(crate) endpoints: Option<PathBuf>,
    /// Fill the Redis server with the embedded data first
    #[arg(long, requires = "redis")]
    pub(crate) load_demo_data: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ebbtide check plans/*.json                           every mistake, with code, place and suggestion
  ebbtide check feed --json                            a line for each plan, for machines")]
pub(crate) struct Check {
    /// Files, or names of plans
    #[arg(required = true)]
    pub(crate) plans: Vec<OsString>,
    /// Print JSON, one line for each plan
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ebbtide graph feed | dot -Tpng > feed.png
  ebbtide graph feed --format svg --output feed.svg")]
pub(crate) struct Graph {
    /// A file, or the name of a plan
    pub(crate) plan: OsString,
    /// In which form
    #[arg(long, value_name = "FORM", default_value = "dot")]
    pub(crate) format: Form,
    /// Where to; by default standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Form {
    Dot,
    Mermaid,
    Svg,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ebbtide ops
  ebbtide ops filter                                   one op, with its parameters")]
pub(crate) struct Ops {
    /// Only this one
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ebbtide plans
  ebbtide plans --plans elsewhere --json")]
pub(crate) struct Plans {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
How long a request takes counts from the answer to the one before: with many at a time, the wait for the others is
a part of it.

Examples:
  ebbtide bench feed --requests 100000 --concurrency 100
  ebbtide bench feed --redis redis://127.0.0.1:6379 --load-demo-data --deadline-ms 50
  ebbtide bench feed --loops 1 --json")]
pub(crate) struct Bench {
    /// A file, or the name of a plan
    pub(crate) plan: OsString,
    /// How many requests
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: u64,
    /// How many at the same time
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) concurrency: u32,
    /// How many loops answer them; by default one for each CPU, and no more than there are requests at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) loops: Option<u16>,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    #[command(flatten)]
    pub(crate) terms: Terms,
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Paths:
  POST /plans/NAME     answers the request in the body
  GET  /plans          what there is
  GET  /metrics        for Prometheus
  GET  /health/live, /health/ready

Examples:
  ebbtide serve plans/feed.json --listen 127.0.0.1:8080
  curl -d '{\"user_id\": 7}' http://127.0.0.1:8080/plans/feed")]
pub(crate) struct Serve {
    /// Files, or names of plans
    #[arg(required = true)]
    pub(crate) plans: Vec<OsString>,
    /// Where to listen: `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Answer for its health here, too, from a thread of its own
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) health: Option<SocketAddr>,
    /// How many loops answer requests; by default one for each CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) loops: Option<u16>,
    /// How many requests are answered at the same time; more are refused with 503
    #[arg(long, value_name = "N", default_value = "1024", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_in_flight: u32,
    /// How large a request may be
    #[arg(long, value_name = "BYTES", default_value = "1048576")]
    pub(crate) max_body: usize,
    /// How long a client may take to send it
    #[arg(long, value_name = "MS", value_parser = millis, allow_negative_numbers = true, default_value = "10000")]
    pub(crate) body_timeout_ms: Duration,
    /// How many connections there may be
    #[arg(long, value_name = "N", default_value = "10000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_connections: u32,
    #[command(flatten)]
    pub(crate) drain: Drain,
    #[command(flatten)]
    pub(crate) terms: Terms,
    #[command(flatten)]
    pub(crate) sources: Sources,
}

/// How to stop.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Drain {
    /// How long a stop may take, 1 to 300; by default 30, or what `DRAIN_TIMEOUT_SECONDS` says
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) drain_timeout_seconds: Option<f64>,
    /// How long to go on serving after readiness went off
    #[arg(long, value_name = "MS", value_parser = millis, allow_negative_numbers = true, default_value = "0")]
    pub(crate) readiness_delay_ms: Duration,
}

#[derive(Debug, Args)]
#[command(after_help = "\
With a mailbox in memory, the requests are the lines of standard input, and the answers are printed, a line each.

Examples:
  seq 5 | sed 's/.*/{\"user_id\": &}/' | ebbtide worker feed --mailbox memory
  ebbtide worker feed --mailbox redis://127.0.0.1:6379 --queue feed")]
pub(crate) struct Worker {
    /// A file, or the name of a plan
    pub(crate) plan: OsString,
    #[command(flatten)]
    pub(crate) mailbox: MailboxArgs,
    /// How many requests are answered at the same time
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) concurrency: u16,
    /// How long a request is this worker's alone, unless it says that it goes on
    #[arg(long, value_name = "S", default_value = "300", value_parser = clap::value_parser!(u32).range(1..=43_200))]
    pub(crate) visibility_seconds: u32,
    /// How often a request is tried before it becomes a dead letter
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) attempts: u32,
    /// End after so many receives, whether there was anything or not
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<u64>,
    #[command(flatten)]
    pub(crate) drain: Drain,
    #[command(flatten)]
    pub(crate) terms: Terms,
    #[command(flatten)]
    pub(crate) sources: Sources,
}

/// Which queue.
#[derive(Clone, Debug, Args)]
pub(crate) struct MailboxArgs {
    /// `memory`, or the URL of a Redis server
    #[arg(long, value_name = "memory|URL", default_value = "memory")]
    pub(crate) mailbox: String,
    /// What the queue is called
    #[arg(long, value_name = "NAME", default_value = "ebbtide", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) queue: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ebbtide send --mailbox redis://127.0.0.1:6379 --queue feed --request '{\"user_id\": 7}' --wait-seconds 5
  seq 100 | sed 's/.*/{\"user_id\": &}/' | ebbtide send --mailbox redis://127.0.0.1:6379 --queue feed")]
pub(crate) struct Send {
    #[command(flatten)]
    pub(crate) mailbox: MailboxArgs,
    /// The request, as JSON; by default each line of standard input is one
    #[arg(long, value_name = "JSON")]
    pub(crate) request: Option<String>,
    /// How long until they are seen
    #[arg(long, value_name = "MS", value_parser = millis, allow_negative_numbers = true, default_value = "0")]
    pub(crate) delay_ms: Duration,
    /// Wait for the answers, so long at most, and print them
    #[arg(long, value_name = "S")]
    pub(crate) wait_seconds: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(ebbtide completions bash)
  ebbtide completions zsh > ~/.zfunc/_ebbtide
  ebbtide completions fish > ~/.config/fish/completions/ebbtide.fish")]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: Shell,
}

fn millis(text: &str) -> Result<Duration, String> {
    let millis: f64 = text.parse().map_err(|_| "expected a number of milliseconds".to_owned())?;
    Duration::try_from_secs_f64(millis / 1e3)
        .map_err(|_| "expected milliseconds of 0 or more, and not without end".to_owned())
}

/// An address, or a name that stands for one, and a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = || "expected a host and a port, as in 127.0.0.1:8080 or localhost:8080".to_owned();
    let Some((host, _)) = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()) else {
        return Err(expected());
    };
    let mut addresses = text.to_socket_addrs().map_err(|error| match error.kind() {
        // What is not even asked for.
        io::ErrorKind::InvalidInput => expected(),
        _ => format!("there is no host {host}: {error}"),
    })?;
    addresses.next().ok_or_else(|| format!("the host {host} has no address"))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        assert_eq!(address("127.0.0.1:0"), Ok(([127, 0, 0, 1], 0).into()));
        assert!(address("localhost:8080").is_ok_and(|address| address.port() == 8080));
        assert!(address("[::1]:8080").is_ok_and(|address| address.is_ipv6()));
        for wrong in ["8080", ":8080", "localhost", "localhost:http", "127.0.0.1:99999"] {
            let error = address(wrong).unwrap_err();
            assert_eq!(
                error, "expected a host and a port, as in 127.0.0.1:8080 or localhost:8080",
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }
}
