//! A transaction as operations of the protocol, and what its reply means.

use std::collections::{BTreeMap, HashMap, HashSet};

use db_model::{Atom, Datum, Uuid, parse_uuid};
use json::{Json, Object};

use crate::transaction::{Insert, RowEdit, Write};
use crate::{ColumnId, Layout, Replica, TableId, Transaction};

/// What became of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// There was nothing to change; nothing was sent.
    Unchanged,
    /// It is done.
    Success(Success),
    /// The database was not as the transaction wanted it, or the connection broke before
    /// an answer came: build it again from newer contents.
    TryAgain,
    /// The lock that the client holds or wants is not its own.
    NotLocked,
    /// The server refused it; the text is the error object.
    Error(String),
}

/// What a transaction did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Success {
    /// For each inserted row, by the UUID that the transaction used: the real one.
    pub inserted: HashMap<Uuid, Uuid>,
    /// The new value of the incremented column.
    pub increment: Option<i64>,
}

/// A transaction that was sent, and what to make of the results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    /// By operation: the row that it inserts.
    inserts: BTreeMap<usize, Uuid>,
    /// The operation that reads the incremented column, and the column's name.
    increment: Option<(usize, String)>,
    dry_run: bool,
}

/// Writes operations of one transaction.
struct Encoder<'a> {
    layout: &'a Layout,
    replica: &'a Replica,
    /// Rows that other operations call by name.
    named: HashSet<Uuid>,
    operations: Vec<Json>,
    sent: Sent,
}

/// The parameters of the `transact` request, or `None` if nothing would change.
pub(crate) fn encode(
    transaction: &Transaction,
    replica: &Replica,
    lock: Option<&str>,
) -> Option<(Vec<Json>, Sent)> {
    let mut encoder = Encoder {
        layout: replica.layout(),
        replica,
        named: named_rows(transaction),
        operations: vec![Json::from(&*replica.layout().database)],
        sent: Sent {
            dry_run: transaction.dry_run,
            ..Sent::default()
        },
    };
    if let Some(lock) = lock {
        let assert = operation("assert").with("lock", lock);
        encoder.operations.push(assert.into());
    }
    encoder.prerequisites(transaction);
    let before = encoder.operations.len();
    for (table, uuid) in &transaction.order {
        if let Some(edit) = transaction.rows.get(table).and_then(|rows| rows.get(uuid)) {
            encoder.row(*table, *uuid, edit);
        }
    }
    let changed = encoder.operations.len() > before;
    if let Some((table, uuid, column, force)) = transaction.increment
        && (changed || force)
    {
        encoder.increment(table, uuid, column);
    }
    if encoder.operations.len() == before {
        return None;
    }
    if !transaction.comments.is_empty() {
        let text = transaction.comments.join("\n");
        let comment = operation("comment").with("comment", text);
        encoder.operations.push(comment.into());
    }
    if transaction.dry_run {
        encoder.operations.push(operation("abort").into());
    }
    Some((encoder.operations, encoder.sent))
}

fn named_rows(transaction: &Transaction) -> HashSet<Uuid> {
    let edits = transaction.rows.values().flatten();
    edits
        .filter(|(_, edit)| edit.inserted == Some(Insert::ServerChooses) && !edit.deleted)
        .map(|(uuid, _)| *uuid)
        .collect()
}

fn operation(name: &str) -> Object {
    Object::new().with("op", name)
}

/// The name by which other operations call an inserted row.
fn row_name(uuid: Uuid) -> String {
    format!("row{}", uuid.to_string().replace('-', "_"))
}

fn this_row(uuid: Uuid) -> Json {
    let clause = vec!["_uuid".into(), "==".into(), Atom::Uuid(uuid).to_json()];
    Json::Array(vec![Json::Array(clause)])
}

