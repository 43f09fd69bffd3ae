//! What all handles of a link, its answers and its drivers share.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ebbtide_lifecycle::{Admission, Gate, Intake, Outcome, OwnedPermit, Refusal, time::Clock};

use crate::{
    answer::{Answer, Debt, Owed, Slot, Unclaimed},
    command::{Command, Frozen},
    driver::drive,
    error::{Error, Why},
    lane::{Interrupt, Lane, Orders, Request},
    settings::Settings,
    timer::{LinkTimer, later},
    value::Value,
    wire::Stream,
};

/// What is run on an executor for a link: one for its commands, and one for each that blocks at the same time.
pub type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection, when it is there.
pub(crate) type Connecting = Pin<Box<dyn Future<Output = io::Result<Pin<Box<dyn Stream>>>> + Send>>;

pub(crate) struct Core {
    pub(crate) address: Arc<str>,
    pub(crate) settings: Settings,
    pub(crate) timer: LinkTimer,
    pub(crate) connect: Box<dyn Fn() -> Connecting + Send + Sync>,
    pub(crate) spawn: Box<dyn Fn(Driver) + Send + Sync>,
    pub(crate) intake: Intake<LinkTimer>,
    /// Those that block.
    pub(crate) waits: Gate,
    /// The connection of all that do not block.
    pub(crate) main: Arc<Lane>,
    pub(crate) lanes: Mutex<Lanes>,
    /// Whether a stop has cut something off.
    pub(crate) cut_off: AtomicBool,
}

/// So many connections for commands that block are kept for those that come next. A server has ten thousand for all,
/// and a crowd may wait only once.
const FREE_MAX: usize = 8;

/// The connections of a link.
#[derive(Default)]
pub(crate) struct Lanes {
    pub(crate) all: Vec<Arc<Lane>>,
    /// Those for commands that block and have none.
    pub(crate) free: Vec<Arc<Lane>>,
}

/// What is asked, and on which terms.
pub(crate) struct Question {
    pub(crate) command: Frozen,
    pub(crate) unclaimed: Option<Unclaimed>,
    /// How long the server may block, if it does.
    pub(crate) wait: Option<Duration>,
}

impl Core {
    pub(crate) fn ask(self: &Arc<Self>, question: Question) -> Answer {
        let Question { command, unclaimed, wait } = question;
        let what = command.name;
        let failed = |why| Answer::given(self.clone(), Err(Error::new(what, &self.address, why)));
        if let Err(why) = self.measure(&command) {
            return failed(why);
        }
        let refused = |refusal| failed(Why::Refused(refusal));
        let seat = match wait.map(|_| self.seat()).transpose() {
            Ok(seat) => seat,
            Err(why) => return refused(why),
        };
        let admission = match self.intake.admit_as(&command.origin) {
            Ok(admission) => admission,
            Err(why) => return refused(why),
        };
        let slot = Arc::new(Slot::new(what));
        let debt = Debt { owed: Owed(Some(slot.clone())), unclaimed, admission };
        let request = self.request(command, debt, wait.unwrap_or_default(), seat);
        if wait.is_none() {
            self.put(&self.main, request);
            return Answer::new(slot, self.clone(), None);
        }
        let lane = self.free_lane();
        self.put(&lane, request);
        Answer::new(slot, self.clone(), Some(lane))
    }

    pub(crate) fn tell(&self, command: Frozen) -> Result<(), Error> {
        let refused = |why| Error::new(command.name, &self.address, why);
        self.measure(&command).map_err(refused)?;
        let admission = self.intake.admit_as(&command.origin);
        let admission = admission.map_err(|refusal| refused(Why::Refused(refusal)))?;
        let debt = Debt { owed: Owed(None), unclaimed: None, admission };
        self.put(&self.main, self.request(command, debt, Duration::ZERO, None));
        Ok(())
    }

    /// Refuses what the server would close the connection over.
    fn measure(&self, command: &Frozen) -> Result<(), Why> {
        let (size, limit) = (command.longest, self.settings.command_max);
        if size > limit { Err(Why::TooLong { size, limit }) } else { Ok(()) }
    }

    fn request(&self, command: Frozen, debt: Debt, wait: Duration, seat: Option<OwnedPermit>) -> Request {
        let Settings { patience, timeout, .. } = self.settings;
        let by = later(self.timer.now(), patience);
        let patience = wait.saturating_add(timeout);
        let (what, batch) = (command.name, command.batch);
        let command = Some(command);
        Request { what, command, parts: None, batch, debt, seat, by, patience, unblocks: None, about: None }
    }

    fn put(&self, lane: &Lane, request: Request) {
        if let Some((request, orders)) = lane.put(request) {
            self.fail(request, if orders == Orders::Orphaned { Why::Undriven } else { Why::Stopped });
        }
    }

    /// Sends `command` as the rest of what was admitted: also while the link stops. Nobody waits for its answer.
    pub(crate) fn follow(&self, command: Command, admission: Admission<LinkTimer>) {
        self.put(&self.main, self.following(command, admission));
    }

    fn following(&self, command: Command, admission: Admission<LinkTimer>) -> Request {
        let debt = Debt { owed: Owed(None), unclaimed: None, admission };
        self.request(command.freeze(), debt, Duration::ZERO, None)
    }

