//! Actions and instructions, in one list as the text form has them.
//!
//! One file per family holds the payload types, the encodings (OpenFlow 1.0, 1.1 and
//! later, Nicira) and the text of its actions.

mod check;
mod codec;
mod conntrack;
mod encap;
mod field;
mod flow_table;
mod hash;
mod header;
mod instruction;
mod learn;
mod output;
mod sample;
mod text;
mod wire_nested;
pub(crate) use wire_nested::{pull_property, put_property};
mod wire_nicira;
mod wire_standard;

pub use check::{CheckParams, check, verify};
pub use codec::{decode_actions, decode_instructions, encode_actions, encode_instructions};
pub use conntrack::{
    ALG_FTP, ALG_TFTP, Ct, CtZone, NAT_DST, NAT_HASH, NAT_PERSISTENT, NAT_RANDOM, NAT_SRC, Nat,
    NatRange,
};
pub use encap::{Decap, Encap, EncapProp};
pub use field::{Move, SetField, SetForm};
pub use flow_table::{Conjunction, FinTimeout, Resubmit};
pub use hash::{Bundle, BundleAlgorithm, HashFields, Multipath, MultipathAlgorithm};
pub use header::{SetL4Port, SetVlan};
pub use instruction::WriteMetadata;
pub use learn::{Learn, LearnDst, LearnSpec, LearnSrc};
pub use output::{
    CheckPktLarger, Controller, Enqueue, Output, OutputReg, OutputTrunc, reason_name,
};
pub use sample::{Sample, SampleDirection, SampleId};
pub use text::parse_table;
pub(crate) use text::put_table;
pub use text::{ListError, Parser, action_names, put_actions};

use std::net::Ipv4Addr;

use net_flow::Field;

use net_flow::Subfield;

/// An action or instruction.  Instructions stand in the list in the order in which a
/// switch carries them out: meter, actions to apply, clear actions, write actions, write
/// metadata, go to table (`apply_actions` is just the actions themselves).
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send to a port.
    Output(Output),
    /// Hand to a group.
    Group(u32),
    /// Send to controllers, with Nicira's options.
    Controller(Box<Controller>),
    /// Send to a port through a queue (OpenFlow 1.0).
    Enqueue(Enqueue),
    /// Send to the port that a field names.
    OutputReg(OutputReg),
    /// Send to one of several ports, chosen by hash or by liveness.
    Bundle(Box<Bundle>),
    /// Write a constant to a field (`set_field` and `load`).
    SetField(Box<SetField>),
    /// Write the VLAN id.
    SetVlanVid(SetVlan<u16>),
    /// Write the VLAN priority.
    SetVlanPcp(SetVlan<u8>),
    /// Remove the outermost VLAN tag.
    StripVlan {
        /// Said as OpenFlow 1.1's `pop_vlan`, which matters to text only.
        pop: bool,
    },
    /// Add a VLAN tag with this Ethernet type.
    PushVlan(u16),
    /// Write the Ethernet source.
    SetEthSrc([u8; 6]),
    /// Write the Ethernet destination.
    SetEthDst([u8; 6]),
    /// Write the IPv4 source.
    SetIpv4Src(Ipv4Addr),
    /// Write the IPv4 destination.
    SetIpv4Dst(Ipv4Addr),
    /// Write the DSCP: the value is the whole type of service, its low 2 bits 0.
    SetIpDscp(u8),
    /// Write the ECN.
    SetIpEcn(u8),
    /// Write the time to live.
    SetIpTtl(u8),
    /// Write the L4 source port.
    SetL4SrcPort(SetL4Port),
    /// Write the L4 destination port.
    SetL4DstPort(SetL4Port),
    /// Copy a field.
    Move(Move),
    /// Push a field on the stack.
    StackPush(Subfield),
    /// Pop a field from the stack.
    StackPop(Subfield),
    /// Decrement the time to live; packets whose time is up go to these controller ids.
    /// Empty for the plain `dec_ttl`, which means controller 0.
    DecTtl(Vec<u16>),
    /// Write the label of the outermost MPLS entry.
    SetMplsLabel(u32),
    /// Write the traffic class of the outermost MPLS entry.
    SetMplsTc(u8),
    /// Write the time to live of the outermost MPLS entry.
    SetMplsTtl(u8),
    /// Decrement the time to live of the outermost MPLS entry.
    DecMplsTtl,
    /// Add an MPLS entry with this Ethernet type.
    PushMpls(u16),
    /// Remove an MPLS entry; the payload then has this Ethernet type.
    PopMpls(u16),
    /// Decrement the time to live of the NSH.
    DecNshTtl,
    /// Remove a tunnel metadata field.
    DeleteField(Field),
    /// Add a header.
    Encap(Box<Encap>),
    /// Remove the outermost header.
    Decap(Decap),
    /// Write the tunnel id.
    SetTunnel {
        /// The id.
        id: u64,
        /// Said as `set_tunnel64`, which matters to text only.
        wide: bool,
    },
    /// Choose the queue for later output.
    SetQueue(u32),
    /// Back to the default queue.
    PopQueue,
    /// Shorten the rule's timeouts when TCP ends.
    FinTimeout(FinTimeout),
    /// Look up in a flow table, then go on here.
    Resubmit(Resubmit),
    /// Add or change a rule made from the packet.
    Learn(Box<Learn>),
    /// This rule is one dimension of a conjunctive match.
    Conjunction(Conjunction),
    /// Choose one of several links by hash and store the choice.
    Multipath(Box<Multipath>),
    /// Does nothing; carries bytes.
    Note(Box<[u8]>),
    /// Stop here, callers included.
    Exit,
    /// Sample the packet for IPFIX.
    Sample(Box<Sample>),
    /// In frozen state only: pops the table and cookie under which translation ran.
    UnrollXlate {
        /// Table of the rule.
        table: u8,
        /// Cookie of the rule.
        cookie: u64,
    },
    /// Send through connection tracking.
    Ct(Box<Ct>),
    /// Forget the connection tracking state.
    CtClear,
    /// Translate addresses; only inside `Ct`.
    Nat(Box<Nat>),
    /// Send to a port, cut to a length.
    OutputTrunc(OutputTrunc),
    /// Carry out actions on a copy; changes to the packet are undone.
    Clone(Vec<Action>),
    /// Store in a bit whether the packet is longer than a length.
    CheckPktLarger(CheckPktLarger),
    /// For tests: force recirculation.
    DebugRecirc,
    /// For tests: force the slow path.
    DebugSlow,
    /// Apply a meter.
    Meter(u32),
    /// Empty the action set.
    ClearActions,
    /// Merge into the action set.
    WriteActions(Vec<Action>),
    /// Write metadata.
    WriteMetadata(WriteMetadata),
    /// Go on in a later table.
    GotoTable(u8),
}

