//! Files and standard input, line by line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use super::{Ctl, Fail, Outcome, fatal};

/// A line after preprocessing, and its number.
pub(super) struct Line {
    pub(super) text: String,
    pub(super) number: usize,
}

/// Cuts off a comment, and tells whether anything is left.
fn preprocess(line: &str) -> Option<String> {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = line.split('#').next().unwrap_or(line);
    let blank = |c: char| " \t\r\n\x0b\x0c".contains(c);
    (!line.trim_matches(blank).is_empty()).then(|| line.to_owned())
}

impl Ctl<'_, '_> {
    /// The bytes of a file, or of standard input for `-`.
    pub(super) fn read_all(&mut self, file: &str) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if file == "-" {
            self.env.stdin.read_to_end(&mut bytes)?;
        } else {
            File::open(file)?.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// Calls `each` with every line of `file` (`-` is standard input) that is not blank,
    /// without comments.
    pub(super) fn each_line(
        &mut self,
        file: &str,
        cannot_open: impl FnOnce(String) -> Fail,
        mut each: impl FnMut(&mut Self, Line) -> Outcome,
    ) -> Outcome {
        // Standard input is read whole first: the environment lends it to one reader only.
        let mut reader: Box<dyn BufRead> = if file == "-" {
            let bytes = self.read_all(file).or_else(|e| fatal(io::error_text(&e)))?;
            Box::new(std::io::Cursor::new(bytes))
        } else {
            match File::open(file) {
                Ok(file) => Box::new(BufReader::new(file)),
                Err(error) => return Err(cannot_open(io::error_text(&error))),
            }
        };
        let mut bytes = Vec::new();
        let mut number = 0;
        loop {
            bytes.clear();
            let read = reader.read_until(b'\n', &mut bytes);
            if read.or_else(|e| fatal(format!("{file}: {}", io::error_text(&e))))? == 0 {
                return Ok(());
            }
            number += 1;
            let text = String::from_utf8_lossy(&bytes);
            if let Some(text) = preprocess(&text) {
                each(self, Line { text, number })?;
            }
        }
    }

    /// All lines of standard input that are not blank, without comments.
    pub(super) fn input_lines(&mut self) -> Outcome<Vec<String>> {
        let mut lines = Vec::new();
        self.each_line("-", Fail::Fatal, |_, line| {
            lines.push(line.text);
            Ok(())
        })?;
        Ok(lines)
    }
}

/// Bytes in hexadecimal, with blanks or dots between; `None` if something else is in them.
pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut digits = text.bytes().filter(|b| !b" .\t\r\n".contains(b));
    while let Some(high) = digits.next() {
        let digit = |b: u8| char::from(b).to_digit(16);
        let low = digits.next()?;
        bytes.push((digit(high)? << 4 | digit(low)?) as u8);
    }
    Some(bytes)
}
