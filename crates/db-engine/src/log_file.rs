//! The format of log files.
//!
//! A record is a header line, `OVSDB JSON LENGTH SHA1`, and LENGTH bytes of JSON text that
//! end in a line feed and have that SHA-1 sum.  The first record of a standalone database is the
//! schema.  A clustered database's file has `CLUSTER` in the place of `JSON`, and other records.

use std::io::{self, BufRead, Read};

use db_model::{Error, Result};
use json::{Json, Members, Parser};
use sha1::{Digest, Sha1};

/// The word that standalone databases' records begin with.
pub const STANDALONE: &str = "OVSDB JSON";

/// Longest header line that is read: enough for any length.
const MAX_HEADER: usize = 128;

/// What the records of a clustered database's file begin with.
const CLUSTERED_RECORD: &str = "OVSDB CLUSTER";

/// Memory that is reserved for a record because its header says that it is that long.
const MAX_RESERVED: u64 = 256 << 20;

/// Records of at least so many bytes are read in pieces of as many, and their rows handed out.
pub(crate) const PIECE: usize = 256 << 10;

/// A record as it stands in a standalone database's file.
pub fn frame(json_text: &str) -> Vec<u8> {
    frame_as(STANDALONE, json_text)
}

/// A record as it stands in a clustered database's file.
pub fn frame_clustered(json_text: &str) -> Vec<u8> {
    frame_as(CLUSTERED_RECORD, json_text)
}

