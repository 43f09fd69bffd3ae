//! What is to be proved, and by what.

use super::proof::PROOFS;

/// Something that must be true of ebbtide.
pub(super) struct Property {
    pub(super) number: u8,
    pub(super) says: &'static str,
    pub(super) claims: &'static [Claim],
}

/// Who speaks for a property.
pub(super) enum Claim {
    /// These of a proof's findings; with none named, all of them.
    By(&'static str, &'static [&'static str]),
    /// A tool that would, and why it does not.
    Not(&'static str, &'static str),
}

use Claim::{By, Not};

impl Property {
    /// As the table has it.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.number, self.says)
    }
}

impl Claim {
    /// What the table calls the one who speaks.
    pub(super) fn tool(&self) -> &'static str {
        match self {
            Not(tool, _) => tool,
            By(name, _) => {
                let proof = PROOFS.iter().find(|proof| proof.name == *name);
                proof.expect("a test looks for the proof of each claim").tool
            }
        }
    }
}

pub(super) const PROPERTIES: &[Property] = &[
    Property {
        number: 1,
        says: "what is accepted runs exactly once",
        claims: &[
            By(
                "loom",
                &[
                    "what_is_accepted_runs_in_order_and_what_is_refused_comes_back",
                    "a_post_against_a_stop_of_another_thread",
                    "two_posters_wake_a_loop_that_goes_to_sleep",
                    "enter_against_close_against_wait",
                    "owned_enter_against_close_against_wait",
                    "what_is_accepted_has_run_when_a_closed_pool_is_idle_and_what_is_refused_never_runs",
                ],
            ),
            By("shuttle", &["several_posters_against_a_stop"]),
            By("soak", &["loop"]),
            By("explore", &[]),
        ],
    },
    Property {
        number: 2,
        says: "what is refused never runs, comes back, and is dropped once",
        claims: &[
            By(
                "loom",
                &[
                    "what_is_accepted_runs_in_order_and_what_is_refused_comes_back",
                    "a_post_against_a_stop_of_another_thread",
                    "what_is_accepted_has_run_when_a_closed_pool_is_idle_and_what_is_refused_never_runs",
                    "a_job_that_is_handed_back_is_not_run_by_the_pool",
                ],
            ),
            By("shuttle", &["several_posters_against_a_stop"]),
            By("soak", &["loop"]),
        ],
    },
    Property {
        number: 3,
        says: "nothing is accepted after the flip",
        claims: &[
            By(
                "loom",
                &[
                    "what_is_accepted_runs_in_order_and_what_is_refused_comes_back",
                    "enter_against_close_against_wait",
                    "a_start_cannot_open_the_gate_behind_a_stop",
                    "a_stop_during_the_start_keeps_the_inbox_shut",
                ],
            ),
            By("shuttle", &["a_closed_gate_counts_nobody_in"]),
            By("twins", &["check-then-add", "take-that-opens", "open-after-seal", "open-a-sealed-inbox"]),
        ],
    },
    Property {
        number: 4,
        says: "what one producer posts runs in its order",
        claims: &[
            By("shuttle", &["several_posters_against_a_stop"]),
            By("loom", &["what_is_accepted_runs_in_order_and_what_is_refused_comes_back"]),
            By("twins", &["take-newest-first"]),
        ],
    },
    Property {
        number: 5,
        says: "no wake-up is lost",
        claims: &[
            By(
                "loom",
                &[
                    "two_posters_wake_a_loop_that_goes_to_sleep",
                    "every_waiter_is_woken",
                    "a_waiter_that_missed_an_idle_moment_sees_the_next",
                    "whoever_waits_for_io_sees_all_that_arrives",
                    "a_result_is_stored_before_its_waiter_is_woken",
                    "what_is_late_is_driven_to_its_end_and_those_who_wait_see_it",
                ],
            ),
            By("shuttle", &["several_posters_against_a_stop", "waiters_of_all_kinds_are_woken"]),
            By(
                "twins",
                &[
                    "ring-before-count",
                    "ring-before-clear",
                    "no-look-after-listening",
                    "arm-by-store",
                    "put-without-wake",
                    "park-without-a-look",
                    "sleep-after-the-lock",
                    "look-before-sleep",
                ],
            ),
            By("soak", &["loop"]),
        ],
    },
    Property {
        number: 6,
        says: "a stop may be called by any number of threads, and every caller waits",
        claims: &[
            By("shuttle", &["every_one_of_four_stoppers_waits"]),
            By("cases", &["e3_every_one_of_four_stops_waits_for_the_last_callback"]),
        ],
    },
    Property {
        number: 7,
        says: "a stop from a callback never waits for itself",
        claims: &[By("cases", &["e4_a_loop_that_a_callback_stops_ends_and_never_waits_for_itself"])],
    },
    Property {
        number: 8,
        says: "a stop during the start leaves nothing running",
        claims: &[
            By(
                "loom",
                &[
                    "a_stop_during_the_start_is_seen_by_both",
                    "a_stop_during_the_start_keeps_the_inbox_shut",
                    "a_start_cannot_open_the_gate_behind_a_stop",
                ],
            ),
            By("shuttle", &["a_stop_during_the_start_leaves_nothing_running"]),
            By("cases", &["l1_a_stop_at_any_moment_of_the_start_ends_both"]),
            By("soak", &["signals"]),
        ],
    },
    Property {
        number: 9,
        says: "the lifecycle is what its plain model says",
        claims: &[By("cases", &["the_lifecycle_is_what_its_plain_model_says"])],
    },
    Property {
        number: 10,
        says: "an idle pool touches nothing any more",
        claims: &[
            By(
                "loom",
                &["what_is_accepted_has_run_when_a_closed_pool_is_idle_and_what_is_refused_never_runs"],
            ),
            By("shuttle", &["an_idle_pool_touches_nothing_any_more"]),
            By("twins", &["settle-without-ring", "wake-before-store"]),
        ],
    },
    Property {
        number: 11,
        says: "a race has one winner, and the loser is dropped cleanly",
        claims: &[
            By(
                "loom",
                &[
                    "what_is_late_is_driven_to_its_end_and_those_who_wait_see_it",
                    "what_is_late_while_the_driver_is_dropped_is_dropped_and_booked_once",
                ],
            ),
            By("soak", &["timeout"]),
            By("explore", &[]),
        ],
    },
    Property {
        number: 12,
        says: "each node of a graph runs once, after its inputs; a failure cuts off what depends on it",
        claims: &[
            By(
                "cases",
                &[
                    "d3_each_node_runs_once_after_its_inputs_if_and_only_if_the_policy_says_so",
                    "whatever_ends_a_run_everything_is_accounted_for",
                ],
            ),
            By("soak", &["dag"]),
        ],
    },
    Property {
        number: 13,
        says: "a panic in a callback, a job, a poll or a drop loses nothing else",
        claims: &[By("explore", &[]), By("address", &["reactor", "offload", "timeout", "dag"])],
    },
    Property {
        number: 14,
        says: "no use after free, no leak, no double free",
        claims: &[
            By("address", &[]),
            By("memcheck", &[]),
            Not(
                "Miri",
                "its component cannot be had here; `unsafe` is kept to few files, each block with its reason",
            ),
        ],
    },
    Property {
        number: 15,
        says: "no data race",
        claims: &[
            By("loom", &[]),
            Not(
                "TSan",
                "takes what the locks of an uninstrumented std order for races; silencing those silences all",
            ),
            Not("Kani", "cannot be had here"),
        ],
    },
    Property { number: 16, says: "no deadlock", claims: &[By("loom", &[]), By("shuttle", &[])] },
    Property {
        number: 17,
        says: "a thread that cannot be started is an error, and nothing hangs",
        claims: &[By(
            "faults",
            &[
                "without_threads_a_program_says_so_and_ends",
                "a_thread_that_cannot_be_started_is_an_error_whichever_it_is",
            ],
        )],
    },
    Property {
        number: 18,
        says: "descriptors that run out, interrupted calls and failed wake-ups are lived through",
        claims: &[By(
            "faults",
            &[
                "without_descriptors_a_program_says_so_and_ends",
                "calls_that_are_interrupted_are_made_again",
                "calls_that_fail_are_told_or_lived_through",
            ],
        )],
    },
    Property {
        number: 19,
        says: "SIGTERM drains, a second one forces, and nothing is lost",
        claims: &[By("soak", &["signals"]), By("faults", &["a_program_that_is_paused_goes_on_and_drains"])],
    },
    Property {
        number: 20,
        says: "jumps of the clock change nothing",
        claims: &[By("explore", &[]), By("faults", &["a_clock_that_starts_elsewhere_changes_nothing"])],
    },
    Property {
        number: 21,
        says: "quiesce keeps to its timeout, and its counters are true",
        claims: &[
            By("cases", &["e10_a_quiesce_keeps_to_its_timeout_and_counts_what_is_left"]),
            By("address", &["reactor"]),
        ],
    },
    Property {
        number: 22,
        says: "memory is bounded",
        claims: &[By("soak", &["loop", "memory"]), By("address", &["reactor", "offload", "dag"])],
    },
    Property { number: 23, says: "the tests bite", claims: &[By("twins", &[]), By("mutants", &[])] },
    Property { number: 24, says: "no hot path costs more than before", claims: &[By("counts", &[])] },
];
