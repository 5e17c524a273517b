//! MPLS label stacks (RFC 3032): as actions change them, and what the datapath is told.

use dp_lang::{Action, KeyAttr, SetField};
use net_flow::types::eth_type;
use net_flow::{FlowKey, FlowMask, Slot, slot};

use crate::flow::Flow;

/// The entries that a key has room for, the outermost first.
pub(crate) const ENTRIES: [Slot; 3] = [slot::MPLS_LSE, slot::MPLS_LSE1, slot::MPLS_LSE2];

/// The bit of the last entry of a stack.
const BOTTOM: u128 = 0x100;
/// Where the traffic class lies.
const TC_SHIFT: u32 = 9;
/// Where the label lies.
const LABEL_SHIFT: u32 = 12;
/// The explicit null labels (RFC 3032 section 2.1).
const NULL_IPV4: u128 = 0;
const NULL_IPV6: u128 = 2;
/// The time to live of a label where there is none to copy.
const DEFAULT_TTL: u128 = 64;

/// A stack does not fit into a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooDeep;

/// The words from the network header on.
const UPPER_LAYERS: std::ops::RangeInclusive<usize> =
    slot::NW_SRC.word as usize..=slot::NSH_C4.word as usize;

pub(crate) const fn is_mpls(ethertype: u16) -> bool {
    matches!(ethertype, eth_type::MPLS | eth_type::MPLS_MULTICAST)
}

/// How many entries a key has.
fn count(key: &FlowKey) -> usize {
    if !is_mpls(key.get(slot::ETH_TYPE) as u16) {
        return 0;
    }
    let bottom = ENTRIES.iter().position(|e| key.get(*e) & BOTTOM != 0);
    let seen = || ENTRIES.iter().filter(|e| key.get(**e) != 0).count();
    bottom.map_or_else(seen, |last| last + 1)
}

/// How many of the innermost entries two keys have in common.
fn common(a: &FlowKey, b: &FlowKey) -> usize {
    let (a_count, b_count) = (count(a), count(b));
    let entry = |key: &FlowKey, count: usize, n: usize| key.get(ENTRIES[count - 1 - n]);
    (0..a_count.min(b_count))
        .take_while(|n| entry(a, a_count, *n) == entry(b, b_count, *n))
        .count()
}

/// Puts `entry` on top of a stack of `count` entries.
fn put_on_top(key: &mut FlowKey, count: usize, entry: u128) {
    for n in (0..count).rev() {
        let below = key.get(ENTRIES[n]);
        key.set(ENTRIES[n + 1], below);
    }
    key.set(ENTRIES[0], entry);
}

/// Takes the top off a stack of `count` entries.
fn take_top(key: &mut FlowKey, count: usize) {
    for n in 1..count {
        let entry = key.get(ENTRIES[n]);
        key.set(ENTRIES[n - 1], entry);
    }
    key.set(ENTRIES[count - 1], 0);
}

impl Flow {
    /// How many entries the packet has; where they end matters.
    pub(crate) fn count_mpls(&mut self) -> usize {
        if !is_mpls(self.eth_type()) {
            return 0;
        }
        let has_bottom = |entry: &Slot| self.read_bits(*entry, BOTTOM) != 0;
        if !ENTRIES.iter().any(has_bottom) {
            // Without a bottom entries count that are not all zeros.  One bit that is set says so
            // of an entry.
            for entry in ENTRIES {
                let value = self.key().get(entry);
                let telling = value & value.wrapping_neg();
                self.read_bits(entry, if value == 0 { entry.max() } else { telling });
            }
        }
        count(self.key())
    }

