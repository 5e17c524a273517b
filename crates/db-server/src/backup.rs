//! Backups: databases that follow an active server's, for when that fails
//! (`ovsdb-server(1)`, "Active-Backup Options").

use std::collections::BTreeSet;

use db_engine::{Committed, Told as Update};
use db_model::{DatabaseSchema, Error, Result, parse_uuid};
use json::Json;

use crate::server::Server;
use crate::upstream::{Taken, Told, Upstream, everything};

/// The tables of database `database` that `list` names, between commas or blanks: `DB:TABLE`, or
/// `TABLE` for that of any database.
pub(crate) fn excluded_tables(list: &str, database: &str) -> BTreeSet<String> {
    let names = list.split([',', ' ']).filter(|name| !name.is_empty());
    let own = names.filter_map(|name| match name.split_once(':') {
        None => Some(name),
        Some((db, table)) => (db == database && !table.is_empty()).then_some(table),
    });
    own.map(str::to_owned).collect()
}

/// Whether a backup of schema `own` can hold what a server of schema `active` tells: it must
/// have all its tables and columns.
fn can_replicate(own: &DatabaseSchema, active: &DatabaseSchema) -> bool {
    for table in &active.tables {
        let Some(known) = own.table(&table.name) else {
            log::info!(target: "replication",
                "Table {} not present in the local db schema", table.name);
            return false;
        };
        for (_, column) in table.own_columns() {
            let Some(own_column) = known.column(&column.name) else {
                log::info!(target: "replication",
                    "Column {} not present in the local db schema table {}.",
                    column.name, table.name);
                return false;
            };
            if own_column.to_json() != column.to_json() {
                log::info!(target: "replication",
                    "Column {} mismatch in local db schema table {}.",
                    column.name, table.name);
                return false;
            }
        }
    }
    true
}

impl Server {
    /// Makes database `name` a backup, which follows another server and may not be changed by
    /// clients.  The tables `excluded` are left alone.
    pub fn start_backup(&mut self, name: &str, excluded: BTreeSet<String>) {
        let canceled = "database conversion canceled because the database becomes a backup";
        self.give_conversion_up(name, &Error::new("canceled", canceled));
        if let Some(served) = self.dbs.get_mut(name) {
            let database = served.name();
            served.upstream = Some(Upstream::backup(&database, excluded));
        }
    }

    /// Makes a backup the active server of its database.
    pub fn stop_backup(&mut self, name: &str) {
        if let Some(served) = self.dbs.get_mut(name)
            && served
                .upstream
                .as_ref()
                .is_some_and(|u| u.as_relay().is_none())
        {
            served.upstream = None;
        }
    }

    /// Names of backups that cannot follow the active server.
    pub fn failed_backups(&mut self) -> Vec<String> {
        let mut failed = Vec::new();
        for (name, served) in &mut self.dbs {
            let backup = served.upstream.as_mut().and_then(Upstream::as_backup_mut);
            if backup.is_some_and(|backup| backup.failed) {
                failed.push(name.to_string());
            }
        }
        failed
    }

    pub(crate) fn take_for_backup(
        &mut self,
        name: &str,
        taken: Taken,
    ) -> std::result::Result<(), String> {
        if self.backup(name).is_none_or(|backup| backup.failed) {
            return Ok(());
        }
        let outcome = match taken {
            Taken::Done => self.check_follower(name),
            Taken::Reply(id, result) => self.take_server_id(name, id, result),
            Taken::Schema => self.take_backup_schema(name),
            Taken::Contents(told) => self.take_backup_contents(name, &told),
        };
        if let Err(error) = outcome {
            if let Some(error) = error {
                base::log_limited!(
                    Error,
                    "ovsdb_error",
                    (1, 1),
                    "unexpected ovsdb error: {error}"
                );
            }
            if let Some(backup) = self.backup(name) {
                backup.failed = true;
            }
        }
        Ok(())
    }

    fn backup(&mut self, name: &str) -> Option<&mut crate::upstream::Backup> {
        let upstream = self.dbs.get_mut(name)?.upstream.as_mut()?;
        upstream.as_backup_mut()
    }

