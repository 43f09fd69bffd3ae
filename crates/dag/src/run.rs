//! One run: the future that a caller awaits.

use std::{
    fmt,
    future::Future,
    panic::Location,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use ebbtide_lifecycle::{
    Outcome, Token,
    blame::Origin,
    time::{Deadline, Timer},
};

use crate::{
    cx::Terms,
    engine::Works,
    error::RunError,
    inputs::{Inputs, Sources},
    pass::Going,
    reach::{Reach, Threads},
    report::Report,
};

/// What a failed node means for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Nothing further begins; what has begun goes on to its end, or to the deadline, and then the run fails with the
    /// first error.
    #[default]
    FailFast,
    /// All nodes are run that do not depend on it. The run goes well if all outputs are there.
    FinishIndependent,
}

/// On what terms a run runs.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) site: &'static Location<'static>,
    pub(crate) limit: Limit,
    pub(crate) node_timeout: Option<Duration>,
    pub(crate) policy: Policy,
    pub(crate) token: Option<Token>,
    pub(crate) traced: bool,
    pub(crate) reported: bool,
}

/// By when a run has to be over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    By(Deadline),
    /// From its first poll on.
    Within(Duration),
}

impl Options {
    pub(crate) fn new(site: &'static Location<'static>) -> Self {
        Self {
            site,
            limit: Limit::By(Deadline::never()),
            node_timeout: None,
            policy: Policy::default(),
            token: None,
            traced: false,
            reported: false,
        }
    }
}

/// A run of a plan: `.await` it for the outputs. Made by [`Engine::run`](crate::Engine::run).
///
/// It ends only when nothing of it is under way, but for nodes that go on after their deadline, which the engine and
/// its runners count. It begins when it is first polled.
///
/// # Cancel safety
/// Dropping it drops its async nodes. A CPU or blocking node that has begun goes on to its end, with what it owns, and
/// is counted as late; those that have not begun never do. A blocking node that waits in the pool's line keeps the
/// request until it is come across there.
#[must_use = "a run does nothing unless awaited"]
pub struct Run<R, O: Inputs, T: Timer + Clone, M: Reach = Threads> {
    works: Arc<Works<R, T, M>>,
    outputs: Arc<O::Kept>,
    stage: Stage<R, T, M>,
    options: Options,
}

enum Stage<R, T: Timer + Clone, M: Reach> {
    Fresh(Arc<R>),
    Going(Box<Going<R, T, M>>),
    Over,
}

/// How a run ended, and its report if one was asked for.
type Ended<V> = (Result<V, RunError>, Option<Report>);

impl<R, O: Inputs, T: Timer + Clone, M: Reach> Run<R, O, T, M> {
    pub(crate) fn new(
        works: Arc<Works<R, T, M>>,
        outputs: Arc<O::Kept>,
        request: Arc<R>,
        options: Options,
    ) -> Self {
        Self { works, outputs, stage: Stage::Fresh(request), options }
    }

