//! What a coordinator's thread, its signals, its callers and the threads of its components share.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use ebbtide_lifecycle::{
    Intake, Reason, Trigger, contain,
    time::{Clock, Tempo},
    wait::{Bell, Wait, Watch},
};

use crate::{
    desk::{Desk, Order, Progress as Stand},
    errand::Errand,
    event::{Event, Observer, Progress},
    health::{Condition, Health},
    priority::Priority,
    report::{CallbackReport, ComponentReport, Ending, IntakeReport, PhaseReport, Report},
    stage::Stage,
    verdict::Verdict,
    witness::{Testimony, ask},
};

pub(crate) struct Shared {
    pub(crate) tempo: Tempo,
    pub(crate) settings: Settings,
    /// Fired by anybody; the coordinator's thread waits for it.
    pub(crate) trigger: Trigger,
    /// What the signals ask for. They do not fire the trigger themselves: that wakes foreign code, which may hang.
    pub(crate) asked: OnceLock<Reason>,
    /// Fired when the intake closes.
    pub(crate) closing: Trigger,
    pub(crate) intake: Intake<Tempo>,
    pub(crate) health: Health,
    /// Met once the program says so.
    pub(crate) started: Condition,
    /// Met while requests are let in.
    pub(crate) serving: Condition,
    desk: Mutex<Desk>,
    /// There when it is over.
    pub(crate) report: OnceLock<Report>,
    /// Rung when somebody asks, a component ends, and when it is over.
    pub(crate) moved: Bell,
    /// Set once, at the start.
    pub(crate) attachments: OnceLock<Vec<Attachment>>,
}

/// Something that lives as long as the coordinator: a watchdog, a server.
pub(crate) type Attachment = Box<dyn Any + Send + Sync>;

/// The choices there are.
pub(crate) struct Settings {
    pub(crate) timeout: Duration,
    pub(crate) delay: Duration,
    pub(crate) progress_every: Duration,
    pub(crate) observers: Vec<Observer>,
    pub(crate) exit: Arc<dyn Fn(u8) + Send + Sync>,
}

impl Shared {
    pub(crate) fn new(tempo: Tempo, settings: Settings, health: Health, warnings: Vec<String>) -> Self {
        let started = health.condition("started");
        let serving = health.condition("serving");
        serving.met();
        Self {
            settings,
            trigger: Trigger::new(),
            asked: OnceLock::new(),
            closing: Trigger::new(),
            intake: Intake::new(tempo.clone()),
            health,
            started,
            serving,
            desk: Mutex::new(Desk::new(warnings)),
            report: OnceLock::new(),
            moved: Bell::new(),
            attachments: OnceLock::new(),
            tempo,
        }
    }

