//! Atoms: the indivisible values (RFC 7047 section 5.1, `<atom>`).

use json::{Json, write_quoted, write_real};
use std::cmp::Ordering;
use uuid::Uuid;

use crate::{Error, Result, SymbolTable, Text};

/// The five types of atoms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomType {
    /// A signed number of 64 bits.
    Integer,
    /// A floating-point number, never infinite.
    Real,
    /// True or false.
    Boolean,
    /// A string.
    String,
    /// A UUID.
    Uuid,
}

impl AtomType {
    /// The name that schemas use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Real => "real",
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Uuid => "uuid",
        }
    }

    /// The type that schemas call `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [
            Self::Integer,
            Self::Real,
            Self::Boolean,
            Self::String,
            Self::Uuid,
        ];
        all.into_iter().find(|t| t.name() == name)
    }

    /// Parses `<atomic-type>`.
    pub fn from_json(json: &Json) -> Result<Self> {
        match json {
            Json::String(name) => Self::from_name(name)
                .ok_or_else(|| Error::syntax(json, format!("\"{name}\" is not an atomic-type"))),
            _ => Err(Error::syntax(json, "atomic-type expected")),
        }
    }

    /// The value of a column of this type that was not given: 0, false, empty, all zeros.
    pub fn default_atom(self) -> Atom {
        match self {
            Self::Integer => Atom::Integer(0),
            Self::Real => Atom::Real(0.0),
            Self::Boolean => Atom::Boolean(false),
            Self::String => Atom::String("".into()),
            Self::Uuid => Atom::Uuid(Uuid::nil()),
        }
    }
}

/// An indivisible value.
///
/// Atoms of one type are ordered as sets and maps order them: numbers by value, `false`
/// before `true`, strings and UUIDs by bytes.
#[derive(Clone, Debug)]
pub enum Atom {
    /// A number of 64 bits.
    Integer(i64),
    /// A real, never infinite.
    Real(f64),
    /// True or false.
    Boolean(bool),
    /// A string.
    String(Text),
    /// A UUID.
    Uuid(Uuid),
}

impl Atom {
    /// A string atom.
    pub fn string(text: impl Into<Text>) -> Self {
        Self::String(text.into())
    }

    /// The atom's type.
    pub const fn atom_type(&self) -> AtomType {
        match self {
            Self::Integer(_) => AtomType::Integer,
            Self::Real(_) => AtomType::Real,
            Self::Boolean(_) => AtomType::Boolean,
            Self::String(_) => AtomType::String,
            Self::Uuid(_) => AtomType::Uuid,
        }
    }

    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if this is one.
    pub const fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The real, if this is one.
    pub const fn as_real(&self) -> Option<f64> {
        match self {
            Self::Real(value) => Some(*value),
            _ => None,
        }
    }

