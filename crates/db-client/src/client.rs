//! The protocol of a database client, without input or output of its own.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use db_model::Uuid;
use json::{Json, Object};

use crate::encode::{Outcome, Sent, encode};
use crate::follower::{Follower, Request, Step};
use crate::{Interest, Layout, Replica, Transaction};

/// A transaction that was committed, until its [`Outcome`] comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(i64);

/// A lock that the client wants.
#[derive(Clone, Debug)]
struct Lock {
    name: String,
    /// The request that asked for it and was not answered yet.
    asked: Option<i64>,
    held: bool,
    contended: bool,
}

/// A client of one database: follows it and commits transactions.
///
/// Tell it of the connection with [`Client::connected`] and [`Client::disconnected`] and
/// of messages with [`Client::handle_reply`] and [`Client::handle_notification`]; send
/// what [`Client::poll_request`] yields; after each look at [`Client::poll_outcome`].
#[derive(Debug)]
pub struct Client {
    layout: Arc<Layout>,
    interest: Interest,
    replica: Replica,
    follower: Follower,
    /// Whether the replica holds the database as it was at some time.
    filled: bool,
    sent: BTreeMap<i64, Sent>,
    outcomes: VecDeque<(Ticket, Outcome)>,
    lock: Option<Lock>,
}

impl Client {
    /// A client that wants to see what `interest` names.
    pub fn new(layout: Arc<Layout>, interest: Interest) -> Self {
        Self {
            replica: Replica::new(Arc::clone(&layout), &interest),
            follower: Follower::new(layout.database.clone()),
            layout,
            interest,
            filled: false,
            sent: BTreeMap::new(),
            outcomes: VecDeque::new(),
            lock: None,
        }
    }

    /// Works only with servers that are part of what serves the database, and of a cluster, with
    /// `leader_only`, only with the leader.  Counts from the next connection on.
    pub fn set_leader_only(&mut self, leader_only: bool) {
        self.follower.set_leader_only(leader_only);
    }

    /// Works only with servers of one cluster, if one is given.  Counts from the next connection
    /// on.
    pub fn set_cluster(&mut self, cluster: Option<Uuid>) {
        self.follower.set_cluster(cluster);
    }

