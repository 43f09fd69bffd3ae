//! Checks that an implementor of [`Mailbox`] calls from his own tests.
//!
//! Each clause of the trait's contract is put to a fresh mailbox. Time is counted in [units](Specimen::unit): where a
//! clause says that something does not happen yet, it looks a unit before it may, and where it says that something
//! happens, it gives it a unit more than it needs. So a unit is as long as the machine and the way to the messages may
//! be slow; in virtual time it is as long as one likes.
//!
//! ```
//! use std::{future::Future, sync::Arc, time::Duration};
//! use ebbtide_lifecycle::time::{Timer, VirtualClock};
//! use ebbtide_mailbox::{
//!     Address, Boxed, Limits, Mailbox, Office,
//!     conformance::{self, Specimen},
//! };
//!
//! struct InMemory(VirtualClock, Office<VirtualClock>);
//!
//! impl Specimen for InMemory {
//!     fn mailbox(&self) -> Arc<dyn Mailbox> {
//!         Arc::new(self.1.mailbox_with("one", self.limits()))
//!     }
//!
//!     fn other(&self, name: &str) -> (Address, Arc<dyn Mailbox>) {
//!         let other = self.1.mailbox_with(name, self.limits());
//!         (other.address().clone(), Arc::new(other))
//!     }
//!
//!     fn limits(&self) -> Limits {
//!         Limits { capacity: 20, body: 1000 }
//!     }
//!
//!     fn unit(&self) -> Duration {
//!         Duration::from_secs(4)
//!     }
//!
//!     fn pass(&self, time: Duration) -> Boxed<'_, ()> {
//!         Box::pin(self.0.sleep(time).expect("within the clock's time"))
//!     }
//!
//!     fn block_on<F: Future>(&self, future: F) -> F::Output {
//!         self.0.block_on(future)
//!     }
//! }
//!
//! let clauses = conformance::mailbox(|| {
//!     let clock = VirtualClock::new();
//!     InMemory(clock.clone(), Office::new(clock))
//! });
//! assert_eq!(clauses, conformance::CLAUSES);
//! ```

mod case;
mod closing;
mod leases;
mod receipts;
mod receiving;
mod replies;
mod sending;
mod settling;
mod threads;
mod waiting;

use std::{future::Future, sync::Arc, thread, time::Duration};

use self::case::Case;
use crate::{
    mailbox::{Boxed, Mailbox},
    memory::Limits,
    message::Address,
    pull::Pull,
};

/// A mailbox on the bench, with the time that it lives in.
pub trait Specimen: Sync {
    /// The mailbox, the same at each call; empty and open when the specimen is made.
    fn mailbox(&self) -> Arc<dyn Mailbox>;

    /// A mailbox of that name that the first can reply to, and its address; empty and open when first asked for.
    fn other(&self, name: &str) -> (Address, Arc<dyn Mailbox>);

    /// An address that nothing can be sent to.
    fn nobody(&self) -> Address {
        "nobody".into()
    }

    /// What its mailboxes take: they are filled. At least [`CAPACITY_MIN`] messages, and bodies of 256 bytes.
    fn limits(&self) -> Limits;

    /// How long a short time is: up to four seconds, because [waits](Pull::wait) of five of them are made.
    fn unit(&self) -> Duration;

    /// Ends when `time` has passed for the mailbox.
    fn pass(&self, time: Duration) -> Boxed<'_, ()>;

    /// Runs `future` on this thread, and whatever the mailbox needs besides. Called on several threads at once.
    fn block_on<F: Future>(&self, future: F) -> F::Output;
}

/// How many messages a mailbox on the bench must take: some batches.
pub const CAPACITY_MIN: usize = 20;

/// How many clauses there are.
pub const CLAUSES: usize = 67;

/// A clause, by its name.
type Clause<S> = (&'static str, fn(&S));

/// Puts every clause to a fresh specimen of its own, and gives how many there were: [`CLAUSES`].
///
/// # Panics
/// With the clause that does not hold.
pub fn mailbox<S: Specimen>(make: impl Fn() -> S) -> usize {
    let clauses = clauses();
    for (name, check) in &clauses {
        let _blame = Blame(name);
        let specimen = make();
        assert!(specimen.limits().capacity >= CAPACITY_MIN, "a specimen takes {CAPACITY_MIN} messages");
        assert!(specimen.limits().body >= 256, "a specimen takes bodies of 256 bytes");
        assert!(specimen.unit() * 5 <= Pull::WAIT_MAX, "five units are no longer than the longest wait");
        check(&specimen);
    }
    clauses.len()
}

/// Says which clause it was that panicked, for want of a place in the panic of whoever looked.
struct Blame(&'static str);

impl Drop for Blame {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the clause that does not hold: {}", self.0);
        }
    }
}

