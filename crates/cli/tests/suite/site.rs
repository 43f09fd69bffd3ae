//! `ebbtide serve`, running, and what it answers.

use std::{collections::BTreeMap, net::SocketAddr};

use super::{
    http::{Answer, Client},
    program::{Program, Running, ebbtide},
};

/// A request for user 1.
pub(crate) const REQUEST: &[u8] = br#"{"user_id": 1}"#;

pub(crate) struct Site {
    pub(crate) process: Running,
    pub(crate) address: SocketAddr,
}

impl Site {
    /// Serves on a free port. It listens when this returns.
    pub(crate) fn start<'a>(args: impl IntoIterator<Item = &'a str>) -> Self {
        Self::with([], args)
    }

    /// The same, with variables in its environment.
    pub(crate) fn with<'a, const N: usize>(
        variables: [(&str, &str); N],
        args: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let args = ["serve", "--listen", "127.0.0.1:0"].into_iter().chain(args);
        let program =
            variables.into_iter().fold(ebbtide(args), |program, (name, value)| program.env(name, value));
        Self::of(program)
    }

    /// The server that this program is.
    pub(crate) fn of(program: Program) -> Self {
        let mut process = program.start();
        let Some(line) = process.line() else { panic!("it does not listen: {:#?}", process.ends()) };
        let address = line.strip_prefix("listening on http://").unwrap().parse().unwrap();
        Self { process, address }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address).unwrap()
    }

    /// Asks on a connection of its own.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        self.connect().ask(method, path, body).unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, b"")
    }

    pub(crate) fn post(&self, path: &str, body: &[u8]) -> Answer {
        self.ask("POST", path, body)
    }

    /// Sends a request for a plan, and does not wait for the answer, but until it is worked on.
    pub(crate) fn begin(&self, plan: &str) -> Client {
        let in_flight = || self.metrics()["ebbtide_requests_in_flight"];
        let before = in_flight();
        let mut client = self.connect();
        let head =
            format!("POST /plans/{plan} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n", REQUEST.len());
        client.send(&[head.as_bytes(), REQUEST].concat()).unwrap();
        while in_flight() <= before {}
        client
    }

    /// The samples of `/metrics`, by name and labels. Each belongs to a family with a type and a text.
    pub(crate) fn metrics(&self) -> BTreeMap<String, f64> {
        let answer = self.get("/metrics");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; version=0.0.4")));
        let (mut families, mut samples) = (BTreeMap::new(), BTreeMap::new());
        for line in answer.body.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                assert!(help.split_once(' ').is_some_and(|(_, text)| !text.is_empty()), "{line}");
            } else if let Some(family) = line.strip_prefix("# TYPE ") {
                let (name, kind) = family.split_once(' ').unwrap();
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(families.insert(name, kind), None, "{line}");
            } else {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let bare = name.split('{').next().unwrap();
                let is_part = |end: &str| {
                    bare.strip_suffix(end).is_some_and(|family| families.get(family) == Some(&"histogram"))
                };
                assert!(
                    families.contains_key(bare) || ["_bucket", "_sum", "_count"].into_iter().any(is_part),
                    "{line}"
                );
                assert_eq!(samples.insert(name.to_owned(), value.parse().unwrap()), None, "{line}");
            }
        }
        samples
    }
}