fn frame_as(word: &str, json_text: &str) -> Vec<u8> {
    let mut sha = Sha1::new();
    sha.update(json_text.as_bytes());
    sha.update(b"\n");
    let length = json_text.len() + 1;
    let sum = hex(&sha.finalize());
    let mut out = format!("{word} {length} {sum}\n").into_bytes();
    out.extend_from_slice(json_text.as_bytes());
    out.push(b'\n');
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads records off a file.
#[derive(Debug)]
pub struct LogReader<R> {
    name: String,
    input: R,
    offset: u64,
    failed: bool,
    /// What records begin with.
    word: &'static str,
}

impl<R: BufRead> LogReader<R> {
    /// Reads a standalone database from the beginning of `input`; `name` is the file's in errors.
    pub fn new(name: impl Into<String>, input: R) -> Self {
        Self {
            name: name.into(),
            input,
            offset: 0,
            failed: false,
            word: STANDALONE,
        }
    }

    /// Reads a clustered database.
    pub fn clustered(name: impl Into<String>, input: R) -> Self {
        Self {
            word: CLUSTERED_RECORD,
            ..Self::new(name, input)
        }
    }

    /// Where the last good record ends: the file's length after a torn tail was cut.
    pub const fn good_end(&self) -> u64 {
        self.offset
    }

    /// The next record and its text's length; `None` at the end of the file.  After an error
    /// there are no more.
    ///
    /// # Errors
    /// The record is cut short or damaged.
    pub fn next_record(&mut self) -> Result<Option<Json>> {
        if self.failed {
            return Ok(None);
        }
        self.next_record_with(&mut |_, _| Ok(()), usize::MAX)
    }

    /// [`LogReader::next_record`] that hands rows of long records to `take`, with their table's
    /// name, while it reads on: they will be missing from the record.  Long is what has at least
    /// `pieces` bytes.
    ///
    /// # Errors
    /// The record is cut short or damaged, or `take` failed.
    pub(crate) fn next_record_with(
        &mut self,
        take: &mut dyn FnMut(&str, Members) -> Result<()>,
        pieces: usize,
    ) -> Result<Option<Json>> {
        if self.failed {
            return Ok(None);
        }
        let outcome = self.read(take, pieces);
        self.failed = outcome.is_err();
        outcome
    }

    fn read(
        &mut self,
        take: &mut dyn FnMut(&str, Members) -> Result<()>,
        pieces: usize,
    ) -> Result<Option<Json>> {
        let name = &self.name;
        let io_error = |error: &io::Error, what: &str, offset: u64| {
            Error::io(error, format!("{name}: {what} at offset {offset}"))
        };
        let mut header = Vec::new();
        (&mut self.input)
            .take(MAX_HEADER as u64)
            .read_until(b'\n', &mut header)
            .map_err(|e| io_error(&e, "error reading header", self.offset))?;
        if self.offset == 0 {
            let is_clustered = self.word == CLUSTERED_RECORD;
            match word_of(&header, name)? {
                Word::Standalone if !is_clustered => {}
                Word::Clustered if is_clustered => {}
                Word::Standalone => {
                    let details = format!("{name}: cannot identify file type");
                    return Err(Error::general(details));
                }
                Word::Clustered => {
                    return Err(Error::general(format!(
                        "{name}: cannot apply this operation to clustered database file"
                    )));
                }
            }
        }
        if header.is_empty() {
            return Ok(None);
        }
        let Some((length, sum)) = parse_header(&header, self.word) else {
            let line = String::from_utf8_lossy(&header);
            let line = line.trim_end_matches('\n');
            return Err(Error::new(
                "syntax error",
                format!(
                    "{name}: parse error at offset {} in header line \"{line}\"",
                    self.offset
                ),
            ));
        };
        let start = self.offset + header.len() as u64;
        let mut data = Vec::with_capacity(length.min(MAX_RESERVED) as usize);
        (&mut self.input)
            .take(length)
            .read_to_end(&mut data)
            .map_err(|e| io_error(&e, "error reading record", start))?;
        let place = format!("{name}: {length} bytes starting at offset {start}");
        if (data.len() as u64) < length {
            let details =
                format!("{name}: error reading {length} bytes starting at offset {start}");
            let eof = io::Error::other("End of file");
            return Err(Error::io(&eof, details));
        }
        let actual = hex(&Sha1::digest(&data));
        if actual != sum {
            return Err(Error::new(
                "syntax error",
                format!("{place} have SHA-1 hash {actual} but should have hash {sum}"),
            ));
        }
        let malformed = |error: json::ParseError| {
            Error::new(
                "syntax error",
                format!("{place} are not valid JSON ({error})"),
            )
        };
        let json = if data.len() < pieces {
            json::parse(&data).map_err(malformed)?
        } else {
            let mut parser = Parser::new();
            let mut fed = 0;
            for piece in data.chunks(PIECE) {
                fed += parser.feed(piece);
                while let Some((table, rows)) = parser.drain_members() {
                    take(&table, rows)?;
                }
            }
            parser.finish_document(&data[fed..]).map_err(malformed)?
        };
        if json.as_object().is_none() {
            return Err(Error::new(
                "syntax error",
                format!("{place} are not a JSON object"),
            ));
        }
        self.offset = start + length;
        Ok(Some(json))
    }
}

/// What kind of database a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// That of one server alone.
    Standalone,
    /// One server's share of a cluster's.
    Clustered,
}

/// Looks at the first header line of a file, which errors call `name`.
///
/// # Errors
/// The file is empty, cannot be read, or is no database.
pub fn identify(name: &str, input: impl BufRead) -> Result<Word> {
    let mut header = Vec::new();
    input
        .take(MAX_HEADER as u64)
        .read_until(b'\n', &mut header)
        .map_err(|error| Error::io(&error, format!("{name}: read error")))?;
    word_of(&header, name)
}

/// The kind that a file's first header line tells.
fn word_of(header: &[u8], name: &str) -> Result<Word> {
    let unknown = |what: &str| Err(Error::general(format!("{name}: {what}")));
    if header.is_empty() {
        unknown("cannot identify file type")
    } else if parse_header(header, STANDALONE).is_some() {
        Ok(Word::Standalone)
    } else if parse_header(header, CLUSTERED_RECORD).is_some() {
        Ok(Word::Clustered)
    } else if is_header(header) {
        unknown("cannot identify file type")
    } else {
        unknown("unexpected file format")
    }
}