fn clauses<S: Specimen>() -> [Clause<S>; CLAUSES] {
    /// Clauses that are futures, and clauses that start threads of their own.
    macro_rules! clauses {
        ({ $($file:ident: $($clause:ident)+;)+ } $($threads:ident)+) => {
            [
                $($((stringify!($clause), |specimen| {
                    specimen.block_on($file::$clause(&Case::new(specimen)));
                }),)+)+
                $((stringify!($threads), |specimen| threads::$threads(specimen)),)+
            ]
        };
    }
    clauses! {
        {
        sending:
            messages_come_in_the_order_in_which_they_were_sent
            a_body_comes_out_as_it_went_in
            a_message_has_one_id_of_its_own_in_every_delivery
            a_delayed_message_comes_when_its_time_has_come
            delayed_messages_come_in_the_order_of_their_times
            an_age_is_the_time_since_the_message_was_sent
            a_full_mailbox_refuses_and_hands_the_message_back
            capacity_counts_what_is_pending_delayed_and_invisible
            an_acknowledgement_makes_room
            a_body_beyond_the_limit_is_refused_and_handed_back;
        receiving:
            who_does_not_wait_gets_none_at_once
            a_batch_is_no_larger_than_what_was_asked_for
            a_batch_that_is_not_full_is_given_at_once
            what_is_received_is_out_of_sight_of_others
            a_wait_ends_with_none_at_its_time
            a_receive_that_never_began_has_taken_nothing
            a_receive_dropped_while_it_waits_takes_nothing_later
            a_receive_dropped_when_a_message_has_come_has_taken_nothing;
        waiting:
            a_send_wakes_who_waits
            a_delay_that_ends_wakes_who_waits
            a_delay_that_begins_while_one_waits_wakes_him_at_its_end
            a_nack_wakes_who_waits
            a_nack_with_a_delay_wakes_who_waits_at_its_end
            a_release_wakes_who_waits
            a_lease_that_ends_wakes_who_waits
            a_lease_that_begins_while_one_waits_wakes_him_at_its_end
            a_lease_that_is_extended_does_not_wake_who_waits
            of_two_who_wait_one_gets_the_message
            of_two_who_wait_each_gets_one_of_two_messages
            of_two_who_wait_each_gets_one_of_two_that_come_back_at_once
            who_counts_does_not_take_the_wake_up_of_who_waits
            who_gives_up_does_not_take_the_wake_up_of_another_with_him;
        leases:
            a_lease_that_ends_redelivers_and_counts
            leases_that_end_together_redeliver_in_the_order_of_the_batch
            each_delivery_has_a_receipt_of_its_own
            a_lease_of_no_time_leaves_the_message_in_sight
            an_extension_keeps_the_message_out_of_sight
            an_extension_keeps_the_receipt_good
            an_extension_never_shortens
            an_extension_counts_from_when_it_is_made;
        receipts:
            a_receipt_is_refused_after_an_ack
            a_receipt_is_refused_after_a_nack
            a_receipt_is_refused_after_a_release
            a_receipt_is_refused_after_its_lease
            a_receipt_is_refused_after_the_next_delivery
            a_receipt_is_refused_after_a_purge
            a_receipt_of_another_mailbox_is_refused
            a_receipt_that_was_never_given_is_refused;
        settling:
            an_acknowledged_message_is_gone
            a_nacked_message_comes_again_and_is_counted
            a_nack_with_a_delay_keeps_the_message_back_for_so_long
            a_released_message_is_in_sight_at_once_and_in_front
            a_release_is_not_counted
            a_checkpoint_comes_back_with_every_later_delivery
            a_checkpoint_settles_nothing
            a_checkpoint_beyond_the_limit_of_bodies_is_refused
            counts_say_where_each_message_is
            a_purge_takes_everything_out_and_says_how_much;
        replies:
            a_reply_arrives_where_it_was_wanted
            a_reply_to_nobody_is_refused
            a_reply_that_is_too_large_is_refused;
        closing:
            only_the_first_close_finds_it_open
            a_closed_mailbox_refuses_and_hands_the_message_back
            a_closed_mailbox_gives_nothing_out
            a_close_wakes_all_who_wait
            a_delivery_can_be_settled_after_the_close;
        }
        among_threads_each_message_is_in_one_pair_of_hands_and_none_is_lost
    }
}
