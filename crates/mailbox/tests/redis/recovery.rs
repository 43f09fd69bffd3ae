//! What becomes of a message when a shutdown interrupts its worker: the rows of the origin's table, on both mailboxes.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ebbtide_lifecycle::{
    Reason, Trigger,
    time::{Timer, VirtualClock},
};
use ebbtide_mailbox::{
    Delivery, Mailbox, Message, Office, Pull, Settlement, Span,
    worker::{Leases, Worker, WorkerBuilder},
};
use ebbtide_redis::LinkTimer;

use crate::{Site, UNIT, finish};

/// A mailbox, and the time that it lives in.
trait Ground {
    type Time: Timer<Sleep: Send> + Clone + Send + Sync + 'static;

    fn time(&self) -> Self::Time;

    /// The same one each time.
    fn mailbox(&self) -> Arc<dyn Mailbox>;

    fn run<F: Future>(&self, future: F) -> F::Output;
}

struct InMemory {
    clock: VirtualClock,
    office: Office<VirtualClock>,
}

impl InMemory {
    fn new() -> Self {
        let clock = VirtualClock::new();
        Self { office: Office::new(clock.clone()), clock }
    }
}

impl Ground for InMemory {
    type Time = VirtualClock;

    fn time(&self) -> VirtualClock {
        self.clock.clone()
    }

    fn mailbox(&self) -> Arc<dyn Mailbox> {
        Arc::new(self.office.mailbox("orders"))
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.clock.block_on(future)
    }
}

impl Ground for Site {
    type Time = LinkTimer;

    fn time(&self) -> LinkTimer {
        self.link.timer().clone()
    }

    fn mailbox(&self) -> Arc<dyn Mailbox> {
        Arc::new(self.open("orders"))
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        finish(future)
    }
}

/// A worker whose handler notes what it begins, and goes on until the test lets it.
struct Scene<'a, G: Ground> {
    ground: &'a G,
    mailbox: Arc<dyn Mailbox>,
    begun: Trigger,
    finish: Trigger,
    handled: Arc<Mutex<Vec<String>>>,
    told: Arc<Mutex<Vec<String>>>,
}

impl<'a, G: Ground> Scene<'a, G> {
    /// So many messages are in the mailbox.
    fn new(ground: &'a G, messages: usize) -> Self {
        let mailbox = ground.mailbox();
        for n in 0..messages {
            ground.run(mailbox.send(Message::new(n.to_string()))).unwrap();
        }
        let (begun, finish) = (Trigger::new(), Trigger::new());
        Self { ground, mailbox, begun, finish, handled: Arc::default(), told: Arc::default() }
    }

    fn worker(&self) -> WorkerBuilder<G::Time> {
        let (begun, finish, handled) = (self.begun.clone(), self.finish.token(), self.handled.clone());
        let told = self.told.clone();
        Worker::builder(self.mailbox.clone(), self.ground.time(), move |job| {
            handled.lock().unwrap().push(String::from_utf8_lossy(job.body()).into_owned());
            begun.fire(reason());
            let finished = finish.triggered();
            async move {
                finished.await;
                Ok(None)
            }
        })
        .observer(move |event| told.lock().unwrap().push(event.to_string()))
    }

    /// Runs the worker; the rest is done once it has begun with a message and was then told to stop. It must come to
    /// its end before the worker does, which waits for the message.
    fn shut_down<F: Future<Output = ()>>(&self, worker: &Worker<G::Time>, rest: F) {
        let is_over = AtomicBool::new(false);
        self.ground.run(async {
            let mut beside = pin!(async {
                self.begun.token().triggered().await;
                worker.stop(reason());
                rest.await;
                is_over.store(true, Ordering::Relaxed);
                self.finish.fire(reason());
            });
            let mut work = pin!(worker.work());
            poll_fn(|cx| {
                if !is_over.load(Ordering::Relaxed) {
                    let _ = beside.as_mut().poll(cx);
                }
                work.as_mut().poll(cx)
            })
            .await
            .unwrap();
        });
        assert!(is_over.into_inner(), "it has not waited for the message in flight");
    }

