//! What control commands have set up, kept for the next child of a monitor.
//!
//! A daemon that crashes is started again with the command line that it had; databases and
//! remotes that were added or removed since would be forgotten.  They are kept in memory that outlives
//! the child, in two copies of which the older one is written, so that a crash in the middle
//! leaves the other.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Bytes of a number.
const NUMBER: usize = size_of::<u64>();

/// Which databases and remotes there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setup {
    /// Files of databases.
    pub(crate) files: Vec<PathBuf>,
    /// How each is served, as a configuration file says it.
    pub(crate) configs: Vec<String>,
    /// Remotes as `--remote` takes them.
    pub(crate) remotes: Vec<String>,
    /// The active server, if there is one, and the tables that backups leave alone.
    pub(crate) sync: [Option<String>; 2],
    /// Whether databases follow the active server.
    pub(crate) is_backup: bool,
}

/// Where it is kept.
#[derive(Debug)]
pub(crate) struct Kept {
    copies: [File; 2],
}

/// Writes a list: how many there are, and each with its length.
fn put_list<'a>(out: &mut Vec<u8>, list: impl ExactSizeIterator<Item = &'a [u8]>) {
    out.extend((list.len() as u64).to_ne_bytes());
    for item in list {
        out.extend((item.len() as u64).to_ne_bytes());
        out.extend(item);
    }
}

fn take_number(from: &mut &[u8]) -> Option<u64> {
    let (number, rest) = from.split_first_chunk::<NUMBER>()?;
    *from = rest;
    Some(u64::from_ne_bytes(*number))
}

fn take_list(from: &mut &[u8]) -> Option<Vec<Vec<u8>>> {
    let count = take_number(from)?;
    let mut list = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(take_number(from)?).ok()?;
        let (item, rest) = from.split_at_checked(length)?;
        *from = rest;
        list.push(item.to_vec());
    }
    Some(list)
}

impl Setup {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let files = self.files.iter().map(|file| file.as_os_str().as_bytes());
        put_list(&mut bytes, files);
        put_list(&mut bytes, self.configs.iter().map(String::as_bytes));
        put_list(&mut bytes, self.remotes.iter().map(String::as_bytes));
        for text in &self.sync {
            put_list(&mut bytes, text.as_slice().iter().map(String::as_bytes));
        }
        bytes.push(u8::from(self.is_backup));
        bytes
    }

    fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let files = take_list(&mut bytes)?;
        let texts = |bytes: &mut &[u8]| -> Option<Vec<String>> {
            let list = take_list(bytes)?.into_iter().map(String::from_utf8);
            list.collect::<Result<_, _>>().ok()
        };
        let (configs, remotes) = (texts(&mut bytes)?, texts(&mut bytes)?);
        let sync = [texts(&mut bytes)?.pop(), texts(&mut bytes)?.pop()];
        Some(Self {
            files: files.iter().map(|f| OsStr::from_bytes(f).into()).collect(),
            configs,
            remotes,
            sync,
            is_backup: bytes == [1],
        })
    }
}

impl Kept {
    /// Made before the monitor starts its first child.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let copy = || rustix::fs::memfd_create("ovsdb-server", flags).map(File::from);
        Ok(Self {
            copies: [copy()?, copy()?],
        })
    }

    /// The number of a copy, which counts up from 1; 0 for one that was never completed.
    fn number(copy: &File) -> u64 {
        let mut number = [0; NUMBER];
        match copy.read_exact_at(&mut number, 0) {
            Ok(()) => u64::from_ne_bytes(number),
            Err(_) => 0,
        }
    }

    /// Keeps `setup`.
    pub(crate) fn store(&self, setup: &Setup) -> io::Result<()> {
        let numbers = self.copies.each_ref().map(Self::number);
        let older = &self.copies[usize::from(numbers[0] > numbers[1])];
        let (bytes, next) = (setup.to_bytes(), numbers[0].max(numbers[1]) + 1);
        older.write_all_at(&0u64.to_ne_bytes(), 0)?;
        older.write_all_at(&bytes, NUMBER as u64)?;
        older.set_len((NUMBER + bytes.len()) as u64)?;
        // It counts from here on.
        older.write_all_at(&next.to_ne_bytes(), 0)
    }

    /// What was kept last, if anything was.
    pub(crate) fn load(&self) -> Option<Setup> {
        let newer = self.copies.iter().max_by_key(|copy| Self::number(copy))?;
        if Self::number(newer) == 0 {
            return None;
        }
        let length = usize::try_from(newer.metadata().ok()?.len()).ok()?;
        let mut bytes = vec![0; length.checked_sub(NUMBER)?];
        newer.read_exact_at(&mut bytes, NUMBER as u64).ok()?;
        Setup::from_bytes(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(name: &str) -> Setup {
        Setup {
            files: vec![name.into(), OsStr::from_bytes(b"odd \xff\0name").into()],
            configs: vec!["{}".to_owned(), name.to_owned()],
            remotes: vec![format!("punix:{name}"), String::new()],
            sync: [Some(format!("unix:{name}")), None],
            is_backup: name.len() == 3,
        }
    }

    #[test]
    fn the_last_is_found_again() {
        let kept = Kept::new().unwrap();
        assert_eq!(kept.load(), None);
        for name in ["one", "a longer name", "x", ""] {
            kept.store(&setup(name)).unwrap();
            assert_eq!(kept.load(), Some(setup(name)));
        }
        kept.store(&Setup::default()).unwrap();
        assert_eq!(kept.load(), Some(Setup::default()));
    }

    #[test]
    fn a_crash_while_it_is_written_leaves_what_was_there() {
        let kept = Kept::new().unwrap();
        for name in ["one", "two", "three"] {
            kept.store(&setup(name)).unwrap();
            let numbers = kept.copies.each_ref().map(Kept::number);
            let older = &kept.copies[usize::from(numbers[0] > numbers[1])];
            older.write_all_at(&0u64.to_ne_bytes(), 0).unwrap();
            older.write_all_at(b"half of it", NUMBER as u64).unwrap();
            assert_eq!(kept.load(), Some(setup(name)));
        }
    }
}
