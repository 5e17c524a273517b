//! Databases whose contents come from another server: relays, which pass changes on to it,
//! and backups, which only follow.  Without sockets: messages in, messages out.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use db_client::{Follower, Step};
use db_model::{DatabaseSchema, Uuid};
use io::jsonrpc::Message;
use json::{Json, Object};

use crate::server::{ClientId, Server};

/// For so long a relay that lost its source says that it is connected, since it probably is
/// again soon.
const LENIENCE: Duration = Duration::from_secs(30);

/// A transaction that is another server's to commit.
#[derive(Debug)]
pub(crate) struct Forwarded {
    pub(crate) client: ClientId,
    /// The client's id of the request.
    pub(crate) id: Json,
    pub(crate) params: Json,
}

/// What is special to a relay.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// Transactions to be sent to the source.
    pub(crate) queued: VecDeque<Forwarded>,
    /// Those that were sent and not answered, by the id of the request there.
    pub(crate) sent: BTreeMap<i64, Forwarded>,
    /// A schema that is put in place with the contents that come next.
    pub(crate) new_schema: Option<Arc<DatabaseSchema>>,
    /// When it last followed its source.
    last_following: Option<Instant>,
}

/// What is special to a backup.
#[derive(Debug)]
pub(crate) struct Backup {
    /// Tables that are left alone.
    pub(crate) excluded: BTreeSet<String>,
    /// The question who the other server is, until it was answered.
    pub(crate) asked: Option<i64>,
    /// Whether the other server is known to be another one.
    pub(crate) verified: bool,
    /// Whether the schema came before that was known.
    pub(crate) schema_waits: bool,
    /// Whether it cannot follow the other server, for a reason that was logged.
    pub(crate) failed: bool,
}

/// What a database does with another server.
#[derive(Debug)]
pub(crate) enum Part {
    /// It is that server's database, seen from here.
    Relay(Relay),
    /// It is a copy, for when that server fails.
    Backup(Backup),
}

/// The other server.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) follower: Follower,
    pub(crate) part: Part,
    /// Whether the connection is to be made anew.
    reconnect: bool,
    connected: bool,
}

impl Upstream {
    /// The source of a relay.  `cluster` is the only cluster whose servers will do.
    pub(crate) fn relay(database: &Arc<str>, cluster: Option<Uuid>) -> Self {
        let mut follower = Follower::new(Arc::clone(database));
        follower.set_leader_only(false);
        follower.set_cluster(cluster);
        follower.set_aware();
        Self::new(follower, Part::Relay(Relay::default()))
    }

    /// The active server of a backup that leaves the tables `excluded` alone.
    pub(crate) fn backup(database: &Arc<str>, excluded: BTreeSet<String>) -> Self {
        let backup = Backup {
            excluded,
            asked: None,
            verified: false,
            schema_waits: false,
            failed: false,
        };
        Self::new(Follower::new(Arc::clone(database)), Part::Backup(backup))
    }

    const fn new(follower: Follower, part: Part) -> Self {
        Self {
            follower,
            part,
            reconnect: false,
            connected: false,
        }
    }

    pub(crate) const fn as_relay(&self) -> Option<&Relay> {
        match &self.part {
            Part::Relay(relay) => Some(relay),
            Part::Backup(_) => None,
        }
    }

    pub(crate) const fn as_relay_mut(&mut self) -> Option<&mut Relay> {
        match &mut self.part {
            Part::Relay(relay) => Some(relay),
            Part::Backup(_) => None,
        }
    }

    pub(crate) const fn as_backup_mut(&mut self) -> Option<&mut Backup> {
        match &mut self.part {
            Part::Backup(backup) => Some(backup),
            Part::Relay(_) => None,
        }
    }

    /// Gives up what is here, of which all is to be told anew over a new connection.
    pub(crate) const fn start_over(&mut self) {
        self.follower.forget();
        self.reconnect = true;
    }

    /// Whether clients can rely on the relay: it follows its source, or did so just now.
    pub(crate) fn is_connected(&self, now: Instant) -> bool {
        let Part::Relay(relay) = &self.part else {
            return true;
        };
        if self.follower.failure().is_some() {
            return false;
        }
        self.follower.is_following() || relay.last_following.is_some_and(|at| now < at + LENIENCE)
    }