impl Action {
    /// Its name in text.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Output(_) | Self::OutputTrunc(_) => "output",
            Self::Group(_) => "group",
            Self::Controller(_) => "controller",
            Self::Enqueue(_) => "enqueue",
            Self::OutputReg(_) => "output_reg",
            Self::Bundle(_) => "bundle",
            Self::SetField(_) => "set_field",
            Self::SetVlanVid(_) => "set_vlan_vid",
            Self::SetVlanPcp(_) => "set_vlan_pcp",
            Self::StripVlan { .. } => "strip_vlan",
            Self::PushVlan(_) => "push_vlan",
            Self::SetEthSrc(_) => "mod_dl_src",
            Self::SetEthDst(_) => "mod_dl_dst",
            Self::SetIpv4Src(_) => "mod_nw_src",
            Self::SetIpv4Dst(_) => "mod_nw_dst",
            Self::SetIpDscp(_) => "mod_nw_tos",
            Self::SetIpEcn(_) => "mod_nw_ecn",
            Self::SetIpTtl(_) => "mod_nw_ttl",
            Self::SetL4SrcPort(_) => "mod_tp_src",
            Self::SetL4DstPort(_) => "mod_tp_dst",
            Self::Move(_) => "move",
            Self::StackPush(_) => "push",
            Self::StackPop(_) => "pop",
            Self::DecTtl(_) => "dec_ttl",
            Self::SetMplsLabel(_) => "set_mpls_label",
            Self::SetMplsTc(_) => "set_mpls_tc",
            Self::SetMplsTtl(_) => "set_mpls_ttl",
            Self::DecMplsTtl => "dec_mpls_ttl",
            Self::PushMpls(_) => "push_mpls",
            Self::PopMpls(_) => "pop_mpls",
            Self::DecNshTtl => "dec_nsh_ttl",
            Self::DeleteField(_) => "delete_field",
            Self::Encap(_) => "encap",
            Self::Decap(_) => "decap",
            Self::SetTunnel { .. } => "set_tunnel",
            Self::SetQueue(_) => "set_queue",
            Self::PopQueue => "pop_queue",
            Self::FinTimeout(_) => "fin_timeout",
            Self::Resubmit(_) => "resubmit",
            Self::Learn(_) => "learn",
            Self::Conjunction(_) => "conjunction",
            Self::Multipath(_) => "multipath",
            Self::Note(_) => "note",
            Self::Exit => "exit",
            Self::Sample(_) => "sample",
            Self::UnrollXlate { .. } => "unroll_xlate",
            Self::Ct(_) => "ct",
            Self::CtClear => "ct_clear",
            Self::Nat(_) => "nat",
            Self::Clone(_) => "clone",
            Self::CheckPktLarger(_) => "check_pkt_larger",
            Self::DebugRecirc => "debug_recirc",
            Self::DebugSlow => "debug_slow",
            Self::Meter(_) => "meter",
            Self::ClearActions => "clear_actions",
            Self::WriteActions(_) => "write_actions",
            Self::WriteMetadata(_) => "write_metadata",
            Self::GotoTable(_) => "goto_table",
        }
    }

    /// The part of a field that it writes, if it writes one by name.
    pub fn written_field(&self) -> Option<Field> {
        match self {
            Self::SetField(a) => Some(a.field),
            Self::Move(a) => Some(a.dst.field),
            Self::StackPop(dst) => Some(dst.field),
            Self::Multipath(a) => Some(a.dst.field),
            Self::Bundle(a) => a.dst.map(|dst| dst.field),
            _ => None,
        }
    }

    /// Whether it sends to `port`.
    pub fn outputs_to(&self, port: net_flow::PortNo) -> bool {
        match self {
            Self::Output(a) => a.port == port,
            Self::OutputTrunc(a) => a.port == port,
            Self::Enqueue(a) => a.port == port,
            Self::Controller(_) => port == net_flow::PortNo::CONTROLLER,
            Self::WriteActions(list) | Self::Clone(list) => list.iter().any(|a| a.outputs_to(port)),
            _ => false,
        }
    }

    /// Whether it hands packets to group `group`.
    pub fn uses_group(&self, group: u32) -> bool {
        match self {
            Self::Group(id) => *id == group,
            Self::WriteActions(list) | Self::Clone(list) => {
                list.iter().any(|a| a.uses_group(group))
            }
            _ => false,
        }
    }
}
