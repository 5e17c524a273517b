//! The protocol of a database client, without input or output of its own.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use db_model::Uuid;
use json::{Json, Object};

use crate::encode::{Outcome, Sent, encode};
use crate::replica::Form;
use crate::server::{self, ServerCheck};
use crate::{Interest, Layout, Replica, Transaction};

/// The identifier under which the client monitors.
const MONITOR_ID: &str = "monid";

/// A transaction that was committed, until its [`Outcome`] comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(i64);

/// A message for the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The identifier that the reply repeats.
    pub id: i64,
    /// What is asked for.
    pub method: &'static str,
    /// With which parameters.
    pub params: Json,
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no connection.
    Disconnected,
    /// The schema was asked for.
    Schema { id: i64 },
    /// The contents were asked for, by this method.
    Monitor { id: i64, method: Method },
    /// The replica follows the database.
    Following,
    /// The server answered with an error; the connection is of no use.
    Failed,
}

/// The ways to monitor, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    CondSince,
    Cond,
    Plain,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::CondSince => "monitor_cond_since",
            Self::Cond => "monitor_cond",
            Self::Plain => "monitor",
        }
    }

    fn older(self) -> Option<Self> {
        match self {
            Self::CondSince => Some(Self::Cond),
            Self::Cond => Some(Self::Plain),
            Self::Plain => None,
        }
    }
}

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
    state: State,
    requests: VecDeque<Request>,
    next_id: i64,
    /// What the server has, by table: the columns that it knows.
    last_transaction: Option<Uuid>,
    /// Whether the replica holds the database as it was at some time.
    filled: bool,
    server_schema: Option<Object>,
    sent: BTreeMap<i64, Sent>,
    outcomes: VecDeque<(Ticket, Outcome)>,
    lock: Option<Lock>,
    failure: Option<String>,
    /// Which servers will do, if not all.
    server: Option<ServerCheck>,
}

impl Client {
    /// A client that wants to see what `interest` names.
    pub fn new(layout: Arc<Layout>, interest: Interest) -> Self {
        Self {
            replica: Replica::new(Arc::clone(&layout), &interest),
            layout,
            interest,
            state: State::Disconnected,
            requests: VecDeque::new(),
            next_id: 1,
            last_transaction: None,
            filled: false,
            server_schema: None,
            sent: BTreeMap::new(),
            outcomes: VecDeque::new(),
            lock: None,
            failure: None,
            server: None,
        }
    }

    /// Works only with servers that are part of what serves the database, and of a cluster, with
    /// `leader_only`, only with the leader.  Counts from the next connection on.
    pub fn set_leader_only(&mut self, leader_only: bool) {
        self.server = Some(ServerCheck::new(leader_only));
    }

    /// Works only with servers of one cluster, if one is given.  Counts from the next connection
    /// on.
    pub fn set_cluster(&mut self, cluster: Option<Uuid>) {
        if let Some(check) = &mut self.server {
            check.cluster = cluster;
        } else if cluster.is_some() {
            let mut check = ServerCheck::new(false);
            check.cluster = cluster;
            self.server = Some(check);
        }
    }

