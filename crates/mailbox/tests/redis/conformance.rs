//! What every mailbox is checked with.

use std::{future::Future, sync::Arc, time::Duration};

use ebbtide_lifecycle::{contain, time::Timer};
use ebbtide_mailbox::{
    Address, Boxed, Limits, Mailbox,
    conformance::{self, Specimen},
};
use ebbtide_redis::Command;

use crate::{Site, UNIT, finish};

struct OnRedis<'a> {
    site: &'a Site,
    mailbox: Arc<dyn Mailbox>,
    unit: Duration,
}

impl Specimen for OnRedis<'_> {
    fn mailbox(&self) -> Arc<dyn Mailbox> {
        self.mailbox.clone()
    }

    fn other(&self, name: &str) -> (Address, Arc<dyn Mailbox>) {
        (name.into(), Arc::new(self.site.open_with(name, self.limits())))
    }

    fn limits(&self) -> Limits {
        Limits { capacity: 20, body: 1000 }
    }

    fn unit(&self) -> Duration {
        self.unit
    }

    fn pass(&self, time: Duration) -> Boxed<'_, ()> {
        Box::pin(self.site.link.timer().sleep(time).expect("within the clock's time"))
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        finish(future)
    }
}

#[test]
fn a_mailbox_on_redis_conforms() {
    let site = Site::new();
    let check = |unit| {
        let clauses = conformance::mailbox(|| {
            site.ask(Command::new("FLUSHALL"));
            let limits = Limits { capacity: 20, body: 1000 };
            OnRedis { site: &site, mailbox: Arc::new(site.open_with("one", limits)), unit }
        });
        assert_eq!(clauses, conformance::CLAUSES);
    };
    // A machine that stalls a thread for longer than a unit makes any mailbox fail: then it is tried with longer ones.
    if [UNIT, 3 * UNIT].into_iter().all(|unit| contain(|| check(unit)).is_err()) {
        check(10 * UNIT);
    }
}
