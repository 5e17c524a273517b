//! JSON-RPC sessions under a virtual clock.

use std::time::Duration;

use base::{Clock, Instant};
use io::jsonrpc::SessionOptions;
use io::{Interest, Listener, Message, Net, Poll, Rpc, Session, Token};
use json::Json;

use crate::streams::TempDir;

const CLIENT: Token = Token(1);
const SERVER: Token = Token(2);
const LISTENER: Token = Token(3);

/// A session and a server that answers as the test says.
struct Pair {
    poll: Poll,
    net: Net,
    session: Session,
    listener: Option<Listener>,
    server: Option<Rpc>,
    /// What the server got.
    got: Vec<Message>,
    /// Whether it answers requests.
    answers: bool,
}

impl Pair {
    fn new(dir: &TempDir, options: SessionOptions) -> Self {
        let clock = Clock::stopped(Instant::from_millis(1000));
        let net = dir.net();
        let remotes = vec!["mem:db".to_owned()];
        Self {
            poll: Poll::new(&clock).unwrap(),
            session: Session::new(&net, remotes, CLIENT, options, clock.now()),
            net,
            listener: None,
            server: None,
            got: Vec::new(),
            answers: true,
        }
    }

    fn listen(&mut self) {
        let mut listener = self.net.listen("pmem:db", 0, 0).unwrap();
        listener
            .watch(&self.poll, LISTENER, Interest::READ)
            .unwrap();
        self.listener = Some(listener);
    }

    /// Runs both ends until nothing is left to do now.
    fn settle(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let now = self.poll.now();
            self.session.run(now);
            while let Some(message) = self.session.recv(now) {
                messages.push(message);
            }
            self.session.watch(&mut self.poll);
            self.serve();
            let mut events = Vec::new();
            self.poll.wait(Instant::ZERO, &mut events).unwrap();
            if events.is_empty() && self.session.next_deadline(now) > now {
                return messages;
            }
        }
    }

    fn serve(&mut self) {
        if let Some(listener) = &mut self.listener
            && let Ok(stream) = listener.accept()
        {
            self.server = Some(Rpc::new(stream, SERVER));
        }
        let Some(rpc) = &mut self.server else { return };
        let open = loop {
            match rpc.recv() {
                Ok(Some(message)) => {
                    if let Message::Request { params, id, .. } = &message
                        && self.answers
                    {
                        rpc.send(&Message::reply(params.clone(), id.clone()));
                    }
                    self.got.push(message);
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        if !open || rpc.watch(&mut self.poll, true).is_err() {
            self.server = None;
        }
    }

    fn advance(&mut self, millis: u64) -> Vec<Message> {
        self.poll.clock().step(Duration::from_millis(millis));
        self.settle()
    }
}

#[test]
fn a_session_connects_talks_and_connects_again() {
    let dir = TempDir::new("session");
    let mut pair = Pair::new(&dir, SessionOptions::default());
    pair.settle();
    assert!(!pair.session.is_connected() && pair.session.is_alive());
    pair.listen();
    pair.settle();
    assert!(!pair.session.is_connected());
    pair.advance(1000);
    assert!(pair.session.is_connected());
    let seqno = pair.session.seqno();

    let big = "x".repeat(3 << 20);
    let params = vec![Json::string(big), Json::Integer(5)];
    let now = pair.poll.now();
    let request = Message::request("transact", params.clone(), Json::Integer(1));
    assert!(pair.session.send(&request, now));
    let replies = pair.settle();
    assert_eq!(
        replies,
        [Message::reply(Json::Array(params), Json::Integer(1))]
    );

    // The server goes away and a new one comes.
    pair.server = None;
    pair.settle();
    assert!(!pair.session.is_connected());
    assert_ne!(pair.session.seqno(), seqno);
    // It did not last, so the pause has doubled.
    pair.advance(2000);
    assert!(pair.session.is_connected());
}

#[test]
fn a_silent_peer_is_probed_and_dropped() {
    let dir = TempDir::new("probe");
    let mut pair = Pair::new(&dir, SessionOptions::default());
    pair.listen();
    pair.settle();
    pair.advance(5000);
    // The probe was answered: another interval begins.
    assert_eq!(pair.got.len(), 1);
    pair.advance(4999);
    assert_eq!(pair.got.len(), 1);
    pair.answers = false;
    pair.advance(1);
    assert_eq!(pair.got.len(), 2);
    assert!(pair.session.is_connected());
    pair.advance(4999);
    assert!(pair.session.is_connected());
    pair.advance(1);
    assert_eq!(
        pair.session.stats(pair.poll.now()).last_disconnected,
        Some(pair.poll.now())
    );
}

#[test]
fn a_session_without_retry_ends() {
    let dir = TempDir::new("once");
    let once = SessionOptions {
        retry: false,
        ..SessionOptions::default()
    };
    let mut pair = Pair::new(&dir, once);
    pair.settle();
    assert!(!pair.session.is_alive());
    let error = pair.session.last_error().unwrap();
    assert_eq!(io::error_text(error), "Connection refused");
}

#[test]
fn a_peer_that_does_not_read_is_dropped() {
    let dir = TempDir::new("backlog");
    let mut pair = Pair::new(&dir, SessionOptions::default());
    pair.listen();
    pair.settle();
    pair.session.set_max_backlog(3, 0);
    let now = pair.poll.now();
    let update = Message::notification("update", vec![]);
    let sent = (0..5).filter(|_| pair.session.send(&update, now)).count();
    assert_eq!(sent, 3);
}

#[test]
fn what_is_not_json_rpc_ends_the_connection() {
    for (input, expected) in [
        ("{\"id\":1,", "End of file"),
        ("]", "Protocol error"),
        ("{\"foo\":1}", "Protocol error"),
        (
            "{\"method\":\"0123456789012345678901234567890123456789",
            "Protocol error",
        ),
    ] {
        let (mut raw, other) = io::Stream::pair().unwrap();
        raw.send(&[std::io::IoSlice::new(input.as_bytes())])
            .unwrap();
        drop(raw);
        let mut rpc = Rpc::new(other, SERVER);
        rpc.set_max_message(40);
        let error = rpc.recv().unwrap_err();
        assert_eq!(io::error_text(&error), expected);
    }
}
