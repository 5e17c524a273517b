//! Messages from a hostile controller or switch.

use of_wire::codec::claimed_len;
use of_wire::{Dialect, Message, Version};

/// Decodes a message of whatever version it claims.
///
/// # Panics
/// When what was decoded is written in a form that says something else.
pub fn openflow(bytes: &[u8]) {
    let Some(version) = bytes
        .first()
        .and_then(|b| Version::ALL.get(usize::from(*b).wrapping_sub(1)))
    else {
        return;
    };
    let dialect = Dialect::of(*version);
    let Ok(message) = Message::decode(bytes, dialect) else {
        return;
    };
    let written = message.encode(dialect);
    if claimed_len(&written) != Some(written.len()) {
        // Split into several messages.
        return;
    }
    if let Ok(again) = Message::decode(&written, dialect) {
        assert_eq!(again.encode(dialect), written, "{message:?}");
    }
}
