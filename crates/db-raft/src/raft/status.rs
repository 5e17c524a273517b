//! What control commands tell and change.

use std::fmt::Write;

use base::Instant;
use db_model::Uuid;

use super::{Phase, Raft, Role};
use crate::entry::Entry;
use crate::message::{Body, Message};
use crate::{check_election_timer, short_id};

/// A connection, as `cluster/status` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What the server at the other end is called.
    pub nickname: String,
    /// Whether the other server made it.
    pub incoming: bool,
    /// Whether it is there at present.
    pub connected: bool,
}

impl Role {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Follower => "follower",
            Self::Candidate => "candidate",
            Self::Leader => "leader",
        }
    }
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::CatchUp => "adding: catchup",
            Self::CaughtUp => "adding: caught up",
            Self::Committing => "adding: committing",
            Self::Remove => "removing",
        }
    }
}

/// How well an id matches what was typed: the number of digits, if it begins so.
fn match_score(id: Uuid, typed: &str) -> usize {
    let id = id.to_string();
    let typed = typed.to_ascii_lowercase();
    if !typed.is_empty() && id.starts_with(&typed) {
        typed.len()
    } else {
        0
    }
}

impl Raft {
    /// What `cluster/status` says.
    pub fn status(&self, now: Instant, links: &[Link]) -> String {
        let mut out = String::new();
        // Writing to a `String` cannot fail.
        let _ = self.write_status(now, links, &mut out);
        out
    }

    fn write_status(&self, now: Instant, links: &[Link], s: &mut String) -> std::fmt::Result {
        writeln!(s, "{}\nName: {}", self.nickname, self.name)?;
        if self.cid.is_nil() {
            writeln!(s, "Cluster ID: not yet known")?;
        } else {
            writeln!(s, "Cluster ID: {} ({})", short_id(self.cid), self.cid)?;
        }
        writeln!(s, "Server ID: {} ({})", short_id(self.sid), self.sid)?;
        writeln!(
            s,
            "Address: {}\nStatus: {}",
            self.address,
            self.state_text()
        )?;
        if self.joining {
            let remotes: Vec<&str> = self.remote_addresses.iter().map(|a| &**a).collect();
            writeln!(s, "Remotes for joining: {}", remotes.join(" "))?;
        }
        if self.role == Role::Leader {
            let adding = self.add_servers.iter().map(|(sid, s)| ("Adding", sid, s));
            let removed = self
                .remove_server
                .iter()
                .map(|(sid, s)| ("Removing", sid, s));
            for (what, sid, server) in adding.chain(removed) {
                let (name, address) = (&server.nickname, &server.address);
                let (sid, phase) = (short_id(*sid), server.phase.name());
                writeln!(s, "{what} server {name} ({sid} at {address}) ({phase})")?;
            }
        }
        writeln!(s, "Role: {}\nTerm: {}", self.role.name(), self.term)?;
        writeln!(s, "Leader: {}", self.vote_text(self.leader))?;
        writeln!(s, "Vote: {}\n", self.vote_text(self.vote))?;
        if let Some(start) = self.election_start {
            let ago = now.since(start).as_millis();
            let why = if self.leadership_transfer {
                "leadership_transfer"
            } else {
                "timeout"
            };
            writeln!(s, "Last Election started {ago} ms ago, reason: {why}")?;
        }
        if let Some(won) = self.election_won {
            writeln!(
                s,
                "Last Election won: {} ms ago",
                now.since(won).as_millis()
            )?;
        }
        write!(s, "Election timer: {}", self.election_timer)?;
        if self.role == Role::Leader && self.election_timer_new != 0 {
            write!(s, " (changing to {})", self.election_timer_new)?;
        }
        let (start, end) = (self.log.start(), self.log.end());
        writeln!(s, "\nLog: [{start}, {end}]")?;
        let uncommitted = end - self.commit_index - 1;
        writeln!(s, "Entries not yet committed: {uncommitted}")?;
        let unapplied = end.saturating_sub(self.applied_index() + 1);
        writeln!(
            s,
            "Entries not yet applied: {unapplied}\nConnections:{}",
            links_text(links)
        )?;
        writeln!(s, "Disconnections: {}\nServers:", self.disconnections)?;
        self.write_servers(now, s)
    }