    /// By when it has to be over.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.options.limit = Limit::By(deadline);
        self
    }

    /// How long it may take, from its first poll on.
    pub fn within(mut self, duration: Duration) -> Self {
        self.options.limit = Limit::Within(duration);
        self
    }

    /// How long a node may take that has no timeout of its own.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.options.node_timeout = Some(timeout);
        self
    }

    /// What a failed node means for the others.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.options.policy = policy;
        self
    }

    /// Cancels the run when `token` is triggered, as if it were dropped. What the poll that is under way has before it
    /// is begun all the same, if that is done on the run's own thread.
    pub fn cancelled_by(mut self, token: &Token) -> Self {
        self.options.token = Some(token.clone());
        self
    }

    /// The same run, with a report of what became of each node.
    pub fn reported(mut self) -> Reported<R, O, T, M> {
        self.options.reported = true;
        Reported { run: self }
    }

    /// The same run, with a report that has the times of each node.
    pub fn traced(mut self) -> Reported<R, O, T, M> {
        self.options.traced = true;
        self.reported()
    }

    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended<O::Values<'static>>> {
        if let Stage::Fresh(_) = self.stage {
            let Stage::Fresh(request) = std::mem::replace(&mut self.stage, Stage::Over) else {
                unreachable!()
            };
            match self.begin(request) {
                Ok(going) => self.stage = Stage::Going(Box::new(going)),
                Err(error) => {
                    let report = self.options.reported.then(|| self.report_of_nothing(&error));
                    return Poll::Ready((Err(error), report));
                }
            }
        }
        let Stage::Going(going) = &mut self.stage else { panic!("polled after its end") };
        if going.poll(cx).is_pending() {
            return Poll::Pending;
        }
        let outputs = &self.outputs;
        let ended = going.conclude(|turn| outputs.take(turn, false));
        self.stage = Stage::Over;
        Poll::Ready(ended)
    }

    /// The report of a run that did not begin.
    fn report_of_nothing(&self, error: &RunError) -> Report {
        let deadline = match self.options.limit {
            Limit::By(deadline) => deadline.remaining(self.works.timer.now()),
            Limit::Within(duration) => Some(duration),
        };
        Report::of_nothing(&self.works.plan, error, deadline, self.options.node_timeout)
    }

    /// Checks whether it may begin.
    fn begin(&self, request: Arc<R>) -> Result<Going<R, T, M>, RunError> {
        let (works, options) = (&self.works, &self.options);
        if let Some(reason) = options.token.as_ref().and_then(Token::reason) {
            return Err(RunError::Cancelled { reason: reason.clone() });
        }
        let now = works.timer.now();
        let deadline = match options.limit {
            Limit::By(deadline) => deadline,
            Limit::Within(duration) => now.checked_add(duration).map_or(Deadline::never(), Deadline::at),
        };
        if deadline.is_expired(now) {
            return Err(RunError::Expired);
        }
        if let Some(left) = deadline.remaining(now)
            && let Some(usual) = works.refuses(left)
        {
            return Err(RunError::TooShort { left, usual });
        }
        let origin = Origin::from(options.site).named(works.plan.name.clone());
        let admission = works.admit(&origin).map_err(RunError::Refused)?;
        let terms = Terms {
            request,
            deadline,
            node_timeout: options.node_timeout,
            endpoints: works.endpoints.clone(),
        };
        Ok(Going::new(works.clone(), admission, terms, options.clone(), now))
    }
}

impl<R, O: Inputs, T: Timer + Clone, M: Reach> Unpin for Run<R, O, T, M> {}

impl<R, O: Inputs, T: Timer + Clone, M: Reach> Future for Run<R, O, T, M> {
    type Output = Result<O::Values<'static>, RunError>;

    /// # Panics
    /// When it is polled after its end.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_ended(cx).map(|(result, _)| result)
    }
}

/// Dropped before its end.
impl<R, O: Inputs, T: Timer + Clone, M: Reach> Drop for Run<R, O, T, M> {
    fn drop(&mut self) {
        if let Stage::Going(going) = &mut self.stage {
            going.abandon(Outcome::Cancelled);
        }
    }
}

impl<R, O: Inputs, T: Timer + Clone, M: Reach> fmt::Debug for Run<R, O, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("plan", &self.works.plan.name).finish_non_exhaustive()
    }
}

/// A run that gives a report, well or not; made by [`Run::reported`] and [`Run::traced`].
#[must_use = "a run does nothing unless awaited"]
pub struct Reported<R, O: Inputs, T: Timer + Clone, M: Reach = Threads> {
    run: Run<R, O, T, M>,
}

impl<R, O: Inputs, T: Timer + Clone, M: Reach> Future for Reported<R, O, T, M> {
    type Output = (Result<O::Values<'static>, RunError>, Report);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = self.run.poll_ended(cx);
        ended.map(|(result, report)| (result, report.expect("it was asked for")))
    }
}

impl<R, O: Inputs, T: Timer + Clone, M: Reach> fmt::Debug for Reported<R, O, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reported").field("run", &self.run).finish()
    }
}
