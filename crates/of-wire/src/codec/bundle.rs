//! Messages in messages: bundles and forwarded requests (OpenFlow 1.4; ONF's extensions for 1.3,
//! Open vSwitch's for earlier versions).  And meters as far as a switch without them must know to
//! refuse them.

use super::kind::Kind;
use super::{Decoded, Dialect, Encoder, Head};
use crate::error::ErrorCode;
use crate::message::{Body, BundleControl, Message, MeterMod};
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
                    | Kind::NxtGroupMod
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
        Kind::OfptRequestforward | Kind::OnftRequestforward | Kind::NxtRequestforward => {
            let claimed = super::claimed_len(r.rest()).ok_or(ErrorCode::OfpbfcMsgBadLen)?;
            if claimed < super::HEADER_LEN || claimed > r.len() {
                return Err(ErrorCode::OfpbfcMsgBadLen);
            }
            let inner = r.take(claimed)?;
            if inner.first() != Some(&(head.version as u8)) {
                return Err(ErrorCode::OfpbrcBadVersion);
            }
            let nested = super::kind_of(inner)?;
            if !matches!(
                nested,
                Kind::OfptGroupMod | Kind::NxtGroupMod | Kind::OfptMeterMod
            ) {
                return Err(ErrorCode::OfpbfcMsgUnsup);
            }
            Body::RequestForward(Box::new(Message::decode(inner, dialect)?))
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
        Body::RequestForward(message) => {
            let kind = match e.version {
                Version::V10 | Version::V11 | Version::V12 => Kind::NxtRequestforward,
                Version::V13 => Kind::OnftRequestforward,
                Version::V14 | Version::V15 => Kind::OfptRequestforward,
            };
            e.message(kind, |out| {
                out.extend_from_slice(&message.encode(dialect));
            });
        }
        Body::Unsupported { bytes, .. } => e.out.extend_from_slice(bytes),
        _ => return false,
    }
    true
}
