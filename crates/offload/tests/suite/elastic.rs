//! The lane for blocking work.

use std::{
    cell::RefCell,
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use ebbtide_lifecycle::time::{ThreadTimer, Timer};
use ebbtide_offload::Pool;
use futures_lite::future::block_on;

use super::settled;

#[test]
fn each_blocking_job_has_a_thread_of_its_own_up_to_the_limit() {
    let pool = Pool::builder().cpu_threads(1).blocking_threads(8).start().unwrap();
    let meeting = Arc::new(Barrier::new(8));
    let jobs: Vec<_> = (0..8)
        .map(|_| {
            let meeting = meeting.clone();
            pool.blocking().offload(move || meeting.wait().is_leader())
        })
        .collect();
    let leaders = jobs.into_iter().map(|job| job.wait().unwrap()).filter(|leads| *leads);
    assert_eq!(leaders.count(), 1);
    assert_eq!(pool.stats().blocking.threads, 8);
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let jobs: Vec<_> = (0..20)
        .map(|_| {
            let held = held.clone();
            pool.blocking().offload(move || {
                let _ = held.lock().unwrap().recv();
            })
        })
        .collect();
    assert_eq!(pool.stats().blocking.threads, 8);
    drop(release);
    for job in jobs {
        job.wait().unwrap();
    }
    assert_eq!(settled(&pool).completed, 28);
}

#[test]
fn threads_leave_when_they_have_had_nothing_to_do_and_one_stays() {
    let pool = Pool::builder().cpu_threads(1).keep_alive(Duration::from_millis(5)).start().unwrap();
    let meeting = Arc::new(Barrier::new(4));
    let meet = |_| {
        let meeting = meeting.clone();
        pool.blocking().offload(move || meeting.wait().is_leader())
    };
    for job in (0..4).map(meet).collect::<Vec<_>>() {
        job.wait().unwrap();
    }
    while pool.stats().blocking.threads > 1 {
        thread::yield_now();
    }
    assert_eq!(pool.blocking().offload(|| 1).wait().unwrap(), 1);
    assert_eq!(settled(&pool).completed, 5);
}

#[test]
fn blocking_work_does_not_hold_up_cpu_work() {
    let pool = Pool::builder().cpu_threads(1).start().unwrap();
    let (release, held) = mpsc::channel::<()>();
    let blocked = pool.blocking().offload(move || {
        let _ = held.recv();
    });
    assert_eq!(pool.offload(|| 1).wait().unwrap(), 1);
    drop(release);
    blocked.wait().unwrap();
}

/// How long the threads of this name have kept a CPU busy, in hundredths of a second.
fn busy_time(name: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let stat =
        tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default());
    let own = stat.filter(|stat| stat.contains(name));
    own.map(|stat| {
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    })
    .sum()
}

#[test]
fn the_thread_that_stays_sleeps() {
    let builder = Pool::builder().name("sleeper").cpu_threads(1).keep_alive(Duration::from_millis(1));
    let pool = builder.start().unwrap();
    pool.blocking().offload(|| ()).wait().unwrap();
    let timer = ThreadTimer::start().unwrap();
    block_on(timer.sleep(Duration::from_millis(300)).unwrap());
    assert!(busy_time("(sleeper") < 10, "less than a third of the time");
    drop(pool);
}

/// Takes a while to be dropped, and counts that.
struct Slow(Arc<AtomicUsize>);

impl Drop for Slow {
    fn drop(&mut self) {
        (0..1000).for_each(|_| thread::yield_now());
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

thread_local! {
    static SLOW: RefCell<Option<Slow>> = const { RefCell::new(None) };
}

#[test]
fn a_dropped_pool_has_waited_for_threads_that_were_started_meanwhile() {
    let (ended, meeting) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(4)));
    let pool = Pool::builder().cpu_threads(1).start().unwrap();
    let ledger = pool.ledger();
    // Each job that begins has a thread started for the next one; all of them have to have begun.
    let job = |_| {
        let (ended, meeting) = (ended.clone(), meeting.clone());
        move || {
            SLOW.set(Some(Slow(ended)));
            meeting.wait().is_leader()
        }
    };
    pool.blocking().offload_all((0..4).map(job)).detach();
    drop(pool);
    assert_eq!((ended.load(Ordering::SeqCst), ledger.balance(0).late), (4, 4));
}

#[test]
fn a_dropped_pool_has_waited_for_those_who_were_leaving() {
    let (ended, meeting) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(4)));
    let pool = Pool::builder().cpu_threads(1).keep_alive(Duration::ZERO).start().unwrap();
    let job = |_| {
        let (ended, meeting) = (ended.clone(), meeting.clone());
        pool.blocking().offload(move || {
            SLOW.set(Some(Slow(ended)));
            meeting.wait().is_leader()
        })
    };
    for job in (0..4).map(job).collect::<Vec<_>>() {
        job.wait().unwrap();
    }
    drop(pool);
    assert_eq!(ended.load(Ordering::SeqCst), 4);
}
