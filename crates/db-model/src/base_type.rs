//! Base types: an atom's type with its constraints (RFC 7047 section 3.2, `<base-type>`).

use std::sync::Arc;

use json::{Json, Object, real_to_string};

use crate::{Atom, AtomType, ColumnType, Datum, Error, Kinds, Members, Result, SymbolTable, text};

/// Where a column of UUIDs points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefTable {
    /// Name of the table.
    pub table: Arc<str>,
    /// Whether a row that is referred to must exist and is kept alive by the reference.
    pub strong: bool,
}

/// What an atom must satisfy beside its type.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Constraint {
    /// Nothing.
    #[default]
    None,
    /// One of these atoms, sorted.
    Enum(Arc<[Atom]>),
    /// An integer in a range, both ends included.
    Integer {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// A real in a range, both ends included.
    Real {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// A string of so many characters.
    Length {
        /// Fewest characters.
        min: u32,
        /// Most characters.
        max: u32,
    },
    /// A UUID of a row of a table.
    Reference(RefTable),
}

/// An atom's type with its constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct BaseType {
    /// The atom's type.
    pub atom: AtomType,
    /// What else it must satisfy.
    pub constraint: Constraint,
}

impl BaseType {
    /// A base type without constraint.
    pub const fn plain(atom: AtomType) -> Self {
        Self {
            atom,
            constraint: Constraint::None,
        }
    }

    /// The same type without its constraint.
    #[must_use]
    pub const fn unconstrained(&self) -> Self {
        Self::plain(self.atom)
    }

    /// The table that this type refers to.
    pub const fn reference(&self) -> Option<&RefTable> {
        match &self.constraint {
            Constraint::Reference(reference) => Some(reference),
            _ => None,
        }
    }

    /// The allowed values, sorted, if they are enumerated.
    pub fn enumeration(&self) -> Option<&[Atom]> {
        match &self.constraint {
            Constraint::Enum(atoms) => Some(atoms),
            _ => None,
        }
    }

    /// Parses `<base-type>`.
    pub fn from_json(json: &Json) -> Result<Self> {
        if let Json::String(_) = json {
            return AtomType::from_json(json).map(Self::plain);
        }
        let mut members = Members::new(json, "ovsdb type");
        let atom = match members.required("type", Kinds::STRING) {
            Some(name) => AtomType::from_json(name)?,
            None => return Err(failed(members)),
        };
        let constraint = match members.optional("enum", Kinds::ANY) {
            Some(values) => {
                let values = Datum::from_json(values, &ColumnType::enum_values(atom), None)?;
                Constraint::Enum(values.as_set().into())
            }
            None => match atom {
                AtomType::Integer => integer_range(json, &mut members)?,
                AtomType::Real => real_range(json, &mut members)?,
                AtomType::String => length_range(json, &mut members)?,
                AtomType::Uuid => reference(json, &mut members)?,
                AtomType::Boolean => Constraint::None,
            },
        };
        members.finish()?;
        Ok(Self { atom, constraint })
    }

    /// The JSON form: a string where there is no constraint.
    pub fn to_json(&self) -> Json {
        let mut object = Object::new().with("type", self.atom.name());
        match &self.constraint {
            Constraint::None => return self.atom.name().into(),
            Constraint::Enum(values) => {
                object.insert("enum", Datum::from_sorted_set(values).to_json());
            }
            Constraint::Integer { min, max } => {
                if *min != i64::MIN {
                    object.insert("minInteger", *min);
                }
                if *max != i64::MAX {
                    object.insert("maxInteger", *max);
                }
            }
            Constraint::Real { min, max } => {
                if *min != -f64::MAX {
                    object.insert("minReal", Atom::Real(*min).to_json());
                }
                if *max != f64::MAX {
                    object.insert("maxReal", Atom::Real(*max).to_json());
                }
            }
            Constraint::Length { min, max } => {
                if *min != 0 {
                    object.insert("minLength", i64::from(*min));
                }
                if *max != u32::MAX {
                    object.insert("maxLength", i64::from(*max));
                }
            }
            Constraint::Reference(reference) => {
                object.insert("refTable", Arc::clone(&reference.table));
                if !reference.strong {
                    object.insert("refType", "weak");
                }
            }
        }
        Json::Object(object)
    }

    /// Parses `<atom>` of this type and checks the constraint.
    pub fn atom_from_json(&self, json: &Json, symbols: Option<&mut SymbolTable>) -> Result<Atom> {
        let atom = Atom::from_json(self.atom, json, symbols)?;
        self.check(&atom)?;
        Ok(atom)
    }

