//! Where the log is kept: a file, or a simulation of one that can lose power.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::FlockOperation;

/// What the log's writer does to its file.
pub trait Disk: Send {
    /// Adds bytes to the end.  After an error some of them may be there; `cut` takes them away.
    ///
    /// # Errors
    /// The bytes could not be written, all of them.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Shortens the contents to `length` bytes, for good.
    ///
    /// # Errors
    /// It is not certain what the file ends with.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Makes what was written survive a loss of power.
    ///
    /// # Errors
    /// Those of `fsync`.
    fn sync(&mut self) -> io::Result<()>;

    /// Begins new contents beside the old ones, which stay in use.
    ///
    /// # Errors
    /// There is no place for them.
    fn replacement(&self) -> io::Result<Box<dyn Replacement>>;

    /// Replaces the whole contents at once: after a crash there are the old or the new ones.
    ///
    /// # Errors
    /// The new contents could not be written; the old ones stay.
    fn replace(&mut self, contents: &[u8]) -> io::Result<()>;

    /// Length in bytes.
    fn len(&self) -> u64;

    /// Whether nothing was written.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// New contents of a log that are still being written.  Dropping this gives them up.
pub trait Replacement: Send {
    /// Adds bytes to the end.
    ///
    /// # Errors
    /// Not all of them could be written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes what was written survive a loss of power.
    ///
    /// # Errors
    /// Those of `fsync`.
    fn sync(&mut self) -> io::Result<()>;

    /// Puts the new contents in the place of the old ones: after a crash there are those or
    /// these.  Yields the disk to be used from now on.
    ///
    /// # Errors
    /// The old contents stay in place.
    fn put_in_place(self: Box<Self>) -> io::Result<Box<dyn Disk>>;
}

/// Permissions of a new database file.
const MODE: u32 = 0o640;

/// A file, locked against other servers for as long as this lives.
#[derive(Debug)]
pub struct FileDisk {
    path: PathBuf,
    file: File,
    length: u64,
    /// Whether the file came by its name so recently that a loss of power may bring back the
    /// one that had it before.
    name_is_new: bool,
    lock: Arc<File>,
}

/// The file behind a chain of symbolic links, which need not exist.
fn resolve(path: &Path) -> PathBuf {
    const MAX_LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match std::fs::read_link(&path) {
            Ok(target) => path = path.with_file_name("").join(target),
            Err(_) => break,
        }
    }
    path
}

/// Takes the lock that guards a database file: `.NAME.~lock~` beside it, as the original
/// server does.  `wait` says whether to wait until it is free.
///
/// # Errors
/// The lock is held by another process, or its file cannot be made.
pub fn lock(path: &Path, wait: bool) -> io::Result<File> {
    let path = resolve(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let lock_path = path.with_file_name(format!(".{name}.~lock~"));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(lock_path)?;
    let operation = if wait {
        FlockOperation::LockExclusive
    } else {
        FlockOperation::NonBlockingLockExclusive
    };
    rustix::fs::fcntl_lock(&file, operation)?;
    Ok(file)
}

impl FileDisk {
    /// Opens a file that was read up to `length` and found good so far: what follows is cut.
    ///
    /// # Errors
    /// The file cannot be opened for writing or cut.
    pub fn open(path: &Path, lock: File, length: u64) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        if file.metadata()?.len() > length {
            file.set_len(length)?;
        }
        file.seek(SeekFrom::Start(length))?;
        Ok(Self {
            path: std::fs::canonicalize(path)?,
            file,
            length,
            name_is_new: false,
            lock: Arc::new(lock),
        })
    }

    /// Makes a new file with these contents.
    ///
    /// # Errors
    /// There is such a file already, or it cannot be made.
    pub fn create(path: &Path, contents: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(resolve(path))?;
        file.write_all(contents)?;
        file.sync_all()?;
        sync_directory(path);
        Ok(())
    }
}

/// Makes a file's name survive a loss of power.  Some file systems cannot.
fn sync_directory(path: &Path) {
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty());
    if let Ok(directory) = File::open(directory.unwrap_or(Path::new("."))) {
        let _ = directory.sync_all();
    }
}

/// Writes new contents beside a file and puts them in its place.
///
/// # Errors
/// They cannot be written; the file is as it was.
pub fn replace_file(path: &Path, contents: &[u8]) -> io::Result<File> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let write = || {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(MODE)
            .open(&temporary)?;
        file.write_all(contents)?;
        file.sync_all()?;
        if let Ok(metadata) = std::fs::metadata(path) {
            file.set_permissions(metadata.permissions())?;
        }
        std::fs::rename(&temporary, path)?;
        sync_directory(path);
        Ok(file)
    };
    let outcome = write();
    if outcome.is_err() {
        // The error that counts is the one at hand.
        let _ = std::fs::remove_file(&temporary);
    }
    outcome
}

impl Disk for FileDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length))?;
        self.length = length;
        self.file.sync_data()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if std::mem::take(&mut self.name_is_new) {
            sync_directory(&self.path);
        }
        Ok(())
    }

    fn replacement(&self) -> io::Result<Box<dyn Replacement>> {
        let mut temporary = self.path.as_os_str().to_owned();
        temporary.push(".compact");
        let temporary = PathBuf::from(temporary);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(MODE)
            .open(&temporary)?;
        Ok(Box::new(FileReplacement {
            path: self.path.clone(),
            temporary,
            file: Some(file),
            length: 0,
            lock: Arc::clone(&self.lock),
        }))
    }

    fn replace(&mut self, contents: &[u8]) -> io::Result<()> {
        self.file = replace_file(&self.path, contents)?;
        self.name_is_new = false;
        self.length = contents.len() as u64;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.length
    }
}

