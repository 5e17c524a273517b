//! What an entry of the log carries for the database.

use std::sync::Arc;

use db_model::{Error, Result};
use json::Json;

/// The JSON of an entry or snapshot: `[SCHEMA, TRANSACTION]`, either of which may be null.
///
/// The text is kept as long as the entry, to be sent and written; the parsed form only until
/// the database has taken it.
#[derive(Clone, Debug)]
pub struct Data {
    text: Arc<str>,
    parsed: Option<Arc<Json>>,
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Data {
    /// From text that is JSON.
    pub fn from_text(text: impl Into<Arc<str>>) -> Self {
        Self {
            text: text.into(),
            parsed: None,
        }
    }

    /// From JSON.
    pub fn from_json(json: &Json) -> Self {
        let parsed = match json {
            Json::Serialized(_) => None,
            _ => Some(Arc::new(json.clone())),
        };
        Self {
            text: json.to_string().into(),
            parsed,
        }
    }

    /// The text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// As JSON to be written or sent.
    pub fn to_json(&self) -> Json {
        Json::Serialized(Arc::clone(&self.text))
    }

    /// The JSON, taken apart.
    ///
    /// # Errors
    /// The text was not JSON.
    pub fn parse(&self) -> Result<Arc<Json>> {
        match &self.parsed {
            Some(parsed) => Ok(Arc::clone(parsed)),
            None => json::parse(self.text.as_bytes())
                .map(Arc::new)
                .map_err(|error| Error::general(format!("invalid commit format ({error})"))),
        }
    }

    /// Gives up the parsed form.
    pub(crate) fn forget_parsed(&mut self) {
        self.parsed = None;
    }
}
