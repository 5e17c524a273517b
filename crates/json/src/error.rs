//! What the parser says about text that is not JSON.

use std::fmt;

/// A syntax error with its place in the document.
///
/// `Display` is the text that the database's programs print and log:
/// `line 0, column 4, byte 4: MESSAGE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line, counted from 0.
    pub line: usize,
    /// Byte within the line, counted from 0.
    pub column: usize,
    /// Byte within the document, counted from 0.
    pub byte: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}, byte {}: {}",
            self.line, self.column, self.byte, self.message
        )
    }
}

impl std::error::Error for ParseError {}
