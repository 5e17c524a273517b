//! Output to ports, plain and reserved, and to controllers.

use std::sync::Arc;

use dp_lang::{Action as DpAction, Controller};
use net_flow::types::eth_type;
use net_flow::{MiniKey, PortNo, slot};

use crate::ctx::Ctx;
use crate::flow::metadata_mask;
use crate::freeze::controller_action;
use crate::lookup::Query;
use crate::recirc::FrozenState;
use crate::trace::NodeKind;
use crate::translation::Purpose;
use crate::tunnel::PacketTypeMode;
use crate::view::Port;
use crate::work::{Output, Work};

/// Reasons in packet-ins (`OFPR_*`).
pub(crate) mod reason {
    pub(crate) const ACTION: u8 = 1;
    pub(crate) const INVALID_TTL: u8 = 2;
    pub(crate) const ACTION_SET: u8 = 3;
    pub(crate) const GROUP: u8 = 4;
    pub(crate) const PACKET_OUT: u8 = 5;
    pub(crate) const EXPLICIT_MISS: u8 = 6;
}

/// The group address of bridges (spanning tree), IEEE 802.1D.
const STP_ADDRESS: u128 = 0x0180_c200_0000;

/// A packet for controllers.
pub(crate) struct ToController<'a> {
    pub(crate) max_len: u16,
    pub(crate) reason: u8,
    pub(crate) controller_id: u16,
    pub(crate) userdata: &'a [u8],
}

