//! Whether actions fit together, and whether they fit the packets of a match.

use net_flow::field::{Access, Prereq};
use net_flow::types::{VLAN_CFI, eth_type, ip_proto};
use net_flow::{Field, FlowKey, Formats, Match, PortNo, Subfield, slot};

use super::conntrack::{ALG_FTP, ALG_TFTP};
use super::header::is_mpls_type;
use super::{Action, Bundle, Ct, CtZone, Decap, Learn, LearnDst, LearnSrc};
use crate::error::ErrorCode;
use crate::version::Version;

/// The action around a nested list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outer {
    WriteActions,
    Ct,
    Clone,
}

impl Outer {
    const fn name(self) -> &'static str {
        match self {
            Self::WriteActions => "write_actions",
            Self::Ct => "ct",
            Self::Clone => "clone",
        }
    }
}

/// Kinds of instructions in the order in which they must stand.
const INSTRUCTIONS: [&str; 6] = [
    "meter",
    "apply_actions",
    "clear_actions",
    "write_actions",
    "write_metadata",
    "goto_table",
];
const APPLY: usize = 1;

fn instruction(action: &Action, version: Version) -> usize {
    match action {
        Action::Meter(_) if version < Version::V15 => 0,
        Action::ClearActions => 2,
        Action::WriteActions(_) => 3,
        Action::WriteMetadata(_) => 4,
        Action::GotoTable(_) => 5,
        _ => APPLY,
    }
}

/// Whether the actions may stand in this order, in this place.
/// `instructions` says whether instructions may occur at all.
pub fn verify(actions: &[Action], version: Version, instructions: bool) -> Result<(), ErrorCode> {
    let allowed = if instructions { 0x3f } else { 1 << APPLY };
    verify_in(actions, version, allowed, None).map_err(logged)
}

/// As [`verify`], for a list inside another action.
pub(super) fn verify_nested(
    actions: &[Action],
    version: Version,
    outer: Option<Outer>,
) -> Result<(), ErrorCode> {
    verify_in(actions, version, 1 << APPLY, outer).map_err(logged)
}

fn logged((code, text): Fault) -> ErrorCode {
    log::warn!(target: "ofp_actions", "{text}");
    code
}

/// As [`verify`], for text: the error is a text too.
pub(super) fn verify_text(
    actions: &[Action],
    instructions: bool,
    outer: Option<Outer>,
) -> Result<(), String> {
    let allowed = if instructions { 0x3f } else { (1 << APPLY) | 1 };
    verify_in(actions, Version::V11, allowed, outer).map_err(|(_, text)| text)
}

type Fault = (ErrorCode, String);

fn verify_in(
    actions: &[Action],
    version: Version,
    allowed: u32,
    outer: Option<Outer>,
) -> Result<(), Fault> {
    let mut inst = 0;
    for (i, action) in actions.iter().enumerate() {
        if matches!(action, Action::Conjunction(_)) {
            return conjunctions_alone(actions);
        }
        nested(action, outer)?;
        let next = instruction(action, version);
        let ordered = if inst == APPLY {
            next >= inst
        } else {
            next > inst
        };
        if i > 0 && !ordered {
            let (name, next_name) = (INSTRUCTIONS[inst], INSTRUCTIONS[next]);
            let text = if next == inst {
                format!("duplicate {name} instruction not allowed, for OpenFlow 1.1+ compatibility")
            } else {
                format!(
                    "invalid instruction ordering: {next_name} must appear before {name}, \
                     for OpenFlow 1.1+ compatibility"
                )
            };
            return Err((ErrorCode::OfpbacUnsupportedOrder, text));
        }
        if allowed & (1 << next) == 0 {
            let text = format!("{} instruction not allowed here", INSTRUCTIONS[next]);
            return Err((ErrorCode::OfpbicUnsupInst, text));
        }
        inst = next;
    }
    Ok(())
}

