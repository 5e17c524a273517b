//! Handshake, errors, echo, configuration, roles, and Nicira's settings of a connection.

use super::kind::Kind;
use super::{Decoded, Encoder, Head, hello, port, rest};
use crate::error::{ErrorCode, ErrorNumber};
use crate::message::{
    AsyncConfig, AsyncKind, Body, ControllerRole, Desc, ErrorMessage, Features, PacketInFormat,
    RoleMessage, RoleStatus, SwitchConfig,
};
use crate::version::Version;
use crate::wire::{Put, Reader, text};

/// The error type that says "see the experimenter" (OpenFlow 1.2 and later).
const EXPERIMENTER_ERROR: u16 = 0xffff;
/// The type and code with which Nicira's errors are said in OpenFlow 1.0 and 1.1.
const VENDOR_ERROR: u16 = 0xb0c2;

pub(super) fn decode(head: Head<'_>) -> Decoded<'_> {
    let version = head.version;
    let mut r = head.body;
    Ok(Ok(match head.kind {
        Kind::OfptHello => {
            let (versions, _) = hello::decode(head.bytes[0], r);
            if let Some(text) = hello::complaint(r) {
                log::warn!(target: "ofp_util", "{text}");
            }
            Body::Hello(versions)
        }
        Kind::OfptError => Body::Error(decode_error(version, r)?),
        Kind::OfptEchoRequest => Body::EchoRequest(rest(r)),
        Kind::OfptEchoReply => Body::EchoReply(rest(r)),
        Kind::OfptFeaturesRequest => Body::FeaturesRequest,
        Kind::OfptFeaturesReply => Body::FeaturesReply(Box::new(decode_features(version, r)?)),
        Kind::OfptGetConfigRequest => Body::GetConfigRequest,
        Kind::OfptGetConfigReply => Body::GetConfigReply(decode_config(version, r)?),
        Kind::OfptSetConfig => {
            let config = decode_config(version, r)?;
            Body::SetConfig(config)
        }
        Kind::OfptBarrierRequest => Body::BarrierRequest,
        Kind::OfptBarrierReply => Body::BarrierReply,
        Kind::OfptRoleRequest | Kind::NxtRoleRequest => Body::RoleRequest(decode_role(&head)?),
        Kind::OfptRoleReply | Kind::NxtRoleReply => Body::RoleReply(decode_role(&head)?),
        Kind::OfptRoleStatus | Kind::OnftRoleStatus => {
            let role = role(r.u32()?)?;
            let reason = r.u8()?;
            r.skip(3)?;
            if reason > 2 {
                return Err(ErrorCode::OfpbrcBadType);
            }
            Body::RoleStatus(RoleStatus {
                role,
                reason,
                generation_id: r.u64()?,
            })
        }
        Kind::OfptGetAsyncRequest => Body::GetAsyncRequest,
        Kind::OfptGetAsyncReply if version == Version::V13 => {
            Body::GetAsyncReply(Box::new(decode_async(r)?))
        }
        Kind::OfptSetAsync if version == Version::V13 => Body::SetAsync(Box::new(decode_async(r)?)),
        Kind::NxtSetAsyncConfig => Body::SetAsync(Box::new(decode_async(r)?)),
        Kind::OfpstDescRequest => Body::DescRequest,
        Kind::OfpstDescReply => Body::DescReply(Box::new(Desc {
            mfr: text(r.take(256)?),
            hw: text(r.take(256)?),
            sw: text(r.take(256)?),
            serial: text(r.take(32)?),
            dp: text(r.take(256)?),
        })),
        Kind::NxtFlowModTableId => {
            let set = r.u8()?;
            Body::FlowModTableId(set != 0)
        }
        Kind::NxtSetFlowFormat => Body::SetFlowFormat(r.u32()?),
        Kind::NxtSetPacketInFormat => Body::SetPacketInFormat(match r.u32()? {
            0 => PacketInFormat::Standard,
            1 => PacketInFormat::Nxt,
            2 => PacketInFormat::Nxt2,
            _ => return Err(ErrorCode::OfpbrcEperm),
        }),
        Kind::NxtSetControllerId => {
            if r.take(6)?.iter().any(|b| *b != 0) {
                return Err(ErrorCode::NxbrcMustBeZero);
            }
            Body::SetControllerId(r.u16()?)
        }
        Kind::NxtFlowAge => Body::FlowAge,
        _ => return Ok(Err(head)),
    }))
}

fn decode_error(version: Version, mut r: Reader<'_>) -> Result<ErrorMessage, ErrorCode> {
    let (mut ty, mut code) = (r.u16()?, r.u16()?);
    let mut experimenter = 0;
    if ty == VENDOR_ERROR && code == 0 {
        experimenter = r.u32()?;
        (ty, code) = (r.u16()?, r.u16()?);
    } else if ty == EXPERIMENTER_ERROR && version >= Version::V12 {
        experimenter = r.u32()?;
        (ty, code) = (code, 0);
    }
    let number = ErrorNumber {
        experimenter,
        ty,
        code,
    };
    Ok(ErrorMessage {
        code: ErrorCode::from_number(version, number).ok_or(number),
        payload: rest(r),
    })
}

fn put_error(out: &mut Vec<u8>, version: Version, e: &ErrorMessage) {
    let number = match e.code {
        Ok(code) => code.number(version).or_else(|| {
            log::error!(target: "ofp_errors",
                    "cannot encode {code} for OpenFlow 1.{}", version as u8 - 1);
            ErrorCode::NxbrcUnencodableError.number(version)
        }),
        Err(number) => Some(number),
    };
    let number = number.unwrap_or(ErrorNumber {
        experimenter: 0,
        ty: 1,
        code: 1,
    });
    if number.experimenter == 0 {
        out.u16(number.ty);
        out.u16(number.code);
    } else if version >= Version::V12 {
        out.u16(EXPERIMENTER_ERROR);
        out.u16(number.ty);
        out.u32(number.experimenter);
    } else {
        out.u16(VENDOR_ERROR);
        out.u16(0);
        out.u32(number.experimenter);
        out.u16(number.ty);
        out.u16(number.code);
    }
    out.extend_from_slice(&e.payload);
}

fn decode_features(version: Version, mut r: Reader<'_>) -> Result<Features, ErrorCode> {
    let mut f = Features {
        datapath_id: r.u64()?,
        n_buffers: r.u32()?,
        n_tables: r.u8()?,
        auxiliary_id: r.u8()?,
        capabilities: 0,
        actions: 0,
        ports: Vec::new(),
    };
    r.skip(2)?;
    f.capabilities = r.u32()?;
    let word = r.u32()?;
    if version == Version::V10 {
        f.actions = word;
    }
    if version < Version::V13 {
        while !r.is_empty() {
            f.ports.push(port::pull_desc(&mut r, version)?);
        }
    }
    Ok(f)
}

fn decode_config(version: Version, mut r: Reader<'_>) -> Result<SwitchConfig, ErrorCode> {
    let (flags, miss_send_len) = (r.u16()?, r.u16()?);
    let has_ttl = version < Version::V13;
    let known = if has_ttl { 7 } else { 3 };
    if flags & !known != 0 {
        return Err(ErrorCode::OfpscfcBadFlags);
    }
    Ok(SwitchConfig {
        frag: flags & 3,
        invalid_ttl_to_controller: has_ttl.then_some(flags & 4 != 0),
        miss_send_len,
    })
}

fn role(number: u32) -> Result<ControllerRole, ErrorCode> {
    Ok(match number {
        0 => ControllerRole::NoChange,
        1 => ControllerRole::Equal,
        2 => ControllerRole::Primary,
        3 => ControllerRole::Secondary,
        _ => return Err(ErrorCode::OfprrfcBadRole),
    })
}

fn decode_role(head: &Head<'_>) -> Result<RoleMessage, ErrorCode> {
    let mut r = head.body;
    let number = r.u32()?;
    if matches!(head.kind, Kind::NxtRoleRequest | Kind::NxtRoleReply) {
        // Nicira's numbers lack "no change" in front.
        return Ok(RoleMessage {
            role: role(number.saturating_add(1))?,
            generation_id: None,
        });
    }
    r.skip(4)?;
    let generation = r.u64()?;
    let role = role(number)?;
    let elects = matches!(role, ControllerRole::Primary | ControllerRole::Secondary);
    let reply = head.kind == Kind::OfptRoleReply;
    let said = if reply {
        generation != u64::MAX
    } else {
        elects
    };
    Ok(RoleMessage {
        role,
        generation_id: said.then_some(generation),
    })
}

fn put_role(e: &mut Encoder<'_>, m: RoleMessage, reply: bool) {
    // OpenFlow 1.0 and 1.1 have Nicira's form only.
    if e.version < Version::V12 {
        let kind = if reply {
            Kind::NxtRoleReply
        } else {
            Kind::NxtRoleRequest
        };
        return e.message(kind, |out| out.u32((m.role as u32).saturating_sub(1)));
    }
    let kind = if reply {
        Kind::OfptRoleReply
    } else {
        Kind::OfptRoleRequest
    };
    let unsaid = if reply { u64::MAX } else { 0 };
    e.message(kind, |out| {
        out.u32(m.role as u32);
        out.zeros(4);
        out.u64(m.generation_id.unwrap_or(unsaid));
    });
}

/// The kinds, with the reasons that OpenFlow 1.3 and before know.
const ASYNC_KINDS: [(AsyncKind, u32); 3] = [
    (AsyncKind::PacketIn, 7),
    (AsyncKind::PortStatus, 7),
    (AsyncKind::FlowRemoved, 0xf),
];

fn decode_async(mut r: Reader<'_>) -> Result<AsyncConfig, ErrorCode> {
    let mut config = AsyncConfig::default();
    for (kind, known) in ASYNC_KINDS {
        // There is no error for reasons that are not known.
        config.primary[kind as usize] = r.u32()? & known;
        config.secondary[kind as usize] = r.u32()? & known;
    }
    Ok(config)
}

fn put_async(out: &mut Vec<u8>, config: &AsyncConfig) {
    for (kind, _) in ASYNC_KINDS {
        out.u32(config.primary[kind as usize]);
        out.u32(config.secondary[kind as usize]);
    }
}

pub(super) fn encode(e: &mut Encoder<'_>, body: &Body) -> bool {
    let version = e.version;
    match body {
        Body::Hello(versions) => e.message(Kind::OfptHello, |out| hello::encode(out, *versions)),
        Body::Error(error) => e.message(Kind::OfptError, |out| put_error(out, version, error)),
        Body::EchoRequest(data) => {
            e.message(Kind::OfptEchoRequest, |out| out.extend_from_slice(data));
        }
        Body::EchoReply(data) => {
            e.message(Kind::OfptEchoReply, |out| out.extend_from_slice(data));
        }
        Body::FeaturesRequest => e.message(Kind::OfptFeaturesRequest, |_| ()),
        Body::FeaturesReply(f) => {
            e.message(Kind::OfptFeaturesReply, |out| put_features(out, version, f));
        }
        Body::GetConfigRequest => e.message(Kind::OfptGetConfigRequest, |_| ()),
        Body::GetConfigReply(c) => {
            e.message(Kind::OfptGetConfigReply, |out| put_config(out, version, *c));
        }
        Body::SetConfig(c) => {
            e.message(Kind::OfptSetConfig, |out| put_config(out, version, *c));
        }
        Body::BarrierRequest => e.message(Kind::OfptBarrierRequest, |_| ()),
        Body::BarrierReply => e.message(Kind::OfptBarrierReply, |_| ()),
        Body::RoleRequest(m) => put_role(e, *m, false),
        Body::RoleReply(m) => put_role(e, *m, true),
        Body::RoleStatus(m) => {
            let kind = if version >= Version::V14 {
                Kind::OfptRoleStatus
            } else {
                Kind::OnftRoleStatus
            };
            e.message(kind, |out| {
                out.u32(m.role as u32);
                out.u8(m.reason);
                out.zeros(3);
                out.u64(m.generation_id);
            });
        }
        Body::GetAsyncRequest => e.message(Kind::OfptGetAsyncRequest, |_| ()),
        Body::GetAsyncReply(c) => e.message(Kind::OfptGetAsyncReply, |out| put_async(out, c)),
        Body::SetAsync(c) => {
            let kind = if version == Version::V13 {
                Kind::OfptSetAsync
            } else {
                Kind::NxtSetAsyncConfig
            };
            e.message(kind, |out| put_async(out, c));
        }
        Body::DescRequest => e.message(Kind::OfpstDescRequest, |_| ()),
        Body::DescReply(d) => e.message(Kind::OfpstDescReply, |out| {
            out.text(&d.mfr, 256);
            out.text(&d.hw, 256);
            out.text(&d.sw, 256);
            out.text(&d.serial, 32);
            out.text(&d.dp, 256);
        }),
        Body::FlowModTableId(set) => e.message(Kind::NxtFlowModTableId, |out| {
            out.u8(u8::from(*set));
            out.zeros(7);
        }),
        Body::SetFlowFormat(format) => {
            e.message(Kind::NxtSetFlowFormat, |out| out.u32(*format));
        }
        Body::SetPacketInFormat(format) => {
            e.message(Kind::NxtSetPacketInFormat, |out| out.u32(*format as u32));
        }
        Body::SetControllerId(id) => e.message(Kind::NxtSetControllerId, |out| {
            out.zeros(6);
            out.u16(*id);
        }),
        Body::FlowAge => e.message(Kind::NxtFlowAge, |_| ()),
        _ => return false,
    }
    true
}

fn put_features(out: &mut Vec<u8>, version: Version, f: &Features) {
    out.u64(f.datapath_id);
    out.u32(f.n_buffers);
    out.u8(f.n_tables);
    out.u8(if version >= Version::V13 {
        f.auxiliary_id
    } else {
        0
    });
    out.zeros(2);
    out.u32(f.capabilities);
    out.u32(if version == Version::V10 {
        f.actions
    } else {
        0
    });
    if version < Version::V13 {
        for desc in &f.ports {
            // What does not fit can be asked for with a port description request.
            if out.len() + 64 > super::MAX_LEN {
                break;
            }
            port::put_desc(out, version, desc);
        }
    }
}

fn put_config(out: &mut Vec<u8>, version: Version, c: SwitchConfig) {
    let has_ttl = version < Version::V13;
    let ttl = has_ttl && c.invalid_ttl_to_controller == Some(true);
    out.u16((c.frag & 3) | u16::from(ttl) << 2);
    out.u16(c.miss_send_len);
}
