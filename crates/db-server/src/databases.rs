//! Databases that come, go, change their schema or are compacted.

use std::path::Path;
use std::sync::Arc;

use base::Instant;
use db_engine::log_file::Word;
use db_engine::writer::Writer;
use db_engine::{Database, Disk, store};
use db_model::{DatabaseSchema, Error, Result};
use json::Json;

use crate::served::{Served, Waiting};
use crate::server::{Client, ClientId, Server};
use crate::server_db;

impl Server {
    /// Serves the database in a file, which errors call `shown`.  Returns its name.
    ///
    /// # Errors
    /// The file is open already, cannot be opened, or holds a database of a name that is
    /// served.
    pub fn add_file(&mut self, now: Instant, path: &Path, shown: &str) -> Result<Arc<str>> {
        let canonical = std::fs::canonicalize(path).ok();
        let is_open = self.dbs.values().any(|served| {
            let file = served.file.as_deref();
            canonical.is_some() && file.and_then(|f| std::fs::canonicalize(f).ok()) == canonical
        });
        if is_open {
            return Err(Error::general(format!("{shown}: already open")));
        }
        store::check_writable(path, shown)?;
        if store::identify(path, shown)? == Word::Clustered {
            return self.add_cluster_file(now, path, shown);
        }
        let key = self.new_key();
        let uuids = self.uuids.fork();
        let wake = Arc::clone(&self.wake);
        let served = Served::open(key, path, shown, uuids, &wake, now)?;
        let name = served.name();
        self.check_new_name(&name)?;
        self.add(served);
        Ok(name)
    }

    /// Serves a database on any disk; for tests and embedding.
    ///
    /// # Errors
    /// The name is taken, or the writer cannot be started.
    pub fn add_database(
        &mut self,
        now: Instant,
        db: Database,
        disk: Option<Box<dyn Disk>>,
    ) -> Result<()> {
        let name = Arc::clone(&db.schema().name);
        self.check_new_name(&name)?;
        let key = self.new_key();
        let wake = Arc::clone(&self.wake);
        let served = match disk {
            Some(disk) => Served::with_disk(key, db, disk, &wake, now)
                .map_err(|error| Error::io(&error, "cannot start writer"))?,
            None => Served::in_memory(key, db),
        };
        self.add(served);
        Ok(())
    }

    /// Checks that a database may be called `name`.
    pub(crate) fn check_new_name(&self, name: &str) -> Result<()> {
        if name.starts_with('_') && self.dbs.contains_key(server_db::NAME) {
            let details = format!("{name}: names beginning with \"_\" are reserved");
            return Err(Error::general(details));
        }
        if self.dbs.contains_key(name) {
            return Err(Error::general(format!("{name}: duplicate database name")));
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, mut served: Served) {
        let name = served.name();
        served.differences = self.differences;
        served.conversions_with_data = self.conversions_with_data;
        served.tells_ids |= self.transaction_ids;
        served.monitors.tell_ids(served.tells_ids);
        self.dbs.insert(Arc::clone(&name), served);
        self.disconnect_unaware(&format!("adding {name} database"));
        self.refresh_status(&name);
    }

    /// Serves a database no more.
    ///
    /// # Errors
    /// There is no such database, or it is `_Server`.
    pub fn remove_database(&mut self, name: &str) -> std::result::Result<(), String> {
        let why = format!("removing {name} database by user request");
        self.remove_database_because(name, &why)
    }

    /// The same, for a reason that the log gives.
    ///
    /// # Errors
    /// There is no such database, or it is `_Server`.
    pub(crate) fn remove_database_because(
        &mut self,
        name: &str,
        why: &str,
    ) -> std::result::Result<(), String> {
        if name.starts_with('_') {
            return Err("Cannot remove reserved database.".to_owned());
        }
        if !self.dbs.contains_key(name) {
            return Err("Failed to find the database.".to_owned());
        }
        let canceled = format!("database conversion canceled because {why}");
        self.give_conversion_up(name, &Error::new("canceled", canceled));
        self.cancel_forwarded(name);
        let waiting = self.dbs.remove(name).map(|served| served.waiting);
        self.cancel_monitors(name);
        self.cancel_waiting(waiting.unwrap_or_default());
        self.disconnect_unaware(why);
        self.update_server_db(|db| server_db::remove(db, name));
        Ok(())
    }

    /// Ends the connections of clients that do not cope with databases that come and go.
    pub(crate) fn disconnect_unaware(&mut self, why: &str) {
        let unaware: Vec<ClientId> = self
            .clients
            .iter()
            .filter(|(_, state)| !state.aware)
            .map(|(client, _)| *client)
            .collect();
        for client in unaware {
            let state = self.clients.get(&client).filter(|state| !state.ending);
            if let Some(state) = state {
                log::info!(target: "ovsdb_jsonrpc_server",
                    "{}: disconnecting ({why})", state.name);
            }
            self.hang_up(client);
        }
    }

    /// Names of the databases, `_Server` included.
    pub fn database_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.dbs.keys()
    }

    /// The state of a database's file: why the last write to it failed, or `ok`.
    pub(crate) fn storage_status(&self, name: &str) -> Option<String> {
        Some(self.dbs.get(name)?.storage_status())
    }

    /// Whether a database is served of which nothing is known yet.
    pub(crate) fn is_unavailable(&self, name: &str) -> bool {
        self.dbs.get(name).is_some_and(|served| !served.available)
    }

    /// A database by its name.
    pub fn get_database(&self, name: &str) -> Option<&Database> {
        self.dbs.get(name).map(|served| &served.db)
    }

