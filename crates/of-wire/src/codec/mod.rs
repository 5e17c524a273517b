//! Messages on the wire.  One file per group of messages; all sizes and numbers of kinds
//! are in [`kind`].

mod bundle;
mod config;
mod conntrack;
mod flow;
mod flow_removed;
mod group;
mod hello;
mod kind;
mod oxs;
mod packet;
mod port;
mod table;
mod table_config;

pub use kind::Kind;
use kind::{Class, ROWS, Row};

use crate::error::{ErrorCode, NX_VENDOR, ONF_VENDOR};
use crate::message::{Body, Message, PacketInFormat};
use crate::version::Version;
use crate::wire::{OrCode, Put, Reader};
use net_flow::Formats;

/// Bytes of the header that all messages begin with.
pub const HEADER_LEN: usize = 8;

/// Bytes of message that fit the length in its header.
const MAX_LEN: usize = 0xffff;

/// How messages that have several forms are written and read on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The flow format, a single one.
    pub format: Formats,
    /// The form of packet-ins.
    pub packet_in: PacketInFormat,
}

impl Dialect {
    /// What a connection begins with: the version's own forms.
    pub const fn of(version: Version) -> Self {
        let format = match version {
            Version::V10 => Formats::OF10_STD,
            Version::V11 => Formats::OF11_STD,
            Version::V12 => Formats::OF12_OXM,
            Version::V13 => Formats::OF13_OXM,
            Version::V14 => Formats::OF14_OXM,
            Version::V15 => Formats::OF15_OXM,
        };
        Self {
            format,
            packet_in: PacketInFormat::Standard,
        }
    }

    /// The version that the flow format belongs to.
    pub fn version(self) -> Version {
        let of = |v: &Version| crate::version::formats_of(*v).intersects(self.format);
        Version::ALL.into_iter().find(of).unwrap_or(Version::V10)
    }

    /// Whether flows have Nicira's match.
    pub const fn is_nxm(self) -> bool {
        self.format.intersects(Formats::OF10_NXM_ANY)
    }

    /// Whether flow-mods of OpenFlow 1.0 carry a table id.
    pub const fn has_table_id(self) -> bool {
        let with = Formats::OF10_STD_TID.union(Formats::OF10_NXM_TID);
        self.format.intersects(with)
    }
}

/// A message without its headers.
pub(crate) struct Head<'a> {
    pub(crate) kind: Kind,
    pub(crate) version: Version,
    pub(crate) xid: u32,
    /// Further parts of a multipart message follow.
    pub(crate) more: bool,
    pub(crate) body: Reader<'a>,
    pub(crate) bytes: &'a [u8],
}

/// The length that a message's header claims, if the header is there.
pub fn claimed_len(bytes: &[u8]) -> Option<usize> {
    let len = bytes.get(2..4)?;
    Some(usize::from(u16::from_be_bytes([len[0], len[1]])))
}

/// Whether all of a hello was understood.
pub(crate) fn hello_is_clear(bytes: &[u8]) -> bool {
    let mut r = Reader::new(bytes);
    r.skip(HEADER_LEN).is_ok() && hello::decode(bytes[0], r).1
}

/// The kind of a whole message.
pub fn kind_of(bytes: &[u8]) -> Result<Kind, ErrorCode> {
    pull_checked(bytes).map(|(_, row)| row.kind)
}

/// The kind of a message of which only the beginning need be there; its length is taken on trust.
pub(crate) fn kind_of_beginning(bytes: &[u8]) -> Result<Kind, ErrorCode> {
    pull_numbers(bytes)?.row().map(|row| row.kind)
}

/// What a header says beside the kind.
pub(crate) struct HeadInfo {
    pub(crate) kind: Kind,
    /// The flags of a multipart message.
    pub(crate) flags: Option<u16>,
    pub(crate) reply: bool,
}

/// Reads a header.
pub(crate) fn pull_info(bytes: &[u8]) -> Result<HeadInfo, ErrorCode> {
    let (n, row) = pull_checked(bytes)?;
    Ok(HeadInfo {
        kind: row.kind,
        flags: (n.class != Class::Message).then_some(n.flags),
        reply: n.class == Class::Reply,
    })
}

