//! `monitor`, `monitor-cond`, `monitor-cond-since`: what a database says as it changes.

use std::sync::Arc;

use db_model::{
    DatabaseSchema, Datum, SizeCheck, TableSchema, UUID_COLUMN, VERSION_COLUMN, parse_uuid,
};
use io::Commands;
use io::jsonrpc::Message;
use json::{Json, Object};

use super::show::fetch_schema;
use super::{Call, Outcome, Stop};
use crate::table::{Cell, Formatter, Table};
use crate::{Env, Exit};

/// What is watched of one table.
struct Watched {
    schema: Arc<TableSchema>,
    /// The columns that are shown, in order.
    columns: Vec<usize>,
    requests: Vec<Json>,
}

/// Which method, with what it takes beside the tables.
struct Kind {
    method: &'static str,
    condition: Option<Json>,
    since: Option<String>,
}

pub(super) fn monitor(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let kind = Kind {
        method: "monitor",
        condition: None,
        since: None,
    };
    run(env, call, &kind)
}

pub(super) fn monitor_cond(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let kind = Kind {
        method: "monitor_cond",
        condition: Some(take_condition(call)?),
        since: None,
    };
    run(env, call, &kind)
}

pub(super) fn monitor_cond_since(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    let since = call.args.first().filter(|arg| parse_uuid(arg).is_some());
    let since = match since.cloned() {
        Some(id) => {
            call.args.remove(0);
            id
        }
        None => db_model::Uuid::nil().to_string(),
    };
    let kind = Kind {
        method: "monitor_cond_since",
        condition: Some(take_condition(call)?),
        since: Some(since),
    };
    run(env, call, &kind)
}

fn take_condition(call: &mut Call<'_>) -> Result<Json, Stop> {
    if call.args.is_empty() {
        return Err("a condition is needed (use --help for help)"
            .to_owned()
            .into());
    }
    parse_condition(&call.args.remove(0)).map_err(Stop::Fatal)
}

fn parse_condition(text: &str) -> Result<Json, String> {
    json::parse(text.as_bytes()).map_err(|error| format!("\"{text}\": {error}"))
}

/// The tables and columns that the arguments name.
fn watched_tables(
    call: &Call<'_>,
    schema: &DatabaseSchema,
    kind: &Kind,
) -> Result<Vec<Watched>, Stop> {
    let name = call.args.first().map_or("", String::as_str);
    if name == "ALL" {
        if kind.condition.is_some() {
            return Err("ALL tables are not allowed with condition"
                .to_owned()
                .into());
        }
        let tables = schema.tables.iter();
        return tables.map(|table| watch(call, table, &[], kind)).collect();
    }
    match schema.table(name) {
        Some(table) => Ok(vec![watch(call, table, &call.args[1..], kind)?]),
        None => Err(format!(
            "{}: {} does not have a table named \"{name}\"",
            call.server, schema.name
        )
        .into()),
    }
}

fn watch(
    call: &Call<'_>,
    table: &Arc<TableSchema>,
    groups: &[String],
    kind: &Kind,
) -> Result<Watched, Stop> {
    let mut watched = Watched {
        schema: Arc::clone(table),
        columns: Vec::new(),
        requests: Vec::new(),
    };
    let all = [String::new()];
    let groups = if groups.is_empty() { &all } else { groups };
    for group in groups {
        let request = add_group(call, &mut watched, group, kind)?;
        watched.requests.push(request);
    }
    Ok(watched)
}

/// Reads `COLUMN,...,!KIND,...`.
fn add_group(
    call: &Call<'_>,
    watched: &mut Watched,
    group: &str,
    kind: &Kind,
) -> Result<Json, Stop> {
    let table = Arc::clone(&watched.schema);
    let mut select = Object::new();
    let mut columns = Vec::new();
    for word in group.split(',').filter(|word| !word.is_empty()) {
        if matches!(word, "!initial" | "!insert" | "!delete" | "!modify") {
            select.insert(&word[1..], false);
            continue;
        }
        let column = table.column_index(word).ok_or_else(|| {
            format!(
                "{}: table \"{}\" in {} does not have a column named \"{word}\"",
                call.server, table.name, call.database
            )
        })?;
        columns.push(column);
    }
    if columns.is_empty() {
        // By name, the row's version last.
        let own = |c: &usize| *c != UUID_COLUMN && *c != VERSION_COLUMN;
        columns.extend((0..table.columns.len()).filter(own));
        columns.push(VERSION_COLUMN);
    }
    for &column in &columns {
        if watched.columns.contains(&column) {
            let name = &table.columns[column].name;
            return Err(format!(
                "{}: column \"{name}\" mentioned multiple times",
                call.server
            )
            .into());
        }
        watched.columns.push(column);
    }
    let names = columns
        .iter()
        .map(|&c| table.columns[c].name.clone().into());
    let mut request = Object::new().with("columns", Json::Array(names.collect()));
    if !select.is_empty() {
        request.insert("select", select);
    }
    if let Some(condition) = &kind.condition {
        request.insert("where", condition.clone());
    }
    Ok(request.into())
}