    /// Whether the active server said that it has no such database.
    fn check_follower(&mut self, name: &str) -> std::result::Result<(), Option<Error>> {
        let upstream = self.dbs.get(name).and_then(|s| s.upstream.as_ref());
        match upstream.and_then(|upstream| upstream.follower.failure()) {
            None => Ok(()),
            Some("unknown database") => Err(Some(Error::new(
                "list_dbs failed",
                format!("{name}: database name is not in the list"),
            ))),
            Some(other) => Err(Some(Error::general(format!("{name}: {other}")))),
        }
    }

    /// The active server has said who it is: a server must not follow itself.
    fn take_server_id(
        &mut self,
        name: &str,
        id: i64,
        result: std::result::Result<Json, Json>,
    ) -> std::result::Result<(), Option<Error>> {
        let own = self.id();
        let Some(backup) = self.backup(name) else {
            return Ok(());
        };
        if backup.asked.take_if(|asked| *asked == id).is_none() {
            return Ok(());
        }
        let other = result.ok().and_then(|json| parse_uuid(json.as_str()?));
        let Some(other) = other else {
            let details = format!("{name}: Server ID is not valid UUID");
            return Err(Some(Error::new("get_server_id failed", details)));
        };
        if other == own {
            let details = format!("{name}: Self replicating is not allowed");
            return Err(Some(Error::new("Server ID check failed", details)));
        }
        backup.verified = true;
        if std::mem::take(&mut backup.schema_waits) {
            return self.take_backup_schema(name);
        }
        Ok(())
    }

    /// Asks for all tables that are not left alone.
    fn take_backup_schema(&mut self, name: &str) -> std::result::Result<(), Option<Error>> {
        let Some(served) = self.dbs.get_mut(name) else {
            return Ok(());
        };
        let Some(upstream) = &mut served.upstream else {
            return Ok(());
        };
        let Some(backup) = upstream.as_backup_mut() else {
            return Ok(());
        };
        if !backup.verified {
            backup.schema_waits = true;
            return Ok(());
        }
        let excluded = backup.excluded.clone();
        let json = upstream.follower.schema().cloned().unwrap_or(Json::Null);
        let schema = DatabaseSchema::from_json(&json).map_err(Some)?;
        if *schema.name != *name {
            log::warn!(target: "replication", "{name}: unexpected schema {}.", schema.name);
            return Err(None);
        }
        if schema.to_json() != served.db.schema().to_json() {
            log::info!(target: "replication",
                "{name}: Schema version mismatch, checking if {name} can still be replicated or not.");
            if !can_replicate(served.db.schema(), &schema) {
                log::info!(target: "replication", "{name} cannot be replicated.");
                return Err(None);
            }
            log::info!(target: "replication", "{name} can be replicated.");
        }
        let tables = schema.tables.iter().map(|table| &*table.name);
        let request = everything(tables.filter(|table| !excluded.contains(*table)));
        upstream.follower.monitor(request);
        Ok(())
    }

    fn take_backup_contents(
        &mut self,
        name: &str,
        told: &Told,
    ) -> std::result::Result<(), Option<Error>> {
        self.copy_contents(name, told).map_err(Some)
    }

    /// Writes contents of the active server into the database and its file.
    fn copy_contents(&mut self, name: &str, told: &Told) -> Result<()> {
        let wall = self.wall();
        let Some((name, _)) = self.dbs.get_key_value(name) else {
            return Ok(());
        };
        let name = std::sync::Arc::clone(name);
        let Some(excluded) = self.backup(&name).map(|backup| backup.excluded.clone()) else {
            return Ok(());
        };
        let Some(served) = self.dbs.get_mut(&name) else {
            return Ok(());
        };
        if told.whole {
            log::info!(target: "replication",
                "{name}: Monitor reply received. Resetting the database.");
        }
        let covers = |table: &str| !excluded.contains(table);
        let changes = served.db.follow(&Update {
            updates: &told.updates,
            differences: told.differences,
            whole: if told.whole { Some(&covers) } else { None },
        })?;
        if changes.is_empty() {
            return Ok(());
        }
        let committed = Committed {
            changes,
            comment: String::new(),
            durable: false,
            id: served.db.new_uuid(),
        };
        served.commit(&committed, wall);
        self.flush_database(&name);
        Ok(())
    }
}
