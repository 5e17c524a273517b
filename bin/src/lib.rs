//! What the executables share: which devices and datapaths there are.
#![forbid(unsafe_code)]

pub mod kernel_host;
pub mod providers;

/// The allocator of every executable that names this crate.  Rules, rows and JSON are many
/// small allocations, which it makes in well under half the time of the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
