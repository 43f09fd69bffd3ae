//! What became of each node of a run, and what the run's time was spent on.

use std::{
    cmp::Reverse,
    fmt::{self, Write},
    sync::Arc,
    time::Duration,
};

use crate::{
    core::{Core, state},
    error::RunError,
    graph::Kind,
    line::Line,
    outline::Outline,
    pass::Fault,
    plan::Compiled,
    reach::Reach,
    trace::{Times, thread_names},
};

/// How a node ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeEnd {
    /// Well.
    Ok,
    /// It failed, for this reason, and its fallback was its output.
    FellBack(String),
    /// It failed, for this reason.
    Failed(String),
    /// It took longer than it may, or the request's deadline came while it ran. It may go on.
    TimedOut,
    /// It panicked, with this message.
    Panicked(String),
    /// It was not run, because of another node that was skipped or has failed, or because of its own condition.
    Skipped {
        /// The node that it all began with.
        by: Arc<str>,
    },
    /// It had begun, or was about to, when the run ended.
    Cancelled,
    /// It had not begun when the run ended.
    NotStarted,
}

/// One node of a run, as its [`Report`] tells of it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NodeReport<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where and how it runs.
    pub kind: Kind,
    /// What it runs, in a plan from data.
    pub op: Option<&'a str>,
    /// How it ended.
    pub end: &'a NodeEnd,
    /// It was given up on and went on, and its output was discarded: at its timeout, at the deadline, or when the run
    /// was cancelled.
    pub late: bool,
    /// How long it was allowed to take: by itself, or by the run.
    pub timeout: Option<Duration>,
    /// How often it was begun.
    pub attempts: u32,
    /// When, in a traced run, if it has begun.
    pub span: Option<Span<'a>>,
    /// The nodes that it depends on, by their place in the report.
    pub inputs: &'a [u32],
    /// Those of them that it can do without.
    pub optional: &'a [u32],
}

/// When a node ran, from the start of its run on.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Span<'a> {
    /// When all its inputs were there.
    pub queued: Duration,
    /// When it began.
    pub begun: Duration,
    /// When it ended; nothing if it had not when the run did.
    pub ended: Option<Duration>,
    /// Where it began.
    pub thread: &'a str,
}

/// What became of each node of a run.
#[derive(Clone)]
#[non_exhaustive]
pub struct Report {
    /// The plan's name.
    pub plan: Arc<str>,
    /// The nodes whose outputs the run gives, by their place in the report.
    pub outputs: Vec<u32>,
    /// Why the run failed, if it did.
    pub error: Option<String>,
    /// The code of that error, as of [`RunError::code`].
    pub code: Option<&'static str>,
    /// How long the run took, from its first poll to its end.
    pub total: Duration,
    /// By when it had to be over, from its first poll on.
    pub deadline: Option<Duration>,
    /// Whether it has times.
    pub traced: bool,
    /// What the plan knows of the nodes. Shared as a whole: a handle for each of them would cost a run more than all
    /// its times.
    outline: Arc<Outline>,
    /// What became of each of them.
    records: Vec<Record>,
    /// How long a node may take that says nothing about it.
    node_timeout: Option<Duration>,
    /// The names of the threads in the records, by their numbers.
    threads: Vec<Arc<str>>,
}

/// What a run tells of one node.
#[derive(Clone)]
struct Record {
    end: NodeEnd,
    late: bool,
    attempts: u32,
    times: Option<Times>,
}

/// A node on the critical path.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Step {
    /// Its place in the report.
    pub node: usize,
    /// How long it waited after its inputs were there.
    pub waited: Duration,
    /// How long it ran.
    pub ran: Duration,
}

/// What the end of a run knows that its nodes do not.
pub(crate) struct Ending<'a> {
    /// Why nodes have not ended well.
    pub(crate) faults: &'a [(u32, Fault)],
    /// Nodes that were given up on and go on.
    pub(crate) late: &'a [u32],
    pub(crate) error: Option<&'a RunError>,
    pub(crate) took: Duration,
    pub(crate) deadline: Option<Duration>,
    pub(crate) node_timeout: Option<Duration>,
}

impl Report {
    /// Of a run that did not begin.
    pub(crate) fn of_nothing<R, M: Reach>(
        plan: &Compiled<R, M>,
        error: &RunError,
        deadline: Option<Duration>,
        node_timeout: Option<Duration>,
    ) -> Self {
        let record = Record { end: NodeEnd::NotStarted, late: false, attempts: 0, times: None };
        let (error, took) = (Some(error), Duration::ZERO);
        let ending = Ending { faults: &[], late: &[], error, took, deadline, node_timeout };
        Self::new(plan, vec![record; plan.outline.nodes.len()], &ending, None)
    }

