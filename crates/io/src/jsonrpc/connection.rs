//! One connection: framing, a queue of output, bounded input.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;

use json::Parser;

use super::Message;
use crate::event::{Interest, Poll, Token};
use crate::stream::Stream;

/// Bytes taken from a stream at once.
const CHUNK: usize = 32 * 1024;
/// Reads between two looks at the other connections.
const READS_PER_TURN: u32 = 16;
/// Buffers passed to the kernel at once.
const MAX_SLICES: usize = 64;

#[derive(Debug)]
enum Piece {
    Own(String),
    Shared(Arc<str>),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(text) => text.as_bytes(),
            Self::Shared(text) => text.as_bytes(),
        }
    }
}

/// A JSON-RPC connection over a stream.  In a turn of the loop its owner calls
/// [`Rpc::recv`] a bounded number of times, [`Rpc::send`] as it likes, then
/// [`Rpc::watch`], which also sends what can be sent.
#[derive(Debug)]
pub struct Rpc {
    stream: Stream,
    token: Token,
    parser: Parser,
    input: Vec<u8>,
    /// What of `input` was parsed.
    used: usize,
    reads: u32,
    /// The last read was cut off by the bound: there may be more.
    more: bool,
    output: VecDeque<Piece>,
    /// What of the first piece was sent.
    sent: usize,
    backlog: usize,
    /// Each queued message's size.
    queued: VecDeque<usize>,
    received: u64,
    /// Bytes of the message that is being received.
    partial: usize,
    max_message: usize,
    /// The last flush left something to send.
    blocked: bool,
    /// Bytes taken by the peer after it had let us wait.
    drained: u64,
    failed: bool,
}

impl Rpc {
    /// A connection over `stream`, watched under `token`.
    pub fn new(stream: Stream, token: Token) -> Self {
        Self {
            stream,
            token,
            parser: Parser::new(),
            input: Vec::new(),
            used: 0,
            reads: 0,
            more: false,
            output: VecDeque::new(),
            sent: 0,
            backlog: 0,
            queued: VecDeque::new(),
            received: 0,
            partial: 0,
            max_message: usize::MAX,
            blocked: false,
            drained: 0,
            failed: false,
        }
    }

    /// The stream's name.
    pub fn name(&self) -> &str {
        self.stream.name()
    }

    /// Refuses messages of more than `bytes`, so that a peer cannot have us keep more.
    pub fn set_max_message(&mut self, bytes: usize) {
        self.max_message = bytes;
    }

    /// The stream below.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Bytes that wait to be sent.
    pub fn backlog(&self) -> usize {
        self.backlog
    }

    /// Messages of which some bytes wait to be sent.
    pub fn queued(&self) -> usize {
        self.queued.len()
    }

    /// Bytes received so far, which tells whether a peer is alive in the middle of a long
    /// message.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that the peer took after it had let us wait, which tells that it is alive.
    pub fn drained(&self) -> u64 {
        self.drained
    }

    /// Queues `message`.
    pub fn send(&mut self, message: &Message) {
        self.log("send", message);
        let before = self.backlog;
        let mut text = String::new();
        let (output, backlog) = (&mut self.output, &mut self.backlog);
        let mut push = |piece: Piece| {
            *backlog += piece.bytes().len();
            output.push_back(piece);
        };
        message.write(&mut text, &mut |text, part| {
            push(Piece::Own(std::mem::take(text)));
            push(Piece::Shared(part.clone()));
        });
        push(Piece::Own(text));
        self.queued.push_back(self.backlog - before);
    }

    fn log(&self, verb: &str, message: &Message) {
        log::debug!(target: "jsonrpc", "{}: {verb} {}{}",
            self.name(), message.kind(), message.details());
    }

    /// Sends what the stream takes.
    ///
    /// # Errors
    /// Why the connection failed.
    pub fn flush(&mut self) -> io::Result<()> {
        let before = self.backlog;
        let result = self.try_flush();
        if self.blocked {
            self.drained += (before - self.backlog) as u64;
        }
        self.blocked = self.backlog > 0;
        if let Err(error) = &result {
            self.log_failure("send", error);
        }
        result
    }