struct Numbers<'a> {
    version: u8,
    ty: u8,
    xid: u32,
    class: Class,
    vendor: u32,
    number: u32,
    flags: u16,
    body: Reader<'a>,
}

impl Numbers<'_> {
    fn row(&self) -> Result<&'static Row, ErrorCode> {
        let fits = |r: &&Row| {
            r.number == self.number
                && r.class == self.class
                && r.vendor == self.vendor
                && (r.first..=r.last).contains(&self.version)
        };
        if let Some(row) = ROWS.iter().find(fits) {
            return Ok(row);
        }
        let mut what = format!("version {}, type {}", self.version, self.ty);
        if self.class != Class::Message {
            let stat = if self.vendor == 0 {
                self.number
            } else {
                0xffff
            };
            what += &format!(", stat {stat}");
        }
        if self.vendor != 0 {
            what += &format!(", vendor {:#x}, subtype {}", self.vendor, self.number);
        }
        base::log_limited!(
            Warn,
            "ofp_msgs",
            (1, 5),
            "unknown OpenFlow message ({what})"
        );
        Err(match (self.vendor, self.class) {
            (0, Class::Message) => ErrorCode::OfpbrcBadType,
            (0, _) => ErrorCode::OfpbrcBadStat,
            _ => ErrorCode::OfpbrcBadSubtype,
        })
    }
}

fn pull_numbers(bytes: &[u8]) -> Result<Numbers<'_>, ErrorCode> {
    let bad = ErrorCode::OfpbrcBadLen;
    let mut r = Reader::new(bytes);
    let (version, ty, len) = (r.u8()?, r.u8()?, r.u16()?);
    let xid = r.u32()?;
    if usize::from(len) != bytes.len() {
        return Err(bad);
    }
    let mut n = Numbers {
        version,
        ty,
        xid,
        class: Class::Message,
        vendor: 0,
        number: u32::from(ty),
        flags: 0,
        body: r,
    };
    let of10 = version == 1;
    match (of10, n.ty) {
        (_, 4) => n.vendor_message()?,
        (true, 16) | (false, 18) => n.multipart(Class::Request, of10)?,
        (true, 17) | (false, 19) => n.multipart(Class::Reply, of10)?,
        _ => {}
    }
    Ok(n)
}

impl Numbers<'_> {
    fn vendor_message(&mut self) -> Result<(), ErrorCode> {
        self.vendor = self.body.u32()?;
        if self.vendor != NX_VENDOR && self.vendor != ONF_VENDOR {
            log::warn!(target: "ofp_msgs",
                "OpenFlow message has unknown vendor {:#x}", self.vendor);
            return Err(ErrorCode::OfpbrcBadVendor);
        }
        self.number = self.body.u32()?;
        Ok(())
    }

    fn multipart(&mut self, class: Class, of10: bool) -> Result<(), ErrorCode> {
        self.class = class;
        self.number = u32::from(self.body.u16()?);
        self.flags = self.body.u16()?;
        if !of10 {
            self.body.skip(4)?;
        }
        if self.number != 0xffff {
            return Ok(());
        }
        self.vendor = self.body.u32()?;
        if self.vendor != NX_VENDOR && self.vendor != ONF_VENDOR {
            log::warn!(target: "ofp_msgs",
                "OpenFlow message has unknown vendor {:#x}", self.vendor);
            return Err(ErrorCode::OfpbrcBadVendor);
        }
        self.number = self.body.u32()?;
        if of10 {
            self.body.skip(4)?;
        }
        Ok(())
    }
}

