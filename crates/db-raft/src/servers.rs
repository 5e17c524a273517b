//! The servers of a cluster: ids and addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use db_model::{Error, Result, Uuid, parse_uuid};
use json::{Json, Object};

use crate::address::check_address;
use crate::short_id;

/// A cluster's servers, as an entry of the log names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Servers(BTreeMap<Uuid, Arc<str>>);

/// Checks the JSON of an address.
fn address_of(json: &Json) -> Result<Arc<str>> {
    match json {
        Json::String(address) => check_address(address).map(|()| Arc::clone(address)),
        _ => Err(Error::syntax(json, "server address is not string")),
    }
}

impl Servers {
    /// Reads `{ID: ADDRESS, ...}`.
    ///
    /// # Errors
    /// There is no server, or something is not an id or an address.
    pub fn from_json(json: &Json) -> Result<Self> {
        let Some(object) = json.as_object() else {
            return Err(Error::syntax(json, "servers must be JSON object"));
        };
        if object.is_empty() {
            return Err(Error::syntax(json, "must have at least one server"));
        }
        let mut servers = BTreeMap::new();
        for (id, address) in object.iter() {
            let id =
                parse_uuid(id).ok_or_else(|| Error::syntax(json, format!("{id} is not a UUID")))?;
            servers.insert(id, address_of(address)?);
        }
        Ok(Self(servers))
    }

    /// The JSON form.
    pub fn to_json(&self) -> Json {
        let members = self.iter();
        let members = members.map(|(id, address)| (id.to_string().into(), address.clone().into()));
        Json::Object(members.collect::<Object>())
    }

    /// Ids and addresses, in order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = (Uuid, &Arc<str>)> {
        self.0.iter().map(|(id, address)| (*id, address))
    }

    /// Whether the server is among them.
    pub fn contains(&self, id: Uuid) -> bool {
        self.0.contains_key(&id)
    }
}

impl FromIterator<(Uuid, Arc<str>)> for Servers {
    fn from_iter<I: IntoIterator<Item = (Uuid, Arc<str>)>>(servers: I) -> Self {
        Self(servers.into_iter().collect())
    }
}

impl std::fmt::Display for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, (id, address)) in self.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{}({address})", short_id(id))?;
        }
        Ok(())
    }
}

/// Reads an array of addresses.
///
/// # Errors
/// It is empty, or something in it is not an address.
pub(crate) fn addresses_from_json(json: &Json) -> Result<BTreeSet<Arc<str>>> {
    let elements = json.as_array().unwrap_or_default();
    if elements.is_empty() {
        let details = "at least one remote address is required";
        return Err(Error::syntax(json, details));
    }
    elements.iter().map(address_of).collect()
}

/// The JSON form of addresses.
pub(crate) fn addresses_to_json(addresses: &BTreeSet<Arc<str>>) -> Json {
    Json::Array(addresses.iter().map(|a| a.clone().into()).collect())
}
