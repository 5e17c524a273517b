//! Columns of databases that configure the server: `db:DB,TABLE,COLUMN`.

use std::sync::Arc;

use db_engine::Database;
use db_model::{AtomType, Datum, Row, Uuid};

use crate::server::Server;

/// A column that was named and found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DbColumn {
    pub(crate) db: Arc<str>,
    pub(crate) table: usize,
    pub(crate) column: usize,
}

impl DbColumn {
    /// Finds what `db:DB,TABLE,COLUMN` names.
    pub(crate) fn find(server: &Server, name: &str) -> Result<Self, String> {
        let parts: Vec<&str> = name.strip_prefix("db:").unwrap_or("").split(',').collect();
        let [db_name, table_name, column_name] = parts.as_slice() else {
            return Err(format!("\"{name}\": invalid syntax"));
        };
        let db = server
            .get_database(db_name)
            .ok_or_else(|| format!("\"{name}\": no database named {db_name}"))?;
        let table = db
            .schema()
            .table_index(table_name)
            .ok_or_else(|| format!("\"{name}\": no table named {table_name}"))?;
        let column = db.schema().tables[table]
            .column_index(column_name)
            .ok_or_else(|| {
                format!("\"{name}\": table \"{table_name}\" has no column \"{column_name}\"")
            })?;
        let column_type = &db.schema().tables[table].columns[column].column_type;
        let atom = column_type.key.atom;
        if column_type.is_map()
            || (atom != AtomType::String && column_type.key.reference().is_none())
        {
            return Err(format!(
                "\"{name}\": table \"{table_name}\" column \"{column_name}\" is not string or set of strings"
            ));
        }
        Ok(Self {
            db: db.schema().name.clone(),
            table,
            column,
        })
    }

    /// Checks what `db:DB,TABLE,COLUMN` names, as far as it is known by now: a database of
    /// another server may come later.
    pub(crate) fn check(server: &Server, name: &str) -> Result<(), String> {
        let db = name
            .strip_prefix("db:")
            .and_then(|rest| rest.split(',').next());
        if db.is_some_and(|db| server.is_unavailable(db)) {
            return Ok(());
        }
        Self::find(server, name).map(drop)
    }

    fn database<'a>(&self, server: &'a Server) -> Option<&'a Database> {
        server.get_database(&self.db)
    }

    /// All strings in the column, in all rows.
    pub(crate) fn strings<'a>(&self, server: &'a Server) -> Vec<&'a str> {
        let Some(db) = self.database(server) else {
            return Vec::new();
        };
        let rows = db.table(self.table).iter();
        rows.flat_map(|row| row.get(self.column).as_set())
            .filter_map(|atom| atom.as_str())
            .collect()
    }

    /// The index of the table whose rows the column refers to.
    pub(crate) fn target_table(&self, server: &Server) -> Option<usize> {
        let schema = self.database(server)?.schema();
        let column = &schema.tables[self.table].columns[self.column];
        schema.table_index(&column.column_type.key.reference()?.table)
    }

    /// The rows that the column refers to.
    pub(crate) fn rows(&self, server: &Server) -> Vec<Arc<Row>> {
        let (Some(db), Some(target)) = (self.database(server), self.target_table(server)) else {
            return Vec::new();
        };
        let referring = db.table(self.table).iter();
        let uuids: Vec<Uuid> = referring
            .flat_map(|row| row.get(self.column).as_set())
            .filter_map(|atom| atom.as_uuid())
            .collect();
        uuids
            .into_iter()
            .filter_map(|uuid| db.table(target).get(uuid).cloned())
            .collect()
    }
}

/// The value of a column of a row by the column's name, if there is such a column.
pub(crate) fn field<'a>(
    schema: &db_model::TableSchema,
    row: &'a Row,
    name: &str,
) -> Option<&'a Datum> {
    schema.column_index(name).map(|column| row.get(column))
}
