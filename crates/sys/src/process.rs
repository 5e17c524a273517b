//! Processes: forks, and ends by signal.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::check;

/// Which side of a fork this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The process that forked, and its child.
    Parent(Pid),
    /// The new process.
    Child,
}

/// Forks the process.
///
/// # Errors
/// Those of `fork`, and `EBUSY` if the process has several threads: the child would be left
/// with locks that nobody releases.
pub fn fork() -> io::Result<Fork> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    // SAFETY: there is no other thread, so that the child's memory is as consistent as ours.
    let pid = check(unsafe { libc::fork() })?;
    Ok(match Pid::from_raw(pid) {
        Some(child) => Fork::Parent(child),
        None => Fork::Child,
    })
}

/// Processor time that the process has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// In the program.
    pub user: Duration,
    /// In the kernel on its behalf.
    pub system: Duration,
}

impl Usage {
    /// What was used so far; zero if the system does not say.
    pub fn now() -> Self {
        // SAFETY: a zeroed rusage is a valid value, and the call only writes to it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            if libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) != 0 {
                return Self::default();
            }
            usage
        };
        let time = |t: libc::timeval| {
            Duration::from_secs(t.tv_sec.unsigned_abs())
                + Duration::from_micros(t.tv_usec.unsigned_abs())
        };
        Self {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
        }
    }
}

/// Ends the process by `signal`, as if nobody had handled it.
pub fn die_by(signal: Signal) -> ! {
    let number = signal.as_raw();
    // SAFETY: the calls only change how this process takes `number`; a set that is zeroed is
    // a valid argument of sigemptyset.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, number);
        libc::signal(number, libc::SIG_DFL);
        libc::raise(number);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
    // Only a signal that does not end processes leads here.
    std::process::exit(128 + number)
}
