//! A plan that is bound, and the terms on which it is run.

use std::{sync::Arc, time::Duration};

use ebbtide::{
    App,
    dag::{self, Env, Handle, Input, Policy, Report},
    lifecycle::blame::Origin,
    shutdown::Priority,
};
use ebbtide_rank::{Endpoints, Request, Rows};
use serde_json::{Value, json};

use crate::{
    args,
    fault::{Fault, code},
    registry::Plan,
};

type Loop = ebbtide::reactor::Handle;

/// A run of a plan.
pub(crate) type Run = dag::Run<Request, Vec<Handle<Rows>>, Loop>;

/// What a run gives: the rows of each output.
pub(crate) type Outputs = Vec<Input<'static, Rows>>;

/// Answers the requests of one plan.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    plan: Arc<Plan>,
    engine: dag::Engine<Request, Vec<Handle<Rows>>, Loop>,
    deadline: Option<Duration>,
    node_timeout: Option<Duration>,
    policy: Policy,
    origin: Origin,
}

impl Engine {
    /// Binds a plan to what the app has. It is stopped with the app.
    pub(crate) fn bind(
        app: &App,
        plan: Plan,
        endpoints: &Endpoints,
        terms: &args::Terms,
    ) -> Result<Self, Fault> {
        let component = format!("plan {}", plan.name());
        Self::bind_to(app, app.handle(), component, Arc::new(plan), endpoints, terms)
    }

    /// The same plan once more, for runs on another loop of the app, whose timers are nearer to them.
    pub(crate) fn for_loop(
        &self,
        app: &App,
        events: &Loop,
        endpoints: &Endpoints,
        terms: &args::Terms,
    ) -> Result<Self, Fault> {
        let component = format!("plan {} on {}", self.name(), events.name());
        Self::bind_to(app, events, component, self.plan.clone(), endpoints, terms)
    }

    fn bind_to(
        app: &App,
        events: &Loop,
        component: String,
        plan: Arc<Plan>,
        endpoints: &Endpoints,
        terms: &args::Terms,
    ) -> Result<Self, Fault> {
        let env = Env::new(events.clone()).pool(app.pool()).runners(app.runners());
        let engine = plan.bind(endpoints.bind(env)).map_err(|missing| {
            Fault::data(missing.to_string()).hint("an endpoints file says what there is: --endpoints FILE")
        })?;
        // Before the pool, whose jobs it waits for.
        app.register(component, Priority::LATE, engine.clone())
            .map_err(|_| Fault::data(format!("there are two plans \"{}\"", plan.name())))?;
        Ok(Self {
            engine,
            deadline: terms.deadline_ms.or(plan.deadline()),
            node_timeout: terms.node_timeout_ms,
            policy: match terms.policy {
                args::PolicyArg::FailFast => Policy::FailFast,
                args::PolicyArg::FinishIndependent => Policy::FinishIndependent,
            },
            origin: Origin::here().named(plan.name()),
            plan,
        })
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn name(&self) -> &str {
        self.plan.name()
    }

    /// What its requests are known by to whoever asks what is in flight.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// How many nodes have gone on after their run, and ended.
    pub(crate) fn late(&self) -> u64 {
        self.engine.ledger().balance(0).late
    }

    /// A run that begins when it is polled.
    pub(crate) fn run(&self, request: Arc<Request>) -> Run {
        let mut run = self.engine.run(request).policy(self.policy);
        if let Some(deadline) = self.deadline {
            run = run.within(deadline);
        }
        if let Some(timeout) = self.node_timeout {
            run = run.node_timeout(timeout);
        }
        run
    }

    /// Writes an answer: of one output `{"request_id": …, "candidates": […]}`, of several
    /// `{"request_id": …, "outputs": {"name": {"candidates": […]}, …}}`.
    pub(crate) fn write(
        &self,
        request: &Request,
        outputs: &Outputs,
        report: Option<&Report>,
        out: &mut Vec<u8>,
    ) {
        if let ([only], None) = (&**outputs, report) {
            return only.write_json(&request.request_id, out);
        }
        let string = |text: &str| Value::from(text).to_string();
        out.extend_from_slice(b"{\"request_id\":");
        out.extend_from_slice(string(&request.request_id).as_bytes());
        if let [only] = &**outputs {
            out.extend_from_slice(b",\"candidates\":");
            only.write_candidates(out);
        } else {
            out.extend_from_slice(b",\"outputs\":{");
            for (nth, (name, rows)) in self.plan.outputs().iter().zip(outputs).enumerate() {
                if nth > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(string(name).as_bytes());
                out.extend_from_slice(b":{\"candidates\":");
                rows.write_candidates(out);
                out.push(b'}');
            }
            out.push(b'}');
        }
        if let Some(report) = report {
            out.extend_from_slice(b",\"timings\":");
            out.extend_from_slice(timings(report).to_string().as_bytes());
        }
        out.push(b'}');
    }
}

/// The times of each node, in microseconds since the start of the run.
fn timings(report: &Report) -> Value {
    let micros = |at: Duration| at.as_nanos() as f64 / 1e3;
    let node = |node: dag::NodeReport<'_>| {
        let mut json = json!({"node": node.name, "kind": node.kind.to_string(), "end": node.end.to_string()});
        if let Some(span) = &node.span {
            json["thread"] = span.thread.into();
            json["queued_us"] = micros(span.queued).into();
            json["begun_us"] = micros(span.begun).into();
            json["ended_us"] = span.ended.map(micros).into();
        }
        json
    };
    report.nodes().map(node).collect()
}

/// What a run failed with, as a fault of the command.
pub(crate) fn run_fault(error: &dag::RunError) -> Fault {
    let fault = Fault::new(code::FAILED, error.to_string()).of_run(error);
    match error {
        dag::RunError::Deadline { .. } => {
            fault.hint("give it more time with --deadline-ms, or see where it goes with --explain")
        }
        dag::RunError::TimedOut { .. } => fault.hint("see where the time goes with --explain"),
        _ => fault,
    }
}