/// Reads a header, and checks the body's length.
fn pull_checked(bytes: &[u8]) -> Result<(Numbers<'_>, &'static Row), ErrorCode> {
    let n = pull_numbers(bytes)?;
    let row = n.row()?;
    let extra = n.body.len().checked_sub(row.min);
    let fits = match (extra, row.multiple) {
        (None, _) => false,
        (Some(extra), 0) => extra == 0,
        (Some(extra), multiple) => extra % multiple == 0,
    };
    if !fits {
        let head = bytes.len() - n.body.len() + row.min;
        let must = match row.multiple {
            0 => format!("must be exactly {head} bytes"),
            1 => format!("must be at least {head} bytes"),
            m => format!(
                "must be exactly {head} bytes or longer by an integer multiple of {m} bytes"
            ),
        };
        base::log_limited!(
            Warn,
            "ofp_msgs",
            (1, 5),
            "received {} with incorrect length {} ({must})",
            row.kind,
            bytes.len()
        );
        return Err(ErrorCode::OfpbrcBadLen);
    }
    Ok((n, row))
}

pub(crate) fn pull_head(bytes: &[u8]) -> Result<Head<'_>, ErrorCode> {
    let (n, row) = pull_checked(bytes)?;
    let version = match Version::from_wire(n.version) {
        Some(version) => version,
        // Only the handshake's messages have rows beyond the versions that we know.
        None => Version::V15,
    };
    Ok(Head {
        kind: row.kind,
        version,
        xid: n.xid,
        more: n.flags & 1 != 0,
        body: n.body,
        bytes,
    })
}

impl Message {
    /// Reads a whole message.  `dialect` says whether flow-mods of OpenFlow 1.0 carry a table id.
    /// The error can be sent back as it is.
    pub fn decode(bytes: &[u8], dialect: Dialect) -> Result<Self, ErrorCode> {
        let head = pull_head(bytes)?;
        let (version, xid) = (head.version, head.xid);
        let body = decode_body(head, dialect)?;
        Ok(Self { version, xid, body })
    }

    /// The message's bytes.  A multipart message that is too long for one message becomes
    /// several, one behind the other.
    ///
    /// # Panics
    ///
    /// Never: what a version cannot say is written as near as it can.
    pub fn encode(&self, dialect: Dialect) -> Vec<u8> {
        let mut out = Vec::new();
        encode_body(&mut out, self, dialect);
        out
    }
}

fn decode_body(head: Head<'_>, dialect: Dialect) -> Result<Body, ErrorCode> {
    let head = match config::decode(head)? {
        Ok(body) => return Ok(body),
        Err(head) => head,
    };
    let head = match conntrack::decode(head)? {
        Ok(body) => return Ok(body),
        Err(head) => head,
    };
    let head = match flow::decode(head, dialect)? {
        Ok(body) => return Ok(body),
        Err(head) => head,
    };
    let head = match packet::decode(head)? {
        Ok(body) => return Ok(body),
        Err(head) => head,
    };
    let head = match port::decode(head)? {
        Ok(body) => return Ok(body),
        Err(head) => head,
    };
    let head = match table::decode(head)? {
        Ok(body) => return Ok(body),
        Err(head) => head,
    };
    let head = match table_config::decode(head)? {
        Ok(body) => return Ok(body),
        Err(head) => head,
    };
    let head = match group::decode(head)? {
        Ok(body) => return Ok(body),
        Err(head) => head,
    };
    let head = match bundle::decode(head, dialect)? {
        Ok(body) => return Ok(body),
        Err(head) => head,
    };
    Ok(Body::Unsupported {
        name: head.kind.name(),
        bytes: head.bytes.to_vec(),
    })
}

/// What a file's decoder gives: a body, or the message back if it is not one of its.
pub(crate) type Decoded<'a> = Result<Result<Body, Head<'a>>, ErrorCode>;

fn encode_body(out: &mut Vec<u8>, message: &Message, dialect: Dialect) {
    let mut e = Encoder {
        out,
        version: message.version,
        xid: message.xid,
        dialect,
    };
    let _ = config::encode(&mut e, &message.body)
        || conntrack::encode(&mut e, &message.body)
        || flow::encode(&mut e, &message.body)
        || packet::encode(&mut e, &message.body)
        || port::encode(&mut e, &message.body)
        || table::encode(&mut e, &message.body)
        || table_config::encode(&mut e, &message.body)
        || group::encode(&mut e, &message.body)
        || bundle::encode(&mut e, &message.body);
}

pub(crate) struct Encoder<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) version: Version,
    pub(crate) xid: u32,
    pub(crate) dialect: Dialect,
}

