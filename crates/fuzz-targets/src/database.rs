//! A database file that somebody else wrote.

use std::sync::Arc;

use db_engine::Loader;
use db_engine::log_file::LogReader;
use db_model::{DatabaseSchema, UuidSource};

/// Opens a file and replays its records up to the first damaged one.
///
/// # Panics
/// When the reader claims more good bytes than there are.
pub fn database(file: &[u8]) {
    let mut reader = LogReader::new("fuzz", file);
    let Ok(Some(schema)) = reader.next_record() else {
        return;
    };
    let Ok(schema) = DatabaseSchema::from_json(&schema) else {
        return;
    };
    let mut loader = Loader::new(Arc::new(schema), UuidSource::new([7; 32]));
    while let Ok(Some(record)) = reader.next_record() {
        // A record that does not fit is refused; those before it stay.
        let _ = loader.replay(&record);
    }
    assert!(reader.good_end() <= file.len() as u64);
    let _ = loader.finish();
}
