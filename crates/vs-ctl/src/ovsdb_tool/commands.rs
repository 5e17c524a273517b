//! The commands but `show-log`.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use db_engine::disk::{FileDisk, lock, replace_file};
use db_engine::log_file::Word;
use db_engine::{Context, Disk, Identity, Outcome, log_file, store, transaction_record, writer};
use db_model::{DatabaseSchema, Error, UuidSource};
use json::Json;

use super::{COMMANDS, Call, options};
use crate::{Env, Exit};

type Outcomes = Result<Exit, String>;

pub(super) fn text(error: Error) -> String {
    error.to_string()
}

/// Random bytes for UUIDs.
pub(crate) fn uuids() -> Result<UuidSource, String> {
    let mut seed = [0; 32];
    let flags = rustix::rand::GetRandomFlags::empty();
    match rustix::rand::getrandom(&mut seed[..], flags) {
        Ok(length) if length == seed.len() => Ok(UuidSource::new(seed)),
        _ => Err("cannot get random numbers".to_owned()),
    }
}

/// Reads a schema file.
pub(crate) fn read_schema(path: &Path) -> Result<DatabaseSchema, String> {
    let shown = path.display();
    let bad = |why: String| {
        format!("failed to read schema: \"{shown}\" could not be read as JSON ({why})")
    };
    let contents = std::fs::read(path).map_err(|error| {
        bad(format!(
            "error opening \"{shown}\": {}",
            base::errno_text(&error)
        ))
    })?;
    let json = json::parse(&contents).map_err(|error| bad(error.to_string()))?;
    DatabaseSchema::from_json(&json)
        .map_err(|error| format!("failed to parse \"{shown}\" as ovsdb schema ({error})"))
}

pub(super) fn create(_: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let (path, shown) = call.db(0);
    let schema = read_schema(&call.schema_path(1))?;
    let _lock = lock_file(&path, &shown)?;
    store::create(&path, &shown, &schema).map_err(text)?;
    Ok(Exit::SUCCESS)
}

pub(super) fn lock_file(path: &Path, shown: &str) -> Result<std::fs::File, String> {
    lock(path, false)
        .map_err(|error| Error::io(&error, format!("{shown}: failed to lock lockfile")).to_string())
}

/// Writes a whole database: in the place of `path`, or as the new file that argument
/// `target` names.
fn write_out(
    call: &Call<'_>,
    path: &Path,
    target: usize,
    snapshot: &db_engine::Snapshot,
    comment: &str,
) -> Outcomes {
    let comment = format!("{comment} by ovsdb-tool {}", base::VERSION);
    let contents = writer::whole_file(snapshot, call.settings.clock.wall(), &comment);
    let outcome = match call.args.get(target) {
        Some(name) => {
            let shown = name.clone();
            FileDisk::create(Path::new(name), &contents)
                .map_err(|error| Error::io(&error, format!("{shown}: create failed")))
        }
        None => {
            let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
            replace_file(&real, &contents)
                .map(drop)
                .map_err(|error| Error::io(&error, format!("{}: write failed", path.display())))
        }
    };
    outcome.map_err(text)?;
    Ok(Exit::SUCCESS)
}

/// Reads a database to be written anew, locked if that is in its place.
fn read_to_rewrite(
    call: &Call<'_>,
    target: usize,
) -> Result<
    (
        std::path::PathBuf,
        db_engine::Database,
        Option<std::fs::File>,
    ),
    String,
> {
    let (path, shown) = call.db(0);
    let lock = match call.args.get(target) {
        Some(_) => None,
        None => {
            // Tell that there is no such file rather than that it cannot be locked.
            store::check_writable(&path, &shown).map_err(text)?;
            Some(lock_file(&path, &shown)?)
        }
    };
    let stored = store::read(&path, &shown, uuids()?).map_err(text)?;
    if let Some(fault) = stored.fault {
        log::warn!(target: "ovsdb_file", "{fault}");
    }
    Ok((path, stored.db, lock))
}

pub(super) fn compact(_: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let (path, db, _lock) = read_to_rewrite(call, 1)?;
    write_out(call, &path, 1, &db.snapshot(), "compacted")
}

pub(super) fn convert(_: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let (path, db, _lock) = read_to_rewrite(call, 2)?;
    let schema = Arc::new(read_schema(&call.schema_path(1))?);
    let converted = db_engine::convert(&db, schema, uuids()?).map_err(text)?;
    write_out(call, &path, 2, &converted.snapshot(), "converted")
}

pub(super) fn needs_conversion(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let (path, shown) = call.db(0);
    let old = store::read_schema(&path, &shown).map_err(text)?;
    let new = read_schema(&call.schema_path(1))?;
    env.print(if old == new { "no\n" } else { "yes\n" });
    Ok(Exit::SUCCESS)
}

fn of_db(env: &mut Env<'_>, call: &Call<'_>, tell: fn(&DatabaseSchema) -> &str) -> Outcomes {
    let (path, shown) = call.db(0);
    let schema = store::read_schema(&path, &shown).map_err(text)?;
    env.print(format!("{}\n", tell(&schema)));
    Ok(Exit::SUCCESS)
}

fn of_schema(env: &mut Env<'_>, call: &Call<'_>, tell: fn(&DatabaseSchema) -> &str) -> Outcomes {
    let schema = read_schema(&call.schema_path(0))?;
    env.print(format!("{}\n", tell(&schema)));
    Ok(Exit::SUCCESS)
}

