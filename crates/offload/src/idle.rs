//! Waiting for the end of all work.

use std::{fmt, sync::Arc};

use ebbtide_lifecycle::wait::{Bell, Watch};

use crate::hub::Hub;

/// What [`Pool::wait_idle`](crate::Pool::wait_idle) waits for.
pub struct Idle {
    hub: Arc<Hub>,
}

impl Idle {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self { hub }
    }
}

impl Watch for Idle {
    type Seen = ();

    fn look(&self) -> Option<()> {
        self.hub.lock_up_to_date().is_idle().then_some(())
    }

    fn bell(&self) -> &Bell {
        &self.hub.settled
    }

    fn announce(&self) {
        self.hub.lock().is_waited_for = true;
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle").finish_non_exhaustive()
    }
}

/// Waits until the pool is closed and nothing is in flight that was not given up on.
pub(crate) struct Drained {
    hub: Arc<Hub>,
}

impl Drained {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self { hub }
    }
}

impl Watch for Drained {
    type Seen = ();

    fn look(&self) -> Option<()> {
        self.hub.lock_up_to_date().is_drained().then_some(())
    }

    fn bell(&self) -> &Bell {
        &self.hub.settled
    }

    fn announce(&self) {
        self.hub.lock().is_waited_for = true;
    }
}
