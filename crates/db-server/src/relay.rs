//! Relays: databases that are another server's, whose changes come from there and go there.

use std::sync::Arc;

use base::Instant;
use db_engine::{Database, Told as Update};
use db_model::{DatabaseSchema, Result, Uuid};
use io::jsonrpc::Message;
use json::Json;

use crate::served::Served;
use crate::server::{ClientId, Server};
use crate::upstream::{Forwarded, Taken, Told, Upstream, everything};

/// Of all tables those rows go that a source does not tell of.
const ALL: &dyn Fn(&str) -> bool = &|_| true;

impl Server {
    /// Serves database `name` of another server, of which nothing is known yet.  `cluster` is
    /// the only cluster whose servers will do as that.
    ///
    /// # Errors
    /// The name is taken or reserved.
    pub fn add_relay(&mut self, name: &str, cluster: Option<Uuid>) -> Result<()> {
        self.check_new_name(name)?;
        let key = self.new_key();
        let schema = DatabaseSchema {
            name: name.into(),
            version: String::new(),
            cksum: String::new(),
            tables: Vec::new(),
        };
        let db = Database::new(Arc::new(schema), self.uuids.fork());
        let mut served = Served::in_memory(key, db);
        served.available = false;
        served.upstream = Some(Upstream::relay(&served.name(), cluster));
        self.add(served);
        Ok(())
    }

    /// Whether there are relays that do not know their databases yet.
    pub(crate) fn awaits_relays(&self) -> bool {
        let mut served = self.dbs.values();
        served.any(|served| served.relay().is_some() && !served.available)
    }

    /// Shows clients in `_Server` whether a relay is connected.
    pub(crate) fn relay_status_changed(&mut self, name: &str) {
        let Some(served) = self.dbs.get(name) else {
            return;
        };
        let now = self.clock.now();
        let connected = served
            .upstream
            .as_ref()
            .is_some_and(|u| u.is_connected(now));
        if served
            .upstream
            .as_ref()
            .is_some_and(|u| u.as_relay().is_some())
            && connected != served.told_connected
        {
            self.refresh_status(name);
        }
    }

    pub(crate) fn take_for_relay(
        &mut self,
        now: Instant,
        name: &str,
        taken: Taken,
    ) -> std::result::Result<(), String> {
        match taken {
            Taken::Done => {}
            Taken::Reply(id, result) => self.take_forwarded_reply(name, id, result),
            Taken::Schema => self.take_relay_schema(name)?,
            Taken::Contents(told) => {
                if let Err(error) = self.take_relay_contents(name, &told) {
                    base::log_limited!(Warn, "relay", (1, 5), "{error}");
                    if let Some(upstream) = self.dbs.get_mut(name).and_then(|s| s.upstream.as_mut())
                    {
                        upstream.start_over();
                    }
                    return Ok(());
                }
            }
        }
        if let Some(upstream) = self.dbs.get_mut(name).and_then(|s| s.upstream.as_mut()) {
            upstream.note_time(now);
        }
        self.relay_status_changed(name);
        Ok(())
    }

    /// Answers the client whose transaction the source has answered.
    fn take_forwarded_reply(
        &mut self,
        name: &str,
        id: i64,
        result: std::result::Result<Json, Json>,
    ) {
        let upstream = self.dbs.get_mut(name).and_then(|s| s.upstream.as_mut());
        let relay = upstream.and_then(Upstream::as_relay_mut);
        let Some(forwarded) = relay.and_then(|relay| relay.sent.remove(&id)) else {
            return;
        };
        let reply = match result {
            Ok(result) => Message::reply(result, forwarded.id),
            Err(error) => Message::error(error, forwarded.id),
        };
        self.send(forwarded.client, None, reply);
    }

    /// Asks for everything that the source's schema has.
    fn take_relay_schema(&mut self, name: &str) -> std::result::Result<(), String> {
        let Some(served) = self.dbs.get_mut(name) else {
            return Ok(());
        };
        let Some(upstream) = &mut served.upstream else {
            return Ok(());
        };
        let json = upstream.follower.schema().cloned().unwrap_or(Json::Null);
        let schema = DatabaseSchema::from_json(&json).map_err(|error| {
            log::warn!(target: "relay", "{name}: Failed to parse db schema: {error}");
            "the schema cannot be read".to_owned()
        })?;
        if *schema.name != *name {
            return Err(format!("{name}: unexpected schema {}", schema.name));
        }
        let tables = schema.tables.iter().map(|table| &*table.name);
        let request = everything(tables);
        let same = served.available && served.db.schema().to_json() == schema.to_json();
        if !same {
            log::debug!(target: "relay", "database {name} schema changed.");
            // What is here is of the old schema.
            upstream.follower.forget();
        }
        if let Some(relay) = upstream.as_relay_mut() {
            relay.new_schema = (!same).then(|| Arc::new(schema));
        }
        upstream.follower.monitor(request);
        Ok(())
    }

