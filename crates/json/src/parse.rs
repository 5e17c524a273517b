//! The incremental parser.
//!
//! Input arrives in pieces of any size.  A token that lies whole inside one piece is taken
//! from it without a copy; only a token that a piece's end cuts is gathered in a buffer.

use std::sync::Arc;

use crate::number::parse_number;
use crate::{Json, Object, ParseError};

/// Deepest nesting of arrays and objects that is accepted.
pub const MAX_DEPTH: usize = 1000;

/// Strings up to this length are looked up in the cache of recent ones.
const CACHED_LENGTH: usize = 24;
const CACHE_SLOTS: usize = 256;

/// Parses one whole document, which must be an object or an array; white space may surround it.
pub fn parse(text: &[u8]) -> Result<Json, ParseError> {
    let mut parser = Parser::new();
    let used = parser.feed(text);
    parser.finish_document(&text[used..])
}

/// Members of an object, with their names.
pub type Members = Vec<(Arc<str>, Json)>;

/// What may come next, grammatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Start,
    ValueOrClose,
    Value,
    CommaOrClose,
    NameOrClose,
    Name,
    Colon,
    End,
}

/// The kind of token that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    None,
    Keyword,
    Number,
    /// Within a string; `true` after a backslash.
    String(bool),
}

#[derive(Debug)]
enum Container {
    Array(Vec<Json>),
    Object(Members, Option<Arc<str>>),
}

/// A parser of one document that is fed in pieces.
///
/// Feed until [`Parser::is_done`]; what [`Parser::feed`] did not use belongs to the next
/// document of the stream.
#[derive(Debug)]
pub struct Parser {
    expect: Expect,
    token: Token,
    /// Beginning of a token that the end of a piece cut.
    partial: Vec<u8>,
    stack: Vec<Container>,
    outcome: Option<Result<Json, ParseError>>,
    line: usize,
    /// Bytes of the document before the current line.
    line_start: usize,
    /// Bytes of the document consumed by earlier calls.
    consumed: usize,
    recent: Vec<Option<Arc<str>>>,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// A parser at the beginning of a document.
    pub fn new() -> Self {
        Self {
            expect: Expect::Start,
            token: Token::None,
            partial: Vec::new(),
            stack: Vec::new(),
            outcome: None,
            line: 0,
            line_start: 0,
            consumed: 0,
            recent: Vec::new(),
        }
    }

    /// Forgets all but the buffers and begins a new document.
    pub fn reset(&mut self) {
        let recent = std::mem::take(&mut self.recent);
        *self = Self::new();
        self.recent = recent;
    }

    /// Whether the document has ended, well or badly.
    pub fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    /// Whether nothing but white space was fed.
    pub fn is_empty(&self) -> bool {
        self.expect == Expect::Start && self.token == Token::None && self.outcome.is_none()
    }

    /// Takes the document's next bytes and returns how many of them it used: all, unless
    /// the document ended before.
    pub fn feed(&mut self, input: &[u8]) -> usize {
        let mut at = 0;
        while at < input.len() && self.outcome.is_none() {
            let step = match self.token {
                Token::None => self.between_tokens(input, &mut at),
                Token::Keyword => self.in_run(input, &mut at, is_keyword, Self::keyword),
                Token::Number => self.in_run(input, &mut at, is_number, Self::number),
                Token::String(escaped) => self.in_string(input, &mut at, escaped),
            };
            if let Err(message) = step {
                self.fail(at, message);
            }
        }
        self.consumed += at;
        at
    }

    /// Takes the members that are whole of the object that is being read as a member of the
    /// outermost object, with that member's name: they will be missing from the value in the
    /// end.  So a document of the form `{"a":{"b":...,"c":...},...}` can be dealt with while it
    /// comes, however long it is.
    pub fn drain_members(&mut self) -> Option<(Arc<str>, Members)> {
        let [
            Container::Object(_, Some(name)),
            Container::Object(members, _),
            ..,
        ] = self.stack.as_mut_slice()
        else {
            return None;
        };
        if members.is_empty() {
            return None;
        }
        Some((Arc::clone(name), std::mem::take(members)))
    }

    /// The value, or what is wrong with the document (its end being missing, for one).
    pub fn finish(mut self) -> Result<Json, ParseError> {
        self.take()
    }

