//! The families of the kernel's Open vSwitch module.
//!
//! A message is the generic header, the interface number of the datapath, and attributes.  What
//! is inside flow keys and action lists is not read here; the datapath's language does that.
//!
//! Source: the kernel's `linux/openvswitch.h`.

pub mod ct_limit;
pub mod datapath;
pub mod flow;
pub mod meter;
pub mod packet;
pub mod vport;

use crate::attr::Attrs;
use crate::genl;
use crate::msg::{Builder, Message};

/// Names of families; the multicast group of each is called the same.
pub mod family {
    /// Datapaths.
    pub const DATAPATH: &str = "ovs_datapath";
    /// Ports.
    pub const VPORT: &str = "ovs_vport";
    /// Flows.
    pub const FLOW: &str = "ovs_flow";
    /// Packets, to and from the switch.
    pub const PACKET: &str = "ovs_packet";
    /// Meters; kernels from 4.15 on.
    pub const METER: &str = "ovs_meter";
    /// Limits of connection tracking; kernels from 4.18 on.
    pub const CT_LIMIT: &str = "ovs_ct_limit";
}

/// Commands that most families have.
mod cmd {
    pub(super) const NEW: u8 = 1;
    pub(super) const DEL: u8 = 2;
    pub(super) const GET: u8 = 3;
    pub(super) const SET: u8 = 4;
}

/// Length of the headers before the attributes: the generic one and `struct ovs_header`.
const HEADERS: usize = genl::HEADER_LEN + 4;

/// Begins a request about datapath `dp` (its interface number; 0 for none in particular).
fn begin(family: u16, command: u8, version: u8, flags: u16, dp: u32) -> Builder {
    let mut builder = genl::begin(family, command, version, flags);
    builder.raw(&dp.to_ne_bytes());
    builder
}

/// The parts of a message.
struct Parts<'a> {
    command: u8,
    dp: u32,
    attrs: Attrs<'a>,
}

fn parts<'a>(message: &Message<'a>) -> Option<Parts<'a>> {
    let header: &[u8; HEADERS] = message.body.first_chunk()?;
    Some(Parts {
        command: header[0],
        dp: u32::from_ne_bytes([header[4], header[5], header[6], header[7]]),
        attrs: message.attrs_after(HEADERS),
    })
}

/// The 64-bit numbers of a structure, which may be shorter on older kernels: what is missing is
/// zero.
fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut all = [0; N];
    for (to, from) in all.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *to = u64::from_ne_bytes(*from);
    }
    all
}

/// What is done with a message's attributes in tests.
#[cfg(test)]
fn sent(mut builder: Builder) -> Vec<u8> {
    builder.finish(1).unwrap().to_vec()
}

#[cfg(test)]
fn only(bytes: &[u8]) -> Message<'_> {
    crate::msg::Messages::new(bytes).next().unwrap()
}

/// Hands every shortening of a message's body to `parse`, which must not panic.
#[cfg(test)]
fn shorten(bytes: &[u8], mut parse: impl FnMut(&Message<'_>)) {
    let message = only(bytes);
    for len in 0..=message.body.len() {
        let body = &message.body[..len];
        parse(&Message {
            header: message.header,
            body,
        });
    }
}
