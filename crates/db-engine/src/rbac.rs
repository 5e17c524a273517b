//! What the role of a client lets it do (`ovsdb(7)`, "Role-Based Access Control").
//!
//! A database with a table `RBAC_Role` restricts clients whose remote names a role: a row
//! of that table refers, by the name of a table, to a row that says who may insert and
//! delete there and which columns may be written.  Reading is free to all.

use std::sync::Arc;

use db_model::{AtomType, Datum, Error, Result, Row, Uuid};

use crate::table::Table;
use crate::transaction::Transaction;

/// Who asks for a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The role of the remote; empty if it has none and everything is allowed.
    pub role: &'a str,
    /// The name in the client's certificate, if it showed one.
    pub id: Option<&'a str>,
}

impl Identity<'_> {
    /// Whether a client of this identity is restricted, in a database that knows roles.
    pub const fn is_restricted(&self) -> bool {
        !self.role.is_empty()
    }

    /// The error that says that the rules forbid `what`.
    pub fn denied(&self, what: &str) -> Error {
        let id = self.id.unwrap_or("(null)");
        let role = self.role;
        Error::new(
            "permission error",
            format!("RBAC rules for client \"{id}\" role \"{role}\" prohibit {what}"),
        )
    }
}

/// The columns that an operation writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    /// Rows come.
    Insert,
    /// Rows go.
    Delete,
    /// These columns of rows are replaced.
    Update(&'a [usize]),
    /// These columns of rows are mutated.
    Mutate(&'a [usize]),
}

impl Change<'_> {
    fn text(self, table: &str) -> String {
        match self {
            Self::Insert => format!("row insertion into table \"{table}\"."),
            Self::Delete => format!("row deletion from table \"{table}\"."),
            Self::Update(_) => format!("modification of table \"{table}\"."),
            Self::Mutate(_) => format!("mutate operation on table \"{table}\"."),
        }
    }
}

/// Checks that `identity` may do `change` to all of `rows` of table `table`.
///
/// # Errors
/// A `permission error`.
pub(crate) fn check<'a>(
    transaction: &Transaction<'_>,
    identity: Option<&Identity<'_>>,
    table: usize,
    change: Change<'_>,
    rows: impl Iterator<Item = &'a Row>,
) -> Result<()> {
    let Some(identity) = identity.filter(|identity| identity.is_restricted()) else {
        return Ok(());
    };
    let Some(roles) = transaction.db.table_named("RBAC_Role") else {
        return Ok(());
    };
    let schema = transaction.schema(table);
    let denied = || identity.denied(&change.text(&schema.name));
    let id = identity.id.ok_or_else(denied)?;
    let permissions = permissions(transaction, roles, identity.role, &schema.name);
    let permissions = permissions.ok_or_else(denied)?;
    let allows =
        |row: &Row| permissions.admits(id, &schema, row) && permissions.allows(change, &schema);
    let mut rows = rows;
    if rows.all(allows) {
        Ok(())
    } else {
        Err(denied())
    }
}

/// A row of permissions, with its table.
struct Permissions<'a> {
    table: &'a Table,
    row: &'a Arc<Row>,
}

/// The permissions of a role for a table.
fn permissions<'a>(
    transaction: &'a Transaction<'_>,
    roles: &'a Table,
    role: &str,
    table: &str,
) -> Option<Permissions<'a>> {
    let name = roles.schema().column_index("name")?;
    let is_named = |row: &&Arc<Row>| {
        let names = row.get(name).as_set();
        names.iter().any(|atom| atom.as_str() == Some(role))
    };
    let Some(row) = roles.iter().find(is_named) else {
        base::log_limited!(
            Info,
            "ovsdb_rbac",
            (1, 1),
            "rbac: role \"{role}\" not found in rbac roles table"
        );
        return None;
    };
    let Some(column) = roles.schema().column_index("permissions") else {
        base::log_limited!(
            Info,
            "ovsdb_rbac",
            (1, 1),
            "rbac: \"permissions\" column not present in rbac roles table"
        );
        return None;
    };
    let target = roles.schema().columns[column].column_type.value.as_ref()?;
    let table_of_permissions = transaction.db.table_named(&target.reference()?.table)?;
    let mut pairs = row.get(column).as_map().iter();
    let (_, permission) = pairs.find(|(key, _)| key.as_str() == Some(table))?;
    Some(Permissions {
        table: table_of_permissions,
        row: table_of_permissions.get(permission.as_uuid()?)?,
    })
}

impl Permissions<'_> {
    fn field(&self, name: &str) -> Option<&Datum> {
        let column = self.table.schema().column_index(name)?;
        Some(self.row.get(column))
    }

    /// Whether the client called `id` may change `row` at all: one of the columns, or keys of
    /// columns, that are named holds its name; an empty name admits everybody.
    fn admits(&self, id: &str, schema: &db_model::TableSchema, row: &Row) -> bool {
        let Some(names) = self.field("authorization") else {
            base::log_limited!(
                Info,
                "ovsdb_rbac",
                (1, 1),
                "rbac: error reading authorization column"
            );
            return false;
        };
        names
            .as_set()
            .iter()
            .filter_map(|atom| atom.as_str())
            .any(|name| {
                if name.is_empty() {
                    return true;
                }
                let (name, key) = match name.split_once(':') {
                    Some((name, key)) => (name, Some(key)),
                    None => (name, None),
                };
                let Some(column) = schema.column_index(name) else {
                    return false;
                };
                let (datum, column_type) = (row.get(column), &schema.columns[column].column_type);
                let value = match key {
                    Some(key) if column_type.is_map() => datum.get_str(key),
                    None if column_type.key.atom == AtomType::String && !column_type.is_map() => {
                        datum.as_str()
                    }
                    _ => None,
                };
                value == Some(id)
            })
    }

    fn allows(&self, change: Change<'_>, schema: &db_model::TableSchema) -> bool {
        match change {
            Change::Insert | Change::Delete => {
                self.field("insert_delete").and_then(Datum::as_bool) == Some(true)
            }
            Change::Update(columns) | Change::Mutate(columns) => {
                let Some(allowed) = self.field("update") else {
                    return false;
                };
                columns.iter().all(|column| {
                    let name = &*schema.columns[*column].name;
                    let mut allowed = allowed.as_set().iter();
                    allowed.any(|atom| atom.as_str() == Some(name))
                })
            }
        }
    }
}

/// Rows of a table, by their UUIDs.
pub(crate) fn rows<'a>(
    transaction: &'a Transaction<'_>,
    table: usize,
    uuids: &'a [Uuid],
) -> impl Iterator<Item = &'a Row> {
    let found = uuids
        .iter()
        .filter_map(move |uuid| transaction.get(table, *uuid));
    found.map(|row| &**row)
}