fn conjunctions_alone(actions: &[Action]) -> Result<(), Fault> {
    let fits = |a: &&Action| matches!(a, Action::Conjunction(_) | Action::Note(_));
    let Some(other) = actions.iter().find(|a| !fits(a)) else {
        return Ok(());
    };
    let text = format!(
        "\"conjunction\" actions may be used along with \"note\" but not any other kind of \
         action (such as the \"{}\" action used here)",
        other.name()
    );
    Err((ErrorCode::NxbacBadConjunction, text))
}

fn nested(action: &Action, outer: Option<Outer>) -> Result<(), Fault> {
    let field = action.written_field();
    let needs_ct = matches!(field, Some(Field::CtMark | Field::CtLabel));
    if needs_ct && outer != Some(Outer::Ct) {
        let text = "cannot set CT fields outside of ct action".to_owned();
        return Err((ErrorCode::OfpbacBadSetArgument, text));
    }
    if matches!(action, Action::Nat(_)) {
        if outer == Some(Outer::Ct) {
            return Ok(());
        }
        let text = "Cannot have NAT action outside of \"ct\" action".to_owned();
        return Err((ErrorCode::OfpbacBadSetArgument, text));
    }
    let Some(outer) = outer else {
        return Ok(());
    };
    let unsupported = || {
        let text = format!(
            "{} action doesn't support nested action {}",
            outer.name(),
            action.name()
        );
        (ErrorCode::OfpbacBadArgument, text)
    };
    if outer == Outer::Ct {
        let Some(field) = field else {
            return Err(unsupported());
        };
        if !needs_ct {
            let text = format!(
                "{} action doesn't support nested modification of {}",
                outer.name(),
                field.info().name
            );
            return Err((ErrorCode::OfpbacBadArgument, text));
        }
    }
    if matches!(action, Action::Meter(_)) {
        return Err(unsupported());
    }
    Ok(())
}

/// Against what actions are checked.
#[derive(Debug)]
pub struct CheckParams<'a> {
    /// What the packets match.
    pub matching: &'a Match,
    /// One more than the largest port number.
    pub max_ports: u32,
    /// The rule's table; 255 if it is not known.
    pub table: u8,
    /// How many tables there are; 255 for no limit.
    pub n_tables: u8,
}

/// Checks the actions against the packets that they are for: the formats in which they can
/// be written with that match.  Notes in the actions what later encoding needs to know.
/// OpenFlow 1.0 takes actions that do not fit the match (they do nothing); others do not,
/// so formats that are left out mean `OFPBAC_MATCH_INCONSISTENT` there.
pub fn check(actions: &mut [Action], p: &CheckParams<'_>) -> Result<Formats, ErrorCode> {
    let mut c = Checker {
        p,
        key: p.matching.key().clone(),
        formats: Formats::ANY,
    };
    c.list(actions)?;
    Ok(c.formats)
}

/// Whether a port can be sent to.
pub(super) fn check_output_port(port: PortNo, max_ports: u32) -> Result<(), ErrorCode> {
    let special = matches!(
        port,
        PortNo::IN_PORT
            | PortNo::TABLE
            | PortNo::NORMAL
            | PortNo::FLOOD
            | PortNo::ALL
            | PortNo::CONTROLLER
            | PortNo::LOCAL
    );
    if special || port.0 < max_ports {
        Ok(())
    } else {
        Err(ErrorCode::OfpbacBadOutPort)
    }
}

/// Whether a part of a field can be read, in packets of `key` if given.
pub(super) fn check_src(part: Subfield, m: Option<&Match>) -> Result<(), ErrorCode> {
    let width = part.field.info().bits;
    if part.bits == 0 || part.offset >= width || part.offset + part.bits > width {
        return Err(ErrorCode::OfpbacBadSetLen);
    }
    if m.is_some_and(|m| !m.meets_prerequisites(part.field)) {
        return Err(ErrorCode::OfpbacMatchInconsistent);
    }
    Ok(())
}

/// Whether a part of a field can be written.
pub(super) fn check_dst(part: Subfield, m: Option<&Match>) -> Result<(), ErrorCode> {
    check_src(part, m)?;
    if part.field.info().access == Access::ReadOnly {
        return Err(ErrorCode::OfpbacBadSetArgument);
    }
    Ok(())
}