pub(super) fn db_name(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let (path, shown) = call.db(0);
    if kind_of(call)? == Word::Clustered {
        let header = super::cluster::header(&path, &shown)?;
        env.print(format!("{}\n", header.name));
        return Ok(Exit::SUCCESS);
    }
    of_db(env, call, |schema| &schema.name)
}

pub(super) fn db_version(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    of_db(env, call, |schema| &schema.version)
}

pub(super) fn db_cksum(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    of_db(env, call, |schema| &schema.cksum)
}

pub(super) fn schema_name(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    of_schema(env, call, |schema| &schema.name)
}

pub(super) fn schema_version(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    of_schema(env, call, |schema| &schema.version)
}

pub(super) fn schema_cksum(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    of_schema(env, call, |schema| &schema.cksum)
}

/// The kind of database in a file.
fn kind_of(call: &Call<'_>) -> Result<Word, String> {
    let (path, shown) = call.db(0);
    store::identify(&path, &shown).map_err(text)
}

fn yes_or_no(yes: bool) -> Exit {
    if yes { Exit::SUCCESS } else { Exit::Code(2) }
}

pub(super) fn is_clustered(_: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    kind_of(call).map(|word| yes_or_no(word == Word::Clustered))
}

pub(super) fn is_standalone(_: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    kind_of(call).map(|word| yes_or_no(word == Word::Standalone))
}

/// The transaction, which is the last argument.
fn parse_transaction(call: &Call<'_>) -> Result<Json, String> {
    let source = call.args.last().map_or("", String::as_str);
    json::parse(source.as_bytes()).map_err(|error| format!("\"{source}\": {error}"))
}

/// The file is the first of two arguments, or the usual one.
fn db_of_transaction(call: &Call<'_>) -> (std::path::PathBuf, String) {
    call.db(if call.args.len() < 2 { usize::MAX } else { 0 })
}

pub(super) fn query(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let (path, shown) = db_of_transaction(call);
    let mut stored = store::read(&path, &shown, uuids()?).map_err(text)?;
    let transaction = parse_transaction(call)?;
    let (reply, _) = execute(&mut stored.db, &transaction, call)?;
    env.print(format!("{reply}\n"));
    Ok(Exit::SUCCESS)
}

pub(super) fn transact(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let (path, shown) = db_of_transaction(call);
    let (mut stored, mut disk) = store::open(&path, &shown, uuids()?).map_err(text)?;
    if let Some(fault) = &stored.fault {
        log::warn!(target: "ovsdb_file", "{fault}");
    }
    let transaction = parse_transaction(call)?;
    let (reply, committed) = execute(&mut stored.db, &transaction, call)?;
    let record = committed.and_then(|committed| {
        let date = call.settings.clock.wall();
        let schema = stored.db.schema();
        transaction_record(schema, &committed.changes, date, &committed.comment, true)
    });
    if let Some(record) = record {
        disk.append(&log_file::frame(&record))
            .and_then(|()| disk.sync())
            .map_err(|error| Error::io(&error, format!("{shown}: write failed")).to_string())?;
    }
    env.print(format!("{reply}\n"));
    Ok(Exit::SUCCESS)
}

fn execute(
    db: &mut db_engine::Database,
    transaction: &Json,
    call: &Call<'_>,
) -> Result<(Json, Option<db_engine::Committed>), String> {
    let identity = Identity {
        role: &call.settings.role,
        id: None,
    };
    let mut context = Context::local(&|_| false);
    context.identity = Some(&identity).filter(|identity| identity.is_restricted());
    match db.execute(transaction, &context) {
        Outcome::Done(reply, committed) => Ok((reply, committed)),
        Outcome::Wait(_) | Outcome::Forward => {
            Err("the transaction waits for a change that cannot come".to_owned())
        }
    }
}

fn parse_version(text: &str) -> Result<[u64; 3], String> {
    let bad = || format!("{text}: not an OVSDB version number in format x.y.z");
    let parts: Vec<&str> = text.split('.').collect();
    let numbers: Option<Vec<u64>> = parts.iter().map(|part| part.parse().ok()).collect();
    numbers.and_then(|n| n.try_into().ok()).ok_or_else(bad)
}

pub(super) fn compare_versions(_: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let [a, operator, b] = call.args else {
        return Err("three arguments are needed".to_owned());
    };
    let order = parse_version(a)?.cmp(&parse_version(b)?);
    let holds = match operator.as_str() {
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        "==" => order == Ordering::Equal,
        ">=" => order != Ordering::Less,
        ">" => order == Ordering::Greater,
        "!=" => order != Ordering::Equal,
        other => return Err(format!("{other}: not a relational operator")),
    };
    Ok(yes_or_no(holds))
}

pub(super) fn help(env: &mut Env<'_>, call: &Call<'_>) -> Outcomes {
    let usage = options::usage(&env.program, call.dirs);
    env.print(usage);
    Ok(Exit::SUCCESS)
}

pub(super) fn list(env: &mut Env<'_>, _: &Call<'_>) -> Outcomes {
    env.print("The available commands are:\n");
    for command in &COMMANDS {
        env.print(format!("  {:<23} {}\n", command.name, command.usage));
    }
    Ok(Exit::SUCCESS)
}
