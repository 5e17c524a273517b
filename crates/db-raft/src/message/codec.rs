//! Messages as JSON-RPC notifications, and back.

use std::collections::BTreeSet;
use std::sync::Arc;

use db_model::{Error, Kinds, Members, Result, Uuid};
use json::{Json, Object};

use super::{Append, AppendReply, AppendResult, Body, InstallSnapshot, Message, Status, Vote};
use crate::data::Data;
use crate::entry::Entry;
use crate::fields::{
    optional_bool, optional_str, optional_u64, optional_uuid, put_u64, put_uuid, required_str,
    required_u64, required_uuid,
};
use crate::servers::{Servers, addresses_from_json, addresses_to_json};
use crate::short_id;

/// From this term on there would be no room for later ones in the file.
const TOO_LATE: u64 = 1 << 60;

impl AppendResult {
    const ALL: [Self; 3] = [Self::Ok, Self::Inconsistency, Self::IoError];

    /// The words for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Inconsistency => "inconsistency",
            Self::IoError => "I/O error",
        }
    }
}

impl Status {
    const ALL: [Self; 8] = [
        Self::Incomplete,
        Self::Success,
        Self::NotLeader,
        Self::BadPrereq,
        Self::LostLeadership,
        Self::Shutdown,
        Self::IoError,
        Self::Timeout,
    ];

    /// The words for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Incomplete => "operation still in progress",
            Self::Success => "success",
            Self::NotLeader => "not leader",
            Self::BadPrereq => "prerequisite check failed",
            Self::LostLeadership => "lost leadership",
            Self::Shutdown => "server shutdown",
            Self::IoError => "I/O error",
            Self::Timeout => "timeout",
        }
    }
}

impl Message {
    /// The parameter of the notification that says this, from server `sid` of cluster `cid`
    /// (all zeros if it is not known).  The method is [`Body::method`].
    pub fn to_params(&self, cid: Uuid, sid: Uuid) -> Vec<Json> {
        let mut object = Object::new();
        if !cid.is_nil() {
            put_uuid(&mut object, "cluster", cid);
        }
        if !self.peer.is_nil() {
            put_uuid(&mut object, "to", self.peer);
        }
        put_uuid(&mut object, "from", sid);
        if let Some(comment) = &self.comment {
            object.insert("comment", Arc::clone(comment));
        }
        self.body.write(&mut object);
        vec![Json::Object(object)]
    }

    /// Reads a notification that came to server `sid` of cluster `cid`; if that is not known
    /// yet (all zeros), it becomes what the message says.
    ///
    /// # Errors
    /// It is not a message for this server, or malformed.
    pub fn from_params(method: &str, params: &Json, cid: &mut Uuid, sid: Uuid) -> Result<Self> {
        if !METHODS.contains(&method) {
            return Err(Error::general(format!("unknown method {method}")));
        }
        let elements = params.as_array().unwrap_or_default();
        let [params] = elements else {
            return Err(Error::general(format!(
                "{method} RPC has {} parameters (expected 1)",
                elements.len()
            )));
        };
        let mut reader = Members::new(params, format!("raft {method} RPC"));
        let members = &mut reader;
        let is_add = method == "add_server_request";
        let cluster = uuid(members, "cluster", is_add);
        if let Some(cluster) = cluster
            && cluster != *cid
        {
            if cid.is_nil() {
                *cid = cluster;
                log::info!(target: "raft", "learned cluster ID {}", short_id(cluster));
            } else {
                let (cluster, cid) = (short_id(cluster), short_id(*cid));
                members.fail(format!("wrong cluster {cluster} (expected {cid})"));
            }
        }
        let to = uuid(members, "to", is_add || method == "hello_request");
        if let Some(to) = to.filter(|to| *to != sid) {
            members.fail(format!(
                "misrouted message (addressed to {} but we're {})",
                short_id(to),
                short_id(sid)
            ));
        }
        let peer = required_uuid(members, "from");
        let comment = optional_str(members, "comment").map(Arc::from);
        let body = Body::read(method, members)?;
        if body.term().is_some_and(|term| term >= TOO_LATE) {
            members.fail("term is out of range".to_owned());
        }
        reader.finish()?;
        Ok(Self {
            peer,
            comment,
            body,
        })
    }
}

fn uuid(members: &mut Members<'_>, name: &str, optional: bool) -> Option<Uuid> {
    if optional {
        optional_uuid(members, name)
    } else {
        Some(required_uuid(members, name)).filter(|_| !members.has_failed())
    }
}