    /// When [`is_connected`](Self::is_connected) may change by itself.
    pub(crate) fn next_deadline(&self) -> Instant {
        match &self.part {
            Part::Relay(relay) if !self.follower.is_following() => relay
                .last_following
                .map_or(Instant::MAX, |at| at + LENIENCE),
            _ => Instant::MAX,
        }
    }

    /// Takes note of the time while it follows its source.
    pub(crate) fn note_time(&mut self, now: Instant) {
        if self.follower.is_following()
            && let Part::Relay(relay) = &mut self.part
        {
            relay.last_following = Some(now);
        }
    }

    /// How it stands with a backup, as `ovsdb-server/sync-status` has it, from `source`.
    pub(crate) fn sync_status(&self, source: &str) -> String {
        let Part::Backup(backup) = &self.part else {
            return String::new();
        };
        if backup.failed {
            return format!("Replication to ({source}) failed");
        }
        if !self.follower.is_following() {
            return format!("connecting: {source}");
        }
        let mut text = format!("replicating: {source}\n");
        if !backup.excluded.is_empty() {
            let database = self.follower.database();
            let tables = backup.excluded.iter();
            let tables: Vec<String> = tables.map(|table| format!("{database}:{table}")).collect();
            text += &format!("exclude: {}", tables.join(","));
        }
        text
    }
}

/// A request for all columns of tables.
pub(crate) fn everything<'a>(tables: impl Iterator<Item = &'a str>) -> Object {
    tables
        .map(|table| {
            let all = Json::Array(vec![Json::object()]);
            (Arc::from(table), all)
        })
        .collect()
}

/// What a message of another server leads to.
pub(crate) enum Taken {
    /// Nothing more.
    Done,
    /// It answers a request that is not the follower's.
    Reply(i64, Result<Json, Json>),
    /// The schema is known.
    Schema,
    /// Contents have come.
    Contents(Told),
}

/// Contents from another server.
pub(crate) struct Told {
    pub(crate) updates: Json,
    pub(crate) differences: bool,
    pub(crate) whole: bool,
    pub(crate) first: bool,
}

impl Upstream {
    /// Hands a message to the follower.
    fn take(&mut self, message: Message) -> Result<Taken, String> {
        let (id, result, method, params) = match message {
            Message::Reply { result, id } => (id, Some(Ok(result)), None, Json::Null),
            Message::Error { error, id } => (id, Some(Err(error)), None, Json::Null),
            Message::Notification { method, params } => (Json::Null, None, Some(method), params),
            Message::Request { method, .. } => {
                return Err(format!("unexpected request \"{method}\" from the server"));
            }
        };
        let step = match (&result, &method, id.as_integer()) {
            (Some(result), _, Some(id)) => self.follower.handle_reply(id, result.as_ref())?,
            (None, Some(method), _) => self.follower.handle_notification(method, &params)?,
            _ => Step::Done,
        };
        let contents = match step {
            Step::Done => return Ok(Taken::Done),
            Step::Schema { .. } => return Ok(Taken::Schema),
            Step::Contents(contents) => contents,
            Step::Other => {
                return Ok(match (id.as_integer(), result) {
                    (Some(id), Some(result)) => Taken::Reply(id, result),
                    _ => Taken::Done,
                });
            }
        };
        let differences = contents.form == db_client::Form::Differences;
        let (whole, first) = (contents.whole, contents.first);
        // The updates are what comes last in the message, and may be large.
        let updates = match result.and_then(Result::ok).unwrap_or(params) {
            Json::Array(mut elements) => elements.pop().unwrap_or(Json::Null),
            other => other,
        };
        Ok(Taken::Contents(Told {
            updates,
            differences,
            whole,
            first,
        }))
    }
}

impl Server {
    fn upstream(&mut self, name: &str) -> Option<&mut Upstream> {
        self.dbs.get_mut(name)?.upstream.as_mut()
    }

    /// Whether contents of database `name` are another server's.
    pub(crate) fn has_upstream(&self, name: &str) -> bool {
        self.dbs.get(name).is_some_and(|s| s.upstream.is_some())
    }

    /// A connection to the other server of database `name` was made.
    pub fn upstream_connected(&mut self, name: &str) {
        let Some(upstream) = self.upstream(name) else {
            return;
        };
        upstream.connected = true;
        upstream.reconnect = false;
        if let Some(backup) = upstream.as_backup_mut() {
            backup.verified = false;
            backup.schema_waits = false;
        }
        upstream.follower.connected();
        if upstream.as_relay().is_none() {
            // Nothing is taken over before that was answered.
            let id = upstream
                .follower
                .request("get_server_id", Json::Array(Vec::new()));
            if let Some(backup) = upstream.as_backup_mut() {
                backup.asked = Some(id);
            }
        }
        self.relay_status_changed(name);
    }

