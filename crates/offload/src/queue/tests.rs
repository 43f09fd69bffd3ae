//! What decides who runs what, which no test of a whole pool can tell apart.

use std::panic::Location;

use ebbtide_lifecycle::Outcome;
use proptest::prelude::*;

use super::*;
use crate::work::{Hook, Lost, Number, Tag};

/// Work that is only ever in a line.
struct Idle {
    number: Number,
    tag: Tag,
}

impl Work for Idle {
    fn tag(&self) -> &Tag {
        &self.tag
    }

    fn waiter_has_gone(&self) -> bool {
        false
    }

    fn is_over(&self) -> bool {
        false
    }

    fn number(&self) -> &Number {
        &self.number
    }

    fn run(&self, _: Range<usize>, _: Option<&Hook>, _: &mut Vec<Outcome>) {
        unreachable!("it is only in a line")
    }

    fn run_by_waiter(&self, _: &mut usize, _: Option<&Hook>, _: &mut Vec<Outcome>) -> bool {
        unreachable!("it is only in a line")
    }

    fn take_out(&self, _: Range<usize>, _: Outcome, _: &mut Vec<Outcome>) {
        unreachable!("it is only in a line")
    }

    fn refuse(&self, _: Range<usize>) {
        unreachable!("it is only in a line")
    }

    fn unstarted(&self, parts: Range<usize>) -> usize {
        parts.len()
    }

    fn discard(&self, _: Range<usize>, _: Lost) {
        unreachable!("it is only in a line")
    }
}

fn entry(parts: usize) -> Entry {
    let tag = Tag { site: Location::caller(), name: None };
    Entry { work: Arc::new(Idle { number: Number::new(0), tag }), parts: 0..parts, inside: false }
}

/// Puts in so many of one part each, and gives them.
fn filled(queue: &mut Queue, count: usize) -> Vec<Arc<dyn Work>> {
    let push = |_| {
        let entry = entry(1);
        let work = entry.work.clone();
        queue.push(entry);
        work
    };
    (0..count).map(push).collect()
}

/// The parts of each entry that a thread gets, from the first to before the second.
fn share(queue: &mut Queue, size: Share) -> Vec<(usize, usize)> {
    let mut share = VecDeque::new();
    queue.take_share(size, &mut share);
    share.into_iter().map(|entry| (entry.parts.start, entry.parts.end)).collect()
}

#[test]
fn a_thread_takes_a_quarter_of_its_part_of_the_line_but_one_at_least_and_never_too_many() {
    for (len, size, expected) in [
        (80, Share::One, 1),
        (80, Share::OneOf(2), 10),
        (3, Share::OneOf(2), 1),
        (0, Share::OneOf(2), 0),
        (10_000, Share::OneOf(2), SHARE_MAX),
    ] {
        let mut queue = Queue::new(None);
        filled(&mut queue, len);
        assert_eq!(share(&mut queue, size).len(), expected, "of {len}");
        assert_eq!(queue.len(), len - expected);
    }
}

#[test]
fn a_share_begins_with_the_rest_of_what_was_begun() {
    let mut queue = Queue::new(None);
    queue.push(entry(36));
    queue.push(entry(44));
    assert_eq!(share(&mut queue, Share::OneOf(1)), [(0, 20)]);
    assert_eq!(share(&mut queue, Share::OneOf(1)), [(20, 35)]);
    assert_eq!(share(&mut queue, Share::OneOf(1)), [(35, 36), (0, 10)]);
    assert_eq!((queue.len(), queue.is_empty()), (34, false));
    while !share(&mut queue, Share::OneOf(1)).is_empty() {}
    assert_eq!((queue.len(), queue.is_empty()), (0, true));
}

#[test]
fn who_waits_for_room_comes_in_when_all_his_parts_fit_or_the_line_is_empty() {
    for (limit, in_line, waits, fits) in
        [(3, 1, 2, true), (3, 2, 2, false), (3, 1, 3, false), (3, 0, 9, true)]
    {
        let mut queue = Queue::new(Some(limit));
        filled(&mut queue, in_line);
        assert!(queue.next_to_fit().is_none(), "nobody waits");
        queue.wait(entry(waits));
        assert_eq!(queue.next_to_fit().is_some(), fits, "{waits} to {in_line} of {limit}");
        assert_eq!(queue.waiting(), if fits { 0 } else { waits });
    }
}

#[test]
fn in_a_line_without_a_limit_only_what_is_near_the_end_is_found() {
    let mut queue = Queue::new(None);
    let works = filled(&mut queue, SEARCH_MAX + 2);
    assert!(queue.take_out_of_line(&works[1]).is_none());
    assert!(queue.take_out_of_line(&works[2]).is_some());
    assert!(queue.take_out_of_line(&works[2]).is_none(), "it was taken out");
    assert_eq!(queue.len(), SEARCH_MAX + 1);
}

