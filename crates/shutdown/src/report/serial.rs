//! The report for machines. Times are in seconds.

use ebbtide_lifecycle::{
    Balance,
    blame::{Straggler, Stragglers},
};
use serde::{Serialize, Serializer};

use super::{ComponentReport, Ending, IntakeReport, PhaseReport, Report};

/// `reason`, `stage`, `verdict`, `exit_code`, `seconds`, `warnings`, `callbacks`, `intake` and `phases`.
impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        View::from(self).serialize(serializer)
    }
}

#[derive(Serialize)]
struct View<'a> {
    reason: String,
    stage: String,
    verdict: String,
    exit_code: u8,
    seconds: f64,
    warnings: &'a [String],
    callbacks: Vec<CallbackView<'a>>,
    intake: Option<IntakeView>,
    phases: Vec<PhaseView<'a>>,
}

#[derive(Serialize)]
struct CallbackView<'a> {
    name: &'a str,
    #[serde(flatten)]
    ending: EndingView<'a>,
}

#[derive(Serialize)]
struct IntakeView {
    #[serde(flatten)]
    ending: EndingView<'static>,
    seconds: f64,
    balance: BalanceView,
    stragglers: StragglersView,
}

#[derive(Serialize)]
struct PhaseView<'a> {
    priority: i32,
    seconds: f64,
    components: Vec<ComponentView<'a>>,
}

#[derive(Serialize)]
struct ComponentView<'a> {
    name: &'a str,
    registered_at: String,
    #[serde(flatten)]
    ending: EndingView<'a>,
    seconds: f64,
    balance: Option<BalanceView>,
    stragglers: StragglersView,
}

#[derive(Serialize)]
struct EndingView<'a> {
    ending: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct BalanceView {
    accepted: u64,
    completed: u64,
    failed: u64,
    handed_back: u64,
    cancelled: u64,
    abandoned: u64,
    in_flight: u64,
    refused: u64,
    late: u64,
    returned_after: u64,
}

#[derive(Serialize)]
struct StragglersView {
    count: usize,
    untracked: usize,
    tracked: Vec<StragglerView>,
}

#[derive(Serialize)]
struct StragglerView {
    name: Option<String>,
    submitted_at: String,
    activity: String,
    seconds: f64,
    thread: Option<String>,
}

impl<'a> From<&'a Report> for View<'a> {
    fn from(report: &'a Report) -> Self {
        let callback = |callback: &'a super::CallbackReport| CallbackView {
            name: &callback.name,
            ending: (&callback.ending).into(),
        };
        Self {
            reason: report.reason.to_string(),
            stage: report.stage.to_string(),
            verdict: report.verdict().to_string(),
            exit_code: report.exit_code(),
            seconds: report.took.as_secs_f64(),
            warnings: &report.warnings,
            callbacks: report.callbacks.iter().map(callback).collect(),
            intake: report.intake.as_ref().map(IntakeView::from),
            phases: report.phases.iter().map(PhaseView::from).collect(),
        }
    }
}

impl From<&IntakeReport> for IntakeView {
    fn from(intake: &IntakeReport) -> Self {
        // A drain does not fail: it ends, or its time does.
        let ending = EndingView { ending: intake.ending.kind(), error: None };
        let seconds = intake.took.as_secs_f64();
        Self { ending, seconds, balance: intake.balance.into(), stragglers: (&intake.stragglers).into() }
    }
}

impl<'a> From<&'a PhaseReport> for PhaseView<'a> {
    fn from(phase: &'a PhaseReport) -> Self {
        let components = phase.components.iter().map(ComponentView::from).collect();
        Self { priority: phase.priority.0, seconds: phase.took().as_secs_f64(), components }
    }
}

impl<'a> From<&'a ComponentReport> for ComponentView<'a> {
    fn from(component: &'a ComponentReport) -> Self {
        Self {
            name: &component.name,
            registered_at: component.site.to_string(),
            ending: (&component.ending).into(),
            seconds: component.took.as_secs_f64(),
            balance: component.balance.map(BalanceView::from),
            stragglers: (&component.stragglers).into(),
        }
    }
}

impl<'a> From<&'a Ending> for EndingView<'a> {
    fn from(ending: &'a Ending) -> Self {
        let error = match ending {
            Ending::Failed(error) | Ending::Panicked(error) => Some(error.as_str()),
            _ => None,
        };
        Self { ending: ending.kind(), error }
    }
}

impl Ending {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Overdue => "overdue",
            Self::Failed(_) => "failed",
            Self::Panicked(_) => "panicked",
            Self::Hung => "hung",
            Self::Pending => "pending",
        }
    }
}

impl From<Balance> for BalanceView {
    fn from(balance: Balance) -> Self {
        Self {
            accepted: balance.accepted,
            completed: balance.completed,
            failed: balance.failed,
            handed_back: balance.handed_back,
            cancelled: balance.cancelled,
            abandoned: balance.abandoned,
            in_flight: balance.in_flight,
            refused: balance.refused,
            late: balance.late,
            returned_after: balance.returned_after,
        }
    }
}

impl From<&Stragglers> for StragglersView {
    fn from(stragglers: &Stragglers) -> Self {
        let tracked = stragglers.iter().map(StragglerView::from).collect();
        Self { count: stragglers.len(), untracked: stragglers.untracked(), tracked }
    }
}

impl From<&Straggler> for StragglerView {
    fn from(straggler: &Straggler) -> Self {
        Self {
            name: straggler.origin.name().map(str::to_owned),
            submitted_at: straggler.origin.site().to_string(),
            activity: straggler.activity.to_string(),
            seconds: straggler.age.as_secs_f64(),
            thread: straggler.thread.as_deref().map(str::to_owned),
        }
    }
}
