//! Signals as something to be read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::Signal;

use crate::check;

/// Takes signals away from this thread, and from threads that it starts later, and makes them
/// readable.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

impl SignalFd {
    /// Takes `signals` over.
    ///
    /// # Errors
    /// Those of `signalfd`.
    pub fn new(signals: &[Signal]) -> io::Result<Self> {
        // SAFETY: a zeroed set is a valid argument of sigemptyset, which makes it a set; the
        // other calls only read it.
        let fd = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in signals {
                libc::sigaddset(&raw mut set, signal.as_raw());
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            let flags = libc::SFD_NONBLOCK | libc::SFD_CLOEXEC;
            libc::signalfd(-1, &raw const set, flags)
        };
        let fd = check(fd)?;
        // SAFETY: the descriptor is new and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next signal that has come.
    pub fn next(&self) -> Option<Signal> {
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        let count = rustix::io::read(&self.0, &mut info).ok()?;
        if count < info.len() {
            return None;
        }
        // The signal's number comes first.
        let number = i32::from_ne_bytes(info[..4].try_into().ok()?);
        Signal::from_named_raw(number)
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