    fn log_failure(&mut self, what: &str, error: &io::Error) {
        if !self.failed {
            self.failed = true;
            base::log_limited!(
                Warn,
                "jsonrpc",
                (5, 5),
                "{}: {what} error: {}",
                self.stream.name(),
                crate::error_text(error)
            );
        }
    }

    fn try_flush(&mut self) -> io::Result<()> {
        self.stream.flush()?;
        while !self.output.is_empty() {
            let mut skip = self.sent;
            let slices: Vec<IoSlice<'_>> = self
                .output
                .iter()
                .take(MAX_SLICES)
                .map(|piece| IoSlice::new(&piece.bytes()[std::mem::take(&mut skip)..]))
                .collect();
            match self.stream.send(&slices) {
                Ok(count) => self.drop_sent(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn drop_sent(&mut self, count: usize) {
        self.backlog -= count;
        let mut left = count;
        while let Some(size) = self.queued.front_mut() {
            if *size > left {
                *size -= left;
                break;
            }
            left -= *size;
            self.queued.pop_front();
        }
        self.sent += count;
        while let Some(piece) = self.output.front() {
            let length = piece.bytes().len();
            if self.sent < length {
                break;
            }
            self.sent -= length;
            self.output.pop_front();
        }
    }

    /// The next message, if one has come.
    ///
    /// # Errors
    /// `UnexpectedEof` if the peer closed the connection; `EPROTO` if what it sent is not
    /// JSON-RPC; otherwise why the connection failed.  The connection is then to be dropped.
    pub fn recv(&mut self) -> io::Result<Option<Message>> {
        loop {
            while self.used < self.input.len() {
                let fed = self.parser.feed(&self.input[self.used..]);
                self.used += fed;
                self.partial += fed;
                if self.partial > self.max_message {
                    base::log_limited!(
                        Warn,
                        "jsonrpc",
                        (5, 5),
                        "{}: message is longer than {} bytes",
                        self.stream.name(),
                        self.max_message
                    );
                    return Err(rustix::io::Errno::PROTO.into());
                }
                if self.parser.is_done() {
                    self.partial = 0;
                    return self.take_message().map(Some);
                }
            }
            if self.reads >= READS_PER_TURN {
                self.more = true;
                return Ok(None);
            }
            self.input.resize(CHUNK, 0);
            self.used = 0;
            match self.stream.recv(&mut self.input) {
                Ok(0) => {
                    self.input.clear();
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                Ok(count) => {
                    self.input.truncate(count);
                    self.reads += 1;
                    self.received += count as u64;
                }
                Err(error) => {
                    self.input.clear();
                    if error.kind() == ErrorKind::WouldBlock {
                        // An idle connection keeps no buffer.
                        self.input = Vec::new();
                        return Ok(None);
                    }
                    self.log_failure("receive", &error);
                    return Err(error);
                }
            }
        }
    }

    fn take_message(&mut self) -> io::Result<Message> {
        let bad = || io::Error::from(rustix::io::Errno::PROTO);
        let json = self.parser.take().map_err(|error| {
            base::log_limited!(
                Warn,
                "jsonrpc",
                (5, 5),
                "{}: error parsing stream: {error}",
                self.stream.name()
            );
            bad()
        })?;
        let message = Message::from_json(json).map_err(|error| {
            base::log_limited!(
                Warn,
                "jsonrpc",
                (5, 5),
                "{}: received bad JSON-RPC message: {error}",
                self.stream.name()
            );
            bad()
        })?;
        self.log("received", &message);
        Ok(message)
    }

    /// Ends a turn: sends what the stream takes, then waits for what is left to do.  With
    /// `read` false nothing more is received for now.
    ///
    /// # Errors
    /// Why the connection failed.
    pub fn watch(&mut self, poll: &mut Poll, read: bool) -> io::Result<()> {
        self.flush()?;
        if read && (self.more || self.used < self.input.len()) {
            poll.again(self.token);
        }
        self.more = false;
        self.reads = 0;
        let interest = Interest::new(read, !self.output.is_empty());
        if interest == Interest::NONE {
            // Even then the kernel would go on reporting that the peer has hung up.
            self.stream.unwatch(poll);
            return Ok(());
        }
        self.stream.watch(poll, self.token, interest)
    }
}