    /// Adds an outer entry.  What is behind the first one is not known any more.
    pub(crate) fn push_mpls(&mut self, ethertype: u16) -> Result<(), TooDeep> {
        let n = self.count_mpls();
        if n >= ENTRIES.len() {
            return Err(TooDeep);
        }
        if n > 0 {
            for entry in &ENTRIES[..n] {
                self.mark(*entry);
            }
            let top = self.key().get(ENTRIES[0]) & !BOTTOM;
            put_on_top(self.parts().0, n, top);
        } else {
            let entry = self.first_entry();
            let key = self.parts().0;
            key.set(ENTRIES[0], entry);
            for word in UPPER_LAYERS {
                key.set_word(word, 0);
            }
            key.set(slot::DP_HASH, 0);
        }
        self.set(slot::ETH_TYPE, u128::from(ethertype));
        Ok(())
    }

    /// The entry that a packet without one gets.
    fn first_entry(&mut self) -> u128 {
        let label = if self.eth_type() == eth_type::IPV6 {
            NULL_IPV6
        } else {
            NULL_IPV4
        };
        let (mut tc, mut ttl) = (0, DEFAULT_TTL);
        if self.is_ip() {
            tc = self.read_bits(slot::NW_TOS, 0xfc) >> 2 & 7;
            let of_packet = self.read(slot::NW_TTL);
            if of_packet != 0 {
                ttl = of_packet;
            }
        }
        label << LABEL_SHIFT | tc << TC_SHIFT | BOTTOM | ttl
    }

    /// Takes the outermost entry off; what is behind it has type `ethertype`.  Returns
    /// whether there was one.
    pub(crate) fn pop_mpls(&mut self, ethertype: u16) -> Result<bool, TooDeep> {
        let n = self.count_mpls();
        if n == 0 {
            return Ok(false);
        }
        if n == ENTRIES.len() && self.read_bits(ENTRIES[n - 1], BOTTOM) == 0 {
            // What would come up from below is not known.
            return Err(TooDeep);
        }
        for entry in &ENTRIES[1..n] {
            self.mark(*entry);
        }
        take_top(self.parts().0, n);
        self.set(slot::ETH_TYPE, u128::from(ethertype));
        Ok(true)
    }

    /// Writes bits of the outermost entry, if there is one.
    pub(crate) fn write_mpls(&mut self, value: u32, mask: u32) {
        if is_mpls(self.eth_type()) {
            self.write(ENTRIES[0], u128::from(value), u128::from(mask));
        }
    }

    /// What the datapath must do to give the packet the stack that it has now.
    pub(crate) fn commit_mpls(&mut self) -> Vec<Action> {
        let mut changes = Vec::new();
        let ethertype = self.eth_type();
        let (mut had, has) = (count(&self.base), count(self.key()));
        let mut shared = common(&self.base, self.key());
        while had > shared {
            if had - 1 == shared && has > shared {
                // The whole entry is written, so all of it matters.
                self.mark(ENTRIES[0]);
                let entry = self.key().get(ENTRIES[has - had]);
                self.base.set(ENTRIES[0], entry);
                changes.push(set_top(&self.base));
                shared += 1;
            } else {
                // Below another entry there is one; only what is behind the last is something
                // else.
                let behind = if had > 1 && !is_mpls(ethertype) {
                    eth_type::MPLS
                } else {
                    ethertype
                };
                changes.push(Action::PopMpls { ethertype: behind });
                take_top(&mut self.base, had);
                had -= 1;
            }
            self.base.set(slot::ETH_TYPE, u128::from(ethertype));
        }
        for n in had..has {
            let entry = self.key().get(ENTRIES[has - n - 1]);
            changes.push(Action::PushMpls {
                ethertype,
                lse: entry as u32,
            });
            // What is behind the entries stays known, for the packet may be put back.
            put_on_top(&mut self.base, n, entry);
            self.base.set(slot::ETH_TYPE, u128::from(ethertype));
        }
        changes
    }
}

fn set_top(key: &FlowKey) -> Action {
    let mut mask = FlowMask::new();
    mask.set_exact(ENTRIES[0]);
    Action::Set(SetField::new(KeyAttr::Mpls, key, &mask))
}

