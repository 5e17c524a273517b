//! One server: its file, its process if it runs, and its database, which is a hash of all that
//! it was told.

use std::collections::BTreeMap;

use base::Instant;
use db_model::{Uuid, UuidSource};
use db_raft::record::Header;
use db_raft::{Command, Data, Raft};
use json::Json;

use super::check::{Checks, fold};
use super::file::File;

/// A server.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) sid: Uuid,
    pub(crate) file: File,
    pub(crate) raft: Option<Raft>,
    /// Counts processes.
    pub(crate) epoch: u64,
    /// Whether it has left the cluster for good.
    pub(crate) gone: bool,
    pub(crate) last_eid: Uuid,
    pub(crate) hash: u64,
    pub(crate) applied: u64,
    pub(crate) commands: BTreeMap<Command, Uuid>,
    uuids: UuidSource,
}

impl Node {
    pub(crate) fn new(records: Vec<Json>, uuids: UuidSource) -> Self {
        let header = json::parse(records[0].to_string().as_bytes()).expect("JSON");
        let header = Header::from_json(&header).expect("a header");
        Self {
            sid: header.sid,
            file: File::new(&records),
            raft: None,
            epoch: 0,
            gone: false,
            last_eid: Uuid::nil(),
            hash: 0,
            applied: 0,
            commands: BTreeMap::new(),
            uuids,
        }
    }

    /// Whether it runs.
    pub(crate) fn is_up(&self) -> bool {
        self.raft.is_some()
    }

    /// Starts the process.
    pub(crate) fn start(&mut self, now: Instant, checks: &Checks) {
        let parse = |text: &String| json::parse(text.as_bytes()).expect("JSON");
        let mut records = self.file.durable().iter().map(parse);
        let header = records.next().expect("a header");
        let header = Header::from_json(&header).expect("a header");
        let mut raft = Raft::new(header, self.uuids.fork());
        for (number, record) in records.enumerate() {
            let outcome = raft.replay(number as u64 + 1, &record);
            assert_eq!(outcome, Ok(()), "seed {}", checks.seed());
        }
        // A server that was removed may not come back.
        self.gone = raft.start(now).is_err();
        self.raft = (!self.gone).then_some(raft);
    }

    /// The process is over, and with it what it knew.
    pub(crate) fn forget(&mut self) {
        self.last_eid = Uuid::nil();
        self.hash = 0;
        self.applied = 0;
        self.commands.clear();
    }

    /// Takes what is committed.
    pub(crate) fn apply(&mut self, checks: &mut Checks) {
        let Some(raft) = &mut self.raft else {
            return;
        };
        while let Some(applied) = raft.next_applied() {
            if applied.is_snapshot {
                let data = applied.data.parse().expect("JSON");
                let state = data.as_array().and_then(|a| a[1].get("hash"));
                let state = state.and_then(Json::as_str).expect("a hash");
                self.hash = state.parse().expect("a number");
            } else {
                self.hash = fold(self.hash, applied.eid);
            }
            self.last_eid = applied.eid;
            self.applied = applied.index;
            checks.applied(applied.index, applied.eid, self.hash);
        }
    }

    /// Saves a snapshot.
    pub(crate) fn compact(&mut self, now: Instant) {
        let Some(raft) = &mut self.raft else {
            return;
        };
        if raft.may_snapshot() && raft.applied_index() == self.applied {
            let data = format!(r#"[{{"name":"db"}},{{"hash":"{}"}}]"#, self.hash);
            let data = Data::from_text(data);
            raft.store_snapshot(now, data, self.applied).expect("new");
        }
    }
}