    /// The truth value, if this is one.
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    /// The UUID, if this is one.
    pub const fn as_uuid(&self) -> Option<Uuid> {
        match self {
            Self::Uuid(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether this is the default of its type.
    pub fn is_default(&self) -> bool {
        match self {
            Self::Integer(value) => *value == 0,
            Self::Real(value) => *value == 0.0,
            Self::Boolean(value) => !value,
            Self::String(value) => value.is_empty(),
            Self::Uuid(value) => value.is_nil(),
        }
    }

    /// Parses `<atom>` of the given type, without constraints.  `symbols` resolves
    /// `["named-uuid", ...]`, which is refused where there is no table.
    pub fn from_json(
        atom_type: AtomType,
        json: &Json,
        symbols: Option<&mut SymbolTable>,
    ) -> Result<Self> {
        match (atom_type, json) {
            (AtomType::Integer, Json::Integer(value)) => Ok(Self::Integer(*value)),
            (AtomType::Real, Json::Integer(value)) => Ok(Self::Real(*value as f64)),
            (AtomType::Real, Json::Real(value)) => Ok(Self::Real(*value)),
            (AtomType::Boolean, Json::Boolean(value)) => Ok(Self::Boolean(*value)),
            (AtomType::String, Json::String(value)) => Ok(Self::String(value.into())),
            (AtomType::Uuid, _) => uuid_from_json(json, symbols).map(Self::Uuid),
            _ => Err(Error::syntax(
                json,
                format!("expected {}", atom_type.name()),
            )),
        }
    }

    /// The JSON form.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Integer(value) => Json::Integer(*value),
            Self::Real(value) => real_to_json(*value),
            Self::Boolean(value) => Json::Boolean(*value),
            Self::String(value) => Json::String(value.to_shared()),
            Self::Uuid(value) => {
                Json::Array(vec!["uuid".into(), value.hyphenated().to_string().into()])
            }
        }
    }

    /// Appends the JSON form's text.
    pub fn write_json(&self, out: &mut String) {
        match self {
            Self::Integer(value) => {
                use std::fmt::Write;
                // Writing to a `String` cannot fail.
                let _ = write!(out, "{value}");
            }
            Self::Real(value) => write_real(*value, out),
            Self::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::String(value) => write_quoted(value, out),
            Self::Uuid(value) => {
                out.push_str("[\"uuid\",\"");
                write_uuid(*value, out);
                out.push_str("\"]");
            }
        }
    }
}

/// A real in JSON: a whole number that fits is an integer there.
fn real_to_json(value: f64) -> Json {
    if value.trunc() == value && value.abs() < 9.2e18 {
        Json::Integer(value as i64)
    } else {
        Json::Real(value)
    }
}

/// Appends a UUID in the usual form.
pub(crate) fn write_uuid(uuid: Uuid, out: &mut String) {
    let mut buffer = Uuid::encode_buffer();
    out.push_str(uuid.hyphenated().encode_lower(&mut buffer));
}

/// Parses a UUID in the usual form of 36 characters, and no other.
pub fn parse_uuid(text: &str) -> Option<Uuid> {
    const LENGTH: usize = 36;
    if text.len() == LENGTH {
        Uuid::try_parse(text).ok()
    } else {
        None
    }
}

fn uuid_from_json(json: &Json, symbols: Option<&mut SymbolTable>) -> Result<Uuid> {
    let pair = match json {
        Json::Array(elements) => match elements.as_slice() {
            [Json::String(tag), Json::String(text)] => Some((&**tag, text)),
            _ => None,
        },
        _ => None,
    };
    match (pair, symbols) {
        (Some(("uuid", text)), _) => parse_uuid(text)
            .ok_or_else(|| Error::syntax(json, format!("\"{text}\" is not a valid UUID"))),
        (Some(("named-uuid", name)), Some(symbols)) => {
            if crate::is_id(name) {
                Ok(symbols.refer(name))
            } else {
                Err(Error::syntax(json, "named-uuid string is not a valid <id>"))
            }
        }
        (Some(("named-uuid", _)), None) | (None, None) | (Some(_), None) => {
            Err(Error::syntax(json, "expected [\"uuid\", <string>]"))
        }
        (_, Some(_)) => Err(Error::syntax(json, "expected [\"named-uuid\", <string>]")),
    }
}

impl Ord for Atom {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            // No atom is a NaN; equal zeros of both signs are one value.
            (Self::Real(a), Self::Real(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::String(a), Self::String(b)) => a.cmp(b),
            (Self::Uuid(a), Self::Uuid(b)) => a.cmp(b),
            _ => (self.atom_type() as u8).cmp(&(other.atom_type() as u8)),
        }
    }
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Atom {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Atom {}

impl std::hash::Hash for Atom {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Self::Integer(value) => value.hash(state),
            // Adding zero turns -0 into 0, which is equal to it.
            Self::Real(value) => (value + 0.0).to_bits().hash(state),
            Self::Boolean(value) => value.hash(state),
            Self::String(value) => value.hash(state),
            Self::Uuid(value) => value.hash(state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(atom_type: AtomType, text: &str) -> String {
        let document = json::parse(format!("[{text}]").as_bytes()).expect("valid");
        let element = &document.as_array().expect("array")[0];
        match Atom::from_json(atom_type, element, None) {
            Ok(atom) => {
                let mut text = String::new();
                atom.write_json(&mut text);
                assert_eq!(text, atom.to_json().to_string());
                text
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn atoms_are_read_and_written() {
        for (atom_type, text, printed) in [
            (AtomType::Integer, "1e3", "1000"),
            (AtomType::Real, "-0.0", "0"),
            (AtomType::Real, "1e37", "1e+37"),
            (AtomType::Real, "0.00390625", "0.00390625"),
            (AtomType::Boolean, "true", "true"),
            (
                AtomType::String,
                r#""\"\\\/\b\f\n\r\t""#,
                r#""\"\\/\b\f\n\r\t""#,
            ),
            (
                AtomType::Uuid,
                r#"["uuid", "550E8400-e29b-41d4-a716-446655440000"]"#,
                r#"["uuid","550e8400-e29b-41d4-a716-446655440000"]"#,
            ),
            (
                AtomType::Integer,
                "0.5",
                r#"syntax "0.5": syntax error: expected integer"#,
            ),
            (
                AtomType::Boolean,
                r#""true""#,
                r#"syntax ""true"": syntax error: expected boolean"#,
            ),
            (
                AtomType::String,
                "1",
                r#"syntax "1": syntax error: expected string"#,
            ),
            (
                AtomType::Uuid,
                r#"["named-uuid","x"]"#,
                r#"syntax "["named-uuid","x"]": syntax error: expected ["uuid", <string>]"#,
            ),
            (
                AtomType::Uuid,
                r#"["uuid","1234-5678"]"#,
                r#"syntax "["uuid","1234-5678"]": syntax error: "1234-5678" is not a valid UUID"#,
            ),
        ] {
            assert_eq!(parse(atom_type, text), printed);
        }
    }

    #[test]
    fn an_atom_is_three_words() {
        assert_eq!(size_of::<Atom>(), 24);
        assert_eq!(size_of::<crate::Datum>(), 24);
    }
}
