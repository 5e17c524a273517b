//! What the kernel's module can do, found out by asking for flows: it refuses what it does not know.

use dp_lang::netlink::{ActionContext, encode_actions, encode_key, encode_mask, ufid_to_bytes};
use dp_lang::text::{PortNames, parse_actions, parse_flow};
use dp_lang::{Action, Features, PortNo, Ufid};
use net_flow::{FlowKey, FlowMask, slot};
use net_netlink::ovs::flow::{self, FlowPut, FlowRef, omit};
use net_netlink::ovs::meter;
use net_netlink::{AttrWriter, errno as number_of};

use crate::kernel::{Kernel, errno};

/// A port that no datapath has: ports are numbered below this.
const NO_PORT: u32 = 65534;

/// How deep `sample` actions are tried.
const MAX_SAMPLE: usize = 10;

/// Attributes of actions that are only asked for.
mod action {
    pub(super) const ADD_MPLS: u16 = 22;
    pub(super) const PSAMPLE: u16 = 25;
}

/// Asks one datapath.
pub(crate) struct Prober<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) dp: u32,
}

/// A kernel that has everything, so that nothing is left out of what is asked.
pub(crate) fn everything() -> Features {
    Features {
        recirc: true,
        ct_state: true,
        ct_zone: true,
        ct_mark: true,
        ct_label: true,
        ct_orig_tuple: true,
        ct_orig_tuple6: true,
        ct_eventmask: true,
        explicit_drop: true,
        max_vlan_headers: 2,
        max_mpls_depth: 3,
        ..Features::default()
    }
}

