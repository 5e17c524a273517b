//! Following a database of a server, whatever is done with its contents: asks for the schema,
//! then for contents in the newest way that the server knows, and resumes after a reconnect
//! where it was.  RFC 7047 section 4.1 and the extensions of `ovsdb-server(7)`.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use db_model::Uuid;
use json::{Json, Object};

use crate::server::{self, ServerCheck};

/// The identifier under which a follower monitors, with the database's name.
const MONITOR_ID: &str = "monid";

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

/// How an update tells of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `<table-updates>` of RFC 7047, section 4.1.6: old and new rows.
    Full,
    /// `<table-updates2>` of `ovsdb-server(7)`: initial, insert, delete, modify with differences.
    Differences,
}

/// Contents that the server told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contents<'a> {
    /// Updates by table and row.
    pub updates: &'a Json,
    /// How they tell of rows.
    pub form: Form,
    /// Whether these are all rows, so that others are gone; else what changed since the
    /// contents before.
    pub whole: bool,
    /// Whether this answers the request to monitor.
    pub first: bool,
}

/// What a message means to the follower's owner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'a> {
    /// Nothing.
    Done,
    /// The server's schema is known, and the owner must say what it wants to see:
    /// [`Follower::monitor`].
    Schema {
        /// Whether it may name conditions.
        conditional: bool,
    },
    /// Contents have come.
    Contents(Contents<'a>),
    /// The message is not the follower's: it answers another request, or is about something
    /// else.
    Other,
}

/// What a follower waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no connection.
    Disconnected,
    /// The schema was asked for.
    Schema { id: i64 },
    /// The owner has to say what it wants to see.
    Asking { method: Method },
    /// The contents were asked for, by this method.
    Monitor { id: i64, method: Method },
    /// Updates come.
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

/// Follows one database over connections that come and go, without input or output of its
/// own: tell it of the connection with [`Follower::connected`] and
/// [`Follower::disconnected`] and of messages with [`Follower::handle_reply`] and
/// [`Follower::handle_notification`]; send what [`Follower::poll_request`] yields.
#[derive(Debug)]
pub struct Follower {
    database: Arc<str>,
    state: State,
    requests: VecDeque<Request>,
    next_id: i64,
    last_transaction: Option<Uuid>,
    schema: Option<Json>,
    failure: Option<String>,
    /// Which servers will do, if not all.
    server: Option<ServerCheck>,
    /// Whether it copes with schemas that change while it is connected.
    aware: bool,
}

impl Follower {
    /// A follower of `database`, not connected.
    pub fn new(database: Arc<str>) -> Self {
        Self {
            database,
            state: State::Disconnected,
            requests: VecDeque::new(),
            next_id: 1,
            last_transaction: None,
            schema: None,
            failure: None,
            server: None,
            aware: false,
        }
    }

    /// Stays connected when databases of the server come and go or change their schema,
    /// and asks for the schema and all contents again then (`set_db_change_aware`).  Counts
    /// from the next connection on.
    pub const fn set_aware(&mut self) {
        self.aware = true;
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

    /// The name of the database.
    pub const fn database(&self) -> &Arc<str> {
        &self.database
    }

    /// Why another server should be connected to, if the one that one is connected to will not
    /// do.
    pub fn unsuitable(&self) -> Option<Cow<'static, str>> {
        self.server.as_ref()?.verdict(&self.database)
    }

    /// Whether contents come as they change.
    pub fn is_following(&self) -> bool {
        let is_asked = |check: &ServerCheck| check.asked.is_some();
        self.state == State::Following
            && !self.server.as_ref().is_some_and(is_asked)
            && self.unsuitable().is_none()
    }

    /// Whether updates come, so that the server would answer a transaction.
    pub fn takes_transactions(&self) -> bool {
        self.state == State::Following
    }

    /// Whether the server was asked, and its answers were taken so far.
    pub fn is_connected(&self) -> bool {
        !matches!(self.state, State::Disconnected | State::Failed)
    }

    /// Why the server cannot be used, if it cannot.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The schema that the server has, or had.
    pub const fn schema(&self) -> Option<&Json> {
        self.schema.as_ref()
    }

    /// The last transaction that was heard of, if the server tells ids of transactions.
    pub const fn last_transaction(&self) -> Option<Uuid> {
        self.last_transaction
    }

    /// Asks for all contents in place of those since the last transaction: what one has is of
    /// no use.
    pub const fn forget(&mut self) {
        self.last_transaction = None;
    }

    /// Queues a request of the owner's.  Returns the identifier that the reply will have.
    pub fn request(&mut self, method: &'static str, params: Json) -> i64 {
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
        self.ask_schema();
        if self.server.is_some() {
            let params = server::params(&self.database);
            let id = self.request("monitor_cond", params);
            if let Some(check) = &mut self.server {
                check.restart(id);
            }
        }
        if self.aware {
            // A server that does not know the method disconnects in place of telling.
            self.request("set_db_change_aware", Json::Array(vec![true.into()]));
        }
    }

    fn ask_schema(&mut self) {
        self.failure = None;
        let params = Json::Array(vec![Json::from(&*self.database)]);
        let id = self.request("get_schema", params);
        self.state = State::Schema { id };
    }

