//! The allocator's dealings with the system.

use std::time::Duration;

use libmimalloc_sys::mi_option_set_default;

/// `mi_option_purge_delay` of `mimalloc.h`, in milliseconds.
const PURGE_DELAY: libc::c_int = 15;

/// Keeps memory that is not used any more for so long before the system has it back.  The allocator's
/// own 10 ms is less than a table's change takes, and each page that comes back has to be cleared.
///
/// An option that the environment has set (`MIMALLOC_PURGE_DELAY`) stands.
pub fn keep_unused(time: Duration) {
    let milliseconds = libc::c_long::try_from(time.as_millis()).unwrap_or(libc::c_long::MAX);
    // SAFETY: this stores a number in the allocator's table of options, at any time and from any
    // thread; the option's number is within the table.
    unsafe { mi_option_set_default(PURGE_DELAY, milliseconds) };
}