const METHODS: [&str; 14] = [
    "hello_request",
    "append_request",
    "append_reply",
    "vote_request",
    "vote_reply",
    "add_server_request",
    "add_server_reply",
    "remove_server_request",
    "remove_server_reply",
    "install_snapshot_request",
    "install_snapshot_reply",
    "become_leader",
    "execute_command_request",
    "execute_command_reply",
];

impl Body {
    fn read(method: &str, members: &mut Members<'_>) -> Result<Self> {
        Ok(match method {
            "hello_request" => Self::Hello {
                address: required_str(members, "address").into(),
            },
            "append_request" => Self::Append(Append::read(members)?),
            "append_reply" => Self::AppendReply(AppendReply::read(members)),
            "vote_request" => Self::Vote(Vote {
                term: required_u64(members, "term"),
                last_log_index: required_u64(members, "last_log_index"),
                last_log_term: required_u64(members, "last_log_term"),
                leadership_transfer: optional_bool(members, "leadership_transfer"),
                is_prevote: optional_bool(members, "is_prevote"),
            }),
            "vote_reply" => Self::VoteReply {
                term: required_u64(members, "term"),
                vote: required_uuid(members, "vote"),
                is_prevote: optional_bool(members, "is_prevote"),
            },
            "add_server_request" => Self::AddServer {
                address: required_str(members, "address").into(),
            },
            "add_server_reply" => Self::AddServerReply {
                success: required_bool(members, "success"),
                remote_addresses: match members.optional("remote_addresses", Kinds::ARRAY) {
                    Some(addresses) => addresses_from_json(addresses)?,
                    None => BTreeSet::new(),
                },
            },
            "remove_server_request" => Self::RemoveServer {
                sid: required_uuid(members, "server_id"),
            },
            "remove_server_reply" => Self::RemoveServerReply {
                success: required_bool(members, "success"),
                target: optional_uuid(members, "target_server").filter(|target| !target.is_nil()),
            },
            "install_snapshot_request" => {
                Self::InstallSnapshot(Box::new(InstallSnapshot::read(members)?))
            }
            "install_snapshot_reply" => Self::InstallSnapshotReply {
                term: required_u64(members, "term"),
                last_index: required_u64(members, "last_index"),
                last_term: required_u64(members, "last_term"),
            },
            "become_leader" => Self::BecomeLeader {
                term: required_u64(members, "term"),
            },
            "execute_command_request" => Self::Execute {
                data: required_data(members),
                prereq: required_uuid(members, "prereq"),
                result: required_uuid(members, "result"),
            },
            _ => Self::ExecuteReply {
                result: required_uuid(members, "result"),
                status: {
                    let name = required_str(members, "status");
                    one_of(members, "status", name, &Status::ALL, Status::name)
                        .unwrap_or(Status::Incomplete)
                },
                commit_index: optional_u64(members, "commit_index"),
            },
        })
    }

    fn write(&self, object: &mut Object) {
        if let Some(term) = self.term() {
            put_u64(object, "term", term);
        }
        match self {
            Self::Hello { address } | Self::AddServer { address } => {
                object.insert("address", Arc::clone(address));
            }
            Self::Append(append) => append.write(object),
            Self::AppendReply(reply) => reply.write(object),
            Self::Vote(vote) => {
                put_u64(object, "last_log_index", vote.last_log_index);
                put_u64(object, "last_log_term", vote.last_log_term);
                put_true(object, "leadership_transfer", vote.leadership_transfer);
                put_true(object, "is_prevote", vote.is_prevote);
            }
            Self::VoteReply {
                vote, is_prevote, ..
            } => {
                put_uuid(object, "vote", *vote);
                put_true(object, "is_prevote", *is_prevote);
            }
            Self::AddServerReply {
                success,
                remote_addresses,
            } => {
                object.insert("success", *success);
                if !remote_addresses.is_empty() {
                    object.insert("remote_addresses", addresses_to_json(remote_addresses));
                }
            }
            Self::RemoveServer { sid } => put_uuid(object, "server_id", *sid),
            Self::RemoveServerReply { success, target } => {
                if let Some(target) = target {
                    put_uuid(object, "target_server", *target);
                }
                object.insert("success", *success);
            }
            Self::InstallSnapshot(request) => request.write(object),
            Self::InstallSnapshotReply {
                last_index,
                last_term,
                ..
            } => {
                put_u64(object, "last_index", *last_index);
                put_u64(object, "last_term", *last_term);
            }
            Self::BecomeLeader { .. } => {}
            Self::Execute {
                data,
                prereq,
                result,
            } => {
                object.insert("data", data.to_json());
                put_uuid(object, "prereq", *prereq);
                put_uuid(object, "result", *result);
            }
            Self::ExecuteReply {
                result,
                status,
                commit_index,
            } => {
                put_uuid(object, "result", *result);
                object.insert("status", status.name());
                if *commit_index != 0 {
                    put_u64(object, "commit_index", *commit_index);
                }
            }
        }
    }
}

