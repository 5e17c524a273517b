//! VLAN tags: as bundles see them, and as actions push and pop them.

use net_flow::types::eth_type;
use net_flow::{FlowKey, slot};

use crate::flow::Flow;
use crate::view::{Bundle, PriorityTags, VlanMode};

/// The bit of a tag's control information that says that there is a tag.
pub(crate) const CFI: u128 = 0x1000;
/// The VLAN id's bits.
pub(crate) const VID: u128 = 0x0fff;
/// The priority's bits.
pub(crate) const PCP: u128 = 0xe000;

/// How many tags a key has room for.
pub(crate) const MAX_TAGS: usize = 2;

/// The word in which both tags lie, the outer one in the upper half.
const TAGS_WORD: usize = slot::VLAN_TPID.word as usize;

/// One tag; all zero if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) tpid: u16,
    pub(crate) vid: u16,
    /// The priority where it lies in the control information.
    pub(crate) pcp: u16,
}

/// The tags of a packet as bundles see them, the outer one first.
pub(crate) type Tags = [Tag; MAX_TAGS];

const fn is_vlan_type(tpid: u16) -> bool {
    matches!(tpid, eth_type::VLAN | eth_type::VLAN_8021AD)
}

/// The protocol id and control information of both tags.
const fn raw(key: &FlowKey) -> [(u16, u16); MAX_TAGS] {
    let word = key.word(TAGS_WORD);
    [
        ((word >> 48) as u16, (word >> 32) as u16),
        ((word >> 16) as u16, word as u16),
    ]
}

const fn put_raw(key: &mut FlowKey, tags: [(u16, u16); MAX_TAGS]) {
    let word = (tags[0].0 as u64) << 48
        | (tags[0].1 as u64) << 32
        | (tags[1].0 as u64) << 16
        | tags[1].1 as u64;
    key.set_word(TAGS_WORD, word);
}

/// How many tags a key has.
fn count(key: &FlowKey) -> usize {
    let tags = raw(key);
    tags.iter()
        .take_while(|(_, tci)| u128::from(*tci) & CFI != 0)
        .count()
}

/// A change of tags that the datapath must be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagChange {
    Pop,
    Push { tpid: u16, tci: u16 },
}

impl Flow {
    /// Both tags, to put them back later.
    pub(crate) const fn tags_word(&self) -> u64 {
        self.key().word(TAGS_WORD)
    }

    pub(crate) const fn set_tags_word(&mut self, word: u64) {
        self.parts().0.set_word(TAGS_WORD, word);
    }

    fn mark_tag(&mut self, n: usize) {
        let (tpid, tci) = if n == 0 {
            (slot::VLAN_TPID, slot::VLAN_TCI)
        } else {
            (slot::VLAN2_TPID, slot::VLAN2_TCI)
        };
        self.mark(tpid);
        self.mark(tci);
    }

    /// Removes the outer tag, if there is one.
    pub(crate) fn pop_vlan(&mut self) {
        self.read_bits(slot::VLAN_TCI, CFI);
        let n = count(self.key());
        if n > 1 {
            self.mark_tag(1);
        }
        let tags = raw(self.key());
        if n > 0 {
            put_raw(self.parts().0, [tags[1], (0, 0)]);
            self.retagged = true;
        }
    }

    /// Adds an outer tag with an empty control information.
    pub(crate) fn push_vlan(&mut self, tpid: u16) {
        for n in 0..count(self.key()) {
            self.mark_tag(n);
        }
        let tags = raw(self.key());
        put_raw(self.parts().0, [(tpid, CFI as u16), tags[0]]);
        self.retagged = true;
    }

    /// Writes bits of the outer tag; adds one if there is none and `push` says so.
    pub(crate) fn write_tci(&mut self, value: u16, mask: u16, push: bool) {
        let mask = u128::from(mask);
        let tagged = self.read_bits(slot::VLAN_TCI, mask | CFI) & CFI != 0;
        if tagged || push {
            let before = self.tags_word();
            if self.key().get(slot::VLAN_TPID) == 0 {
                self.set(slot::VLAN_TPID, u128::from(eth_type::VLAN));
            }
            self.set_masked(slot::VLAN_TCI, u128::from(value) | CFI, mask | CFI);
            self.retagged |= self.tags_word() != before;
        }
    }

    /// The tags as bundles see them.
    pub(crate) fn tags(&self) -> Tags {
        let mut tags = Tags::default();
        for (tag, (tpid, tci)) in tags.iter_mut().zip(raw(self.key())) {
            if !is_vlan_type(tpid) || u128::from(tci) & CFI == 0 {
                break;
            }
            *tag = Tag {
                tpid,
                vid: tci & VID as u16,
                pcp: tci & PCP as u16,
            };
        }
        tags
    }

    /// Gives the packet these tags.
    pub(crate) fn put_tags(&mut self, tags: &Tags, priority_tags: PriorityTags) {
        let old = raw(self.key());
        let mut new = [(0, 0); MAX_TAGS];
        for (n, tag) in tags.iter().enumerate() {
            let mut tci = tag.vid | tag.pcp;
            let mut tpid = old[n].0;
            if tci != 0 || priority_tags == PriorityTags::Always && tag.tpid != 0 {
                tci |= CFI as u16;
                tpid = if tag.tpid == 0 {
                    eth_type::VLAN
                } else {
                    tag.tpid
                };
            }
            new[n] = (tpid, tci);
        }
        self.retagged |= new != old;
        put_raw(self.parts().0, new);
    }