    pub(crate) fn of<R, M: Reach>(core: &Core<R, M>, ending: &Ending<'_>) -> Self {
        let (plan, Ending { faults, error, .. }) = (&*core.plan, ending);
        let why = |node: u32| {
            let fault = faults.iter().find(|(at, _)| *at == node).map(|(_, fault)| fault);
            match (fault, *error) {
                // The first error has gone into the run's own.
                (Some(Fault::NotRun) | None, Some(error)) if error.node() == Some(&plan.info(node).name) => {
                    match error {
                        RunError::Failed { failure, .. } => failure.to_string(),
                        RunError::Panicked { panic, .. } => panic.message().to_owned(),
                        other => other.to_string(),
                    }
                }
                (Some(Fault::Failed(failure)), _) => failure.to_string(),
                (Some(Fault::Panicked(panic)), _) => panic.message().to_owned(),
                (Some(Fault::TimedOut(after)), _) => format!("timed out after {after:?}"),
                (Some(Fault::NotRun) | None, _) => "the pool is closed".to_owned(),
            }
        };
        let record = |node: u32| {
            let state = core.state(node);
            let end = match state {
                state::OK => NodeEnd::Ok,
                state::FELL_BACK => NodeEnd::FellBack(why(node)),
                state::FAILED => NodeEnd::Failed(why(node)),
                state::TIMED_OUT => NodeEnd::TimedOut,
                state::PANICKED => NodeEnd::Panicked(why(node)),
                state::SKIPPED => {
                    let by = core.spoiler(node).unwrap_or(node);
                    NodeEnd::Skipped { by: plan.info(by).name.clone() }
                }
                state::WAITING => NodeEnd::NotStarted,
                _ => NodeEnd::Cancelled,
            };
            let has_begun = !matches!(state, state::WAITING | state::SKIPPED | state::IN_LINE);
            let attempts = if has_begun { core.attempts(node) } else { 0 };
            let times = core.trace.as_ref().and_then(|trace| trace.times(node));
            Record { end, late: false, attempts, times }
        };
        let mut records: Vec<_> = (0..plan.outline.nodes.len() as u32).map(record).collect();
        ending.late.iter().for_each(|node| records[*node as usize].late = true);
        Self::new(plan, records, ending, core.trace.as_ref().map(|_| thread_names()))
    }

    /// With the names of threads, if it was traced.
    fn new<R, M: Reach>(
        plan: &Compiled<R, M>,
        records: Vec<Record>,
        ending: &Ending<'_>,
        threads: Option<Vec<Arc<str>>>,
    ) -> Self {
        Self {
            plan: plan.name.clone(),
            outputs: plan.outputs.iter().map(|edge| edge.node).collect(),
            error: ending.error.map(ToString::to_string),
            code: ending.error.map(RunError::code),
            total: ending.took,
            deadline: ending.deadline,
            traced: threads.is_some(),
            outline: plan.outline.clone(),
            records,
            node_timeout: ending.node_timeout,
            threads: threads.unwrap_or_default(),
        }
    }