impl Append {
    fn read(members: &mut Members<'_>) -> Result<Self> {
        let (term, prev_log_index) = (
            required_u64(members, "term"),
            required_u64(members, "prev_log_index"),
        );
        let prev_log_term = required_u64(members, "prev_log_term");
        let leader_commit = required_u64(members, "leader_commit");
        let entries = members.required("log", Kinds::ARRAY);
        let entries = entries.and_then(Json::as_array).unwrap_or_default();
        Ok(Self {
            term,
            prev_log_index,
            prev_log_term,
            leader_commit,
            entries: entries
                .iter()
                .map(Entry::from_json)
                .collect::<Result<_>>()?,
        })
    }

    fn write(&self, object: &mut Object) {
        put_u64(object, "prev_log_index", self.prev_log_index);
        put_u64(object, "prev_log_term", self.prev_log_term);
        put_u64(object, "leader_commit", self.leader_commit);
        let entries = self.entries.iter().map(Entry::to_json);
        object.insert("log", Json::Array(entries.collect()));
    }
}

impl AppendReply {
    fn read(members: &mut Members<'_>) -> Self {
        Self {
            term: required_u64(members, "term"),
            log_end: required_u64(members, "log_end"),
            prev_log_index: required_u64(members, "prev_log_index"),
            prev_log_term: required_u64(members, "prev_log_term"),
            n_entries: required_u64(members, "n_entries"),
            result: {
                let name = required_str(members, "result");
                one_of(
                    members,
                    "result",
                    name,
                    &AppendResult::ALL,
                    AppendResult::name,
                )
                .unwrap_or(AppendResult::Inconsistency)
            },
        }
    }

    fn write(&self, object: &mut Object) {
        put_u64(object, "log_end", self.log_end);
        put_u64(object, "prev_log_index", self.prev_log_index);
        put_u64(object, "prev_log_term", self.prev_log_term);
        put_u64(object, "n_entries", self.n_entries);
        object.insert("result", self.result.name());
    }
}

impl InstallSnapshot {
    fn read(members: &mut Members<'_>) -> Result<Self> {
        let servers = members.required("last_servers", Kinds::OBJECT);
        Ok(Self {
            last_servers: servers
                .map(Servers::from_json)
                .transpose()?
                .unwrap_or_default(),
            term: required_u64(members, "term"),
            last_index: required_u64(members, "last_index"),
            last_term: required_u64(members, "last_term"),
            last_eid: required_uuid(members, "last_eid"),
            election_timer: required_u64(members, "election_timer"),
            data: required_data(members),
        })
    }

    fn write(&self, object: &mut Object) {
        put_u64(object, "last_index", self.last_index);
        put_u64(object, "last_term", self.last_term);
        object.insert("last_servers", self.last_servers.to_json());
        put_uuid(object, "last_eid", self.last_eid);
        put_u64(object, "election_timer", self.election_timer);
        object.insert("data", self.data.to_json());
    }
}

fn required_bool(members: &mut Members<'_>, name: &str) -> bool {
    let json = members.required(name, Kinds::BOOLEAN);
    json.and_then(Json::as_bool) == Some(true)
}

fn required_data(members: &mut Members<'_>) -> Data {
    let json = members.required("data", Kinds::OBJECT.or(Kinds::ARRAY));
    json.map_or_else(|| Data::from_text("null"), Data::from_json)
}

fn put_true(object: &mut Object, name: &str, value: bool) {
    if value {
        object.insert(name, true);
    }
}

/// The one of `all` whose name is `text`; a fault if there is none.
fn one_of<T: Copy>(
    members: &mut Members<'_>,
    what: &str,
    text: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Option<T> {
    let found = all.iter().copied().find(|&value| name(value) == text);
    if found.is_none() {
        members.fail(format!("unknown {what} \"{text}\""));
    }
    found
}
