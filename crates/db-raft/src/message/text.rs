//! Messages in words, for the log.

use std::fmt;

use super::{Body, Message};
use crate::short_id;

impl fmt::Display for Message {
    /// The message without the server that it is to or from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.body.method())?;
        if let Some(comment) = &self.comment {
            write!(f, " \"{comment}\"")?;
        }
        f.write_str(":")?;
        if let Some(term) = self.body.term() {
            write!(f, " term={term}")?;
        }
        self.body.describe(f)
    }
}

impl Body {
    /// All but the term.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hello { address } | Self::AddServer { address } => {
                write!(f, " address=\"{address}\"")
            }
            Self::Append(append) => write!(
                f,
                " prev_log_index={} prev_log_term={} leader_commit={} n_entries={}",
                append.prev_log_index,
                append.prev_log_term,
                append.leader_commit,
                append.entries.len()
            ),
            Self::AppendReply(reply) => {
                let result = reply.result.name();
                write!(f, " log_end={} result=\"{result}\"", reply.log_end)
            }
            Self::Vote(vote) => {
                write!(f, " last_log_index={}", vote.last_log_index)?;
                write!(f, " last_log_term={}", vote.last_log_term)?;
                if vote.leadership_transfer {
                    f.write_str(" leadership_transfer=true")?;
                }
                describe_prevote(f, vote.is_prevote)
            }
            Self::VoteReply {
                vote, is_prevote, ..
            } => {
                write!(f, " vote={}", short_id(*vote))?;
                describe_prevote(f, *is_prevote)
            }
            Self::AddServerReply {
                success,
                remote_addresses,
            } => {
                write!(f, " success={success}")?;
                if !remote_addresses.is_empty() {
                    let all: Vec<&str> = remote_addresses.iter().map(|a| &**a).collect();
                    write!(f, " remote_addresses=[{}]", all.join(", "))?;
                }
                Ok(())
            }
            Self::RemoveServer { sid } => write!(f, " server={}", short_id(*sid)),
            Self::RemoveServerReply { success, .. } => write!(f, " success={success}"),
            Self::InstallSnapshot(request) => write!(
                f,
                " last_index={} last_term={} last_eid={} election_timer={} last_servers={}",
                request.last_index,
                request.last_term,
                request.last_eid,
                request.election_timer,
                request.last_servers
            ),
            Self::InstallSnapshotReply {
                last_index,
                last_term,
                ..
            } => write!(f, " last_index={last_index} last_term={last_term}"),
            Self::BecomeLeader { .. } => Ok(()),
            Self::Execute {
                data,
                prereq,
                result,
            } => write!(f, " prereq={prereq} result={result} data={}", data.text()),
            Self::ExecuteReply {
                result,
                status,
                commit_index,
            } => {
                write!(f, " result={result} status=\"{}\"", status.name())?;
                if *commit_index != 0 {
                    write!(f, " commit_index={commit_index}")?;
                }
                Ok(())
            }
        }
    }
}

fn describe_prevote(f: &mut fmt::Formatter<'_>, is_prevote: bool) -> fmt::Result {
    f.write_str(if is_prevote { " is_prevote=true" } else { "" })
}