struct Checker<'a, 'b> {
    p: &'a CheckParams<'b>,
    /// The packet as far as it is known, changed as the actions change it.
    key: FlowKey,
    formats: Formats,
}

impl Checker<'_, '_> {
    fn list(&mut self, actions: &mut [Action]) -> Result<(), ErrorCode> {
        actions.iter_mut().try_for_each(|action| self.one(action))
    }

    /// A list whose changes to the packet do not last.
    fn sublist(&mut self, actions: &mut [Action]) -> Result<(), ErrorCode> {
        let key = self.key.clone();
        let result = self.list(actions);
        self.key = key;
        result
    }

    fn inconsistent_if(&mut self, inconsistent: bool) -> Result<(), ErrorCode> {
        if inconsistent {
            self.formats &= Formats::OF10_ANY;
        }
        Ok(())
    }

    fn eth_type(&self) -> u16 {
        let packet_type = self.key.get(slot::PACKET_TYPE);
        if packet_type >> 16 == 1 {
            packet_type as u16
        } else {
            self.key.get(slot::ETH_TYPE) as u16
        }
    }

    fn is_ip(&self) -> bool {
        matches!(self.eth_type(), eth_type::IPV4 | eth_type::IPV6)
    }

    fn has_vlan(&self) -> bool {
        self.key.get(slot::VLAN_TCI) & u128::from(VLAN_CFI) != 0
    }

    fn tag(&mut self) {
        let tci = self.key.get(slot::VLAN_TCI) | u128::from(VLAN_CFI);
        self.key.set(slot::VLAN_TCI, tci);
    }

    /// The match of packets as they are now: the rule's mask, the changed key.
    fn meets(&self, field: Field) -> bool {
        let mut mask = self.p.matching.mask().clone();
        // What an action set is known, whatever the rule matched.
        for slot in [slot::ETH_TYPE, slot::NW_PROTO, slot::PACKET_TYPE] {
            if self.key.get(slot) != self.p.matching.key().get(slot) {
                mask.set_exact(slot);
            }
        }
        if field.info().prereq == Prereq::VlanVid {
            return self.has_vlan();
        }
        field.info().prereq.met_by(&self.key, &mask)
    }

    fn src(&self, part: Subfield) -> Result<(), ErrorCode> {
        check_src(part, None)?;
        if self.meets(part.field) {
            Ok(())
        } else {
            Err(ErrorCode::OfpbacMatchInconsistent)
        }
    }

    fn dst(&self, part: Subfield) -> Result<(), ErrorCode> {
        check_dst(part, None)?;
        self.src(part)
    }

