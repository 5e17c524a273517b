//! A controller of one purpose: sends flow-mods of OpenFlow 1.0 as fast as they are taken.
//! Both makes are driven by the same bytes.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const HELLO: u8 = 0;
const ERROR: u8 = 1;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const FLOW_MOD: u8 = 14;
const BARRIER_REQUEST: u8 = 18;
const BARRIER_REPLY: u8 = 19;

/// A connection to a bridge's management socket.
pub(crate) struct Controller(UnixStream);

impl Controller {
    /// Connects and shakes hands.
    pub(crate) fn connect(folder: &Path) -> Result<Self, String> {
        let path = folder.join("br0.mgmt");
        let stream = UnixStream::connect(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let timeout = Some(Duration::from_secs(60));
        stream
            .set_read_timeout(timeout)
            .map_err(|e| e.to_string())?;
        let mut controller = Self(stream);
        controller.send(&message(HELLO, 0, &[]))?;
        controller.wait_for(HELLO)?;
        Ok(controller)
    }

    /// Adds `count` rules that match different TCP destinations, in batches, each followed
    /// by a barrier whose reply is awaited.  `first` numbers the first rule.
    pub(crate) fn add(&mut self, first: u32, count: u32, batch: u32) -> Result<(), String> {
        let mut next = first;
        while next < first + count {
            let end = (next + batch).min(first + count);
            let mut bytes = Vec::new();
            for number in next..end {
                bytes.extend(add_rule(number));
            }
            bytes.extend(message(BARRIER_REQUEST, end, &[]));
            self.send(&bytes)?;
            self.wait_for(BARRIER_REPLY)?;
            next = end;
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.0
            .write_all(bytes)
            .map_err(|e| format!("OpenFlow: {e}"))
    }

    fn wait_for(&mut self, wanted: u8) -> Result<(), String> {
        loop {
            let mut header = [0; 8];
            self.0
                .read_exact(&mut header)
                .map_err(|e| format!("OpenFlow: {e}"))?;
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let mut body = vec![0; length.saturating_sub(8)];
            self.0
                .read_exact(&mut body)
                .map_err(|e| format!("OpenFlow: {e}"))?;
            match header[1] {
                kind if kind == wanted => return Ok(()),
                ERROR => return Err(format!("OpenFlow error {body:?}")),
                ECHO_REQUEST => self.send(&message(ECHO_REPLY, 0, &body))?,
                _ => {}
            }
        }
    }
}

fn message(kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()) as u16;
    let mut bytes = vec![1, kind];
    bytes.extend(length.to_be_bytes());
    bytes.extend(xid.to_be_bytes());
    bytes.extend(body);
    bytes
}

/// Adds a rule for IPv4 destination 10.x.y.z that outputs to port 1 (OpenFlow 1.0, 5.3.3).
fn add_rule(number: u32) -> Vec<u8> {
    let wildcards: u32 = 0x0030_00ef & !(0x10) | 0x0000_3f00;
    let mut body = wildcards.to_be_bytes().to_vec();
    body.extend([0; 2 + 6 + 6 + 2 + 1 + 1]);
    body.extend(0x0800u16.to_be_bytes());
    body.extend([0; 2 + 2 + 4]);
    body.extend((0x0a00_0000 | number).to_be_bytes());
    body.extend([0; 4]);
    body.extend([0; 8]);
    body.extend([0, 0, 0, 0, 0, 0]);
    body.extend(100u16.to_be_bytes());
    body.extend(u32::MAX.to_be_bytes());
    body.extend([0xff, 0xff, 0, 0]);
    body.extend([0, 0, 0, 8, 0, 1, 0, 0]);
    message(FLOW_MOD, number, &body)
}
