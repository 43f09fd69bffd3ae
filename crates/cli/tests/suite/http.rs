//! A client of HTTP/1.1 that does as it is told, also what no good client does.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

use super::program::PATIENCE;

/// One connection.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> io::Result<Answer> {
        let length = body.len();
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {length}\r\n\r\n")
                .into_bytes();
        request.extend_from_slice(body);
        // A server that has heard enough answers and closes: the answer is there, though not all was sent.
        let _ = self.send(&request);
        self.answer(method == "HEAD")
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Whether nothing comes for a while.
    pub(crate) fn hears_nothing(&self, length: Duration) -> bool {
        let stream = self.stream.get_ref();
        stream.set_read_timeout(Some(length)).unwrap();
        let heard = stream.peek(&mut [0]);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        heard.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Reads an answer.
    pub(crate) fn answer(&mut self, has_no_body: bool) -> io::Result<Answer> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP");
        let status = self.line()?.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(wrong)?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").ok_or_else(wrong)?;
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut answer = Answer { status, headers, body: String::new() };
        let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if !has_no_body {
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body)?;
            answer.body = String::from_utf8(body).map_err(|_| wrong())?;
        }
        Ok(answer)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| &**value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Asserts the status and the code of an error. Gives its message.
    pub(crate) fn is_error(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{self:#?}");
        let json = self.json();
        assert_eq!(json["error"]["code"], code, "{self:#?}");
        json["error"]["message"].as_str().unwrap().to_owned()
    }
}
