//! Transactions and dumps.

use db_model::{AtomType, ColumnSchema, Datum, TableSchema, VERSION_COLUMN};
use io::Commands;
use io::jsonrpc::Message;
use json::{Json, Object};

use super::rpc::Failure;
use super::show::{fetch_schema, print_json};
use super::{Call, Outcome, Stop, failed};
use crate::table::{Cell, Formatter, Table};
use crate::{Env, Exit};

/// The transaction that is the only argument.
fn parse_transaction(call: &Call<'_>) -> Result<Vec<Json>, Stop> {
    let source = call.args.first().map_or("", String::as_str);
    let json = json::parse(source.as_bytes()).map_err(|error| format!("\"{source}\": {error}"))?;
    match json {
        Json::Array(elements) if elements.first().is_some_and(|name| name.as_str().is_some()) => {
            Ok(elements)
        }
        _ => Err("not a valid OVSDB query".to_owned().into()),
    }
}

pub(super) fn transact(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let transaction = parse_transaction(call)?;
    // It may wait for a condition to come about, and can do that in the background.
    if call.settings.daemon.detach || call.settings.daemon.pidfile.is_some() {
        return transact_as_daemon(env, call, transaction);
    }
    call.connect(transaction.first().and_then(Json::as_str))?;
    let result = call.request("transact", transaction)?;
    print_json(env, call, &result);
    Ok(Exit::SUCCESS)
}

/// Goes to the background once it is connected, and prints the result when it comes.
fn transact_as_daemon(env: &mut Env<'_>, call: &mut Call<'_>, transaction: Vec<Json>) -> Outcome {
    let database = transaction.first().and_then(Json::as_str);
    let (mut core, mut client) = match call.start(database)? {
        Ok(started) => started,
        Err(exit) => return Ok(exit),
    };
    let deadline = call.settings.deadline;
    core.complete();
    let mut commands: Commands<()> = core.commands(false);
    let id = client.send_request("transact", transaction);
    let mut events = Vec::new();
    while core.end().is_none() {
        while let Some(message) = client.try_recv().map_err(lost)? {
            if let Some(result) = result_of(message, &id) {
                print_json(env, call, &result?);
                core.finish();
                return Ok(Exit::SUCCESS);
            }
        }
        let failed = |error: std::io::Error| base::errno_text(&error);
        client.rpc.watch(&mut core.poll, true).map_err(failed)?;
        let next = core.next_deadline().min(deadline);
        core.turn(next, &mut commands, &mut (), &mut events)
            .map_err(failed)?;
        if core.poll.now() >= deadline {
            return Err(Stop::TimedOut);
        }
    }
    core.finish();
    Ok(Exit::SUCCESS)
}

fn lost(error: std::io::Error) -> Stop {
    failed(Failure::Lost(io::error_text(&error)))
}

/// The result of request `id`, if that is what the message brings.
fn result_of(message: Message, id: &Json) -> Option<Result<Json, Stop>> {
    match message {
        Message::Reply { result, id: of } if of == *id => Some(Ok(result)),
        Message::Error { error, id: of } if of == *id => Some(Err(failed(Failure::Refused(error)))),
        _ => None,
    }
}

/// Runs the transaction and takes it back.
pub(super) fn query(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let mut transaction = parse_transaction(call)?;
    call.connect(transaction.first().and_then(Json::as_str))?;
    transaction.push(Object::new().with("op", "abort").into());
    let abort_at = transaction.len() - 2;
    let mut result = call.request("transact", transaction)?;
    if let Json::Array(results) = &mut result
        && results.len() == abort_at + 1
        && results[abort_at].get("error").and_then(Json::as_str) == Some("aborted")
    {
        // What the abortion itself comes to is of no interest.
        results.pop();
    }
    print_json(env, call, &result);
    Ok(Exit::SUCCESS)
}