#[cfg(test)]
mod tests {
    use dp_lang::text::{PortNames, format_actions};

    use super::*;

    fn flow(ethertype: u16, entries: &[u32]) -> Flow {
        let mut key = FlowKey::new();
        key.set(slot::ETH_TYPE, u128::from(ethertype));
        for (place, entry) in ENTRIES.iter().zip(entries) {
            key.set(*place, u128::from(*entry));
        }
        Flow::new(&key)
    }

    fn committed(flow: &mut Flow) -> String {
        let text = format_actions(&flow.commit_mpls(), &PortNames::none());
        assert!(flow.commit_mpls().is_empty());
        text
    }

    #[test]
    fn a_first_entry_takes_over_from_the_packet() {
        let mut key = FlowKey::new();
        key.set(slot::ETH_TYPE, 0x86dd);
        key.set(slot::NW_TOS, 0x14);
        key.set(slot::NW_TTL, 9);
        let mut flow = Flow::new(&key);
        flow.push_mpls(0x8847).expect("room");
        assert_eq!(flow.key().get(slot::NW_TTL), 0);
        assert_eq!(flow.mask().get(slot::NW_TTL), 0xff);
        let text = "push_mpls(label=2,tc=5,ttl=9,bos=1,eth_type=0x8847)";
        assert_eq!(committed(&mut flow), text);
        flow.push_mpls(0x8848).expect("room");
        flow.write_mpls(7 << 12, 0xffff_f000);
        let text = "push_mpls(label=7,tc=5,ttl=9,bos=0,eth_type=0x8848)";
        assert_eq!(committed(&mut flow), text);
    }

    #[test]
    fn a_label_that_changed_is_set_and_more_are_popped() {
        let stack = [0x1_0040, 0x2_0040, 0x3_0140];
        let mut one = flow(0x8847, &stack);
        one.write_mpls(5 << 12, 0xffff_f000);
        assert_eq!(committed(&mut one), "set(mpls(label=5,tc=0,ttl=64,bos=0))");
        assert_eq!(one.mask().get(slot::MPLS_LSE), 0xffff_ffff);
        let mut two = flow(0x8847, &stack);
        assert_eq!(two.pop_mpls(0x8847), Ok(true));
        assert_eq!(two.pop_mpls(0x8847), Ok(true));
        assert_eq!(two.pop_mpls(0x800), Ok(true));
        assert_eq!(two.pop_mpls(0x800), Ok(false));
        assert_eq!(
            committed(&mut two),
            "pop_mpls(eth_type=0x8847),pop_mpls(eth_type=0x8847),pop_mpls(eth_type=0x800)"
        );
    }

    #[test]
    fn a_stack_without_known_end_is_left_alone() {
        let mut deep = flow(0x8847, &[0x1_0040, 0x2_0040, 0x3_0040]);
        assert_eq!(deep.pop_mpls(0x800), Err(TooDeep));
        assert_eq!(deep.push_mpls(0x8847), Err(TooDeep));
        assert!(deep.commit_mpls().is_empty());
    }

    /// Any packet that looks the same where it was looked at has as many entries.
    #[test]
    fn what_is_counted_is_masked() {
        let values = [0, 0x40, 0x100, 0x140, 0x1_0040, 0x2_0000, 0x3_0e00];
        let stacks: Vec<[u32; 3]> = (0..343)
            .map(|n| [values[n % 7], values[n / 7 % 7], values[n / 49]])
            .collect();
        for stack in &stacks {
            let mut counted = flow(0x8847, stack);
            let n = counted.count_mpls();
            for other in &stacks {
                let mut like = flow(0x8847, other);
                let same = ENTRIES.iter().all(|e| {
                    (counted.key().get(*e) ^ like.key().get(*e)) & counted.mask().get(*e) == 0
                });
                assert!(!same || like.count_mpls() == n, "{stack:x?} {other:x?}");
            }
        }
    }
}
