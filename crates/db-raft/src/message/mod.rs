//! What servers of a cluster say to each other: JSON-RPC notifications whose one parameter is
//! an object with the cluster, the sender, the receiver and what is said.

mod codec;
mod text;

use std::collections::BTreeSet;
use std::sync::Arc;

use db_model::Uuid;

use crate::data::Data;
use crate::entry::Entry;
use crate::servers::Servers;

/// A message, to or from another server.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The other server: the receiver of what is sent, the sender of what was received.  All
    /// zeros if it is not known.
    pub peer: Uuid,
    /// Words for people; a request with the comment `heartbeat` is answered with that, too.
    pub comment: Option<Arc<str>>,
    /// What is said.
    pub body: Body,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// `hello_request`: a server introduces itself on a new connection.
    Hello {
        /// The sender's address.
        address: Arc<str>,
    },
    /// `append_request`.
    Append(Append),
    /// `append_reply`.
    AppendReply(AppendReply),
    /// `vote_request`.
    Vote(Vote),
    /// `vote_reply`.
    VoteReply {
        /// The sender's term.
        term: u64,
        /// For whom it votes in that term.
        vote: Uuid,
        /// Whether it only would vote so.
        is_prevote: bool,
    },
    /// `add_server_request`: the sender wants to join.
    AddServer {
        /// Its address.
        address: Arc<str>,
    },
    /// `add_server_reply`.
    AddServerReply {
        /// Whether it has joined.
        success: bool,
        /// Servers that it may ask as well.
        remote_addresses: BTreeSet<Arc<str>>,
    },
    /// `remove_server_request`.
    RemoveServer {
        /// Who is to be removed.
        sid: Uuid,
    },
    /// `remove_server_reply`.
    RemoveServerReply {
        /// Whether it was removed.
        success: bool,
        /// Who; `None` if it is the receiver.
        target: Option<Uuid>,
    },
    /// `install_snapshot_request`.
    InstallSnapshot(Box<InstallSnapshot>),
    /// `install_snapshot_reply`.
    InstallSnapshotReply {
        /// The sender's term.
        term: u64,
        /// The request's index.
        last_index: u64,
        /// The term of that entry.
        last_term: u64,
    },
    /// `become_leader`: the leader hands over.
    BecomeLeader {
        /// The leader's term.
        term: u64,
    },
    /// `execute_command_request`: a follower passes data on to the leader.
    Execute {
        /// The data.
        data: Data,
        /// The id of the data that it must follow.
        prereq: Uuid,
        /// Its own id.
        result: Uuid,
    },
    /// `execute_command_reply`.
    ExecuteReply {
        /// The id of the data.
        result: Uuid,
        /// What became of it.
        status: Status,
        /// The index at which it was committed; 0 if it was not.
        commit_index: u64,
    },
}

/// A leader's entries, or a sign of life without any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Append {
    /// The leader's term.
    pub term: u64,
    /// Index of the entry before the first of `entries`.
    pub prev_log_index: u64,
    /// The term of that entry.
    pub prev_log_term: u64,
    /// Up to where the leader knows the log to be committed.
    pub leader_commit: u64,
    /// The entries.
    pub entries: Vec<Entry>,
}

/// The answer to [`Append`].
#[derive(Clone, Debug, PartialEq)]
pub struct AppendReply {
    /// The sender's term.
    pub term: u64,
    /// Index of the sender's last entry plus 1.
    pub log_end: u64,
    /// From the request.
    pub prev_log_index: u64,
    /// From the request.
    pub prev_log_term: u64,
    /// Number of entries in the request.
    pub n_entries: u64,
    /// What became of it.
    pub result: AppendResult,
}

/// What became of entries that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendResult {
    /// They are in the log.
    Ok,
    /// The log does not fit before them.
    Inconsistency,
    /// They could not be written.
    IoError,
}

