//! What monitors are told, as text.

use std::sync::Arc;

use db_model::{Row, TableSchema, Uuid};
use json::write_quoted;

use super::spec::{Select, Spec, TableSpec, Version};
use crate::changes::Changes;
use crate::database::Database;

/// What happened to a row, as far as a monitor can see.
enum Seen<'a> {
    Initial(&'a Row),
    Insert(&'a Row),
    Delete(&'a Row),
    Modify(&'a Row, &'a Row),
}

/// Writes `{"TABLE":{"UUID":ROW-UPDATE,...},...}`, opening what must be open.
struct Updates {
    out: String,
    table_open: bool,
}

impl Updates {
    fn new() -> Self {
        Self {
            out: String::from("{"),
            table_open: false,
        }
    }

    fn row(
        &mut self,
        version: Version,
        table: &TableSchema,
        spec: &TableSpec,
        uuid: Uuid,
        seen: &Seen<'_>,
    ) {
        let start = self.out.len();
        if self.table_open {
            self.out.push(',');
        } else {
            if start > 1 {
                self.out.push(',');
            }
            write_quoted(&table.name, &mut self.out);
            self.out.push_str(":{");
        }
        write_quoted(&uuid.to_string(), &mut self.out);
        self.out.push(':');
        let told = match version {
            Version::V1 => row_update(&mut self.out, table, spec, seen),
            Version::V2 | Version::V3 => row_update2(&mut self.out, table, spec, seen),
        };
        if told {
            self.table_open = true;
        } else {
            self.out.truncate(start);
        }
    }

    fn end_table(&mut self) {
        if self.table_open {
            self.out.push('}');
            self.table_open = false;
        }
    }

    fn finish(mut self) -> Option<String> {
        let any = self.out.len() > 1;
        self.out.push('}');
        any.then_some(self.out)
    }
}

/// Writes an object of a row's columns; `datum` writes a value or says that it is left out.
/// False if all are.
fn columns(
    out: &mut String,
    table: &TableSchema,
    columns: impl Iterator<Item = usize>,
    mut datum: impl FnMut(usize, &mut String) -> bool,
) -> bool {
    out.push('{');
    let mut any = false;
    for column in columns {
        let start = out.len();
        if any {
            out.push(',');
        }
        write_quoted(&table.columns[column].name, out);
        out.push(':');
        if datum(column, out) {
            any = true;
        } else {
            out.truncate(start);
        }
    }
    out.push('}');
    any
}

fn whole(out: &mut String, table: &TableSchema, chosen: impl Iterator<Item = usize>, row: &Row) {
    columns(out, table, chosen, |column, out| {
        row.get(column)
            .write_json(&table.columns[column].column_type, out);
        true
    });
}

/// `<row-update>` of RFC 7047.
fn row_update(out: &mut String, table: &TableSchema, spec: &TableSpec, seen: &Seen<'_>) -> bool {
    let chosen = |kind: fn(&Select) -> bool| spec.columns_for(kind);
    match seen {
        Seen::Initial(row) | Seen::Insert(row) => {
            let kind: fn(&Select) -> bool = match seen {
                Seen::Initial(_) => |s| s.initial,
                _ => |s| s.insert,
            };
            if !spec.columns.is_empty() && chosen(kind).next().is_none() {
                return false;
            }
            out.push_str("{\"new\":");
            whole(out, table, chosen(kind), row);
            out.push('}');
            true
        }
        Seen::Delete(row) => {
            if !spec.columns.is_empty() && chosen(|s| s.delete).next().is_none() {
                return false;
            }
            out.push_str("{\"old\":");
            whole(out, table, chosen(|s| s.delete), row);
            out.push('}');
            true
        }
        Seen::Modify(old, new) => {
            out.push_str("{\"new\":");
            whole(out, table, chosen(|s| s.modify), new);
            out.push_str(",\"old\":");
            let any = columns(out, table, chosen(|s| s.modify), |column, out| {
                let before = old.get(column);
                if before == new.get(column) {
                    return false;
                }
                before.write_json(&table.columns[column].column_type, out);
                true
            });
            out.push('}');
            any
        }
    }
}

/// `<row-update2>`: differences.
fn row_update2(out: &mut String, table: &TableSchema, spec: &TableSpec, seen: &Seen<'_>) -> bool {
    let chosen = |kind: fn(&Select) -> bool| spec.columns_for(kind);
    let none =
        |kind: fn(&Select) -> bool| !spec.columns.is_empty() && chosen(kind).next().is_none();
    let (row, kind, word): (&Row, fn(&Select) -> bool, &str) = match seen {
        Seen::Initial(row) => (row, |s| s.initial, "{\"initial\":"),
        Seen::Insert(row) => (row, |s| s.insert, "{\"insert\":"),
        Seen::Delete(_) => {
            out.push_str("{\"delete\":null}");
            return !none(|s| s.delete);
        }
        Seen::Modify(old, new) => {
            out.push_str("{\"modify\":");
            let any = columns(out, table, chosen(|s| s.modify), |column, out| {
                let column_type = &table.columns[column].column_type;
                match old.get(column).difference(new.get(column), column_type) {
                    Some(difference) => {
                        difference.write_json(column_type, out);
                        true
                    }
                    None => false,
                }
            });
            out.push('}');
            return any;
        }
    };
    if none(kind) {
        return false;
    }
    out.push_str(word);
    columns(out, table, chosen(kind), |column, out| {
        let column_type = &table.columns[column].column_type;
        let datum = row.get(column);
        if datum.is_default(column_type) {
            return false;
        }
        datum.write_json(column_type, out);
        true
    });
    out.push('}');
    true
}

/// The contents at the beginning.
pub(super) fn initial(spec: &Spec, db: &Database) -> String {
    let mut updates = Updates::new();
    for watched in &spec.tables {
        if !watched.columns.is_empty() && watched.columns_for(|s| s.initial).next().is_none() {
            continue;
        }
        let table = db.table(watched.table);
        for row in table.iter().filter(|row| watched.matches(row)) {
            let seen = Seen::Initial(row);
            updates.row(spec.version, table.schema(), watched, row.uuid(), &seen);
        }
        updates.end_table();
    }
    updates.finish().unwrap_or_else(|| "{}".to_owned())
}

/// What changes come to; `None` if nothing is seen of them.
pub(super) fn update(spec: &Spec, db: &Database, changes: &Changes) -> Option<String> {
    let mut updates = Updates::new();
    for watched in &spec.tables {
        let schema = db.table(watched.table).schema();
        for change in changes.of_table(watched.table) {
            let visible = |row: &Option<Arc<Row>>| row.as_ref().is_some_and(|r| watched.matches(r));
            let seen = match (&change.old, &change.new) {
                (Some(old), Some(new)) => match (visible(&change.old), visible(&change.new)) {
                    (true, true) => Seen::Modify(old, new),
                    (true, false) => Seen::Delete(old),
                    (false, true) => Seen::Insert(new),
                    (false, false) => continue,
                },
                (Some(old), None) if visible(&change.old) => Seen::Delete(old),
                (None, Some(new)) if visible(&change.new) => Seen::Insert(new),
                _ => continue,
            };
            updates.row(spec.version, schema, watched, change.uuid, &seen);
        }
        updates.end_table();
    }
    updates.finish()
}

/// The rows that come into view or leave it when conditions change.
pub(super) fn condition_change(old: &Spec, new: &Spec, db: &Database) -> Option<String> {
    let mut updates = Updates::new();
    for (before, after) in old.tables.iter().zip(&new.tables) {
        if before.condition == after.condition {
            continue;
        }
        let table = db.table(after.table);
        for row in table.iter() {
            let seen = match (before.matches(row), after.matches(row)) {
                (true, false) => Seen::Delete(row),
                (false, true) => Seen::Insert(row),
                _ => continue,
            };
            updates.row(new.version, table.schema(), after, row.uuid(), &seen);
        }
        updates.end_table();
    }
    updates.finish()
}