#[test]
fn in_a_line_with_a_limit_everything_is_found_and_gaps_are_closed() {
    let mut queue = Queue::new(Some(usize::MAX));
    let works = filled(&mut queue, 4 * GAPS_MAX);
    // All but the first and the last, so that no gap goes away by itself.
    let (first, last) = (works.first().unwrap(), works.last().unwrap());
    for work in &works[1..works.len() - 1] {
        assert!(queue.take_out_of_line(work).is_some());
    }
    assert!(queue.line.entries.len() <= GAPS_MAX + 2, "{}", queue.line.entries.len());
    let left: Vec<_> = queue.line().map(|entry| entry.work.clone()).collect();
    assert!(Arc::ptr_eq(&left[0], first) && Arc::ptr_eq(&left[1], last) && left.len() == 2);
    assert!(queue.take_out_of_line(last).is_some());
    assert_eq!(queue.line.entries.len(), 1, "no gap is at the end");
}

#[test]
fn gaps_stay_while_they_are_few_so_that_nothing_is_moved_for_each() {
    let places = |queue: &Queue| queue.line.entries.len();
    let mut few = Queue::new(Some(usize::MAX));
    let works = filled(&mut few, GAPS_MAX + 3);
    works[1..=GAPS_MAX].iter().for_each(|work| drop(few.take_out_of_line(work)));
    assert_eq!(places(&few), GAPS_MAX + 3);
    few.take_out_of_line(&works[GAPS_MAX + 1]);
    assert_eq!(places(&few), 2, "one more was too many");

    let mut many = Queue::new(Some(usize::MAX));
    let works = filled(&mut many, 4 * GAPS_MAX);
    works[1..=2 * GAPS_MAX].iter().for_each(|work| drop(many.take_out_of_line(work)));
    assert_eq!(places(&many), 4 * GAPS_MAX, "not more than every second");
    many.take_out_of_line(&works[2 * GAPS_MAX + 1]);
    assert_eq!(places(&many), 2 * GAPS_MAX - 1);
}

proptest! {
    #[test]
    fn a_line_is_what_a_plain_list_says(
        numbered: bool,
        acts in prop::collection::vec((0..5_u8, any::<prop::sample::Index>()), 1..300),
    ) {
        let mut line = Line::new(numbered);
        let mut plain: VecDeque<(Arc<dyn Work>, Range<usize>)> = VecDeque::new();
        for (act, which) in acts {
            let at = |len: usize| which.index(len);
            // What an unnumbered line has lost sight of is not looked for.
            let sought = |plain: &VecDeque<(Arc<dyn Work>, Range<usize>)>, line: &Line| {
                let work = plain.get(at(plain.len().max(1)))?.0.clone();
                let place = line.find(&work);
                assert!(place.is_some() || !numbered, "a numbered one is found");
                Some((work, place?))
            };
            match act {
                0 | 1 => {
                    let entry = entry(1 + at(3));
                    plain.push_back((entry.work.clone(), entry.parts.clone()));
                    line.push(entry);
                }
                2 => {
                    let taken = if line.front().is_some() { line.pop_front() } else { None };
                    let expected = plain.pop_front();
                    prop_assert_eq!(taken.map(|entry| entry.parts), expected.map(|(_, parts)| parts));
                }
                3 => {
                    if let Some((work, place)) = sought(&plain, &line) {
                        let taken = line.take_out(place).expect("it was found");
                        let index = plain.iter().position(|(other, _)| Arc::ptr_eq(other, &work)).unwrap();
                        prop_assert_eq!(Some(taken.parts), plain.remove(index).map(|(_, parts)| parts));
                        prop_assert!(line.find(&work).is_none());
                    }
                }
                _ => {
                    if let Some((work, place)) = sought(&plain, &line) {
                        let taken = line.take_last_of(place).expect("it was found");
                        let index = plain.iter().position(|(other, _)| Arc::ptr_eq(other, &work)).unwrap();
                        let parts = &mut plain[index].1;
                        parts.end -= 1;
                        prop_assert_eq!(taken.parts, parts.end..parts.end + 1);
                        if parts.start == parts.end {
                            plain.remove(index);
                        }
                    }
                }
            }
            prop_assert_eq!(line.parts, plain.iter().map(|(_, parts)| parts.len()).sum::<usize>());
            prop_assert_eq!(line.gaps, line.entries.iter().filter(|entry| entry.is_none()).count());
            let left = line.entries.iter().flatten().map(|entry| &entry.parts);
            prop_assert!(left.eq(plain.iter().map(|(_, parts)| parts)));
        }
    }
}
