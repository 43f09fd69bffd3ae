//! Whether the program lives, and is ready.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use ebbtide::sleep;

use super::{Fixture, SECOND, report};

#[test]
fn it_is_ready_from_when_it_says_so_until_it_is_told_to_stop() {
    let exit = Fixture::new().run(async |app| {
        let health = app.coordinator().health().clone();
        assert!(!health.ready().is_ok());
        app.ready();
        assert!(health.ready().is_ok());
        app.stop(ebbtide::lifecycle::Reason::requested("test"));
        app.closing().triggered().await;
        assert!(!health.ready().is_ok() && health.live().is_ok());
        Ok(())
    });
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn a_loop_that_turns_is_alive_and_one_that_does_not_is_stalled() {
    let fixture = Fixture::new();
    let clock = fixture.clock.clone();
    let exit = fixture.builder().heartbeat(3 * SECOND).run(async move |app| {
        let health = app.coordinator().health().clone();
        sleep(60 * SECOND).await;
        assert!(health.live().is_ok());
        // Without an await.
        clock.advance(4 * SECOND);
        assert!(!health.live().is_ok());
        sleep(SECOND).await;
        assert!(health.live().is_ok());
        Ok(())
    });
    assert!(exit.is_clean(), "the heart holds nothing up: {exit}");
    assert_eq!(fixture.elapsed(), 65 * SECOND);
}

#[test]
fn health_is_served_and_a_port_in_use_is_told() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = taken.local_addr().unwrap();
    let exit = Fixture::new().builder().health_server(at).run(async |_| unreachable!("it is not started"));
    assert_eq!(exit.code(), 71);
    assert!(exit.to_string().contains(&at.to_string()), "{exit}");

    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let exit = Fixture::new().builder().health_server(any).run(async |app| {
        assert!(app.coordinator().health_address().is_some());
        Ok(())
    });
    assert!(report(&exit).is_clean(), "{exit}");
}
