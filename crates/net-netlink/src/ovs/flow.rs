//! Family `ovs_flow`.

use super::{begin, cmd, parts, words};
use crate::attr::Attrs;
use crate::msg::{Builder, Message, nl};

/// The version of the interface.
const VERSION: u8 = 1;

const KEY: u16 = 1;
const ACTIONS: u16 = 2;
const STATS: u16 = 3;
const TCP_FLAGS: u16 = 4;
const USED: u16 = 5;
const CLEAR: u16 = 6;
const MASK: u16 = 7;
const PROBE: u16 = 8;
const UFID: u16 = 9;
const UFID_FLAGS: u16 = 10;

/// What an answer leaves out.
pub mod omit {
    /// The key.
    pub const KEY: u32 = 1;
    /// The mask.
    pub const MASK: u32 = 1 << 1;
    /// The actions.
    pub const ACTIONS: u32 = 1 << 2;
}

/// The longest id that a flow has.
pub const UFID_LEN: usize = 16;

/// A flow's id as its bytes are.
pub type UfidBytes = [u8; UFID_LEN];

/// What a flow has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// When its last packet came, in milliseconds of the kernel's monotonic clock.
    pub used: Option<u64>,
    /// The TCP flags seen, or-ed.
    pub tcp_flags: u8,
}

/// A flow, as a message describes it.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// The datapath's number.
    pub dp: u32,
    /// Whether the message says that it is gone.
    pub gone: bool,
    /// Its id, if it has one of the full length.
    pub ufid: Option<UfidBytes>,
    /// Its key.
    pub key: Option<Attrs<'a>>,
    /// Its mask.
    pub mask: Option<Attrs<'a>>,
    /// Its actions.
    pub actions: Option<Attrs<'a>>,
    /// What it has counted.
    pub stats: Stats,
}

impl<'a> Flow<'a> {
    /// From a message about a flow; `None` if it is malformed.
    pub fn parse(message: &Message<'a>) -> Option<Self> {
        let parts = parts(message)?;
        let mut flow = Self {
            dp: parts.dp,
            gone: parts.command == cmd::DEL,
            ufid: None,
            key: None,
            mask: None,
            actions: None,
            stats: Stats::default(),
        };
        for attr in parts.attrs {
            match attr.kind {
                KEY => flow.key = Some(attr.nested()),
                MASK => flow.mask = Some(attr.nested()),
                ACTIONS => flow.actions = Some(attr.nested()),
                STATS => [flow.stats.packets, flow.stats.bytes] = words(attr.value),
                TCP_FLAGS => flow.stats.tcp_flags = attr.u8()?,
                USED => flow.stats.used = attr.u64(),
                UFID => flow.ufid = attr.value.try_into().ok(),
                _ => {}
            }
        }
        Some(flow)
    }
}

/// Which flow a request is about.
#[derive(Clone, Copy, Debug)]
pub enum FlowRef<'a> {
    /// That with this id.
    Ufid(&'a UfidBytes),
    /// That with this key (its attributes' bytes), for flows without an id.
    Key(&'a [u8]),
}

/// A flow that is to be put.
#[derive(Clone, Copy, Debug)]
pub struct FlowPut<'a> {
    /// Its id.
    pub ufid: Option<&'a UfidBytes>,
    /// Its key: attributes' bytes.
    pub key: &'a [u8],
    /// Its mask; without one all bits of the key matter.
    pub mask: Option<&'a [u8]>,
    /// Its actions; without any a flow that exists keeps those it has.
    pub actions: Option<&'a [u8]>,
    /// Makes the flow if there is none.
    pub create: bool,
    /// Replaces the actions of one that exists; else that is an error.
    pub replace: bool,
    /// Sets its counters to zero.
    pub clear: bool,
    /// Only asks whether the kernel would take it: what it refuses is not logged.
    pub probe: bool,
}

/// Puts a flow.
///
/// A flow that may be made and replaced is a request for a new one: the kernel takes that as a
/// change where it exists.  Without [`nl::ACK`] among `flags` only a refusal is answered.
pub fn put(family: u16, dp: u32, flow: &FlowPut<'_>, flags: u16) -> Builder {
    let (command, own) = match (flow.create, flow.replace) {
        (true, true) => (cmd::NEW, nl::CREATE),
        (true, false) => (cmd::NEW, nl::CREATE | nl::EXCLUSIVE),
        (false, _) => (cmd::SET, 0),
    };
    let mut builder = begin(family, command, VERSION, flags | own, dp);
    if let Some(ufid) = flow.ufid {
        builder.put(UFID, ufid);
    }
    builder.put(KEY, flow.key);
    if let Some(mask) = flow.mask {
        builder.put(MASK, mask);
    }
    if let Some(actions) = flow.actions {
        builder.put(ACTIONS, actions);
    }
    if flow.clear {
        builder.put_flag(CLEAR);
    }
    if flow.probe {
        builder.put_flag(PROBE);
    }
    builder
}

