//! Column types: scalars, optional values, sets and maps (RFC 7047 section 3.2, `<type>`).

use json::{Json, Object};

use crate::{AtomType, BaseType, Error, Kinds, Members, Result};

/// The `max` of a column without upper limit.
pub const UNLIMITED: u32 = u32::MAX;

/// The type of a column: a set of keys, or a map from keys to values, of limited size.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnType {
    /// Type of the elements or keys.
    pub key: BaseType,
    /// Type of the values, in a map.
    pub value: Option<BaseType>,
    /// Fewest elements: 0 or 1.
    pub min: u32,
    /// Most elements: at least 1; [`UNLIMITED`] if there is no limit.
    pub max: u32,
}

impl ColumnType {
    /// Exactly one element.
    pub const fn scalar(key: BaseType) -> Self {
        Self {
            key,
            value: None,
            min: 1,
            max: 1,
        }
    }

    /// The type of the `enum` member of a base type.
    pub(crate) const fn enum_values(atom: AtomType) -> Self {
        Self {
            key: BaseType::plain(atom),
            value: None,
            min: 1,
            max: UNLIMITED,
        }
    }

    /// Whether this is exactly one element (or pair).
    pub const fn is_scalar(&self) -> bool {
        self.value.is_none() && self.min == 1 && self.max == 1
    }

    /// Whether this is an element that may be missing.
    pub const fn is_optional(&self) -> bool {
        self.min == 0 && self.max == 1
    }

    /// Whether this is an element that may be missing and has no value.
    pub const fn is_optional_scalar(&self) -> bool {
        self.is_optional() && self.value.is_none()
    }

    /// Whether this is a set of more than one element.
    pub const fn is_set(&self) -> bool {
        self.value.is_none() && (self.min != 1 || self.max != 1)
    }

    /// Whether this is a map.
    pub const fn is_map(&self) -> bool {
        self.value.is_some()
    }

    /// Whether more than one element fits.
    pub const fn is_composite(&self) -> bool {
        self.value.is_some() || self.max > 1
    }

    /// Parses `<type>`.
    pub fn from_json(json: &Json) -> Result<Self> {
        match json {
            Json::String(_) => BaseType::from_json(json).map(Self::scalar),
            Json::Object(_) => Self::from_object(json),
            _ => Err(Error::syntax(json, "ovsdb type expected")),
        }
    }

    fn from_object(json: &Json) -> Result<Self> {
        let base_kinds = Kinds::STRING.or(Kinds::OBJECT);
        let mut members = Members::new(json, "ovsdb type");
        let key = members.required("key", base_kinds);
        let value = members.optional("value", base_kinds);
        let min = members.optional("min", Kinds::INTEGER);
        let max = members.optional("max", Kinds::INTEGER.or(Kinds::STRING));
        members.finish()?;
        let this = Self {
            key: key.map_or_else(
                || Err(Error::syntax(json, "ovsdb type expected")),
                BaseType::from_json,
            )?,
            value: value.map(BaseType::from_json).transpose()?,
            min: min.map_or(Ok(1), bound)?,
            max: match max {
                Some(Json::String(word)) if &**word == "unlimited" => UNLIMITED,
                Some(number) => bound(number)?,
                None => 1,
            },
        };
        if this.min > 1 || this.max < 1 {
            return Err(Error::syntax(json, "ovsdb type fails constraint checks"));
        }
        Ok(this)
    }

    /// The JSON form.
    pub fn to_json(&self) -> Json {
        let key = self.key.to_json();
        if self.is_scalar() && key.as_str().is_some() {
            return key;
        }
        let mut object = Object::new().with("key", key);
        if let Some(value) = &self.value {
            object.insert("value", value.to_json());
        }
        if self.min != 1 {
            object.insert("min", i64::from(self.min));
        }
        if self.max == UNLIMITED {
            object.insert("max", "unlimited");
        } else if self.max != 1 {
            object.insert("max", i64::from(self.max));
        }
        Json::Object(object)
    }

    /// The type in words: `set of 1 to 2 integers`, `map of (string, integer) pairs`.
    pub fn to_english(&self) -> String {
        let key = self.key.atom.name();
        if self.is_scalar() {
            return key.to_owned();
        }
        let size = match (self.min, self.max) {
            (0, UNLIMITED) => String::new(),
            (min, UNLIMITED) => format!("{min} or more "),
            (0, max) => format!("up to {max} "),
            (min, max) => format!("{min} to {max} "),
        };
        match &self.value {
            Some(value) => format!("map of {size}({key}, {}) pairs", value.atom.name()),
            None => format!("set of {size}{key}s"),
        }
    }
}

fn bound(json: &Json) -> Result<u32> {
    json.as_integer()
        .and_then(|value| u32::try_from(value).ok())
        .ok_or_else(|| Error::syntax(json, "bad min or max value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str) -> String {
        let json = json::parse(text.as_bytes()).expect("valid");
        ColumnType::from_json(&json).map_or_else(
            |e| e.to_string(),
            |t| format!("{} / {}", t.to_json(), t.to_english()),
        )
    }

    #[test]
    fn types_are_read_and_written() {
        for (text, printed) in [
            (r#"{"key":"real","min":1,"max":1}"#, r#""real" / real"#),
            (
                r#"{"key":"boolean","min":0}"#,
                r#"{"key":"boolean","min":0} / set of up to 1 booleans"#,
            ),
            (
                r#"{"key":"uuid","min":1,"max":3}"#,
                r#"{"key":"uuid","max":3} / set of 1 to 3 uuids"#,
            ),
            (
                r#"{"key":"real","min":1,"max":"unlimited"}"#,
                r#"{"key":"real","max":"unlimited"} / set of 1 or more reals"#,
            ),
            (
                r#"{"key":"string","value":"integer","min":0,"max":"unlimited"}"#,
                r#"{"key":"string","max":"unlimited","min":0,"value":"integer"} / map of (string, integer) pairs"#,
            ),
            (
                r#"{"key":"integer","value":"boolean"}"#,
                r#"{"key":"integer","value":"boolean"} / map of 1 to 1 (integer, boolean) pairs"#,
            ),
        ] {
            assert_eq!(round(text), printed);
        }
    }

    #[test]
    fn bad_types_say_why() {
        for (text, said) in [
            (
                r#"{"key":"real","min":5,"max":3}"#,
                "ovsdb type fails constraint checks",
            ),
            (r#"{"key":"real","max":-1}"#, "bad min or max value"),
            (r#"{"key":"real","max":"lots"}"#, "bad min or max value"),
            (
                r#"{"value":"integer"}"#,
                "Required 'key' member is missing.",
            ),
            ("[]", "ovsdb type expected"),
        ] {
            assert!(round(text).ends_with(said), "{text}");
        }
    }
}