    /// [`Parser::finish`] where nothing but white space may follow the document: `rest` is what
    /// [`Parser::feed`] did not use.
    pub fn finish_document(mut self, rest: &[u8]) -> Result<Json, ParseError> {
        if self.is_done() {
            self.check_trailer(rest);
        }
        self.finish()
    }

    /// [`Parser::finish`] that leaves the parser ready for the next document.
    pub fn take(&mut self) -> Result<Json, ParseError> {
        if self.outcome.is_none() {
            let message = match (self.token, self.expect) {
                (Token::String(_), _) => "unexpected end of input in quoted string",
                (Token::None, Expect::Start) => "empty input stream",
                (token, _) => {
                    let text = std::mem::take(&mut self.partial);
                    let cut = match token {
                        Token::Keyword => self.keyword(&text),
                        Token::Number => self.number(&text),
                        Token::None | Token::String(_) => Ok(()),
                    };
                    if let Err(message) = cut {
                        self.fail(0, message);
                    }
                    "unexpected end of input"
                }
            };
            if self.outcome.is_none() {
                self.fail(0, message.to_owned());
            }
        }
        let outcome = self.outcome.take();
        self.reset();
        outcome.unwrap_or(Ok(Json::Null))
    }

    /// Refuses whatever but white space follows the document.
    fn check_trailer(&mut self, rest: &[u8]) {
        if !matches!(self.outcome, Some(Ok(_))) {
            return;
        }
        if let Some(Ok(value)) = self.outcome.take() {
            self.feed(rest);
            if self.outcome.is_none() && self.token != Token::None {
                // A keyword or number that the input's end closes.
                let text = std::mem::take(&mut self.partial);
                let message = match self.token {
                    Token::Keyword => self.keyword(&text),
                    Token::Number => self.number(&text),
                    Token::None => Ok(()),
                    Token::String(_) => Err("unexpected end of input in quoted string".to_owned()),
                };
                if let Err(message) = message {
                    self.fail(0, message);
                }
            }
            self.outcome.get_or_insert(Ok(value));
        }
    }

    fn fail(&mut self, at: usize, message: String) {
        let byte = self.consumed + at;
        self.outcome = Some(Err(ParseError {
            line: self.line,
            column: byte - self.line_start,
            byte,
            message,
        }));
    }

    fn between_tokens(&mut self, input: &[u8], at: &mut usize) -> Result<(), String> {
        let byte = input[*at];
        match byte {
            b' ' | b'\t' | b'\r' => {}
            b'\n' => {
                self.line += 1;
                self.line_start = self.consumed + *at + 1;
            }
            b'"' => {
                *at += 1;
                self.token = Token::String(false);
                return Ok(());
            }
            b'[' | b'{' | b']' | b'}' | b',' | b':' => self.punctuation(byte)?,
            b'-' | b'0'..=b'9' => {
                self.token = Token::Number;
                return Ok(());
            }
            _ if is_keyword(byte) => {
                self.token = Token::Keyword;
                return Ok(());
            }
            _ if byte.is_ascii_graphic() => {
                return Err(format!("invalid character '{}'", byte as char));
            }
            _ => return Err(format!("invalid character U+{byte:04x}")),
        }
        *at += 1;
        Ok(())
    }

