//! A controller on a bridge's management socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use net_flow::Names;
use of_wire::codec::Dialect;
use of_wire::message::SwitchConfig;
use of_wire::text::{FlowCommand, parse_flow};
use of_wire::{Body, Message, Version};

use crate::harness::Harness;

/// Rounds of the main loop in which an answer must have come.
const ROUNDS: usize = 100;

pub(crate) struct Controller {
    stream: UnixStream,
    version: Version,
    received: Vec<u8>,
    next: u32,
    /// What came unasked.
    pub(crate) unasked: Vec<Body>,
}

impl Controller {
    /// Connects to `br0` and asks to be told of what happens.
    pub(crate) fn connect(harness: &mut Harness, version: Version) -> Self {
        let stream = UnixStream::connect(harness.folder().join("br0.mgmt")).unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut controller = Self {
            stream,
            version,
            received: Vec::new(),
            next: 1,
            unasked: Vec::new(),
        };
        controller.write(&[version as u8, 0, 0, 8, 0, 0, 0, 0]);
        controller.send(Body::SetConfig(SwitchConfig {
            frag: 0,
            invalid_ttl_to_controller: None,
            miss_send_len: 128,
        }));
        controller.barrier(harness);
        controller
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    fn send(&mut self, body: Body) -> u32 {
        self.next += 1;
        let message = Message::new(self.version, self.next, body);
        self.write(&message.encode(Dialect::of(self.version)));
        self.next
    }

    /// Sends a flow-mod as `ovs-ofctl` reads it, which begins with what it does.
    pub(crate) fn flow_mod(&mut self, text: &str) {
        let parsed = parse_flow(text, FlowCommand::FirstWord, &Names::default());
        let mut flow = parsed.unwrap().flow;
        if flow.table == u8::MAX {
            flow.table = 0;
        }
        self.send(Body::FlowMod(Box::new(flow)));
    }

    /// The first answer to a request.
    pub(crate) fn ask(&mut self, harness: &mut Harness, body: Body) -> Body {
        let xid = self.send(body);
        for _ in 0..ROUNDS {
            harness.serve();
            for message in self.read() {
                if message.xid == xid {
                    return message.body;
                }
                self.unasked.push(message.body);
            }
        }
        panic!("no answer in {ROUNDS} rounds");
    }

    /// Waits until all requests so far are carried out.
    pub(crate) fn barrier(&mut self, harness: &mut Harness) {
        let answer = self.ask(harness, Body::BarrierRequest);
        assert_eq!(answer, Body::BarrierReply);
    }

    fn read(&mut self) -> Vec<Message> {
        let mut buffer = [0; 65536];
        while let Ok(n) = self.stream.read(&mut buffer) {
            assert!(n > 0, "the switch has closed the connection");
            self.received.extend_from_slice(&buffer[..n]);
        }
        let (messages, rest) = of_wire::codec::split(&self.received).unwrap();
        let decode = |bytes: &[u8]| Message::decode(bytes, Dialect::of(self.version)).unwrap();
        let messages: Vec<Message> = messages.into_iter().map(decode).collect();
        self.received = rest.to_vec();
        messages
    }
}
