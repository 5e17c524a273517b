//! Mirrors: copies of packets that ports receive or send, for another port or VLAN.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use net_flow::types::eth_type;
use net_flow::{Field, FlowKey, FlowMask, KEY_WORDS, Match, slot};
use of_wire::Action;

use crate::ctx::Ctx;
use crate::effect::Effect;
use crate::view::{Bundle, Port, VlanSet};
use crate::vlan::{CFI, Tags, VID};
use crate::work::Work;

/// Mirrors of a bridge at most.
pub const MAX_MIRRORS: usize = 32;

/// Where the copies go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorOutput {
    /// To the bundle with this number, which is for nothing else then.
    Bundle(u32),
    /// To all bundles that carry this VLAN.
    Vlan(u16),
}

/// What a mirror counts.
#[derive(Debug, Default)]
pub struct MirrorCounters {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl MirrorCounters {
    /// Counts packets that were copied.
    pub fn sent(&self, packets: u64, bytes: u64) {
        self.packets.fetch_add(packets, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Packets and bytes.
    pub fn read(&self) -> [u64; 2] {
        [&self.packets, &self.bytes].map(|c| c.load(Ordering::Relaxed))
    }
}

/// A mirror.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// Its name.
    pub name: Arc<str>,
    /// Packets that come in by these bundles are copied.
    pub sources: BTreeSet<u32>,
    /// Packets that go out by these bundles are copied.
    pub destinations: BTreeSet<u32>,
    /// Packets of these VLANs only; none is all.
    pub vlans: Option<VlanSet>,
    /// Packets that match this only; none is all.
    pub filter: Option<Match>,
    /// Where the copies go.
    pub output: MirrorOutput,
    /// Bytes of a packet that are copied at most; 0 is all.
    pub snaplen: u16,
    /// What it has copied.
    pub counters: Arc<MirrorCounters>,
}

/// Whether a field is one of the packet, not one that goes along with it.
fn is_header(field: Field) -> bool {
    field
        .info()
        .slot
        .is_some_and(|s| s.word >= slot::ETH_DST.word)
}

/// Whether the packet has a field.
fn has(key: &FlowKey, field: Field) -> bool {
    let mut exact = FlowMask::new();
    for word in 0..KEY_WORDS {
        exact.set_word(word, u64::MAX);
    }
    field.info().prereq.met_by(key, &exact)
}

/// A set of a bridge's mirrors, bit `n` for the one with index `n`.
pub(crate) type MirrorSet = u32;

impl Ctx<'_> {
    fn mirrors_where(&self, is_in: impl Fn(&Mirror) -> bool) -> MirrorSet {
        let all = self.bridge.mirrors.iter().take(MAX_MIRRORS).enumerate();
        all.filter(|(_, mirror)| is_in(mirror))
            .fold(0, |set, (n, _)| set | 1 << n)
    }

    /// Whether a bundle is where a mirror sends to, and for nothing else.
    pub(crate) fn is_mirror_output(&self, bundle: u32) -> bool {
        let output = MirrorOutput::Bundle(bundle);
        self.bridge.mirrors.iter().any(|m| m.output == output)
    }

    /// Copies the packet as it came in, before anything else is done.
    pub(crate) fn mirror_ingress(&mut self) {
        if self.bridge.mirrors.is_empty() {
            return;
        }
        let Some(bundle) = self.bridge.bundle_of(self.flow.in_port()).cloned() else {
            return;
        };
        let mirrors = self.mirrors_where(|m| m.sources.contains(&bundle.id));
        self.mirror(&bundle, mirrors);
    }

    /// Copies the packet as it was just sent to a port of `bundle`.
    pub(crate) fn mirror_egress(&mut self, bundle: Option<u32>) {
        let Some(id) = bundle.filter(|_| !self.bridge.mirrors.is_empty()) else {
            return;
        };
        let Some(bundle) = self.bridge.bundle(id).cloned() else {
            return;
        };
        let mirrors = self.mirrors_where(|m| m.destinations.contains(&id));
        self.mirror(&bundle, mirrors);
    }

    fn mirror(&mut self, bundle: &Bundle, mirrors: MirrorSet) {
        let tags = self.flow.tags();
        if mirrors & !self.mirrored != 0 && bundle.refuses(tags[0].vid).is_none() {
            let inside = bundle.tags_in(&tags);
            self.work.push(Work::Mirror(mirrors, inside));
        }
    }