    /// Reads on in a token that any byte outside `class` ends.
    fn in_run(
        &mut self,
        input: &[u8],
        at: &mut usize,
        class: fn(u8) -> bool,
        complete: fn(&mut Self, &[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let rest = &input[*at..];
        let length = rest.iter().take_while(|&&c| class(c)).count();
        *at += length;
        if length == rest.len() {
            self.partial.extend_from_slice(rest);
            return Ok(());
        }
        self.token = Token::None;
        if self.partial.is_empty() {
            return complete(self, &rest[..length]);
        }
        let mut text = std::mem::take(&mut self.partial);
        text.extend_from_slice(&rest[..length]);
        let result = complete(self, &text);
        text.clear();
        self.partial = text;
        result
    }

    fn in_string(&mut self, input: &[u8], at: &mut usize, escaped: bool) -> Result<(), String> {
        let rest = &input[*at..];
        let mut escaped = escaped;
        let mut plain = self.partial.is_empty();
        let mut length = 0;
        while length < rest.len() {
            let byte = rest[length];
            if byte < 0x20 {
                *at += length;
                return Err(format!("U+{byte:04X} must be escaped in quoted string"));
            }
            if escaped {
                escaped = false;
            } else if byte == b'\\' {
                escaped = true;
                plain = false;
            } else if byte == b'"' {
                break;
            }
            length += 1;
        }
        *at += length;
        if length == rest.len() {
            self.partial.extend_from_slice(rest);
            self.token = Token::String(escaped);
            return Ok(());
        }
        let string = if plain {
            self.share(&rest[..length])?
        } else {
            let mut text = std::mem::take(&mut self.partial);
            text.extend_from_slice(&rest[..length]);
            let unescaped = unescape_bytes(&text)?;
            text.clear();
            self.partial = text;
            self.share(unescaped.as_bytes())?
        };
        self.token = Token::None;
        self.string(string)?;
        *at += 1;
        Ok(())
    }

    /// A shared string; short ones that were seen lately are not allocated again.
    fn share(&mut self, bytes: &[u8]) -> Result<Arc<str>, String> {
        if bytes.len() > CACHED_LENGTH {
            return checked_utf8(bytes).map(Arc::from);
        }
        if self.recent.is_empty() {
            self.recent.resize(CACHE_SLOTS, None);
        }
        let mut hash = bytes.len() as u32;
        for &byte in bytes {
            hash = hash.wrapping_mul(31).wrapping_add(u32::from(byte));
        }
        let slot = &mut self.recent[(hash ^ (hash >> 11)) as usize % CACHE_SLOTS];
        match slot {
            Some(known) if known.as_bytes() == bytes => Ok(Arc::clone(known)),
            _ => {
                let string: Arc<str> = checked_utf8(bytes)?.into();
                *slot = Some(Arc::clone(&string));
                Ok(string)
            }
        }
    }

    fn punctuation(&mut self, byte: u8) -> Result<(), String> {
        match (byte, self.expect) {
            (_, Expect::End) => Err("trailing garbage at end of input".to_owned()),
            (b'[', Expect::Start | Expect::Value | Expect::ValueOrClose) => {
                self.open(Container::Array(Vec::new()), Expect::ValueOrClose)
            }
            (b'{', Expect::Start | Expect::Value | Expect::ValueOrClose) => {
                self.open(Container::Object(Vec::new(), None), Expect::NameOrClose)
            }
            (b']', Expect::ValueOrClose) => self.close(),
            (b'}', Expect::NameOrClose) => self.close(),
            (_, Expect::CommaOrClose) => match (byte, self.stack.last()) {
                (b',', Some(Container::Array(_))) => {
                    self.expect = Expect::Value;
                    Ok(())
                }
                (b',', Some(Container::Object(..))) => {
                    self.expect = Expect::Name;
                    Ok(())
                }
                (b']', Some(Container::Array(_))) | (b'}', Some(Container::Object(..))) => {
                    self.close()
                }
                _ => Err(self.unexpected()),
            },
            (b':', Expect::Colon) => {
                self.expect = Expect::Value;
                Ok(())
            }
            _ => Err(self.unexpected()),
        }
    }

    /// The message for a token that may not stand where it does.
    fn unexpected(&self) -> String {
        let message = match (self.expect, self.stack.last()) {
            (Expect::Start, _) => "syntax error at beginning of input",
            (Expect::Value | Expect::ValueOrClose, _) => "syntax error expecting value",
            (Expect::CommaOrClose, Some(Container::Object(..))) => {
                "syntax error expecting '}' or ','"
            }
            (Expect::CommaOrClose, _) => "syntax error expecting ']' or ','",
            (Expect::Name | Expect::NameOrClose, _) => {
                "syntax error parsing object expecting string"
            }
            (Expect::Colon, _) => "syntax error parsing object expecting ':'",
            (Expect::End, _) => "trailing garbage at end of input",
        };
        message.to_owned()
    }

    fn open(&mut self, container: Container, then: Expect) -> Result<(), String> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(format!("input exceeds maximum nesting depth {MAX_DEPTH}"));
        }
        self.stack.push(container);
        self.expect = then;
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let value = match self.stack.pop() {
            Some(Container::Array(elements)) => Json::Array(elements),
            Some(Container::Object(members, _)) => Json::Object(Object::from_unsorted(members)),
            None => return Err(self.unexpected()),
        };
        if self.stack.is_empty() {
            self.expect = Expect::End;
            self.outcome = Some(Ok(value));
            Ok(())
        } else {
            self.place(value)
        }
    }

