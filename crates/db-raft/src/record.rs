//! Records of a cluster server's file (ovsdb(5), "Clustered Format").
//!
//! The first record, [`Header`], says whose file it is and what the database was at some entry
//! of the log; the others, [`Record`], what came after.  Each is a JSON object, framed as in
//! a standalone database's file but with another word in front.

use std::collections::BTreeSet;
use std::sync::Arc;

use db_model::{Error, Kinds, Members, Result, Uuid};
use json::{Json, Object};

use crate::data::Data;
use crate::entry::Entry;
use crate::fields::{
    optional_str, optional_u64, optional_uuid, put_u64, put_uuid, required_str, required_u64,
    required_uuid,
};
use crate::servers::{Servers, addresses_from_json, addresses_to_json};

/// The first record of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The server's id.
    pub sid: Uuid,
    /// The cluster's id; all zeros while it is not known.
    pub cid: Uuid,
    /// The database's name.
    pub name: Arc<str>,
    /// Where other servers reach this one.
    pub local_address: Arc<str>,
    /// What the server knows of the cluster.
    pub membership: Membership,
}

/// How far a server belongs to its cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Membership {
    /// It is to join, by way of one of these addresses.
    Joining(BTreeSet<Arc<str>>),
    /// It has joined.
    Member {
        /// The index of the last entry that the snapshot covers; 0 if there is none.
        index: u64,
        /// The snapshot.
        snapshot: Entry,
    },
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// A member is missing, too much, or not what it should be.
    pub fn from_json(json: &Json) -> Result<Self> {
        let mut members = Members::new(json, "raft header");
        let sid = required_uuid(&mut members, "server_id");
        let name = required_str(&mut members, "name").into();
        let local_address: Arc<str> = required_str(&mut members, "local_address").into();
        let remotes = members.optional("remote_addresses", Kinds::ARRAY);
        let membership = match remotes {
            Some(remotes) => joining(remotes, &local_address, &mut members)?,
            None => member(&mut members)?,
        };
        let cid = match membership {
            Membership::Joining(_) => optional_uuid(&mut members, "cluster_id").unwrap_or_default(),
            Membership::Member { .. } => required_uuid(&mut members, "cluster_id"),
        };
        members.finish()?;
        Ok(Self {
            sid,
            cid,
            name,
            local_address,
            membership,
        })
    }

    /// The JSON form.
    pub fn to_json(&self) -> Json {
        let mut object = Object::new();
        put_uuid(&mut object, "server_id", self.sid);
        if !self.cid.is_nil() {
            put_uuid(&mut object, "cluster_id", self.cid);
        }
        object.insert("local_address", Arc::clone(&self.local_address));
        object.insert("name", Arc::clone(&self.name));
        match &self.membership {
            Membership::Joining(remotes) => {
                object.insert("remote_addresses", addresses_to_json(remotes));
            }
            Membership::Member { index, snapshot } => {
                if let Some(servers) = &snapshot.servers {
                    object.insert("prev_servers", servers.to_json());
                }
                if *index != 0 {
                    put_u64(&mut object, "prev_index", *index);
                    put_u64(&mut object, "prev_term", snapshot.term);
                    if let Some(data) = &snapshot.data {
                        object.insert("prev_data", data.to_json());
                    }
                    put_uuid(&mut object, "prev_eid", snapshot.eid);
                    if snapshot.election_timer != 0 {
                        let timer = snapshot.election_timer;
                        put_u64(&mut object, "prev_election_timer", timer);
                    }
                }
            }
        }
        Json::Object(object)
    }
}

fn joining(remotes: &Json, local: &str, members: &mut Members<'_>) -> Result<Membership> {
    let mut remotes = addresses_from_json(remotes)?;
    if remotes.remove(local) && remotes.is_empty() {
        members.fail(
            "at least one remote address (other than the local address) is required".to_owned(),
        );
    }
    Ok(Membership::Joining(remotes))
}

fn member(members: &mut Members<'_>) -> Result<Membership> {
    let servers = members.required("prev_servers", Kinds::OBJECT);
    let mut snapshot = Entry {
        servers: servers.map(Servers::from_json).transpose()?,
        ..Entry::default()
    };
    let index = optional_u64(members, "prev_index");
    if index != 0 {
        snapshot.data = members
            .required("prev_data", Kinds::ANY)
            .map(Data::from_json);
        snapshot.eid = required_uuid(members, "prev_eid");
        snapshot.term = required_u64(members, "prev_term");
        snapshot.election_timer = optional_u64(members, "prev_election_timer");
    }
    Ok(Membership::Member { index, snapshot })
}

/// A record after the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// A comment for people.
    pub comment: Option<String>,
    /// What it says.
    pub kind: Kind,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// The entry of the log at an index; what was there and after it is void.
    Entry {
        /// The index.
        index: u64,
        /// The entry.
        entry: Entry,
    },
    /// A new term has begun.
    Term(u64),
    /// The server's vote in a term.
    Vote {
        /// The term.
        term: u64,
        /// For whom.
        sid: Uuid,
    },
    /// Something of note: `left` if the server has left the cluster for good.
    Note(String),
    /// The entries up to this index are committed.
    CommitIndex(u64),
    /// Who leads in a term; for people only.
    Leader {
        /// The term.
        term: u64,
        /// The leader.
        sid: Uuid,
    },
}

