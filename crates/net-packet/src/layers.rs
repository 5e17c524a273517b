//! Where the layers of a packet begin.

/// Offsets of a packet's layers from the start of the frame, as extraction found them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// MPLS label stack, if there is one.
    pub l2_5: Option<u16>,
    /// The header after Ethernet, VLAN tags and MPLS labels.
    pub l3: Option<u16>,
    /// The transport header; none if it is cut short or this is a later fragment.
    pub l4: Option<u16>,
    /// Bytes after the end of the network packet.
    pub padding: u16,
}

impl Layers {
    /// Moves every layer at or after `at` by `by` bytes.
    pub(crate) fn shift(&mut self, at: usize, by: isize) {
        for layer in [&mut self.l2_5, &mut self.l3, &mut self.l4] {
            *layer = layer.and_then(|offset| {
                if usize::from(offset) < at {
                    return Some(offset);
                }
                let moved = isize::try_from(usize::from(offset)).ok()?.checked_add(by)?;
                u16::try_from(moved).ok()
            });
        }
    }
}
