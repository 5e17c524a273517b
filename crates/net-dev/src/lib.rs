//! Devices that packets come from and go to: the seam, and those that need no system.
//!
//! A [`Provider`] opens [`Device`]s by name and kind.  A device's sending half is shared by all
//! threads; its receiving half, a [`Receiver`], belongs to one.
#![forbid(unsafe_code)]

pub mod device;
pub mod dummy;
pub mod pair;
pub mod pcap;
mod provider;

pub use device::{Device, DeviceState, DeviceStats, Features, Modes, Receiver, Sent, TxOffloads};
pub use dummy::{DummyDevice, DummyLevel, DummyProvider};
pub use pair::MemoryDevice;
pub use provider::{Provider, Providers};