impl From<Kind> for Record {
    fn from(kind: Kind) -> Self {
        Self {
            comment: None,
            kind,
        }
    }
}

impl Kind {
    /// The term that the record belongs to; 0 if to none.
    pub const fn term(&self) -> u64 {
        match self {
            Self::Entry { entry, .. } => entry.term,
            Self::Term(term) | Self::Vote { term, .. } | Self::Leader { term, .. } => *term,
            Self::Note(_) | Self::CommitIndex(_) => 0,
        }
    }

    fn read(members: &mut Members<'_>) -> Result<Self> {
        if let Some(note) = optional_str(members, "note") {
            return Ok(Self::Note(note.to_owned()));
        }
        let commit_index = optional_u64(members, "commit_index");
        if commit_index != 0 {
            return Ok(Self::CommitIndex(commit_index));
        }
        let term = required_u64(members, "term");
        if let Some(sid) = optional_uuid(members, "leader") {
            if sid.is_nil() {
                members.fail("record says leader is all-zeros SID".to_owned());
            }
            return Ok(Self::Leader { term, sid });
        }
        if let Some(sid) = optional_uuid(members, "vote") {
            if sid.is_nil() {
                members.fail("record votes for all-zeros SID".to_owned());
            }
            return Ok(Self::Vote { term, sid });
        }
        let index = optional_u64(members, "index");
        if index == 0 {
            return Ok(Self::Term(term));
        }
        let mut entry = Entry::read(members)?;
        entry.term = term;
        Ok(Self::Entry { index, entry })
    }

    fn write(&self, object: &mut Object) {
        let term = self.term();
        if !matches!(self, Self::Note(_) | Self::CommitIndex(_)) {
            put_u64(object, "term", term);
        }
        match self {
            Self::Entry { index, entry } => {
                put_u64(object, "index", *index);
                entry.write(object);
            }
            Self::Term(_) => {}
            Self::Vote { sid, .. } => put_uuid(object, "vote", *sid),
            Self::Note(note) => object.insert("note", note.as_str()),
            Self::CommitIndex(index) => put_u64(object, "commit_index", *index),
            Self::Leader { sid, .. } => put_uuid(object, "leader", *sid),
        }
    }
}

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    /// A member is missing, too much, or not what it should be.
    pub fn from_json(json: &Json) -> Result<Self> {
        let mut members = Members::new(json, "raft log record");
        let comment = optional_str(&mut members, "comment").map(str::to_owned);
        let kind = Kind::read(&mut members)?;
        members.finish()?;
        Ok(Self { comment, kind })
    }

    /// The JSON form.
    pub fn to_json(&self) -> Json {
        let mut object = Object::new();
        if let Some(comment) = self.comment.as_deref().filter(|c| !c.is_empty()) {
            object.insert("comment", comment);
        }
        self.kind.write(&mut object);
        Json::Object(object)
    }
}

/// The records of the file of a new cluster's first server, which reaches others at `address`.
/// `contents` is what the database begins with: `[SCHEMA, TRANSACTION]`.  `election_timer` in
/// milliseconds may be 0, for the usual one.
///
/// # Errors
/// The address or the timer is not one.
pub fn create_cluster(
    name: &str,
    address: &str,
    contents: Data,
    election_timer: u64,
    uuids: &mut db_model::UuidSource,
) -> Result<Vec<Json>> {
    crate::check_address(address)?;
    if election_timer != 0 {
        crate::check_election_timer(election_timer)?;
    }
    let sid = uuids.next_uuid();
    let header = Header {
        sid,
        cid: uuids.next_uuid(),
        name: name.into(),
        local_address: address.into(),
        membership: Membership::Member {
            index: 1,
            snapshot: Entry {
                term: 1,
                data: Some(contents),
                eid: uuids.next_uuid(),
                servers: Some(Servers::from_iter([(sid, address.into())])),
                election_timer: 0,
            },
        },
    };
    let mut records = vec![header.to_json()];
    if election_timer != 0 {
        let entry = Entry {
            term: 1,
            election_timer,
            ..Entry::default()
        };
        records.push(Record::from(Kind::Entry { index: 2, entry }).to_json());
    }
    Ok(records)
}

/// The record of the file of a server that is to join the cluster of which `remotes` are
/// servers; `cluster` is its id, if it is known.
///
/// # Errors
/// An address is not one, or is both local and remote; or the id is all zeros.
pub fn join_cluster(
    name: &str,
    address: &str,
    remotes: &[String],
    cluster: Option<Uuid>,
    uuids: &mut db_model::UuidSource,
) -> Result<Json> {
    crate::check_address(address)?;
    let remotes: BTreeSet<Arc<str>> = remotes
        .iter()
        .map(|remote| remote.as_str().into())
        .collect();
    for remote in &remotes {
        crate::check_address(remote)?;
        if **remote == *address {
            let details = "remote addresses cannot be the same as the local address";
            return Err(Error::general(details));
        }
    }
    if cluster.is_some_and(|cluster| cluster.is_nil()) {
        let details = "all-zero UUID is not valid cluster ID";
        return Err(Error::general(details));
    }
    let header = Header {
        sid: uuids.next_uuid(),
        cid: cluster.unwrap_or_default(),
        name: name.into(),
        local_address: address.into(),
        membership: Membership::Joining(remotes),
    };
    Ok(header.to_json())
}
