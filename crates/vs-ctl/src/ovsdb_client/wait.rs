//! `wait`: until a database is added, connected or removed.

use std::time::Duration;

use base::Instant;
use db_client::Servers;
use json::{Json, Object};

use super::choice::Wanted;
use super::rpc::Client;
use super::{Call, Outcome, Stop};
use crate::{Env, Exit};

/// Pause between attempts to connect.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq)]
enum Goal {
    Added,
    Connected,
    Removed,
}

pub(super) fn wait(_: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    if call.args.len() == 3 {
        call.server = call.args.remove(0);
    } else {
        call.take_server();
    }
    let [database, state] = call.args.as_slice() else {
        return Err("invalid syntax for 'wait' (use --help for help)"
            .to_owned()
            .into());
    };
    let goal = match state.as_str() {
        "added" => Goal::Added,
        "connected" => Goal::Connected,
        "removed" => Goal::Removed,
        other => return Err(format!("{other}: unknown state").into()),
    };
    let database = database.clone();
    loop {
        match attempt(call, &database, goal) {
            Ok(()) => return Ok(Exit::SUCCESS),
            Err(Stop::TimedOut) => return Err(Stop::TimedOut),
            Err(Stop::Fatal(text)) => {
                log::info!(target: "ovsdb_client", "{text}");
                pause(call)?;
            }
        }
    }
}

fn pause(call: &Call<'_>) -> Result<(), Stop> {
    let mut poll = super::rpc::new_poll(&call.settings.clock)?;
    let deadline: Instant = call.settings.deadline;
    let until = (poll.now() + PAUSE).min(deadline);
    poll.wait(until, &mut Vec::new())
        .map_err(|error| base::errno_text(&error))?;
    if poll.now() >= deadline {
        return Err(Stop::TimedOut);
    }
    Ok(())
}

/// Watches the list of databases on one connection.
fn attempt(call: &mut Call<'_>, database: &str, goal: Goal) -> Result<(), Stop> {
    let deadline = call.settings.deadline;
    let mut poll = super::rpc::new_poll(&call.settings.clock)?;
    let servers = Servers::parse(&call.server);
    let wanted = Wanted {
        database: None,
        leader_only: false,
    };
    let client = Client::choose(&call.net, &servers, &wanted, &mut poll, deadline)?;
    call.client = Some(client);
    call.poll = Some(poll);
    if let (Some(client), Some(poll)) = (&mut call.client, &mut call.poll) {
        client.set_change_aware(poll, deadline, true)?;
    }
    let columns = Json::Array(vec!["name".into(), "connected".into()]);
    let request = Object::new().with("Database", Object::new().with("columns", columns));
    call.request(
        "monitor",
        vec!["_Server".into(), Json::Null, request.into()],
    )?;
    loop {
        if reached(call, database, goal)? {
            return Ok(());
        }
        let (Some(client), Some(poll)) = (&mut call.client, &mut call.poll) else {
            return Err("not connected".to_owned().into());
        };
        client
            .recv(poll, deadline)
            .map_err(|failure| match failure {
                super::Failure::TimedOut => Stop::TimedOut,
                super::Failure::Lost(text) => Stop::Fatal(text),
                super::Failure::Refused(error) => Stop::Fatal(error.to_string()),
            })?;
    }
}

fn reached(call: &mut Call<'_>, database: &str, goal: Goal) -> Result<bool, Stop> {
    let condition = Json::Array(vec!["name".into(), "==".into(), database.into()]);
    let select = Object::new()
        .with("op", "select")
        .with("table", "Database")
        .with("where", Json::Array(vec![condition]))
        .with("columns", Json::Array(vec!["connected".into()]));
    let result = call.request("transact", vec!["_Server".into(), select.into()])?;
    let rows = result
        .as_array()
        .and_then(<[Json]>::first)
        .and_then(|first| first.get("rows"))
        .and_then(Json::as_array)
        .unwrap_or(&[]);
    let connected = rows
        .iter()
        .any(|row| row.get("connected").and_then(Json::as_bool) == Some(true));
    Ok(match goal {
        Goal::Added => !rows.is_empty(),
        Goal::Connected => connected,
        Goal::Removed => rows.is_empty(),
    })
}