    /// Nobody waits any more for the answer to a command that blocks.
    pub(crate) fn interrupt(&self, lane: &Arc<Lane>, slot: &Arc<Slot>) {
        self.end(lane, lane.interrupt(slot, self.timer.now(), self.settings.timeout));
    }

    /// The server was told to unblock a command, and has not answered it.
    pub(crate) fn interrupt_again(&self, lane: &Arc<Lane>) {
        self.end(lane, lane.interrupt_again(self.timer.now(), self.settings.timeout));
    }

    fn end(&self, lane: &Arc<Lane>, interrupt: Interrupt) {
        match interrupt {
            Interrupt::Nothing => {}
            Interrupt::Unsent(request) => {
                self.withdraw(*request);
                self.set_free(lane);
            }
            Interrupt::Unblock { client, admission } => {
                let mut request =
                    self.following(Command::new("CLIENT").arg("UNBLOCK").int(client), admission);
                request.about = Some(lane.clone());
                self.put(&self.main, request);
            }
        }
    }

    /// Ends the commands that are parked. Those that are parked after this see that the link stops.
    pub(crate) fn recall(&self) {
        for lane in self.all_lanes() {
            lane.parked().into_iter().for_each(|(slot, _)| self.interrupt(&lane, &slot));
        }
    }

    /// A place among those that block; that of one that is parked, which is ended, if there is no other.
    fn seat(&self) -> Result<OwnedPermit, Refusal> {
        self.waits.enter_owned().or_else(|refusal| {
            let parked = self.all_lanes().into_iter().find_map(|lane| {
                let (slot, seat) = lane.parked()?;
                // One without a place has been ended already, and is not answered yet.
                let seat = seat?;
                self.interrupt(&lane, &slot);
                Some(seat)
            });
            parked.ok_or(refusal)
        })
    }

    fn free_lane(self: &Arc<Self>) -> Arc<Lane> {
        let mut lanes = self.lanes();
        if let Some(lane) = lanes.free.pop() {
            return lane;
        }
        let lane = Arc::new(Lane::new(true));
        lanes.all.push(lane.clone());
        let seed = lanes.all.len() as u64;
        drop(lanes);
        (self.spawn)(Box::pin(drive(self.clone(), lane.clone(), seed)));
        lane
    }

    /// A connection has nothing to do any more.
    pub(crate) fn set_free(&self, lane: &Arc<Lane>) {
        if lane.blocks && lane.rest() {
            self.keep(lane);
        }
    }

    /// Keeps a connection for the next command that blocks, or closes it, if there are enough.
    fn keep(&self, lane: &Arc<Lane>) {
        let mut lanes = self.lanes();
        if lanes.free.len() < FREE_MAX {
            return lanes.free.push(lane.clone());
        }
        lanes.all.retain(|other| !Arc::ptr_eq(other, lane));
        drop(lanes);
        lane.order(Orders::End);
    }

    pub(crate) fn lanes(&self) -> MutexGuard<'_, Lanes> {
        // Nothing that can panic runs under the lock.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_lanes(&self) -> Vec<Arc<Lane>> {
        self.lanes().all.clone()
    }

    pub(crate) fn order(&self, orders: Orders) {
        for lane in self.all_lanes() {
            lane.order(orders);
        }
    }

    /// Ends everything that is still there.
    pub(crate) fn cut(&self) {
        for request in self.all_lanes().into_iter().flat_map(|lane| lane.cut(Orders::End)) {
            self.cut_off.store(true, Ordering::Release);
            self.fail(request, Why::Stopped);
        }
    }

    /// Gives `value` to whom it is for: `first`, or, with the next of `others`, all whose command it answers.
    pub(crate) fn answer_next(
        &self,
        first: Request,
        others: &mut impl Iterator<Item = Request>,
        value: Value,
    ) {
        let Some(parts) = first.parts else { return self.answer(first, value) };
        let requests = [first].into_iter().chain(others.take(parts - 1));
        match value {
            Value::Array(values) if values.len() == parts => {
                requests.zip(values).for_each(|(request, value)| self.answer(request, value));
            }
            // It went wrong for all of them.
            value => requests.for_each(|request| self.answer(request, value.clone())),
        }
    }

    fn answer(&self, request: Request, value: Value) {
        match value {
            Value::Refusal(error) => self.fail(request, Why::Server(error)),
            value => self.pay(request, Ok(value), Outcome::Completed),
        }
    }

    fn pay(&self, mut request: Request, result: Result<Value, Error>, outcome: Outcome) {
        let about = request.about.take();
        request.free().pay(self, result, outcome);
        if let Some(lane) = about.filter(|lane| lane.was_unblocked()) {
            self.keep(&lane);
        }
    }

    pub(crate) fn fail(&self, request: Request, why: Why) {
        let outcome = match &why {
            Why::Unreachable { .. } => Outcome::HandedBack,
            Why::Stopped | Why::Undriven => Outcome::Cancelled,
            _ => Outcome::Failed,
        };
        let error = Error::new(request.what, &self.address, why);
        self.pay(request, Err(error), outcome);
    }

    /// Nobody wanted it any more before it was sent.
    pub(crate) fn withdraw(&self, request: Request) {
        self.fail(request, Why::Stopped);
    }
}
