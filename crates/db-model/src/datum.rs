//! Datums: the values of columns, which are sets or maps of atoms (RFC 7047 section 5.1,
//! `<value>`).

use std::sync::Arc;

use json::Json;
use uuid::Uuid;

use crate::{Atom, ColumnType, Error, Result, SymbolTable};

/// The value of a column.
///
/// A set's elements and a map's keys are sorted and distinct.  Clones share the elements;
/// a set of one, the commonest case, takes no allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Datum(Repr);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Repr {
    Empty,
    One(Atom),
    Set(Arc<[Atom]>),
    Map(Arc<[(Atom, Atom)]>),
}

/// How strictly a datum's number of elements is checked when it is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeCheck {
    /// Between the type's minimum and maximum.
    Strict,
    /// At most two times the maximum: a difference between two values of the type.
    Difference,
    /// Whatever.
    Any,
}

impl Default for Datum {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl From<Atom> for Datum {
    fn from(atom: Atom) -> Self {
        Self(Repr::One(atom))
    }
}

impl Datum {
    /// The empty set, which is the empty map as well.
    pub const EMPTY: Self = Self(Repr::Empty);

    /// What a column of this type holds if nothing was given: empty if that is allowed,
    /// else one default atom or pair.
    pub fn default_of(column_type: &ColumnType) -> Self {
        if column_type.min == 0 {
            return Self::EMPTY;
        }
        let key = column_type.key.atom.default_atom();
        match &column_type.value {
            None => key.into(),
            Some(value) => Self(Repr::Map([(key, value.atom.default_atom())].into())),
        }
    }

    /// Whether this equals [`Datum::default_of`] the type.
    pub fn is_default(&self, column_type: &ColumnType) -> bool {
        match &self.0 {
            Repr::Empty => column_type.min == 0,
            Repr::One(atom) => column_type.min == 1 && atom.is_default(),
            Repr::Set(_) => false,
            Repr::Map(pairs) => match &**pairs {
                [(key, value)] => column_type.min == 1 && key.is_default() && value.is_default(),
                _ => false,
            },
        }
    }

    /// A set of these elements, in any order; `None` if two are equal.
    pub fn from_set(mut elements: Vec<Atom>) -> Option<Self> {
        if !elements.is_sorted_by(|a, b| a < b) {
            elements.sort_unstable();
            if elements.windows(2).any(|w| w[0] == w[1]) {
                return None;
            }
        }
        Some(Self::from_sorted_vec(elements))
    }

    /// A set of these elements, in any order; equal ones count once.
    pub fn from_set_lossy(mut elements: Vec<Atom>) -> Self {
        elements.sort_unstable();
        elements.dedup();
        Self::from_sorted_vec(elements)
    }

    pub(crate) fn from_sorted_vec(mut elements: Vec<Atom>) -> Self {
        match elements.len() {
            0 => Self::EMPTY,
            1 => Self(elements.pop().map_or(Repr::Empty, Repr::One)),
            _ => Self(Repr::Set(elements.into())),
        }
    }

    pub(crate) fn from_sorted_set(elements: &Arc<[Atom]>) -> Self {
        match &**elements {
            [] => Self::EMPTY,
            [one] => Self(Repr::One(one.clone())),
            _ => Self(Repr::Set(Arc::clone(elements))),
        }
    }

    /// A map of these pairs, in any order; `None` if two keys are equal.
    pub fn from_map(mut pairs: Vec<(Atom, Atom)>) -> Option<Self> {
        if !pairs.is_sorted_by(|a, b| a.0 < b.0) {
            pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            if pairs.windows(2).any(|w| w[0].0 == w[1].0) {
                return None;
            }
        }
        Some(Self::from_sorted_pairs(pairs))
    }

    pub(crate) fn from_sorted_pairs(pairs: Vec<(Atom, Atom)>) -> Self {
        if pairs.is_empty() {
            Self::EMPTY
        } else {
            Self(Repr::Map(pairs.into()))
        }
    }

