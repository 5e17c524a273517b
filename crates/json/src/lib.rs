//! JSON text as OVSDB needs it: a value whose objects are kept sorted by key, an
//! incremental parser that takes its input in pieces and frames documents, and a writer.
//!
//! Numbers: whatever is mathematically a whole number that fits 64 bits (`1.0`, `1e3`)
//! becomes an integer; all other numbers are reals, printed with 15 significant digits.
#![forbid(unsafe_code)]

mod error;
mod number;
mod parse;
mod value;
mod write;

pub use error::ParseError;
pub use number::real_to_string;
pub use parse::{MAX_DEPTH, Members, Parser, parse, unescape};
pub use value::{Json, Object};
pub use write::{write_quoted, write_real};