    fn one(&mut self, action: &mut Action) -> Result<(), ErrorCode> {
        match action {
            Action::Output(a) => check_output_port(a.port, self.p.max_ports),
            Action::OutputTrunc(a) => check_output_port(a.port, self.p.max_ports),
            Action::Enqueue(a) => {
                let special = a.port == PortNo::IN_PORT || a.port == PortNo::LOCAL;
                if special || a.port.0 < self.p.max_ports {
                    Ok(())
                } else {
                    Err(ErrorCode::OfpbacBadOutPort)
                }
            }
            Action::OutputReg(a) => self.src(a.src),
            Action::Bundle(a) => {
                if let Some(dst) = a.dst {
                    self.dst(dst)?;
                }
                check_members(a, self.p.max_ports)
            }
            Action::Move(a) => {
                self.src(a.src)?;
                self.dst(a.dst)
            }
            Action::StackPush(part) => self.src(*part),
            Action::StackPop(part) => self.dst(*part),
            Action::Multipath(a) => self.dst(a.dst),
            Action::SetField(a) => {
                let vid_without_tag = a.field == Field::VlanVid && !self.has_vlan();
                if !self.meets(a.field) || vid_without_tag {
                    let name = a.field.info().name;
                    super::codec::warn(|| format!("set_field {name} lacks correct prerequisites"));
                    return Err(ErrorCode::OfpbacMatchInconsistent);
                }
                a.flow_has_vlan = self.has_vlan();
                if a.field == Field::VlanTci {
                    self.key.set(slot::VLAN_TCI, a.value);
                }
                Ok(())
            }
            Action::Resubmit(a) => {
                let tracked = self.key.get(slot::CT_STATE) & 0x20 != 0;
                if a.with_ct_orig && !tracked {
                    return Err(ErrorCode::OfpbacMatchInconsistent);
                }
                Ok(())
            }
            Action::Learn(a) => self.learn(a),
            Action::Clone(list) => self.sublist(list),
            Action::Ct(a) => self.ct(a),
            Action::Nat(a) => {
                let ty = self.eth_type();
                let fits = match a.range.addr_min {
                    Some(ip) if ip.is_ipv4() => ty == eth_type::IPV4,
                    Some(_) => ty == eth_type::IPV6,
                    None => self.is_ip(),
                };
                if fits {
                    Ok(())
                } else {
                    Err(ErrorCode::OfpbacMatchInconsistent)
                }
            }
            Action::UnrollXlate { .. } => Err(ErrorCode::OfpbacBadType),
            Action::DeleteField(f) if !f.info().name.starts_with("tun_metadata") => {
                Err(ErrorCode::OfpbacBadArgument)
            }
            Action::Meter(id) if *id == 0 || *id > 0xffff_0000 => {
                Err(ErrorCode::OfpmmfcInvalidMeter)
            }
            Action::WriteActions(list) => {
                // An action set has no order, so what fits it cannot be told.
                let formats = self.formats;
                let result = self.sublist(list);
                self.formats = formats;
                result
            }
            Action::GotoTable(table) => {
                let backwards = self.p.table != 255 && *table <= self.p.table;
                if backwards || (self.p.n_tables != 255 && *table >= self.p.n_tables) {
                    return Err(ErrorCode::OfpbicBadTableId);
                }
                Ok(())
            }
            _ => self.header(action),
        }
    }

    fn header(&mut self, action: &mut Action) -> Result<(), ErrorCode> {
        let ethernet = self.key.get(slot::PACKET_TYPE) == 0;
        match action {
            Action::SetVlanVid(a) => {
                a.flow_has_vlan = self.has_vlan();
                let absent = !a.flow_has_vlan && !a.push_if_needed;
                self.tag();
                self.inconsistent_if(absent)
            }
            Action::SetVlanPcp(a) => {
                a.flow_has_vlan = self.has_vlan();
                let absent = !a.flow_has_vlan && !a.push_if_needed;
                self.tag();
                self.inconsistent_if(absent)
            }
            Action::StripVlan { .. } => {
                let absent = !self.has_vlan();
                let inner = self.key.get(slot::VLAN2_TCI);
                self.key.set(slot::VLAN_TCI, inner);
                self.key.set(slot::VLAN2_TCI, 0);
                self.inconsistent_if(absent)
            }
            Action::PushVlan(_) => {
                if self.key.get(slot::VLAN2_TCI) & u128::from(VLAN_CFI) != 0 {
                    return Err(ErrorCode::OfpbacBadTag);
                }
                let outer = self.key.get(slot::VLAN_TCI);
                self.key.set(slot::VLAN2_TCI, outer);
                self.key.set(slot::VLAN_TCI, u128::from(VLAN_CFI));
                Ok(())
            }
            Action::SetIpv4Src(_) | Action::SetIpv4Dst(_) => {
                self.inconsistent_if(self.eth_type() != eth_type::IPV4)
            }
            Action::SetIpDscp(_)
            | Action::SetIpEcn(_)
            | Action::SetIpTtl(_)
            | Action::DecTtl(_) => self.inconsistent_if(!self.is_ip()),
            Action::SetL4SrcPort(a) | Action::SetL4DstPort(a) => {
                let proto = self.key.get(slot::NW_PROTO) as u8;
                a.ip_proto = proto;
                let ports = matches!(proto, ip_proto::TCP | ip_proto::UDP | ip_proto::SCTP);
                let later = self.key.get(slot::NW_FRAG) & 2 != 0;
                self.inconsistent_if(!self.is_ip() || later || !ports)
            }
            Action::SetMplsLabel(_)
            | Action::SetMplsTc(_)
            | Action::SetMplsTtl(_)
            | Action::DecMplsTtl => self.inconsistent_if(!is_mpls_type(self.eth_type())),
            Action::PushMpls(ty) => {
                self.key.set(slot::ETH_TYPE, u128::from(*ty));
                self.key.set(slot::NW_PROTO, 0);
                self.inconsistent_if(!ethernet)
            }
            Action::PopMpls(ty) => {
                let mpls = is_mpls_type(self.eth_type());
                self.key.set(slot::ETH_TYPE, u128::from(*ty));
                self.inconsistent_if(!ethernet || !mpls)
            }
            Action::FinTimeout(_) => {
                let tcp = self.key.get(slot::NW_PROTO) == u128::from(ip_proto::TCP);
                self.inconsistent_if(!tcp)
            }
            Action::Encap(a) => {
                self.key.set(slot::PACKET_TYPE, u128::from(a.packet_type));
                if a.packet_type >> 16 == 1 {
                    self.key
                        .set(slot::ETH_TYPE, u128::from(a.packet_type & 0xffff));
                }
                if !self.is_ip() {
                    self.key.set(slot::NW_PROTO, 0);
                }
                Ok(())
            }
            Action::Decap(Decap { .. }) => {
                if ethernet {
                    let ty = self.key.get(slot::ETH_TYPE);
                    self.key.set(slot::PACKET_TYPE, (1 << 16) | ty);
                } else {
                    self.key.set(slot::PACKET_TYPE, 0xffff_ffff);
                    self.key.set(slot::ETH_TYPE, 0xffff);
                }
                Ok(())
            }
            Action::DecNshTtl => self.inconsistent_if(self.eth_type() != eth_type::NSH),
            _ => Ok(()),
        }
    }

