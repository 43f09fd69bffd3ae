//! What a coordinator's thread, its signals, its callers and the threads of its components share.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use ebbtide_lifecycle::{
    Intake, Reason, Trigger, contain,
    time::{Clock, Deadline, SystemClock, Tempo},
    wait::{Bell, Wait, Watch},
};

use crate::{
    desk::{Desk, Order, Progress as Stand},
    errand::{Errand, Spare, Undone},
    event::{Event, Observer, Progress},
    health::{Condition, Health},
    pace::Pace,
    priority::Priority,
    report::{CallbackReport, ComponentReport, Ending, IntakeReport, PhaseReport, Report},
    stage::Stage,
    subject::Subject,
    verdict::Verdict,
    witness::{Testimony, ask},
};

/// How long the report so far may take to be told before the process ends.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

/// How long whoever is woken by a trigger may take.
const FIRING_MAX: Duration = Duration::from_secs(1);

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
    serving: Condition,
    /// Met until it stops, and never again, also when the coordinator is gone. There until then.
    going: Option<Condition>,
    /// Fires triggers, and does what there is no other thread for.
    spare: Mutex<Spare>,
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
    pub(crate) fn new(
        tempo: Tempo,
        settings: Settings,
        health: Health,
        spare: Spare,
        warnings: Vec<String>,
    ) -> Self {
        let started = health.condition("started");
        let (serving, going) = (health.condition("serving"), health.condition("running"));
        serving.met();
        going.met();
        Self {
            settings,
            trigger: Trigger::new(),
            asked: OnceLock::new(),
            closing: Trigger::new(),
            intake: Intake::new(tempo.clone()),
            health,
            started,
            serving,
            going: Some(going),
            spare: Mutex::new(spare),
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
    pub(crate) fn signalled(self: &Arc<Self>, signal: i32, nth: usize) {
        match nth {
            0 | 1 => self.ask(Reason::Signal(signal)),
            2 => {
                // They may have come at the same time.
                self.ask(Reason::Signal(signal));
                self.end_process(Verdict::Forced, |report| report.forced = true);
            }
            _ => (self.settings.exit)(Verdict::IMMEDIATE),
        }
    }

    /// Tells the report so far, and ends the process, told or not: that is foreign code, and something is stuck
    /// already.
    pub(crate) fn end_process(
        self: &Arc<Self>,
        verdict: Verdict,
        amend: impl FnOnce(&mut Report) + Send + 'static,
    ) {
        let shared = self.clone();
        let (errand, begun) = Errand::begin("ebbtide-forced", &Tempo::Real, move |_| {
            let mut report = shared.look();
            amend(&mut report);
            shared.tell(&Event::Forced(&report));
        });
        if begun.is_ok() {
            let _told = errand.ended().wait_by(Deadline::after(SystemClock, LAST_WORDS_MAX));
        }
        (self.settings.exit)(verdict.exit_code());
    }

    /// Is ready no more, for good.
    pub(crate) fn is_stopping(&self, reason: &Reason) {
        if let Some(going) = &self.going {
            going.unmet(format!("stopping: {reason}"));
        }
    }

    /// Says whether requests are let in, as the gate does: whoever says it last looks last.
    pub(crate) fn show_gate(&self) {
        loop {
            let is_closed = self.intake.gate().is_closed();
            if is_closed {
                self.serving.unmet("paused");
            } else {
                self.serving.met();
            }
            if self.intake.gate().is_closed() == is_closed {
                return;
            }
        }
    }

    /// Fires a trigger elsewhere, because that wakes foreign code, and waits a while for it.
    pub(crate) fn fire(&self, trigger: &Trigger, reason: Reason, pace: &mut Pace) {
        let trigger = trigger.clone();
        let (errand, act) = Errand::new(&self.tempo, move |_| trigger.fire(reason));
        self.spare().take(act);
        let patience = Deadline::at(pace.now() + FIRING_MAX);
        if pace.wait(errand.ended(), patience).is_none()
            && let Ok(spare) = Spare::start()
        {
            // Whoever hangs there is not waited for, and the next is not to wait behind him.
            *self.spare() = spare;
        }
    }

    /// Has done elsewhere what there was no thread for.
    fn take_over(&self, begun: Result<(), Undone>) {
        if let Err(undone) = begun {
            self.spare().take(undone);
        }
    }

    fn spare(&self) -> MutexGuard<'_, Spare> {
        // Nothing that can panic runs under the lock.
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a callback called elsewhere.
    pub(crate) fn call(&self, name: &str, act: impl FnOnce() + Send + 'static) -> Errand<()> {
        let (errand, begun) = Errand::begin(&format!("on:{name}"), &self.tempo, move |_| act());
        self.take_over(begun);
        errand
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
        let (_, begun) = Errand::begin(&thread, &self.tempo, move |pace| {
            let Order { id, name, subject, since, deadline, reason } = order;
            let mut ending = subject.stop(deadline, &reason, pace);
            let testimony = Testimony::of(&*subject);
            let entry = shared.desk().release(id);
            let dropped = contain(|| drop((subject, entry)));
            if !ending.is_failure() {
                if let Some(panic) = &testimony.panic {
                    ending = Ending::Panicked(format!("{panic} (when it was asked)"));
                } else if let Err(panicked) = dropped {
                    ending = Ending::Panicked(format!("{} (when it was dropped)", panicked.message()));
                }
            }
            let took = pace.now().saturating_duration_since(since);
            shared.tell(&Event::ComponentEnded { name: &name, ending: &ending, took });
            shared.desk().end(id, took, ending, testimony);
            shared.moved.ring();
        });
        self.take_over(begun);
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
        if let Some(report) = self.report.get() {
            return report.clone();
        }
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
                        let subject = entry.subject.clone().filter(|_| entry.can_be_asked());
                        unknown.extend(subject.map(|subject| ((entry.id, entry.name.clone()), subject)));
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
        // Whoever asks a subject may be the last to have it, and its drop may hang: none is kept here.
        let (unknown, subjects): (Vec<_>, Vec<_>) = unknown.into_iter().unzip();
        for ((id, name), answer) in unknown.into_iter().zip(self.ask_all(subjects)) {
            let Some(testimony) = answer else {
                self.desk().note(id, None);
                continue;
            };
            let components = report.phases.iter_mut().flat_map(|phase| &mut phase.components);
            for component in components.filter(|component| component.name == name) {
                component.balance = testimony.balance;
                component.stragglers = testimony.stragglers.clone();
            }
        }
        report
    }

    fn ask_all(&self, subjects: Vec<Arc<dyn Subject>>) -> Vec<Option<Testimony>> {
        let patience = self.desk().patience_for_answers(self.tempo.now());
        ask(subjects, &self.tempo, patience)
    }

    /// Asks those whose deadline is about to come who is in flight there, before they give up on it.
    pub(crate) fn take_note(&self) {
        let (ids, subjects): (Vec<_>, Vec<_>) = self.desk().to_ask(self.tempo.now()).into_iter().unzip();
        for (id, answer) in ids.into_iter().zip(self.ask_all(subjects)) {
            self.desk().note(id, answer.map(|testimony| testimony.stragglers));
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

impl Drop for Shared {
    fn drop(&mut self) {
        // A program that has stopped is not ready again because nobody is left who says that it is not.
        if !self.trigger.is_triggered() {
            self.going.take();
        }
        if let Some(going) = self.going.take() {
            going.keep();
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
