//! Bytes out and in, on one connection.

use std::{
    future::poll_fn,
    io, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BytesMut};
use futures_io::{AsyncRead, AsyncWrite};

use crate::{command::Command, decode::Decoder, value::Value};

/// How much is read at a time.
const CHUNK: usize = 32 << 10;

/// A connection to the server.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

pub(crate) struct Wire {
    stream: Pin<Box<dyn Stream>>,
    /// What is to be written.
    pub(crate) out: BytesMut,
    /// Whether something was written that was not flushed.
    unflushed: bool,
    /// Whether the other end has to make room before more can be written.
    is_full: bool,
    /// See [`take_sign`](Wire::take_sign).
    sign: bool,
    /// Has what was read.
    input: Decoder,
    chunk: Box<[u8]>,
}

impl Wire {
    pub(crate) fn new(stream: Pin<Box<dyn Stream>>) -> Self {
        let (out, input) = (BytesMut::new(), Decoder::default());
        let chunk = vec![0; CHUNK].into();
        Self { stream, out, unflushed: false, is_full: false, sign: false, input, chunk }
    }

    /// Whether the other end has given a sign of life since this was last asked: it has said something, or has made
    /// room where there was none. What is merely written says nothing: there is room for much on the way to one that
    /// hangs.
    pub(crate) fn take_sign(&mut self) -> bool {
        mem::take(&mut self.sign)
    }

    /// Ready when all is written.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            let written = self.stream.as_mut().poll_write(cx, &self.out);
            let was_full = mem::replace(&mut self.is_full, written.is_pending());
            let count = ready!(written)?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sign |= was_full;
            self.out.advance(count);
            self.unflushed = true;
        }
        if self.unflushed {
            ready!(self.stream.as_mut().poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when something was read.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let count = ready!(self.stream.as_mut().poll_read(cx, &mut self.chunk))?;
        if count == 0 {
            let why = "the server has closed the connection";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, why)));
        }
        self.sign = true;
        self.input.extend(&self.chunk[..count]);
        Poll::Ready(Ok(()))
    }

    /// The next answer, if all of it was read.
    pub(crate) fn answer(&mut self) -> io::Result<Option<Value>> {
        Ok(self.input.next()?)
    }

    /// Sends what a connection begins with. Gives the answers.
    ///
    /// # Errors
    /// Also that of the server, if it refuses one of them.
    pub(crate) async fn greet(&mut self, commands: Vec<Command>) -> io::Result<Vec<Value>> {
        let names: Vec<_> = commands.iter().map(Command::name).collect();
        for command in commands {
            command.freeze().write_to(&mut self.out);
        }
        let mut answers = Vec::new();
        poll_fn(|cx| {
            if let Poll::Ready(Err(error)) = self.poll_write(cx) {
                return Poll::Ready(Err(error));
            }
            while answers.len() < names.len() {
                match self.answer()? {
                    Some(Value::Refusal(error)) => {
                        let why = format!("{}: {error}", names[answers.len()]);
                        return Poll::Ready(Err(io::Error::other(why)));
                    }
                    Some(answer) => answers.push(answer),
                    None => ready!(self.poll_read(cx))?,
                }
            }
            Poll::Ready(Ok(()))
        })
        .await?;
        Ok(answers)
    }
}
