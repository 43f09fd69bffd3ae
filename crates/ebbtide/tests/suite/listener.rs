//! Connections come in, and none is lost.

use std::{
    io::{self, Read as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
};

use ebbtide::{App, Error, lifecycle::Reason, reactor::Async, sleep};
use futures_lite::AsyncWriteExt as _;

use super::{Fixture, SECOND, report};

fn socket() -> Result<Async<TcpListener>, Error> {
    Ok(Async::<TcpListener>::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?)
}

/// What a client has heard once the connection was closed.
fn heard(mut client: TcpStream) -> String {
    let mut heard = String::new();
    client.read_to_string(&mut heard).unwrap();
    heard
}

async fn stopping(app: &App) {
    app.stop(Reason::requested("the test"));
    app.closing().triggered().await;
}

#[test]
fn who_has_connected_by_the_closing_is_answered_and_who_comes_later_is_not_let_in() {
    let fixture = Fixture::new();
    let exit = fixture.run(async |app| {
        let mut listener = app.listen(socket()?);
        let address = listener.address().unwrap();
        let clients: Vec<_> = (0..9).map(|_| TcpStream::connect(address).unwrap()).collect();
        stopping(&app).await;
        let mut accepted = 0;
        while let Some(connection) = listener.accept().await {
            connection.spawn(async |mut stream| {
                sleep(SECOND).await;
                stream.write_all(b"answered").await
            });
            accepted += 1;
        }
        assert_eq!(accepted, clients.len());
        let refused = TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        sleep(2 * SECOND).await;
        for client in clients {
            assert_eq!(heard(client), "answered");
        }
        Ok(())
    });
    assert!(exit.is_clean(), "{exit}");
    // With the start and the listener.
    assert_eq!(report(&exit).intake().unwrap().balance.to_string(), "accepted 11, completed 11");
}

#[test]
fn a_connection_that_is_stuck_is_named_with_its_client_and_where_it_was_listened_for() {
    let exit = Fixture::new().run(async |app| {
        let mut listener = app.listen(socket()?);
        let client = TcpStream::connect(listener.address().unwrap())?;
        let connection = listener.accept().await.unwrap();
        assert_eq!(connection.from, client.local_addr()?);
        connection.spawn(async move |_stream| {
            drop(client);
            std::future::pending::<()>().await;
        });
        Ok(())
    });
    assert_eq!(exit.code(), 75, "{exit}");
    let text = exit.to_string();
    assert!(text.contains("1 × \"connection from 127.0.0.1:"), "{text}");
    assert!(text.contains("at crates/ebbtide/tests/suite/listener.rs:"), "{text}");
}

#[test]
fn a_listener_that_is_dropped_is_no_work_any_more() {
    let exit = Fixture::new().run(async |app| {
        drop(app.listen(socket()?));
        Ok(())
    });
    assert!(exit.is_clean(), "{exit}");
    assert_eq!(report(&exit).intake().unwrap().balance.to_string(), "accepted 2, completed 2");
}

#[test]
fn of_a_program_that_stops_nobody_is_accepted() {
    let exit = Fixture::new().run(async |app| {
        stopping(&app).await;
        assert!(app.listen(socket()?).accept().await.is_none());
        Ok(())
    });
    assert!(exit.is_clean(), "{exit}");
}
