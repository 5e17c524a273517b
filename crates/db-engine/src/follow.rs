//! Taking over what another server tells of its database: how relays and backups fill theirs.

use db_model::{
    Datum, Error, Result, Row, SizeCheck, TableSchema, UUID_COLUMN, Uuid, VERSION_COLUMN,
    parse_uuid,
};
use json::{Json, Object};

use crate::changes::Changes;
use crate::database::Database;
use crate::transaction::Transaction;

/// An update from another server.
#[derive(Clone, Copy)]
pub struct Told<'a> {
    /// `<table-updates>` (RFC 7047 section 4.1.6), or `<table-updates2>` of `ovsdb-server(7)`.
    pub updates: &'a Json,
    /// Whether these are `<table-updates2>`, with differences.
    pub differences: bool,
    /// If these are the whole contents: of which tables, by name, rows go that are not told of.
    pub whole: Option<&'a dyn Fn(&str) -> bool>,
}

impl std::fmt::Debug for Told<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Told")
            .field("differences", &self.differences)
            .field("whole", &self.whole.is_some())
            .finish_non_exhaustive()
    }
}

fn inconsistent(what: &str, uuid: Uuid, table: &TableSchema) -> Error {
    let details = format!("cannot {what} row {uuid} from table {}", table.name);
    Error::new("consistency violation", details)
}

fn object<'a>(json: &'a Json, what: &str) -> Result<&'a Object> {
    let details = || format!("{what} is not object");
    json.as_object()
        .ok_or_else(|| Error::new("Not a JSON object", details()))
}

impl Database {
    /// Takes over an update, as one transaction.  Rows keep the versions that they have there.
    ///
    /// # Errors
    /// `consistency violation` if it does not fit the rows that there are; otherwise it is
    /// malformed, does not fit the schema, or breaks a constraint.  Nothing is changed then.
    pub fn follow(&mut self, told: &Told<'_>) -> Result<Changes> {
        let updates = object(told.updates, "<table-updates>")?;
        let mut transaction = Transaction::new(self);
        transaction.has_versions = true;
        if let Some(covers) = told.whole {
            drop_untold(&mut transaction, updates, covers);
        }
        for (name, rows) in updates.iter() {
            let table = transaction.db.schema.table_index(name);
            let unknown = || Error::new("unknown table", format!("unknown table {name}"));
            let table = table.ok_or_else(unknown)?;
            for (text, update) in object(rows, "<table-update> for table")?.iter() {
                let uuid = parse_uuid(text).ok_or_else(|| {
                    Error::new("bad row UUID", "<table-update> names must be UUIDs").at(rows)
                })?;
                let update = object(update, "<row-update>")?;
                take_row(&mut transaction, table, uuid, update, told)?;
            }
        }
        transaction.commit()
    }
}

/// Deletes the rows that an update with the whole contents does not tell of.
fn drop_untold(transaction: &mut Transaction<'_>, updates: &Object, covers: &dyn Fn(&str) -> bool) {
    for table in 0..transaction.db.schema.tables.len() {
        let schema = transaction.schema(table);
        if !covers(&schema.name) {
            continue;
        }
        let told = updates.get(&schema.name).and_then(Json::as_object);
        let rows = transaction.db.tables[table].rows.keys();
        let gone: Vec<Uuid> = rows
            .filter(|uuid| !told.is_some_and(|told| told.contains(&uuid.to_string())))
            .copied()
            .collect();
        for uuid in gone {
            transaction.delete(table, uuid);
        }
    }
}

/// What is done to a row.
enum Action<'a> {
    Delete,
    /// It has these columns, and defaults in others.
    Insert(&'a Object),
    /// These columns are replaced.
    Update(&'a Object),
    /// These columns change by differences.
    Modify(&'a Object),
}

fn action<'a>(update: &'a Object, differences: bool) -> Result<Action<'a>> {
    if !differences {
        return Ok(match (update.get("old"), update.get("new")) {
            (_, None | Some(Json::Null)) => Action::Delete,
            (None | Some(Json::Null), Some(new)) => Action::Insert(object(new, "\"new\" <row>")?),
            (Some(_), Some(new)) => Action::Update(object(new, "\"new\" <row>")?),
        });
    }
    let mut members = update.iter();
    let (Some((kind, row)), None) = (members.next(), members.next()) else {
        let details = format!(
            "<row-update2> has {} members instead of expected 1",
            update.len()
        );
        return Err(Error::syntax(&Json::Object(update.clone()), details));
    };
    Ok(match &**kind {
        "initial" | "insert" => Action::Insert(object(row, "<row>")?),
        "delete" => Action::Delete,
        "modify" => Action::Modify(object(row, "<row>")?),
        other => {
            let details = format!("<row-update2> member name \"{other}\" is unknown");
            return Err(Error::syntax(&Json::Object(update.clone()), details));
        }
    })
}

fn take_row(
    transaction: &mut Transaction<'_>,
    table: usize,
    uuid: Uuid,
    update: &Object,
    told: &Told<'_>,
) -> Result<()> {
    let schema = transaction.schema(table);
    let old = transaction.get(table, uuid).cloned();
    match (action(update, told.differences)?, old) {
        (Action::Delete, Some(_)) => transaction.delete(table, uuid),
        (Action::Delete, None) => return Err(inconsistent("delete missing", uuid, &schema)),
        (Action::Insert(columns), old) => {
            if old.is_some() && told.whole.is_none() {
                return Err(inconsistent("insert existing", uuid, &schema));
            }
            let row = filled(Row::new(&schema, uuid), &schema, columns, false)?;
            put(transaction, table, uuid, row, old.is_some());
        }
        (Action::Update(columns), Some(old)) => {
            let row = filled((*old).clone(), &schema, columns, false)?;
            put(transaction, table, uuid, row, true);
        }
        (Action::Modify(columns), Some(old)) => {
            let row = filled((*old).clone(), &schema, columns, true)?;
            put(transaction, table, uuid, row, true);
        }
        (Action::Update(_) | Action::Modify(_), None) => {
            return Err(inconsistent("modify missing", uuid, &schema));
        }
    }
    Ok(())
}

/// `row` with `columns`, which hold values or differences.
fn filled(mut row: Row, schema: &TableSchema, columns: &Object, differences: bool) -> Result<Row> {
    for (name, value) in columns.iter() {
        let column = schema.column_index(name).ok_or_else(|| {
            let details = format!("No column {name} in table {}.", schema.name);
            Error::new("unknown column", details).at(value)
        })?;
        if column == UUID_COLUMN {
            continue;
        }
        let column_type = &schema.columns[column].column_type;
        let datum = if differences {
            let change = Datum::from_json_sized(value, column_type, None, SizeCheck::Any)?;
            row.get(column).apply_difference(&change, column_type)?
        } else {
            Datum::from_json(value, column_type, None)?
        };
        row.set(column, datum);
    }
    Ok(row)
}

/// Puts a row in place, with its version if it has one.
fn put(transaction: &mut Transaction<'_>, table: usize, uuid: Uuid, row: Row, known: bool) {
    let version = row.get(VERSION_COLUMN).clone();
    let has_version = version.as_uuid().is_some_and(|version| !version.is_nil());
    if known {
        if let Some(place) = transaction.modify(table, uuid) {
            *place = row;
        }
    } else {
        transaction.insert(table, row);
        if has_version && let Some(place) = transaction.modify(table, uuid) {
            place.set(VERSION_COLUMN, version);
        }
    }
}
