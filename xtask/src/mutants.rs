//! Deliberately broken twins of modelled code: a model that does not catch its mutant proves nothing.
//!
//! Each mutant is an edit of a file, made in a copy of the crate under `target/`. The edit must apply, the copy
//! must compile, and the model named must then fail. `ARCHITECTURE.md` says of each what is wrong with it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use crate::{
    ci::LOOM,
    shell::{cargo, output, package, read, root, timed, write},
    watched::Watched,
};

pub(crate) struct Mutant {
    /// As in `ARCHITECTURE.md`.
    pub(crate) name: &'static str,
    /// The crate's folder.
    folder: &'static str,
    file: &'static str,
    pub(crate) from: &'static str,
    to: &'static str,
    /// The model in `tests/loom.rs` that has to fail.
    pub(crate) caught_by: &'static str,
}

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "relaxed-leave",
        folder: "lifecycle",
        file: "src/gate/core.rs",
        from: "to whoever sees the gate idle.\n        let before = Word(self.word.fetch_sub(PERMIT, Ordering::Release));",
        to: "to whoever sees the gate idle.\n        let before = Word(self.word.fetch_sub(PERMIT, Ordering::Relaxed));",
        caught_by: "enter_against_close_against_wait",
    },
    Mutant {
        name: "relaxed-owned-leave",
        folder: "lifecycle",
        file: "src/gate/core.rs",
        from: "atomic.compare_exchange_weak(word.0, next, Ordering::AcqRel, Ordering::Relaxed)",
        to: "atomic.compare_exchange_weak(word.0, next, Ordering::Relaxed, Ordering::Relaxed)",
        caught_by: "owned_enter_against_close_against_wait",
    },
    Mutant {
        name: "check-then-add",
        folder: "lifecycle",
        file: "src/gate/core.rs",
        from: "Ok(_) => return Ok(()),\n                Err(seen) => word = Word(seen),",
        to: "Ok(_) => return Ok(()),\n                Err(_) => {\n                    self.word.fetch_add(one, Ordering::Acquire);\n                    return Ok(());\n                }",
        caught_by: "enter_against_close_against_wait",
    },
    Mutant {
        name: "ring-before-count",
        folder: "lifecycle",
        file: "src/gate/core.rs",
        from: "// Release: all that was done under the permit, to whoever",
        to: "if self.word().permits() == 1 && self.word().has_waiters() {\n            self.release_waiters();\n            self.word.fetch_sub(PERMIT, Ordering::Release);\n            return;\n        }\n        // To whoever",
        caught_by: "enter_against_close_against_wait",
    },
    Mutant {
        name: "ring-before-clear",
        folder: "lifecycle",
        file: "src/gate/core.rs",
        from: "self.word.fetch_and(!WAITERS, Ordering::Acquire);\n        self.settled.ring();",
        to: "self.settled.ring();\n        self.word.fetch_and(!WAITERS, Ordering::Acquire);",
        caught_by: "a_waiter_that_missed_an_idle_moment_sees_the_next",
    },
    Mutant {
        name: "close-without-ring",
        folder: "lifecycle",
        file: "src/gate/core.rs",
        from: "if Word(before.0 | marks).calls_for_a_ring() {",
        to: "if false {",
        caught_by: "a_waiter_for_drained_is_woken_by_the_close_of_an_empty_gate",
    },
    Mutant {
        name: "no-look-after-listening",
        folder: "lifecycle",
        file: "src/wait.rs",
        from: "match self.watch.look() {\n            Some(seen) => {",
        to: "match None {\n            Some(seen) => {",
        caught_by: "every_waiter_is_woken",
    },
    Mutant {
        name: "abandon-past-bookings",
        folder: "lifecycle",
        file: "src/gate/core.rs",
        from: "yield_now();\n                word = self.word();\n                continue;\n            }\n            // Now word",
        to: "}\n            // Now word",
        caught_by: "the_books_balance_when_abandon_returns_while_somebody_settles",
    },
    Mutant {
        name: "drained-before-booked",
        folder: "lifecycle",
        file: "src/gate/word.rs",
        from: "self.is_closed() && self.in_flight() == 0 && self.bookings() == 0",
        to: "self.is_closed() && self.in_flight() == 0",
        caught_by: "the_books_balance_for_all_who_see_an_abandoned_gate_drained",
    },
    Mutant {
        name: "relaxed-open",
        folder: "lifecycle",
        file: "src/gate/core.rs",
        from: "word.0 & !CLOSED,\n                Ordering::Release,",
        to: "word.0 & !CLOSED,\n                Ordering::Relaxed,",
        caught_by: "what_is_set_up_before_opening_is_seen_by_whoever_enters",
    },
    Mutant {
        name: "open-after-seal",
        folder: "lifecycle",
        file: "src/gate/core.rs",
        from: "while !word.is_sealed() {",
        to: "while !word.is_abandoned() {",
        caught_by: "a_start_cannot_open_the_gate_behind_a_stop",
    },
    Mutant {
        name: "ring-without-a-handle",
        folder: "lifecycle",
        file: "src/gate/core.rs",
        from: "count_out(atomic, booked + PERMIT, HANDLE)\n        };\n        match after {\n            After::Nothing => {}\n            After::Ring => {\n                // The exchange has counted this handle in.\n                let handle = Handle { core: self.core };\n                handle.settled.ring();",
        to: "count_out(atomic, booked + PERMIT, 0)\n        };\n        match after {\n            After::Nothing => {}\n            After::Ring => {\n                core.settled.ring();\n                core.alive.sing();",
        caught_by: "the_last_permit_may_outlive_the_last_handle",
    },
    Mutant {
        name: "free-without-fence",
        folder: "lifecycle",
        file: "src/gate/core.rs",
        from: "    fence(Ordering::Acquire);\n",
        to: "    fence(Ordering::Release);\n",
        caught_by: "the_last_permit_may_outlive_the_last_handle",
    },
    Mutant {
        name: "relaxed-drop-of-a-handle",
        folder: "lifecycle",
        file: "src/gate/core.rs",
        from: "let before = self.word.fetch_sub(HANDLE, Ordering::Release);",
        to: "let before = self.word.fetch_sub(HANDLE, Ordering::Relaxed);",
        caught_by: "the_last_permit_may_outlive_the_last_handle",
    },
    Mutant {
        name: "relaxed-put",
        folder: "reactor",
        file: "src/inbox.rs",
        from: "match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {\n                Ok(_) if word & ARMED",
        to: "match self.word.compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Relaxed) {\n                Ok(_) if word & ARMED",
        caught_by: "what_is_accepted_runs_in_order_and_what_is_refused_comes_back",
    },
    Mutant {
        name: "take-that-opens",
        folder: "reactor",
        file: "src/inbox.rs",
        from: "self.word.fetch_and(MARKS & !ARMED, Ordering::Acquire)",
        to: "self.word.swap(0, Ordering::Acquire)",
        caught_by: "what_is_accepted_runs_in_order_and_what_is_refused_comes_back",
    },
    Mutant {
        name: "take-newest-first",
        folder: "reactor",
        file: "src/inbox.rs",
        from: "next.store(after, Ordering::Relaxed);\n            match before {\n                Some(before) => (after, link) = (link.as_ptr(), before),\n                None => return Some((link, newest)),",
        to: "match before {\n                Some(before) => (after, link) = (link.as_ptr(), before),\n                None => return Some((newest, link)),",
        caught_by: "what_is_accepted_runs_in_order_and_what_is_refused_comes_back",
    },
    Mutant {
        name: "arm-by-store",
        folder: "reactor",
        file: "src/inbox.rs",
        from: "&& self.word.compare_exchange(word, word | ARMED, Ordering::Release, Ordering::Relaxed).is_ok()",
        to: "&& {\n                self.word.store(word | ARMED, Ordering::Relaxed);\n                true\n            }",
        caught_by: "two_posters_wake_a_loop_that_goes_to_sleep",
    },
    Mutant {
        name: "relaxed-arm",
        folder: "reactor",
        file: "src/inbox.rs",
        from: "self.word.compare_exchange(word, word | ARMED, Ordering::Release, Ordering::Relaxed)",
        to: "self.word.compare_exchange(word, word | ARMED, Ordering::Relaxed, Ordering::Relaxed)",
        caught_by: "whoever_is_to_wake_a_loop_sees_where_it_sleeps",
    },
    Mutant {
        name: "put-without-acquire",
        folder: "reactor",
        file: "src/inbox.rs",
        from: "compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {",
        to: "compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed) {",
        caught_by: "whoever_is_to_wake_a_loop_that_starts_sees_its_thread",
    },
    Mutant {
        name: "put-without-wake",
        folder: "reactor",
        file: "src/inbox.rs",
        from: "Ok(_) if word & ARMED != 0 => return Ok(Wake::Needed),",
        to: "Ok(_) if word & ARMED != 0 => return Ok(Wake::Needless),",
        caught_by: "two_posters_wake_a_loop_that_goes_to_sleep",
    },
    Mutant {
        name: "die-with-a-full-inbox",
        folder: "reactor",
        file: "src/inbox.rs",
        from: "while word & !MARKS == 0 {\n            // AcqRel",
        to: "while word & DEAD == 0 {\n            // AcqRel",
        caught_by: "a_wake_up_that_a_dead_inbox_refuses_is_told",
    },
    Mutant {
        name: "open-a-sealed-inbox",
        folder: "reactor",
        file: "src/inbox.rs",
        from: "while word & SEALED == 0 {",
        to: "while word & DEAD == 0 {",
        caught_by: "a_stop_during_the_start_keeps_the_inbox_shut",
    },
    Mutant {
        name: "clear-of-any-tick",
        folder: "reactor",
        file: "src/io/source.rs",
        from: "while word / TICK == seen.0 / TICK {",
        to: "loop {",
        caught_by: "whoever_waits_for_io_sees_all_that_arrives",
    },
    Mutant {
        name: "park-without-a-look",
        folder: "reactor",
        file: "src/io/source.rs",
        from: "        let seen = self.look();\n        let taken_back",
        to: "        let seen = Seen(0);\n        let taken_back",
        caught_by: "whoever_waits_for_io_of_a_loop_that_ends_is_told",
    },
    Mutant {
        name: "news-without-a-tick",
        folder: "reactor",
        file: "src/io/source.rs",
        from: "word.wrapping_add(TICK) | news.0,",
        to: "word | news.0,",
        caught_by: "whoever_waits_for_io_sees_all_that_arrives",
    },
    Mutant {
        name: "lingers-for-ever",
        folder: "offload",
        file: "src/worker.rs",
        from: "state.lane(self.which).crew.ends_lingering();",
        to: "",
        caught_by: "a_result_is_stored_before_its_waiter_is_woken",
    },
    Mutant {
        name: "wake-before-store",
        folder: "offload",
        file: "src/job.rs",
        from: "desk.result = Some(result);\n        self.ended.store(true, Ordering::Relaxed);\n        let waker = desk.waker.take();\n        drop(desk);\n        wake(waker);",
        to: "let waker = desk.waker.take();\n        drop(desk);\n        wake(waker);\n        lock(&self.desk).result = Some(result);\n        self.ended.store(true, Ordering::Relaxed);",
        caught_by: "a_result_is_stored_before_its_waiter_is_woken",
    },
    Mutant {
        name: "sleep-after-the-lock",
        folder: "offload",
        file: "src/worker.rs",
        from: "            state.lane(self.which).crew.sleeps(self.number);\n            break Found::TimeToSleep;\n        };\n        drop(desk);\n        drop(state);",
        to: "            break Found::TimeToSleep;\n        };\n        drop(desk);\n        drop(state);\n        if found == Found::TimeToSleep {\n            self.hub.lock().lane(self.which).crew.sleeps(self.number);\n        }",
        caught_by: "a_result_is_stored_before_its_waiter_is_woken",
    },
    Mutant {
        name: "rest-past-the-tray",
        folder: "offload",
        file: "src/tray.rs",
        from: "if !contents.entries.is_empty() {\n            return false;\n        }",
        to: "",
        caught_by: "a_result_is_stored_before_its_waiter_is_woken",
    },
    Mutant {
        name: "close-past-the-tray",
        folder: "offload",
        file: "src/ending.rs",
        from: "self.shut_tray(&mut state);\n        let was_open",
        to: "self.take_in(&mut state);\n        let was_open",
        caught_by: "what_is_accepted_has_run_when_a_closed_pool_is_idle_and_what_is_refused_never_runs",
    },
    Mutant {
        name: "look-past-the-tray",
        folder: "offload",
        file: "src/hub.rs",
        from: "        self.take_in(&mut state);\n        state\n",
        to: "        state\n",
        caught_by: "a_job_whose_waiter_goes_is_run_or_withdrawn_and_booked_once",
    },
    Mutant {
        name: "end-without-a-call",
        folder: "offload",
        file: "src/hub.rs",
        from: "            state.has_ended = true;\n            for which in Which::ALL {",
        to: "            state.has_ended = true;\n            for which in [] as [Which; 0] {",
        caught_by: "what_is_accepted_has_run_when_a_closed_pool_is_idle_and_what_is_refused_never_runs",
    },
    Mutant {
        name: "settle-without-ring",
        folder: "offload",
        file: "src/hub.rs",
        from: "aftermath.ring |= mem::take(&mut state.is_waited_for);",
        to: "state.is_waited_for = false;",
        caught_by: "a_job_whose_waiter_goes_is_run_or_withdrawn_and_booked_once",
    },
    Mutant {
        name: "no-look-at-the-count",
        folder: "offload",
        file: "src/batch.rs",
        from: "if count / ENDED < wanted {\n            return Poll::Pending;\n        }",
        to: "if count / ENDED < u64::MAX {\n            return Poll::Pending;\n        }",
        caught_by: "whoever_waits_for_a_batch_is_woken_by_the_last_that_he_waits_for",
    },
    Mutant {
        name: "waker-left-behind",
        folder: "offload",
        file: "src/batch.rs",
        from: "let unneeded = lock(&self.waker).take();",
        to: "let unneeded = None::<Waker>;",
        caught_by: "a_batch_that_has_ended_keeps_no_waker",
    },
    Mutant {
        name: "hand-over-without-wake",
        folder: "timeout",
        file: "src/desk.rs",
        from: "        let waker = state.wake_driver();\n        drop(state);\n        wake(waker);\n    }\n\n    /// What the driver has to take",
        to: "        drop(state);\n    }\n\n    /// What the driver has to take",
        caught_by: "what_is_late_is_driven_to_its_end_and_those_who_wait_see_it",
    },
    Mutant {
        name: "look-before-sleep",
        folder: "timeout",
        file: "src/desk.rs",
        from: "        let mut state = self.board.lock();\n        let arrived = mem::take(&mut *lock(&self.arrived));\n        let no_more",
        to: "        let arrived = mem::take(&mut *lock(&self.arrived));\n        let mut state = self.board.lock();\n        let no_more",
        caught_by: "what_is_late_is_driven_to_its_end_and_those_who_wait_see_it",
    },
    Mutant {
        name: "booked-before-dropped",
        folder: "timeout",
        file: "src/driver.rs",
        from: "            drop(contain(|| drop(runner)));\n            self.desk.board.settle(number, Outcome::Cancelled, now);",
        to: "            self.desk.board.settle(number, Outcome::Cancelled, now);\n            drop(contain(|| drop(runner)));",
        caught_by: "what_is_late_while_the_driver_is_dropped_is_dropped_and_booked_once",
    },
];