    /// Number of elements or pairs.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Empty => 0,
            Repr::One(_) => 1,
            Repr::Set(elements) => elements.len(),
            Repr::Map(pairs) => pairs.len(),
        }
    }

    /// Whether there are no elements.
    pub const fn is_empty(&self) -> bool {
        matches!(self.0, Repr::Empty)
    }

    /// The sorted elements of a set; nothing, for a map.
    pub fn as_set(&self) -> &[Atom] {
        match &self.0 {
            Repr::One(atom) => std::slice::from_ref(atom),
            Repr::Set(elements) => elements,
            Repr::Empty | Repr::Map(_) => &[],
        }
    }

    /// The pairs of a map, sorted by key; nothing, for a set.
    pub fn as_map(&self) -> &[(Atom, Atom)] {
        match &self.0 {
            Repr::Map(pairs) => pairs,
            _ => &[],
        }
    }

    /// Whether this is a map with pairs.
    pub const fn is_map(&self) -> bool {
        matches!(self.0, Repr::Map(_))
    }

    /// The elements of a set or the keys of a map, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Atom> {
        let keys = self.as_map().iter().map(|(key, _)| key);
        self.as_set().iter().chain(keys)
    }

    /// The values of a map, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &Atom> {
        self.as_map().iter().map(|(_, value)| value)
    }

    /// The only element of a set of one.
    pub const fn as_atom(&self) -> Option<&Atom> {
        match &self.0 {
            Repr::One(atom) => Some(atom),
            _ => None,
        }
    }

    /// The only element, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        self.as_atom()?.as_str()
    }

    /// The only element, if it is an integer.
    pub fn as_integer(&self) -> Option<i64> {
        self.as_atom()?.as_integer()
    }

    /// The only element, if it is a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        self.as_atom()?.as_bool()
    }

    /// The only element, if it is a UUID.
    pub fn as_uuid(&self) -> Option<Uuid> {
        self.as_atom()?.as_uuid()
    }

    /// Whether a set has this element or a map this key.
    pub fn contains_key(&self, key: &Atom) -> bool {
        match &self.0 {
            Repr::Map(pairs) => pairs.binary_search_by(|(k, _)| k.cmp(key)).is_ok(),
            _ => self.as_set().binary_search(key).is_ok(),
        }
    }

    /// The value of a map's key.
    pub fn get(&self, key: &Atom) -> Option<&Atom> {
        let pairs = self.as_map();
        let at = pairs.binary_search_by(|(k, _)| k.cmp(key)).ok()?;
        Some(&pairs[at].1)
    }

    /// The string value of a string key: what reading `other_config:KEY` needs.
    pub fn get_str(&self, key: &str) -> Option<&str> {
        let pairs = self.as_map();
        let at = pairs
            .binary_search_by(|(k, _)| k.as_str().unwrap_or("").cmp(key))
            .ok()?;
        pairs[at].1.as_str()
    }

    /// Parses `<value>` of a type, checking constraints and size.
    pub fn from_json(
        json: &Json,
        column_type: &ColumnType,
        symbols: Option<&mut SymbolTable>,
    ) -> Result<Self> {
        Self::from_json_sized(json, column_type, symbols, SizeCheck::Strict)
    }

    /// Parses `<value>` of a type, checking constraints, and the size as told.
    pub fn from_json_sized(
        json: &Json,
        column_type: &ColumnType,
        symbols: Option<&mut SymbolTable>,
        sizes: SizeCheck,
    ) -> Result<Self> {
        let set = match json {
            Json::Array(outer) => match outer.as_slice() {
                [Json::String(tag), inner] if &**tag == "set" => Some(inner),
                _ => None,
            },
            _ => None,
        };
        match (&column_type.value, set) {
            (None, None) => column_type
                .key
                .atom_from_json(json, symbols)
                .map(Self::from),
            (None, Some(Json::Array(elements))) => {
                check_size(json, "set", elements.len(), column_type, sizes)?;
                set_from_json(elements, column_type, symbols)
            }
            (None, Some(_)) => Err(Error::syntax(json, "expected [\"set\", <array>]")),
            (Some(_), _) => map_from_json(json, column_type, symbols, sizes),
        }
    }

    /// The JSON form.
    pub fn to_json(&self) -> Json {
        match &self.0 {
            Repr::Empty => Json::Array(vec!["set".into(), Json::Array(Vec::new())]),
            Repr::One(atom) => atom.to_json(),
            Repr::Set(elements) => {
                let elements = elements.iter().map(Atom::to_json).collect();
                Json::Array(vec!["set".into(), Json::Array(elements)])
            }
            Repr::Map(pairs) => {
                let pairs = pairs
                    .iter()
                    .map(|(k, v)| Json::Array(vec![k.to_json(), v.to_json()]));
                Json::Array(vec!["map".into(), Json::Array(pairs.collect())])
            }
        }
    }

    /// The JSON form of a value of a column of this type, which says whether an empty value
    /// is a set or a map.
    pub fn to_json_of(&self, column_type: &ColumnType) -> Json {
        if self.is_empty() && column_type.is_map() {
            Json::Array(vec!["map".into(), Json::Array(Vec::new())])
        } else {
            self.to_json()
        }
    }

    /// Appends the JSON form's text of a value of a column of this type.
    pub fn write_json(&self, column_type: &ColumnType, out: &mut String) {
        match &self.0 {
            Repr::Empty if column_type.is_map() => out.push_str("[\"map\",[]]"),
            Repr::Empty => out.push_str("[\"set\",[]]"),
            Repr::One(atom) => atom.write_json(out),
            Repr::Set(elements) => {
                out.push_str("[\"set\",[");
                for (i, element) in elements.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    element.write_json(out);
                }
                out.push_str("]]");
            }
            Repr::Map(pairs) => {
                out.push_str("[\"map\",[");
                for (i, (key, value)) in pairs.iter().enumerate() {
                    out.push_str(if i > 0 { ",[" } else { "[" });
                    key.write_json(out);
                    out.push(',');
                    value.write_json(out);
                    out.push(']');
                }
                out.push_str("]]");
            }
        }
    }
}

