//! `check-cluster`: whether the files of a cluster's servers agree, as Raft promises (figure
//! 3.2 of D. Ongaro's dissertation).

use std::collections::BTreeMap;
use std::path::Path;

use db_engine::store;
use db_model::Uuid;
use db_raft::record::{Header, Kind, Membership, Record};
use db_raft::{Entry, short_id};
use json::Json;

use super::Call;
use super::commands::text;
use crate::{Env, Exit};

/// One server's file.
struct Server {
    file: String,
    header: Header,
    snapshot: Entry,
    /// Index of the first of `entries`.
    start: u64,
    entries: Vec<Entry>,
}

impl Server {
    fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    fn entry(&self, index: u64) -> Option<&Entry> {
        let at = usize::try_from(index.checked_sub(self.start)?).ok()?;
        self.entries.get(at)
    }
}

/// What a server reported of who leads in a term.
struct Leader {
    reporter: usize,
    sid: Uuid,
    /// The end of the leader's log when it was elected; 0 if it did not report that itself.
    log_end: u64,
}

/// What all files say.
#[derive(Default)]
struct Cluster {
    servers: Vec<Server>,
    leaders: BTreeMap<u64, Leader>,
    /// The highest commit index of each term, with the server that reported it.
    commits: BTreeMap<u64, (u64, usize)>,
    terms: Option<(u64, u64)>,
}

pub(super) fn check(env: &mut Env<'_>, call: &Call<'_>) -> Result<Exit, String> {
    let mut cluster = Cluster::default();
    let mut logs = Vec::new();
    for file in call.args {
        let mut reader = store::clustered_records(Path::new(file), file).map_err(text)?;
        let first = reader.next_record().map_err(text)?.unwrap_or(Json::Null);
        let header = Header::from_json(&first).map_err(text)?;
        let Membership::Member { index, snapshot } = &header.membership else {
            env.print(format!("{file} has not joined the cluster, omitting\n"));
            continue;
        };
        cluster.check_identity(file, &header)?;
        let mut records = Vec::new();
        while let Some(json) = reader.next_record().map_err(text)? {
            records.push(Record::from_json(&json).map_err(text)?);
        }
        logs.push(records);
        cluster.servers.push(Server {
            file: file.clone(),
            snapshot: snapshot.clone(),
            start: index + 1,
            entries: Vec::new(),
            header,
        });
    }
    for (number, records) in logs.into_iter().enumerate() {
        cluster.read(env, number, records)?;
    }
    cluster.check_leaders()?;
    cluster.check_entries()?;
    cluster.check_membership()?;
    Ok(Exit::SUCCESS)
}

/// How far one server's file was read.
struct Progress {
    term: u64,
    vote: Uuid,
    leader: Uuid,
    leader_record: usize,
    commit: u64,
}

impl Cluster {
    fn check_identity(&self, file: &str, header: &Header) -> Result<(), String> {
        let same = self
            .servers
            .iter()
            .find(|server| server.header.sid == header.sid);
        if let Some(other) = same {
            return Err(format!(
                "Duplicate server ID {} in {file} and {}.",
                short_id(header.sid),
                other.file
            ));
        }
        let Some(first) = self.servers.first() else {
            return Ok(());
        };
        if first.header.cid != header.cid {
            return Err(format!(
                "{} has cluster ID {} but {file} has cluster ID {}",
                first.file,
                short_id(first.header.cid),
                short_id(header.cid)
            ));
        }
        if first.header.name != header.name {
            return Err(format!(
                "{} is named \"{}\" but {file} is named \"{}\"",
                first.file, first.header.name, header.name
            ));
        }
        Ok(())
    }

    /// The file of a server, or its id.
    fn name(&self, sid: Uuid) -> String {
        let found = self.servers.iter().find(|server| server.header.sid == sid);
        found.map_or_else(|| short_id(sid), |server| server.file.clone())
    }

    fn read(
        &mut self,
        env: &mut Env<'_>,
        number: usize,
        records: Vec<Record>,
    ) -> Result<(), String> {
        let mut progress = Progress {
            term: 0,
            vote: Uuid::nil(),
            leader: Uuid::nil(),
            leader_record: 0,
            commit: self.servers[number].start - 1,
        };
        for (position, record) in records.into_iter().enumerate() {
            let term = record.kind.term();
            if term > progress.term {
                progress.term = term;
                progress.vote = Uuid::nil();
                progress.leader = Uuid::nil();
            }
            let term = progress.term;
            let (least, most) = self.terms.unwrap_or((term, term));
            self.terms = Some((least.min(term), most.max(term)));
            self.read_record(env, number, position + 1, record.kind, &mut progress)?;
        }
        Ok(())
    }

