//! Numbers that a mailbox does not take, and what is said of them.

use std::time::Duration;

use ebbtide_mailbox::{
    Address, Message, NotSent, OutOfRange, Pull, ReceiveError, ReplyError, SendError, SettleError, Span,
};

const NANO: Duration = Duration::from_nanos(1);
const TWELVE_HOURS: Duration = Duration::from_secs(43_200);

/// What is said of a number that is refused.
fn said<T>(outcome: Result<T, OutOfRange>) -> String {
    outcome.map(drop).unwrap_err().to_string()
}

#[test]
fn a_span_is_between_nothing_and_twelve_hours() {
    for fits in [Duration::ZERO, NANO, TWELVE_HOURS - NANO, TWELVE_HOURS] {
        assert_eq!(Span::new(fits).unwrap().duration(), fits);
    }
    assert_eq!(Span::ZERO.duration(), Duration::ZERO);
    assert_eq!(Span::MAX.duration(), TWELVE_HOURS);
    assert_eq!(Span::secs(43_200), Span::MAX);
    for (given, expected) in [
        (TWELVE_HOURS + NANO, "a time out of sight of 43200.000000001s: it is between 0 and 43200 seconds"),
        (Duration::from_secs(43_201), "a time out of sight of 43201s: it is between 0 and 43200 seconds"),
        (
            Duration::MAX,
            "a time out of sight of 18446744073709551615.999999999s: it is between 0 and 43200 seconds",
        ),
    ] {
        assert_eq!(said(Span::new(given)), expected);
    }
}

#[test]
#[should_panic = "a time out of sight is twelve hours at most"]
fn a_span_known_when_the_program_is_built_is_twelve_hours_at_most() {
    let _span = Span::secs(43_201);
}

#[test]
fn a_batch_is_between_one_and_ten() {
    for fits in 1..=10 {
        assert_eq!(Pull::default().max(fits).unwrap().batch(), fits);
    }
    for (given, expected) in [
        (0, "a batch of 0: it is between 1 and 10"),
        (11, "a batch of 11: it is between 1 and 10"),
        (usize::MAX, "a batch of 18446744073709551615: it is between 1 and 10"),
    ] {
        assert_eq!(said(Pull::default().max(given)), expected);
    }
}

#[test]
fn a_wait_is_between_nothing_and_twenty_seconds() {
    for fits in [Duration::ZERO, NANO, Pull::WAIT_MAX] {
        assert_eq!(Pull::default().wait(fits).unwrap().patience(), fits);
    }
    for (given, expected) in [
        (Pull::WAIT_MAX + NANO, "a wait of 20.000000001s: it is between 0 and 20 seconds"),
        (Duration::from_secs(300), "a wait of 300s: it is between 0 and 20 seconds"),
        (Duration::MAX, "a wait of 18446744073709551615.999999999s: it is between 0 and 20 seconds"),
    ] {
        assert_eq!(said(Pull::default().wait(given)), expected);
    }
}

#[test]
fn a_pull_that_was_told_nothing_is_that_of_the_contract() {
    let pull = Pull::default();
    let told = (pull.batch(), pull.lease(), pull.patience());
    assert_eq!(told, (10, Span::secs(300), Duration::from_secs(20)));
}

#[test]
fn every_refusal_says_what_to_do_about_it() {
    let broken = || "the server is gone".into();
    let refused = |why| SendError { message: Message::new("one"), why };
    let table: [(Box<dyn std::error::Error>, &str); 10] = [
        (refused(NotSent::Closed).into(), "the mailbox is closed"),
        (refused(NotSent::Full { capacity: 7 }).into(), "the mailbox is full: it holds 7 messages at most"),
        (
            refused(NotSent::TooLarge { size: 9, limit: 8 }).into(),
            "a body of 9 bytes is too large: the mailbox takes 8 at most",
        ),
        (
            refused(NotSent::Backend(broken())).into(),
            "the message may not have been sent: the server is gone",
        ),
        (ReceiveError::Closed.into(), "the mailbox is closed"),
        (ReceiveError::Backend(broken()).into(), "cannot receive: the server is gone"),
        (
            SettleError::ReceiptExpired.into(),
            "the receipt has expired: the message was settled, or is due to be delivered again",
        ),
        (
            SettleError::TooLarge { size: 9, limit: 8 }.into(),
            "progress of 9 bytes is too large: the mailbox saves 8 at most",
        ),
        (ReplyError::Unknown(Address::from("asker")).into(), "there is no mailbox asker to reply to"),
        (
            ReplyError::Refused(refused(NotSent::Closed)).into(),
            "the reply was refused: the mailbox is closed",
        ),
    ];
    for (error, expected) in table {
        assert_eq!(error.to_string(), expected);
    }
}
