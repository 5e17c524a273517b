//! What the executables share: which devices and datapaths there are.
#![forbid(unsafe_code)]

pub mod providers;
