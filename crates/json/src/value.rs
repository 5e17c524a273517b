//! The JSON value.

use std::sync::Arc;

/// A JSON value.
///
/// Strings are shared, so that a value taken from a document costs no copy.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number of 64 bits.
    Integer(i64),
    /// Any other number; never infinite.
    Real(f64),
    /// A string.
    String(Arc<str>),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(Object),
    /// Text that is JSON already and is written as it stands: one serialised value that
    /// many messages share.  The parser never yields it.
    Serialized(Arc<str>),
}

impl Json {
    /// A string value.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// An empty object.
    pub fn object() -> Self {
        Self::Object(Object::new())
    }

    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements, if this is an array.
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The object, if this is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The integer, if this is one.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// The truth value, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    /// Member `name`, if this is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.as_object()?.get(name)
    }

    /// The kind of value, in words: `null`, `false`, `true`, `object`, `array`,
    /// `integer`, `real`, `string`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(false) => "false",
            Self::Boolean(true) => "true",
            Self::Integer(_) => "integer",
            Self::Real(_) => "real",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) | Self::Serialized(_) => "object",
        }
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}

impl From<Arc<str>> for Json {
    fn from(value: Arc<str>) -> Self {
        Self::String(value)
    }
}

impl From<Vec<Json>> for Json {
    fn from(value: Vec<Json>) -> Self {
        Self::Array(value)
    }
}

impl From<Object> for Json {
    fn from(value: Object) -> Self {
        Self::Object(value)
    }
}

/// The members of an object, sorted by name (byte order), each name once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    members: Vec<(Arc<str>, Json)>,
}

impl Object {
    /// An object without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes members in any order; of two with one name the later stays.
    pub(crate) fn from_unsorted(mut members: Vec<(Arc<str>, Json)>) -> Self {
        if !members.is_sorted_by(|a, b| a.0 < b.0) {
            members.sort_by(|a, b| a.0.cmp(&b.0));
            members.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    std::mem::swap(later, earlier);
                }
                same
            });
        }
        Self { members }
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.members.binary_search_by(|(n, _)| (**n).cmp(name))
    }

    /// The value of member `name`.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.position(name).ok().map(|i| &self.members[i].1)
    }

    /// The value of member `name`, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Json> {
        let i = self.position(name).ok()?;
        Some(&mut self.members[i].1)
    }

    /// Whether there is a member `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.position(name).is_ok()
    }

    /// Adds a member or replaces its value.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, value: impl Into<Json>) {
        let name = name.into();
        match self.position(&name) {
            Ok(i) => self.members[i].1 = value.into(),
            Err(i) => self.members.insert(i, (name, value.into())),
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, name: &str) -> Option<Json> {
        let i = self.position(name).ok()?;
        Some(self.members.remove(i).1)
    }

    /// The same object with one more member, for building in one expression.
    #[must_use]
    pub fn with(mut self, name: impl Into<Arc<str>>, value: impl Into<Json>) -> Self {
        self.insert(name, value);
        self
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The members in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Json)> {
        self.members.iter().map(|(name, value)| (name, value))
    }
}

impl FromIterator<(Arc<str>, Json)> for Object {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Json)>>(members: I) -> Self {
        Self::from_unsorted(members.into_iter().collect())
    }
}

impl IntoIterator for Object {
    type Item = (Arc<str>, Json);
    type IntoIter = std::vec::IntoIter<(Arc<str>, Json)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_equal_names_stays() {
        let members = [("b", 1i64), ("a", 2), ("b", 3), ("a", 4), ("b", 5)];
        let object: Object = members
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        assert_eq!(Json::from(object).to_string(), r#"{"a":4,"b":5}"#);
    }

    #[test]
    fn members_are_found_replaced_and_removed() {
        let mut object = Object::new().with("x", 1i64).with("a", "s");
        object.insert("x", 2i64);
        assert_eq!(object.get("x"), Some(&Json::Integer(2)));
        assert_eq!(object.remove("a"), Some("s".into()));
        assert_eq!((object.len(), object.contains("a")), (1, false));
    }
}