    pub(crate) fn desk(&self) -> MutexGuard<'_, Desk> {
        // Nothing that can panic runs under the lock.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stage(&self) -> Stage {
        self.desk().stage
    }

    pub(crate) fn tell(&self, event: &Event<'_>) {
        for observer in &self.settings.observers {
            drop(contain(|| observer(event)));
        }
    }

    /// The `nth` signal came; see [`signals`](crate::signals) for what each does.
    pub(crate) fn signalled(&self, signal: i32, nth: usize) {
        match nth {
            0 | 1 => self.ask(Reason::Signal(signal)),
            2 => {
                let report = Report { forced: true, ..self.look() };
                self.tell(&Event::Forced(&report));
                (self.settings.exit)(Verdict::Forced.exit_code());
            }
            _ => (self.settings.exit)(Verdict::IMMEDIATE),
        }
    }

    /// Asks the coordinator's thread for the stop.
    pub(crate) fn ask(&self, reason: Reason) {
        // Whoever asks first is heard; there is nothing to add to that.
        let _ = self.asked.set(reason);
        self.moved.ring();
    }

    /// Calls a callback that was registered after the trigger.
    pub(crate) fn call_late(&self, name: Arc<str>, act: impl FnOnce()) {
        let ending = match contain(act) {
            Ok(()) => Ending::Clean,
            Err(panicked) => Ending::Panicked(panicked.message().to_owned()),
        };
        self.tell(&Event::CallbackEnded { name: &name, ending: &ending });
        self.desk().called.push(CallbackReport { name, ending });
    }

    /// Has a component stopped, on a thread of its own.
    pub(crate) fn carry_out(self: &Arc<Self>, order: Order) {
        let shared = self.clone();
        let thread = format!("stop:{}", order.name);
        Errand::begin(&thread, &self.tempo, move |pace| {
            let Order { id, name, subject, since, deadline, reason } = order;
            let mut ending = subject.stop(deadline, &reason, pace);
            let testimony = Testimony::of(&*subject);
            let entry = shared.desk().release(id);
            if let Err(panicked) = contain(|| drop((subject, entry)))
                && !ending.is_failure()
            {
                ending = Ending::Panicked(format!("{} (when it was dropped)", panicked.message()));
            }
            let took = pace.now().saturating_duration_since(since);
            shared.tell(&Event::ComponentEnded { name: &name, ending: &ending, took });
            shared.desk().end(id, took, ending, testimony);
            shared.moved.ring();
        });
    }

    /// Waits until nobody of those with this priority, or of all, is waited for any more.
    pub(crate) fn settled(self: &Arc<Self>, of: Option<Priority>) -> Wait<Settled> {
        Wait::new(Settled { shared: self.clone(), of })
    }

    /// Waits for the report.
    pub(crate) fn ended(self: &Arc<Self>) -> Wait<Ended> {
        Wait::new(Ended { shared: self.clone() })
    }

    /// The report as it is at this moment.
    pub(crate) fn look(&self) -> Report {
        let now = self.tempo.now();
        let (mut report, unknown) = {
            let desk = self.desk();
            let (reason, since) = match &desk.call {
                Some((reason, since)) => (reason.clone(), *since),
                None => (self.asked.get().cloned().unwrap_or_else(|| Reason::requested("nothing yet")), now),
            };
            let mut unknown = Vec::new();
            let mut phases = Vec::<PhaseReport>::new();
            for entry in &desk.entries {
                let (ending, took, testimony) = match &entry.progress {
                    Stand::Waiting => (Ending::Pending, Duration::ZERO, Testimony::default()),
                    Stand::Stopping { since, .. } => {
                        unknown.extend(entry.subject.clone().map(|subject| (entry.name.clone(), subject)));
                        (Ending::Hung, now.saturating_duration_since(*since), Testimony::default())
                    }
                    Stand::Ended { took, ending, testimony } => (ending.clone(), *took, testimony.clone()),
                };
                let component = ComponentReport {
                    name: entry.name.clone(),
                    site: entry.site,
                    ending,
                    took,
                    balance: testimony.balance,
                    stragglers: testimony.stragglers,
                };
                match phases.iter_mut().find(|phase| phase.priority == entry.priority) {
                    Some(phase) => phase.components.push(component),
                    None => {
                        phases.push(PhaseReport { priority: entry.priority, components: vec![component] });
                    }
                }
            }
            phases.sort_by_key(|phase| std::cmp::Reverse(phase.priority));
            let report = Report {
                reason,
                stage: desk.stage,
                took: now.saturating_duration_since(since),
                callbacks: desk.called.clone(),
                intake: desk.intake.clone(),
                phases,
                warnings: desk.warnings.clone(),
                forced: false,
            };
            (report, unknown)
        };
        if let Some(intake) = report.intake.as_mut().filter(|intake| intake.ending == Ending::Pending) {
            *intake = IntakeReport {
                balance: self.intake.balance(),
                stragglers: self.intake.stragglers(),
                ..intake.clone()
            };
        }
        let (names, subjects): (Vec<_>, Vec<_>) = unknown.into_iter().unzip();
        for (name, testimony) in names.into_iter().zip(ask(subjects, &self.tempo)) {
            let components = report.phases.iter_mut().flat_map(|phase| &mut phase.components);
            for component in components.filter(|component| component.name == name) {
                component.balance = testimony.balance;
                component.stragglers = testimony.stragglers.clone();
            }
        }
        report
    }

    /// Asks those whose deadline is about to come who is in flight there, before they give up on it.
    pub(crate) fn take_note(&self) {
        let (ids, subjects): (Vec<_>, Vec<_>) = self.desk().to_ask(self.tempo.now()).into_iter().unzip();
        for (id, testimony) in ids.into_iter().zip(ask(subjects, &self.tempo)) {
            self.desk().note(id, testimony.stragglers);
        }
    }

    /// What is still waited for.
    pub(crate) fn progress(&self) -> Progress {
        let report = self.look();
        let intake = report.intake.iter().filter(|intake| intake.ending == Ending::Pending);
        let intake = intake.map(|intake| ("intake".into(), intake.stragglers.clone()));
        let hung = report.components().filter(|component| component.ending == Ending::Hung);
        let hung = hung.map(|component| (component.name.clone(), component.stragglers.clone()));
        let end = self.desk().budget.map(|budget| budget.end());
        Progress {
            stage: report.stage,
            left: end.map_or(Duration::ZERO, |end| end.saturating_duration_since(self.tempo.now())),
            waiting: intake.chain(hung).collect(),
            has_moved: false,
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("stage", &self.stage()).finish_non_exhaustive()
    }
}

/// What [`Shared::settled`] waits for.
pub(crate) struct Settled {
    shared: Arc<Shared>,
    of: Option<Priority>,
}

impl Watch for Settled {
    type Seen = ();

    fn look(&self) -> Option<()> {
        let now = self.shared.tempo.now();
        self.shared.desk().waited_for(self.of, now).is_none().then_some(())
    }

    fn bell(&self) -> &Bell {
        &self.shared.moved
    }
}

/// What [`Coordinator::stop`](crate::Coordinator::stop) waits for.
#[derive(Debug)]
pub struct Ended {
    shared: Arc<Shared>,
}

impl Watch for Ended {
    type Seen = Report;

    fn look(&self) -> Option<Report> {
        self.shared.report.get().cloned()
    }

    fn bell(&self) -> &Bell {
        &self.shared.moved
    }
}

/// What the coordinator's thread waits for at first, besides the trigger.
pub(crate) struct Asked {
    pub(crate) shared: Arc<Shared>,
}

impl Watch for Asked {
    type Seen = Reason;

    fn look(&self) -> Option<Reason> {
        self.shared.asked.get().cloned()
    }

    fn bell(&self) -> &Bell {
        &self.shared.moved
    }
}
