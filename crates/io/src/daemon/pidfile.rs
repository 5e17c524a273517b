//! Pidfiles: locked by the process that they name, so that a stale one is told from a live
//! one.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, fcntl_getlk};

/// The pidfile of this process; it goes with the value.
#[derive(Debug)]
pub struct Pidfile {
    path: PathBuf,
    /// Holds the lock.
    file: File,
}

/// The process that holds the lock on `file`.
fn holder(file: &File) -> io::Result<Option<i32>> {
    let probe = Flock::from(FlockType::WriteLock);
    let lock = fcntl_getlk(file, &probe)?;
    Ok(lock
        .and_then(|l| l.pid)
        .map(|pid| pid.as_raw_nonzero().get()))
}

/// The process that the pidfile `path` names, if it is alive.
///
/// # Errors
/// `ESRCH` if the process is gone; `EINVAL` for a file that is no pidfile; those of opening
/// it, which are logged too.
pub fn read(path: &Path) -> io::Result<i32> {
    let warn = |what: &str, error: &io::Error| {
        let text = base::errno_text(error);
        log::warn!(target: "daemon_unix", "{}: {what}: {text}", path.display());
    };
    // Getting at a write lock's holder needs no more than reading, but locking does.
    let mut file = File::open(path).inspect_err(|error| warn("open", error))?;
    let mut text = String::new();
    file.read_to_string(&mut text)
        .inspect_err(|error| warn("read", error))?;
    let pid = text.trim().parse::<i32>().ok().filter(|pid| *pid > 0);
    let own = |pid: i32| u32::try_from(pid) == Ok(std::process::id());
    match (pid, holder(&file)?) {
        (None, _) => {
            log::warn!(target: "daemon_unix", "{}: does not contain a pid", path.display());
            Err(Errno::INVAL.into())
        }
        // A process does not see its own locks.
        (Some(pid), None) if own(pid) => Ok(pid),
        (Some(_), None) => Err(Errno::SRCH.into()),
        (Some(pid), Some(locker)) if pid == locker => Ok(pid),
        (Some(pid), Some(locker)) => {
            log::warn!(target: "daemon_unix",
                "{}: stale pidfile for pid {pid} being deleted by pid {locker}", path.display());
            Err(Errno::SRCH.into())
        }
    }
}

/// The process that holds `path`, if there is one.
pub fn running(path: &Path) -> Option<i32> {
    let file = File::open(path).ok()?;
    holder(&file).ok().flatten()
}

impl Pidfile {
    /// Writes and locks `path`, unless another process holds it.
    ///
    /// # Errors
    /// The text that a daemon ends with.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, String> {
        if !overwrite && let Some(pid) = running(path) {
            return Err(format!(
                "{}: already running as pid {pid}, aborting",
                path.display()
            ));
        }
        Self::write(path).map_err(|(what, error)| {
            let text = base::errno_text(&error);
            format!("{}: {what} failed ({text})", path.display())
        })
    }

    fn write(path: &Path) -> Result<Self, (&'static str, io::Error)> {
        // Written aside and moved into place, so that nobody reads half of it.
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".tmp{}", std::process::id()));
        let aside = PathBuf::from(aside);
        let file = File::create(&aside).map_err(|e| ("create", e))?;
        let fill = || {
            let mode = std::fs::Permissions::from_mode(0o644);
            file.set_permissions(mode).map_err(|e| ("fchmod", e))?;
            fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)
                .map_err(|e| ("fcntl(F_SETLK)", e.into()))?;
            let line = format!("{}\n", std::process::id());
            (&file)
                .write_all(line.as_bytes())
                .map_err(|e| ("write", e))?;
            std::fs::rename(&aside, path).map_err(|e| ("rename", e))
        };
        let filled = fill();
        if filled.is_err() {
            // It was never seen by anybody.
            let _ = std::fs::remove_file(&aside);
        }
        filled.map(|()| Self {
            path: path.to_owned(),
            file,
        })
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        let same =
            |a: &std::fs::Metadata, b: &std::fs::Metadata| a.ino() == b.ino() && a.dev() == b.dev();
        // Another process may have replaced it, with --overwrite-pidfile.
        if let (Ok(ours), Ok(there)) = (self.file.metadata(), std::fs::metadata(&self.path))
            && same(&ours, &there)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
