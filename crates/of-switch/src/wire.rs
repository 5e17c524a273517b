//! The codec as the switch uses it: replies in the form of their requests.

use of_wire::codec::Dialect;
use of_wire::message::PacketInFormat;
use of_wire::{Body, Formats, Message, Version, VersionSet};

/// The bytes of a message that has one form only.
pub(crate) fn encode(message: &Message) -> Vec<u8> {
    message.encode(Dialect::of(message.version))
}

/// The dialect in which statistics of rules are told to who asked in Nicira's or in the
/// version's own form.
pub(crate) const fn stats_dialect(is_nicira: bool, version: Version) -> Dialect {
    Dialect {
        format: if is_nicira {
            Formats::OF10_NXM
        } else {
            Dialect::of(version).format
        },
        packet_in: PacketInFormat::Standard,
    }
}

/// The versions that a hello offers; `None` if the message is no hello.
pub(crate) fn hello_versions(bytes: &[u8]) -> Option<VersionSet> {
    let message = Message::decode(bytes, Dialect::of(Version::V10)).ok()?;
    match message.body {
        Body::Hello(versions) => Some(versions),
        _ => None,
    }
}
