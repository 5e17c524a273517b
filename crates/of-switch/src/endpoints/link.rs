//! A stream with an OpenFlow connection of the bridge on it.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Result};

use ::io::reconnect::Reconnect;
use ::io::{Interest, Poll, Stream, Token};
use base::Instant;

use crate::bridge::Bridge;
use crate::conn::{ConnId, FrameBuffer};

/// Bytes taken from the bridge before the stream took them.
const WRITE_AHEAD: usize = 64 * 1024;
/// Bytes read in one turn, so that one connection does not keep others waiting.
const READ_PER_TURN: usize = 128 * 1024;
/// Messages given to the kernel at once.
const MESSAGES_PER_SEND: usize = 32;

/// What has to be sent on a stream.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    /// How much of the first message is sent.
    sent: usize,
}

impl Outbox {
    pub(super) fn push(&mut self, message: Vec<u8>) {
        self.bytes += message.len();
        self.messages.push_back(message);
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Sends as much as the stream takes.
    pub(super) fn send(&mut self, stream: &mut Stream) -> Result<()> {
        while !self.messages.is_empty() {
            let skip = self.sent;
            let messages = self.messages.iter().take(MESSAGES_PER_SEND).enumerate();
            let slices: Vec<IoSlice<'_>> = messages
                .map(|(i, m)| IoSlice::new(if i == 0 { &m[skip..] } else { m }))
                .collect();
            match stream.send(&slices) {
                Ok(sent) => self.drop_sent(sent),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        match stream.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    fn drop_sent(&mut self, sent: usize) {
        self.bytes -= sent;
        self.sent += sent;
        while let Some(first) = self.messages.front()
            && self.sent >= first.len()
        {
            self.sent -= first.len();
            self.messages.pop_front();
        }
    }
}

/// A copy of what goes over a link, for those who snoop.
#[derive(Debug, Default)]
pub(super) struct Tap {
    received: FrameBuffer,
    pub(super) copies: Vec<Vec<u8>>,
}

/// A connection that is made.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) stream: Stream,
    pub(super) conn: ConnId,
    /// Probes; for a controller to which we connect, the machine of the connection is used.
    pub(super) probes: Option<Reconnect>,
    /// The target in the configuration that it belongs to.
    pub(super) target: String,
    pub(super) outbox: Outbox,
    pub(super) tap: Option<Tap>,
    /// The bridge is done with it: closed once everything was sent.
    pub(super) is_closing: bool,
}

impl Link {
    pub(super) fn new(stream: Stream, conn: ConnId, target: &str) -> Self {
        Self {
            stream,
            conn,
            probes: None,
            target: target.to_owned(),
            outbox: Outbox::default(),
            tap: None,
            is_closing: false,
        }
    }

    /// Reads what has arrived.  `Ok(true)`: something had.
    pub(super) fn receive(&mut self, bridge: &mut Bridge) -> Result<bool> {
        let mut buffer = [0; 16 * 1024];
        let mut total = 0;
        while bridge.wants_input(self.conn) && total < READ_PER_TURN {
            match self.stream.recv(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    total += n;
                    bridge.receive(self.conn, &buffer[..n]);
                    if let Some(tap) = &mut self.tap {
                        tap.received.push(&buffer[..n]);
                        while let Ok(Some(frame)) = tap.received.next() {
                            tap.copies.push(frame.bytes);
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(total > 0)
    }

    /// Sends what the bridge has to say, as far as the stream takes it.
    pub(super) fn send(&mut self, bridge: &mut Bridge) -> Result<()> {
        loop {
            while self.outbox.bytes() < WRITE_AHEAD {
                let Some(message) = bridge.poll_send(self.conn) else {
                    break;
                };
                if let Some(tap) = &mut self.tap {
                    tap.copies.push(message.clone());
                }
                self.outbox.push(message);
            }
            if self.outbox.is_empty() {
                return Ok(());
            }
            self.outbox.send(&mut self.stream)?;
            if !self.outbox.is_empty() {
                return Ok(());
            }
        }
    }

    /// Waits for what the connection can go on with.
    pub(super) fn watch(&mut self, bridge: &Bridge, poll: &Poll, token: Token) -> Result<()> {
        let interest = Interest {
            read: bridge.wants_input(self.conn),
            write: !self.outbox.is_empty(),
        };
        self.stream.watch(poll, token, interest)
    }

    /// When it wants to be looked at.
    pub(super) fn next_deadline(&self, now: Instant) -> Instant {
        let probes = self.probes.as_ref();
        probes.map_or(Instant::MAX, |p| p.next_deadline(now))
    }
}
