//! Bundles (OpenFlow 1.4; ONF's extension for 1.3), groups and meters as far as a switch without
//! them must know to refuse them.

use super::kind::Kind;
use super::{Decoded, Dialect, Encoder, Head};
use crate::error::ErrorCode;
use crate::message::{Body, BundleControl, GroupMod, GroupType, Message, MeterMod};
use crate::version::Version;
use crate::wire::Put;

pub(super) fn decode(head: Head<'_>, dialect: Dialect) -> Decoded<'_> {
    let mut r = head.body;
    Ok(Ok(match head.kind {
        Kind::OfptBundleControl | Kind::OnftBundleControl => Body::BundleControl(BundleControl {
            id: r.u32()?,
            kind: r.u16()?,
            flags: r.u16()?,
        }),
        Kind::OfptBundleAddMessage | Kind::OnftBundleAddMessage => {
            let id = r.u32()?;
            r.skip(2)?;
            let flags = r.u16()?;
            let claimed = super::claimed_len(r.rest()).ok_or(ErrorCode::OfpbfcMsgBadLen)?;
            if claimed < super::HEADER_LEN || claimed > r.len() {
                return Err(ErrorCode::OfpbfcMsgBadLen);
            }
            let inner = r.take(claimed)?;
            let nested = super::kind_of(inner).map_err(|_| ErrorCode::OfpbfcMsgUnsup)?;
            if !matches!(
                nested,
                Kind::OfptFlowMod
                    | Kind::NxtFlowMod
                    | Kind::OfptGroupMod
                    | Kind::OfptPortMod
                    | Kind::OfptPacketOut
            ) {
                return Err(ErrorCode::OfpbfcMsgUnsup);
            }
            let message = Message::decode(inner, dialect)?;
            if message.xid != head.xid {
                return Err(ErrorCode::OfpbfcMsgBadXid);
            }
            Body::BundleAdd {
                id,
                flags,
                message: Box::new(message),
            }
        }
        Kind::OfptGroupMod if head.version < Version::V15 => {
            let command = r.u16()?;
            let kind = match r.u8()? {
                0 => GroupType::All,
                1 => GroupType::Select,
                2 => GroupType::Indirect,
                3 => GroupType::FastFailover,
                _ => return Err(ErrorCode::OfpgmfcBadType),
            };
            r.skip(1)?;
            let id = r.u32()?;
            if command > 2 && command != 0x8000 {
                return Err(ErrorCode::OfpgmfcBadCommand);
            }
            if !r.is_empty() {
                // Buckets have no value here yet.
                return Ok(Err(head));
            }
            Body::GroupMod(Box::new(GroupMod {
                command,
                kind,
                id,
                buckets: Vec::new(),
            }))
        }
        Kind::OfptMeterMod => {
            let (command, flags, id) = (r.u16()?, r.u16()?, r.u32()?);
            if command > 2 {
                return Err(ErrorCode::OfpmmfcBadCommand);
            }
            if !r.is_empty() {
                // Bands have no value here yet.
                return Ok(Err(head));
            }
            Body::MeterMod(Box::new(MeterMod {
                command,
                flags,
                id,
                bands: Vec::new(),
            }))
        }
        _ => return Ok(Err(head)),
    }))
}

pub(super) fn encode(e: &mut Encoder<'_>, body: &Body) -> bool {
    let of13 = e.version == Version::V13;
    let dialect = e.dialect;
    match body {
        Body::BundleControl(b) => {
            let kind = if of13 {
                Kind::OnftBundleControl
            } else {
                Kind::OfptBundleControl
            };
            e.message(kind, |out| {
                out.u32(b.id);
                out.u16(b.kind);
                out.u16(b.flags);
            });
        }
        Body::BundleAdd { id, flags, message } => {
            let kind = if of13 {
                Kind::OnftBundleAddMessage
            } else {
                Kind::OfptBundleAddMessage
            };
            e.message(kind, |out| {
                out.u32(*id);
                out.zeros(2);
                out.u16(*flags);
                out.extend_from_slice(&message.encode(dialect));
            });
        }
        Body::Unsupported { bytes, .. } => e.out.extend_from_slice(bytes),
        _ => return false,
    }
    true
}
