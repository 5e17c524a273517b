//! Commands that move whole databases and schemas: backup, restore, convert.

use std::collections::HashSet;
use std::path::Path;

use db_engine::log_file::{LogReader, frame};
use db_model::{Atom, DatabaseSchema, Datum, TableSchema, Uuid};
use json::{Json, Object, write_quoted};

use super::show::fetch_schema;
use super::{Call, Outcome, Stop};
use crate::ovsdb_tool::cluster::persistent;
use crate::ovsdb_tool::commands::read_schema;
use crate::{Env, Exit};

/// The schema in the file that is named, as the server that is connected to can have it.
fn schema_for_server(call: &mut Call<'_>) -> Result<DatabaseSchema, Stop> {
    let file = call.args[0].clone();
    let schema = read_schema(Path::new(&file))?;
    call.database = schema.name.to_string();
    call.connect(Some(&schema.name))?;
    if is_clustered(call, &schema.name) {
        Ok(persistent(&schema, &file))
    } else {
        Ok(schema)
    }
}

/// Whether the server has the database from a cluster; old ones cannot say, and do not.
fn is_clustered(call: &mut Call<'_>, database: &str) -> bool {
    let clause = Json::Array(vec!["name".into(), "==".into(), database.into()]);
    let select = Object::new()
        .with("op", "select")
        .with("table", "Database")
        .with("where", vec![clause])
        .with("columns", vec![Json::from("model")]);
    let reply = call.request("transact", vec!["_Server".into(), select.into()]);
    let model = reply.ok().and_then(|results| {
        let rows = results.as_array()?.first()?.get("rows")?.as_array()?;
        Some(rows.first()?.get("model")?.as_str()? == "clustered")
    });
    model == Some(true)
}

pub(super) fn convert(_: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let schema = schema_for_server(call)?;
    let params = vec![schema.name.clone().into(), schema.to_json()];
    call.request("convert", params)?;
    Ok(Exit::SUCCESS)
}

pub(super) fn needs_conversion(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let new = schema_for_server(call)?;
    let old = fetch_schema(call)?;
    env.print(if old == new { "no\n" } else { "yes\n" });
    Ok(Exit::SUCCESS)
}

/// Selects all columns that are kept in files, of all tables.
fn select_all(schema: &DatabaseSchema) -> Vec<Json> {
    let mut transaction: Vec<Json> = vec![schema.name.clone().into()];
    for table in &schema.tables {
        let kept = table.own_columns().filter(|(_, c)| c.persistent);
        let mut columns: Vec<Json> = vec!["_uuid".into()];
        columns.extend(kept.map(|(_, column)| column.name.clone().into()));
        let select = Object::new()
            .with("op", "select")
            .with("table", table.name.clone())
            .with("where", Json::Array(vec![]))
            .with("columns", Json::Array(columns));
        transaction.push(select.into());
    }
    transaction
}

pub(super) fn backup(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    if rustix::termios::isatty(rustix::stdio::stdout()) {
        return Err(
            "not writing backup to a terminal; please redirect stdout to a file"
                .to_owned()
                .into(),
        );
    }
    let schema = fetch_schema(call)?;
    let results = call.request("transact", select_all(&schema))?;
    let results = results.as_array().unwrap_or(&[]);
    if results.len() != schema.tables.len() {
        let (count, reply) = (schema.tables.len(), Json::Array(results.to_vec()));
        return Err(format!("reply is not array of {count} elements: {reply}").into());
    }
    let date = call.settings.clock.wall().0;
    let comment = "produced by \\\"ovsdb-client backup\\\"";
    let mut record = format!("{{\"_date\":{date},\"_comment\":\"{comment}\"");
    for (table, result) in schema.tables.iter().zip(results) {
        let rows = result.get("rows").and_then(Json::as_array);
        let rows = rows.ok_or_else(|| {
            let name = &table.name;
            format!("{name} table reply is not an object with a \"rows\" member array: {result}")
        })?;
        for (i, row) in rows.iter().enumerate() {
            let (uuid, columns) = backup_row(table, row)?;
            record.push(',');
            if i == 0 {
                write_quoted(&table.name, &mut record);
                record.push_str(":{");
            }
            write_quoted(&uuid.to_string(), &mut record);
            record.push(':');
            record.push_str(&columns.to_string());
        }
        if !rows.is_empty() {
            record.push('}');
        }
    }
    record.push('}');
    let write = |env: &mut Env<'_>, text: &str| {
        env.stdout
            .write_all(&frame(text))
            .map_err(|error| Stop::Fatal(format!("write to stdout failed ({error})")))
    };
    write(env, &schema.to_json().to_string())?;
    write(env, &record)?;
    Ok(Exit::SUCCESS)
}

/// A row's UUID and its columns.
fn backup_row(table: &TableSchema, row: &Json) -> Result<(Uuid, Json), Stop> {
    let mut columns = match row {
        Json::Object(columns) => columns.clone(),
        other => {
            return Err(format!("{} table reply row is not an object: {other}", table.name).into());
        }
    };
    let uuid = columns.remove("_uuid");
    let uuid = uuid.and_then(|json| {
        Atom::from_json(db_model::AtomType::Uuid, &json, None)
            .ok()?
            .as_uuid()
    });
    let uuid =
        uuid.ok_or_else(|| format!("{} table reply row lacks _uuid member: {row}", table.name))?;
    Ok((uuid, Json::Object(columns)))
}

