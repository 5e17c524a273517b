//! What the executables share: which devices and datapaths there are.
#![forbid(unsafe_code)]

pub mod kernel_host;
pub mod providers;

/// The allocator of every executable that names this crate.  Rules, rows and JSON are many
/// small allocations, which it makes in well under half the time of the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long the switch keeps memory that it does not use: changes of large tables free and take a
/// lot, and the system would clear every page in between.
const UNUSED: std::time::Duration = std::time::Duration::from_secs(1);

/// Prepares the process of a switch.  Called before there are other threads.
pub fn prepare_switch() {
    sys::alloc::keep_unused(UNUSED);
}

/// The switch daemon.
pub fn switch(args: &[String]) -> std::process::ExitCode {
    prepare_switch();
    vs_bridge::daemon::run(args, providers::inject)
}