/// A broken model may run for ever: it is then not caught.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run() -> Result<(), String> {
    for mutant in MUTANTS {
        let (time, caught) = timed(|| mutant.is_caught());
        caught.map_err(|why| format!("mutant {}: {why}", mutant.name))?;
        println!("{:24} caught by {} ({:.1} s)", mutant.name, mutant.caught_by, time.as_secs_f64());
    }
    Ok(())
}

impl Mutant {
    fn is_caught(&self) -> Result<(), String> {
        let copy = Self::copy()?;
        self.break_in(&copy)?;
        let test = |args: &str| {
            let mut test = cargo(&format!("test --quiet --release --package {}", package(self.folder)));
            // Not the target directory of the sound code: cargo takes two copies of a workspace for the same.
            test.current_dir(&copy).env("CARGO_TARGET_DIR", root().join("target/twins-built"));
            test.envs(LOOM).args(["--test", "loom"]).args(args.split(' '));
            test
        };
        let built = output(&mut test("--no-run"))?;
        if !built.status.success() {
            return Err(format!("does not compile:\n{}", String::from_utf8_lossy(&built.stderr)));
        }
        let mut model = test(&format!("-- --exact {}", self.caught_by));
        let model = Watched::spawn(model.stdout(Stdio::null()).stderr(Stdio::null()), PATIENCE)?;
        if model.ends()?.success() {
            return Err(format!("survives {}", self.caught_by));
        }
        Ok(())
    }

