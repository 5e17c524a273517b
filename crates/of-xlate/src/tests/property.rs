//! Any packet that agrees with another under the mask of its translation is translated
//! to the same actions.

use net_flow::Field;
use net_flow::types::eth_type;
use net_flow::{Slot, Subfield};
use of_wire::action::{Move, SetField, SetVlan};
use proptest::prelude::*;

use super::*;

/// Fields that rules match and packets have, with values that meet.
pub(super) const FIELDS: [(Slot, [u128; 3]); 13] = [
    (slot::IN_PORT, [1, 2, 3]),
    (slot::ETH_SRC, [0x5054_0000_0001, 0x5054_0000_0002, 1]),
    (
        slot::ETH_DST,
        [0x5054_0000_0001, 0xffff_ffff_ffff, 0x0180_c200_0000],
    ),
    (slot::VLAN_TCI, [0, 0x1005, 0x7006]),
    (slot::ETH_TYPE, [0x800, 0x806, 0x86dd]),
    (slot::NW_SRC, [0x0a00_0001, 0x0a00_0002, 0xc0a8_0001]),
    (slot::NW_DST, [0x0a00_0001, 0x0aff_0002, 0xc0a8_0001]),
    (slot::NW_PROTO, [6, 17, 0]),
    (slot::NW_TTL, [0, 1, 64]),
    (slot::NW_TOS, [0, 0x10, 0x13]),
    (slot::TP_SRC, [1, 2, 135]),
    (slot::TP_DST, [0, 80, 81]),
    (slot::NW_FRAG, [0, 1, 3]),
];

pub(super) fn matching(parts: &[(usize, usize, u8)]) -> Match {
    let mut m = Match::any();
    for (field, value, shape) in parts {
        let (slot, values) = FIELDS[*field];
        let mask = match shape % 3 {
            0 => slot.max(),
            1 => slot.max() >> 2 << 2,
            _ => slot.max() >> (slot.bits / 2) << (slot.bits / 2),
        };
        m.set_masked(slot, values[*value], mask);
    }
    m
}

fn whole(field: Field) -> Subfield {
    Subfield::whole(field)
}

fn set_field(field: Field, value: u128) -> Action {
    Action::SetField(Box::new(SetField {
        field,
        value,
        mask: field.full_mask(),
        form: of_wire::action::SetForm::SetField,
        flow_has_vlan: false,
    }))
}

pub(super) fn any_action() -> impl Strategy<Value = Action> {
    (0..26u8, 0..3u8).prop_map(|(kind, n)| match kind {
        0..=2 => output(PortNo(u32::from(n) + 1)),
        3 | 4 => output(PortNo::NORMAL),
        5 => output(PortNo::FLOOD),
        6 => output(PortNo::IN_PORT),
        7..=9 => resubmit(n),
        10 => set_field(Field::Ipv4Src, u128::from(n)),
        11 => set_field(Field::IpTos, u128::from(n) << 2),
        12 => set_field(Field::EthDst, u128::from(n)),
        13 => set_field(Field::UdpDst, 80),
        14 => set_field(Field::TcpSrc, u128::from(n)),
        15 => Action::StripVlan { pop: false },
        16 => Action::PushVlan(0x8100),
        17 => Action::SetVlanVid(SetVlan {
            value: 5,
            push_if_needed: n > 0,
            flow_has_vlan: false,
        }),
        18 => set_field(Field::VlanVid, 0x1005),
        19 => Action::DecTtl(Vec::new()),
        20 => Action::Move(Move {
            src: whole(Field::Ipv4Dst),
            dst: whole(Field::Reg0),
            onf: false,
        }),
        21 => Action::Move(Move {
            src: whole(Field::Reg0),
            dst: whole(Field::Ipv4Src),
            onf: false,
        }),
        22 => Action::WriteActions(vec![output(PortNo(u32::from(n) + 1))]),
        23 => Action::Clone(vec![set_field(Field::EthSrc, 5), output(PortNo(2))]),
        24 => set_field(Field::ArpSpa, u128::from(n)),
        _ => Action::StackPush(whole(Field::IpProto)),
    })
}