    /// The connection to the other server of database `name` is gone.
    pub fn upstream_disconnected(&mut self, name: &str) {
        let Some(upstream) = self.upstream(name) else {
            return;
        };
        upstream.connected = false;
        upstream.reconnect = false;
        upstream.follower.disconnected();
        // Whether they were committed is not known.
        let lost = upstream
            .as_relay_mut()
            .map(|relay| std::mem::take(&mut relay.sent));
        for forwarded in lost.into_iter().flat_map(BTreeMap::into_values) {
            let canceled = Message::error("canceled".into(), forwarded.id);
            self.send(forwarded.client, None, canceled);
        }
        self.relay_status_changed(name);
    }

    /// Takes a message of the other server of database `name`.
    ///
    /// # Errors
    /// Why the connection should be made anew.
    pub fn upstream_message(
        &mut self,
        now: Instant,
        name: &str,
        message: Message,
    ) -> Result<(), String> {
        let Some(upstream) = self.upstream(name) else {
            return Ok(());
        };
        let taken = upstream.take(message)?;
        if upstream.as_relay().is_some() {
            self.take_for_relay(now, name, taken)?;
        } else {
            self.take_for_backup(name, taken)?;
        }
        let Some(upstream) = self.upstream(name) else {
            return Ok(());
        };
        upstream.note_time(now);
        Ok(())
    }

    /// Why the source of relay `name` will not do at the moment, if another might.
    pub fn upstream_unsuitable(&self, name: &str) -> Option<String> {
        let upstream = self.dbs.get(name).and_then(|s| s.upstream.as_ref())?;
        upstream.as_relay()?;
        let why = upstream.follower.unsuitable();
        why.map(Cow::into_owned)
            .or_else(|| upstream.follower.failure().map(str::to_owned))
    }

    /// What is to be sent to the other server of database `name`.
    pub fn upstream_requests(&mut self, name: &str) -> Vec<Message> {
        let Some(upstream) = self.upstream(name) else {
            return Vec::new();
        };
        if !upstream.connected {
            return Vec::new();
        }
        upstream.forward_queued();
        let mut messages = Vec::new();
        while let Some(request) = upstream.follower.poll_request() {
            let params = match request.params {
                Json::Array(params) => params,
                other => vec![other],
            };
            messages.push(Message::request(request.method, params, request.id.into()));
        }
        messages
    }

    /// Whether the connection to the other server of database `name` is to be made anew; says
    /// so once.
    pub fn take_upstream_reconnect(&mut self, name: &str) -> bool {
        let upstream = self.upstream(name);
        upstream.is_some_and(|upstream| std::mem::take(&mut upstream.reconnect))
    }

    /// How a backup fares, which follows `source`, as `ovsdb-server/sync-status` says it.
    pub(crate) fn sync_status(&self, name: &str, source: &str) -> String {
        let upstream = self.dbs.get(name).and_then(|s| s.upstream.as_ref());
        upstream.map_or_else(String::new, |upstream| upstream.sync_status(source))
    }

    /// Sets the only cluster whose servers will do as source of relay `name`, if not all do.
    pub(crate) fn set_relay_cluster(&mut self, name: &str, cluster: Option<Uuid>) {
        if let Some(upstream) = self.upstream(name) {
            upstream.follower.set_cluster(cluster);
        }
    }

    /// Whether contents of database `name` come from another server now.
    pub fn upstream_follows(&self, name: &str) -> bool {
        let upstream = self.dbs.get(name).and_then(|s| s.upstream.as_ref());
        upstream.is_some_and(|upstream| upstream.follower.is_following())
    }
}

impl Upstream {
    /// Turns queued transactions into requests.
    fn forward_queued(&mut self) {
        if !self.follower.takes_transactions() {
            return;
        }
        let Part::Relay(relay) = &mut self.part else {
            return;
        };
        while let Some(mut forwarded) = relay.queued.pop_front() {
            let params = std::mem::replace(&mut forwarded.params, Json::Null);
            let id = self.follower.request("transact", params);
            relay.sent.insert(id, forwarded);
        }
    }
}
