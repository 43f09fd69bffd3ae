//! A server of one's own, for tests: it can be killed and started again.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::Range,
    path::PathBuf,
    process::{self, Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

/// A `redis-server` on a free port of the loopback, with a folder of its own. Dropping it kills it, and removes the
/// folder.
#[derive(Debug)]
pub struct Server {
    /// What it is told besides.
    options: Vec<String>,
    address: SocketAddr,
    folder: PathBuf,
    child: Option<Child>,
}

/// How often another port is tried when somebody else has taken the one that was free.
const PORTS_MAX: usize = 8;

/// Below those that systems give to whoever connects: one of these could take the server's port while it is down.
const PORTS: Range<u16> = 15_000..30_000;

/// How far apart processes with neighbouring numbers begin to look for a port.
const STRIDE: u64 = 257;

impl Server {
    /// Starts a server; it takes connections when this returns.
    ///
    /// # Panics
    /// If there is no `redis-server` in the path, saying what to install, or if it does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, with more options: `--cluster-enabled`, `yes`.
    ///
    /// # Panics
    /// As [`start`](Server::start).
    #[must_use]
    pub fn start_with(options: &[&str]) -> Self {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("ebbtide-redis-{}-{number}", process::id()));
        fs::create_dir_all(&folder).expect("a folder for the server");
        for _ in 0..PORTS_MAX {
            let options = options.iter().map(|option| (*option).to_owned()).collect();
            let mut server = Self { options, address: free_address(), folder: folder.clone(), child: None };
            if server.run() {
                return server;
            }
        }
        panic!("redis-server does not start; run it by hand in {} to see why", folder.display());
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kills it, as a machine that fails does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // One that has ended by itself is as dead.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again after it was killed, at the same address, with what it had written to its disk.
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart(&mut self) {
        self.kill();
        assert!(self.run(), "redis-server does not start again at {}", self.address);
    }

    /// Runs the server. Gives whether it takes connections.
    fn run(&mut self) -> bool {
        let port = self.address.port().to_string();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]);
        command.args(["--appendfsync", "always"]).arg("--dir").arg(&self.folder).args(&self.options);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("cannot run redis-server ({error}): install it, for example with `apt-get install -y redis-server`")
        });
        let said = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let ready = said.map_while(Result::ok).any(|line| line.contains("Ready to accept connections"));
        self.child = Some(child);
        if !ready {
            self.kill();
        }
        ready
    }
}

/// Each process, and each call, begins to look somewhere else.
fn free_address() -> SocketAddr {
    static LOOKED: AtomicU64 = AtomicU64::new(0);
    let begin = (LOOKED.fetch_add(1, Ordering::Relaxed) + u64::from(process::id())) * STRIDE;
    let ports = PORTS.cycle().skip(begin as usize % PORTS.len()).take(PORTS.len());
    let mut addresses = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    addresses.find(|address| TcpListener::bind(address).is_ok()).expect("a free port of the loopback")
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        // What is left behind is in a folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
