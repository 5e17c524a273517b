//! The action interpreter: what actions do to a packet.  It changes packets and nothing else; where a packet goes,
//! and what needs state, is asked of [`Effects`].

use std::borrow::Cow;

use net_flow::extract::MAX_VLANS;
use net_flow::{FlowKey, slot};
use net_packet::{Packet, edit, segment};

use crate::action::{Action, Ct, Userspace};
use crate::ids::PortNo;
use crate::set::set;

/// An action that a datapath does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing(pub &'static str);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this datapath has no {} action", self.0)
    }
}

impl std::error::Error for Missing {}

/// A packet on its way through actions.
#[derive(Debug)]
pub struct InFlight<'a> {
    /// The packet.
    pub packet: Packet,
    /// Its key.  Metadata is as the actions so far left it; header fields are those of the packet when it was looked up.
    pub key: Cow<'a, FlowKey>,
    /// Whether the actions so far changed header fields, so that `key` no longer has them.
    pub changed: bool,
}

impl InFlight<'_> {
    /// The key as the packet is now, for another look-up; `max_vlans` is that of
    /// [`net_flow::extract()`].
    pub fn fresh_key(&mut self, max_vlans: u8) -> FlowKey {
        let mut key = net_flow::metadata(&self.key);
        net_flow::extract(&mut self.packet, &mut key, max_vlans);
        key
    }
}

/// What a datapath does for the interpreter.
pub trait Effects {
    /// A copy of a packet, for an action that is not the last.
    fn copy(&mut self, packet: &Packet) -> Packet {
        packet.clone()
    }

    /// A packet is not needed any more.
    fn release(&mut self, _packet: Packet) {}

    /// Sends a packet to a port.
    fn output(&mut self, port: PortNo, packet: Packet);