/// What control commands change.
#[derive(Default)]
struct Control {
    blocked: bool,
    /// Conditions to be changed: table and condition.
    conditions: Vec<(String, Json)>,
}

fn run(env: &mut Env<'_>, call: &mut Call<'_>, kind: &Kind) -> Outcome {
    let schema = fetch_schema(call)?;
    let tables = watched_tables(call, &schema, kind)?;
    call.client = None;
    call.poll = None;
    let (mut core, mut client) = match call.start(Some(&call.database))? {
        Ok(started) => started,
        Err(exit) => return Ok(exit),
    };
    let deadline = call.settings.deadline;
    let mut commands = commands(&core);
    let requests: Object = tables
        .iter()
        .map(|t| (t.schema.name.clone(), Json::Array(t.requests.clone())))
        .collect();
    let mut params: Vec<Json> = vec![call.database.as_str().into(), Json::Null, requests.into()];
    params.extend(kind.since.iter().map(|id| id.as_str().into()));
    let first = client.send_request(kind.method, params);
    let mut view = View {
        kind: kind.method,
        server: call.server.clone(),
        database: call.database.clone(),
        formatter: Formatter::new(call.settings.style.clone()),
        captions: tables.len() > 1,
        timestamp: call.settings.timestamp,
        tables,
        first,
        started: false,
        clock: call.settings.clock.clone(),
    };
    let mut control = Control::default();
    let mut events = Vec::new();
    while core.end().is_none() {
        let mut receive = || {
            if control.blocked {
                return Ok(None);
            }
            client.try_recv().map_err(|error| {
                let error = io::error_text(&error);
                format!("{}: receive failed ({error})", call.server)
            })
        };
        while let Some(message) = receive()? {
            let started = view.started;
            view.handle(env, &message)?;
            if view.started && !started {
                core.complete();
            }
        }
        for (table, condition) in control.conditions.drain(..) {
            let request = Object::new().with("where", condition);
            let requests = Object::new().with(table, Json::Array(vec![request.into()]));
            let params = vec![Json::Null, Json::Null, requests.into()];
            client.send_request("monitor_cond_change", params);
        }
        client
            .rpc
            .watch(&mut core.poll, !control.blocked)
            .map_err(|error| {
                let error = base::errno_text(&error);
                format!("{}: receive failed ({error})", call.server)
            })?;
        let next = core.next_deadline().min(deadline);
        core.turn(next, &mut commands, &mut control, &mut events)
            .map_err(|error| base::errno_text(&error))?;
        if core.poll.now() >= deadline {
            return Err(Stop::TimedOut);
        }
    }
    core.finish();
    Ok(Exit::SUCCESS)
}

fn commands(core: &io::daemon::Core) -> Commands<Control> {
    let mut commands: Commands<Control> = core.commands(false);
    for (name, blocked) in [
        ("ovsdb-client/block", true),
        ("ovsdb-client/unblock", false),
    ] {
        commands.answer(name, "", 0, 0, move |control: &mut Control, _| {
            let before = std::mem::replace(&mut control.blocked, blocked);
            Ok(match (before, blocked) {
                (true, true) => "already blocking".to_owned(),
                (false, false) => "already unblocked".to_owned(),
                _ => String::new(),
            })
        });
    }
    commands.answer(
        "ovsdb-client/cond_change",
        "TABLE COND",
        2,
        2,
        |control: &mut Control, args| {
            let condition = parse_condition(&args[1])?;
            control.conditions.push((args[0].clone(), condition));
            Ok("condition changed".to_owned())
        },
    );
    commands
}

/// Shows what the server tells.
struct View {
    /// The method by which it watches.
    kind: &'static str,
    server: String,
    database: String,
    tables: Vec<Watched>,
    formatter: Formatter,
    /// Whether tables are named in the output.
    captions: bool,
    timestamp: bool,
    /// The id of the first request.
    first: Json,
    started: bool,
    clock: base::Clock,
}