impl Prober<'_> {
    /// Whether the kernel takes a flow with these attributes.
    fn takes(&self, key: &FlowKey, mask: &FlowMask, actions: &[u8], with_id: bool) -> bool {
        let features = everything();
        let (mut keys, mut masks) = (AttrWriter::new(), AttrWriter::new());
        encode_key(key, &features, &mut keys);
        encode_mask(key, mask, &features, &mut masks);
        let (Ok(keys), Ok(masks)) = (keys.into_bytes(), masks.into_bytes()) else {
            return false;
        };
        let id = ufid_to_bytes(Ufid(0x510c_e000_0000_0000_0000_0000_0000_0001));
        let put = FlowPut {
            ufid: with_id.then_some(&id),
            key: &keys,
            mask: Some(&masks),
            actions: Some(actions),
            create: true,
            replace: true,
            clear: false,
            probe: true,
        };
        let family = self.kernel.families.flow;
        let mut request = flow::put(family, self.dp, &put, 0);
        let taken = match self.kernel.execute(&mut request) {
            Ok(()) => true,
            // A flow that is in the way would be one that it took before.
            Err(e) => number_of(&e) == Some(errno::EEXIST),
        };
        if taken {
            let flow = if with_id {
                FlowRef::Ufid(&id)
            } else {
                FlowRef::Key(&keys)
            };
            let leave_out = omit::KEY | omit::MASK | omit::ACTIONS;
            let mut request = flow::delete(family, self.dp, flow, leave_out);
            // Nothing comes from that port, so a flow that stays does no harm.
            let _ = self.kernel.execute(&mut request);
        }
        taken
    }

    fn takes_flow(&self, text: &str, actions: &[u8]) -> bool {
        let Ok(mut flow) = parse_flow(text, &PortNames::none()) else {
            return false;
        };
        flow.key.set(slot::IN_PORT, u128::from(NO_PORT));
        flow.mask.set_exact(slot::IN_PORT);
        self.takes(&flow.key, &flow.mask, actions, false)
    }

    /// Whether packets with such a key can be told from others.
    fn key(&self, text: &str) -> bool {
        self.takes_flow(text, &[])
    }

    fn list(&self, actions: &[Action]) -> bool {
        let context = ActionContext {
            features: &everything(),
            pid: 0,
        };
        let mut writer = AttrWriter::new();
        if encode_actions(actions, &context, &mut writer).is_err() {
            return false;
        }
        let bytes = writer.into_bytes().unwrap_or_default();
        self.takes_flow("eth_type(0x0800),ipv4(proto=17)", &bytes)
    }

    fn actions(&self, text: &str) -> bool {
        parse_actions(text, &PortNames::none()).is_ok_and(|actions| self.list(&actions))
    }

    fn action(&self, kind: u16, value: &[u8]) -> bool {
        self.list(&[Action::Other {
            kind,
            value: value.into(),
        }])
    }

    fn sample_nesting(&self) -> usize {
        let nested = |depth: usize| {
            let mut actions = vec![Action::Output(PortNo(NO_PORT))];
            for _ in 0..depth {
                actions = vec![Action::Sample {
                    probability: u32::MAX,
                    actions,
                }];
            }
            self.list(&actions)
        };
        (1..=MAX_SAMPLE).take_while(|depth| nested(*depth)).count()
    }

    fn vlans(&self) -> usize {
        let two = "eth(),eth_type(0x88a8),vlan(vid=1,pcp=0),\
                   encap(eth_type(0x8100),vlan(vid=2,pcp=0),encap(eth_type(0x0800)))";
        if self.key(two) { 2 } else { 1 }
    }

    fn labels(&self) -> usize {
        let entry = |bottom: bool| format!("label=5,tc=0,ttl=64,bos={}", u8::from(bottom));
        let stack = |depth: usize| {
            let entries: Vec<String> = (1..=depth).map(|n| entry(n == depth)).collect();
            format!("eth(),eth_type(0x8847),mpls({})", entries.join(","))
        };
        (1..=3).take_while(|depth| self.key(&stack(*depth))).count()
    }

    fn meters(&self) -> bool {
        let Some(family) = self.kernel.families.meter else {
            return false;
        };
        let mut request = meter::features(family, self.dp);
        let features = self.kernel.ask(&mut request, meter::Features::parse);
        features.is_ok_and(|f| f.max_meters > 0 && f.drop)
    }

    fn ufid(&self) -> bool {
        let mut key = FlowKey::new();
        key.set(slot::IN_PORT, u128::from(NO_PORT));
        let mut mask = FlowMask::new();
        mask.set_exact(slot::IN_PORT);
        self.takes(&key, &mask, &[], true)
    }

    /// Asks for everything.
    pub(crate) fn features(&self) -> Features {
        let ct = "recirc_id(0x1),eth_type(0x0800),ipv4(proto=6)";
        let ct6 = "recirc_id(0x1),eth_type(0x86dd),ipv6(proto=6)";
        // `struct ovs_action_add_mpls`: an entry, its Ethernet type, flags.
        let add_mpls = [0, 0, 0x51, 0x40, 0x88, 0x47, 1, 0];
        // A group number, in an attribute of its own.
        let psample = [8, 0, 1, 0, 1, 0, 0, 0];
        let last_hash = self.actions("hash(sym_l4(0))");
        Features {
            masked_set: self.actions("set(eth(src=00:00:00:00:00:01/00:00:00:00:00:01))"),
            tunnel_push_pop: false,
            ufid: self.ufid(),
            trunc: self.actions(&format!("trunc(64),{NO_PORT}")),
            clone: self.actions(&format!("clone({NO_PORT})")),
            sample_nesting: self.sample_nesting(),
            ct_eventmask: self.list(&[eventmask()]),
            ct_clear: self.actions("ct_clear"),
            max_hash_algorithm: u32::from(last_hash),
            check_pkt_len: self.actions(&format!("check_pkt_len(size=64,gt({NO_PORT}),le(drop))")),
            ct_timeout: self.actions("ct(commit,timeout=ovs_test_tp)"),
            explicit_drop: self.list(&[Action::Drop(0)]),
            lb_output: false,
            ct_zero_snat: self.actions("ct(commit,nat(src=0.0.0.0))"),
            add_mpls: self.action(action::ADD_MPLS, &add_mpls),
            psample: self.action(action::PSAMPLE, &psample),
            max_vlan_headers: self.vlans(),
            max_mpls_depth: self.labels(),
            recirc: self.key("recirc_id(0x1)"),
            ct_state: self.key("ct_state(+trk)"),
            ct_zone: self.key("ct_zone(0x1)"),
            ct_mark: self.key("ct_mark(0x1)"),
            ct_label: self.key("ct_label(0x1)"),
            ct_state_nat: self.key("ct_state(+trk+snat)"),
            ct_orig_tuple: self.key(&format!(
                "ct_state(+trk),{ct},ct_tuple4(src=1.1.1.1,dst=2.2.2.2,proto=6,tp_src=1,tp_dst=2)"
            )),
            ct_orig_tuple6: self.key(&format!(
                "ct_state(+trk),{ct6},ct_tuple6(src=::1,dst=::2,proto=6,src_port=1,dst_port=2)"
            )),
            // Kernels have no such key.
            nd_extensions: false,
            tunnels: true,
            meters: self.meters(),
            outlives_process: true,
        }
    }
}

/// A `ct` action with an event mask.
fn eventmask() -> Action {
    let ct = dp_lang::Ct {
        commit: true,
        eventmask: Some(1),
        ..dp_lang::Ct::default()
    };
    Action::Ct(Box::new(ct))
}