fn check_size(
    json: &Json,
    class: &str,
    size: usize,
    column_type: &ColumnType,
    sizes: SizeCheck,
) -> Result<()> {
    let (min, max) = match sizes {
        SizeCheck::Strict => (column_type.min, column_type.max),
        SizeCheck::Difference => (0, column_type.max.saturating_mul(2)),
        SizeCheck::Any => (0, u32::MAX),
    };
    if size >= min as usize && size <= max as usize {
        return Ok(());
    }
    let details = if min == 1 && max == 1 {
        format!("{class} must have exactly one member but {size} are present")
    } else {
        format!("{class} must have {min} to {max} members but {size} are present")
    };
    Err(Error::syntax(json, details))
}

fn set_from_json(
    elements: &[Json],
    column_type: &ColumnType,
    mut symbols: Option<&mut SymbolTable>,
) -> Result<Datum> {
    let mut atoms = Vec::with_capacity(elements.len());
    for element in elements {
        atoms.push(
            column_type
                .key
                .atom_from_json(element, symbols.as_deref_mut())?,
        );
    }
    Datum::from_set(atoms).ok_or_else(|| Error::general("set contains duplicate"))
}

fn map_from_json(
    json: &Json,
    column_type: &ColumnType,
    mut symbols: Option<&mut SymbolTable>,
    sizes: SizeCheck,
) -> Result<Datum> {
    let inner = match json {
        Json::Array(outer) => match outer.as_slice() {
            [Json::String(tag), Json::Array(inner)] if &**tag == "map" => Some(inner),
            _ => None,
        },
        _ => None,
    };
    let (Some(inner), Some(value_type)) = (inner, &column_type.value) else {
        return Err(Error::syntax(json, "expected [\"map\", <array>]"));
    };
    check_size(json, "map", inner.len(), column_type, sizes)?;
    let mut pairs = Vec::with_capacity(inner.len());
    for element in inner {
        let Some([key, value]) = element.as_array() else {
            return Err(Error::syntax(element, "expected 2-element array"));
        };
        let key = column_type
            .key
            .atom_from_json(key, symbols.as_deref_mut())?;
        let value = value_type.atom_from_json(value, symbols.as_deref_mut())?;
        pairs.push((key, value));
    }
    Datum::from_map(pairs).ok_or_else(|| Error::general("map contains duplicate key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(column_type: &str, text: &str) -> String {
        let parse = |text: &str| {
            let json = json::parse(format!("[{text}]").as_bytes()).expect("valid");
            json.as_array().expect("array")[0].clone()
        };
        let column_type = ColumnType::from_json(&parse(column_type)).expect("valid");
        match Datum::from_json(&parse(text), &column_type, None) {
            Ok(datum) => {
                let mut text = String::new();
                datum.write_json(&column_type, &mut text);
                assert_eq!(text, datum.to_json_of(&column_type).to_string());
                text
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn datums_are_read_and_written() {
        let many = r#"{"key":"integer","min":0,"max":"unlimited"}"#;
        let map = r#"{"key":"integer","value":"boolean","min":0,"max":"unlimited"}"#;
        for (column_type, text, printed) in [
            (r#""integer""#, r#"["set",[1]]"#, "1"),
            (many, r#"["set",[]]"#, r#"["set",[]]"#),
            (many, r#"["set",[2,0,1]]"#, r#"["set",[0,1,2]]"#),
            (map, r#"["map",[]]"#, r#"["map",[]]"#),
            (
                map,
                r#"["map",[[3,false],[0,true]]]"#,
                r#"["map",[[0,true],[3,false]]]"#,
            ),
            (
                many,
                r#"["set",[1,2,1]]"#,
                "ovsdb error: set contains duplicate",
            ),
            (
                map,
                r#"["map",[[1,true],[1,false]]]"#,
                "ovsdb error: map contains duplicate key",
            ),
            (
                r#""integer""#,
                r#"["set",[]]"#,
                r#"syntax "["set",[]]": syntax error: set must have exactly one member but 0 are present"#,
            ),
            (
                map,
                r#"["set",[]]"#,
                r#"syntax "["set",[]]": syntax error: expected ["map", <array>]"#,
            ),
            (
                map,
                r#"["map",[1]]"#,
                r#"syntax "1": syntax error: expected 2-element array"#,
            ),
        ] {
            assert_eq!(round(column_type, text), printed);
        }
    }

    #[test]
    fn a_datum_is_small() {
        assert!(size_of::<Datum>() <= 24);
    }
}
