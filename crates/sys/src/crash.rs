//! What a process leaves behind when it crashes.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::OnceLock;

/// Where the report goes.  A signal handler has no other way to know.
static REPORT: OnceLock<OwnedFd> = OnceLock::new();

const SIGNALS: [(libc::c_int, &[u8]); 5] = [
    (libc::SIGSEGV, b"SIGSEGV detected, backtrace:\n"),
    (libc::SIGBUS, b"SIGBUS detected, backtrace:\n"),
    (libc::SIGILL, b"SIGILL detected, backtrace:\n"),
    (libc::SIGFPE, b"SIGFPE detected, backtrace:\n"),
    (libc::SIGABRT, b"SIGABRT detected, backtrace:\n"),
];

extern "C" fn report(signal: libc::c_int) {
    const FRAMES: libc::c_int = 32;
    let mut frames = [std::ptr::null_mut(); FRAMES as usize];
    let title = SIGNALS
        .iter()
        .find(|s| s.0 == signal)
        .map_or(&[][..], |s| s.1);
    // SAFETY: these functions may be called in signal handlers (`backtrace` once it has been
    // called before, which `install` does), and are given buffers of the lengths that they are
    // told.  The handler was reset when it was entered, so that `raise` ends the process.
    unsafe {
        if let Some(fd) = REPORT.get() {
            let fd = fd.as_raw_fd();
            libc::write(fd, title.as_ptr().cast(), title.len());
            let count = libc::backtrace(frames.as_mut_ptr(), FRAMES);
            libc::backtrace_symbols_fd(frames.as_ptr(), count, fd);
        }
        libc::raise(signal);
    }
}

/// From now on a crash writes a line `SIGNAME detected, backtrace:` and the addresses of the
/// stack to `fd`, before the signal ends the process.  Only the first call counts.
pub fn install(fd: OwnedFd) {
    if REPORT.set(fd).is_err() {
        return;
    }
    let mut frame = [std::ptr::null_mut(); 1];
    // SAFETY: `backtrace` gets a buffer for one frame; a zeroed sigaction is valid, and its
    // handler does only what handlers may do.
    unsafe {
        libc::backtrace(frame.as_mut_ptr(), 1);
        for (signal, _) in SIGNALS {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = report as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESETHAND | libc::SA_NODEFER | libc::SA_ONSTACK;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}