fn about(
    family: u16,
    command: u8,
    flags: u16,
    dp: u32,
    flow: FlowRef<'_>,
    leave_out: u32,
) -> Builder {
    let mut builder = begin(family, command, VERSION, flags, dp);
    match flow {
        FlowRef::Ufid(ufid) => builder.put(UFID, ufid),
        FlowRef::Key(key) => builder.put(KEY, key),
    };
    if leave_out != 0 {
        builder.put_u32(UFID_FLAGS, leave_out);
    }
    builder
}

/// Asks for a flow, without what [`omit`] says.
pub fn get(family: u16, dp: u32, flow: FlowRef<'_>, leave_out: u32) -> Builder {
    about(family, cmd::GET, 0, dp, flow, leave_out)
}

/// Removes a flow; the answer describes it, without what [`omit`] says.
pub fn delete(family: u16, dp: u32, flow: FlowRef<'_>, leave_out: u32) -> Builder {
    about(family, cmd::DEL, nl::ACK | nl::ECHO, dp, flow, leave_out)
}

/// Removes all flows.
pub fn flush(family: u16, dp: u32) -> Builder {
    begin(family, cmd::DEL, VERSION, nl::ACK, dp)
}

/// Asks for all flows, without what [`omit`] says.
pub fn dump(family: u16, dp: u32, leave_out: u32) -> Builder {
    let mut builder = begin(family, cmd::GET, VERSION, nl::DUMP, dp);
    if leave_out != 0 {
        builder.put_u32(UFID_FLAGS, leave_out);
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::super::{only, sent, shorten};
    use super::*;

    const ID: UfidBytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

    fn example() -> FlowPut<'static> {
        FlowPut {
            ufid: Some(&ID),
            key: &[8, 0, 3, 0, 1, 0, 0, 0],
            mask: Some(&[8, 0, 3, 0, 255, 255, 255, 255]),
            actions: Some(&[8, 0, 1, 0, 2, 0, 0, 0]),
            create: true,
            replace: false,
            clear: true,
            probe: false,
        }
    }

    #[test]
    fn a_put_as_the_kernel_wants_it() {
        let bytes = sent(put(31, 7, &example(), 0));
        let message = only(&bytes);
        assert_eq!(message.header.flags, nl::REQUEST | 0x600);
        assert_eq!(
            message.body,
            [
                [1, 1, 0, 0, 7, 0, 0, 0].as_slice(),
                &[20, 0, 9, 0],
                &ID,
                &[12, 0, 1, 0, 8, 0, 3, 0, 1, 0, 0, 0],
                &[12, 0, 7, 0, 8, 0, 3, 0, 255, 255, 255, 255],
                &[12, 0, 2, 0, 8, 0, 1, 0, 2, 0, 0, 0],
                &[4, 0, 6, 0],
            ]
            .concat()
        );
        let change = FlowPut {
            create: false,
            ..example()
        };
        let bytes = sent(put(31, 7, &change, nl::ACK));
        assert_eq!(only(&bytes).body[0], cmd::SET);
    }

    #[test]
    fn a_flow_is_read() {
        let mut builder = put(31, 7, &example(), 0);
        builder
            .put(STATS, &[3u64, 300].map(u64::to_ne_bytes).concat())
            .put_u8(TCP_FLAGS, 0x12)
            .put(USED, &5000u64.to_ne_bytes());
        let bytes = sent(builder);
        let flow = Flow::parse(&only(&bytes)).unwrap();
        assert_eq!((flow.dp, flow.gone, flow.ufid), (7, false, Some(ID)));
        assert_eq!(flow.key.unwrap().find(3).unwrap().u32(), Some(1));
        assert_eq!(flow.mask.unwrap().find(3).unwrap().u32(), Some(u32::MAX));
        assert_eq!(flow.actions.unwrap().count(), 1);
        assert_eq!(
            flow.stats,
            Stats {
                packets: 3,
                bytes: 300,
                used: Some(5000),
                tcp_flags: 0x12,
            }
        );
        shorten(&bytes, |m| {
            let _ = Flow::parse(m);
        });
    }
}