impl Encoder<'_> {
    fn prerequisites(&mut self, transaction: &Transaction) {
        for (table, uuid) in &transaction.order {
            let edit = transaction.rows.get(table).and_then(|rows| rows.get(uuid));
            let Some(verified) = edit.map(|edit| &edit.verified).filter(|v| !v.is_empty()) else {
                continue;
            };
            let Some(row) = self.replica.row(*table, *uuid) else {
                continue;
            };
            let layout = &self.layout[*table];
            let names = verified.iter().map(|c| Json::from(&*layout[*c].name));
            let columns: Vec<Json> = names.collect();
            let values: Object = verified
                .iter()
                .map(|c| {
                    let value = row.get(*c).to_json_of(&layout[*c].column_type);
                    (layout[*c].name.clone(), value)
                })
                .collect();
            let wait = operation("wait")
                .with("table", &*layout.name)
                .with("where", this_row(*uuid))
                .with("columns", columns)
                .with("until", "==")
                .with("rows", vec![Json::Object(values)])
                .with("timeout", 0i64);
            self.operations.push(wait.into());
        }
        for table in &transaction.verified_empty {
            let wait = operation("wait")
                .with("table", &*self.layout[*table].name)
                .with("where", Vec::new())
                .with("columns", Vec::new())
                .with("until", "==")
                .with("rows", Vec::new())
                .with("timeout", 0i64);
            self.operations.push(wait.into());
        }
    }

    fn row(&mut self, table: TableId, uuid: Uuid, edit: &RowEdit) {
        let name = self.layout[table].name.clone();
        if edit.deleted {
            if edit.inserted.is_none() && self.layout[table].is_root {
                let delete = operation("delete")
                    .with("table", &*name)
                    .with("where", this_row(uuid));
                self.operations.push(delete.into());
            }
        } else if let Some(insert) = edit.inserted {
            let mut object = operation("insert")
                .with("table", &*name)
                .with("row", self.values(table, edit, true));
            match insert {
                Insert::ServerChooses => object.insert("uuid-name", row_name(uuid)),
                Insert::Persistent => object.insert("uuid", uuid.to_string()),
            }
            let index = self.operations.len() - 1;
            self.sent.inserts.insert(index, uuid);
            self.operations.push(object.into());
        } else {
            self.update(table, uuid, edit);
        }
    }

    fn update(&mut self, table: TableId, uuid: Uuid, edit: &RowEdit) {
        let name = self.layout[table].name.clone();
        let values = self.values(table, edit, false);
        if !values.is_empty() {
            let update = operation("update")
                .with("table", &*name)
                .with("where", this_row(uuid))
                .with("row", values);
            self.operations.push(update.into());
        }
        let mut mutations = Vec::new();
        for (column, (_, write)) in &edit.columns {
            if let Write::Partial { put, drop } = write {
                self.mutations(table, *column, put, drop, &mut mutations);
            }
        }
        if !mutations.is_empty() {
            let mutate = operation("mutate")
                .with("table", &*name)
                .with("where", this_row(uuid))
                .with("mutations", mutations);
            self.operations.push(mutate.into());
        }
    }

    fn mutations(
        &self,
        table: TableId,
        column: ColumnId,
        put: &Datum,
        drop: &Datum,
        mutations: &mut Vec<Json>,
    ) {
        let layout = &self.layout[table][column];
        let mut push = |mutator: &str, value: Json| {
            mutations.push(Json::Array(vec![
                (&*layout.name).into(),
                mutator.into(),
                value,
            ]));
        };
        // A map's pair is replaced by taking its key out first.
        let mut gone: Vec<Atom> = drop.keys().cloned().collect();
        if layout.column_type.is_map() {
            gone.extend(put.keys().cloned());
        }
        if !gone.is_empty() {
            let elements = gone.iter().map(|atom| self.rename(atom.to_json()));
            let set = Json::Array(vec!["set".into(), Json::Array(elements.collect())]);
            push("delete", set);
        }
        if !put.is_empty() {
            push("insert", self.rename(put.to_json()));
        }
    }

    /// The written columns; a new row leaves out those with their default values.
    fn values(&self, table: TableId, edit: &RowEdit, new: bool) -> Object {
        let layout = &self.layout[table];
        edit.columns
            .iter()
            .filter(|(column, (datum, write))| {
                *write == Write::Whole && !(new && *datum == layout[**column].default)
            })
            .map(|(column, (datum, _))| {
                let column = &layout[*column];
                let value = self.rename(datum.to_json_of(&column.column_type));
                (column.name.clone(), value)
            })
            .collect()
    }

    fn increment(&mut self, table: TableId, uuid: Uuid, column: ColumnId) {
        let layout = &self.layout[table];
        let column = &*layout[column].name;
        // The row may be one that this transaction inserts.
        let this = self.rename(this_row(uuid));
        let mutation = Json::Array(vec![column.into(), "+=".into(), 1i64.into()]);
        let mutate = operation("mutate")
            .with("table", &*layout.name)
            .with("where", this.clone())
            .with("mutations", vec![mutation]);
        self.operations.push(mutate.into());
        let select = operation("select")
            .with("table", &*layout.name)
            .with("where", this)
            .with("columns", vec![Json::from(column)]);
        self.sent.increment = Some((self.operations.len() - 1, column.to_owned()));
        self.operations.push(select.into());
    }

    /// Calls rows that this transaction inserts by their names.
    fn rename(&self, json: Json) -> Json {
        match json {
            Json::Array(elements) => {
                if let [Json::String(tag), Json::String(uuid)] = elements.as_slice()
                    && &**tag == "uuid"
                    && let Some(uuid) = parse_uuid(uuid)
                    && self.named.contains(&uuid)
                {
                    return Json::Array(vec!["named-uuid".into(), row_name(uuid).into()]);
                }
                Json::Array(elements.into_iter().map(|e| self.rename(e)).collect())
            }
            other => other,
        }
    }
}

impl Sent {
    /// What the results of the operations amount to.
    pub(crate) fn outcome(&self, results: &[Json]) -> Outcome {
        let mut try_again = false;
        let mut not_locked = false;
        for result in results {
            let Some(error) = result.get("error").and_then(Json::as_str) else {
                continue;
            };
            match error {
                "timed out" => try_again = true,
                "not owner" => not_locked = true,
                "aborted" if self.dry_run => {}
                _ => return Outcome::Error(result.to_string()),
            }
        }
        if not_locked {
            return Outcome::NotLocked;
        }
        if try_again {
            return Outcome::TryAgain;
        }
        let inserted = self.inserts.iter().filter_map(|(index, uuid)| {
            let reply = results.get(*index)?.get("uuid")?.as_array()?;
            Some((*uuid, parse_uuid(reply.get(1)?.as_str()?)?))
        });
        let increment = self.increment.as_ref().and_then(|(index, column)| {
            let rows = results.get(*index)?.get("rows")?.as_array()?;
            rows.first()?.get(column)?.as_integer()
        });
        Outcome::Success(Success {
            inserted: inserted.collect(),
            increment,
        })
    }
}