/// Whether it is the header line of a record of any kind.
fn is_header(line: &[u8]) -> bool {
    let line = std::str::from_utf8(line).unwrap_or_default();
    let word = line.strip_prefix("OVSDB ").and_then(|l| l.split_once(' '));
    word.is_some_and(|(word, _)| parse_header(line.as_bytes(), &format!("OVSDB {word}")).is_some())
}

/// Length and sum of a header line that begins with `word`.
fn parse_header(line: &[u8], word: &str) -> Option<(u64, String)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let rest = line.strip_prefix(word)?.strip_prefix(' ')?;
    let (length, sum) = rest.split_once(' ')?;
    let is_sum = sum.len() == 40 && sum.bytes().all(|c| c.is_ascii_hexdigit());
    let length = length.parse().ok().filter(|&l| l > 0 && is_sum)?;
    Some((length, sum.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(bytes: &[u8]) -> (Vec<String>, Option<String>, u64) {
        let mut reader = LogReader::new("db", bytes);
        let mut records = Vec::new();
        let error = loop {
            match reader.next_record() {
                Ok(Some(json)) => records.push(json.to_string()),
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        (records, error, reader.good_end())
    }

    #[test]
    fn records_are_framed_and_read() {
        let text = r#"{"_date":1796071714414,"_comment":"compacted by ovsdb-tool 3.7.1"}"#;
        let framed = frame(text);
        let header = "OVSDB JSON 67 e5db0d278559361206ef509ce33b30937ce92f25\n";
        assert_eq!(framed, format!("{header}{text}\n").into_bytes());
        let (records, error, end) = read_all(&[framed.clone(), framed.clone()].concat());
        assert_eq!((records.len(), error), (2, None));
        assert_eq!(end, 2 * framed.len() as u64);
    }

    #[test]
    fn damage_is_located() {
        let one = frame("{}");
        let good = one.len();
        let cut = [&one[..], &one[..good - 2]].concat();
        let (records, error, end) = read_all(&cut);
        assert_eq!((records.len(), end), (1, good as u64));
        let error = error.expect("cut");
        assert!(
            error.starts_with("I/O error: db: error reading 3 bytes starting at offset"),
            "{error}"
        );
        assert!(error.ends_with("(End of file)"), "{error}");

        let garbage = [&one[..], b"xxx\n"].concat();
        let error = read_all(&garbage).1.expect("garbage");
        assert_eq!(
            error,
            format!("syntax error: db: parse error at offset {good} in header line \"xxx\"")
        );

        let mut flipped = one.clone();
        let last = flipped.len() - 2;
        flipped[last] = b']';
        let error = read_all(&flipped).1.expect("flipped");
        assert!(error.contains("have SHA-1 hash"), "{error}");
    }

    #[test]
    fn a_file_is_identified_by_its_first_line() {
        let sum = "e5db0d278559361206ef509ce33b30937ce92f25";
        for (contents, word) in [
            (format!("OVSDB JSON 67 {sum}\n..."), Ok(Word::Standalone)),
            (format!("OVSDB CLUSTER 67 {sum}\n"), Ok(Word::Clustered)),
            (
                format!("OVSDB XML 67 {sum}\n"),
                Err("cannot identify file type"),
            ),
            (String::new(), Err("cannot identify file type")),
            ("{}\n".to_owned(), Err("unexpected file format")),
            ("OVSDB JSON".to_owned(), Err("unexpected file format")),
            (
                format!("OVSDB JSON 0 {sum}\n"),
                Err("unexpected file format"),
            ),
            (
                format!("OVSDB JSON 67 {sum}"),
                Err("unexpected file format"),
            ),
        ] {
            let identified = identify("db", contents.as_bytes());
            let error = |e: Error| e.to_string();
            let expected = word.map_err(|e| format!("ovsdb error: db: {e}"));
            assert_eq!(identified.map_err(error), expected, "{contents}");
            if let Err(text) = expected {
                assert_eq!(read_all(contents.as_bytes()).1, Some(text));
            }
        }
    }
}
