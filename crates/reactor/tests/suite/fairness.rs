//! Nobody on a loop can keep it from its I/O, and a loop that has nothing to do does nothing.

use std::{
    cell::Cell,
    future::Future,
    io::{Read, Write},
    num::NonZeroU32,
    os::unix::net::{UnixDatagram, UnixStream},
    rc::Rc,
    sync::mpsc,
    task::Poll,
    thread,
    time::Duration,
};

use ebbtide_reactor::{Async, Runtime, sleep, spawn, yield_now};
use futures_lite::{AsyncReadExt, AsyncWriteExt};

use super::{
    io::{A_MOMENT, unix_pair},
    running,
};

#[test]
fn e9_a_flood_of_self_wakes_starves_no_io() {
    let budget = 7;
    let mut runtime = Runtime::builder().turn_budget(NonZeroU32::new(budget).unwrap()).runtime();
    runtime.block_on(async {
        let (mut one, mut other) = unix_pair();
        let polls = Rc::new(Cell::new(0_u32));
        let count = polls.clone();
        let noise = spawn(async move {
            loop {
                count.set(count.get() + 1);
                yield_now().await;
            }
        })
        .unwrap();
        let reading = spawn(async move { one.read(&mut [0; 8]).await.unwrap() }).unwrap();
        yield_now().await;
        yield_now().await;
        other.write_all(b"x").await.unwrap();
        let before = polls.get();
        reading.await.unwrap();
        assert!(polls.get() - before <= 4 * budget, "{} polls of others", polls.get() - before);
        noise.cancel();
    });
}

#[test]
fn e9_a_main_future_that_wakes_itself_starves_no_io() {
    Runtime::new().block_on(async {
        let (mut one, mut other) = unix_pair();
        let reading = spawn(async move { one.read(&mut [0; 8]).await.unwrap() }).unwrap();
        yield_now().await;
        other.write_all(b"x").await.unwrap();
        let mut turns = 0;
        while !reading.is_finished() {
            turns += 1;
            assert!(turns < 1_000, "the reader starves");
            yield_now().await;
        }
    });
}

#[test]
fn e9_a_flood_of_posts_starves_no_io() {
    let events = running();
    let handle = events.handle();
    let (one, other) = UnixStream::pair().unwrap();
    let one = Async::new_on(&handle, one).unwrap();
    let (stop, stopped) = mpsc::channel::<()>();
    let flood = thread::spawn(move || {
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            handle.post(|| {}).unwrap();
        }
    });
    let reading = events.handle().spawn(async move {
        let mut one = one;
        one.read(&mut [0; 8]).await.unwrap()
    });
    thread::park_timeout(A_MOMENT);
    (&other).write_all(b"x").unwrap();
    let read = futures_lite::future::block_on(reading.unwrap());
    drop(stop);
    flood.join().unwrap();
    assert_eq!(read.unwrap(), 1);
}

#[test]
fn e9_a_source_that_is_always_ready_lets_others_go_first() {
    Runtime::new().block_on(async {
        let (one, _other) = Async::<UnixDatagram>::pair().unwrap();
        let zero = std::fs::File::open("/dev/zero").unwrap();
        let ran = Rc::new(Cell::new(false));
        let flag = ran.clone();
        let other_task = spawn(async move { flag.set(true) }).unwrap();
        let mut operations = 0;
        while !ran.get() {
            operations += 1;
            assert!(operations < 10_000, "the other task starves");
            one.read_with(|_| (&zero).read(&mut [0; 1])).await.unwrap();
        }
        other_task.await.unwrap();
    });
}

#[test]
fn more_pending_sources_than_a_task_may_use_in_a_row_starve_none_of_them() {
    Runtime::new().block_on(async {
        let pairs: Vec<_> = (0..300).map(|_| unix_pair()).collect();
        let mut reads: Vec<_> = pairs.iter().map(|(one, _)| Box::pin(one.readable())).collect();
        let mut polls = 0;
        let all = std::future::poll_fn(|cx| {
            polls += 1;
            reads.retain_mut(|read| read.as_mut().poll(cx).is_pending());
            if reads.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        });
        let last = &pairs[299].1;
        let rest = async {
            sleep(A_MOMENT).await;
            for (_, other) in &pairs {
                (&mut &*other).write_all(b"x").await.unwrap();
            }
            last
        };
        futures_lite::future::zip(all, rest).await;
        assert!(polls < 100, "{polls} polls: the task spins");
    });
}

/// How often a thread of this process has gone to sleep by itself.
#[cfg(target_os = "linux")]
fn times_asleep(thread: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_loop_does_not_wake_up() {
    let events = running();
    let (told, number) = mpsc::channel();
    let (_one, other) = UnixStream::pair().unwrap();
    let waiting = events.handle().spawn(async move {
        let link = std::fs::read_link("/proc/thread-self").unwrap();
        told.send(link.file_name().unwrap().to_str().unwrap().to_owned()).unwrap();
        let mut stream = Async::new(other).unwrap();
        futures_lite::future::or(
            async { drop(stream.read(&mut [0]).await) },
            sleep(Duration::from_secs(3600)),
        )
        .await;
    });
    let thread = number.recv().unwrap();
    // It may still be on its way to sleep.
    thread::park_timeout(5 * A_MOMENT);
    let before = times_asleep(&thread);
    thread::park_timeout(10 * A_MOMENT);
    assert_eq!(times_asleep(&thread), before, "it woke up for nothing");
    drop(waiting);
}