/// The columns of a table to be dumped: those that were named, or all but `_version`.
fn columns_of<'a>(
    table: &'a TableSchema,
    names: &[String],
) -> Result<Vec<(usize, &'a ColumnSchema)>, Stop> {
    if names.is_empty() {
        let all = table.columns.iter().enumerate();
        return Ok(all.filter(|(i, _)| *i != VERSION_COLUMN).collect());
    }
    // By name, whatever order they were asked for in.
    let mut names: Vec<&String> = names.iter().filter(|name| *name != "_version").collect();
    names.sort_unstable();
    let find = |name: &String| {
        let column = table.column_index(name).ok_or_else(|| {
            Stop::Fatal(format!("Table \"{}\" has no column {name}.", table.name))
        })?;
        Ok((column, &table.columns[column]))
    };
    names.into_iter().map(find).collect()
}

pub(super) fn dump(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let schema = fetch_schema(call)?;
    let tables: Vec<&TableSchema> = match call.args.first() {
        Some(name) => match schema.table(name) {
            Some(table) => vec![table],
            None => return Err(format!("No table \"{name}\" found.").into()),
        },
        None => schema.tables.iter().map(|table| &**table).collect(),
    };
    let names = call.args.get(1..).unwrap_or(&[]).to_vec();
    let mut transaction = vec![call.database.as_str().into()];
    let mut columns = Vec::new();
    for table in &tables {
        let chosen = columns_of(table, &names)?;
        let list = chosen.iter().map(|(_, c)| c.name.clone().into()).collect();
        let select = Object::new()
            .with("op", "select")
            .with("table", table.name.clone())
            .with("where", Json::Array(vec![]))
            .with("columns", Json::Array(list));
        transaction.push(select.into());
        columns.push(chosen);
    }
    let results = call.request("transact", transaction)?;
    let results = results.as_array().unwrap_or(&[]);
    if results.len() != tables.len() {
        let count = tables.len();
        return Err(format!(
            "reply is not array of {count} elements: {}",
            Json::Array(results.to_vec())
        )
        .into());
    }
    let mut formatter = Formatter::new(call.settings.style.clone());
    for ((table, columns), result) in tables.iter().zip(&columns).zip(results) {
        let text = dump_table(table, columns, result, &mut formatter)?;
        env.print(text);
    }
    Ok(Exit::SUCCESS)
}

fn dump_table(
    table: &TableSchema,
    columns: &[(usize, &ColumnSchema)],
    result: &Json,
    formatter: &mut Formatter,
) -> Result<String, Stop> {
    let Some(rows) = result.get("rows").and_then(Json::as_array) else {
        let name = &table.name;
        return Err(format!(
            "{name} table reply is not an object with a \"rows\" member array: {result}"
        )
        .into());
    };
    let mut parsed: Vec<Vec<Datum>> = Vec::with_capacity(rows.len());
    for (y, row) in rows.iter().enumerate() {
        if row.as_object().is_none() {
            let name = &table.name;
            return Err(
                format!("row {y} in table {name} response is not a JSON object: {row}").into(),
            );
        }
        let mut values = Vec::with_capacity(columns.len());
        for (_, column) in columns {
            let value = row.get(&column.name).ok_or_else(|| {
                let (table, column) = (&table.name, &column.name);
                format!("row {y} in table {table} response lacks {column} column")
            })?;
            let datum = Datum::from_json(value, &column.column_type, None)
                .map_err(|error| error.to_string())?;
            values.push(datum);
        }
        parsed.push(values);
    }
    // What the rows say orders them; UUIDs, which tend to be random, only if that is the same.
    let key = |index: usize| columns[index].1.column_type.key.atom == AtomType::Uuid;
    parsed.sort_by(|a, b| {
        let order = |uuids: bool| {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs
                .by_ref()
                .filter(|(i, _)| key(*i) == uuids)
                .map(|(_, (a, b))| a.compare(b))
                .find(|order| order.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        };
        order(false).then_with(|| order(true))
    });
    let headings = columns.iter().map(|(_, column)| column.name.to_string());
    let mut output = Table::new(headings);
    output.caption = Some(format!("{} table", table.name));
    let style = formatter.style().clone();
    for row in &parsed {
        let cells = row.iter().zip(columns);
        let cells = cells.map(|(datum, (_, c))| Cell::datum(datum, &c.column_type, &style));
        output.add_row(cells.collect());
    }
    Ok(formatter.format(&output))
}
