//! Servers that are killed while clients come as fast as they can: this test binary runs itself.

#![cfg(unix)]

use std::{
    cell::Cell,
    io::{self, Read as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use ebbtide::{App, Error, reactor::Async, sleep};
use futures_lite::AsyncWriteExt as _;

use super::process::Player;

const ANSWER: &[u8] = b"high tide at noon\n";

/// A server as the README has it, that says how many it has accepted.
pub(crate) async fn serve(app: App) -> Result<(), Error> {
    let socket = Async::<TcpListener>::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let mut listener = app.listen(socket);
    app.ready();
    println!("at {}", listener.address().unwrap());
    let (mut accepted, answered) = (0, Rc::new(Cell::new(0)));
    while let Some(connection) = listener.accept().await {
        accepted += 1;
        let answered = answered.clone();
        connection.spawn(async move |mut stream| {
            sleep(Duration::from_millis(5)).await;
            stream.write_all(ANSWER).await?;
            answered.set(answered.get() + 1);
            Ok::<_, io::Error>(())
        });
    }
    app.gate().idle().await;
    println!("{accepted} accepted, {} answered", answered.get());
    Ok(())
}

/// Clients that connect, wait for the answer, and connect again.
struct Crowd {
    clients: Vec<JoinHandle<usize>>,
    is_over: Arc<AtomicBool>,
}

impl Crowd {
    fn of(clients: usize, server: SocketAddr) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let ask_again = |_| {
            let is_over = is_over.clone();
            thread::spawn(move || {
                let mut answered = 0;
                while let Ok(mut stream) = TcpStream::connect(server) {
                    let mut answer = Vec::new();
                    match stream.read_to_end(&mut answer) {
                        Ok(_) if answer == ANSWER => answered += 1,
                        // Between the last that was accepted and the end of the socket there is a moment in which the
                        // system lets somebody connect; nobody has accepted him.
                        got => assert!(is_over.load(Ordering::SeqCst), "{got:?}: {answer:?}"),
                    }
                }
                answered
            })
        };
        Self { clients: (0..clients).map(ask_again).collect(), is_over }
    }

    /// How many answers they had, once nobody lets them in any more.
    fn answered(self) -> usize {
        self.clients.into_iter().map(|client| client.join().unwrap()).sum()
    }
}

/// Under a crowd, the server gets a signal in the middle. Gives what it has told.
fn killed_under(clients: usize, mut player: Player) -> String {
    let address = player.line_from("at ").parse().unwrap();
    let crowd = Crowd::of(clients, address);
    // It is well under way when others are still let in.
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    crowd.is_over.store(true, Ordering::SeqCst);
    player.gets("TERM");
    let answered = crowd.answered() + 3;
    let (code, said) = player.ends();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("{answered} accepted, {answered} answered")), "{answered} heard: {said}");
    said
}

#[test]
fn a_server_that_is_killed_under_load_answers_all_whom_it_has_accepted() {
    for _ in 0..5 {
        let said = killed_under(32, Player::start("accepts"));
        assert!(!said.contains("cannot accept"), "{said}");
    }
}

#[test]
fn a_server_that_has_no_files_left_goes_on_when_it_has_and_is_killed_under_load_as_well() {
    let said = killed_under(64, Player::with_files("accepts", 40));
    assert!(said.contains("cannot accept connections: "), "{said}");
}
