//! The text of string atoms.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// How many bytes are kept in place: what two words and most of a third hold.
const SHORT: usize = 22;

/// A text that is never changed.  Short ones, which is what most strings of databases are, take
/// no allocation; long ones are shared by clones.
#[derive(Clone)]
pub struct Text(Repr);

#[derive(Clone)]
enum Repr {
    Short {
        length: u8,
        bytes: [u8; SHORT],
    },
    /// More than [`SHORT`] bytes.
    Long(Arc<str>),
}

impl Text {
    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // It was made of a whole text.
            Repr::Short { .. } => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Repr::Long(text) => text,
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Short { length, bytes } => &bytes[..usize::from(*length)],
            Repr::Long(text) => text.as_bytes(),
        }
    }

    fn short(text: &str) -> Option<Self> {
        let mut bytes = [0; SHORT];
        bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        let length = text.len() as u8;
        Some(Self(Repr::Short { length, bytes }))
    }

    /// The text as what JSON values share.
    pub fn to_shared(&self) -> Arc<str> {
        match &self.0 {
            Repr::Short { .. } => self.as_str().into(),
            Repr::Long(text) => Arc::clone(text),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::short(text).unwrap_or_else(|| Self(Repr::Long(text.into())))
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&Arc<str>> for Text {
    fn from(text: &Arc<str>) -> Self {
        Self::short(text).unwrap_or_else(|| Self(Repr::Long(Arc::clone(text))))
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        Self::short(&text).unwrap_or(Self(Repr::Long(text)))
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Long(a), Repr::Long(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
            _ => self.as_bytes().cmp(other.as_bytes()),
        }
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Long(a), Repr::Long(b)) if Arc::ptr_eq(a, b) => true,
            _ => self.as_bytes() == other.as_bytes(),
        }
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_lengths_are_what_they_were_made_of() {
        assert_eq!(size_of::<Text>(), 24);
        let mut all: Vec<String> = (0..60).map(|n| "xyz".repeat(n)[..n].to_owned()).collect();
        all.extend([
            "é".repeat(11),
            "é".repeat(12),
            format!("x{}", "é".repeat(11)),
        ]);
        for a in &all {
            let text = Text::from(a);
            assert_eq!(text.as_str(), a);
            assert_eq!(Text::from(Arc::<str>::from(a.as_str())), text);
            assert_eq!(&*text.to_shared(), a.as_str());
            for b in &all {
                let other = Text::from(b);
                assert_eq!(text.cmp(&other), a.cmp(b));
                assert_eq!(text == other, a == b);
            }
        }
    }
}