/// A candidate asks for a vote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vote {
    /// The candidate's term.
    pub term: u64,
    /// Index of its last entry.
    pub last_log_index: u64,
    /// Term of its last entry.
    pub last_log_term: u64,
    /// Whether a leader told it to.
    pub leadership_transfer: bool,
    /// Whether it only asks if it would get the vote.
    pub is_prevote: bool,
}

/// A leader's snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct InstallSnapshot {
    /// The leader's term.
    pub term: u64,
    /// Index of the last entry that it covers.
    pub last_index: u64,
    /// The term of that entry.
    pub last_term: u64,
    /// The id of the last data.
    pub last_eid: Uuid,
    /// The cluster's servers.
    pub last_servers: Servers,
    /// The election timer in milliseconds.
    pub election_timer: u64,
    /// The database.
    pub data: Data,
}

/// What becomes of data that are to be appended to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// That is not known yet.
    Incomplete,
    /// They are committed.
    Success,
    /// There is no leader, or it is another one.
    NotLeader,
    /// Other data came before.
    BadPrereq,
    /// The leader that had them leads no more; they may be committed yet.
    LostLeadership,
    /// The server is not, or no more, part of the cluster.
    Shutdown,
    /// They could not be written.
    IoError,
    /// No answer came.
    Timeout,
}

impl Body {
    /// The method's name.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "hello_request",
            Self::Append(_) => "append_request",
            Self::AppendReply(_) => "append_reply",
            Self::Vote(_) => "vote_request",
            Self::VoteReply { .. } => "vote_reply",
            Self::AddServer { .. } => "add_server_request",
            Self::AddServerReply { .. } => "add_server_reply",
            Self::RemoveServer { .. } => "remove_server_request",
            Self::RemoveServerReply { .. } => "remove_server_reply",
            Self::InstallSnapshot(_) => "install_snapshot_request",
            Self::InstallSnapshotReply { .. } => "install_snapshot_reply",
            Self::BecomeLeader { .. } => "become_leader",
            Self::Execute { .. } => "execute_command_request",
            Self::ExecuteReply { .. } => "execute_command_reply",
        }
    }

    /// The sender's term, if it matters to the receiver.
    pub(crate) const fn term(&self) -> Option<u64> {
        match self {
            Self::Append(Append { term, .. })
            | Self::AppendReply(AppendReply { term, .. })
            | Self::Vote(Vote { term, .. })
            | Self::VoteReply { term, .. }
            | Self::InstallSnapshotReply { term, .. }
            | Self::BecomeLeader { term } => Some(*term),
            Self::InstallSnapshot(request) => Some(request.term),
            _ => None,
        }
    }

    /// The vote in it, which must be on disk before it is sent.
    pub(crate) const fn cast_vote(&self) -> Option<Uuid> {
        match self {
            Self::VoteReply {
                vote,
                is_prevote: false,
                ..
            } => Some(*vote),
            _ => None,
        }
    }

    /// Up to where the log must be on disk before it is sent.
    pub(crate) const fn relies_on(&self) -> u64 {
        match self {
            Self::AppendReply(reply) => reply.log_end.saturating_sub(1),
            Self::Vote(vote) => vote.last_log_index,
            Self::InstallSnapshot(request) => request.last_index,
            Self::InstallSnapshotReply { last_index, .. } => *last_index,
            _ => 0,
        }
    }
}

impl Message {
    /// A message.
    pub const fn new(peer: Uuid, body: Body) -> Self {
        Self {
            peer,
            comment: None,
            body,
        }
    }

    /// The same with a comment.
    #[must_use]
    pub fn with_comment(mut self, comment: impl Into<Arc<str>>) -> Self {
        self.comment = Some(comment.into());
        self
    }

    /// Whether it is a sign of life, or the answer to one.
    pub fn is_heartbeat(&self) -> bool {
        self.comment.as_deref() == Some("heartbeat")
            && matches!(self.body, Body::Append(_) | Body::AppendReply(_))
    }
}
