//! Databases of a cluster: this server's part in it, the transactions on their way into its
//! log, and the database as far as the log is committed.

pub(crate) mod control;
mod conversion;
pub(crate) mod links;
mod part;
mod transact;
mod writer;

pub(crate) use conversion::check_persistent;
pub(crate) use part::Part;

use part::Said;

use std::sync::Arc;

use base::Instant;
use db_engine::{Changes, Database};
use db_model::{DatabaseSchema, Error, Result, Uuid};
use db_raft::{Applied, Data, Output, Raft};
use json::Json;

use crate::served::Served;
use crate::server::Server;
use crate::server_db;
use writer::Report;

impl Server {
    /// Serves a database of a cluster, of which `path` is this server's file.
    ///
    /// # Errors
    /// The file cannot be read or written, or its name is taken.
    pub(crate) fn add_cluster_file(
        &mut self,
        now: Instant,
        path: &std::path::Path,
        shown: &str,
    ) -> Result<Arc<str>> {
        let (random, wake) = (self.uuids.fork(), Arc::clone(&self.wake));
        let part = Part::open(now, path, shown, random, &wake)?;
        let name = Arc::clone(part.raft.name());
        self.check_new_name(&name)?;
        // Until it has joined the cluster nothing is known of it but the name.
        let schema = DatabaseSchema {
            name: Arc::clone(&name),
            version: String::new(),
            cksum: String::new(),
            tables: Vec::new(),
        };
        let db = Database::new(Arc::new(schema), self.uuids.fork());
        let mut served = Served::in_memory(self.new_key(), db);
        served.file = Some(path.to_owned());
        served.available = false;
        served.tells_ids = true;
        served.cluster = Some(Box::new(part));
        self.add(served);
        self.run_cluster(&name, now);
        Ok(name)
    }

    /// This server's part in the cluster of database `name`, if it has one.
    pub(crate) fn cluster(&self, name: &str) -> Option<&Part> {
        self.dbs.get(name)?.cluster.as_deref()
    }

    /// The same, to be changed.
    pub(crate) fn cluster_mut(&mut self, name: &str) -> Option<&mut Part> {
        self.dbs.get_mut(name)?.cluster.as_deref_mut()
    }

