//! Family `ovs_packet`: packets from the datapath to the switch and back.

use super::{begin, parts};
use crate::attr::Attrs;
use crate::msg::{Builder, Message};

/// The version of the interface.
const VERSION: u8 = 1;

const MISS: u8 = 1;
const ACTION: u8 = 2;
const EXECUTE: u8 = 3;

const PACKET: u16 = 1;
const KEY: u16 = 2;
const ACTIONS: u16 = 3;
const USERDATA: u16 = 4;
const EGRESS_TUNNEL_KEY: u16 = 5;
const PROBE: u16 = 8;
const MRU: u16 = 9;
const LEN: u16 = 10;
const HASH: u16 = 11;
const UPCALL_PID: u16 = 12;

/// Why a packet comes to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It met no flow.
    Miss,
    /// A `userspace` action.
    Action,
}

/// What the kernel knows of a packet beside its key, and wants to hear again when it comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// It was put together from fragments, the longest of which had so many bytes.
    pub mru: Option<u16>,
    /// The hash over its connection.
    pub hash: Option<u64>,
}

/// A packet for the switch.
#[derive(Clone, Copy, Debug)]
pub struct Upcall<'a> {
    /// The datapath's number.
    pub dp: u32,
    /// Why it comes.
    pub why: Why,
    /// The packet, from its first header on.
    pub packet: &'a [u8],
    /// Its key.
    pub key: Attrs<'a>,
    /// What the switch wrote into the action.
    pub userdata: Option<&'a [u8]>,
    /// The rest of the flow's actions, where the action asked for them.
    pub actions: Option<Attrs<'a>>,
    /// The tunnel that the packet would leave by.
    pub egress_tunnel: Option<Attrs<'a>>,
    /// Its length before it was cut; none if it is whole.
    pub whole_len: Option<u32>,
    /// What goes back with it.
    pub extra: Extra,
}

impl<'a> Upcall<'a> {
    /// From a message; `None` if it is another or malformed.
    pub fn parse(message: &Message<'a>) -> Option<Self> {
        let parts = parts(message)?;
        let why = match parts.command {
            MISS => Why::Miss,
            ACTION => Why::Action,
            _ => return None,
        };
        let (mut packet, mut key) = (None, None);
        let mut upcall = Self {
            dp: parts.dp,
            why,
            packet: &[],
            key: Attrs::new(&[]),
            userdata: None,
            actions: None,
            egress_tunnel: None,
            whole_len: None,
            extra: Extra::default(),
        };
        for attr in parts.attrs {
            match attr.kind {
                PACKET => packet = Some(attr.value),
                KEY => key = Some(attr.nested()),
                USERDATA => upcall.userdata = Some(attr.value),
                ACTIONS => upcall.actions = Some(attr.nested()),
                EGRESS_TUNNEL_KEY => upcall.egress_tunnel = Some(attr.nested()),
                MRU => upcall.extra.mru = attr.u16(),
                LEN => upcall.whole_len = attr.u32(),
                HASH => upcall.extra.hash = attr.u64(),
                _ => {}
            }
        }
        upcall.packet = packet?;
        upcall.key = key?;
        Some(upcall)
    }
}

/// A packet that is to be sent through actions.
#[derive(Clone, Copy, Debug)]
pub struct Execute<'a> {
    /// The packet, from its first header on.
    pub packet: &'a [u8],
    /// Its metadata: attributes' bytes.  Header fields are read from the packet.
    pub key: &'a [u8],
    /// What is done to it: attributes' bytes.
    pub actions: &'a [u8],
    /// What the kernel knew of it.
    pub extra: Extra,
    /// The socket for packets that come back to the switch on the way, so that those of one flow
    /// stay in order; kernels that do not know it pass it over.
    pub upcall_pid: Option<u32>,
    /// Only asks whether the kernel would do it: what it refuses is not logged.
    pub probe: bool,
}

/// Sends a packet through actions.  Without [`crate::msg::nl::ACK`] among `flags` only a refusal is
/// answered.
pub fn execute(family: u16, dp: u32, execute: &Execute<'_>, flags: u16) -> Builder {
    let mut builder = begin(family, EXECUTE, VERSION, flags, dp);
    builder
        .put(PACKET, execute.packet)
        .put(KEY, execute.key)
        .put(ACTIONS, execute.actions);
    if execute.probe {
        builder.put_flag(PROBE);
    }
    if let Some(mru) = execute.extra.mru {
        builder.put_u16(MRU, mru);
    }
    if let Some(hash) = execute.extra.hash {
        builder.put(HASH, &hash.to_ne_bytes());
    }
    if let Some(pid) = execute.upcall_pid {
        builder.put_u32(UPCALL_PID, pid);
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::super::{only, sent, shorten};
    use super::*;

    #[test]
    fn an_upcall_is_read() {
        let mut builder = begin(33, ACTION, VERSION, 0, 7);
        builder
            .put(PACKET, &[0xaa; 61])
            .put(KEY, &[8, 0, 3, 0, 1, 0, 0, 0])
            .put(USERDATA, &[1, 2, 3])
            .put(ACTIONS, &[8, 0, 1, 0, 2, 0, 0, 0])
            .put_u16(MRU, 1400)
            .put_u32(LEN, 1514)
            .put(HASH, &(1u64 << 33 | 5).to_ne_bytes());
        let bytes = sent(builder);
        let upcall = Upcall::parse(&only(&bytes)).unwrap();
        assert_eq!((upcall.dp, upcall.why), (7, Why::Action));
        assert_eq!(upcall.packet, [0xaa; 61]);
        assert_eq!(upcall.key.find(3).unwrap().u32(), Some(1));
        assert_eq!(upcall.userdata, Some(&[1, 2, 3][..]));
        assert_eq!(upcall.actions.unwrap().count(), 1);
        assert_eq!(upcall.whole_len, Some(1514));
        assert_eq!(upcall.extra.mru, Some(1400));
        assert_eq!(upcall.extra.hash, Some(1 << 33 | 5));
        shorten(&bytes, |m| {
            let _ = Upcall::parse(m);
        });
    }

    #[test]
    fn an_execution_as_the_kernel_wants_it() {
        let extra = Extra {
            mru: Some(9),
            hash: None,
        };
        let request = Execute {
            packet: &[1, 2],
            key: &[3; 4],
            actions: &[4; 4],
            extra,
            upcall_pid: Some(5),
            probe: true,
        };
        let bytes = sent(execute(33, 7, &request, 0));
        let message = only(&bytes);
        assert!(Upcall::parse(&message).is_none());
        assert_eq!(
            message.body,
            [
                [3, 1, 0, 0, 7, 0, 0, 0].as_slice(),
                &[6, 0, 1, 0, 1, 2, 0, 0],
                &[8, 0, 2, 0, 3, 3, 3, 3],
                &[8, 0, 3, 0, 4, 4, 4, 4],
                &[4, 0, 8, 0],
                &[6, 0, 9, 0, 9, 0, 0, 0],
                &[8, 0, 12, 0, 5, 0, 0, 0],
            ]
            .concat()
        );
    }
}