impl View {
    fn handle(&mut self, env: &mut Env<'_>, message: &Message) -> Result<(), Stop> {
        match message {
            Message::Reply { result, id } if *id == self.first => {
                self.started = true;
                match result.as_array() {
                    Some([found, last_id, updates]) => {
                        let last_id = last_id.as_str().unwrap_or("");
                        let head = format!("found: {found}, last_id: {last_id}\n");
                        self.show(env, &head, updates, true)?;
                    }
                    Some(elements) if self.kind == "monitor_cond_since" => complain(
                        env,
                        format!(
                            "<result> should have 3 elements, but has {}.",
                            elements.len()
                        ),
                    ),
                    _ if self.kind == "monitor_cond_since" => {
                        complain(env, "<result> is not array");
                    }
                    _ => self.show(env, "", result, true)?,
                }
            }
            Message::Error { error, id } if *id == self.first => {
                return Err(format!("transaction returned error: {error}").into());
            }
            Message::Error { error, .. } => {
                return Err(format!("cond change failed: {error}").into());
            }
            Message::Notification { method, params } => {
                let params = params.as_array().unwrap_or(&[]);
                match (&**method, params) {
                    ("update" | "update2", [_, updates]) => self.show(env, "", updates, false)?,
                    ("update3", [_, last_id, updates]) => {
                        let last_id = last_id.as_str().unwrap_or("");
                        let head = format!("last_id: {last_id}\n");
                        self.show(env, &head, updates, false)?;
                    }
                    ("monitor_canceled", [_]) => {
                        let (server, database) = (&self.server, &self.database);
                        return Err(format!("{server}: {database} database was removed").into());
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        // A reader that went away is ignored.
        let _ = env.stdout.flush();
        Ok(())
    }

    /// Shows updates under a line that belongs to all of them.
    fn show(
        &mut self,
        env: &mut Env<'_>,
        head: &str,
        updates: &Json,
        initial: bool,
    ) -> Result<(), Stop> {
        let mut head = head;
        let style = self.formatter.style().clone();
        let v1 = self.kind == "monitor";
        if updates.as_object().is_none() {
            complain(
                env,
                format!("<table-updates{}> is not object", if v1 { "" } else { "2" }),
            );
        }
        for watched in &self.tables {
            let Some(rows) = updates.get(&watched.schema.name) else {
                continue;
            };
            let Some(rows) = rows.as_object() else {
                let name = &watched.schema.name;
                complain(
                    env,
                    format!("<table-update> for table {name} is not object"),
                );
                continue;
            };
            let schema = &watched.schema;
            let mut headings = vec!["row".to_owned(), "action".to_owned()];
            let columns = watched.columns.iter();
            headings.extend(columns.map(|&c| schema.columns[c].name.to_string()));
            let mut table = Table::new(headings);
            if self.captions {
                table.caption = Some(schema.name.to_string());
            }
            if self.timestamp {
                let now = self.clock.wall();
                table.timestamp = Some(crate::ovsdb_tool::date_text(now));
            }
            for (uuid, update) in rows.iter() {
                if update.as_object().is_none() {
                    complain(
                        env,
                        format!("<row-update{}> is not object", if v1 { "" } else { "2" }),
                    );
                    continue;
                }
                for (row, action, values) in row_lines(uuid, update, initial) {
                    if let Some(wrong) = wrong_row(action, values, v1) {
                        complain(env, wrong);
                        continue;
                    }
                    let mut cells = vec![Cell::Text(row), Cell::Text(action.to_owned())];
                    for &column in &watched.columns {
                        cells.push(cell(schema, column, values, &style)?);
                    }
                    table.add_row(cells);
                }
            }
            if !table.is_empty() {
                let text = self.formatter.format(&table);
                // The blank line that sets tables apart comes before the head.
                let body = text.strip_prefix('\n');
                if body.is_some() {
                    env.print("\n");
                }
                env.print(std::mem::take(&mut head));
                env.print(body.unwrap_or(&text));
            }
        }
        env.print(head);
        Ok(())
    }
}

/// Prints what is wrong with what the server said, and goes on.
fn complain(env: &mut Env<'_>, text: impl std::fmt::Display) {
    let _ = writeln!(env.stderr, "{}: {text}", env.program);
}

/// What is wrong with the columns of a line, if something is.
fn wrong_row(action: &str, values: Option<&Json>, v1: bool) -> Option<&'static str> {
    match values {
        Some(Json::Object(_)) if action == "delete" && !v1 => {
            Some("delete method does not expect <row>")
        }
        Some(Json::Object(_)) => None,
        Some(Json::Null) if action == "delete" && !v1 => None,
        _ => Some("<row> is not object"),
    }
}

/// The lines that a row's update takes: row, action, columns.
fn row_lines<'a>(
    uuid: &str,
    update: &'a Json,
    initial: bool,
) -> Vec<(String, &'static str, Option<&'a Json>)> {
    let row = uuid.to_owned();
    for action in ["initial", "insert", "modify", "delete"] {
        if let Some(values) = update.get(action) {
            return vec![(row, action, Some(values))];
        }
    }
    match (update.get("old"), update.get("new")) {
        (None, Some(new)) => vec![(row, if initial { "initial" } else { "insert" }, Some(new))],
        (Some(old), None) => vec![(row, "delete", Some(old))],
        (Some(old), Some(new)) => vec![(row, "old", Some(old)), (String::new(), "new", Some(new))],
        (None, None) => vec![],
    }
}

fn cell(
    schema: &TableSchema,
    column: usize,
    values: Option<&Json>,
    style: &crate::table::Style,
) -> Result<Cell, Stop> {
    let column = &schema.columns[column];
    let Some(value) = values.and_then(|values| values.get(&column.name)) else {
        return Ok(Cell::Text(String::new()));
    };
    let column_type = &column.column_type;
    let datum = Datum::from_json_sized(value, column_type, None, SizeCheck::Any)
        .map_err(|error| error.to_string())?;
    Ok(Cell::datum(&datum, column_type, style))
}
