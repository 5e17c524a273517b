//! The kernel's monotonic clock, as messages of the kernel tell times.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time since an unspecified start, the same for all processes (`CLOCK_MONOTONIC`).
pub fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

/// Time since 1970-01-01 00:00 UTC (`CLOCK_REALTIME`), as the kernel stamps packets.
pub fn wall() -> Duration {
    let now = clock_gettime(ClockId::Realtime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}