    /// Begins to compact a database's file, or all.  Returns the names of those that have
    /// one.
    ///
    /// # Errors
    /// There is no such database, or it is built in.
    pub fn compact(&mut self, now: Instant, name: Option<&str>) -> std::result::Result<(), String> {
        let wall = self.wall();
        match name {
            Some(name) if name.starts_with('_') => {
                Err("cannot compact built-in databases".to_owned())
            }
            _ => {
                let wanted = |db: &Arc<str>| match name {
                    Some(name) => **db == *name,
                    None => !db.starts_with('_'),
                };
                let names: Vec<_> = self.dbs.keys().filter(|db| wanted(db)).cloned().collect();
                for name in &names {
                    log::info!(target: "ovsdb_server",
                        "compacting {name} database by user request");
                    self.compact_cluster(now, name)
                        .map_err(|error| format!("{error}\n"))?;
                    if let Some(served) = self.dbs.get_mut(name) {
                        served.compact(now, wall, "compacting database online");
                    }
                }
                match names.len() {
                    0 => Err("no database by that name".to_owned()),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Why the last compactions of a database, or of any, failed: a line for each that did.
    pub(crate) fn failed_compactions(&self, name: Option<&str>) -> String {
        let wanted = self.dbs.values();
        let wanted = wanted.filter(|db| name.is_none_or(|name| *db.name() == *name));
        let failed = wanted.filter_map(|db| db.compaction_fault.as_ref());
        failed.map(|error| format!("{error}\n")).collect()
    }

    /// Tells clients the ids of transactions, so that who reconnects gets only what is new.
    pub fn tell_transaction_ids(&mut self) {
        self.transaction_ids = true;
        for served in self.dbs.values_mut() {
            served.tells_ids = true;
            served.monitors.tell_ids(true);
        }
    }

    /// Sets whether changes are recorded as differences, which older servers cannot read.
    pub fn set_record_differences(&mut self, differences: bool) {
        self.differences = differences;
        for served in self.dbs.values_mut() {
            served.differences = differences;
        }
    }

    /// Sets whether clusters are told all rows after a conversion, as servers of before Open
    /// vSwitch 3.2 need it.
    pub fn set_conversions_with_data(&mut self, with_data: bool) {
        self.conversions_with_data = with_data;
        for served in self.dbs.values_mut() {
            served.conversions_with_data = with_data;
        }
    }

    /// Waits until everything is written; a compaction is not waited for.
    pub fn drain_writers(&mut self) {
        let names: Vec<Arc<str>> = self.dbs.keys().cloned().collect();
        for name in &names {
            self.drain_writer(name);
        }
    }

    /// Waits until snapshots that clusters' logs are compacted to are in their files.
    ///
    /// # Errors
    /// One could not be saved.
    pub fn drain_clusters(&mut self, now: Instant) -> Result<()> {
        let mut outcome = Ok(());
        for name in self.cluster_names() {
            outcome = outcome.and(self.drain_cluster(&name, now));
        }
        outcome
    }

    /// Waits until no file is being written anew.
    pub fn finish_compactions(&mut self) {
        let names: Vec<Arc<str>> = self.dbs.keys().cloned().collect();
        for name in &names {
            while self.is_compacting(Some(name)) && self.take_report(name, Writer::wait_for_any) {}
        }
    }

    /// Whether the file of a database, or of any, is being written anew.
    pub fn is_compacting(&self, name: Option<&str>) -> bool {
        let of_name = |(known, _): &(&Arc<str>, &Served)| name.is_none_or(|name| ***known == *name);
        let mut dbs = self.dbs.iter().filter(of_name);
        dbs.any(|(_, served)| served.is_compacting())
    }

    /// The `convert` method: gives a database another schema.
    pub(crate) fn convert(
        &mut self,
        now: Instant,
        client: ClientId,
        name: &Arc<str>,
        params: &Json,
        id: &Json,
    ) -> Result<Json> {
        if let Some(identity) = self.clients.get(&client).and_then(Client::identity) {
            let what = format!(
                "\"convert\" of database {name} (only the root role may convert databases)"
            );
            return Err(identity.denied(&what));
        }
        if self.dbs.get(name).is_some_and(|s| s.relay().is_some()) {
            let details = format!(
                "conversion is not allowed for database {name}, which is relayed: convert it at its source"
            );
            return Err(Error::new("not allowed", details));
        }
        if self.is_read_only(client, name) {
            let details = format!("conversion is not allowed for read-only database {name}");
            return Err(Error::new("not allowed", details));
        }
        let Some([_, schema]) = params.as_array() else {
            return Err(Error::syntax(params, "array expected"));
        };
        let schema = Arc::new(DatabaseSchema::from_json(schema)?);
        if schema.name != *name {
            let details = format!(
                "new schema name ({}) does not match database name ({name})",
                schema.name
            );
            return Err(Error::new("invalid parameters", details));
        }
        if self.cluster(name).is_some() {
            crate::cluster::check_persistent(&schema)?;
            let waiting = Waiting {
                client,
                id: id.clone(),
                params: params.clone(),
                since: now,
                until: Instant::MAX,
                converts: true,
            };
            self.attempt(now, name, waiting);
            self.end_batch(name);
            return Ok(Json::Null);
        }
        if self.is_large(name) {
            self.begin_conversion(name, schema, client, id)?;
            return Ok(Json::Null);
        }
        let uuids = self.uuids.fork();
        let wall = self.wall();
        let key = self.new_key();
        // What cannot be written must not be in the converted database.
        self.drain_writer(name);
        let Some(served) = self.dbs.get_mut(name) else {
            return Err(Error::bare("unknown database"));
        };
        let converted = db_engine::convert(&served.db, Arc::clone(&schema), uuids)?;
        served
            .become_another(key, converted, now, wall)
            .map_err(|error| Error::io(&error, format!("{}: write failed", served.shown())))?;
        self.tell_converted(name, client, id);
        Ok(Json::Null)
    }
}
