//! The ops that plans are made of, and how a plan is read with them.

use std::ffi::OsStr;

use ebbtide::{dag::json::JsonPlan, lifecycle::time::VirtualClock};
use ebbtide_rank::{Endpoints, Request, Rows};

use crate::{fault::Fault, library::Library};

pub(crate) type Registry = ebbtide::dag::json::Registry<Request, Rows>;
pub(crate) type Plan = JsonPlan<Request, Rows>;

/// For plans that are looked at and not run: its clock does not go on.
pub(crate) fn for_checking() -> Registry {
    ebbtide_rank::registry(VirtualClock::new(), &Endpoints::demo())
}

/// Reads a plan. If it has mistakes, all are told.
pub(crate) fn read(registry: &Registry, library: &Library, wanted: &OsStr) -> Result<Plan, Fault> {
    let found = library.read(wanted)?;
    registry.plan(&found.text).map_err(|errors| {
        let count = errors.iter().count();
        let mistakes = if count == 1 { "a mistake".to_owned() } else { format!("{count} mistakes") };
        let lines: String = errors.iter().map(|error| format!("\n  {error}")).collect();
        Fault::data(format!("{} has {mistakes}:{lines}", found.path.display()))
    })
}
