//! Sending to a tunnel port: the outer header, as far as the datapath is told of it.

use std::net::IpAddr;

use dp_lang::{Action as DpAction, KeyAttr, SetField};
use net_flow::types::tunnel_flag;
use net_flow::{FlowMask, Slot, slot};

use super::{Local, Tunnel, TunnelConfig, TunnelCsum, TunnelKey, outer_dst};
use crate::ctx::Ctx;
use crate::effect::Effect;
use crate::flow::{Flow, tunnel_words};
use crate::trace::NodeKind;
use crate::view::Port;

/// Bits of a type of service.
const ECN: u128 = 3;
const ECT_0: u128 = 2;
const CE: u128 = 3;
const DSCP: u128 = 0xfc;

impl Ctx<'_> {
    /// Congestion that a packet met in its tunnel is carried over to the packet itself (RFC
    /// 6040).  Returns false if it is not made for that, so that it is dropped.
    pub(crate) fn take_over_congestion(&mut self) -> bool {
        let key = self.flow.key();
        let is_marked = outer_dst(key).is_some() && key.get(slot::TUN_TOS) & ECN == CE;
        if !is_marked || !self.flow.is_ip() {
            return true;
        }
        if self.flow.read_bits(slot::NW_TOS, ECN) == 0 {
            self.complain("dropping tunnel packet marked ECN CE but is not ECN capable".to_owned());
            return false;
        }
        self.flow.write(slot::NW_TOS, CE, ECN);
        true
    }

    /// Sends the packet to a tunnel port, and puts its tunnel fields back.
    pub(crate) fn output_to_tunnel(&mut self, port: &Port, tunnel: &Tunnel) -> bool {
        let kept = self.flow.key().clone();
        self.flow.encapsulate(&tunnel.config, self.came_by_tunnel());
        let goes_out = self.leaves_by_tunnel(port, tunnel);
        self.flow.restore_tunnel(&kept);
        goes_out
    }

    /// Whether the packet came out of a tunnel.
    fn came_by_tunnel(&self) -> bool {
        outer_dst(self.input.key).is_some()
    }

    fn leaves_by_tunnel(&mut self, port: &Port, tunnel: &Tunnel) -> bool {
        if port.datapath.is_none() {
            let why = "Tunneling decided against output";
            self.report(NodeKind::Warning, || why.to_owned());
            return false;
        }
        let dst = outer_dst(self.flow.key());
        if dst == outer_dst(self.input.key) {
            let why = "Not tunneling to our own address";
            self.report(NodeKind::Warning, || why.to_owned());
            return false;
        }
        self.effects
            .push(Effect::Sent(std::sync::Arc::clone(&tunnel.counters)));
        self.report(NodeKind::Detail, || "output to kernel tunnel".to_owned());
        if dst.is_some() && self.flow.tunnel_differs() {
            let set = self.flow.commit_tunnel();
            self.out.push(DpAction::Set(set));
        }
        true
    }
}

impl Flow {
    /// Gives the packet the tunnel fields that the port's configuration asks for.
    fn encapsulate(&mut self, config: &TunnelConfig, from_tunnel: bool) {
        match config.local {
            Local::Address(ip) => self.put_address((slot::TUN_SRC, slot::TUN_IPV6_SRC), Some(ip)),
            Local::Any => self.put_address((slot::TUN_SRC, slot::TUN_IPV6_SRC), None),
            Local::Flow => {}
        }
        if config.remote.is_some() {
            self.put_address((slot::TUN_DST, slot::TUN_IPV6_DST), config.remote);
        }
        self.set(slot::TUN_TP_SRC, 0);
        self.set(slot::TUN_TP_DST, u128::from(config.dst_port));
        if config.out_key != TunnelKey::Flow {
            self.set(slot::TUN_ID, u128::from(config.out_key.value()));
        }
        let ttl = match config.ttl {
            None if self.is_ip() => self.read(slot::NW_TTL),
            None => u128::from(super::DEFAULT_TTL),
            Some(ttl) => u128::from(ttl),
        };
        self.set(slot::TUN_TTL, ttl);
        let tos = self.outer_tos(config);
        self.set(slot::TUN_TOS, tos);
        self.put_flags(config, from_tunnel);
        if let Some(mark) = config.egress_pkt_mark {
            self.write(slot::PKT_MARK, u128::from(mark), u128::MAX);
        }
        if &*config.kind != "geneve" {
            self.clear_options();
        }
        self.put_erspan(config, from_tunnel);
        let policy = [slot::TUN_GBP_ID, slot::TUN_GBP_FLAGS];
        for slot in policy {
            if &*config.kind != "vxlan" {
                self.set(slot, 0);
            } else if from_tunnel {
                // It may be that of the tunnel by which the packet came.
                self.mark(slot);
            }
        }
    }

