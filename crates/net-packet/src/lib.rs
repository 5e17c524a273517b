//! Packets: buffers with headroom and with what is still to be computed in them,
//! batches, header views, checksums, edits and segmentation.
//!
//! Nothing here trusts a length that a packet claims: views exist only over bytes that
//! are there, and edits of headers that are not there do nothing.
#![forbid(unsafe_code)]

mod addr;
mod buf;
pub mod checksum;
pub mod crc32c;
pub mod edit;
pub mod header;
mod layers;
mod offload;
pub mod segment;

pub use addr::{EthAddr, ParseEthAddrError};
pub use buf::{BATCH, Batch, HEADROOM, Packet, Pool, ROOM};
pub use layers::Layers;
pub use offload::{Checksum, Gso, GsoKind, Offload, VirtioHeader, VirtioHeaderError};