/// A file that is to take the place of another.
#[derive(Debug)]
struct FileReplacement {
    path: PathBuf,
    temporary: PathBuf,
    /// The file, until it is in place.
    file: Option<File>,
    length: u64,
    lock: Arc<File>,
}

impl FileReplacement {
    fn file(&mut self) -> io::Result<&mut File> {
        let gone = || io::Error::other("the file is in place");
        self.file.as_mut().ok_or_else(gone)
    }
}

impl Replacement for FileReplacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file()?.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file()?.sync_data()
    }

    fn put_in_place(mut self: Box<Self>) -> io::Result<Box<dyn Disk>> {
        if let Ok(metadata) = std::fs::metadata(&self.path) {
            self.file()?.set_permissions(metadata.permissions())?;
        }
        std::fs::rename(&self.temporary, &self.path)?;
        let gone = || io::Error::other("the file is in place");
        Ok(Box::new(FileDisk {
            path: self.path.clone(),
            file: self.file.take().ok_or_else(gone)?,
            length: self.length,
            name_is_new: true,
            lock: Arc::clone(&self.lock),
        }))
    }
}

impl Drop for FileReplacement {
    fn drop(&mut self) {
        if self.file.is_some() {
            // What is left of it would be overwritten the next time.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// No space left on device.
fn no_space() -> io::Error {
    io::Error::from_raw_os_error(28)
}

/// Input/output error.
fn fault() -> io::Error {
    io::Error::from_raw_os_error(5)
}

#[derive(Debug, Default)]
struct SimState {
    /// What survives a loss of power.
    durable: Vec<u8>,
    /// What was written since.
    volatile: Vec<u8>,
    /// After so many more bytes every write fails, in the middle if need be.
    room: Option<usize>,
    faults: SimFaults,
}

/// What a simulated disk refuses, beside what it has no room for.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimFaults {
    /// To make bytes survive a loss of power; they stay where they are.
    pub sync: bool,
    /// To be cut.
    pub cut: bool,
    /// To be replaced.
    pub replace: bool,
}

/// A disk in memory that can lose power, run full or fail.  Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct SimDisk(Arc<Mutex<SimState>>);

impl SimDisk {
    /// A disk with these contents.
    pub fn new(contents: &[u8]) -> Self {
        let this = Self::default();
        this.state().durable = contents.to_vec();
        this
    }

    fn state(&self) -> std::sync::MutexGuard<'_, SimState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets only `bytes` more be written.
    pub fn set_room(&self, bytes: Option<usize>) {
        self.state().room = bytes;
    }

    /// Says what fails from now on.
    pub fn set_faults(&self, faults: SimFaults) {
        self.state().faults = faults;
    }

    /// The process is killed: all that was written is there.
    pub fn contents(&self) -> Vec<u8> {
        let state = self.state();
        [&state.durable[..], &state.volatile[..]].concat()
    }

    /// Power is lost: of what was not synced, the first `kept` bytes are there.
    pub fn contents_after_power_loss(&self, kept: usize) -> Vec<u8> {
        let state = self.state();
        let kept = kept.min(state.volatile.len());
        [&state.durable[..], &state.volatile[..kept]].concat()
    }
}

impl Disk for SimDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let count = state.room.map_or(bytes.len(), |room| room.min(bytes.len()));
        if let Some(room) = &mut state.room {
            *room -= count;
        }
        state.volatile.extend_from_slice(&bytes[..count]);
        if count < bytes.len() {
            return Err(no_space());
        }
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        let mut state = self.state();
        if state.faults.cut {
            return Err(fault());
        }
        let length = usize::try_from(length).map_err(io::Error::other)?;
        let volatile = std::mem::take(&mut state.volatile);
        state.durable.extend(volatile);
        state.durable.truncate(length);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.state();
        if state.faults.sync {
            return Err(fault());
        }
        let volatile = std::mem::take(&mut state.volatile);
        state.durable.extend(volatile);
        Ok(())
    }

    fn replacement(&self) -> io::Result<Box<dyn Replacement>> {
        Ok(Box::new(SimReplacement {
            disk: self.clone(),
            durable: Vec::new(),
            volatile: Vec::new(),
        }))
    }

    fn replace(&mut self, contents: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if state.room.is_some_and(|room| room < contents.len()) {
            return Err(no_space());
        }
        if state.faults.replace {
            return Err(fault());
        }
        state.durable = contents.to_vec();
        state.volatile.clear();
        Ok(())
    }

    fn len(&self) -> u64 {
        let state = self.state();
        (state.durable.len() + state.volatile.len()) as u64
    }
}

/// New contents for a simulated disk.
#[derive(Debug)]
struct SimReplacement {
    disk: SimDisk,
    durable: Vec<u8>,
    volatile: Vec<u8>,
}

impl Replacement for SimReplacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = self.durable.len() + self.volatile.len() + bytes.len();
        let state = self.disk.state();
        if state.room.is_some_and(|room| room < length) {
            return Err(no_space());
        }
        drop(state);
        self.volatile.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.disk.state().faults.sync {
            return Err(fault());
        }
        self.durable.append(&mut self.volatile);
        Ok(())
    }

    fn put_in_place(self: Box<Self>) -> io::Result<Box<dyn Disk>> {
        let mut state = self.disk.state();
        if state.faults.replace {
            return Err(fault());
        }
        state.durable.clone_from(&self.durable);
        state.volatile.clone_from(&self.volatile);
        drop(state);
        Ok(Box::new(self.disk.clone()))
    }
}
