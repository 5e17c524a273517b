//! What clients are told when commits could not be written and were taken back.

use std::sync::Arc;

use db_engine::writer::Ticket;
use db_model::Error;
use io::jsonrpc::Message;
use json::Json;

use crate::served::FailedWrite;
use crate::server::{Client, Held, Otherwise, Output, Server};

impl Server {
    /// Commits after `written` were taken back: whose they were hears of it, and nobody else does,
    /// as nothing that follows from them has left.
    pub(crate) fn write_failed(&mut self, name: &Arc<str>, written: Ticket, failure: &FailedWrite) {
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        base::log_limited!(
            Warn,
            "ovsdb_log",
            (5, 5),
            "{}: write failed ({})",
            served.shown(),
            base::errno_text(&failure.error)
        );
        if let Some(upstream) = &mut served.upstream {
            // What another server has told is not here.
            upstream.start_over();
        }
        let undone = served.monitors.take_back(failure.taken_back);
        if !undone {
            served.reset_monitors();
        }
        let key = served.key;
        let mut ended = Vec::new();
        for (client, state) in &mut self.clients {
            let mut ending = !undone && state.monitors.values().any(|m| m.db == *name);
            let concerned = |held: &Held| held.barrier.is_some_and(|b| b.0 == key && b.1 > written);
            state.held.retain_mut(|held| {
                if !concerned(held) {
                    return true;
                }
                held.barrier = None;
                match held.otherwise {
                    Otherwise::Refuse => {
                        refuse(&mut held.output, &failure.reply);
                        true
                    }
                    Otherwise::Rewind(monitor, position) => {
                        ending |= !served.monitors.rewind(monitor, position);
                        false
                    }
                    Otherwise::Disconnect => {
                        ending = true;
                        false
                    }
                }
            });
            self.busy.insert(*client);
            if ending {
                end(state);
                ended.extend(std::mem::take(&mut state.monitors).into_values());
            }
        }
        for monitor in ended {
            if let Some(served) = self.dbs.get_mut(&monitor.db) {
                served.monitors.remove(monitor.monitor);
            }
        }
        // Who was told of several commits at once hears again of those that stand.
        self.flush_database(name);
    }
}

/// Ends an answer to a transaction with the error, as one whose commit failed (RFC 7047 section
/// 4.1.3).
fn refuse(output: &mut Output, error: &Error) {
    if let Output::Send(Message::Reply { result, .. }) = output {
        let mut results = match std::mem::replace(result, Json::Null) {
            Json::Array(results) => results,
            _ => Vec::new(),
        };
        results.push(error.to_json());
        *result = Json::Array(results);
    }
}

/// Ends a client's connection; answers still leave.
fn end(state: &mut Client) {
    state.held.retain(|held| {
        matches!(
            &held.output,
            Output::Send(Message::Reply { .. } | Message::Error { .. })
        )
    });
    state.held.push_back(Held {
        barrier: None,
        output: Output::Disconnect,
        otherwise: Otherwise::Disconnect,
    });
    state.ending = true;
}