    fn ct(&mut self, a: &mut Ct) -> Result<(), ErrorCode> {
        let proto = self.key.get(slot::NW_PROTO) as u8;
        let invalid = self.key.get(slot::CT_STATE) & 0x10 != 0;
        let misfit = !self.is_ip()
            || (invalid && a.commit)
            || (a.alg == ALG_FTP && proto != ip_proto::TCP)
            || (a.alg == ALG_TFTP && proto != ip_proto::UDP);
        if misfit {
            return Err(ErrorCode::OfpbacMatchInconsistent);
        }
        if let CtZone::Field(part) = a.zone {
            return self.src(part);
        }
        self.sublist(&mut a.actions)
    }

    fn learn(&self, a: &Learn) -> Result<(), ErrorCode> {
        let mut learned = Match::any();
        for spec in &a.specs {
            if let LearnSrc::Field(src) = spec.src {
                self.src(src)?;
            }
            match spec.dst {
                LearnDst::Match(dst) => {
                    check_src(dst, Some(&learned))?;
                    if let LearnSrc::Immediate(value) = spec.src {
                        let (old, mask) = learned.field(dst.field).unwrap_or_default();
                        let bits = dst.mask() << dst.offset;
                        let full = dst.field.full_mask();
                        let mask = if dst.is_whole() { full } else { mask | bits };
                        let value = (old & !bits) | (value << dst.offset);
                        learned.set_field(dst.field, value, mask);
                    }
                }
                LearnDst::Load(dst) => check_dst(dst, Some(&learned))?,
                LearnDst::Output => {}
            }
        }
        Ok(())
    }
}

/// Whether a bundle's members can be sent to.
pub(super) fn check_members(a: &Bundle, max_ports: u32) -> Result<(), ErrorCode> {
    for port in &a.members {
        if *port == PortNo::CONTROLLER {
            return Err(ErrorCode::OfpbacBadOutPort);
        }
        if *port != PortNo::NONE {
            check_output_port(*port, max_ports)?;
        }
    }
    Ok(())
}