    /// What the datapath must do to give the packet the tags that it has now.  Tags that
    /// are popped matter.
    pub(crate) fn commit_tags(&mut self) -> Vec<TagChange> {
        let (had, has) = (raw(&self.base), raw(self.key()));
        let (mut n_had, mut n_has) = (count(&self.base), count(self.key()));
        if self.retagged && n_had > 0 && n_has > 0 {
            // Whether they are alike may depend on all that the packet's tags were.
            self.mark_tag(0);
            self.mark_tag(1);
        }
        while n_had > 0 && n_has > 0 && had[n_had - 1] == has[n_has - 1] {
            n_had -= 1;
            n_has -= 1;
        }
        let mut changes = Vec::new();
        for n in 0..n_had {
            self.mark_tag(n);
            changes.push(TagChange::Pop);
        }
        for (tpid, tci) in has[..n_has].iter().rev() {
            changes.push(TagChange::Push {
                tpid: *tpid,
                tci: *tci,
            });
        }
        let word = self.tags_word();
        self.base.set_word(TAGS_WORD, word);
        changes
    }
}

impl Bundle {
    fn trunks_vlan(&self, vid: u16) -> bool {
        self.vlan_mode != VlanMode::Access && self.trunks.as_ref().is_none_or(|t| t.contains(vid))
    }

    fn allows_customer(&self, vid: u16) -> bool {
        self.cvlans.as_ref().is_none_or(|c| c.contains(vid))
    }

    /// Whether the bundle carries packets with these tags inside of the bridge.
    pub(crate) fn includes(&self, tags: &Tags) -> bool {
        match self.vlan_mode {
            VlanMode::Access => tags[0].vid == self.tag && tags[1].vid == 0,
            VlanMode::Trunk | VlanMode::NativeTagged | VlanMode::NativeUntagged => {
                self.trunks_vlan(tags[0].vid)
            }
            VlanMode::Dot1qTunnel => tags[0].vid == self.tag && self.allows_customer(tags[1].vid),
        }
    }

    /// Why the bundle does not accept a packet whose outer tag has this id; none if it does.
    pub(crate) fn refuses(&self, vid: u16) -> Option<String> {
        let name = &self.name;
        match self.vlan_mode {
            VlanMode::Access if vid != 0 => Some(format!(
                "dropping VLAN {vid} tagged packet received on port {name} configured as VLAN \
                 {} access port",
                self.tag
            )),
            VlanMode::Access => None,
            VlanMode::NativeTagged | VlanMode::NativeUntagged if vid == 0 => None,
            VlanMode::Trunk | VlanMode::NativeTagged | VlanMode::NativeUntagged => {
                (!self.trunks_vlan(vid)).then(|| {
                    format!(
                        "dropping VLAN {vid} packet received on port {name} not configured for \
                         trunking VLAN {vid}"
                    )
                })
            }
            VlanMode::Dot1qTunnel => (!self.allows_customer(vid)).then(|| {
                format!(
                    "dropping VLAN {vid} packet received on dot1q-tunnel port {name} that \
                     excludes this VLAN"
                )
            }),
        }
    }

    /// The tags inside of the bridge of a packet that came in with `tags`.
    pub(crate) fn tags_in(&self, tags: &Tags) -> Tags {
        let own = Tag {
            tpid: if tags[0].tpid == 0 {
                eth_type::VLAN
            } else {
                tags[0].tpid
            },
            vid: self.tag,
            pcp: tags[0].pcp,
        };
        match self.vlan_mode {
            VlanMode::Access => [own, Tag::default()],
            VlanMode::NativeTagged | VlanMode::NativeUntagged if tags[0].vid == 0 => [own, tags[1]],
            VlanMode::Trunk | VlanMode::NativeTagged | VlanMode::NativeUntagged => *tags,
            VlanMode::Dot1qTunnel => {
                let service = Tag {
                    tpid: self.qinq_ethtype,
                    vid: self.tag,
                    pcp: 0,
                };
                [service, tags[0]]
            }
        }
    }

    /// The tags on the wire of a packet that has `tags` inside of the bridge.
    pub(crate) fn tags_out(&self, tags: &Tags) -> Tags {
        let popped = [tags[1], Tag::default()];
        match self.vlan_mode {
            VlanMode::Access => Tags::default(),
            VlanMode::Trunk | VlanMode::NativeTagged => *tags,
            VlanMode::NativeUntagged if tags[0].vid == self.tag => popped,
            VlanMode::NativeUntagged => *tags,
            VlanMode::Dot1qTunnel => popped,
        }
    }

    /// Whether the customers' tags matter to this bundle.
    pub(crate) fn looks_at_customers(&self) -> bool {
        self.vlan_mode == VlanMode::Dot1qTunnel && self.cvlans.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(tags: &[(u16, u16)]) -> Flow {
        let mut key = FlowKey::new();
        let mut all = [(0, 0); MAX_TAGS];
        all[..tags.len()].copy_from_slice(tags);
        put_raw(&mut key, all);
        Flow::new(&key)
    }

    #[test]
    fn only_tags_that_differ_are_popped_and_pushed() {
        let mut flow = tagged(&[(0x8100, 0x1005)]);
        flow.push_vlan(0x88a8);
        assert_eq!(
            flow.commit_tags(),
            [TagChange::Push {
                tpid: 0x88a8,
                tci: 0x1000
            }]
        );
        flow.pop_vlan();
        flow.write_tci(6, VID as u16, false);
        assert_eq!(
            flow.commit_tags(),
            [
                TagChange::Pop,
                TagChange::Pop,
                TagChange::Push {
                    tpid: 0x8100,
                    tci: 0x1006
                }
            ]
        );
    }

    #[test]
    fn setting_the_id_of_an_untagged_packet_needs_leave() {
        let mut flow = tagged(&[]);
        flow.write_tci(6, VID as u16, false);
        assert!(flow.commit_tags().is_empty());
        flow.write_tci(6, VID as u16, true);
        assert_eq!(flow.commit_tags().len(), 1);
    }
}
