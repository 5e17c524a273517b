//! Hello: which versions the sender speaks (OpenFlow 1.3.1, section A.5.1).

use crate::version::VersionSet;
use crate::wire::{Put, Reader};

const VERSION_BITMAP: u16 = 1;

/// The versions that a hello offers, by its header's version and its elements, and whether
/// all of it was understood.
pub(crate) fn decode(header_version: u8, mut r: Reader<'_>) -> (VersionSet, bool) {
    let mut versions = VersionSet::up_to(header_version);
    let mut understood = true;
    while !r.is_empty() {
        let Some((ty, mut element)) = element(&mut r) else {
            return (versions, false);
        };
        let bitmap = element.u32().map_or(0, |bitmap| bitmap & !1);
        if ty == VERSION_BITMAP && bitmap != 0 {
            versions = VersionSet(bitmap);
        } else {
            understood = false;
        }
    }
    (versions, understood)
}

/// What is to be said of bitmaps that make no sense.
pub(super) fn complaint(mut r: Reader<'_>) -> Option<&'static str> {
    while let Some((ty, mut element)) = element(&mut r) {
        if ty != VERSION_BITMAP {
            continue;
        }
        let bitmap = element.u32().unwrap_or(0);
        if bitmap & 1 != 0 {
            return Some("peer claims to support invalid OpenFlow version 0x00");
        }
        if bitmap == 0 {
            return Some("peer does not support any OpenFlow version (between 0x01 and 0x1f)");
        }
    }
    None
}

/// An element's type and what it holds; it is padded to 8 bytes.
fn element<'a>(r: &mut Reader<'a>) -> Option<(u16, Reader<'a>)> {
    let mut head = *r;
    let (ty, len) = (head.u16().ok()?, usize::from(head.u16().ok()?));
    let mut whole = r.sub(len.next_multiple_of(8)).ok()?;
    let mut element = whole.sub(len).ok()?;
    element.skip(4).ok()?;
    Some((ty, element))
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
        assert_eq!(decode(4, Reader::new(&bytes)), (some, true));
        bytes.clear();
        encode(&mut bytes, VersionSet::up_to(4));
        assert!(bytes.is_empty());
        let bad = decode(4, Reader::new(&[0, 1, 0, 3]));
        assert_eq!(bad, (VersionSet::up_to(4), false));
    }
}
