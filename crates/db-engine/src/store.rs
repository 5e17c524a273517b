//! Opening, creating and reading database files.  `shown` is what errors call the file.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use db_model::{DatabaseSchema, Error, Result, UuidSource};

use crate::database::Database;
use crate::disk::{FileDisk, lock};
use crate::loader::Loader;
use crate::log_file::{self, LogReader, frame};

/// A database that was read off its file.
#[derive(Debug)]
pub struct Stored {
    /// The database.
    pub db: Database,
    /// Where the good part of the file ends.
    pub end: u64,
    /// What is wrong with the rest of the file, if there is a rest.
    pub fault: Option<Error>,
    /// Number of transactions that were read.
    pub transactions: u64,
}

fn open_failed(shown: &str, error: &std::io::Error) -> Error {
    Error::io(error, format!("{shown}: open failed"))
}

/// A reader of a database file's records.
///
/// # Errors
/// The file cannot be opened.
pub fn records(path: &Path, shown: &str) -> Result<LogReader<BufReader<File>>> {
    let file = File::open(path).map_err(|error| open_failed(shown, &error))?;
    Ok(LogReader::new(
        shown,
        BufReader::with_capacity(1 << 16, file),
    ))
}

/// The kind of database that a file holds.
///
/// # Errors
/// The file cannot be opened or read, or is no database.
pub fn identify(path: &Path, shown: &str) -> Result<log_file::Word> {
    let file = File::open(path).map_err(|error| open_failed(shown, &error))?;
    log_file::identify(shown, BufReader::new(file))
}

/// A reader of the records of one server's file of a clustered database.
///
/// # Errors
/// The file cannot be opened.
pub fn clustered_records(path: &Path, shown: &str) -> Result<LogReader<BufReader<File>>> {
    let file = File::open(path).map_err(|error| open_failed(shown, &error))?;
    Ok(LogReader::clustered(
        shown,
        BufReader::with_capacity(1 << 16, file),
    ))
}

/// Reads only the schema of a database file.
///
/// # Errors
/// The file cannot be read, or does not begin with a schema.
pub fn read_schema(path: &Path, shown: &str) -> Result<DatabaseSchema> {
    let mut reader = records(path, shown)?;
    schema_of(shown, &mut reader)
}

fn schema_of<R: std::io::BufRead>(
    shown: &str,
    reader: &mut LogReader<R>,
) -> Result<DatabaseSchema> {
    match reader.next_record()? {
        Some(json) => DatabaseSchema::from_json(&json).map_err(|error| {
            Error::general(format!(
                "{shown}: failed to parse \"{shown}\" as ovsdb schema ({error})"
            ))
        }),
        None => Err(Error::io(
            &std::io::Error::other("End of file"),
            format!("{shown}: unexpected end of file reading schema"),
        )),
    }
}

/// Reads a database without locking its file.
///
/// # Errors
/// The file cannot be read, or does not begin with a schema.  Damage after that is reported
/// in [`Stored::fault`].
pub fn read(path: &Path, shown: &str, uuids: UuidSource) -> Result<Stored> {
    let mut reader = records(path, shown)?;
    let schema = Arc::new(schema_of(shown, &mut reader)?);
    let mut loader = Loader::new(schema, uuids);
    let mut end = reader.good_end();
    let mut fault = None;
    let mut transactions = 0;
    loop {
        match loader.replay_next(&mut reader) {
            Ok(None) => break,
            Ok(Some(_)) => {
                end = reader.good_end();
                transactions += 1;
            }
            Err(error) => {
                fault = Some(error);
                break;
            }
        }
    }
    Ok(Stored {
        db: loader.finish()?,
        end,
        fault,
        transactions,
    })
}

/// Whether a database could be written there, as far as can be seen without opening it: what is
/// no regular file might never be done with being opened, and cannot be replaced or cut.
///
/// # Errors
/// There is no file, or something else.
pub fn check_writable(path: &Path, shown: &str) -> Result<()> {
    base::check_regular(path).map_err(|error| open_failed(shown, &error))
}

/// Takes the lock of a file that is to be written.
fn lock_file(path: &Path, shown: &str) -> Result<File> {
    check_writable(path, shown)?;
    lock(path, false)
        .map_err(|error| Error::io(&error, format!("{shown}: failed to lock lockfile")))
}

/// One server's file of a clustered database, locked and to be read.
#[derive(Debug)]
pub struct ClusteredFile {
    path: PathBuf,
    shown: String,
    lock: File,
    /// Its records.
    pub records: LogReader<BufReader<File>>,
}

impl ClusteredFile {
    /// Locks a file.
    ///
    /// # Errors
    /// Another server has it, or it cannot be opened.
    pub fn open(path: &Path, shown: &str) -> Result<Self> {
        let lock = lock_file(path, shown)?;
        Ok(Self {
            path: path.to_owned(),
            shown: shown.to_owned(),
            lock,
            records: clustered_records(path, shown)?,
        })
    }

    /// Goes on to write after the last good record that was read; what follows is cut.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn into_disk(self) -> Result<FileDisk> {
        let end = self.records.good_end();
        FileDisk::open(&self.path, self.lock, end).map_err(|error| open_failed(&self.shown, &error))
    }
}

/// Locks, reads and opens a database file for writing.  A damaged tail is cut.
///
/// # Errors
/// Another server has the file, or it cannot be read or written, or does not begin with a
/// schema.
pub fn open(path: &Path, shown: &str, uuids: UuidSource) -> Result<(Stored, FileDisk)> {
    let lock = lock_file(path, shown)?;
    let stored = read(path, shown, uuids)?;
    let disk =
        FileDisk::open(path, lock, stored.end).map_err(|error| open_failed(shown, &error))?;
    Ok((stored, disk))
}

/// Makes an empty database file.
///
/// # Errors
/// There is a file already, or it cannot be made.
pub fn create(path: &Path, shown: &str, schema: &DatabaseSchema) -> Result<()> {
    let contents = frame(&schema.to_json().to_string());
    FileDisk::create(path, &contents)
        .map_err(|error| Error::io(&error, format!("{shown}: create failed")))
}
