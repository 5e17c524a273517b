//! Bundles: messages that are kept until they are carried out together (OpenFlow 1.4).

use std::collections::BTreeMap;
use std::time::Duration;

use base::Instant;
use of_wire::ErrorCode;
use of_wire::message::BundleControl;

use crate::bridge::Request;

/// A bundle that nobody touches for so long is dropped, unless another time is set.
pub(crate) const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Bundles of one connection at a time.
const MAX_BUNDLES: usize = 64;
/// Bytes of messages in all bundles of one connection.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Kinds of bundle control messages: requests; a reply is one more.
const OPEN: u16 = 0;
const CLOSE: u16 = 2;
const COMMIT: u16 = 4;
const DISCARD: u16 = 6;

#[derive(Debug)]
struct Bundle {
    flags: u16,
    is_closed: bool,
    opened_by: Request,
    used: Instant,
    messages: Vec<Vec<u8>>,
    bytes: usize,
}

/// What a bundle control message asks for, once it is in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// Done: only an answer is due.
    Done,
    /// These messages are to be carried out.
    Commit {
        /// The bundle's flags.
        flags: u16,
        /// The messages.
        messages: Vec<Vec<u8>>,
    },
}

/// The bundles of one connection.
#[derive(Debug, Default)]
pub(crate) struct Bundles {
    open: BTreeMap<u32, Bundle>,
}

impl Bundles {
    /// Opens, closes, discards or takes out a bundle.  A bundle that is misused is dropped.
    pub(crate) fn control(
        &mut self,
        control: BundleControl,
        request: Request,
        now: Instant,
    ) -> Result<Control, ErrorCode> {
        if control.kind == OPEN {
            if self.open.remove(&control.id).is_some() {
                return Err(ErrorCode::OfpbfcBadId);
            }
            self.begin(control.id, control.flags, request, now)?;
            return Ok(Control::Done);
        }
        if !matches!(control.kind, CLOSE | COMMIT | DISCARD) {
            return Err(ErrorCode::OfpbfcBadType);
        }
        let found = self.open.remove(&control.id);
        let mut bundle = found.ok_or(ErrorCode::OfpbfcBadId)?;
        if control.kind == DISCARD {
            return Ok(Control::Done);
        }
        if control.kind == CLOSE && bundle.is_closed {
            return Err(ErrorCode::OfpbfcBundleClosed);
        }
        if bundle.flags != control.flags {
            return Err(ErrorCode::OfpbfcBadFlags);
        }
        if control.kind == COMMIT {
            return Ok(Control::Commit {
                flags: bundle.flags,
                messages: bundle.messages,
            });
        }
        bundle.is_closed = true;
        bundle.used = now;
        self.open.insert(control.id, bundle);
        Ok(Control::Done)
    }

    fn begin(
        &mut self,
        id: u32,
        flags: u16,
        request: Request,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        if self.open.len() >= MAX_BUNDLES {
            return Err(ErrorCode::OfpbfcOutOfBundles);
        }
        let bundle = Bundle {
            flags,
            is_closed: false,
            opened_by: request,
            used: now,
            messages: Vec::new(),
            bytes: 0,
        };
        self.open.insert(id, bundle);
        Ok(())
    }

    /// Adds a message to a bundle, which is opened if there is none.
    pub(crate) fn add(
        &mut self,
        id: u32,
        flags: u16,
        message: &[u8],
        request: Request,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let bytes: usize = self.open.values().map(|b| b.bytes).sum();
        if !self.open.contains_key(&id) {
            self.begin(id, flags, request, now)?;
        }
        let bundle = self.open.get_mut(&id).ok_or(ErrorCode::OfpbfcBadId)?;
        let fault = if bundle.is_closed {
            Some(ErrorCode::OfpbfcBundleClosed)
        } else if bundle.flags != flags {
            Some(ErrorCode::OfpbfcBadFlags)
        } else if bytes + message.len() > MAX_BYTES {
            Some(ErrorCode::OfpbfcMsgTooMany)
        } else {
            None
        };
        if let Some(code) = fault {
            self.open.remove(&id);
            return Err(code);
        }
        bundle.used = now;
        bundle.bytes += message.len();
        bundle.messages.push(message.to_vec());
        Ok(())
    }

    /// When the next bundle is dropped because nobody touched it for `timeout`.
    pub(crate) fn next_deadline(&self, timeout: Duration) -> Instant {
        let deadlines = self.open.values().map(|b| b.used + timeout);
        deadlines.min().unwrap_or(Instant::MAX)
    }

    /// Drops bundles that nobody touched for `timeout`: the requests that opened them.
    pub(crate) fn expire(&mut self, timeout: Duration, now: Instant) -> Vec<Request> {
        let idle = self.open.iter().filter(|(_, b)| b.used + timeout <= now);
        let ids: Vec<u32> = idle.map(|(id, _)| *id).collect();
        let dropped = ids.iter().filter_map(|id| self.open.remove(id));
        dropped.map(|bundle| bundle.opened_by).collect()
    }
}