    /// Takes contents over, with a new schema if there is one.
    fn take_relay_contents(&mut self, name: &str, told: &Told) -> Result<()> {
        let update = Update {
            updates: &told.updates,
            differences: told.differences,
            whole: told.whole.then_some(ALL),
        };
        let (key, uuids) = (self.new_key(), self.uuids.fork());
        let Some((name, _)) = self.dbs.get_key_value(name) else {
            return Ok(());
        };
        let name = Arc::clone(name);
        let Some(served) = self.dbs.get_mut(&name) else {
            return Ok(());
        };
        let Some(upstream) = &mut served.upstream else {
            return Ok(());
        };
        let last = upstream.follower.last_transaction();
        let relay = upstream.as_relay_mut();
        let schema = relay.and_then(|relay| relay.new_schema.take_if(|_| told.first));
        let Some(schema) = schema else {
            let changes = served.db.follow(&update)?;
            served.passed(last, &changes);
            self.flush_database(&name);
            return Ok(());
        };
        let mut db = Database::new(schema, uuids);
        // If it fails, the next connection brings the schema again.
        db.follow(&update)?;
        let first = !std::mem::replace(&mut served.available, true);
        served.key = key;
        served.db = db;
        served.reset_monitors();
        served.passed(last, &db_engine::Changes::default());
        let waiting = std::mem::take(&mut served.waiting);
        self.cancel_monitors(&name);
        self.cancel_waiting(waiting);
        self.cancel_forwarded(&name);
        let what = if first {
            "connected to storage"
        } else {
            "schema changed"
        };
        self.disconnect_unaware(&format!("database {name} {what}"));
        self.refresh_status(&name);
        Ok(())
    }

    /// Keeps a transaction that nothing here speaks against for the source.
    pub(crate) fn forward(&mut self, name: &str, forwarded: Forwarded) {
        let upstream = self.dbs.get_mut(name).and_then(|s| s.upstream.as_mut());
        if let Some(relay) = upstream.and_then(Upstream::as_relay_mut) {
            relay.queued.push_back(forwarded);
        }
    }

    /// Forgets transactions of a client that has gone.
    pub(crate) fn forget_forwarded(&mut self, client: ClientId) {
        for served in self.dbs.values_mut() {
            let upstream = served.upstream.as_mut();
            if let Some(relay) = upstream.and_then(Upstream::as_relay_mut) {
                relay.queued.retain(|forwarded| forwarded.client != client);
                relay.sent.retain(|_, forwarded| forwarded.client != client);
            }
        }
    }

    /// Whether a transaction of a client is under way that was asked for by request `id`.
    pub(crate) fn is_under_way(&self, client: ClientId, id: &Json) -> bool {
        self.dbs.values().any(|served| {
            let mut waiting = served.waiting.iter();
            let is_it = |forwarded: &Forwarded| forwarded.client == client && forwarded.id == *id;
            let part = served.cluster.as_deref();
            waiting.any(|waiting| waiting.client == client && waiting.id == *id)
                || part.is_some_and(|part| part.is_under_way(client, id))
                || served.relay().is_some_and(|relay| {
                    relay.queued.iter().any(is_it) || relay.sent.values().any(is_it)
                })
        })
    }

    /// Takes a forwarded transaction of a client back, as far as that is still possible.
    pub(crate) fn take_back(&mut self, client: ClientId, id: &Json) -> bool {
        let is_it = |forwarded: &Forwarded| forwarded.client == client && forwarded.id == *id;
        for served in self.dbs.values_mut() {
            let upstream = served.upstream.as_mut();
            let Some(relay) = upstream.and_then(Upstream::as_relay_mut) else {
                continue;
            };
            let before = relay.queued.len() + relay.sent.len();
            relay.queued.retain(|forwarded| !is_it(forwarded));
            relay.sent.retain(|_, forwarded| !is_it(forwarded));
            if relay.queued.len() + relay.sent.len() < before {
                return true;
            }
        }
        false
    }

    /// Ends all forwarded transactions of a database that goes or becomes another, and tells
    /// the clients that cope with it.
    pub(crate) fn cancel_forwarded(&mut self, name: &str) {
        let upstream = self.dbs.get_mut(name).and_then(|s| s.upstream.as_mut());
        let Some(relay) = upstream.and_then(Upstream::as_relay_mut) else {
            return;
        };
        let sent = std::mem::take(&mut relay.sent).into_values();
        let queued = std::mem::take(&mut relay.queued);
        for forwarded in sent.chain(queued).collect::<Vec<_>>() {
            if self.clients.get(&forwarded.client).is_some_and(|c| c.aware) {
                let canceled = Message::error("canceled".into(), forwarded.id);
                self.send(forwarded.client, None, canceled);
            }
        }
    }
}
