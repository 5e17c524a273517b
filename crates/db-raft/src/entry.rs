//! An entry of the log.

use db_model::{Kinds, Members, Result, Uuid};
use json::{Json, Object};

use crate::data::Data;
use crate::fields::{optional_u64, put_u64, put_uuid, required_u64, required_uuid};
use crate::servers::Servers;

/// An entry of the log, or what a snapshot has in the place of one.
///
/// It carries data, the cluster's servers, a new election timer, or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The term in which a leader made it.
    pub term: u64,
    /// What it does to the database.
    pub data: Option<Data>,
    /// The id of its data; all zeros if it has none.
    pub eid: Uuid,
    /// The cluster's servers from this entry on.
    pub servers: Option<Servers>,
    /// The election timer from this entry on, in milliseconds; 0 if it does not change.
    pub election_timer: u64,
}

impl Entry {
    /// Reads an entry of a message.
    ///
    /// # Errors
    /// A member is missing, too much, or not what it should be.
    pub fn from_json(json: &Json) -> Result<Self> {
        let mut members = Members::new(json, "raft log entry");
        let term = required_u64(&mut members, "term");
        let mut entry = Self::read(&mut members)?;
        entry.term = term;
        members.finish()?;
        Ok(entry)
    }

    /// Reads all but the term.
    pub(crate) fn read(members: &mut Members<'_>) -> Result<Self> {
        let data = members.optional("data", Kinds::OBJECT.or(Kinds::ARRAY));
        let eid = match data {
            Some(_) => required_uuid(members, "eid"),
            None => Uuid::nil(),
        };
        let servers = members.optional("servers", Kinds::OBJECT);
        Ok(Self {
            term: 0,
            data: data.map(Data::from_json),
            eid,
            servers: servers.map(Servers::from_json).transpose()?,
            election_timer: optional_u64(members, "election_timer"),
        })
    }

    /// The JSON form in a message.
    pub fn to_json(&self) -> Json {
        let mut object = Object::new();
        put_u64(&mut object, "term", self.term);
        self.write(&mut object);
        Json::Object(object)
    }

    /// Adds all but the term.
    pub(crate) fn write(&self, object: &mut Object) {
        if let Some(data) = &self.data {
            object.insert("data", data.to_json());
            put_uuid(object, "eid", self.eid);
        }
        if let Some(servers) = &self.servers {
            object.insert("servers", servers.to_json());
        }
        if self.election_timer != 0 {
            put_u64(object, "election_timer", self.election_timer);
        }
    }
}
