use std::{
    panic::Location,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    blame::{Activity, Origin, Roster, Straggler, Stragglers},
    time::{Clock, SystemClock, VirtualClock},
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_origin_is_where_it_was_asked_for() {
    let (origin, line) = (Origin::here(), line!());
    assert_eq!((origin.site().file(), origin.site().line()), (file!(), line));
    assert_eq!(origin.name(), None);
    let named = Origin::here().named("flush");
    assert_eq!(named.to_string(), format!("\"flush\" at {}", named.site()));
}

#[test]
fn stragglers_are_listed_oldest_first_and_grouped_by_place() {
    let clock = VirtualClock::new();
    let roster = Roster::new(clock.now());
    let elsewhere = Origin::here();
    let mut seats = Vec::new();
    for shard in 0..3 {
        seats.push(roster.take(
            &Origin::here().named(format!("shard {shard}")),
            Activity::Running,
            roster.moment(clock.now()),
        ));
        clock.advance(SECOND);
    }
    seats.push(roster.take(&elsewhere, Activity::Parked, roster.moment(clock.now())));
    clock.advance(SECOND);

    let stragglers = roster.stragglers(clock.now());
    let ages: Vec<_> = stragglers.iter().map(|straggler| straggler.age.as_secs()).collect();
    assert_eq!(ages, [4, 3, 2, 1]);
    let groups: Vec<_> = stragglers.groups().iter().map(|group| group.count).collect();
    assert_eq!(groups, [3, 1]);
    let shards = stragglers.groups()[0].site;
    assert_eq!(
        stragglers.to_string(),
        format!(
            "4 in flight\n  3 × \"shard 0\" at {shards}, running for 4.0s\n  1 × {elsewhere}, parked for 1.0s"
        )
    );
    for seat in seats {
        roster.leave(seat);
    }
    assert!(roster.stragglers(clock.now()).is_empty());
}

#[test]
fn a_seat_shows_what_its_owner_does_now() {
    let clock = VirtualClock::new();
    let roster = Roster::new(clock.now());
    let mut seat = roster.reserve();
    assert!(roster.stragglers(clock.now()).is_empty(), "a reserved seat shows nobody");

    let named = Origin::here().named("parse");
    roster.show(&mut seat, &named, Activity::Queued, roster.moment(clock.now()));
    clock.advance(SECOND);
    roster.show(&mut seat, &named, Activity::Running, roster.moment(clock.now()));
    let shown = roster.stragglers(clock.now());
    assert_eq!(shown.iter().next().unwrap(), &Straggler::new(named, Activity::Running, Duration::ZERO));

    let unnamed = Location::caller();
    roster.show_site(&mut seat, unnamed, Activity::Running, roster.moment(clock.now()));
    let shown = roster.stragglers(clock.now());
    assert_eq!(shown.iter().next().unwrap().origin, Origin::from(unnamed), "the old name is gone");

    roster.hide(&seat);
    assert!(roster.stragglers(clock.now()).is_empty());
    roster.leave(seat);
}

#[test]
fn seats_are_used_again_and_the_table_grows_as_it_must() {
    const SEATS: usize = 1000;
    let now = SystemClock.now();
    let roster = Roster::new(now);
    for _ in 0..3 {
        let seats: Vec<_> =
            (0..SEATS).map(|_| roster.take(&Origin::here(), Activity::Running, roster.moment(now))).collect();
        assert_eq!(roster.stragglers(now).len(), SEATS);
        for seat in seats {
            roster.leave(seat);
        }
    }
    assert_eq!(format!("{roster:?}"), format!("Roster {{ opened: {SEATS}, .. }}"));
}

/// Threads come and go in the seats while others read them: a reader never sees a mixture of two, also when all
/// came in at the same time.
#[test]
fn a_reader_sees_only_what_belongs_together() {
    const ROUNDS: usize = 200_000;
    let now = SystemClock.now();
    let roster = Roster::new(now);
    let since = roster.moment(now);
    let origins = [Origin::here().named("one"), Origin::here().named("two"), Origin::here()];
    assert_ne!(origins[0].site(), origins[1].site());
    let writing = AtomicUsize::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let mut seat = roster.take(&origins[round % 3], Activity::Running, since);
                    roster.show(&mut seat, &origins[(round + 1) % 3], Activity::Running, since);
                    roster.leave(seat);
                }
                writing.fetch_sub(1, Ordering::SeqCst);
            });
        }
        while writing.load(Ordering::SeqCst) > 0 {
            for straggler in &roster.stragglers(now) {
                assert!(origins.contains(&straggler.origin), "{straggler}");
            }
        }
    });
    assert!(roster.stragglers(now).is_empty());
}

#[test]
fn reports_merge_and_count_those_without_a_record() {
    let straggler = |age| Straggler::new(Origin::here(), Activity::Running, age);
    let pool: Stragglers = [straggler(SECOND).on("cpu-1")].into_iter().collect();
    let queue: Stragglers = [straggler(2 * SECOND)].into_iter().collect();
    let all = pool.merge(queue).and_untracked(3);
    assert_eq!((all.len(), all.untracked()), (5, 3));
    assert_eq!(all.iter().next().unwrap().age, 2 * SECOND);
    let text = all.to_string();
    assert!(text.starts_with("5 in flight\n  2 × "), "{text}");
    assert!(text.ends_with("\n  3 without a record"), "{text}");
    assert!(all.iter().any(|straggler| straggler.to_string().ends_with("running for 1.0s on cpu-1")));
}

#[test]
fn a_report_prints_the_oldest_places_and_counts_the_rest() {
    #[rustfmt::skip]
    let places = [
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
        Origin::here(),
    ];
    let ages = (1..).map(|seconds| seconds * SECOND);
    let straggler = |(origin, age)| Straggler::new(origin, Activity::Parked, age);
    let all: Stragglers = places.into_iter().zip(ages).map(straggler).collect();
    assert_eq!(all.groups().len(), 22);
    let text = all.to_string();
    assert_eq!(text.lines().count(), 1 + 20 + 1, "{text}");
    assert!(text.lines().nth(1).unwrap().ends_with("parked for 22.0s"), "{text}");
    assert!(text.ends_with("\n  and from 2 more places"), "{text}");
}
