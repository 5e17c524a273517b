//! Generic netlink: families by name, and the header of their messages.
//!
//! Source: the kernel's `linux/genetlink.h`.

use crate::attr::Attrs;
use crate::msg::{Builder, Message};

/// Length of `struct genlmsghdr`.
pub const HEADER_LEN: usize = 4;

/// The family of the controller, which knows the others.
const CONTROLLER: u16 = 16;
const CONTROLLER_VERSION: u8 = 1;
const NEW_FAMILY: u8 = 1;
const GET_FAMILY: u8 = 3;

const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const VERSION: u16 = 3;
const GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;

/// A family, as the controller describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// The type of its messages on this boot.
    pub id: u16,
    /// The version of its interface.
    pub version: u32,
    /// Its multicast groups, with their numbers on this boot.
    pub groups: Vec<(String, u32)>,
}

impl Family {
    /// Asks for the family called `name`.
    pub fn request(name: &str) -> Builder {
        let mut builder = begin(CONTROLLER, GET_FAMILY, CONTROLLER_VERSION, 0);
        builder.put_text(FAMILY_NAME, name);
        builder
    }

    /// From the controller's answer; `None` if the message is another or malformed.
    pub fn parse(message: &Message<'_>) -> Option<Self> {
        if message.header.kind != CONTROLLER || command(message)? != NEW_FAMILY {
            return None;
        }
        let attrs = message.attrs_after(HEADER_LEN);
        let groups = attrs.find(GROUPS).into_iter().flat_map(|g| g.nested());
        let group = |attrs: Attrs<'_>| {
            let name = attrs.find(GROUP_NAME)?.text()?.to_owned();
            Some((name, attrs.find(GROUP_ID)?.u32()?))
        };
        Some(Self {
            id: attrs.find(FAMILY_ID)?.u16()?,
            version: attrs.find(VERSION).and_then(|v| v.u32()).unwrap_or(0),
            groups: groups.filter_map(|g| group(g.nested())).collect(),
        })
    }

    /// The number of a multicast group.
    pub fn group(&self, name: &str) -> Option<u32> {
        let found = self.groups.iter().find(|(n, _)| n == name);
        found.map(|(_, id)| *id)
    }
}

/// Begins a request of a family.
pub fn begin(family: u16, command: u8, version: u8, flags: u16) -> Builder {
    let mut builder = Builder::new(family, flags);
    builder.raw(&[command, version, 0, 0]);
    builder
}

/// The command of a family's message.
pub fn command(message: &Message<'_>) -> Option<u8> {
    message.body.first_chunk::<HEADER_LEN>().map(|h| h[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msg::Messages;

    /// What a kernel 6.1 answers for `ovs_flow`, shortened.
    fn answer() -> Vec<u8> {
        let mut builder = begin(CONTROLLER, NEW_FAMILY, 2, 0);
        builder.put_text(FAMILY_NAME, "ovs_flow");
        builder.put_u16(FAMILY_ID, 31);
        builder.put_u32(VERSION, 1);
        let groups = builder.open(GROUPS);
        let group = builder.open(1);
        builder
            .put_u32(GROUP_ID, 9)
            .put_text(GROUP_NAME, "ovs_flow");
        builder.close(group);
        builder.close(groups);
        builder.finish(1).unwrap().to_vec()
    }

    #[test]
    fn a_family_and_its_groups() {
        let bytes = answer();
        let family = Family::parse(&Messages::new(&bytes).next().unwrap()).unwrap();
        assert_eq!((family.id, family.version), (31, 1));
        assert_eq!(family.group("ovs_flow"), Some(9));
        assert_eq!(family.group("other"), None);
        for len in 0..bytes.len() {
            let cut = &bytes[16..len.max(16)];
            let header = Messages::new(&bytes).next().unwrap().header;
            let _ = Family::parse(&Message { header, body: cut });
        }
    }

    #[test]
    fn the_request_names_the_family() {
        let mut builder = Family::request("ovs_vport");
        let bytes = builder.finish(7).unwrap();
        // Length, type 16, flag REQUEST, sequence 7, port 0; command 3, version 1; the name.
        assert_eq!(
            bytes,
            [
                &[36, 0, 0, 0, 16, 0, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0][..],
                &[14, 0, 2, 0],
                b"ovs_vport\0",
                &[0, 0],
            ]
            .concat()
        );
    }
}