    fn read_record(
        &mut self,
        env: &mut Env<'_>,
        number: usize,
        position: usize,
        kind: Kind,
        progress: &mut Progress,
    ) -> Result<(), String> {
        let file = self.servers[number].file.clone();
        let end = self.servers[number].end();
        match kind {
            Kind::Entry { index, entry } => {
                return self.read_entry(env, number, position, index, entry, progress);
            }
            Kind::Vote { term, sid } => {
                if term < progress.term {
                    return Err(format!(
                        "{file}: record {position} votes for term {term} but current term is {}",
                        progress.term
                    ));
                }
                if !progress.vote.is_nil() && progress.vote != sid {
                    return Err(format!(
                        "{file}: record {position} votes for {} in term {term} but a previous \
                         record for the same term voted for {}",
                        self.name(progress.vote),
                        self.name(sid)
                    ));
                }
                progress.vote = sid;
            }
            Kind::Note(note) if note == "left" => env.print(format!(
                "{file}: record {position} shows that the server left the cluster\n"
            )),
            Kind::CommitIndex(index) => {
                if index < progress.commit {
                    return Err(format!(
                        "{file}: record {position} regresses commit index from {} to {index}",
                        progress.commit
                    ));
                }
                if index >= end {
                    return Err(format!(
                        "{file}: record {position} advances commit index to {index} but last log \
                         index is {}",
                        end - 1
                    ));
                }
                progress.commit = index;
                let commit = self.commits.entry(progress.term).or_insert((index, number));
                if index > commit.0 {
                    *commit = (index, number);
                }
            }
            Kind::Leader { sid, .. } => {
                if progress.leader.is_nil() {
                    progress.leader = sid;
                    progress.leader_record = position;
                } else if progress.leader != sid {
                    return Err(format!(
                        "{file}: record {position} reports leader {} for term {} but record {} \
                         previously reported the leader as {} in that term",
                        self.name(sid),
                        progress.term,
                        progress.leader_record,
                        self.name(progress.leader)
                    ));
                }
                self.note_leader(number, progress.term, sid)?;
            }
            Kind::Term(_) | Kind::Note(_) => {}
        }
        Ok(())
    }

    fn read_entry(
        &mut self,
        env: &mut Env<'_>,
        number: usize,
        position: usize,
        index: u64,
        entry: Entry,
        progress: &Progress,
    ) -> Result<(), String> {
        let server = &mut self.servers[number];
        let (file, end) = (server.file.clone(), server.end());
        if index < progress.commit || index < server.start {
            return Err(format!(
                "{file}: record {position} attempts to truncate log from {end} to {index} \
                 entries, but commit index is already {}",
                progress.commit
            ));
        }
        if index > end {
            return Err(format!(
                "{file}: record {position} with index {index} skips past expected index {end}"
            ));
        }
        if index < end {
            let what =
                format!("{file}: record {position} truncates log from {end} to {index} entries");
            if server.header.sid == progress.leader {
                return Err(format!("{what} while server is leader"));
            }
            env.print(format!("{what}\n"));
            server
                .entries
                .truncate(usize::try_from(index - server.start).unwrap_or(0));
        }
        let previous = server.entries.last().unwrap_or(&server.snapshot).term;
        if entry.term < previous {
            return Err(format!(
                "{file}: record {position} with index {index} term {} precedes previous entry's \
                 term {previous}",
                entry.term
            ));
        }
        server.entries.push(entry);
        Ok(())
    }

    /// At most one server leads in a term.
    fn note_leader(&mut self, number: usize, term: u64, sid: Uuid) -> Result<(), String> {
        let server = &self.servers[number];
        let log_end = if server.header.sid == sid {
            server.end()
        } else {
            0
        };
        let Some(leader) = self.leaders.get_mut(&term) else {
            let leader = Leader {
                reporter: number,
                sid,
                log_end,
            };
            self.leaders.insert(term, leader);
            return Ok(());
        };
        if leader.sid == sid {
            leader.log_end = leader.log_end.max(log_end);
            return Ok(());
        }
        let (reporter, other) = (leader.reporter, leader.sid);
        Err(format!(
            "term {term} has two different leaders: {} says that the leader is {} and {} says \
             that the leader is {}",
            self.servers[reporter].file,
            self.name(other),
            self.servers[number].file,
            self.name(sid)
        ))
    }

    /// What was committed in a term is in the logs of the leaders of all later terms.
    fn check_leaders(&self) -> Result<(), String> {
        let Some((least, most)) = self.terms.filter(|(_, most)| *most != 0) else {
            return Err("all logs are empty".to_owned());
        };
        let mut commit: Option<(u64, usize)> = None;
        let mut terms: Vec<u64> = self
            .leaders
            .keys()
            .chain(self.commits.keys())
            .copied()
            .collect();
        terms.sort_unstable();
        terms.dedup();
        for term in terms
            .into_iter()
            .filter(|term| (least..=most).contains(term))
        {
            if let Some(leader) = self.leaders.get(&term)
                && let Some((index, reporter)) = commit
                && leader.log_end != 0
                && index >= leader.log_end
            {
                return Err(format!(
                    "leader {} for term {term} has log entries only up to index {}, but index \
                     {index} was committed in a previous term (e.g. by {})",
                    self.servers[leader.reporter].file,
                    leader.log_end - 1,
                    self.servers[reporter].file
                ));
            }
            if let Some(next) = self.commits.get(&term)
                && commit.is_none_or(|(index, _)| next.0 > index)
            {
                commit = Some(*next);
            }
        }
        Ok(())
    }

    /// Entries of the same index and term are the same, and so are all before them.
    fn check_entries(&self) -> Result<(), String> {
        for (number, a) in self.servers.iter().enumerate() {
            for b in &self.servers[number + 1..] {
                let mut must_equal = false;
                let common = a.start.max(b.start)..a.end().min(b.end());
                for index in common.rev() {
                    let (Some(own), Some(other)) = (a.entry(index), b.entry(index)) else {
                        continue;
                    };
                    must_equal |= own.term == other.term;
                    if must_equal && own != other {
                        return Err(format!(
                            "log entries with index {index} differ:\n{} has {}\n{} has {}",
                            a.file,
                            own.to_json(),
                            b.file,
                            other.to_json()
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Each server is or was one of the servers that its file names.
    fn check_membership(&self) -> Result<(), String> {
        for server in &self.servers {
            let sid = server.header.sid;
            let mut all = std::iter::once(&server.snapshot).chain(&server.entries);
            let named = all.any(|e| e.servers.as_ref().is_some_and(|s| s.contains(sid)));
            if !named {
                return Err(format!(
                    "{}: server {} not found in server list",
                    server.file,
                    short_id(sid)
                ));
            }
        }
        Ok(())
    }
}
