//! Linux devices: system ports through packet sockets and internal ports as taps, both with
//! virtio-net headers, so that nothing is computed in software that the kernel or a NIC would do.
#![forbid(unsafe_code)]

mod features;
mod link;
mod provider;
mod system;
mod tap;

pub use provider::LinuxProvider;