/// What is wrong with restoring a backup of one schema into a database of another.
fn schema_mismatch(backup: &DatabaseSchema, database: &DatabaseSchema) -> Option<String> {
    if backup == database {
        return None;
    }
    let difference = if backup.version == database.version {
        format!(
            "backup schema and database schema are both version {} but still differ",
            backup.version
        )
    } else {
        format!(
            "backup schema has version \"{}\" but database schema has version \"{}\"",
            backup.version, database.version
        )
    };
    Some(format!(
        "{difference} (use --force to override differences, or \"ovsdb-client convert\" to change the schema)"
    ))
}

/// The name in a transaction of the row that had this UUID.
fn row_name(uuid: Uuid) -> String {
    format!("row{}", uuid.to_string().replace('-', "_"))
}

/// A value whose references to rows of the backup are by those rows' new names.
fn renamed(datum: &Datum, rows: &HashSet<Uuid>) -> Json {
    let atom = |atom: &Atom| match atom.as_uuid() {
        Some(uuid) if rows.contains(&uuid) => {
            Json::Array(vec!["named-uuid".into(), row_name(uuid).into()])
        }
        _ => atom.to_json(),
    };
    if datum.is_map() {
        let pairs = datum.as_map().iter();
        let pairs = pairs.map(|(k, v)| Json::Array(vec![atom(k), atom(v)]));
        Json::Array(vec!["map".into(), Json::Array(pairs.collect())])
    } else {
        let atoms = datum.as_set().iter().map(atom).collect();
        Json::Array(vec!["set".into(), Json::Array(atoms)])
    }
}

pub(super) fn restore(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    if rustix::termios::isatty(rustix::stdio::stdin()) {
        return Err(
            "not reading backup from a terminal; please redirect stdin from a file"
                .to_owned()
                .into(),
        );
    }
    let mut contents = Vec::new();
    env.stdin
        .read_to_end(&mut contents)
        .map_err(|error| format!("read from stdin failed ({error})"))?;
    let mut reader = LogReader::new("/dev/stdin", contents.as_slice());
    let text = |error: db_model::Error| Stop::Fatal(error.to_string());
    let schema = reader.next_record().map_err(text)?.ok_or_else(|| {
        Stop::Fatal("/dev/stdin: unexpected end of file reading schema".to_owned())
    })?;
    let schema = DatabaseSchema::from_json(&schema).map_err(text)?;
    let database = fetch_schema(call)?;
    if !call.settings.force
        && let Some(mismatch) = schema_mismatch(&schema, &database)
    {
        return Err(mismatch.into());
    }
    let uuids = crate::ovsdb_tool::commands::uuids()?;
    let mut loader = db_engine::Loader::new(std::sync::Arc::new(schema), uuids);
    while let Some(json) = reader.next_record().map_err(text)? {
        loader.replay(&json).map_err(text)?;
    }
    let backup = loader.finish().map_err(text)?;
    let transaction = restore_transaction(&backup, &database, &call.database);
    let results = call.request("transact", transaction)?;
    let results = results.as_array();
    for result in results.ok_or_else(|| "result is not array".to_owned())? {
        if result.as_object().is_none() {
            return Err("result array element is not object".to_owned().into());
        }
        if result.get("error").is_some() {
            return Err(format!("server returned error reply: {result}").into());
        }
    }
    Ok(Exit::SUCCESS)
}

fn restore_transaction(
    backup: &db_engine::Database,
    database: &DatabaseSchema,
    name: &str,
) -> Vec<Json> {
    let tables = || (0..backup.schema().tables.len()).map(|i| backup.table(i));
    let rows: HashSet<Uuid> = tables().flat_map(|t| t.iter().map(|r| r.uuid())).collect();
    let mut transaction: Vec<Json> = vec![name.into()];
    for table in &database.tables {
        let delete = Object::new()
            .with("op", "delete")
            .with("table", table.name.clone())
            .with("where", Json::Array(vec![]));
        transaction.push(delete.into());
    }
    for table in tables() {
        let schema = table.schema();
        for row in table.iter() {
            let own = schema.own_columns().filter(|(_, c)| c.persistent);
            let own = own.filter(|(i, c)| !row.get(*i).is_default(&c.column_type));
            let columns: Object = own
                .map(|(i, c)| (c.name.clone(), renamed(row.get(i), &rows)))
                .collect();
            let insert = Object::new()
                .with("op", "insert")
                .with("table", schema.name.clone())
                .with("uuid-name", row_name(row.uuid()))
                .with("row", columns);
            transaction.push(insert.into());
        }
    }
    let comment = Object::new()
        .with("op", "comment")
        .with("comment", "ovsdb-client restore");
    transaction.push(comment.into());
    transaction
}
