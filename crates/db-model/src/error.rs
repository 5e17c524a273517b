//! Errors as RFC 7047 section 3.1 shapes them.

use std::borrow::Cow;
use std::fmt;

use json::{Json, Object};

/// The result of an operation of the data model.
pub type Result<T> = std::result::Result<T, Error>;

/// An OVSDB error: a tag that programs look at, details and the offending JSON for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    tag: Cow<'static, str>,
    details: Option<String>,
    syntax: Option<String>,
    io: Option<String>,
}

impl Error {
    /// An error with a tag of its own, such as `constraint violation`.
    pub fn new(tag: &'static str, details: impl Into<String>) -> Self {
        Self {
            tag: Cow::Borrowed(tag),
            details: Some(details.into()),
            syntax: None,
            io: None,
        }
    }

    /// An error whose tag says it all, such as `not supported`.
    pub fn bare(tag: &'static str) -> Self {
        Self {
            tag: Cow::Borrowed(tag),
            details: None,
            syntax: None,
            io: None,
        }
    }

    /// `ovsdb error`: what has no better tag.
    pub fn general(details: impl Into<String>) -> Self {
        Self::new("ovsdb error", details)
    }

    /// `syntax error`: `json` is not what the protocol allows there.
    pub fn syntax(json: &Json, details: impl Into<String>) -> Self {
        Self::new("syntax error", details).at(json)
    }

    /// `constraint violation`.
    pub fn constraint(details: impl Into<String>) -> Self {
        Self::new("constraint violation", details)
    }

    /// `referential integrity violation`.
    pub fn reference(details: impl Into<String>) -> Self {
        Self::new("referential integrity violation", details)
    }

    /// `I/O error`.
    pub fn io(error: &std::io::Error, details: impl Into<String>) -> Self {
        let mut this = Self::new("I/O error", details);
        this.io = Some(io_text(error));
        this
    }

    /// The same error with the JSON that it is about.
    #[must_use]
    pub fn at(mut self, json: &Json) -> Self {
        self.syntax = Some(json.to_string());
        self
    }

    /// The tag: the member `error` of the JSON form.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The details, if there are any.
    pub fn details(&self) -> Option<&str> {
        self.details.as_deref()
    }

    /// The text of the JSON that the error is about, if it is about one.
    pub fn syntax_text(&self) -> Option<&str> {
        self.syntax.as_deref()
    }

    /// The JSON form: `{"error": ..., "details": ..., "syntax": ...}`.
    pub fn to_json(&self) -> Json {
        let mut object = Object::new().with("error", &*self.tag);
        let mut add = |name: &str, value: &Option<String>| {
            if let Some(value) = value {
                object.insert(name, value.as_str());
            }
        };
        add("details", &self.details);
        add("syntax", &self.syntax);
        add("io-error", &self.io);
        Json::Object(object)
    }
}

/// The system's words for an error, without Rust's `(os error N)`.
fn io_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(syntax) = &self.syntax {
            write!(f, "syntax \"{syntax}\": ")?;
        }
        f.write_str(&self.tag)?;
        if let Some(details) = &self.details {
            write!(f, ": {details}")?;
        }
        match &self.io {
            Some(io) => write!(f, " ({io})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
