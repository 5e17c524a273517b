//! The copy of a database that a client keeps.

use std::collections::HashMap;
use std::sync::Arc;

use db_model::{Datum, SizeCheck, Uuid};
use json::{Json, Object};

use crate::changes::{Changes, Columns, TableChanges};
use crate::follower::Form;
use crate::{ColumnId, Interest, Layout, TableId};

/// A row: the values of the columns that the client wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    values: Box<[Datum]>,
}

/// A row where it stands, which knows its columns.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    uuid: Uuid,
    row: &'a Row,
    table: &'a TableReplica,
}

impl<'a> RowRef<'a> {
    /// The row's UUID.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// The value of a column; its default if the client did not ask for the column.
    pub fn get(&self, column: ColumnId) -> &'a Datum {
        self.table.value(self.row, column)
    }
}

/// The rows of one table.
#[derive(Clone, Debug)]
pub struct TableReplica {
    rows: HashMap<Uuid, Row>,
    /// By column: its place in [`Row::values`], if it is wanted.
    slots: Vec<Option<u16>>,
    /// By column.
    defaults: Vec<Datum>,
    /// What a row without values holds, by slot.
    blank: Row,
}

impl TableReplica {
    fn new(layout: &Layout, table: TableId, interest: &Interest) -> Self {
        let mut slots = Vec::new();
        let mut defaults = Vec::new();
        let mut blank = Vec::new();
        for (id, column) in layout[table].columns() {
            let wanted = interest.has_column(table, id);
            slots.push(wanted.then_some(blank.len() as u16));
            defaults.push(column.default.clone());
            if wanted {
                blank.push(column.default.clone());
            }
        }
        Self {
            rows: HashMap::new(),
            slots,
            defaults,
            blank: Row {
                values: blank.into(),
            },
        }
    }

    fn slot(&self, column: ColumnId) -> Option<usize> {
        self.slots[usize::from(column.0)].map(usize::from)
    }

    fn value<'a>(&'a self, row: &'a Row, column: ColumnId) -> &'a Datum {
        match self.slot(column) {
            Some(slot) => &row.values[slot],
            None => &self.defaults[usize::from(column.0)],
        }
    }

    /// The row with this UUID.
    pub fn row(&self, uuid: Uuid) -> Option<RowRef<'_>> {
        let row = self.rows.get(&uuid)?;
        Some(RowRef {
            uuid,
            row,
            table: self,
        })
    }

    /// A row that is no longer in the table, such as [`TableChanges::deleted`] has.
    pub fn past_row<'a>(&'a self, uuid: Uuid, row: &'a Row) -> RowRef<'a> {
        RowRef {
            uuid,
            row,
            table: self,
        }
    }

    /// All rows, in no order.
    pub fn rows(&self) -> impl Iterator<Item = RowRef<'_>> {
        self.rows.iter().map(|(uuid, row)| RowRef {
            uuid: *uuid,
            row,
            table: self,
        })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// The copy of a database.
#[derive(Clone, Debug)]
pub struct Replica {
    layout: Arc<Layout>,
    tables: Vec<TableReplica>,
    changes: Vec<TableChanges>,
    version: u64,
}

impl Replica {
    /// An empty copy that will hold what `interest` asks for.
    pub fn new(layout: Arc<Layout>, interest: &Interest) -> Self {
        let tables: Vec<TableReplica> = layout
            .tables()
            .map(|(table, _)| TableReplica::new(&layout, table, interest))
            .collect();
        let changes = vec![TableChanges::default(); tables.len()];
        Self {
            layout,
            tables,
            changes,
            version: 0,
        }
    }

    /// The tables and columns.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// A number that grows whenever the contents may have changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The rows of a table.
    pub fn table(&self, table: TableId) -> &TableReplica {
        &self.tables[usize::from(table.0)]
    }

