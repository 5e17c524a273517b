//! Locks: taken, and held for as long as the program runs.

use io::Commands;
use io::jsonrpc::Message;
use json::Json;

use super::{Call, Outcome, Stop};
use crate::{Env, Exit};

pub(super) fn lock(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    hold(env, call, "lock")
}

pub(super) fn steal(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    hold(env, call, "steal")
}

pub(super) fn unlock(env: &mut Env<'_>, call: &mut Call<'_>) -> Outcome {
    hold(env, call, "unlock")
}

/// A request that a control command asks for.
#[derive(Default)]
struct Wishes(Vec<(&'static str, String)>);

fn print(env: &mut Env<'_>, text: &str) {
    env.print(format!("{text}\n"));
    // A reader that went away is ignored.
    let _ = env.stdout.flush();
}

fn hold(env: &mut Env<'_>, call: &mut Call<'_>, method: &'static str) -> Outcome {
    let (mut core, mut client) = match call.start(None)? {
        Ok(started) => started,
        Err(exit) => return Ok(exit),
    };
    let deadline = call.settings.deadline;
    let mut wishes = Wishes::default();
    let mut commands: Commands<Wishes> = core.commands(false);
    for name in ["unlock", "steal", "lock"] {
        commands.answer(name, "LOCK", 1, 1, move |wishes: &mut Wishes, args| {
            wishes.0.push((name, args[0].clone()));
            Ok(String::new())
        });
    }
    client.send_request(method, vec![call.args[0].as_str().into()]);
    let mut events = Vec::new();
    let mut complete = false;
    while core.end().is_none() {
        for (method, lock) in wishes.0.drain(..) {
            client.send_request(method, vec![lock.into()]);
        }
        loop {
            match client.try_recv() {
                Ok(Some(message)) => {
                    show(env, &message);
                    if !complete {
                        complete = true;
                        core.complete();
                    }
                }
                Ok(None) => break,
                // The server has ended, and the lock with it.
                Err(_) => return Ok(Exit::FAILURE),
            }
        }
        client
            .rpc
            .watch(&mut core.poll, true)
            .map_err(|error| base::errno_text(&error))?;
        let next = core.next_deadline().min(deadline);
        core.turn(next, &mut commands, &mut wishes, &mut events)
            .map_err(|error| base::errno_text(&error))?;
        if core.poll.now() >= deadline {
            return Err(Stop::TimedOut);
        }
    }
    core.finish();
    Ok(Exit::SUCCESS)
}

fn show(env: &mut Env<'_>, message: &Message) {
    match message {
        Message::Reply { result, .. } => print(env, &result.to_string()),
        Message::Error { error, .. } => print(env, &error.to_string()),
        Message::Notification { method, params } => {
            print(env, method);
            print(env, &params.to_string());
        }
        Message::Request { method, .. } => {
            log::warn!(target: "ovsdb_client", "unexpected request {}", Json::from(&**method));
        }
    }
}