    fn put_erspan(&mut self, config: &TunnelConfig, from_tunnel: bool) {
        let erspan = config.erspan;
        for (slot, value) in [
            (slot::TUN_ERSPAN_VER, erspan.version.map(u128::from)),
            (slot::TUN_ERSPAN_IDX, erspan.index.map(u128::from)),
            (slot::TUN_ERSPAN_DIR, erspan.direction.map(u128::from)),
            (slot::TUN_ERSPAN_HWID, erspan.hardware_id.map(u128::from)),
        ] {
            match value {
                Some(value) => self.set(slot, value),
                // It may be that of the tunnel by which the packet came.
                None if from_tunnel => self.mark(slot),
                None => {}
            }
        }
    }

    fn put_address(&mut self, (v4, v6): (Slot, Slot), address: Option<IpAddr>) {
        let (four, six) = match address {
            Some(IpAddr::V4(ip)) => (u128::from(ip.to_bits()), 0),
            Some(IpAddr::V6(ip)) => (0, ip.to_bits()),
            None => (0, 0),
        };
        self.set(v4, four);
        self.set(v6, six);
    }

    /// The outer type of service: congestion bits are always those of the packet.
    fn outer_tos(&mut self, config: &TunnelConfig) -> u128 {
        let mut tos = match config.tos {
            None if self.is_ip() => self.read_bits(slot::NW_TOS, DSCP),
            None => 0,
            Some(tos) => u128::from(tos),
        };
        if self.is_ip() {
            let ecn = self.read_bits(slot::NW_TOS, ECN);
            // What was congested inside is not so outside (RFC 6040).
            tos |= if ecn == CE { ECT_0 } else { ecn };
        }
        tos
    }

    fn put_flags(&mut self, config: &TunnelConfig, from_tunnel: bool) {
        let oam = u128::from(tunnel_flag::OAM);
        if from_tunnel && &*config.kind == "geneve" {
            self.read_bits(slot::TUN_FLAGS, oam);
        }
        let mut flags = self.key().get(slot::TUN_FLAGS) & oam;
        let over_ipv6 = self.key().get(slot::TUN_DST) == 0;
        let has_csum = match config.csum {
            TunnelCsum::Enabled => true,
            TunnelCsum::ByProtocol => over_ipv6,
            TunnelCsum::Disabled | TunnelCsum::Without => false,
        };
        for (is_set, flag) in [
            (config.dont_fragment, tunnel_flag::DONT_FRAGMENT),
            (config.out_key != TunnelKey::Absent, tunnel_flag::KEY),
            (has_csum, tunnel_flag::CSUM),
        ] {
            if is_set {
                flags |= u128::from(flag);
            }
        }
        self.set(slot::TUN_FLAGS, flags);
    }

    fn clear_options(&mut self) {
        for word in slot::TUN_METADATA_PRESENT.word..=slot::TUN_METADATA_WORD + 31 {
            self.parts().0.set_word(usize::from(word), 0);
        }
    }

    /// Whether the datapath has other tunnel fields.
    fn tunnel_differs(&self) -> bool {
        tunnel_words().any(|word| self.key().word(word) != self.base.word(word))
    }

    /// What tells the datapath the tunnel fields.
    fn commit_tunnel(&mut self) -> SetField {
        let mut mask = FlowMask::new();
        for slot in KeyAttr::Tunnel.slots() {
            mask.set_exact(*slot);
        }
        let set = SetField::new(KeyAttr::Tunnel, self.key(), &mask);
        for word in tunnel_words() {
            let value = self.key().word(word);
            self.base.set_word(word, value);
        }
        set
    }

    /// Puts the tunnel fields back to those of `kept`.
    fn restore_tunnel(&mut self, kept: &net_flow::FlowKey) {
        for word in tunnel_words() {
            self.parts().0.set_word(word, kept.word(word));
        }
    }
}