    /// Why another server should be connected to, if the one that one is connected to will not
    /// do.
    pub fn unsuitable(&self) -> Option<Cow<'static, str>> {
        self.server.as_ref()?.verdict(&self.layout.database)
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
        let is_asked = |check: &ServerCheck| check.asked.is_some();
        self.state == State::Following
            && !self.server.as_ref().is_some_and(is_asked)
            && self.unsuitable().is_none()
    }

    /// Whether the replica holds the database as it was at some time.
    pub fn is_filled(&self) -> bool {
        self.filled
    }

    /// Why the server cannot be used, if it cannot.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
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
        let tables = self.server_schema.as_ref()?.get("tables")?;
        tables.get(table)?.get("columns")?.as_object()
    }

    fn request(&mut self, method: &'static str, params: Json) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.requests.push_back(Request { id, method, params });
        id
    }

    /// The next message to send.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// A connection was made.
    pub fn connected(&mut self) {
        self.disconnected();
        self.failure = None;
        let database = Json::from(&*self.layout.database);
        let id = self.request("get_schema", Json::Array(vec![database]));
        self.state = State::Schema { id };
        if self.server.is_some() {
            let params = server::params(&self.layout.database);
            let id = self.request("monitor_cond", params);
            if let Some(check) = &mut self.server {
                check.restart(id);
            }
        }
        if let Some(name) = self.lock.as_ref().map(|lock| lock.name.clone()) {
            self.ask_for_lock(&name);
        }
    }

    /// The connection is gone: what was under way is to be tried again.
    pub fn disconnected(&mut self) {
        self.state = State::Disconnected;
        self.requests.clear();
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
        if let Some(check) = &mut self.server
            && check.asked == Some(id)
        {
            check.asked = None;
            if let Ok(contents) = result {
                check.update(contents);
            }
            return Ok(());
        }
        match (self.state, result) {
            (State::Schema { id: asked }, Ok(schema)) if asked == id => {
                let Some(schema) = schema.as_object() else {
                    return Err("schema is not an object".to_owned());
                };
                self.server_schema = Some(schema.clone());
                self.monitor(Method::CondSince);
                Ok(())
            }
            (State::Monitor { id: asked, method }, Ok(contents)) if asked == id => {
                self.fill(method, contents)
            }
            (State::Monitor { id: asked, method }, Err(error)) if asked == id => {
                match method.older() {
                    Some(older) => self.monitor(older),
                    None => self.fail(error),
                }
                Ok(())
            }
            (State::Schema { id: asked }, Err(error)) if asked == id => {
                self.fail(error);
                Ok(())
            }
            // The reply to something that no longer matters.
            _ => Ok(()),
        }
    }

    fn fail(&mut self, error: &Json) {
        self.state = State::Failed;
        let text = error.get("error").and_then(Json::as_str);
        let text = text.map_or_else(|| error.to_string(), str::to_owned);
        self.failure = Some(text);
    }

    fn monitor(&mut self, method: Method) {
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
            if let (Some(clauses), true) = (&wanted.condition, method != Method::Plain) {
                request.insert("where", clauses.clone());
            }
            tables.insert(&*layout.name, vec![Json::Object(request)]);
        }
        let database = Json::from(&*self.layout.database);
        let id = Json::Array(vec![MONITOR_ID.into(), database.clone()]);
        let mut params = vec![database, id, tables.into()];
        if method == Method::CondSince {
            let last = self.last_transaction.unwrap_or_default();
            params.push(last.to_string().into());
        }
        let id = self.request(method.name(), params.into());
        self.state = State::Monitor { id, method };
    }

    fn fill(&mut self, method: Method, contents: &Json) -> Result<(), String> {
        match method {
            Method::CondSince => {
                let Some([Json::Boolean(found), last, updates]) = contents.as_array() else {
                    return Err("bad reply to monitor_cond_since".to_owned());
                };
                self.last_transaction = transaction_id(last);
                if *found {
                    self.replica.apply(updates, Form::Differences)?;
                } else {
                    self.replica.reset(updates, Form::Differences)?;
                }
            }
            Method::Cond => self.replica.reset(contents, Form::Differences)?,
            Method::Plain => self.replica.reset(contents, Form::Full)?,
        }
        self.filled = true;
        self.state = State::Following;
        Ok(())
    }

    /// The server sent a notification.
    ///
    /// # Errors
    /// The server broke the protocol; the connection should be given up.
    pub fn handle_notification(&mut self, method: &str, params: &Json) -> Result<(), String> {
        let params = params.as_array().unwrap_or_default();
        if let Some(check) = &mut self.server
            && params.first() == Some(&server::monitor_id())
        {
            match (method, params) {
                ("update2", [_, updates]) => check.update(updates),
                // The server has none to tell of any more.
                _ => check.forget(),
            }
            return Ok(());
        }
        match (method, params) {
            ("update3", [_, last, updates]) => {
                self.last_transaction = transaction_id(last);
                self.replica.apply(updates, Form::Differences)
            }
            ("update2", [_, updates]) => self.replica.apply(updates, Form::Differences),
            ("update", [_, updates]) => self.replica.apply(updates, Form::Full),
            ("monitor_canceled", [_]) => Err("the server ended the monitor".to_owned()),
            ("locked" | "stolen", [name]) => {
                if let Some(lock) = &mut self.lock
                    && name.as_str() == Some(&lock.name)
                {
                    lock.held = method == "locked";
                    lock.contended = method == "stolen";
                }
                Ok(())
            }
            _ => Ok(()),
        }
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
        if self.state != State::Following {
            return Err(Outcome::TryAgain);
        }
        let id = self.request("transact", operations.into());
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
        let connected = !matches!(self.state, State::Disconnected | State::Failed);
        if let Some(old) = self.lock.take()
            && connected
        {
            self.request("unlock", Json::Array(vec![old.name.into()]));
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
        let id = self.request("lock", Json::Array(vec![name.into()]));
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

/// A transaction's UUID, if the server gave one that it can be asked about later.
fn transaction_id(json: &Json) -> Option<Uuid> {
    let uuid = db_model::parse_uuid(json.as_str()?)?;
    (!uuid.is_nil()).then_some(uuid)
}