impl Ctx<'_> {
    /// `output:PORT` and the names of reserved ports.
    pub(crate) fn output(&mut self, port: PortNo, max_len: u16, may_packet_in: bool, last: bool) {
        match port {
            PortNo::IN_PORT => self.push_output(self.flow.in_port(), last, false),
            PortNo::TABLE => {
                let query = Query {
                    table: 0,
                    in_port: self.flow.in_port(),
                    may_packet_in,
                    honor_miss: true,
                    by_connection: false,
                };
                self.go_to_table(&query, false, false);
            }
            PortNo::NORMAL => self.normal(),
            PortNo::FLOOD => self.flood(false, last),
            PortNo::ALL => self.flood(true, last),
            PortNo::CONTROLLER => {
                let reason = if self.input.purpose == Purpose::PacketOut {
                    reason::PACKET_OUT
                } else if self.at.in_bucket {
                    reason::GROUP
                } else if self.in_action_set {
                    reason::ACTION_SET
                } else {
                    reason::ACTION
                };
                self.send_to_controller(&ToController {
                    max_len,
                    reason,
                    controller_id: 0,
                    userdata: &[],
                });
            }
            PortNo::NONE => {}
            _ if port == self.flow.in_port() => self.skip_input_port(),
            _ => self.push_output(port, last, false),
        }
    }

    pub(crate) fn skip_input_port(&mut self) {
        self.inform("skipping output to input port".to_string());
    }

    pub(crate) fn push_output(&mut self, port: PortNo, last: bool, truncated: bool) {
        self.work.push(Work::Output(Output {
            port,
            check_stp: true,
            last,
            truncated,
        }));
    }

    /// Sends to all ports, or to those with flooding on.
    fn flood(&mut self, all: bool, last: bool) {
        let bridge = Arc::clone(&self.bridge);
        let in_port = self.flow.in_port();
        let ports = bridge
            .ports
            .values()
            .filter(|p| p.number != in_port && (all || !p.flags.no_flood));
        let mut is_last = last;
        for port in ports.rev() {
            self.work.push(Work::Output(Output {
                port: port.number,
                check_stp: !all,
                last: is_last,
                truncated: false,
            }));
            is_last = false;
        }
    }

    /// Sends to one port.
    pub(crate) fn output_to(&mut self, output: Output) {
        let port = self.bridge.ports.get(&output.port).cloned();
        let Some(port) = port else {
            self.report(NodeKind::Warning, || "Nonexistent output port".to_string());
            return;
        };
        if !self.may_send(&port, output.check_stp) {
            return;
        }
        if self.snaplen != 0 && port.datapath.is_none() {
            let why = "Mirror truncate to ODPP_NONE, skipping output";
            self.report(NodeKind::Warning, || why.to_string());
            return;
        }
        if port.patch.is_some() {
            if output.truncated {
                self.warn("Cannot truncate output to patch port".to_string());
            }
            self.output_to_patch(&port, output.last);
            return;
        }
        let kind = self.flow.packet_type();
        if let Some(tunnel) = &port.tunnel {
            if tunnel.config.mode == PacketTypeMode::LegacyL3 {
                self.flow.strip_frame();
            }
            if !self.output_to_tunnel(&port, tunnel) {
                self.flow.set(slot::PACKET_TYPE, u128::from(kind));
                return;
            }
        }
        if let Some(number) = port.datapath {
            self.commit();
            if self.snaplen != 0 {
                self.out.push(DpAction::Trunc(u32::from(self.snaplen)));
            }
            self.out.push(DpAction::Output(number));
            self.mirror_egress(port.bundle);
        }
        self.flow.set(slot::PACKET_TYPE, u128::from(kind));
    }

    /// Whether the packet may leave by `port`.
    fn may_send(&mut self, port: &Port, check_stp: bool) -> bool {
        if port.flags.no_fwd {
            self.report(NodeKind::Detail, || {
                "OFPPC_NO_FWD set, skipping output".to_string()
            });
            return false;
        }
        let is_protected = |number| self.bridge.bundle_of(number).is_some_and(|b| b.protected);
        if is_protected(port.number) && is_protected(self.flow.in_port()) {
            self.report(NodeKind::Warning, || {
                "Flow is between protected ports, skipping output.".to_string()
            });
            return false;
        }
        if check_stp && !self.spanning_tree_allows(port) {
            return false;
        }
        let mode = port
            .tunnel
            .as_ref()
            .map(|t| t.config.mode)
            .unwrap_or_default();
        if self.flow.packet_type() != 0 && mode == PacketTypeMode::LegacyL2 {
            self.report(NodeKind::Warning, || {
                "Trying to send non-Ethernet packet through legacy L2 port. Dropping packet."
                    .to_string()
            });
            return false;
        }
        true
    }

    fn spanning_tree_allows(&mut self, port: &Port) -> bool {
        let state = port.spanning;
        if state.forwards() && state.forwards_bpdu() {
            return true;
        }
        let is_stp = self.is_stp();
        let (allowed, stp, rstp) = if is_stp {
            (
                state.forwards_bpdu(),
                "STP not in listening state, skipping bpdu output",
                "RSTP not managing BPDU in this state, skipping bpdu output",
            )
        } else {
            (
                state.forwards(),
                "STP not in forwarding state, skipping output",
                "RSTP not in forwarding state, skipping output",
            )
        };
        if !allowed {
            let text = if self.bridge.stp { stp } else { rstp };
            self.report(NodeKind::Warning, || text.to_string());
        }
        allowed
    }

    /// Whether the packet belongs to the spanning tree protocol.
    fn is_stp(&mut self) -> bool {
        self.flow.eth_type() == eth_type::NONE && self.flow.read(slot::ETH_DST) == STP_ADDRESS
    }

    /// Whether a port lets the packet in.
    pub(crate) fn may_receive(&mut self, port: &Port) -> bool {
        let flags = port.flags;
        let refused = if flags.no_recv == flags.no_recv_stp {
            flags.no_recv
        } else if self.is_stp() {
            flags.no_recv_stp
        } else {
            flags.no_recv
        };
        !refused && (port.spanning.forwards() || port.spanning.learns())
    }

    /// Sends the packet as it is now to controllers.
    pub(crate) fn send_to_controller(&mut self, to: &ToController<'_>) {
        self.commit();
        let reason = if to.reason == reason::ACTION && self.at.table_miss {
            reason::EXPLICIT_MISS
        } else {
            to.reason
        };
        let state = FrozenState {
            bridge: self.bridge.id,
            table: self.at.table,
            metadata: MiniKey::under(self.flow.key(), &metadata_mask()),
            stack: self.stack.clone(),
            mirrors: self.mirrored,
            action_set: Vec::new(),
            actions: Arc::default(),
            userdata: to.userdata.into(),
            conntracked: self.conntracked,
            was_mpls: self.was_mpls,
            hashed: false,
            input: None,
        };
        let recirc_id = self.intern(state);
        let controller = Controller {
            reason,
            dont_send: self.is_looking_only(),
            continuation: false,
            recirc_id,
            rule_cookie: self.at.cookie,
            controller_id: to.controller_id,
            max_len: to.max_len,
        };
        self.out.push(controller_action(controller));
    }
}
