//! Files of clustered databases: made, asked, made into standalone ones.

use std::path::Path;
use std::sync::Arc;

use db_engine::disk::FileDisk;
use db_engine::log_file::Word;
use db_engine::{Loader, log_file, snapshot_record, store};
use db_model::{DatabaseSchema, Error, TableSchema, is_id};
use db_raft::Data;
use db_raft::record::{Header, Kind, Membership, Record, create_cluster, join_cluster};
use json::Json;

use super::Call;
use super::commands::{lock_file, read_schema, text, uuids};
use crate::{Env, Exit};

type Outcomes = Result<Exit, String>;

/// The schema with all columns persistent, as clusters need it.
pub(crate) fn persistent(schema: &DatabaseSchema, shown: &str) -> DatabaseSchema {
    let mut schema = schema.clone();
    let mut changed = Vec::new();
    for table in &mut schema.tables {
        let mut own: TableSchema = (**table).clone();
        // The column `_version` is never kept.
        let columns = own.columns.iter_mut().skip(db_model::VERSION_COLUMN + 1);
        for column in columns.filter(|column| !column.persistent) {
            column.persistent = true;
            changed.push((Arc::clone(&table.name), Arc::clone(&column.name)));
        }
        *table = Arc::new(own);
    }
    if let Some((table, column)) = changed.last() {
        log::warn!(target: "ovsdb", "{shown}: changed {} columns in '{}' database from \
            ephemeral to persistent, including '{column}' column in '{table}' table, because \
            clusters do not support ephemeral columns", changed.len(), schema.name);
    }
    schema
}

/// Writes a new file of a clustered database.
fn create_file(call: &Call<'_>, records: &[Json]) -> Outcomes {
    let (path, shown) = call.db(0);
    let _lock = lock_file(&path, &shown)?;
    let records = records
        .iter()
        .map(|record| log_file::frame_clustered(&record.to_string()));
    let contents: Vec<u8> = records.flatten().collect();
    FileDisk::create(&path, &contents)
        .map_err(|error| text(Error::io(&error, format!("{shown}: create failed"))))?;
    Ok(Exit::SUCCESS)
}

pub(super) fn create(_: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let source = Path::new(&call.args[1]);
    let shown = source.display().to_string();
    let (schema, rows) = match read_schema(source) {
        Ok(schema) => (schema, "{}".to_owned()),
        Err(_) => {
            // Then it is a standalone database.
            let stored = store::read(source, &shown, uuids()?).map_err(text)?;
            if let Some(fault) = stored.fault {
                return Err(text(fault));
            }
            let snapshot = stored.db.snapshot();
            let comment = format!("created from {shown}");
            let date = call.settings.clock.wall();
            let rows = snapshot_record(&snapshot, date, &comment);
            ((*snapshot.schema).clone(), rows)
        }
    };
    let schema = persistent(&schema, &shown);
    let contents = Data::from_text(format!("[{},{rows}]", schema.to_json()));
    let timer = call.settings.election_timer;
    let mut uuids = uuids()?;
    let records = create_cluster(&schema.name, &call.args[2], contents, timer, &mut uuids);
    create_file(call, &records.map_err(text)?)
}

pub(super) fn join(_: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let (name, local) = (&call.args[1], &call.args[2]);
    if !is_id(name) {
        return Err(format!(
            "{name}: not a valid schema name (use \"schema-name\" command to find the correct \
             name)"
        ));
    }
    let mut uuids = uuids()?;
    let (remotes, cid) = (&call.args[3..], call.settings.cid);
    let record = join_cluster(name, local, remotes, cid, &mut uuids).map_err(text)?;
    create_file(call, &[record])
}

/// The header of a file of a clustered database.
pub(super) fn header(path: &Path, shown: &str) -> Result<Header, String> {
    let mut reader = store::clustered_records(path, shown).map_err(text)?;
    let record = reader.next_record().map_err(text)?;
    Header::from_json(&record.unwrap_or(Json::Null)).map_err(text)
}

/// The header of the file that is the first argument.
fn header_of(call: &Call<'_>) -> Result<Header, String> {
    let (path, shown) = call.db(0);
    if store::identify(&path, &shown).map_err(text)? != Word::Clustered {
        return Err(format!("{shown}: not a clustered database"));
    }
    header(&path, &shown)
}

