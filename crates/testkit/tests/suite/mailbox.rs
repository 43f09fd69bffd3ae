//! A worker, stopped at every step.

use std::{
    collections::BTreeSet,
    num::NonZero,
    sync::{Arc, Mutex},
    time::Duration,
};

use ebbtide_mailbox::{
    DeadLetter, Mailbox, Message, Office,
    worker::{GiveUp, Retry, Worker},
};
use ebbtide_reactor::spawn;
use ebbtide_testkit::Scene;

use super::{MS, SECOND};

const MESSAGES: u8 = 6;

/// Messages that go well, fail once, always, or for good, and one that panics.
fn letters(scene: &Scene, concurrency: usize) {
    let mut runtime = scene.runtime();
    let office = Office::new(runtime.handle());
    let (work, dead) = (office.mailbox("work"), office.mailbox("dead"));
    let handled = Arc::new(Mutex::new(BTreeSet::new()));
    let (done, witness, timer) = (handled.clone(), scene.witness().clone(), runtime.handle());
    let handler = move |job: ebbtide_mailbox::worker::Job| {
        let (done, sleep) = (done.clone(), timer.sleep(3 * MS));
        witness.watch(async move {
            sleep.await;
            match job.body()[0] {
                1 if job.delivery().delivery_count == 1 => Err("once".into()),
                2 => Err("always".into()),
                3 => Err(GiveUp::because("for good").into()),
                number => {
                    done.lock().unwrap().insert(number);
                    Ok(None)
                }
            }
        })
    };
    let worker = Worker::builder(Arc::new(work.clone()), runtime.handle(), handler)
        .dead_letters(Arc::new(dead.clone()))
        .concurrency(NonZero::new(concurrency).unwrap())
        .retry(Retry::default().attempts(2).backoff(2 * MS, 2 * MS))
        .observer(|_| {})
        .build();
    scene.stops("worker", worker.clone());
    let (sends, token) = (work.clone(), scene.token());
    runtime.block_on(async move {
        let works = worker.clone();
        let task = spawn(async move { works.work().await });
        for number in 0..MESSAGES {
            sends.send(Message::new(vec![number])).await.unwrap();
        }
        let _ = token.wrap(ebbtide_reactor::sleep(30 * SECOND)).await;
        worker.stop(ebbtide_lifecycle::Reason::requested("the end"));
        task.ok().unwrap().await.unwrap().unwrap();
    });
    drop(runtime);
    // At once: what was not begun was released, and what was begun has been settled.
    let mut found = handled.lock().unwrap().clone();
    let released = work.take_unreceived();
    assert!(released.iter().all(|message| message.delay.duration() <= Duration::from_millis(2)));
    found.extend(released.iter().map(|message| message.body[0]));
    found.extend(
        dead.take_unreceived().into_iter().map(|letter| DeadLetter::decode(letter.body).unwrap().body[0]),
    );
    assert_eq!(found, (0..MESSAGES).collect(), "each is handled, in the mailbox, or a dead letter");
}

#[test]
fn m3_each_message_is_somewhere_whenever_a_worker_is_stopped() {
    for concurrency in [1, 3] {
        let summary = Scene::stop_at_every_step(move |scene| letters(scene, concurrency)).unwrap();
        assert!(summary.stopped > 5, "{summary}");
        Scene::seeds(0..200, move |scene| letters(scene, concurrency)).unwrap();
    }
}
