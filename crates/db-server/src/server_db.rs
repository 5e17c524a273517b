//! The `_Server` database, which tells clients about the server itself.

use std::sync::Arc;

use base::Instant;
use db_engine::{Changes, Database, Transaction};
use db_model::{Atom, DatabaseSchema, Row, Uuid, UuidSource};

/// Name of the database.
pub(crate) const NAME: &str = "_Server";

const SCHEMA: &str = r#"{"name":"_Server","version":"1.2.0","cksum":"3009684573 744","tables":{
"Database":{"isRoot":true,"columns":{
"name":{"type":"string"},
"model":{"type":{"key":{"type":"string","enum":["set",["standalone","clustered","relay"]]}}},
"connected":{"type":"boolean"},
"leader":{"type":"boolean"},
"schema":{"type":{"key":"string","min":0,"max":1}},
"cid":{"type":{"key":"uuid","min":0,"max":1}},
"sid":{"type":{"key":"uuid","min":0,"max":1}},
"index":{"type":{"key":"integer","min":0,"max":1}}}}}}"#;

/// An empty `_Server` database.
pub(crate) fn new(uuids: UuidSource) -> Database {
    // The text is a constant, and a test parses it.
    let schema = DatabaseSchema::from_text(SCHEMA).unwrap_or_else(|_| DatabaseSchema {
        name: NAME.into(),
        version: String::new(),
        cksum: String::new(),
        tables: Vec::new(),
    });
    Database::new(Arc::new(schema), uuids)
}

fn find(db: &Database, name: &str) -> Option<Uuid> {
    let table = db.table_named("Database")?;
    let column = table.schema().column_index("name")?;
    let row = table
        .iter()
        .find(|row| row.get(column).as_str() == Some(name))?;
    Some(row.uuid())
}

/// What is told of a database.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    /// How it is shared between servers: `standalone`, `clustered` or `relay`.
    pub(crate) model: &'static str,
    /// Whether this server has a part in what serves the database.
    pub(crate) connected: bool,
    /// Whether it is the one that commits changes.
    pub(crate) leader: bool,
    /// The schema, once it is known.
    pub(crate) schema: Option<Arc<DatabaseSchema>>,
    /// The ids of the cluster and of this server in it.
    pub(crate) ids: Option<(Uuid, Uuid)>,
    /// The index of the cluster's log up to which the database is there; 0 if there is none.
    pub(crate) index: u64,
}

impl Status {
    /// That of a database that is this server's alone.
    pub(crate) const STANDALONE: Self = Self {
        model: "standalone",
        connected: true,
        leader: true,
        schema: None,
        ids: None,
        index: 0,
    };
}

/// Notes that a database is served, and how it stands with it.
pub(crate) fn set(db: &mut Database, name: &str, status: &Status) -> Changes {
    let Some(table) = db.schema().table_index("Database") else {
        return Changes::default();
    };
    let known = find(db, name);
    let uuid = known.unwrap_or_else(|| db.new_uuid());
    let table_schema = Arc::clone(db.table(table).schema());
    let mut transaction = Transaction::new(db);
    if known.is_none() {
        transaction.insert(table, Row::new(&table_schema, uuid));
    }
    if let Some(row) = transaction.modify(table, uuid) {
        let schema = status.schema.as_ref();
        let text = schema.map(|schema| Atom::string(schema.to_json().to_string()));
        for (column, atom) in [
            ("name", Some(Atom::string(name))),
            ("model", Some(Atom::string(status.model))),
            ("connected", Some(Atom::Boolean(status.connected))),
            ("leader", Some(Atom::Boolean(status.leader))),
            ("schema", text),
            ("cid", status.ids.map(|(cid, _)| Atom::Uuid(cid))),
            ("sid", status.ids.map(|(_, sid)| Atom::Uuid(sid))),
            ("index", index_atom(status.index)),
        ] {
            if let Some(column) = table_schema.column_index(column) {
                row.set(column, atom.map(Into::into).unwrap_or_default());
            }
        }
    }
    transaction.commit().unwrap_or_default()
}

fn index_atom(index: u64) -> Option<Atom> {
    let index = i64::try_from(index).ok().filter(|index| *index != 0);
    index.map(Atom::Integer)
}

/// Notes how far a cluster's log has come.
pub(crate) fn set_index(db: &mut Database, name: &str, index: u64) -> Changes {
    let (Some(table), Some(uuid)) = (db.schema().table_index("Database"), find(db, name)) else {
        return Changes::default();
    };
    let column = db.table(table).schema().column_index("index");
    let mut transaction = Transaction::new(db);
    if let (Some(row), Some(column)) = (transaction.modify(table, uuid), column) {
        row.set(
            column,
            index_atom(index).map(Into::into).unwrap_or_default(),
        );
    }
    transaction.commit().unwrap_or_default()
}

/// Notes that a database is served no more.
pub(crate) fn remove(db: &mut Database, name: &str) -> Changes {
    let (Some(table), Some(uuid)) = (db.schema().table_index("Database"), find(db, name)) else {
        return Changes::default();
    };
    let mut transaction = Transaction::new(db);
    transaction.delete(table, uuid);
    transaction.commit().unwrap_or_default()
}

/// When nothing is due.
pub(crate) const NEVER: Instant = Instant::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_listed() {
        let mut db = new(UuidSource::new([1; 32]));
        assert_eq!(db.schema().tables.len(), 1);
        assert!(!set(&mut db, NAME, &Status::STANDALONE).is_empty());
        assert!(set(&mut db, NAME, &Status::STANDALONE).is_empty());
        let schema = Arc::clone(db.schema());
        let status = Status {
            schema: Some(schema),
            ..Status::STANDALONE
        };
        assert!(!set(&mut db, "x", &status).is_empty());
        let relay = Status {
            model: "relay",
            connected: false,
            leader: false,
            ..Status::STANDALONE
        };
        assert!(!set(&mut db, "x", &relay).is_empty());
        assert_eq!(db.table(0).len(), 2);
        assert!(!remove(&mut db, "x").is_empty());
        assert_eq!(db.table(0).len(), 1);
    }
}
