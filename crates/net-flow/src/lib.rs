//! Flow keys, masks and matches, and the one registry that says where each field lies.
//!
//! A [`FlowKey`] is an array of 64-bit words with a bitmap of the words in use; a
//! [`FlowMask`] has the same shape.  A [`Slot`] is a run of bits in that array.  The
//! registry ([`Field`], [`FieldInfo`]) gives every OpenFlow field its slot, names, OXM
//! code points, prerequisites and format, so that extraction, masks, OXM, text and
//! netlink cannot disagree.
#![forbid(unsafe_code)]

mod apply;
pub mod compose;
pub mod connection;
pub mod extract;
pub mod field;
pub mod formats;
pub mod key;
pub mod matching;
pub mod mini;
pub mod names;
mod oxm_names;
pub mod packet;
pub mod port;
mod registry;
pub mod slot;
mod subfield;
pub mod text;
pub mod types;

pub use connection::{CtMatch, CtTuple};
pub use extract::{extract, metadata};
pub use field::{Access, Field, FieldInfo, Format, OxmId, Prereq};
pub use formats::Formats;
pub use key::{FlowKey, FlowMask, KEY_WORDS, Tracked, bits};
pub use matching::Match;
pub use mini::MiniKey;
pub use names::Names;
pub use port::PortNo;
pub use slot::Slot;
pub use subfield::Subfield;