    fn write_servers(&self, now: Instant, s: &mut String) -> std::fmt::Result {
        for (sid, server) in &self.servers {
            let (name, address) = (&server.nickname, &server.address);
            write!(s, "    {name} ({} at {address})", short_id(*sid))?;
            if *sid == self.sid {
                s.push_str(" (self)");
            }
            if server.phase != Phase::Stable {
                write!(s, " ({})", server.phase.name())?;
            }
            if self.role == Role::Candidate && !server.vote.is_nil() {
                write!(s, " (voted for {})", self.nickname_of(server.vote))?;
            }
            if self.role == Role::Leader {
                let (next, matching) = (server.next_index, server.match_index);
                write!(s, " next_index={next} match_index={matching}")?;
            }
            if let Some(heard) = server.last_heard {
                write!(s, " last msg {} ms ago", now.since(heard).as_millis())?;
            }
            s.push('\n');
        }
        Ok(())
    }

    const fn state_text(&self) -> &'static str {
        if self.joining {
            "joining cluster"
        } else if self.leaving {
            "leaving cluster"
        } else if self.left {
            "left cluster"
        } else if self.failed {
            "failed"
        } else if self.candidate_retrying {
            "disconnected from the cluster (election timeout)"
        } else {
            "cluster member"
        }
    }

    /// `cluster/leave`.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn command_leave(&mut self, now: Instant) -> Result<(), String> {
        if self.leaving {
            Err("already in progress leaving cluster".to_owned())
        } else if self.joining {
            Err("can't leave while join in progress".to_owned())
        } else if self.failed {
            Err("can't leave after failure".to_owned())
        } else if self.is_alone() {
            Err("can't leave as the only server of the cluster".to_owned())
        } else {
            self.leave(now);
            Ok(())
        }
    }

    /// `cluster/kick`: removes the server that `name` means, an address or the beginning of
    /// an id.  Returns what is said.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn command_kick(&mut self, now: Instant, name: &str) -> Result<String, String> {
        self.now = now;
        let scores = self.servers.iter().map(|(sid, server)| {
            let is_address = *server.address == *name;
            let score = if is_address {
                usize::MAX
            } else {
                match_score(*sid, name)
            };
            (score, *sid)
        });
        let mut scores: Vec<(usize, Uuid)> = scores.collect();
        scores.sort_unstable_by(|a, b| b.cmp(a));
        let target = match scores[..] {
            [(score, sid)] if score > 0 => sid,
            [(best, sid), (next, _), ..] if best > next => sid,
            _ => return Err("unknown server".to_owned()),
        };
        if target == self.sid {
            self.command_leave(now)?;
            return Ok(String::new());
        }
        if self.role == Role::Leader {
            return self.kick(target);
        }
        let message = Message::new(self.leader, Body::RemoveServer { sid: target });
        if self.send(message.with_comment("via unixctl")) {
            Ok("sent removal request to leader".to_owned())
        } else {
            Err("failed to send removal request".to_owned())
        }
    }

    fn kick(&mut self, target: Uuid) -> Result<String, String> {
        let phase = |this: &Self| this.servers.get(&target).map(|s| s.phase);
        let before = phase(self);
        self.handle_remove_server(None, target);
        let (name, cluster) = (self.nickname_of(target), short_id(self.cid));
        let failed = |why: &str| {
            format!("request via unixctl to remove {name} from cluster {cluster} failed ({why})")
        };
        match before {
            Some(Phase::Committing) => Err(failed("committing")),
            Some(Phase::Remove) => Err(failed("in progress")),
            // It is the only one.
            _ if phase(self) == Some(Phase::Stable) => Err(failed("empty")),
            _ => Ok("started removal".to_owned()),
        }
    }

    /// `cluster/change-election-timer`.  Returns what is said.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn command_change_election_timer(
        &mut self,
        now: Instant,
        millis: u64,
    ) -> Result<&'static str, String> {
        self.now = now;
        if self.role != Role::Leader {
            return Err("election timer must be changed through leader.".to_owned());
        }
        if self.election_timer_new != 0 {
            return Err("election timer change pending.".to_owned());
        }
        if millis == self.election_timer {
            return Ok("change election timer to current value.");
        }
        if let Err(error) = check_election_timer(millis) {
            return Err(error.details().unwrap_or_default().to_owned());
        }
        // Followers that have not heard of it yet must not lose patience.
        if millis > self.election_timer * 2 {
            return Err(
                "election timer increase should not exceed the current value x 2.".to_owned(),
            );
        }
        self.election_timer_new = millis;
        self.append_entry(Entry {
            election_timer: millis,
            ..Entry::default()
        });
        Ok("change of election timer initiated.")
    }
}

fn links_text(links: &[Link]) -> String {
    let mut out = String::new();
    for link in links {
        let arrow = if link.incoming { "<-" } else { "->" };
        let (open, close) = if link.connected { ("", "") } else { ("(", ")") };
        // Writing to a `String` cannot fail.
        let _ = write!(out, " {open}{arrow}{}{close}", link.nickname);
    }
    out
}