    /// Why another server should be connected to, if the one that one is connected to will not
    /// do.
    pub fn unsuitable(&self) -> Option<Cow<'static, str>> {
        self.follower.unsuitable()
    }

    /// The tables and columns.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// What the client wants to see.
    pub fn interest(&self) -> &Interest {
        &self.interest
    }

    /// The copy of the database.  While there is no connection it keeps what it had.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The copy, to take its changes.
    pub fn replica_mut(&mut self) -> &mut Replica {
        &mut self.replica
    }

    /// Whether the replica follows the database now.
    pub fn is_following(&self) -> bool {
        self.follower.is_following()
    }

    /// Whether the replica holds the database as it was at some time.
    pub fn is_filled(&self) -> bool {
        self.filled
    }

    /// Why the server cannot be used, if it cannot.
    pub fn failure(&self) -> Option<&str> {
        self.follower.failure()
    }

    /// Whether the server's schema has the column; the replica shows its default if not.
    pub fn server_has_column(&self, table: &str, column: &str) -> bool {
        self.server_table(table)
            .is_some_and(|columns| columns.contains(column))
    }

    /// Whether the server's schema has the table.
    pub fn server_has_table(&self, table: &str) -> bool {
        self.server_table(table).is_some()
    }

    fn server_table(&self, table: &str) -> Option<&Object> {
        let tables = self.follower.schema()?.get("tables")?;
        tables.get(table)?.get("columns")?.as_object()
    }

    /// The next message to send.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.follower.poll_request()
    }

    /// A connection was made.
    pub fn connected(&mut self) {
        self.disconnected();
        self.follower.connected();
        if let Some(name) = self.lock.as_ref().map(|lock| lock.name.clone()) {
            self.ask_for_lock(&name);
        }
    }

    /// The connection is gone: what was under way is to be tried again.
    pub fn disconnected(&mut self) {
        self.follower.disconnected();
        for (id, _) in std::mem::take(&mut self.sent) {
            self.outcomes.push_back((Ticket(id), Outcome::TryAgain));
        }
        if let Some(lock) = &mut self.lock {
            lock.asked = None;
            lock.held = false;
            lock.contended = false;
        }
    }

    /// A request was answered.  `result` is the error if the server could not do it.
    ///
    /// # Errors
    /// The server broke the protocol; the connection should be given up.
    pub fn handle_reply(&mut self, id: i64, result: Result<&Json, &Json>) -> Result<(), String> {
        if let Some(sent) = self.sent.remove(&id) {
            let outcome = match result {
                Ok(results) => match results.as_array() {
                    Some(results) => sent.outcome(results),
                    None => return Err("reply to transact is not an array".to_owned()),
                },
                Err(error) => match error.as_str() {
                    // The server dropped it without running it.
                    Some("canceled") => Outcome::TryAgain,
                    _ => Outcome::Error(error.to_string()),
                },
            };
            self.outcomes.push_back((Ticket(id), outcome));
            return Ok(());
        }
        if self
            .lock
            .as_ref()
            .is_some_and(|lock| lock.asked == Some(id))
        {
            self.handle_lock_reply(result);
            return Ok(());
        }
        let step = self.follower.handle_reply(id, result)?;
        self.take(step)
    }

    /// Does what a message means; one that is not the follower's no longer matters.
    fn take(&mut self, step: Step<'_>) -> Result<(), String> {
        match step {
            Step::Done | Step::Other => Ok(()),
            Step::Schema { conditional } => {
                let tables = self.monitor_requests(conditional);
                self.follower.monitor(tables);
                Ok(())
            }
            Step::Contents(contents) => {
                let (updates, form) = (contents.updates, contents.form);
                if contents.whole {
                    self.replica.reset(updates, form)?;
                } else {
                    self.replica.apply(updates, form)?;
                }
                self.filled = true;
                Ok(())
            }
        }
    }

    /// What to ask for, of what the server has.
    fn monitor_requests(&self, conditional: bool) -> Object {
        let mut tables = Object::new();
        for (id, wanted) in self.interest.tables() {
            let layout = &self.layout[id];
            let Some(known) = self.server_table(&layout.name) else {
                continue;
            };
            let columns: Vec<Json> = wanted
                .columns
                .iter()
                .map(|column| &layout[*column].name)
                .filter(|name| known.contains(name))
                .map(|name| Json::from(&**name))
                .collect();
            let mut request = Object::new().with("columns", columns);
            if let (Some(clauses), true) = (&wanted.condition, conditional) {
                request.insert("where", clauses.clone());
            }
            tables.insert(&*layout.name, vec![Json::Object(request)]);
        }
        tables
    }

    /// The server sent a notification.
    ///
    /// # Errors
    /// The server broke the protocol; the connection should be given up.
    pub fn handle_notification(&mut self, method: &str, params: &Json) -> Result<(), String> {
        let step = self.follower.handle_notification(method, params)?;
        if step != Step::Other {
            return self.take(step);
        }
        if let ("locked" | "stolen", Some([name])) = (method, params.as_array())
            && let Some(lock) = &mut self.lock
            && name.as_str() == Some(&lock.name)
        {
            lock.held = method == "locked";
            lock.contended = method == "stolen";
        }
        Ok(())
    }

    /// Sends a transaction; `Err` is the outcome if none needs to be waited for.
    ///
    /// # Errors
    /// [`Outcome::Unchanged`], [`Outcome::TryAgain`] if there is no connection, or
    /// [`Outcome::NotLocked`].
    pub fn commit(&mut self, transaction: &Transaction) -> Result<Ticket, Outcome> {
        let lock = match &self.lock {
            Some(lock) if !lock.held => return Err(Outcome::NotLocked),
            Some(lock) => Some(lock.name.as_str()),
            None => None,
        };
        let Some((operations, sent)) = encode(transaction, &self.replica, lock) else {
            return Err(Outcome::Unchanged);
        };
        if !self.follower.takes_transactions() {
            return Err(Outcome::TryAgain);
        }
        let id = self.follower.request("transact", operations.into());
        self.sent.insert(id, sent);
        Ok(Ticket(id))
    }

    /// The next transaction whose outcome is known.
    pub fn poll_outcome(&mut self) -> Option<(Ticket, Outcome)> {
        self.outcomes.pop_front()
    }

    /// Whether [`Client::poll_outcome`] has one.
    pub fn has_outcome(&self) -> bool {
        !self.outcomes.is_empty()
    }

    /// From now on wants to hold the lock called `name`, or none.  Transactions then are
    /// sent only while it is held.
    pub fn set_lock(&mut self, name: Option<&str>) {
        if self.lock.as_ref().map(|lock| lock.name.as_str()) == name {
            return;
        }
        let connected = self.follower.is_connected();
        if let Some(old) = self.lock.take()
            && connected
        {
            self.follower
                .request("unlock", Json::Array(vec![old.name.into()]));
        }
        if let Some(name) = name {
            self.lock = Some(Lock {
                name: name.to_owned(),
                asked: None,
                held: false,
                contended: false,
            });
            if connected {
                self.ask_for_lock(name);
            }
        }
    }

    fn ask_for_lock(&mut self, name: &str) {
        let id = self
            .follower
            .request("lock", Json::Array(vec![name.into()]));
        if let Some(lock) = &mut self.lock {
            lock.asked = Some(id);
        }
    }

    fn handle_lock_reply(&mut self, result: Result<&Json, &Json>) {
        let locked = result.ok().and_then(|reply| reply.get("locked"));
        if let Some(lock) = &mut self.lock {
            lock.asked = None;
            lock.held = locked == Some(&Json::Boolean(true));
            lock.contended = !lock.held;
        }
    }

    /// Whether the wanted lock is held, or none is wanted.
    pub fn has_lock(&self) -> bool {
        self.lock.as_ref().is_none_or(|lock| lock.held)
    }

    /// Whether another client holds the wanted lock.
    pub fn is_lock_contended(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.contended)
    }
}
