//! The methods of the protocol (RFC 7047 section 4.1 and ovsdb-server(7)).

use std::sync::Arc;

use base::Instant;
use db_model::{Error, Result, is_id};
use io::jsonrpc::Message;
use json::{Json, Object};

use crate::server::{ClientId, Server};
use crate::server_db;

/// What a request comes to.
pub(crate) enum Answer {
    /// Its result.
    Result(Json),
    /// Its error.
    Error(Json),
    /// It is or will be answered in another way.
    Later,
}

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        Self::Error(error.to_json())
    }
}

impl Server {
    /// Takes a message of a client.
    pub fn handle_message(&mut self, now: Instant, client: ClientId, message: Message) {
        if self.clients.get(&client).is_none_or(|state| state.ending) {
            return;
        }
        match message {
            Message::Request { method, params, id } => {
                match self.request(now, client, &method, params, &id) {
                    Answer::Result(result) => self.send(client, None, Message::reply(result, id)),
                    Answer::Error(error) => self.send(client, None, Message::error(error, id)),
                    Answer::Later => {}
                }
            }
            Message::Notification { method, params } => {
                if &*method == "cancel" {
                    self.cancel(client, &params);
                }
            }
            // What answers our own echo requests.
            Message::Reply { id, .. } if id.as_str() == Some("echo") => {}
            Message::Reply { .. } | Message::Error { .. } => {
                log::warn!(target: "ovsdb_jsonrpc_server",
                    "received unexpected {} message", message.kind());
                self.hang_up(client);
            }
        }
    }

    fn request(
        &mut self,
        now: Instant,
        client: ClientId,
        method: &str,
        params: Json,
        id: &Json,
    ) -> Answer {
        let outcome = match method {
            "transact" => {
                return match self.database(method, &params) {
                    Ok(name) => {
                        self.transact(now, client, &name, params, id.clone());
                        Answer::Later
                    }
                    Err(error) => error.into(),
                };
            }
            "echo" => Ok(params),
            "list_dbs" => {
                let names = self.dbs.keys().map(|name| Arc::clone(name).into());
                Ok(Json::Array(names.collect()))
            }
            "get_server_id" => Ok(self.id().to_string().into()),
            "get_schema" => self
                .database(method, &params)
                .map(|name| self.dbs[&name].schema().to_json()),
            "monitor_cond" | "monitor_cond_since" | "monitor_cond_change"
                if self.monitor_cond_disabled =>
            {
                return Answer::Error("unknown method".into());
            }
            "monitor" | "monitor_cond" | "monitor_cond_since" => {
                self.monitor(client, method, &params, id)
            }
            "monitor_cond_change" => self.monitor_cond_change(client, &params, id),
            "monitor_cancel" => return self.monitor_cancel(client, &params),
            "lock" | "steal" | "unlock" if !self.may_lock(client) => {
                let text = "lock and unlock methods not allowed, DB server is read only.";
                return Answer::Error(text.into());
            }
            "lock" | "steal" => self.lock(client, method, &params),
            "unlock" => self.unlock(client, &params),
            "set_db_change_aware" => self.set_db_change_aware(client, &params),
            "convert" => match self.database(method, &params) {
                Ok(name) => self.convert(now, client, &name, &params, id),
                Err(error) => Err(error),
            },
            _ => return Answer::Error("unknown method".into()),
        };
        match outcome {
            // The methods that must keep an order with updates have answered themselves.
            Ok(Json::Null) => Answer::Later,
            Ok(result) => Answer::Result(result),
            Err(error) => error.into(),
        }
    }

    /// The name of the database that a request begins with.
    pub(crate) fn database(&self, method: &str, params: &Json) -> Result<Arc<str>> {
        let Some(Json::String(name)) = params.as_array().and_then(<[Json]>::first) else {
            let details = format!("{method} request params must begin with <db-name>");
            return Err(Error::syntax(params, details));
        };
        match self.dbs.get_key_value(name) {
            Some((name, served)) if served.available => Ok(Arc::clone(name)),
            Some(_) => Err(Error::new(
                "database not available",
                format!(
                    "{method} request specifies database {name} which is not yet available because it has not completed joining its cluster"
                ),
            )),
            None => {
                let details = format!("{method} request specifies unknown database {name}");
                Err(Error::new("unknown database", details).at(params))
            }
        }
    }

    fn lock_name<'a>(method: &str, params: &'a Json) -> Result<&'a Arc<str>> {
        match params.as_array() {
            Some([Json::String(name)]) if is_id(name) => Ok(name),
            _ => Err(Error::syntax(
                params,
                format!("{method} request params must be <id>"),
            )),
        }
    }

    /// Whether a client may ask for locks and give them back.
    fn may_lock(&self, client: ClientId) -> bool {
        self.clients.get(&client).is_none_or(|c| !c.read_only)
    }

    fn lock(&mut self, client: ClientId, method: &str, params: &Json) -> Result<Json> {
        let name = Self::lock_name(method, params)?;
        if self.locks.has(name, client) {
            let details = format!("must issue \"unlock\" before new \"{method}\"");
            return Err(Error::syntax(params, details));
        }
        let locked = if method == "steal" {
            if let Some(victim) = self.locks.steal(name, client) {
                if let Some(state) = self.clients.get_mut(&victim) {
                    state.locks_lost.insert(Arc::clone(name));
                }
                self.notify(victim, "stolen", vec![Arc::clone(name).into()]);
            }
            true
        } else {
            self.locks.lock(name, client)
        };
        Ok(Object::new().with("locked", locked).into())
    }

    fn unlock(&mut self, client: ClientId, params: &Json) -> Result<Json> {
        let name = Self::lock_name("unlock", params)?;
        if !self.locks.has(name, client) {
            let details = "unlock: \"unlock\" without \"lock\" or \"steal\"";
            return Err(Error::syntax(params, details));
        }
        if let Some(state) = self.clients.get_mut(&client) {
            state.locks_lost.remove(name);
        }
        if let Some(owner) = self.locks.unlock(name, client) {
            self.notify(owner, "locked", vec![Arc::clone(name).into()]);
        }
        Ok(Json::object())
    }

    fn set_db_change_aware(&mut self, client: ClientId, params: &Json) -> Result<Json> {
        let Some([Json::Boolean(aware)]) = params.as_array() else {
            let details = "set_db_change_aware: true or false parameter expected";
            return Err(Error::syntax(params, details));
        };
        if let Some(state) = self.clients.get_mut(&client) {
            state.aware = *aware;
        }
        Ok(Json::object())
    }

    /// Whether transactions of this client on this database may change nothing.
    pub(crate) fn is_read_only(&self, client: ClientId, name: &str) -> bool {
        let upstream = self.dbs.get(name).and_then(|s| s.upstream.as_ref());
        name == server_db::NAME
            || upstream.is_some_and(|upstream| upstream.as_relay().is_none())
            || self.clients.get(&client).is_some_and(|c| c.read_only)
    }
}