    /// Copies the packet to the first of `mirrors` that it has not gone to and that wants
    /// it; the others follow when that is done, for it may have gone to more by then.
    pub(crate) fn mirror_next(&mut self, mirrors: MirrorSet, tags: &Tags) {
        let mut left = mirrors & !self.mirrored;
        let bridge = Arc::clone(&self.bridge);
        while left != 0 {
            let n = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(mirror) = bridge.mirrors.get(n) else {
                return;
            };
            if !self.is_selected(mirror, tags) {
                continue;
            }
            // Mirrors with the same output would only send the same again.
            self.mirrored |= self.mirrors_where(|m| m.output == mirror.output);
            let counters = Arc::clone(&mirror.counters);
            self.effects.push(Effect::Mirror(counters));
            self.snaplen = mirror.snaplen;
            self.work.push(Work::EndMirror(left, *tags));
            self.send_copy(mirror.output, tags);
            return;
        }
    }

    fn is_selected(&mut self, mirror: &Mirror, tags: &Tags) -> bool {
        if let Some(vlans) = &mirror.vlans {
            self.flow.read_bits(slot::VLAN_TCI, CFI | VID);
            if !vlans.contains(tags[0].vid) {
                return false;
            }
        }
        let Some(filter) = &mirror.filter else {
            return true;
        };
        let (key, mask) = self.flow.parts();
        mask.union(filter.mask());
        filter.matches(key)
    }

    fn send_copy(&mut self, output: MirrorOutput, tags: &Tags) {
        let bridge = Arc::clone(&self.bridge);
        match output {
            MirrorOutput::Bundle(id) => {
                if let Some(bundle) = bridge.bundle(id) {
                    let bundle = Arc::clone(bundle);
                    self.work.push(Work::OutputNormal(bundle, *tags));
                }
            }
            MirrorOutput::Vlan(vlan) => {
                let destination = self.flow.read(slot::ETH_DST) as u64;
                if tags[0].vid == vlan || crate::normal::is_reserved(destination) {
                    return;
                }
                let mut moved = *tags;
                moved[0].vid = vlan;
                for bundle in bridge.bundles.iter().rev() {
                    if bundle.includes(&moved) && !self.is_mirror_output(bundle.id) {
                        let bundle = Arc::clone(bundle);
                        self.work.push(Work::OutputNormal(bundle, moved));
                    }
                }
            }
        }
    }

    /// A packet that `action` makes another may go to mirrors once more.
    pub(crate) fn mirror_again_after(&mut self, action: &Action) {
        if self.mirrored == 0 {
            return;
        }
        let key = self.flow.key();
        let ethertype = key.get(slot::ETH_TYPE) as u16;
        let is_ip = matches!(ethertype, eth_type::IPV4 | eth_type::IPV6);
        let is_other = match action {
            Action::StripVlan { .. }
            | Action::PushVlan(_)
            | Action::SetEthSrc(_)
            | Action::SetEthDst(_)
            | Action::SetVlanVid(_)
            | Action::SetVlanPcp(_)
            | Action::PushMpls(_)
            | Action::PopMpls(_)
            | Action::SetMplsLabel(_)
            | Action::SetMplsTc(_)
            | Action::SetMplsTtl(_)
            | Action::DecMplsTtl
            | Action::DecNshTtl
            | Action::DecTtl(_)
            | Action::Encap(_)
            | Action::Decap(_)
            | Action::Nat(_) => true,
            Action::SetField(a) => is_header(a.field) && has(key, a.field),
            Action::Move(a) => is_header(a.dst.field),
            Action::StackPop(part) => is_header(part.field),
            Action::SetIpv4Src(_) | Action::SetIpv4Dst(_) => ethertype == eth_type::IPV4,
            Action::SetIpDscp(_) | Action::SetIpEcn(_) | Action::SetIpTtl(_) => is_ip,
            Action::SetL4SrcPort(_) | Action::SetL4DstPort(_) => {
                is_ip && key.get(slot::NW_FRAG) & 2 == 0
            }
            _ => false,
        };
        if is_other {
            self.mirrored = 0;
        }
    }

    /// The name of the bundle of `port`, if a mirror sends to it: what comes in there goes
    /// nowhere.
    pub(crate) fn mirrors_only(&self, port: Option<&Port>) -> Option<Arc<str>> {
        let bundle = self.bridge.bundle(port?.bundle?)?;
        self.is_mirror_output(bundle.id)
            .then(|| Arc::clone(&bundle.name))
    }
}
