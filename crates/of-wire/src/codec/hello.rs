//! Hello: which versions the sender speaks (OpenFlow 1.3.1, section A.5.1).

use crate::version::VersionSet;
use crate::wire::{Put, Reader};

const VERSION_BITMAP: u16 = 1;

/// The versions that a hello offers, by its header's version and its elements.
pub(super) fn decode(header_version: u8, mut r: Reader<'_>) -> VersionSet {
    let mut versions = VersionSet::up_to(header_version);
    while r.len() >= 4 {
        let mut head = r;
        let (Ok(ty), Ok(len)) = (head.u16(), head.u16()) else {
            break;
        };
        let len = usize::from(len);
        if len < 4 {
            break;
        }
        let Ok(mut element) = r.sub(len) else {
            break;
        };
        let _ = r.skip((len.next_multiple_of(8) - len).min(r.len()));
        let _ = element.skip(4);
        if ty == VERSION_BITMAP
            && let Ok(bitmap) = element.u32()
            && bitmap & !1 != 0
        {
            versions = VersionSet(bitmap & !1);
        }
    }
    versions
}

/// Appends what follows a hello's header: nothing if its version says it all.
pub(super) fn encode(out: &mut Vec<u8>, versions: VersionSet) {
    let Some(highest) = versions.highest_wire() else {
        return;
    };
    if versions == VersionSet::up_to(highest) {
        return;
    }
    out.u16(VERSION_BITMAP);
    out.u16(8);
    out.u32(versions.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Version;

    #[test]
    fn versions_survive_the_wire() {
        let some: VersionSet = [Version::V10, Version::V13].into_iter().collect();
        let mut bytes = Vec::new();
        encode(&mut bytes, some);
        assert_eq!(decode(4, Reader::new(&bytes)), some);
        bytes.clear();
        encode(&mut bytes, VersionSet::up_to(4));
        assert!(bytes.is_empty());
        assert_eq!(decode(4, Reader::new(&[0, 1, 0, 3])), VersionSet::up_to(4));
    }
}