    /// A row, if it is there.
    pub fn row(&self, table: TableId, uuid: Uuid) -> Option<RowRef<'_>> {
        self.table(table).row(uuid)
    }

    /// What changed since this was last called.
    pub fn take_changes(&mut self) -> Changes {
        let fresh = vec![TableChanges::default(); self.tables.len()];
        Changes::new(std::mem::replace(&mut self.changes, fresh))
    }

    /// Takes in the whole contents: rows that it does not name are gone.
    pub(crate) fn reset(&mut self, updates: &Json, form: Form) -> Result<(), String> {
        let updates = object(updates, "table updates")?;
        for (id, table) in self.layout.clone().tables() {
            let named = updates.get(&table.name).and_then(Json::as_object);
            let gone: Vec<Uuid> = self.tables[usize::from(id.0)]
                .rows
                .keys()
                .filter(|uuid| !named.is_some_and(|n| n.contains(&uuid.to_string())))
                .copied()
                .collect();
            for uuid in gone {
                self.delete(id, uuid);
            }
        }
        self.apply_object(updates, form)
    }

    /// Takes in an update.
    pub(crate) fn apply(&mut self, updates: &Json, form: Form) -> Result<(), String> {
        self.apply_object(object(updates, "table updates")?, form)
    }

    fn apply_object(&mut self, updates: &Object, form: Form) -> Result<(), String> {
        self.version += 1;
        for (name, rows) in updates.iter() {
            let Some(table) = self.layout.table(name) else {
                return Err(format!(
                    "update of table \"{name}\", which was not asked for"
                ));
            };
            for (uuid, update) in object(rows, "table update")?.iter() {
                let uuid = db_model::parse_uuid(uuid)
                    .ok_or_else(|| format!("\"{uuid}\" in table {name} is not a UUID"))?;
                let update = object(update, "row update")?;
                match form {
                    Form::Full => self.apply_full(table, uuid, update)?,
                    Form::Differences => self.apply_difference(table, uuid, update)?,
                }
            }
        }
        Ok(())
    }

    fn apply_full(&mut self, table: TableId, uuid: Uuid, update: &Object) -> Result<(), String> {
        match update.get("new") {
            None | Some(Json::Null) => self.delete(table, uuid),
            Some(new) => self.put(table, uuid, object(new, "row")?, false),
        }
        Ok(())
    }

    fn apply_difference(
        &mut self,
        table: TableId,
        uuid: Uuid,
        update: &Object,
    ) -> Result<(), String> {
        for (kind, row) in update.iter() {
            match &**kind {
                "initial" | "insert" => self.put(table, uuid, object(row, "row")?, true),
                "delete" => self.delete(table, uuid),
                "modify" => self.modify(table, uuid, object(row, "row")?)?,
                other => return Err(format!("unknown kind \"{other}\" of row update")),
            }
        }
        Ok(())
    }

    /// Inserts or replaces a row.  Columns that `values` does not name get their defaults
    /// if `whole`, else stay.
    fn put(&mut self, id: TableId, uuid: Uuid, values: &Object, whole: bool) {
        let layout = Arc::clone(&self.layout);
        let table = &mut self.tables[usize::from(id.0)];
        let old = table.rows.get(&uuid);
        let mut row = match old {
            Some(old) if !whole => old.clone(),
            _ => table.blank.clone(),
        };
        for (name, value) in values.iter() {
            let Some(column) = layout[id].column(name) else {
                continue;
            };
            let Some(slot) = table.slot(column) else {
                continue;
            };
            match Datum::from_json(value, &layout[id][column].wire_type, None) {
                Ok(datum) => row.values[slot] = datum,
                Err(error) => warn_value(&layout[id].name, name, &error.to_string()),
            }
        }
        let changes = &mut self.changes[usize::from(id.0)];
        match old {
            None => changes.note_insert(uuid),
            Some(old) => {
                let mut written = Columns::default();
                for (column, _) in layout[id].columns() {
                    if let Some(slot) = table.slot(column)
                        && old.values[slot] != row.values[slot]
                    {
                        written.insert(column);
                    }
                }
                changes.note_modify(uuid, written);
            }
        }
        table.rows.insert(uuid, row);
    }

    fn modify(&mut self, id: TableId, uuid: Uuid, differences: &Object) -> Result<(), String> {
        let layout = Arc::clone(&self.layout);
        let table = &mut self.tables[usize::from(id.0)];
        let slots = &table.slots;
        let Some(row) = table.rows.get_mut(&uuid) else {
            return Err(format!(
                "modification of row {uuid}, which is not in table {}",
                layout[id].name
            ));
        };
        let mut written = Columns::default();
        for (name, value) in differences.iter() {
            let Some(column) = layout[id].column(name) else {
                continue;
            };
            let Some(slot) = slots[usize::from(column.0)].map(usize::from) else {
                continue;
            };
            let wire_type = &layout[id][column].wire_type;
            let new = Datum::from_json_sized(value, wire_type, None, SizeCheck::Any)
                .and_then(|difference| row.values[slot].apply_difference(&difference, wire_type));
            match new {
                Ok(new) => {
                    row.values[slot] = new;
                    written.insert(column);
                }
                Err(error) => warn_value(&layout[id].name, name, &error.to_string()),
            }
        }
        self.changes[usize::from(id.0)].note_modify(uuid, written);
        Ok(())
    }

    fn delete(&mut self, id: TableId, uuid: Uuid) {
        if let Some(row) = self.tables[usize::from(id.0)].rows.remove(&uuid) {
            self.changes[usize::from(id.0)].note_delete(uuid, row);
        }
    }
}

fn object<'a>(json: &'a Json, what: &str) -> Result<&'a Object, String> {
    json.as_object()
        .ok_or_else(|| format!("{what} is not an object but {}", json.type_name()))
}

fn warn_value(table: &str, column: &str, error: &str) {
    base::log_limited!(
        Warn,
        "ovsdb_idl",
        (1, 5),
        "error parsing column {column} in table {table}: {error}"
    );
}
