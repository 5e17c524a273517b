//! Members of records and messages of kinds that only clusters have.

use db_model::{Kinds, Members, Uuid, parse_uuid};
use json::{Json, Object};

/// Terms and indexes count up from 0; none comes near this.
const TOO_LARGE: u64 = 1 << 62;

fn unsigned(members: &mut Members<'_>, name: &str, json: Option<&Json>) -> u64 {
    let integer = json.and_then(Json::as_integer).unwrap_or(0);
    let number = u64::try_from(integer)
        .ok()
        .filter(|number| *number < TOO_LARGE);
    if number.is_none() {
        members.fail(format!("{name} is out of range"));
    }
    number.unwrap_or(0)
}

/// An integer that must be there.
pub(crate) fn required_u64(members: &mut Members<'_>, name: &str) -> u64 {
    let json = members.required(name, Kinds::INTEGER);
    unsigned(members, name, json)
}

/// An integer that may be there; 0 if it is not.
pub(crate) fn optional_u64(members: &mut Members<'_>, name: &str) -> u64 {
    let json = members.optional(name, Kinds::INTEGER);
    unsigned(members, name, json)
}

fn to_uuid(members: &mut Members<'_>, name: &str, json: Option<&Json>) -> Option<Uuid> {
    let text = json?.as_str()?;
    let uuid = parse_uuid(text);
    if uuid.is_none() {
        members.fail(format!("{name} is not a valid UUID"));
    }
    uuid
}

/// A UUID that must be there; all zeros if it is not.
pub(crate) fn required_uuid(members: &mut Members<'_>, name: &str) -> Uuid {
    let json = members.required(name, Kinds::STRING);
    to_uuid(members, name, json).unwrap_or_default()
}

/// A UUID that may be there.
pub(crate) fn optional_uuid(members: &mut Members<'_>, name: &str) -> Option<Uuid> {
    let json = members.optional(name, Kinds::STRING);
    to_uuid(members, name, json)
}

/// A string that must be there; empty if it is not.
pub(crate) fn required_str<'a>(members: &mut Members<'a>, name: &str) -> &'a str {
    let json = members.required(name, Kinds::STRING);
    json.and_then(Json::as_str).unwrap_or_default()
}

/// A string that may be there.
pub(crate) fn optional_str<'a>(members: &mut Members<'a>, name: &str) -> Option<&'a str> {
    members.optional(name, Kinds::STRING).and_then(Json::as_str)
}

/// A truth value that may be there; false if it is not.
pub(crate) fn optional_bool(members: &mut Members<'_>, name: &str) -> bool {
    let json = members.optional(name, Kinds::BOOLEAN);
    json.and_then(Json::as_bool) == Some(true)
}

/// Adds an integer to an object.
pub(crate) fn put_u64(object: &mut Object, name: &str, value: u64) {
    object.insert(name, value.cast_signed());
}

/// Adds a UUID to an object.
pub(crate) fn put_uuid(object: &mut Object, name: &str, value: Uuid) {
    object.insert(name, value.to_string());
}
