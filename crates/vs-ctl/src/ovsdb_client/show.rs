//! Commands that show what there is: databases, schemas, tables, columns.

use db_model::DatabaseSchema;
use json::Json;

use super::{Call, Outcome, Stop, options};
use crate::table::{Cell, Formatter, Table};
use crate::{Env, Exit};

pub(super) fn help(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let usage = options::usage(&env.program, &call.settings.dirs);
    env.print(usage);
    Ok(Exit::SUCCESS)
}

pub(super) fn list_dbs(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    for name in call.fetch_databases()? {
        env.print(format!("{name}\n"));
    }
    Ok(Exit::SUCCESS)
}

pub(super) fn server_id(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let id = call.request("get_server_id", vec![])?;
    env.print(format!("{}\n", id.as_str().unwrap_or("")));
    Ok(Exit::SUCCESS)
}

/// The schema of the chosen database.
pub(super) fn fetch_schema(call: &mut Call<'_>) -> Result<DatabaseSchema, Stop> {
    let name = call.database.clone();
    let json = call.request("get_schema", vec![name.into()])?;
    Ok(DatabaseSchema::from_json(&json).map_err(|error| error.to_string())?)
}

/// Prints a JSON value as the formatting options say.
pub(super) fn print_json(env: &mut Env<'_>, call: &Call<'_>, json: &Json) {
    if call.settings.style.pretty {
        env.print(format!("{json:#}\n"));
    } else {
        env.print(format!("{json}\n"));
    }
}

pub(super) fn get_schema(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let schema = fetch_schema(call)?;
    print_json(env, call, &schema.to_json());
    Ok(Exit::SUCCESS)
}

pub(super) fn get_version(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let schema = fetch_schema(call)?;
    env.print(format!("{}\n", schema.version));
    Ok(Exit::SUCCESS)
}

pub(super) fn get_cksum(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let schema = fetch_schema(call)?;
    env.print(format!("{}\n", schema.cksum));
    Ok(Exit::SUCCESS)
}

pub(super) fn list_tables(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let schema = fetch_schema(call)?;
    let mut table = Table::new(["Table"]);
    for schema in &schema.tables {
        table.add_row(vec![Cell::Text(schema.name.to_string())]);
    }
    env.print(Formatter::new(call.settings.style.clone()).format(&table));
    Ok(Exit::SUCCESS)
}

pub(super) fn list_columns(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let schema = fetch_schema(call)?;
    let wanted = call.args.first().cloned();
    if let Some(name) = &wanted
        && schema.table(name).is_none()
    {
        let (server, database) = (&call.server, &call.database);
        return Err(format!("{server}: {database} does not have a table named \"{name}\"").into());
    }
    let mut table = match wanted {
        Some(_) => Table::new(["Column", "Type"]),
        None => Table::new(["Table", "Column", "Type"]),
    };
    for schema in &schema.tables {
        if wanted.as_ref().is_some_and(|name| **name != *schema.name) {
            continue;
        }
        let mut columns: Vec<_> = schema.columns.iter().collect();
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        for column in columns {
            let mut cells = Vec::new();
            if wanted.is_none() {
                cells.push(Cell::Text(schema.name.to_string()));
            }
            cells.push(Cell::Text(column.name.to_string()));
            cells.push(Cell::Json(column.column_type.to_json()));
            table.add_row(cells);
        }
    }
    env.print(Formatter::new(call.settings.style.clone()).format(&table));
    Ok(Exit::SUCCESS)
}
