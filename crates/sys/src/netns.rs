//! Network namespaces.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::check;

/// A network namespace, which lives at least as long as this handle.
#[derive(Debug)]
pub struct NetNs {
    fd: OwnedFd,
}

impl NetNs {
    /// Makes a new, nameless namespace.
    ///
    /// # Errors
    /// As the kernel gives them: without `CAP_SYS_ADMIN`.
    pub fn create() -> io::Result<Self> {
        // Namespaces belong to threads: one is made for this and gone afterwards.
        let made = thread::spawn(|| {
            // SAFETY: a system call without pointers, which affects this thread alone.
            check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
            Self::current()
        });
        made.join()
            .unwrap_or_else(|_| Err(io::Error::other("thread panicked")))
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// If `/proc` is not there.
    pub fn current() -> io::Result<Self> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// The namespace that `path` stands for: `/proc/PID/ns/net` or `/run/netns/NAME`.
    ///
    /// # Errors
    /// As opening a file gives them.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = OwnedFd::from(File::open(path)?);
        Ok(Self { fd })
    }

    /// Runs `f` on a thread of its own inside the namespace.  Sockets that it opens stay in the namespace wherever
    /// they are used later.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    ///
    /// # Panics
    /// If `f` does.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.enter()?;
                Ok(f())
            });
            match inside.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Moves the calling thread into the namespace for good.
    ///
    /// # Errors
    /// As the kernel gives them: without `CAP_SYS_ADMIN`.
    pub fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.fd.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
