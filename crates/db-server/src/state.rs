//! The server with its remotes, as one configuration: what the command line, control
//! commands and databases say together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use db_model::{Atom, Datum, Row, TableSchema, Uuid};
use io::daemon::TlsOption;
use io::tls::TlsConfig;
use io::{Event, Net, Poll};

use crate::cluster::links::Links;
use crate::db_column::{DbColumn, field};
use crate::remotes::{RemoteOptions, Remotes};
use crate::server::Server;
use crate::sources::{Source, Sources};

/// How often status columns are written.
const STATUS_INTERVAL: Duration = Duration::from_millis(2500);

/// Tokens of sources are numbers from here on, those of remotes small ones.
const FIRST_SOURCE: u64 = 1 << 48;

/// Tokens of connections between servers of clusters are numbers from here on.
const FIRST_LINK: u64 = 1 << 49;

/// A server with its remotes.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) server: Server,
    pub(crate) remotes: Remotes,
    /// Remotes as they were given, sorted.
    pub(crate) names: Vec<String>,
    sources: Sources,
    /// Where the other servers of relays and backups are, by database.
    wanted_sources: BTreeMap<Arc<str>, (u64, Source)>,
    sources_changed: bool,
    pub(crate) links: Links,
    /// The words with which the process is to end, as a test of clusters wants.
    pub(crate) crash: Option<&'static str>,
    /// Tells connections to other servers apart that must not be the same.
    epoch: u64,
    /// How those behave of which a configuration file says it.
    options: BTreeMap<String, RemoteOptions>,
    net: Net,
    tls: TlsConfig,
    tls_columns: Vec<(TlsOption, String)>,
    /// The generation of the databases that the configuration was taken from.
    configured: Option<u64>,
    next_status: Instant,
    /// Whether to reconnect all clients in the next turn.
    pub(crate) reconnect: bool,
}

impl State {
    pub(crate) fn new(
        server: Server,
        net: &Net,
        names: Vec<String>,
        tls: TlsConfig,
        tls_columns: Vec<(TlsOption, String)>,
    ) -> Self {
        let mut this = Self {
            server,
            remotes: Remotes::new(net, 0),
            sources: Sources::new(net, FIRST_SOURCE),
            wanted_sources: BTreeMap::new(),
            sources_changed: false,
            links: Links::new(net, FIRST_LINK),
            crash: None,
            epoch: 0,
            names,
            options: BTreeMap::new(),
            net: net.clone(),
            tls,
            tls_columns,
            configured: None,
            next_status: Instant::ZERO,
            reconnect: false,
        };
        this.names.sort();
        this.names.dedup();
        this
    }

    /// Checks that the columns that were named exist.
    ///
    /// # Errors
    /// What cannot be configured, and why.
    pub(crate) fn check(&self) -> Result<(), String> {
        let remotes = self.names.iter().filter(|name| name.starts_with("db:"));
        for name in remotes {
            DbColumn::check(&self.server, name)
                .map_err(|error| format!("failed to configure remotes: {error}"))?;
        }
        for (_, name) in &self.tls_columns {
            DbColumn::check(&self.server, name)
                .map_err(|error| format!("failed to configure SSL/TLS: {error}"))?;
        }
        Ok(())
    }

    /// Takes these remotes in place of all others.
    pub(crate) fn set_remotes(&mut self, remotes: BTreeMap<String, RemoteOptions>) {
        self.names = remotes.keys().cloned().collect();
        self.options = remotes;
        self.configured = None;
    }

    /// Connects database `name` to another server, or to no other any more; with `anew` over a
    /// new connection in any case.
    pub(crate) fn set_source(&mut self, name: &Arc<str>, source: Option<Source>, anew: bool) {
        self.sources_changed = true;
        let before = self.wanted_sources.remove(name);
        if let Some(source) = source {
            let epoch = before.map_or(0, |(epoch, _)| epoch);
            self.epoch += u64::from(anew);
            let epoch = if anew { self.epoch } else { epoch };
            self.wanted_sources
                .insert(Arc::clone(name), (epoch, source));
        }
    }

    /// Changes how the connection of database `name` to another server behaves, if it has one.
    pub(crate) fn change_source(&mut self, name: &str, change: impl FnOnce(&mut Source)) {
        if let Some((_, source)) = self.wanted_sources.get_mut(name) {
            change(source);
            self.sources_changed = true;
        }
    }

    /// How a backup fares, which follows `source`, as `ovsdb-server/sync-status` says it.
    pub(crate) fn sync_status(&self, name: &str, source: &str) -> String {
        if !self.sources.is_alive(name) {
            return format!("not connected to {source}");
        }
        self.server.sync_status(name, source)
    }