    /// What another worker gets, as many as are wanted.
    async fn receive(&self, wanted: usize) -> Vec<Delivery> {
        let mut received = Vec::new();
        while received.len() < wanted {
            received.extend(self.mailbox.receive(Pull::default().wait(5 * UNIT).unwrap()).await.unwrap());
        }
        received
    }

    async fn is_out_of_sight(&self) {
        let received = self.mailbox.receive(Pull::default().wait(Duration::ZERO).unwrap()).await.unwrap();
        assert!(received.is_empty(), "{received:?}");
    }

    /// How many messages there are.
    fn left(&self) -> u64 {
        self.ground.run(self.mailbox.counts()).unwrap().all()
    }

    fn handled(&self) -> Vec<String> {
        self.handled.lock().unwrap().clone()
    }
}

fn reason() -> Reason {
    Reason::requested("test")
}

fn bodies(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(|delivery| String::from_utf8_lossy(&delivery.body).into_owned()).collect()
}

#[test]
fn m3_in_flight_when_shutdown_is_triggered_completes_normally_and_is_acknowledged() {
    fn row(ground: &impl Ground) {
        let scene = Scene::new(ground, 1);
        let worker = scene.worker().build();
        scene.shut_down(&worker, scene.is_out_of_sight());
        assert_eq!(worker.balance().to_string(), "accepted 1, completed 1");
        assert_eq!((scene.handled(), scene.left()), (vec!["0".to_owned()], 0));
    }
    row(&InMemory::new());
    row(&Site::new());
}

#[test]
fn m3_received_but_not_started_is_released_immediately_and_redelivered() {
    fn row(ground: &impl Ground) {
        let scene = Scene::new(ground, 10);
        let worker = scene.worker().build();
        scene.shut_down(&worker, async {
            let others = scene.receive(9).await;
            let wanted: Vec<_> = (1..10).map(|n| n.to_string()).collect();
            assert_eq!(bodies(&others), wanted, "all of them, in their order");
            assert!(others.iter().all(|other| other.delivery_count == 1), "the delivery is not counted");
        });
        assert_eq!(worker.balance().to_string(), "accepted 10, completed 1, handed back 9");
        assert_eq!((scene.handled(), scene.left()), (vec!["0".to_owned()], 9));
    }
    row(&InMemory::new());
    row(&Site::new());
}

#[test]
fn m3_never_received_is_still_in_the_queue_and_picked_up_by_another_worker() {
    fn row(ground: &impl Ground) {
        let scene = Scene::new(ground, 3);
        let one = Pull::default().max(1).unwrap();
        let worker = scene.worker().pull(one).build();
        scene.shut_down(&worker, async {});
        assert_eq!(worker.balance().to_string(), "accepted 1, completed 1");
        let other = scene.worker().pull(one).max_iterations(2).build();
        ground.run(other.work()).unwrap();
        assert_eq!(other.balance().to_string(), "accepted 2, completed 2");
        assert_eq!((scene.handled(), scene.left()), (["0", "1", "2"].map(String::from).to_vec(), 0));
    }
    row(&InMemory::new());
    row(&Site::new());
}

/// No reaper has to run: whoever receives finds it.
#[test]
fn m2_visibility_expired_during_a_long_shutdown_is_requeued_and_redelivered() {
    fn row(ground: &impl Ground) {
        let scene = Scene::new(ground, 1);
        let lease = Pull::default().visibility(Span::new(5 * UNIT).unwrap());
        // One that gives its handler no more than that.
        let worker = scene.worker().pull(lease).leases(Leases::Never).build();
        scene.shut_down(&worker, async {
            scene.is_out_of_sight().await;
            let again = scene.receive(1).await.remove(0);
            assert_eq!((&again.body[..], again.delivery_count), (&b"0"[..], 2));
            scene.mailbox.settle(again.receipt, Settlement::Ack).await.unwrap();
        });
        assert_eq!(worker.balance().to_string(), "accepted 1, failed 1", "it was too late to acknowledge it");
        let told = scene.told.lock().unwrap();
        assert!(told.last().unwrap().contains("the receipt has expired"), "{told:?}");
        assert_eq!(scene.left(), 0);
    }
    row(&InMemory::new());
    row(&Site::new());
}