    /// Checks the constraint on an atom of the right type.
    pub fn check(&self, atom: &Atom) -> Result<()> {
        let fault = match (&self.constraint, atom) {
            (Constraint::Enum(allowed), _) => not_allowed(allowed, atom),
            (Constraint::Integer { min, max }, Atom::Integer(value)) => {
                if (*min..=*max).contains(value) {
                    None
                } else {
                    let bound = |b: &i64, open: i64| (*b != open).then(|| b.to_string());
                    let (min, max) = (bound(min, i64::MIN), bound(max, i64::MAX));
                    Some(out_of_range(&value.to_string(), min, max))
                }
            }
            (Constraint::Real { min, max }, Atom::Real(value)) => {
                if (*min..=*max).contains(value) {
                    None
                } else {
                    let bound = |b: &f64, open: f64| (*b != open).then(|| real_to_string(*b));
                    let (min, max) = (bound(min, -f64::MAX), bound(max, f64::MAX));
                    Some(out_of_range(&real_to_string(*value), min, max))
                }
            }
            (Constraint::Length { min, max }, Atom::String(value)) => {
                bad_length(value, *min as usize, *max as usize)
            }
            _ => None,
        };
        fault.map_or(Ok(()), |details| Err(Error::constraint(details)))
    }
}

/// The error of a reader that has met one.
fn failed(members: Members<'_>) -> Error {
    match members.finish() {
        Err(error) => error,
        Ok(()) => Error::new("syntax error", "ovsdb type expected"),
    }
}

fn not_allowed(allowed: &[Atom], atom: &Atom) -> Option<String> {
    if allowed.binary_search(atom).is_ok() {
        return None;
    }
    let values: Vec<String> = allowed.iter().map(text::format_atom).collect();
    Some(format!(
        "{} is not one of the allowed values ([{}])",
        text::format_atom(atom),
        values.join(", ")
    ))
}

fn out_of_range(value: &str, min: Option<String>, max: Option<String>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => {
            format!("{value} is not in the valid range {min} to {max} (inclusive)")
        }
        (Some(min), None) => format!("{value} is less than minimum allowed value {min}"),
        (None, max) => format!(
            "{value} is greater than maximum allowed value {}",
            max.unwrap_or_default()
        ),
    }
}

fn bad_length(value: &str, min: usize, max: usize) -> Option<String> {
    let length = value.chars().count();
    if length < min {
        Some(format!(
            "\"{value}\" length {length} is less than minimum allowed length {min}"
        ))
    } else if length > max {
        Some(format!(
            "\"{value}\" length {length} is greater than maximum allowed length {max}"
        ))
    } else {
        None
    }
}

fn integer_range(json: &Json, members: &mut Members<'_>) -> Result<Constraint> {
    let min = members.optional("minInteger", Kinds::INTEGER);
    let max = members.optional("maxInteger", Kinds::INTEGER);
    if min.is_none() && max.is_none() {
        return Ok(Constraint::None);
    }
    let min = min.and_then(Json::as_integer).unwrap_or(i64::MIN);
    let max = max.and_then(Json::as_integer).unwrap_or(i64::MAX);
    if min > max {
        return Err(Error::syntax(json, "minInteger exceeds maxInteger"));
    }
    Ok(Constraint::Integer { min, max })
}

fn real_range(json: &Json, members: &mut Members<'_>) -> Result<Constraint> {
    let min = members.optional("minReal", Kinds::NUMBER);
    let max = members.optional("maxReal", Kinds::NUMBER);
    if min.is_none() && max.is_none() {
        return Ok(Constraint::None);
    }
    let min = min.and_then(number).unwrap_or(-f64::MAX);
    let max = max.and_then(number).unwrap_or(f64::MAX);
    if min > max {
        return Err(Error::syntax(json, "minReal exceeds maxReal"));
    }
    Ok(Constraint::Real { min, max })
}

fn number(json: &Json) -> Option<f64> {
    match json {
        Json::Integer(value) => Some(*value as f64),
        Json::Real(value) => Some(*value),
        _ => None,
    }
}

fn length_range(json: &Json, members: &mut Members<'_>) -> Result<Constraint> {
    let mut bound = |name: &str, default: u32| match members.optional(name, Kinds::INTEGER) {
        Some(value) => value
            .as_integer()
            .and_then(|v| u32::try_from(v).ok())
            .map(|v| (v, true))
            .ok_or_else(|| {
                let details = format!("{name} out of valid range 0 to {}", u32::MAX);
                Error::syntax(json, details)
            }),
        None => Ok((default, false)),
    };
    let (min, has_min) = bound("minLength", 0)?;
    let (max, has_max) = bound("maxLength", u32::MAX)?;
    if min > max {
        return Err(Error::syntax(json, "minLength exceeds maxLength"));
    }
    Ok(if has_min || has_max {
        Constraint::Length { min, max }
    } else {
        Constraint::None
    })
}

