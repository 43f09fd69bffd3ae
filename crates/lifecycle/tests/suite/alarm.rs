use std::{pin::pin, sync::Arc, time::Duration};

use ebbtide_lifecycle::time::{Alarm, Clock, Deadline, SystemClock, ThreadTimer, VirtualClock};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_clock_says_whether_its_time_is_virtual() {
    fn is_virtual(clock: impl Clock) -> bool {
        clock.is_virtual()
    }
    let clock = VirtualClock::new();
    assert!(is_virtual(&clock) && is_virtual(Arc::new(clock.clone())) && is_virtual(clock));
    assert!(!is_virtual(SystemClock) && !is_virtual(ThreadTimer::start().unwrap()));
}

#[test]
fn an_alarm_that_was_fixed_knows_when_it_goes_off() {
    let clock = VirtualClock::new();
    let (start, mut alarm) = (clock.now(), pin!(Alarm::within(&clock, SECOND)));
    assert_eq!(alarm.instant(), None);
    alarm.as_mut().fix();
    clock.advance(SECOND / 2);
    alarm.as_mut().fix();
    assert_eq!(alarm.instant(), Some(start + SECOND));
    clock.block_on(alarm);
    assert_eq!(clock.now(), start + SECOND);
    assert_eq!(Alarm::by(&clock, Deadline::at(start)).instant(), Some(start));
    assert_eq!(Alarm::by(&clock, Deadline::never()).instant(), None);
}