    /// Adds a remote.
    pub(crate) fn add_remote(&mut self, name: &str) -> Result<(), String> {
        if name.starts_with("db:") {
            DbColumn::check(&self.server, name)?;
        }
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
            self.names.sort();
        }
        self.configured = None;
        Ok(())
    }

    /// Takes a remote away.
    pub(crate) fn remove_remote(&mut self, name: &str) -> Result<(), String> {
        let before = self.names.len();
        self.names.retain(|known| known != name);
        self.configured = None;
        if self.names.len() == before {
            Err("no such remote".to_owned())
        } else {
            Ok(())
        }
    }

    /// Brings remotes and TLS in line with the configuration, if that may have changed.
    pub(crate) fn reconfigure(&mut self, poll: &mut Poll) {
        if std::mem::take(&mut self.sources_changed) {
            self.sources
                .set(&self.wanted_sources, &mut self.server, poll);
        }
        let generation = self.server.generation();
        if self.configured == Some(generation) {
            return;
        }
        self.configured = Some(generation);
        self.configure_tls();
        let wanted = self.wanted_remotes();
        self.remotes.set(&wanted, &mut self.server, poll);
    }

    fn configure_tls(&self) {
        let mut config = self.tls.clone();
        for (option, name) in &self.tls_columns {
            let Ok(column) = DbColumn::find(&self.server, name) else {
                continue;
            };
            let value = column
                .strings(&self.server)
                .into_iter()
                .find(|s| !s.is_empty());
            if let Some(value) = value
                && let Err(error) = option.apply(Some(value), &mut config)
            {
                log::warn!(target: "ovsdb_server", "{name}: {error}");
            }
        }
        self.net.tls().configure(config);
    }

    fn wanted_remotes(&self) -> BTreeMap<String, RemoteOptions> {
        let mut wanted = BTreeMap::new();
        for name in &self.names {
            if !name.starts_with("db:") {
                let options = self.options.get(name).cloned();
                let options = options.unwrap_or_else(|| RemoteOptions::default_for(name));
                wanted.insert(name.clone(), options);
                continue;
            }
            let Ok(column) = DbColumn::find(&self.server, name) else {
                continue;
            };
            for target in column.strings(&self.server) {
                wanted.insert(target.to_owned(), RemoteOptions::default_for(target));
            }
            let Some((schema, rows)) = self.referred(&column) else {
                continue;
            };
            for row in rows {
                let target = field(&schema, &row, "target").and_then(Datum::as_str);
                match target {
                    Some(target) if !target.is_empty() => {
                        let options = row_options(&schema, &row, target);
                        wanted.insert(target.to_owned(), options);
                    }
                    _ => log::warn!(target: "ovsdb_server",
                        "Table `{}' has missing or invalid `target' column", schema.name),
                }
            }
        }
        wanted
    }

    /// The rows that a column of references leads to, with their schema.
    fn referred(&self, column: &DbColumn) -> Option<(Arc<TableSchema>, Vec<Arc<Row>>)> {
        let table = column.target_table(&self.server)?;
        let db = self.server.get_database(&column.db)?;
        let schema = Arc::clone(db.table(table).schema());
        Some((schema, column.rows(&self.server)))
    }

    /// A turn of the loop.
    pub(crate) fn run(&mut self, events: &[Event], poll: &mut Poll) {
        if std::mem::take(&mut self.reconnect) {
            self.remotes.reconnect(poll.now());
        }
        self.sources.run(events, &mut self.server, poll);
        self.links.run(events, &mut self.server, poll);
        self.remotes.run(events, &mut self.server, poll);
        self.reconfigure(poll);
        self.sources.end_turn(&mut self.server, poll);
        self.end_links_turn(poll);
        let now = poll.now();
        if now >= self.next_status {
            self.next_status = now + STATUS_INTERVAL;
            self.write_status(now);
            self.remotes.run(&[], &mut self.server, poll);
        }
    }

    fn end_links_turn(&mut self, poll: &mut Poll) {
        if let Err(words) = self.links.end_turn(&mut self.server, poll) {
            self.crash = Some(words);
        }
    }

    /// Serves a database of a cluster no more.
    pub(crate) fn leave_cluster(&mut self, name: &Arc<str>) {
        let now = self.server.clock.now();
        if self.server.cluster(name).is_some() {
            self.server.shut_down_cluster(name, now);
            self.links.say_goodbye(name, &mut self.server, now);
        }
    }

    /// The process ends: the other servers of clusters are told.
    pub(crate) fn shut_down(&mut self, poll: &mut Poll) {
        self.server.shut_down_clusters(poll.now());
        self.end_links_turn(poll);
    }

    /// When it wants a turn.
    pub(crate) fn next_deadline(&self, now: Instant) -> Instant {
        let writes_status = self.names.iter().any(|name| name.starts_with("db:"));
        let status = if writes_status {
            self.next_status
        } else {
            Instant::MAX
        };
        self.remotes
            .next_deadline(now)
            .min(self.sources.next_deadline(now))
            .min(self.links.next_deadline(now))
            .min(self.server.next_deadline())
            .min(status)
    }

    /// Writes the status columns of the rows that configure remotes.
    fn write_status(&mut self, now: Instant) {
        for name in self.names.clone() {
            if !name.starts_with("db:") {
                continue;
            }
            let Ok(column) = DbColumn::find(&self.server, &name) else {
                continue;
            };
            let Some((schema, rows)) = self.referred(&column) else {
                continue;
            };
            let Some(table) = column.target_table(&self.server) else {
                continue;
            };
            if self.server.has_upstream(&column.db) || self.server.cluster(&column.db).is_some() {
                // Its contents are another server's.
                continue;
            }
            let mut updates: Vec<(Uuid, usize, Datum)> = Vec::new();
            for row in rows {
                self.status_updates(&schema, &row, now, &mut updates);
            }
            if updates.is_empty() {
                continue;
            }
            let generation = self.server.generation();
            self.server.change(&column.db, |transaction| {
                for (uuid, column, datum) in updates {
                    if let Some(row) = transaction.modify(table, uuid) {
                        row.set(column, datum);
                    }
                }
            });
            // Status configures nothing.
            if self.configured == Some(generation) {
                self.configured = Some(self.server.generation());
            }
        }
    }

    /// The status columns of a row whose values are not what they should be.
    fn status_updates(
        &self,
        schema: &TableSchema,
        row: &Row,
        now: Instant,
        updates: &mut Vec<(Uuid, usize, Datum)>,
    ) {
        let Some(target) = field(schema, row, "target").and_then(Datum::as_str) else {
            return;
        };
        let status = self.remotes.status(target, &self.server, now);
        let mut update = |name: &str, is_map: bool, datum: Datum| {
            if let Some(column) = schema.column_index(name)
                && schema.columns[column].column_type.is_map() == is_map
                && *row.get(column) != datum
            {
                updates.push((row.uuid(), column, datum));
            }
        };
        update(
            "is_connected",
            false,
            Atom::Boolean(status.is_connected).into(),
        );
        let fields = status.fields.into_iter();
        let fields = fields.map(|(name, value)| (Atom::string(name), Atom::string(value)));
        if let Some(fields) = Datum::from_map(fields.collect()) {
            update("status", true, fields);
        }
    }

    /// What `memory/show` says: amounts that are not zero, and that of weak references.
    pub(crate) fn memory(&self) -> Vec<(String, u64)> {
        let mut usage = BTreeMap::from([("n-weak-refs", 0)]);
        let mut add = |name, amount: u64| {
            if amount > 0 {
                *usage.entry(name).or_insert(0) += amount;
            }
        };
        add("monitors", self.server.monitors() as u64);
        add("sessions", self.remotes.sessions() as u64);
        add("backlog", self.remotes.backlog() as u64);
        for served in self.server.dbs.values() {
            let (history, atoms) = served.monitors.history();
            add("cells", served.db.cells() as u64);
            add("atoms", served.db.atoms());
            add("n-weak-refs", served.db.weak_references() as u64);
            add("txn-history", history as u64);
            add("txn-history-atoms", atoms);
            add("triggers", served.waiting.len() as u64);
        }
        if self
            .server
            .dbs
            .values()
            .any(|served| served.cluster.is_some())
        {
            let (backlog, connections) = self.links.usage();
            usage.insert("raft-backlog-kB", backlog as u64 / 1000);
            usage.insert("raft-connections", connections as u64);
            let parts = self.server.dbs.values().filter_map(|s| s.cluster.as_ref());
            usage.insert("raft-log", parts.map(|part| part.raft.entries()).sum());
        }
        let _ = usage.entry("monitors").or_insert(0);
        usage
            .into_iter()
            .map(|(name, amount)| (name.to_owned(), amount))
            .collect()
    }
}

/// What a row says of how its remote behaves.
fn row_options(schema: &TableSchema, row: &Row, target: &str) -> RemoteOptions {
    let mut options = RemoteOptions::default_for(target);
    let integer = |name| field(schema, row, name).and_then(Datum::as_integer);
    let millis = |value: i64| Duration::from_millis(u64::try_from(value).unwrap_or(0));
    if let Some(value) = integer("max_backoff") {
        options.max_backoff = millis(value.max(1000));
    }
    if let Some(value) = integer("inactivity_probe") {
        options.probe_interval = millis(value);
    }
    let dscp = field(schema, row, "other_config").and_then(|datum| datum.get_str("dscp"));
    if let Some(dscp) = dscp.and_then(|text| text.parse().ok()).filter(|d| *d < 64) {
        options.dscp = dscp;
    }
    let read_only = field(schema, row, "read_only").and_then(Datum::as_bool);
    options.read_only = read_only.unwrap_or(false);
    let role = field(schema, row, "role").and_then(Datum::as_str);
    options.role = role.filter(|role| !role.is_empty()).map(Arc::from);
    options
}