    /// Hands a packet to the switch.  `rest` is what follows in the action list.
    fn userspace(&mut self, to: &Userspace, packet: InFlight<'_>, rest: &[Action]);

    /// Looks a packet up again; the recirculation id is in its key.
    fn recirculate(&mut self, packet: InFlight<'_>);

    /// A packet was dropped by a `drop` action, for this reason.
    fn dropped(&mut self, _reason: u32) {}

    /// A number by chance.
    fn random(&mut self) -> u32;

    /// The hash of a packet with this key; 0 becomes 1, as in the kernel.
    fn hash(&mut self, key: &FlowKey, algorithm: u32, basis: u32) -> u32;

    /// Whether a meter lets a packet pass.
    ///
    /// # Errors
    /// The datapath has no meters.
    fn meter(&mut self, _id: u32, _packet: &Packet) -> Result<bool, Missing> {
        Err(Missing("meter"))
    }

    /// Passes a packet through the connection tracker, which changes its key (and with address translation the packet).
    ///
    /// # Errors
    /// The datapath has no connection tracker.
    fn track(&mut self, _ct: &Ct, _packet: &mut InFlight<'_>) -> Result<(), Missing> {
        Err(Missing("ct"))
    }

    /// Takes a packet out of its tunnel at this port.
    ///
    /// # Errors
    /// The datapath has no tunnels.
    fn tunnel_pop(&mut self, _port: PortNo, _packet: InFlight<'_>) -> Result<(), Missing> {
        Err(Missing("tnl_pop"))
    }

    /// An action was not there; the rest of the list was not done.
    fn missing(&mut self, _missing: Missing) {}
}

/// The first action in a list, nested ones included, that needs state which a datapath without meters, connection
/// tracking and tunnels lacks, or that only a kernel does.
pub fn find_stateful(actions: &[Action]) -> Option<Missing> {
    actions.iter().find_map(|action| match action {
        Action::Ct(_) => Some(Missing("ct")),
        Action::Meter(_) => Some(Missing("meter")),
        Action::TunnelPop(_) => Some(Missing("tnl_pop")),
        Action::DecTtl(_) => Some(Missing("dec_ttl")),
        Action::Other { .. } => Some(Missing("unknown")),
        Action::Clone(inner) | Action::Sample { actions: inner, .. } => find_stateful(inner),
        Action::CheckPktLen {
            greater,
            less_equal,
            ..
        } => find_stateful(greater).or_else(|| find_stateful(less_equal)),
        _ => None,
    })
}

/// Does `actions` to a packet.
pub fn execute<E: Effects>(actions: &[Action], packet: Packet, key: &FlowKey, effects: &mut E) {
    let flight = InFlight {
        packet,
        key: Cow::Borrowed(key),
        changed: false,
    };
    Interpreter { effects, cut: None }.list(actions, flight);
}

struct Interpreter<'e, E> {
    effects: &'e mut E,
    /// What the next output is cut to.
    cut: Option<u32>,
}

impl<E: Effects> Interpreter<'_, E> {
    fn copy<'k>(&mut self, flight: &InFlight<'k>) -> InFlight<'k> {
        InFlight {
            packet: self.effects.copy(&flight.packet),
            key: flight.key.clone(),
            changed: flight.changed,
        }
    }

    /// Applies a pending cut to a packet that is about to leave.
    fn cut(&mut self, packet: &mut Packet) {
        let Some(len) = self.cut.take().map(|len| len as usize) else {
            return;
        };
        if len < packet.len() {
            // What is cut can neither be summed nor segmented later.
            segment::complete_checksum(packet);
            packet.offload.gso = None;
            packet.truncate(len);
        }
    }

    fn list(&mut self, actions: &[Action], mut flight: InFlight<'_>) {
        for (index, action) in actions.iter().enumerate() {
            let rest = &actions[index + 1..];
            match action {
                Action::Output(port) => {
                    if rest.is_empty() {
                        let mut packet = flight.packet;
                        self.cut(&mut packet);
                        return self.effects.output(*port, packet);
                    }
                    let mut packet = self.effects.copy(&flight.packet);
                    self.cut(&mut packet);
                    self.effects.output(*port, packet);
                }
                Action::Userspace(to) => {
                    let mut copy = self.copy(&flight);
                    self.cut(&mut copy.packet);
                    self.effects.userspace(to, copy, rest);
                }
                Action::Recirc(id) => {
                    if rest.is_empty() {
                        flight.key.to_mut().set(slot::RECIRC_ID, u128::from(*id));
                        return self.effects.recirculate(flight);
                    }
                    let mut again = self.copy(&flight);
                    again.key.to_mut().set(slot::RECIRC_ID, u128::from(*id));
                    self.effects.recirculate(again);
                }
                Action::Clone(inner) => self.inner(inner, &flight),
                Action::Sample {
                    probability,
                    actions: inner,
                } => {
                    if self.effects.random() <= *probability && *probability > 0 {
                        self.inner(inner, &flight);
                    }
                }
                Action::CheckPktLen {
                    len,
                    greater,
                    less_equal,
                } => {
                    let is_longer = flight.packet.len() > usize::from(*len);
                    let inner = if is_longer { greater } else { less_equal };
                    self.inner(inner, &flight);
                }
                Action::Drop(reason) => {
                    self.effects.dropped(*reason);
                    break;
                }
                Action::TunnelPop(port) => {
                    let copy = self.copy(&flight);
                    if let Err(missing) = self.effects.tunnel_pop(*port, copy) {
                        self.effects.missing(missing);
                        break;
                    }
                }
                Action::Ct(ct) => {
                    if let Err(missing) = self.effects.track(ct, &mut flight) {
                        self.effects.missing(missing);
                        break;
                    }
                }
                Action::Meter(id) => match self.effects.meter(*id, &flight.packet) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(missing) => {
                        self.effects.missing(missing);
                        break;
                    }
                },
                Action::DecTtl(_) | Action::Other { .. } => {
                    let name = if matches!(action, Action::DecTtl(_)) {
                        "dec_ttl"
                    } else {
                        "unknown"
                    };
                    self.effects.missing(Missing(name));
                    break;
                }
                Action::Trunc(len) => self.cut = Some(*len),
                other => self.change(other, &mut flight),
            }
        }
        self.effects.release(flight.packet);
    }

    /// Does nested actions to a copy, with a cut of its own.
    fn inner(&mut self, actions: &[Action], flight: &InFlight<'_>) {
        if actions.is_empty() {
            return;
        }
        let copy = self.copy(flight);
        Interpreter {
            effects: self.effects,
            cut: self.cut,
        }
        .list(actions, copy);
    }

    /// Does an action that changes the packet or its metadata.
    fn change(&mut self, action: &Action, flight: &mut InFlight<'_>) {
        let packet = &mut flight.packet;
        match action {
            Action::Set(field) => {
                set(field, packet, &mut flight.key);
                flight.changed = true;
            }
            Action::PushVlan { tpid, tci } => {
                edit::push_vlan(packet, *tpid, tci & !net_flow::types::VLAN_CFI);
                flight.changed = true;
            }
            Action::PopVlan => {
                edit::pop_vlan(packet);
                flight.changed = true;
            }
            Action::PushMpls { ethertype, lse } => {
                edit::push_mpls(packet, *ethertype, *lse);
                flight.changed = true;
            }
            Action::PopMpls { ethertype } => {
                edit::pop_mpls(packet, *ethertype);
                flight.changed = true;
            }
            Action::PushEth { src, dst } => {
                let kind = flight.key.get(slot::PACKET_TYPE) as u16;
                let mac = net_packet::EthAddr::from_u64;
                edit::push_eth(packet, mac(*src), mac(*dst), kind);
                flight.key.to_mut().set(slot::PACKET_TYPE, 0);
                flight.changed = true;
            }
            Action::PopEth => {
                let kind = flight.key.get(slot::ETH_TYPE);
                edit::pop_eth(packet);
                flight.key.to_mut().set(slot::PACKET_TYPE, 1 << 16 | kind);
                flight.changed = true;
            }
            Action::Hash { algorithm, basis } => {
                let hash = if flight.changed {
                    let key = flight.fresh_key(MAX_VLANS);
                    self.effects.hash(&key, *algorithm, *basis)
                } else {
                    self.effects.hash(&flight.key, *algorithm, *basis)
                };
                // Zero says that there is no hash: who wants one would ask again and again.
                let hash = hash.max(1);
                flight.key.to_mut().set(slot::DP_HASH, u128::from(hash));
            }
            Action::CtClear => {
                let key = flight.key.to_mut();
                for slot in [
                    slot::CT_STATE,
                    slot::CT_ZONE,
                    slot::CT_MARK,
                    slot::CT_LABEL,
                    slot::CT_NW_PROTO,
                    slot::CT_NW_SRC,
                    slot::CT_NW_DST,
                    slot::CT_IPV6_SRC,
                    slot::CT_IPV6_DST,
                    slot::CT_TP_SRC,
                    slot::CT_TP_DST,
                ] {
                    key.set(slot, 0);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use net_flow::compose::compose;

    use super::*;
    use crate::text::{PortNames, parse_actions, parse_flow};

    #[derive(Default)]
    struct Log {
        sent: Vec<(u32, Packet)>,
        userspace: usize,
        again: Vec<FlowKey>,
        missing: Vec<Missing>,
        dropped: Vec<u32>,
    }

    impl Effects for Log {
        fn output(&mut self, port: PortNo, packet: Packet) {
            self.sent.push((port.0, packet));
        }
        fn userspace(&mut self, _to: &Userspace, packet: InFlight<'_>, _rest: &[Action]) {
            self.userspace += packet.packet.len();
        }
        fn recirculate(&mut self, mut packet: InFlight<'_>) {
            self.again.push(packet.fresh_key(MAX_VLANS));
        }
        fn dropped(&mut self, reason: u32) {
            self.dropped.push(reason);
        }
        fn random(&mut self) -> u32 {
            5
        }
        fn hash(&mut self, _key: &FlowKey, _algorithm: u32, basis: u32) -> u32 {
            basis.wrapping_add(1)
        }
        fn missing(&mut self, missing: Missing) {
            self.missing.push(missing);
        }
    }

    const TCP: &str = "in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),\
        eth_type(0x0800),ipv4(src=10.0.0.1,dst=10.0.0.2,proto=6,tos=0,ttl=64,frag=no),\
        tcp(src=8,dst=80)";

    fn run(flow: &str, actions: &str) -> Log {
        run_list(flow, &parse_actions(actions, &PortNames::none()).unwrap())
    }

    fn run_list(flow: &str, actions: &[Action]) -> Log {
        let text = parse_flow(flow, &PortNames::none()).unwrap();
        let mut packet = Packet::from_frame(&compose(&text.key, 64));
        let mut key = net_flow::metadata(&text.key);
        net_flow::extract(&mut packet, &mut key, MAX_VLANS);
        let mut log = Log::default();
        execute(actions, packet, &key, &mut log);
        log
    }

    fn key_of(packet: &Packet) -> FlowKey {
        let mut key = FlowKey::new();
        net_flow::extract(&mut packet.clone(), &mut key, MAX_VLANS);
        key
    }

    #[test]
    fn outputs_see_what_was_done_before_them() {
        let log = run(
            TCP,
            "1,push_vlan(vid=5,pcp=2),2,pop_vlan,set(ipv4(ttl=3)),set(tcp(dst=81)),3",
        );
        let ports: Vec<_> = log.sent.iter().map(|(port, _)| *port).collect();
        assert_eq!(ports, [1, 2, 3]);
        let keys: Vec<_> = log.sent.iter().map(|(_, p)| key_of(p)).collect();
        assert_eq!(keys[0].get(slot::VLAN_TCI), 0);
        assert_eq!(keys[1].get(slot::VLAN_TCI), 0x5005);
        let last = (keys[2].get(slot::VLAN_TCI), keys[2].get(slot::NW_TTL));
        assert_eq!(last, (0, 3));
        assert_eq!(
            (keys[2].get(slot::TP_SRC), keys[2].get(slot::TP_DST)),
            (8, 81)
        );
    }

    #[test]
    fn nested_lists_change_copies_only() {
        let log = run(
            TCP,
            "clone(set(ipv4(ttl=1)),4),sample(sample=50.0%,actions(5)),6",
        );
        let sent = log.sent.iter();
        let seen: Vec<_> = sent
            .map(|(port, p)| (*port, key_of(p).get(slot::NW_TTL)))
            .collect();
        assert_eq!(seen, [(4, 1), (5, 64), (6, 64)]);
    }

    #[test]
    fn a_cut_holds_for_one_output() {
        let log = run(TCP, "trunc(60),1,2");
        let lens: Vec<_> = log.sent.iter().map(|(_, p)| p.len()).collect();
        assert_eq!(lens, [60, 118]);
    }

    #[test]
    fn recirculation_carries_metadata_and_fresh_fields() {
        let text = "set(skb_mark(0x9)),push_vlan(vid=7,pcp=0),recirc(0x1)";
        let mut actions = parse_actions(text, &PortNames::none()).unwrap();
        let hash = Action::Hash {
            algorithm: 0,
            basis: 7,
        };
        actions.insert(0, hash);
        let log = run_list(TCP, &actions);
        let key = &log.again[0];
        let meta = (
            key.get(slot::RECIRC_ID),
            key.get(slot::DP_HASH),
            key.get(slot::PKT_MARK),
        );
        assert_eq!(meta, (1, 8, 9));
        assert_eq!(key.get(slot::VLAN_TCI), 0x1007);
    }

    #[test]
    fn a_hash_is_never_zero() {
        let (algorithm, recirc) = (0, Action::Recirc(1));
        for (basis, wanted) in [(u32::MAX, 1), (0, 1), (1, 2)] {
            let hash = Action::Hash { algorithm, basis };
            let log = run_list(TCP, &[hash, recirc.clone()]);
            assert_eq!(log.again[0].get(slot::DP_HASH), wanted);
        }
    }

    #[test]
    fn what_is_missing_ends_the_list() {
        let log = run(TCP, "1,ct(commit),2");
        assert_eq!(
            (log.sent.len(), log.missing.as_slice()),
            (1, &[Missing("ct")][..])
        );
        let log = run(TCP, "check_pkt_len(size=100,gt(1),le(2)),userspace(pid=0)");
        assert_eq!((log.sent[0].0, log.userspace), (1, 118));
    }
}