    /// The connection is gone.
    pub fn disconnected(&mut self) {
        self.state = State::Disconnected;
        self.requests.clear();
        if let Some(check) = &mut self.server {
            check.forget();
        }
    }

    /// A request was answered.  `result` is the error if the server could not do it.
    ///
    /// # Errors
    /// The server broke the protocol; the connection should be given up.
    pub fn handle_reply<'a>(
        &mut self,
        id: i64,
        result: Result<&'a Json, &Json>,
    ) -> Result<Step<'a>, String> {
        if let Some(check) = &mut self.server
            && check.asked == Some(id)
        {
            check.asked = None;
            if let Ok(contents) = result {
                check.update(contents);
            }
            return Ok(Step::Done);
        }
        match (self.state, result) {
            (State::Schema { id: asked }, Ok(schema)) if asked == id => {
                if schema.as_object().is_none() {
                    return Err("schema is not an object".to_owned());
                }
                self.schema = Some(schema.clone());
                Ok(self.ask(Method::CondSince))
            }
            (State::Monitor { id: asked, method }, Ok(contents)) if asked == id => {
                self.first_contents(method, contents)
            }
            (State::Monitor { id: asked, method }, Err(error)) if asked == id => {
                Ok(match method.older() {
                    Some(older) => self.ask(older),
                    None => self.fail(error),
                })
            }
            (State::Schema { id: asked }, Err(error)) if asked == id => Ok(self.fail(error)),
            _ => Ok(Step::Other),
        }
    }

    fn fail(&mut self, error: &Json) -> Step<'static> {
        self.state = State::Failed;
        let text = error.get("error").and_then(Json::as_str);
        let text = text.map_or_else(|| error.to_string(), str::to_owned);
        self.failure = Some(text);
        Step::Done
    }

    fn ask(&mut self, method: Method) -> Step<'static> {
        self.state = State::Asking { method };
        Step::Schema {
            conditional: method != Method::Plain,
        }
    }

    /// Asks for contents: by table an array of `<monitor-cond-request>` (RFC 7047 section 4.1.5
    /// and `ovsdb-server(7)`).  Does nothing unless [`Step::Schema`] asked for it.
    pub fn monitor(&mut self, tables: Object) {
        let State::Asking { method } = self.state else {
            return;
        };
        let database = Json::from(&*self.database);
        let id = Json::Array(vec![MONITOR_ID.into(), database.clone()]);
        let mut params = vec![database, id, tables.into()];
        if method == Method::CondSince {
            let last = self.last_transaction.unwrap_or_default();
            params.push(last.to_string().into());
        }
        let id = self.request(method.name(), params.into());
        self.state = State::Monitor { id, method };
    }

    fn first_contents<'a>(
        &mut self,
        method: Method,
        contents: &'a Json,
    ) -> Result<Step<'a>, String> {
        let (updates, whole) = match (method, contents.as_array()) {
            (Method::CondSince, Some([Json::Boolean(found), last, updates])) => {
                self.last_transaction = transaction_id(last);
                (updates, !*found)
            }
            (Method::CondSince, _) => {
                return Err("bad reply to monitor_cond_since".to_owned());
            }
            _ => {
                self.last_transaction = None;
                (contents, true)
            }
        };
        let form = match method {
            Method::Plain => Form::Full,
            Method::Cond | Method::CondSince => Form::Differences,
        };
        self.state = State::Following;
        Ok(Step::Contents(Contents {
            updates,
            form,
            whole,
            first: true,
        }))
    }

    /// The server sent a notification.
    ///
    /// # Errors
    /// The server broke the protocol, or ended the monitor; the connection should be given up.
    pub fn handle_notification<'a>(
        &mut self,
        method: &str,
        params: &'a Json,
    ) -> Result<Step<'a>, String> {
        let params = params.as_array().unwrap_or_default();
        if let Some(check) = &mut self.server
            && params.first() == Some(&server::monitor_id())
        {
            match (method, params) {
                ("update2", [_, updates]) => check.update(updates),
                // The server has none to tell of any more.
                _ => check.forget(),
            }
            if self.state == State::Failed && self.unsuitable().is_none() {
                // What it did not have before it may have now.
                self.ask_schema();
            }
            return Ok(Step::Done);
        }
        let (updates, form) = match (method, params) {
            ("update3", [_, last, updates]) => {
                self.last_transaction = transaction_id(last);
                (updates, Form::Differences)
            }
            ("update2", [_, updates]) => (updates, Form::Differences),
            ("update", [_, updates]) => (updates, Form::Full),
            ("monitor_canceled", [_]) if self.aware && self.is_connected() => {
                self.ask_schema();
                return Ok(Step::Done);
            }
            ("monitor_canceled", [_]) => return Err("the server ended the monitor".to_owned()),
            _ => return Ok(Step::Other),
        };
        if self.state != State::Following {
            // Of a monitor that is no more.
            return Ok(Step::Done);
        }
        Ok(Step::Contents(Contents {
            updates,
            form,
            whole: false,
            first: false,
        }))
    }
}

/// A transaction's UUID, if the server gave one that it can be asked about later.
fn transaction_id(json: &Json) -> Option<Uuid> {
    let uuid = db_model::parse_uuid(json.as_str()?)?;
    (!uuid.is_nil()).then_some(uuid)
}