    /// Puts a complete value into the innermost container.
    fn place(&mut self, value: Json) -> Result<(), String> {
        match self.stack.last_mut() {
            Some(Container::Array(elements)) => elements.push(value),
            Some(Container::Object(members, name)) => match name.take() {
                Some(name) => members.push((name, value)),
                None => return Err(self.unexpected()),
            },
            None => return Err(self.unexpected()),
        }
        self.expect = Expect::CommaOrClose;
        Ok(())
    }

    fn scalar(&mut self, value: Json) -> Result<(), String> {
        match self.expect {
            Expect::Value | Expect::ValueOrClose => self.place(value),
            _ => Err(self.unexpected()),
        }
    }

    fn string(&mut self, string: Arc<str>) -> Result<(), String> {
        if let (Expect::Name | Expect::NameOrClose, Some(Container::Object(_, name))) =
            (self.expect, self.stack.last_mut())
        {
            *name = Some(string);
            self.expect = Expect::Colon;
            return Ok(());
        }
        self.scalar(Json::String(string))
    }

    fn keyword(&mut self, text: &[u8]) -> Result<(), String> {
        let value = match text {
            b"null" => Json::Null,
            b"true" => Json::Boolean(true),
            b"false" => Json::Boolean(false),
            other => {
                let word = String::from_utf8_lossy(other);
                return Err(format!("invalid keyword '{word}'"));
            }
        };
        self.scalar(value)
    }

    fn number(&mut self, text: &[u8]) -> Result<(), String> {
        let value = parse_number(text)?;
        self.scalar(value)
    }
}

fn is_keyword(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}

fn is_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}

fn checked_utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| {
        let byte = bytes[error.valid_up_to()];
        format!("invalid UTF-8 sequence 0x{byte:02x} in quoted string")
    })
}

/// Replaces the escape sequences in what stands between a string's quotes.
/// The error is the message alone.
pub fn unescape(text: &str) -> Result<String, String> {
    let mut escaped = false;
    for byte in text.bytes() {
        if byte < 0x20 {
            return Err(format!("U+{byte:04X} must be escaped in quoted string"));
        }
        if byte == b'"' && !escaped {
            return Err("quoted string may not include unescaped \"".to_owned());
        }
        escaped = byte == b'\\' && !escaped;
    }
    if escaped {
        return Err("quoted string may not end with backslash".to_owned());
    }
    unescape_bytes(text.as_bytes())
}

/// Replaces the escape sequences of a string's text that was found between quotes.
fn unescape_bytes(text: &[u8]) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&c| c == b'\\') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let Some((&code, after)) = rest.split_first() else {
            return Err("quoted string may not end with backslash".to_owned());
        };
        rest = after;
        match code {
            b'"' | b'\\' | b'/' => out.push(code),
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => {
                let character = unicode_escape(&mut rest)?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => return Err(format!("bad escape \\{}", other as char)),
        }
    }
    out.extend_from_slice(rest);
    checked_utf8(&out)?;
    String::from_utf8(out).map_err(|error| error.to_string())
}

/// Reads what follows `\u`: four hexadecimal digits, or a pair of surrogates.
fn unicode_escape(rest: &mut &[u8]) -> Result<char, String> {
    let first = hex4(rest)?;
    let code = if (0xd800..0xdc00).contains(&first) {
        let Some(after) = rest.strip_prefix(b"\\u") else {
            return Err("malformed escaped surrogate pair".to_owned());
        };
        *rest = after;
        let second = hex4(rest)?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(
                "second half of escaped surrogate pair is not trailing surrogate".to_owned(),
            );
        }
        0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
    } else {
        first
    };
    match char::from_u32(code) {
        Some('\0') => Err("null bytes not supported in quoted strings".to_owned()),
        Some(character) => Ok(character),
        None => Err("malformed escaped surrogate pair".to_owned()),
    }
}

fn hex4(rest: &mut &[u8]) -> Result<u32, String> {
    let Some((digits, after)) = rest.split_at_checked(4) else {
        return Err("quoted string ends within \\u escape".to_owned());
    };
    *rest = after;
    digits.iter().try_fold(0, |value, &digit| {
        (digit as char)
            .to_digit(16)
            .map(|d| value * 16 + d)
            .ok_or_else(|| "malformed \\u escape".to_owned())
    })
}

#[cfg(test)]
mod tests;