pub(super) fn cid(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let header = header_of(call)?;
    if header.cid.is_nil() {
        // The stream that would show a write error is the one that fails.
        let _ = writeln!(env.stderr, "{}: cluster ID not yet known", call.args[0]);
        return Ok(Exit::Code(2));
    }
    env.print(format!("{}\n", header.cid));
    Ok(Exit::SUCCESS)
}

pub(super) fn sid(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    env.print(format!("{}\n", header_of(call)?.sid));
    Ok(Exit::SUCCESS)
}

pub(super) fn local_address(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    env.print(format!("{}\n", header_of(call)?.local_address));
    Ok(Exit::SUCCESS)
}

/// Records of a standalone database: the schema, then transactions.
#[derive(Default)]
struct Standalone {
    schema: Option<Json>,
    transactions: Vec<Json>,
}

impl Standalone {
    /// Takes the data of a snapshot or an entry: `[SCHEMA, TRANSACTION]`.
    fn take(&mut self, data: &Json) -> Result<(), String> {
        let Some([schema, transaction]) = data.as_array() else {
            return Err("Incorrect raft record array length".to_owned());
        };
        if *schema != Json::Null {
            let parsed = DatabaseSchema::from_json(schema).map_err(text)?;
            if *transaction == Json::Null {
                // A conversion: the rows are those that there are.
                self.convert(parsed)?;
            } else {
                self.transactions.clear();
            }
            self.schema = Some(schema.clone());
        }
        if *transaction != Json::Null {
            self.transactions.push(transaction.clone());
        }
        Ok(())
    }

    fn convert(&mut self, schema: DatabaseSchema) -> Result<(), String> {
        let Some(old) = &self.schema else {
            return Err("conversion without a database".to_owned());
        };
        let old = DatabaseSchema::from_json(old).map_err(text)?;
        let mut loader = Loader::new(Arc::new(old), uuids()?);
        for transaction in &self.transactions {
            loader.replay(transaction).map_err(text)?;
        }
        let old = loader.finish().map_err(text)?;
        let new = db_engine::convert(&old, Arc::new(schema), uuids()?).map_err(text)?;
        let date = base::Clock::new().wall();
        let record = snapshot_record(&new.snapshot(), date, "converted by ovsdb-tool");
        let record = json::parse(record.as_bytes()).map_err(|error| error.to_string())?;
        self.transactions = vec![record];
        Ok(())
    }
}

pub(super) fn to_standalone(_: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let (target, source) = (&call.args[0], Path::new(&call.args[1]));
    let shown = source.display().to_string();
    if store::identify(source, &shown).map_err(text)? != Word::Clustered {
        return Err("Database is not clustered db.\n".to_owned());
    }
    let mut reader = store::clustered_records(source, &shown).map_err(text)?;
    let first = reader.next_record().map_err(text)?.unwrap_or(Json::Null);
    let header = Header::from_json(&first).map_err(text)?;
    let mut standalone = Standalone::default();
    let mut start = 0;
    if let Membership::Member { index, snapshot } = header.membership
        && let Some(data) = snapshot.data
    {
        start = index + 1;
        standalone.take(&*data.parse().map_err(text)?)?;
    }
    let mut entries: Vec<Option<Data>> = Vec::new();
    while let Some(json) = reader.next_record().map_err(text)? {
        let Record { kind, .. } = Record::from_json(&json).map_err(text)?;
        if let Kind::Entry { index, entry } = kind {
            // An entry takes the place of the one of that index and of all after it.
            let at = usize::try_from(index.saturating_sub(start)).unwrap_or(usize::MAX);
            entries.truncate(at);
            entries.push(entry.data);
        }
    }
    for data in entries.into_iter().flatten() {
        standalone.take(&*data.parse().map_err(text)?)?;
    }
    let schema = standalone.schema.ok_or("the database has no schema yet")?;
    let records = std::iter::once(schema).chain(standalone.transactions);
    let records = records.map(|record| log_file::frame(&record.to_string()));
    let contents: Vec<u8> = records.flatten().collect();
    FileDisk::create(Path::new(target), &contents)
        .map_err(|error| text(Error::io(&error, format!("{target}: create failed"))))?;
    Ok(Exit::SUCCESS)
}
