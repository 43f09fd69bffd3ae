//! The loop against tokio's current-thread runtime with a `LocalSet`, smol and monoio.

mod echo;
mod floor;
mod posts;
mod reply;
mod tasks;
mod timers;

use crate::areas::{Need, Part};

pub(crate) use self::{echo::serve, tasks::yield_once};

pub(crate) const PARTS: [Part; 7] = [
    Part::new("tasks", tasks::run),
    Part::new("timers", timers::run),
    Part::new("sleepers", || timers::sleepers().into()),
    Part::new("posts", posts::run),
    Part::new("reply", || reply::replies().into()),
    Part::new("echo", || vec![echo::requests()]),
    Part::new("instructions", || vec![echo::instructions()]).needs(&[Need::Valgrind]),
];
