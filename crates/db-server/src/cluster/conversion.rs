//! Databases of a cluster that get another schema, or all their contents anew.

use std::sync::Arc;

use base::Instant;
use db_engine::{Database, snapshot_record};
use db_model::{DatabaseSchema, Error, Result, Uuid};
use db_raft::Data;
use io::jsonrpc::Message;
use json::Json;

use super::transact::Proposal;
use crate::served::Waiting;
use crate::server::Server;

/// Checks that all columns are persistent, as a cluster needs them.
pub(crate) fn check_persistent(schema: &DatabaseSchema) -> Result<()> {
    for table in &schema.tables {
        if let Some((_, column)) = table.own_columns().find(|(_, column)| !column.persistent) {
            let details = format!(
                "Table {} column {} is ephemeral but clustered databases do not support \
                 ephemeral columns.",
                table.name, column.name
            );
            return Err(Error::new("syntax error", details));
        }
    }
    Ok(())
}

impl Server {
    /// Converts a database of a cluster, as `convert` asks: the parameters were checked.
    pub(super) fn attempt_conversion(&mut self, now: Instant, name: &Arc<str>, waiting: Waiting) {
        match self.convert_copy(name, &waiting) {
            Ok(Some((data, converted))) => {
                let proposal = Proposal {
                    data,
                    waiting,
                    result: Json::object(),
                    changes: None,
                    converted: Some(converted),
                };
                self.propose(now, name, proposal);
            }
            Ok(None) => {
                if let Some(served) = self.dbs.get_mut(name) {
                    served.waiting.push(waiting);
                }
            }
            Err(error) => {
                let message = Message::error(error.to_json(), waiting.id);
                self.send(waiting.client, None, message);
            }
        }
    }

    /// What a conversion puts into the log, and the database after it; `None` if something
    /// else comes first.
    fn convert_copy(
        &mut self,
        name: &Arc<str>,
        waiting: &Waiting,
    ) -> Result<Option<(Data, Database)>> {
        let wall = self.wall();
        let uuids = self.uuids.fork();
        let Some(served) = self.dbs.get_mut(name) else {
            return Err(Error::bare("unknown database"));
        };
        let Some(part) = &served.cluster else {
            return Err(Error::bare("unknown database"));
        };
        if let Some(fault) = &part.fault {
            return Err(fault.clone());
        }
        if !part.raft.may_follow(part.eid) {
            return Ok(None);
        }
        let schema = waiting.params.as_array().and_then(|params| params.get(1));
        let schema = Arc::new(DatabaseSchema::from_json(schema.unwrap_or(&Json::Null))?);
        check_persistent(&schema)?;
        let converted = db_engine::convert(&served.db, Arc::clone(&schema), uuids)?;
        // Servers of before Open vSwitch 3.2 do not convert by themselves.
        let rows = if served.conversions_with_data {
            snapshot_record(&converted.snapshot(), wall, "converted by ovsdb-server")
        } else {
            "null".to_owned()
        };
        let data = Data::from_text(format!("[{},{rows}]", schema.to_json()));
        Ok(Some((data, converted)))
    }

    /// Takes another schema from the log, with all rows (`record`), or those that there are.
    pub(super) fn apply_schema(
        &mut self,
        name: &Arc<str>,
        eid: Uuid,
        schema: DatabaseSchema,
        record: Option<&Json>,
    ) -> Result<()> {
        if schema.name != *name {
            return Err(Error::general(format!(
                "name {name} in header does not match name {} in schema",
                schema.name
            )));
        }
        check_persistent(&schema)?;
        let uuids = self.uuids.fork();
        let key = self.new_key();
        let Some(served) = self.dbs.get_mut(name) else {
            return Ok(());
        };
        if let Some(record) = record
            && served.available
            && **served.db.schema() == schema
        {
            // Clients are told what is different.
            let changes = served.db.replay_whole(record)?;
            served.note_commit(eid, &changes);
            self.flush_database(name);
            return Ok(());
        }
        let schema = Arc::new(schema);
        let converted = served
            .cluster
            .as_mut()
            .and_then(|part| part.take_converted(eid));
        let db = match (record, converted) {
            (Some(record), _) => {
                let mut db = Database::new(schema, uuids);
                db.replay(record)?;
                db
            }
            (None, Some(converted)) => converted,
            (None, None) => db_engine::convert(&served.db, schema, uuids)?,
        };
        let first = !std::mem::replace(&mut served.available, true);
        served.key = key;
        served.db = db;
        served.reset_monitors();
        served.note_commit(eid, &db_engine::Changes::default());
        let (conversions, canceled): (Vec<_>, Vec<_>) = std::mem::take(&mut served.waiting)
            .into_iter()
            .partition(|waiting| waiting.converts);
        served.waiting = conversions;
        self.cancel_monitors(name);
        self.cancel_waiting(canceled);
        self.cancel_in_flight(name);
        let what = if first {
            "connected to storage"
        } else {
            "schema changed"
        };
        self.disconnect_unaware(&format!("database {name} {what}"));
        if let Some(part) = self.cluster_mut(name) {
            part.told = Some(part.status());
            part.told_index = part.raft.applied_index();
        }
        self.refresh_status(name);
        Ok(())
    }
}