    /// Names of the databases of clusters.
    pub(crate) fn cluster_names(&self) -> Vec<Arc<str>> {
        let clustered = self
            .dbs
            .iter()
            .filter(|(_, served)| served.cluster.is_some());
        clustered.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Does what is due in a cluster: timers, news of the file, what has been committed.
    pub(crate) fn run_cluster(&mut self, name: &Arc<str>, now: Instant) {
        let wake = Arc::clone(&self.wake);
        let Some(part) = self.cluster_mut(name) else {
            return;
        };
        while let Some(report) = part.writer.poll() {
            part.take_report(now, report);
        }
        if part.raft.has_failed() {
            part.recover(now, &wake);
        }
        if now >= part.raft.next_deadline() || part.raft.is_over() || part.tested {
            part.tested = false;
            part.raft.run(now);
        }
        self.settle_cluster(name, now);
        self.finish_snapshot(name, now);
        self.cluster_changed(name, now);
    }

    /// Does what the cluster's machine wants done, and takes what is committed.
    pub(crate) fn settle_cluster(&mut self, name: &Arc<str>, now: Instant) {
        loop {
            self.perform_outputs(name, now);
            if !self.apply_next(name) {
                break;
            }
        }
        self.answer_applied(name);
    }

    fn perform_outputs(&mut self, name: &Arc<str>, now: Instant) {
        while let Some(part) = self.cluster_mut(name) {
            let Some(output) = part.raft.next_output() else {
                return;
            };
            match output {
                Output::Send(message) => part.outbox.push_back(Said::Message(message)),
                Output::AskToJoin => part.outbox.push_back(Said::Greeting),
                Output::Crash(words) => part.outbox.push_back(Said::Crash(words)),
                Output::Write {
                    ticket,
                    record,
                    durable,
                } => part.writer.append(ticket, record, durable),
                Output::Replace { ticket, records } => part.writer.replace(ticket, records),
                Output::Finished {
                    command,
                    status,
                    index,
                } => self.command_finished(name, now, command, status, index),
            }
        }
    }

    /// Takes the next committed data, if there are any.
    fn apply_next(&mut self, name: &Arc<str>) -> bool {
        let Some(part) = self.cluster_mut(name).filter(|part| part.fault.is_none()) else {
            return false;
        };
        if !part.raft.has_more() {
            return false;
        }
        let Some(applied) = part.raft.next_applied() else {
            return false;
        };
        let outcome = self.apply(name, &applied);
        if let Err(error) = outcome {
            log::error!(target: "ovsdb_server", "{name}: {error}");
            if let Some(part) = self.cluster_mut(name) {
                // What comes after it would be applied to something else.
                part.fault = Some(Error::general("inconsistent data"));
            }
            return false;
        }
        true
    }

    fn apply(&mut self, name: &Arc<str>, applied: &Applied) -> Result<()> {
        if !self.apply_own(name, applied.eid) {
            let data = applied.data.parse()?;
            let Some([schema, transaction]) = data.as_array() else {
                return Err(Error::general("invalid commit format"));
            };
            let transaction = Some(transaction).filter(|json| **json != Json::Null);
            if *schema == Json::Null {
                if let Some(transaction) = transaction {
                    self.apply_transaction(name, applied.eid, transaction)?;
                }
            } else {
                let schema = DatabaseSchema::from_json(schema)?;
                self.apply_schema(name, applied.eid, schema, transaction)?;
            }
        }
        if let Some(part) = self.cluster_mut(name)
            && !applied.eid.is_nil()
        {
            part.eid = applied.eid;
        }
        Ok(())
    }

    /// Takes a transaction of this server's own.  False if it is another's, or must be read
    /// from the log.
    fn apply_own(&mut self, name: &Arc<str>, eid: Uuid) -> bool {
        let Some(served) = self.dbs.get_mut(name) else {
            return false;
        };
        // It follows the very database that it was made for, as its prerequisite says.
        let own = served
            .cluster
            .as_mut()
            .and_then(|part| part.take_changes(eid));
        let Some(changes) = own else {
            return false;
        };
        served.db.apply(&changes);
        served.note_commit(eid, &changes);
        self.flush_database(name);
        true
    }

    fn apply_transaction(&mut self, name: &Arc<str>, eid: Uuid, record: &Json) -> Result<()> {
        let Some(served) = self.dbs.get_mut(name) else {
            return Ok(());
        };
        if !served.available {
            let details = format!("{}: data without schema", served.shown());
            return Err(Error::general(details));
        }
        let changes = served.db.replay(record)?;
        served.note_commit(eid, &changes);
        self.flush_database(name);
        Ok(())
    }

    /// Saves the database as a snapshot in the place of the log, on a thread of its own.
    ///
    /// # Errors
    /// There is nothing to be saved, or it cannot be now.
    pub(crate) fn compact_cluster(&mut self, now: Instant, name: &str) -> Result<()> {
        let wall = self.wall();
        let wake = Arc::clone(&self.wake);
        let Some(served) = self.dbs.get_mut(name) else {
            return Ok(());
        };
        let snapshot = served.db.snapshot();
        let Some(part) = &mut served.cluster else {
            return Ok(());
        };
        part.begin_snapshot(now, snapshot, wall, &wake)
    }

    /// Hands a snapshot that is ready to the cluster's machine.
    fn finish_snapshot(&mut self, name: &Arc<str>, now: Instant) {
        let Some(part) = self.cluster_mut(name) else {
            return;
        };
        if let Some(outcome) = part.poll_snapshot() {
            let stored = outcome.and_then(|(data, index)| {
                part.raft.store_snapshot(now, Data::from_text(data), index)
            });
            if let Err(error) = stored {
                log::info!(target: "ovsdb_server", "{error}");
                part.snapshot_failed = Some(error);
            }
            self.settle_cluster(name, now);
        }
    }

    /// Waits until a snapshot that was begun is in the file.
    ///
    /// # Errors
    /// It could not be saved.
    pub(crate) fn drain_cluster(&mut self, name: &Arc<str>, now: Instant) -> Result<()> {
        if let Some(part) = self.cluster_mut(name) {
            part.snapshot_failed = None;
            part.wait_snapshot();
        }
        self.finish_snapshot(name, now);
        self.settle_cluster(name, now);
        while let Some(part) = self.cluster_mut(name) {
            let Some(report) = part.writer.wait() else {
                break;
            };
            part.take_report(now, report);
            self.settle_cluster(name, now);
        }
        let failed = self
            .cluster_mut(name)
            .and_then(|part| part.snapshot_failed.take());
        failed.map_or(Ok(()), Err)
    }

    /// Shows in `_Server` what has changed, begins a compaction that is due, and removes a
    /// database whose cluster this server has left.
    fn cluster_changed(&mut self, name: &Arc<str>, now: Instant) {
        let wall = self.wall();
        let wake = Arc::clone(&self.wake);
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        let Some(part) = &mut served.cluster else {
            return;
        };
        if part.raft.has_left() && part.outbox.is_empty() {
            log::info!(target: "ovsdb_server",
                "{name}: removing database because storage disconnected permanently");
            let why = format!("removing database {name} because storage disconnected permanently");
            // It is there, and not built in.
            let _ = self.remove_database_because(name, &why);
            return;
        }
        if part.wants_snapshot(now) {
            let snapshot = served.db.snapshot();
            if let Err(error) = part.begin_snapshot(now, snapshot, wall, &wake) {
                log::info!(target: "ovsdb_server", "{name}: {error}");
            }
        }
        if part.note_standing(now) {
            served.changed = true;
        }
        let status = part.status();
        let told = part.told.replace(status);
        if !status.0 {
            base::log_limited!(Debug, "raft", (5, 5), "raft_is_connected: false");
        } else if told.is_none_or(|told| !told.0) {
            log::debug!(target: "raft", "raft_is_connected: true");
        }
        let (index, had) = (part.raft.applied_index(), part.told_index);
        part.told_index = index;
        if told != Some(status) {
            self.refresh_status(name);
        } else if index != had {
            self.update_server_db(|db| server_db::set_index(db, name, index));
        }
    }

    /// The process ends: other servers learn it, and may lead.
    pub fn shut_down_clusters(&mut self, now: Instant) {
        for name in self.cluster_names() {
            self.shut_down_cluster(&name, now);
        }
    }

    /// A database is to be served no more: other servers of its cluster learn it, and may lead.
    pub(crate) fn shut_down_cluster(&mut self, name: &Arc<str>, now: Instant) {
        if let Some(part) = self.cluster_mut(name) {
            part.raft.shut_down(now);
        }
        self.perform_outputs(name, now);
    }
}

impl Part {
    /// Takes note of a report of the writer.
    fn take_report(&mut self, now: Instant, report: Report) {
        match report {
            Report::Written(ticket) => self.raft.written(now, ticket),
            Report::Failed(ticket, error) => self.raft.write_failed(now, ticket, &error),
            Report::NotReplaced(ticket, error) => self.raft.replace_failed(now, ticket, &error),
        }
    }
}

impl Served {
    /// Takes note of changes that are committed.
    pub(crate) fn note_commit(&mut self, id: Uuid, changes: &Changes) {
        self.changed = true;
        self.tell_monitors(id, changes);
    }
}

/// Whether two servers' machines are at the same point, as far as clients can see.
pub(crate) type Standing = (bool, bool, bool, usize);

/// What matters to transactions that could not be handed over.
pub(crate) fn standing(raft: &Raft) -> Standing {
    let links = raft.linked_servers();
    (
        raft.is_leader(),
        raft.has_leader(),
        raft.is_connected(),
        links,
    )
}
