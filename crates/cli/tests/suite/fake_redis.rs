//! A server that says what a test wants, or nothing: what no real one does when it is asked to.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use ebbtide::lifecycle::{
    time::{Clock as _, ThreadTimer, Timer as _},
    wait::block_on,
};

use super::program::PATIENCE;

pub(crate) struct FakeRedis {
    pub(crate) url: String,
    is_silent: Arc<AtomicBool>,
    /// Each command but PING.
    asked: Receiver<()>,
}

const EMPTY: fn(&str) -> &'static str = |command| if command == "PING" { "+PONG\r\n" } else { "*0\r\n" };

impl FakeRedis {
    /// One that is empty: it has no hash and no list.
    pub(crate) fn empty() -> Self {
        Self::start(EMPTY, Duration::ZERO)
    }

    /// The same, far away: each answer takes a while.
    pub(crate) fn distant(delay: Duration) -> Self {
        Self::start(EMPTY, delay)
    }

    /// One that says that it is there, and then nothing.
    pub(crate) fn mute() -> Self {
        Self::start(|command| if command == "PING" { "+PONG\r\n" } else { "" }, Duration::ZERO)
    }

    /// Waits until it was asked for something.
    pub(crate) fn is_asked(&self) {
        self.asked.recv_timeout(PATIENCE).expect("it is asked");
    }

    /// One that says the same to whatever it is asked.
    pub(crate) fn saying(answer: &'static str) -> Self {
        Self::start(move |_| answer, Duration::ZERO)
    }

    fn start(answer: impl Fn(&str) -> &'static str + Copy + Send + 'static, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let is_silent = Arc::new(AtomicBool::new(false));
        let (silent, (tell, asked)) = (is_silent.clone(), mpsc::channel());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (silent, tell) = (silent.clone(), tell.clone());
                let answer = move |name: &str| {
                    if name != "PING" {
                        // The test may not want to know.
                        let _ = tell.send(());
                    }
                    answer(name)
                };
                // It ends with the connection, however that does.
                thread::spawn(move || drop(talk(stream, &silent, answer, delay)));
            }
        });
        Self { url, is_silent, asked }
    }

    /// From now on it takes connections and commands, and answers none; or it answers those that come from now on.
    pub(crate) fn is_silent(&self, silent: bool) {
        self.is_silent.store(silent, Ordering::SeqCst);
    }
}

fn talk(
    stream: TcpStream,
    is_silent: &AtomicBool,
    answer: impl Fn(&str) -> &'static str,
    delay: Duration,
) -> io::Result<()> {
    let timer = ThreadTimer::start()?;
    let mut answers = stream.try_clone()?;
    let mut commands = BufReader::new(stream);
    while let Some(name) = command(&mut commands)? {
        if !is_silent.load(Ordering::SeqCst) {
            block_on(timer.sleep_until(timer.now() + delay));
            answers.write_all(answer(&name).as_bytes())?;
        }
    }
    Ok(())
}

/// The name of the next command: an array of strings.
fn command(from: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let number = |from: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        from.read_line(&mut line)?;
        Ok::<_, io::Error>(line.trim_end().get(1..).and_then(|digits| digits.parse::<usize>().ok()))
    };
    let Some(parts) = number(from)? else { return Ok(None) };
    let mut name = None;
    for _ in 0..parts {
        let Some(length) = number(from)? else { return Ok(None) };
        let mut bytes = vec![0; length + 2];
        from.read_exact(&mut bytes)?;
        name.get_or_insert_with(|| String::from_utf8_lossy(&bytes[..length]).into_owned());
    }
    Ok(name)
}
