//! The methods that make, change and end monitors.

use std::sync::Arc;

use db_engine::monitor::{Spec, Version, parse_conditions};
use db_model::{Error, Result, Uuid, parse_uuid};
use io::jsonrpc::Message;
use json::Json;

use crate::methods::Answer;
use crate::server::{ClientId, ClientMonitor, Server, update_message};

/// The form of updates that a method asks for.
fn version(method: &str) -> Version {
    match method {
        "monitor" => Version::V1,
        "monitor_cond" => Version::V2,
        _ => Version::V3,
    }
}

fn since(version: Version, rest: &[Json], params: &Json) -> Result<Option<Uuid>> {
    match (version, rest) {
        (Version::V1 | Version::V2, []) => Ok(None),
        (Version::V3, [Json::String(text)]) => {
            let bad = || Error::syntax(&rest[0], "last-txn-id must be UUID format.");
            parse_uuid(text).map(Some).ok_or_else(bad)
        }
        (Version::V3, [json]) => Err(Error::syntax(json, "last-txn-id must be string")),
        _ => Err(Error::syntax(params, "invalid parameters")),
    }
}

impl Server {
    /// `monitor`, `monitor_cond` and `monitor_cond_since`.
    pub(crate) fn monitor(
        &mut self,
        client: ClientId,
        method: &str,
        params: &Json,
        id: &Json,
    ) -> Result<Json> {
        let name = self.database(method, params)?;
        let version = version(method);
        let Some([_, monitor_id, requests, rest @ ..]) = params.as_array() else {
            return Err(Error::syntax(params, "invalid parameters"));
        };
        let key = monitor_id.to_string();
        let known = |state: &crate::server::Client| state.monitors.contains_key(&key);
        if self.clients.get(&client).is_some_and(known) {
            return Err(Error::syntax(monitor_id, "duplicate monitor ID"));
        }
        let since = since(version, rest, params)?;
        let Some(served) = self.dbs.get_mut(&name) else {
            return Err(Error::bare("unknown database"));
        };
        let spec = Spec::from_json(version, requests, served.db.schema())?;
        let initial = served.monitors.add(&served.db, spec, since);
        let barrier = served.barrier();
        let monitor = ClientMonitor {
            id: monitor_id.clone(),
            db: name,
            monitor: initial.monitor,
            version,
        };
        if let Some(state) = self.clients.get_mut(&client) {
            state.monitors.insert(key, monitor);
        }
        let updates = Json::Serialized(initial.updates);
        let result = match version {
            Version::V1 | Version::V2 => updates,
            Version::V3 => Json::Array(vec![
                initial.found.into(),
                initial.last_id.to_string().into(),
                updates,
            ]),
        };
        self.send(client, barrier, Message::reply(result, id.clone()));
        Ok(Json::Null)
    }

    /// `monitor_cond_change`.
    pub(crate) fn monitor_cond_change(
        &mut self,
        client: ClientId,
        params: &Json,
        id: &Json,
    ) -> Result<Json> {
        let Some([old_id, new_id, requests]) = params.as_array() else {
            return Err(Error::syntax(params, "invalid parameters"));
        };
        let (old_key, new_key) = (old_id.to_string(), new_id.to_string());
        let monitors = self.clients.get(&client).map(|state| &state.monitors);
        let Some(monitor) = monitors.and_then(|m| m.get(&old_key)) else {
            return Err(Error::syntax(old_id, "unknown monitor session"));
        };
        if old_key != new_key && monitors.is_some_and(|m| m.contains_key(&new_key)) {
            return Err(Error::syntax(new_id, "duplicate monitor ID"));
        }
        let mut monitor = monitor.clone();
        let Some(served) = self.dbs.get_mut(&monitor.db) else {
            return Err(Error::syntax(old_id, "unknown monitor session"));
        };
        let Some(spec) = served.monitors.spec(monitor.monitor).map(Arc::clone) else {
            return Err(Error::syntax(old_id, "unknown monitor session"));
        };
        let conditions = parse_conditions(requests, &spec, served.db.schema())?;
        // What happened before the change is told under the old condition.
        let before = served.monitors.flush(&served.db, monitor.monitor);
        let after = served
            .monitors
            .change_conditions(&served.db, monitor.monitor, conditions);
        let barrier = served.barrier();
        let mut messages = Vec::new();
        if let Some((updates, last)) = before {
            messages.push(update_message(&monitor, updates, last));
        }
        monitor.id = new_id.clone();
        if let Some((updates, last)) = after {
            messages.push(update_message(&monitor, updates, last));
        }
        if let Some(state) = self.clients.get_mut(&client) {
            state.monitors.remove(&old_key);
            state.monitors.insert(new_key, monitor);
        }
        messages.push(Message::reply(Json::object(), id.clone()));
        for message in messages {
            self.send(client, barrier, message);
        }
        Ok(Json::Null)
    }

    /// `monitor_cancel`.
    pub(crate) fn monitor_cancel(&mut self, client: ClientId, params: &Json) -> Answer {
        let Some([id]) = params.as_array() else {
            return Error::syntax(params, "invalid parameters").into();
        };
        let key = id.to_string();
        let state = self.clients.get_mut(&client);
        let Some(monitor) = state.and_then(|state| state.monitors.remove(&key)) else {
            return Answer::Error("unknown monitor".into());
        };
        if let Some(served) = self.dbs.get_mut(&monitor.db) {
            served.monitors.remove(monitor.monitor);
        }
        Answer::Result(Json::object())
    }

    /// Ends all monitors of a database that goes, and tells the clients that cope with it.
    pub(crate) fn cancel_monitors(&mut self, name: &str) {
        let mut canceled = Vec::new();
        for (client, state) in &mut self.clients {
            let of_database = |_: &String, monitor: &mut ClientMonitor| &*monitor.db == name;
            let gone = state.monitors.extract_if(.., of_database);
            let gone = gone.map(|(_, monitor)| (*client, monitor.id));
            // The others' connections end, which says as much.
            canceled.extend(gone.filter(|_| state.aware));
        }
        for (client, id) in canceled {
            self.notify(client, "monitor_canceled", vec![id]);
        }
    }
}
