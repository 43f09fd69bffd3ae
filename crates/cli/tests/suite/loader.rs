//! Clients that ask as fast as they are answered, each on one connection.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver},
    },
    thread::{self, JoinHandle},
};

use super::{http::Client, program::PATIENCE, site::REQUEST};

/// So many answers a client has before it counts as warm.
const WARM: u64 = 20;

pub(crate) struct Loader {
    clients: Vec<JoinHandle<u64>>,
    warm: Receiver<()>,
}

impl Loader {
    /// Each client asks until an answer says that it is the last one.
    pub(crate) fn start(address: SocketAddr, clients: usize, path: &'static str) -> Self {
        let (tell, warm) = mpsc::channel();
        let client = |_| {
            let tell = tell.clone();
            let mut client = Client::connect(address).unwrap();
            thread::spawn(move || {
                for answered in 1.. {
                    let answer = client.ask("POST", path, REQUEST).unwrap();
                    assert_eq!(answer.status, 200, "{answer:#?}");
                    if answered == WARM {
                        tell.send(()).unwrap();
                    }
                    if answer.header("connection") == Some("close") {
                        return answered;
                    }
                }
                unreachable!("nobody counts so far");
            })
        };
        Self { clients: (0..clients).map(client).collect(), warm }
    }

    /// Waits until all of them are well under way.
    pub(crate) fn is_warm(&self) {
        for _ in &self.clients {
            self.warm.recv_timeout(PATIENCE).expect("a client is answered");
        }
    }

    /// Waits for the last answers. Gives how many there were, all of them good.
    pub(crate) fn ends(self) -> u64 {
        self.clients.into_iter().map(|client| client.join().expect("no request fails")).sum()
    }
}

/// The statuses that clients get, whatever they are, while `meanwhile` goes on.
pub(crate) fn crowd(
    address: SocketAddr,
    clients: usize,
    path: &str,
    meanwhile: impl FnOnce(),
) -> BTreeSet<u16> {
    let over = &AtomicBool::new(false);
    thread::scope(|threads| {
        let ask = || {
            let mut statuses = BTreeSet::new();
            let mut client = Client::connect(address).unwrap();
            while !over.load(Ordering::Relaxed) {
                statuses.insert(client.ask("POST", path, REQUEST).unwrap().status);
            }
            statuses
        };
        let clients: Vec<_> = (0..clients).map(|_| threads.spawn(ask)).collect();
        meanwhile();
        over.store(true, Ordering::Relaxed);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    })
}