    /// Each node, in the order of the graph.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeReport<'_>> {
        (0..self.records.len()).map(|place| self.at(place))
    }

    /// The node at this place of the report: that of a [`Step`], or of an input.
    ///
    /// # Panics
    /// Where there is none: a report has as many places as its plan has nodes.
    #[must_use]
    pub fn at(&self, place: usize) -> NodeReport<'_> {
        let (info, record) = (&self.outline.nodes[place], &self.records[place]);
        NodeReport {
            name: &info.name,
            kind: info.kind,
            op: info.op.as_deref(),
            end: &record.end,
            late: record.late,
            timeout: info.timeout.or(self.node_timeout),
            attempts: record.attempts,
            span: record.times.map(|times| self.span(place, times)),
            inputs: self.outline.inputs.of(place),
            optional: self.outline.optional.of(place),
        }
    }

    fn span(&self, place: usize, times: Times) -> Span<'_> {
        let inputs = self.outline.inputs.of(place).iter();
        let ended = inputs.filter_map(|input| self.records[*input as usize].times?.ended());
        Span {
            queued: Duration::from_nanos(ended.max().unwrap_or(0).min(times.begun)),
            begun: Duration::from_nanos(times.begun),
            ended: times.ended().map(Duration::from_nanos),
            thread: &self.threads[times.thread()],
        }
    }

    /// The node of this name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<NodeReport<'_>> {
        let place = self.outline.nodes.iter().position(|info| &*info.name == name)?;
        Some(self.at(place))
    }

    /// When the last node ended.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.nodes().filter_map(|node| node.span?.ended).max().unwrap_or_default()
    }

    /// The nodes that the run's end waited for: from the last to end, always the input that was there last. What had
    /// not ended when the run did counts as ended then. The first to run comes first. Empty unless the run was traced.
    #[must_use]
    pub fn critical_path(&self) -> Vec<Step> {
        // Of those that had not ended the first to begin was waited for longest.
        let ended = |node: &usize| {
            let span = self.at(*node).span?;
            let is_open = span.ended.is_none().then_some(Reverse(span.begun));
            Some((span.ended.unwrap_or(self.total), is_open))
        };
        let last = |nodes: &mut dyn Iterator<Item = usize>| {
            nodes.filter(|node| ended(node).is_some()).max_by_key(ended)
        };
        let mut path = Vec::new();
        let mut at = last(&mut (0..self.records.len()));
        while let Some(node) = at {
            let NodeReport { span, inputs, .. } = self.at(node);
            if let Some(Span { queued, begun, ended, .. }) = span {
                let ended = ended.unwrap_or(self.total);
                let (waited, ran) = (begun.saturating_sub(queued), ended.saturating_sub(begun));
                path.push(Step { node, waited, ran });
            }
            at = last(&mut inputs.iter().map(|input| *input as usize));
        }
        path.reverse();
        path
    }

    /// How much longer each node could have taken without the run ending later, by the times of this run: what depends
    /// on it is queued as long as it was, and runs as long. Nothing on the [critical path](Report::critical_path). None
    /// for those that have no times, or had not ended when the run did.
    #[must_use]
    pub fn slack(&self) -> Vec<Option<Duration>> {
        let nodes: Vec<_> = self.nodes().collect();
        let ends = |span: Span<'_>| span.ended.unwrap_or(self.total);
        let last = nodes.iter().filter_map(|node| node.span.map(ends)).max().unwrap_or_default();
        let mut latest = vec![last; nodes.len()];
        // Each after all that depend on it, of which there are so many.
        let mut dependants = vec![0_u32; nodes.len()];
        nodes.iter().flat_map(|node| node.inputs).for_each(|input| dependants[*input as usize] += 1);
        let mut order: Vec<usize> = (0..nodes.len()).filter(|node| dependants[*node] == 0).collect();
        while let Some(node) = order.pop() {
            let ready_by =
                |span: Span<'_>| latest[node].saturating_sub(ends(span).saturating_sub(span.queued));
            let must_be_ready = nodes[node].span.map(ready_by);
            for input in nodes[node].inputs.iter().map(|input| *input as usize) {
                latest[input] = must_be_ready.map_or(latest[input], |at| at.min(latest[input]));
                dependants[input] -= 1;
                if dependants[input] == 0 {
                    order.push(input);
                }
            }
        }
        let slack = |(node, latest): (&NodeReport<'_>, Duration)| {
            node.span.and_then(|span| span.ended).map(|ended| latest.saturating_sub(ended))
        };
        nodes.iter().zip(latest).map(slack).collect()
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("plan", &self.plan)
            .field("nodes", &self.nodes().collect::<Vec<_>>())
            .field("error", &self.error)
            .field("total", &self.total)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// One line for each node.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plan {}", self.plan)?;
        if let Some(error) = &self.error {
            write!(f, ": {error}")?;
        }
        for node in self.nodes() {
            f.write_str("\n  ")?;
            let mut line = Line(f);
            write!(line, "{} ({}): {}", node.name, node.kind, node.end)?;
            if node.late {
                write!(line, ", late")?;
            }
            if let Some(Span { begun, ended, thread, .. }) = node.span {
                write!(line, ", from {begun:.1?}")?;
                if let Some(ended) = ended {
                    write!(line, " to {ended:.1?}")?;
                }
                write!(line, " on {thread}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for NodeEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::FellBack(why) => write!(f, "fell back: {why}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Skipped { by } => write!(f, "skipped because of {by}"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::NotStarted => f.write_str("not started"),
        }
    }
}
