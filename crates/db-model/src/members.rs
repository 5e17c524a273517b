//! Taking objects of the protocol apart: required and optional members, their kinds, and
//! the exact words for what is missing, of the wrong kind or too much.

use json::{Json, Object};

use crate::{Error, Result};

/// A set of JSON kinds that a member may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// `null`.
    pub const NULL: Self = Self(1);
    /// `true` or `false`.
    pub const BOOLEAN: Self = Self(2);
    /// A whole number.
    pub const INTEGER: Self = Self(4);
    /// Any number.
    pub const NUMBER: Self = Self(4 | 8);
    /// A string.
    pub const STRING: Self = Self(16);
    /// A string that is an `<id>` of RFC 7047 section 3.1.
    pub const ID: Self = Self(32);
    /// An array.
    pub const ARRAY: Self = Self(64);
    /// An object.
    pub const OBJECT: Self = Self(128);
    /// Whatever.
    pub const ANY: Self = Self(255);

    /// Both sets together.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn holds(self, json: &Json) -> bool {
        let kind = match json {
            Json::Null => Self::NULL.0,
            Json::Boolean(_) => Self::BOOLEAN.0,
            Json::Integer(_) => Self::INTEGER.0,
            Json::Real(_) => 8,
            Json::String(text) if is_id(text) => Self::STRING.0 | Self::ID.0,
            Json::String(_) => Self::STRING.0,
            Json::Array(_) => Self::ARRAY.0,
            Json::Object(_) | Json::Serialized(_) => Self::OBJECT.0,
        };
        self.0 & kind != 0
    }
}

/// Whether `text` is an `<id>`: a letter or underscore, then letters, digits, underscores.
pub fn is_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == b'_')
        && bytes.all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Reads the members of one object; the first fault is reported by [`Members::finish`].
#[derive(Debug)]
pub struct Members<'a> {
    json: &'a Json,
    object: Option<&'a Object>,
    what: String,
    taken: Vec<&'a str>,
    fault: Option<Error>,
}

impl<'a> Members<'a> {
    /// Begins to read `json`, which should be an object; `what` names it in errors.
    pub fn new(json: &'a Json, what: impl Into<String>) -> Self {
        let mut this = Self {
            json,
            object: json.as_object(),
            what: what.into(),
            taken: Vec::new(),
            fault: None,
        };
        if this.object.is_none() {
            let details = format!("Parsing {} failed: Object expected.", this.what);
            this.fault = Some(Error::new("syntax error", details));
        }
        this
    }

    fn lookup(&mut self, name: &str, kinds: Kinds, required: bool) -> Option<&'a Json> {
        let object = self.object?;
        let Some((known, value)) = object.iter().find(|(known, _)| &***known == name) else {
            if required {
                self.fail(format!("Required '{name}' member is missing."));
            }
            return None;
        };
        self.taken.push(known);
        if kinds.holds(value) {
            Some(value)
        } else {
            self.fail(format!("Type mismatch for member '{name}'."));
            None
        }
    }

    /// The member `name`; that it is missing or of another kind is a fault.
    pub fn required(&mut self, name: &str, kinds: Kinds) -> Option<&'a Json> {
        self.lookup(name, kinds, true)
    }

    /// The member `name` if there is one; that it is of another kind is a fault.
    pub fn optional(&mut self, name: &str, kinds: Kinds) -> Option<&'a Json> {
        self.lookup(name, kinds, false)
    }

    /// Whether a fault was met.
    pub fn has_failed(&self) -> bool {
        self.fault.is_some()
    }

    /// Takes note of a fault that the caller found, if it is the first.
    pub fn fail(&mut self, details: String) {
        if self.fault.is_none() {
            let details = format!("Parsing {} failed: {details}", self.what);
            self.fault = Some(Error::syntax(self.json, details));
        }
    }

    /// The first fault; failing that, that there are members nobody asked for.
    pub fn finish(mut self) -> Result<()> {
        if self.fault.is_none()
            && let Some(object) = self.object
        {
            let mut unknown = object
                .iter()
                .map(|(name, _)| &**name)
                .filter(|name| !self.taken.contains(name));
            if let Some(first) = unknown.next() {
                let others = unknown.count();
                let details = match others {
                    0 => format!("Member '{first}' is present but not allowed here."),
                    _ => format!(
                        "Member '{first}' and {others} other member{} are present but not allowed here.",
                        if others > 1 { "s" } else { "" }
                    ),
                };
                self.fail(details);
            }
        }
        self.fault.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(text: &str) -> String {
        let json = json::parse(text.as_bytes()).expect("valid");
        let mut members = Members::new(&json, "a thing");
        members.required("need", Kinds::INTEGER);
        members.optional("may", Kinds::ID);
        members
            .finish()
            .map_or_else(|e| e.to_string(), |()| "ok".to_owned())
    }

    #[test]
    fn faults_are_worded() {
        for (text, said) in [
            (r#"{"need":1}"#, "ok"),
            (r#"{"need":1,"may":"a_1"}"#, "ok"),
            (
                "[]",
                "syntax error: Parsing a thing failed: Object expected.",
            ),
            (
                "{}",
                r#"syntax "{}": syntax error: Parsing a thing failed: Required 'need' member is missing."#,
            ),
            (
                r#"{"may":"a-b","need":1}"#,
                r#"syntax "{"may":"a-b","need":1}": syntax error: Parsing a thing failed: Type mismatch for member 'may'."#,
            ),
            (
                r#"{"need":1,"x":2,"y":3,"z":4}"#,
                r#"syntax "{"need":1,"x":2,"y":3,"z":4}": syntax error: Parsing a thing failed: Member 'x' and 2 other members are present but not allowed here."#,
            ),
        ] {
            assert_eq!(unknown(text), said);
        }
    }
}
