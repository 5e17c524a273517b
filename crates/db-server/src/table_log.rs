//! Changes of tables in the log (`ovsdb-server/tlog-set`).

use db_engine::{Changes, RowChange};
use db_model::TableSchema;
use db_model::text::format_datum;

use crate::served::Served;
use crate::server::Server;

/// A changed row as log lines have it: what was done, and its columns as they are, or were if
/// it is gone.
fn line(schema: &TableSchema, change: &RowChange) -> Option<String> {
    let (done, row) = match (&change.old, &change.new) {
        (None, Some(new)) => ("inserted", new),
        (Some(_), Some(new)) => ("updated", new),
        (Some(old), None) => ("deleted", old),
        (None, None) => return None,
    };
    let columns = schema.columns.iter().zip(row.fields());
    let columns: Vec<String> = columns
        .map(|(column, datum)| {
            let value = format_datum(datum, &column.column_type);
            format!("{}:{value}", column.name)
        })
        .collect();
    Some(format!(
        "table:{},op:{done},{}",
        schema.name,
        columns.join(",")
    ))
}

impl Served {
    /// Logs changes of tables for which that is wanted.
    pub(crate) fn log_changes(&self, changes: &Changes) {
        let logged = |table: &usize| self.logged.contains(table);
        for table in changes.tables.iter().filter(|t| logged(&t.table)) {
            let schema = &self.db.schema().tables[table.table];
            for line in table.rows.iter().filter_map(|row| line(schema, row)) {
                base::log_limited!(Info, "transaction", (30, 60), "{line}");
            }
        }
    }
}

impl Server {
    /// Has changes of table `DB:TABLE` logged, or no more, as `command` says: `on` or `off`.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    pub(crate) fn set_table_log(&mut self, name: &str, command: &str) -> Result<(), String> {
        let on = match command.to_ascii_lowercase().as_str() {
            "on" => true,
            "off" => false,
            _ => return Err("invalid command argument".to_owned()),
        };
        let parts: Vec<&str> = name.split(':').filter(|part| !part.is_empty()).collect();
        let [db, table] = parts[..] else {
            return Err("invalid DB:TABLE argument".to_owned());
        };
        let served = self.dbs.get_mut(db).ok_or("no such database")?;
        let table = served.db.schema().table_index(table);
        let table = table.ok_or("no such table")?;
        if on {
            served.logged.insert(table);
        } else {
            served.logged.remove(&table);
        }
        Ok(())
    }

    /// All tables, with whether their changes are logged.
    pub(crate) fn list_table_logs(&self) -> String {
        let mut text = format!("{:<17}{:<30}logging\n", "database", "table");
        text += &format!("{:<17}{:<30}-------\n", "--------", "-----");
        for (name, served) in &self.dbs {
            text += &format!("{name:<16} \n");
            for (at, table) in served.db.schema().tables.iter().enumerate() {
                let on = if served.logged.contains(&at) {
                    "ON"
                } else {
                    "OFF"
                };
                text += &format!("{:16}{:<27} {on}\n", "", table.name);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::{Clock, Instant};
    use db_engine::Database;
    use db_model::{DatabaseSchema, UuidSource};

    use super::*;

    #[test]
    fn tables_are_named_and_listed() {
        let clock = Clock::stopped(Instant::ZERO);
        let mut server = Server::new(clock, [1; 32], Arc::new(|| {}));
        let schema = r#"{"name":"d","tables":{"t":{"columns":{"n":{"type":"integer"}}}}}"#;
        let schema = Arc::new(DatabaseSchema::from_text(schema).unwrap());
        let db = Database::new(schema, UuidSource::new([2; 32]));
        server.add_database(Instant::ZERO, db, None).unwrap();
        let list = |on: &str| {
            format!(
                "database         table                         logging\n\
                 --------         -----                         -------\n\
                 _Server          \n                Database                    OFF\n\
                 d                \n                t                           {on}\n"
            )
        };
        assert_eq!(server.list_table_logs(), list("OFF"));
        assert_eq!(server.set_table_log("d:t", "On"), Ok(()));
        assert_eq!(server.list_table_logs(), list("ON"));
        assert!(server.change("d", |txn| {
            let row = db_model::Row::new(&txn.schema(0), db_model::Uuid::nil());
            txn.insert(0, row);
        }));
        assert_eq!(server.set_table_log("d:t", "off"), Ok(()));
        assert_eq!(server.list_table_logs(), list("OFF"));
        for (name, command, error) in [
            ("d:t", "maybe", "invalid command argument"),
            ("d", "on", "invalid DB:TABLE argument"),
            ("d:t:u", "on", "invalid DB:TABLE argument"),
            ("e:t", "on", "no such database"),
            ("d:u", "on", "no such table"),
        ] {
            assert_eq!(server.set_table_log(name, command), Err(error.to_owned()));
        }
    }
}