/// A packet whose fields fit together, as extraction makes it.
pub(super) fn consistent(seeds: &[u8]) -> FlowKey {
    let mut key = FlowKey::new();
    for ((slot, values), seed) in FIELDS.iter().zip(seeds) {
        key.set(*slot, values[usize::from(seed % 3)]);
    }
    normalize(&mut key);
    key
}

/// Clears what a packet of this type does not have.
fn normalize(key: &mut FlowKey) {
    key.set(
        slot::VLAN_TPID,
        if key.get(slot::VLAN_TCI) == 0 {
            0
        } else {
            0x8100
        },
    );
    let ethertype = key.get(slot::ETH_TYPE) as u16;
    let clear = |key: &mut FlowKey, slots: &[Slot]| slots.iter().for_each(|s| key.set(*s, 0));
    if ethertype != eth_type::IPV4 && ethertype != eth_type::ARP {
        clear(key, &[slot::NW_SRC, slot::NW_DST]);
    }
    if ethertype == eth_type::ARP {
        clear(
            key,
            &[
                slot::NW_TTL,
                slot::NW_TOS,
                slot::TP_SRC,
                slot::TP_DST,
                slot::NW_FRAG,
            ],
        );
        let op = key.get(slot::NW_PROTO) % 3;
        key.set(slot::NW_PROTO, op);
    }
    if key.get(slot::NW_FRAG) & 2 != 0 || key.get(slot::NW_PROTO) == 0 {
        clear(key, &[slot::TP_SRC, slot::TP_DST]);
    }
}

/// Another packet that agrees with `key` under `mask`.
pub(super) fn agreeing(key: &FlowKey, mask: &FlowMask, seeds: &[u8]) -> FlowKey {
    let mut other = consistent(seeds);
    for (slot, _) in FIELDS {
        let mask = mask.get(slot);
        other.set(slot, key.get(slot) & mask | other.get(slot) & !mask);
    }
    let tpid = mask.get(slot::VLAN_TPID);
    if tpid != 0 {
        other.set(slot::VLAN_TPID, key.get(slot::VLAN_TPID));
    }
    normalize(&mut other);
    other
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::cases(500)))]

    #[test]
    fn agreeing_packets_get_the_same_actions(
        rules in prop::collection::vec(
            (0u8..3, prop::collection::vec((0..FIELDS.len(), 0usize..3, any::<u8>()), 0..3),
             prop::collection::vec(any_action(), 0..5)),
            1..12),
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), FIELDS.len()), 12),
        vlans in any::<bool>(),
    ) {
        let specs: Vec<Spec> = rules.iter().enumerate()
            .map(|(n, (table, parts, actions))| (*table, n as i32, matching(parts), actions.clone()))
            .collect();
        let mut br = bridge(1, 3, &specs);
        if vlans {
            bundle(&mut br, 1, |b| { b.vlan_mode = VlanMode::Access; b.tag = 5; });
            bundle(&mut br, 2, |b| { b.vlan_mode = VlanMode::NativeTagged; b.tag = 5; });
        }
        let view = switch(vec![br]);
        let first = consistent(&packets[0]);
        let translation = run(&view, &first);
        for seeds in &packets[1..] {
            let other = agreeing(&first, &translation.mask, seeds);
            // Where making the packet consistent undid the agreement, there is no such packet.
            if first.equal_under(&other, &translation.mask) {
                let again = run(&view, &other);
                prop_assert_eq!(
                    actions(&again), actions(&translation),
                    "{:?}\n{:?}\nmask {:?}", first, other, translation.mask
                );
                prop_assert_eq!(again.is_slow(), translation.is_slow());
            }
        }
    }
}
