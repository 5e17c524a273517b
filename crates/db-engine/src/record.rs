//! Records of the log: a transaction's changes as JSON, and back.
//!
//! A record is an object with a member per changed table, each an object with a member per
//! changed row: its changed columns, or `null` if it was deleted.  Members that begin with
//! an underscore say more: `_date` (milliseconds since 1970), `_comment`, and `_is_diff`:
//! columns of rows that were there before hold what [`Datum::difference`] yields.

use std::sync::Arc;

use base::WallTime;
use db_model::{
    Atom, DatabaseSchema, Datum, Error, Result, Row, SizeCheck, TableSchema, UUID_COLUMN, Uuid,
    parse_uuid,
};
use json::{Json, Object, write_quoted};

use crate::changes::{Changes, RowChange};
use crate::database::Snapshot;

/// What a record says beside its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// When it was written.
    pub date: Option<WallTime>,
    /// The comment.
    pub comment: Option<String>,
    /// Whether changed columns hold differences.
    pub is_difference: bool,
}

fn write_head(out: &mut String, date: WallTime, comment: &str, is_difference: bool) {
    use std::fmt::Write;
    // Writing to a `String` cannot fail.
    let _ = write!(out, "{{\"_date\":{}", date.0);
    if !comment.is_empty() {
        out.push_str(",\"_comment\":");
        write_quoted(comment, out);
    }
    if is_difference {
        out.push_str(",\"_is_diff\":true");
    }
}

/// The text of the record of a transaction.  `None` if it changed nothing that is kept.
///
/// With `differences`, changed sets and maps are recorded as differences.
pub fn transaction_record(
    schema: &DatabaseSchema,
    changes: &Changes,
    date: WallTime,
    comment: &str,
    differences: bool,
) -> Option<String> {
    let mut out = String::with_capacity(256);
    write_head(&mut out, date, comment, differences);
    let mut any = false;
    for table in &changes.tables {
        let table_schema = &schema.tables[table.table];
        let mut open = false;
        for row in &table.rows {
            let mut columns = String::new();
            if !write_row_change(table_schema, row, differences, &mut columns) {
                continue;
            }
            if open {
                out.push(',');
            } else {
                open_member(&mut out, &table_schema.name);
                open = true;
            }
            write_quoted(&row.uuid.to_string(), &mut out);
            out.push(':');
            out.push_str(&columns);
        }
        if open {
            out.push('}');
            any = true;
        }
    }
    out.push('}');
    any.then_some(out)
}

fn open_member(out: &mut String, name: &str) {
    out.push(',');
    write_quoted(name, out);
    out.push_str(":{");
}

/// Writes the value of one row's member.  False if nothing that is kept has changed.
fn write_row_change(
    table: &TableSchema,
    change: &RowChange,
    differences: bool,
    out: &mut String,
) -> bool {
    let Some(new) = &change.new else {
        out.push_str("null");
        return change.old.is_some();
    };
    out.push('{');
    let mut any = false;
    for (column, schema) in table.own_columns().filter(|(_, c)| c.persistent) {
        let datum = new.get(column);
        let difference;
        let datum = match change.old.as_deref().map(|old| old.get(column)) {
            None if datum.is_default(&schema.column_type) => continue,
            None => datum,
            Some(old) if old == datum => continue,
            Some(old) if differences => {
                difference = old.difference(datum, &schema.column_type);
                difference.as_ref().unwrap_or(datum)
            }
            Some(_) => datum,
        };
        if any {
            out.push(',');
        }
        any = true;
        write_quoted(&schema.name, out);
        out.push(':');
        datum.write_json(&schema.column_type, out);
    }
    out.push('}');
    any || change.old.is_none()
}

/// The text of a record that holds all rows of a snapshot.
pub fn snapshot_record(snapshot: &Snapshot, date: WallTime, comment: &str) -> String {
    let mut out = String::new();
    write_head(&mut out, date, comment, false);
    for (table, rows) in snapshot.schema.tables.iter().zip(&snapshot.tables) {
        for (i, row) in rows.iter().enumerate() {
            if i == 0 {
                open_member(&mut out, &table.name);
            } else {
                out.push(',');
            }
            write_quoted(&row.uuid().to_string(), &mut out);
            out.push(':');
            let insert = RowChange {
                uuid: row.uuid(),
                old: None,
                new: Some(Arc::clone(row)),
            };
            write_row_change(table, &insert, false, &mut out);
        }
        if !rows.is_empty() {
            out.push('}');
        }
    }
    out.push('}');
    out
}

/// Reads a record.  `visit` is called for each row with the index of its table, its UUID,
/// and its columns or `None` if it was deleted.
///
/// # Errors
/// The record names a table that is not in the schema or is otherwise malformed.
pub fn read_record<'a>(
    schema: &DatabaseSchema,
    json: &'a Json,
    mut visit: impl FnMut(&Record, usize, Uuid, Option<&'a Object>) -> Result<()>,
) -> Result<Record> {
    let object = json
        .as_object()
        .ok_or_else(|| Error::syntax(json, "object expected"))?;
    let record = Record {
        date: object.get("_date").and_then(Json::as_integer).map(WallTime),
        comment: object
            .get("_comment")
            .and_then(Json::as_str)
            .map(str::to_owned),
        is_difference: object.get("_is_diff").and_then(Json::as_bool) == Some(true),
    };
    for (name, rows) in object.iter() {
        if name.starts_with('_') {
            continue;
        }
        let table = schema.table_index(name).ok_or_else(|| {
            Error::new("unknown table", format!("No table named {name}.")).at(json)
        })?;
        let rows = rows
            .as_object()
            .ok_or_else(|| Error::syntax(rows, "object expected"))?;
        for (uuid, columns) in rows.iter() {
            let parsed = parse_uuid(uuid)
                .ok_or_else(|| Error::syntax(columns, format!("\"{uuid}\" is not a valid UUID")))?;
            let columns = match columns {
                Json::Null => None,
                Json::Object(columns) => Some(columns),
                other => return Err(Error::syntax(other, "row must be JSON object")),
            };
            visit(&record, table, parsed, columns)?;
        }
    }
    Ok(record)
}

/// The row after the columns of a record were put into it.  Columns that the schema does not
/// know are left out if `lenient`.
pub(crate) fn row_from_record(
    schema: &TableSchema,
    uuid: Uuid,
    old: Option<&Row>,
    columns: &Object,
    is_difference: bool,
    lenient: bool,
) -> Result<Row> {
    let mut row = match old {
        Some(old) => old.clone(),
        None => Row::new(schema, uuid),
    };
    row.set(UUID_COLUMN, Atom::Uuid(uuid).into());
    for (name, value) in columns.iter() {
        let Some(column) = schema.column_index(name) else {
            if lenient {
                continue;
            }
            let details = format!("No column {name} in table {}.", schema.name);
            return Err(Error::new("unknown column", details).at(value));
        };
        let column_type = &schema.columns[column].column_type;
        let datum = match old {
            Some(old) if is_difference => {
                let change = Datum::from_json_sized(value, column_type, None, SizeCheck::Any)?;
                old.get(column).apply_difference(&change, column_type)?
            }
            _ => Datum::from_json(value, column_type, None)?,
        };
        row.set(column, datum);
    }
    Ok(row)
}