impl Encoder<'_> {
    /// Appends a message of `kind` with what `body` appends; nothing if the version has
    /// no such kind.
    pub(crate) fn message(&mut self, kind: Kind, body: impl FnOnce(&mut Vec<u8>)) {
        let Some(start) = self.begin(kind, false) else {
            return;
        };
        body(self.out);
        self.finish(start);
    }

    /// Appends a multipart message, in several if the entries do not fit one.
    pub(crate) fn parts<T>(
        &mut self,
        kind: Kind,
        more: bool,
        entries: &[T],
        mut put: impl FnMut(&mut Vec<u8>, &T),
    ) {
        let Some(mut start) = self.begin(kind, more) else {
            return;
        };
        let mut body = self.out.len();
        let mut entry = Vec::new();
        for item in entries {
            entry.clear();
            put(&mut entry, item);
            if body - start + entry.len() > MAX_LEN {
                base::log_limited!(
                    Warn,
                    "ofp_msgs",
                    (1, 5),
                    "an entry of a multipart message is too long and was left out"
                );
                continue;
            }
            if self.out.len() - start + entry.len() > MAX_LEN {
                self.set_more(start, true);
                self.finish(start);
                start = self.begin(kind, more).unwrap_or(start);
                body = self.out.len();
            }
            self.out.extend_from_slice(&entry);
        }
        self.finish(start);
    }

    fn begin(&mut self, kind: Kind, more: bool) -> Option<usize> {
        let version = self.version as u8;
        let fits = |r: &&Row| r.kind == kind && (r.first..=r.last).contains(&version);
        let row = ROWS.iter().find(fits)?;
        let start = self.out.len();
        let of10 = version == 1;
        let ty = match row.class {
            Class::Message if row.vendor != 0 => 4,
            Class::Message => row.number as u8,
            Class::Request => {
                if of10 {
                    16
                } else {
                    18
                }
            }
            Class::Reply => {
                if of10 {
                    17
                } else {
                    19
                }
            }
        };
        self.out.u8(version);
        self.out.u8(ty);
        self.out.u16(0);
        self.out.u32(self.xid);
        if row.class != Class::Message {
            self.out.u16(if row.vendor != 0 {
                0xffff
            } else {
                row.number as u16
            });
            self.out.u16(u16::from(more));
            self.out.zeros(if of10 { 0 } else { 4 });
        }
        if row.vendor != 0 {
            self.out.u32(row.vendor);
            self.out.u32(row.number);
            self.out.zeros(if row.class != Class::Message && of10 {
                4
            } else {
                0
            });
        }
        Some(start)
    }

    fn set_more(&mut self, start: usize, more: bool) {
        self.out.set_u16(start + 10, u16::from(more));
    }

    fn finish(&mut self, start: usize) {
        let len = (self.out.len() - start).min(MAX_LEN);
        self.out.truncate(start + len);
        self.out.set_u16(start + 2, len as u16);
    }
}

/// Cuts the messages in `bytes` apart: whole messages, and the bytes that are left.
/// The error is a header that claims less than its own length.
pub fn split(bytes: &[u8]) -> Result<(Vec<&[u8]>, &[u8]), ErrorCode> {
    let mut rest = bytes;
    let mut messages = Vec::new();
    while let Some(len) = claimed_len(rest) {
        if len < HEADER_LEN {
            return Err(ErrorCode::OfpbrcBadLen);
        }
        let Some((message, tail)) = rest.split_at_checked(len) else {
            break;
        };
        messages.push(message);
        rest = tail;
    }
    Ok((messages, rest))
}

/// A reader's rest, as bytes.
pub(crate) fn rest(r: Reader<'_>) -> Vec<u8> {
    r.rest().to_vec()
}

/// Reads Nicira's match: padded to 8 bytes, `len` without padding.
pub(crate) fn pull_nx_match<'a>(r: &mut Reader<'a>, len: usize) -> Result<&'a [u8], ErrorCode> {
    let whole = r
        .take(len.next_multiple_of(8))
        .or_code(ErrorCode::OfpbmcBadLen)?;
    Ok(&whole[..len])
}