    /// A workspace of its own, with the product's crates in it.
    fn copy() -> Result<PathBuf, String> {
        let copy = root().join("target/twins");
        if copy.exists() {
            fs::remove_dir_all(&copy).map_err(|error| error.to_string())?;
        }
        copy_folder(&root().join("crates"), &copy.join("crates"))?;
        let manifest = read(root().join("Cargo.toml"))?;
        let lines = manifest.lines().map(|line| match line.split(' ').next() {
            Some("members") => "members = [\"crates/*\"]".to_owned(),
            Some("default-members") => String::new(),
            _ => line.to_owned(),
        });
        write(copy.join("Cargo.toml"), &(lines.collect::<Vec<_>>().join("\n") + "\n"))?;
        write(copy.join("Cargo.lock"), &read(root().join("Cargo.lock"))?)?;
        Ok(copy)
    }

    fn break_in(&self, copy: &Path) -> Result<(), String> {
        let path = copy.join(self.path());
        write(&path, &self.broken(&read(&path)?)?)
    }

    /// The file that it breaks, from the root.
    pub(crate) fn path(&self) -> String {
        format!("crates/{}/{}", self.folder, self.file)
    }

    /// The file's text with the edit made.
    pub(crate) fn broken(&self, text: &str) -> Result<String, String> {
        match text.matches(self.from).count() {
            1 => Ok(text.replace(self.from, self.to)),
            found => Err(format!("its edit of {} applies in {found} places, not in one", self.file)),
        }
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    let error = |error: std::io::Error| format!("copying {}: {error}", from.display());
    fs::create_dir_all(to).map_err(error)?;
    for entry in fs::read_dir(from).map_err(error)? {
        let entry = entry.map_err(error)?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_folder(&from, &to)?;
        } else {
            fs::copy(&from, &to).map_err(error)?;
        }
    }
    Ok(())
}