fn reference(json: &Json, members: &mut Members<'_>) -> Result<Constraint> {
    let Some(Json::String(table)) = members.optional("refTable", Kinds::ID) else {
        return Ok(Constraint::None);
    };
    let strong = match members
        .optional("refType", Kinds::ID)
        .and_then(Json::as_str)
    {
        None | Some("strong") => true,
        Some("weak") => false,
        Some(other) => {
            let details = format!("refType must be \"strong\" or \"weak\" (not \"{other}\")");
            return Err(Error::syntax(json, details));
        }
    };
    Ok(Constraint::Reference(RefTable {
        table: Arc::clone(table),
        strong,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str) -> String {
        let json = json::parse(text.as_bytes()).expect("valid");
        BaseType::from_json(&json).map_or_else(|e| e.to_string(), |t| t.to_json().to_string())
    }

    #[test]
    fn base_types_are_read_and_written() {
        for (text, printed) in [
            (
                r#"{"type":"integer","enum":["set",[4,-1,5]]}"#,
                r#"{"enum":["set",[-1,4,5]],"type":"integer"}"#,
            ),
            (
                r#"{"type":"integer","minInteger":5}"#,
                r#"{"minInteger":5,"type":"integer"}"#,
            ),
            (
                r#"{"type":"real","maxReal":1e5}"#,
                r#"{"maxReal":100000,"type":"real"}"#,
            ),
            (r#"{"type":"boolean"}"#, r#""boolean""#),
            (
                r#"{"type":"boolean","enum":true}"#,
                r#"{"enum":true,"type":"boolean"}"#,
            ),
            (
                r#"{"type":"string","minLength":1,"maxLength":5}"#,
                r#"{"maxLength":5,"minLength":1,"type":"string"}"#,
            ),
            (
                r#"{"type":"uuid","refTable":"t","refType":"weak"}"#,
                r#"{"refTable":"t","refType":"weak","type":"uuid"}"#,
            ),
        ] {
            assert_eq!(round(text), printed);
        }
    }

    #[test]
    fn bad_base_types_say_why() {
        for (text, said) in [
            (
                r#"{"type":"integer","minInteger":5,"maxInteger":3}"#,
                "minInteger exceeds maxInteger",
            ),
            (
                r#"{"type":"string","maxLength":-1}"#,
                "maxLength out of valid range 0 to 4294967295",
            ),
            (
                r#"{"type":"uuid","refTable":"a-b-c"}"#,
                "Type mismatch for member 'refTable'.",
            ),
            (r#"{"type":"void"}"#, "\"void\" is not an atomic-type"),
            (
                "{}",
                "Parsing ovsdb type failed: Required 'type' member is missing.",
            ),
            (
                r#"{"type":"integer","minLength":1}"#,
                "Parsing ovsdb type failed: Member 'minLength' is present but not allowed here.",
            ),
            (
                r#"{"type":"integer","enum":["set",[]]}"#,
                "set must have 1 to 4294967295 members but 0 are present",
            ),
        ] {
            let printed = round(text);
            assert!(printed.ends_with(said), "{printed}");
        }
    }

    #[test]
    fn constraints_are_checked() {
        for (text, atom, said) in [
            (
                r#"{"type":"integer","minInteger":-10,"maxInteger":10}"#,
                Atom::Integer(11),
                "constraint violation: 11 is not in the valid range -10 to 10 (inclusive)",
            ),
            (
                r#"{"type":"real","minReal":5}"#,
                Atom::Real(4.0),
                "constraint violation: 4 is less than minimum allowed value 5",
            ),
            (
                r#"{"type":"string","minLength":2}"#,
                Atom::string("𝄞"),
                "constraint violation: \"𝄞\" length 1 is less than minimum allowed length 2",
            ),
            (
                r#"{"type":"string","enum":["set",["abc","def"]]}"#,
                Atom::string(""),
                "constraint violation: \"\" is not one of the allowed values ([abc, def])",
            ),
        ] {
            let json = json::parse(text.as_bytes()).expect("valid");
            let base = BaseType::from_json(&json).expect("valid");
            let error = base.check(&atom).expect_err("refused");
            assert_eq!(error.to_string(), said);
        }
    }
}
