//! Which databases are served, and how: alone, as a relay, as a backup.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use db_client::Servers;
use db_model::Error;

use crate::backup::excluded_tables;
use crate::config_file::{BACKUP_PROBE, DbConfig, Model, RELAY_PROBE};
use crate::sources::Source;
use crate::state::State;

/// What the command line and control commands say of backups, for all databases at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyncSettings {
    /// The active server.
    pub(crate) from: Option<String>,
    /// Tables that backups leave alone.
    pub(crate) exclude: Option<String>,
    /// Whether databases follow the active server.
    pub(crate) is_backup: bool,
}

/// A database that is served.
#[derive(Debug)]
struct Service {
    name: Arc<str>,
    config: DbConfig,
    /// The active server and the tables left alone, as the backup runs with them.
    running: Option<(String, Option<String>)>,
}

/// The databases that are served, by file, or by name if they are relayed.
#[derive(Debug)]
pub(crate) struct Services {
    /// Paths start from here.
    directory: PathBuf,
    services: BTreeMap<PathBuf, Service>,
    pub(crate) sync: SyncSettings,
    backup_probe: Duration,
    relay_probe: Duration,
}

/// The database's name and its sources in `relay:NAME:SOURCES`.
fn relay_argument(argument: &Path) -> Option<(&str, &str)> {
    let (name, source) = argument.to_str()?.strip_prefix("relay:")?.split_once(':')?;
    (!source.is_empty()).then_some((name, source))
}

/// Whether an argument names a database of another server, for which there is no file.
pub(crate) fn is_relay_argument(argument: &Path) -> bool {
    relay_argument(argument).is_some()
}

/// Whether a database of one model can become one of another while it is served.
fn can_become(now: Option<Model>, wanted: Option<Model>) -> bool {
    let of_a_file = |model| matches!(model, Some(Model::Standalone | Model::Clustered));
    let of_one_server = |model| matches!(model, Some(Model::Standalone | Model::ActiveBackup));
    now == wanted
        || (wanted.is_none() && of_a_file(now))
        || (of_one_server(now) && of_one_server(wanted))
}

/// A probe interval as control commands take it, in milliseconds; below zero it is none.
fn probe_interval(text: &str) -> Result<Duration, String> {
    let bad = |_| "Invalid probe interval, integer value expected".to_owned();
    let millis: i32 = text.trim().parse().map_err(bad)?;
    Ok(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
}

impl Services {
    pub(crate) const fn new(directory: PathBuf, sync: SyncSettings) -> Self {
        Self {
            directory,
            services: BTreeMap::new(),
            sync,
            backup_probe: BACKUP_PROBE,
            relay_probe: RELAY_PROBE,
        }
    }

    /// How a database is to be served that is named on the command line or by `add-db`.
    pub(crate) fn config_for(&self, argument: &Path) -> (PathBuf, DbConfig) {
        let mut config = DbConfig::default();
        if let Some((name, remotes)) = relay_argument(argument) {
            let mut source = Model::Relay.source(remotes);
            source.options.probe_interval = self.relay_probe;
            config.model = Some(Model::Relay);
            config.source = Some(source);
            return (name.into(), config);
        }
        if let Some(from) = &self.sync.from {
            config = self.backup_config(from);
            config.backup = self.sync.is_backup;
        }
        (argument.to_owned(), config)
    }

    fn backup_config(&self, from: &str) -> DbConfig {
        let mut source = Model::ActiveBackup.source(from);
        source.options.probe_interval = self.backup_probe;
        DbConfig {
            model: Some(Model::ActiveBackup),
            source: Some(source),
            excluded: self.sync.exclude.clone(),
            backup: false,
        }
    }

    /// Databases as they are served now, for the next child of a monitor.
    pub(crate) fn databases(&self) -> impl Iterator<Item = (&Path, &DbConfig)> {
        let services = self.services.iter();
        services.map(|(file, service)| (file.as_path(), &service.config))
    }

    /// Begins to serve a database.
    ///
    /// # Errors
    /// It cannot be opened, is not of the model that it must have, or its name is taken.
    pub(crate) fn open(
        &mut self,
        state: &mut State,
        now: Instant,
        file: &Path,
        config: &DbConfig,
    ) -> db_model::Result<()> {
        let shown = file.display().to_string();
        let mut config = config.clone();
        let name = match config.model {
            Some(Model::Relay) => {
                let remotes = config.source.as_ref().map_or("", |s| s.remotes.as_str());
                let cluster = Servers::parse(remotes).cluster;
                state.server.add_relay(&shown, cluster)?;
                shown.as_str().into()
            }
            model => {
                let path = self.directory.join(file);
                let name = state.server.add_file(now, &path, &shown)?;
                // What the file is, is known only once it was read.
                let is_clustered = state.server.cluster(&name).is_some();
                let actual = match model {
                    _ if is_clustered => Model::Clustered,
                    Some(Model::Clustered) | None => Model::Standalone,
                    Some(model) => model,
                };
                if let Some(model) = model.filter(|model| *model != actual) {
                    let _ = state.server.remove_database(&name);
                    let details = format!(
                        "{shown}: database is {} and not {}",
                        actual.name(),
                        model.name()
                    );
                    return Err(Error::general(details));
                }
                config.model = Some(actual);
                name
            }
        };
        let service = Service {
            name,
            config,
            running: None,
        };
        self.services.insert(file.to_owned(), service);
        self.start(state, file);
        Ok(())
    }

    /// Connects a relay, or a backup, to its other server.
    fn start(&mut self, state: &mut State, file: &Path) {
        let Some(service) = self.services.get_mut(file) else {
            return;
        };
        let Some(source) = service.config.source.clone() else {
            return;
        };
        match service.config.model {
            Some(Model::Relay) => state.set_source(&service.name, Some(source), false),
            Some(Model::ActiveBackup) if service.config.backup => {
                service.start_backup(state, source);
            }
            _ => {}
        }
    }

    /// Serves a database no more.
    fn close(&mut self, state: &mut State, file: &Path, why: &str) {
        if let Some(service) = self.services.remove(file) {
            state.set_source(&service.name, None, false);
            // One that is gone already is gone as well.
            state.leave_cluster(&service.name);
            let _ = state.server.remove_database_because(&service.name, why);
        }
    }

    /// Serves the database called `name` no more.
    ///
    /// # Errors
    /// There is none, or it is `_Server`.
    pub(crate) fn remove(&mut self, state: &mut State, name: &str) -> Result<(), String> {
        if !name.starts_with('_') {
            state.leave_cluster(&name.into());
        }
        state.server.remove_database(name)?;
        self.services.retain(|_, service| {
            let stays = *service.name != *name;
            if !stays {
                state.set_source(&service.name, None, false);
            }
            stays
        });
        Ok(())
    }

    /// Serves the databases of `wanted` and no others.  Returns what failed.
    pub(crate) fn reconfigure(
        &mut self,
        state: &mut State,
        now: Instant,
        wanted: &BTreeMap<PathBuf, DbConfig>,
    ) -> Vec<String> {
        let files: Vec<PathBuf> = self.services.keys().cloned().collect();
        for file in files {
            let Some(service) = self.services.get(&file) else {
                continue;
            };
            let name = Arc::clone(&service.name);
            match wanted.get(&file) {
                None => {
                    let why = format!("database {name} removed from configuration");
                    self.close(state, &file, &why);
                }
                Some(config) if !can_become(service.config.model, config.model) => {
                    let why = format!("service model changed for database {name}");
                    self.close(state, &file, &why);
                }
                Some(config) => self.update(state, &file, config),
            }
        }
        let mut failed = Vec::new();
        for (file, config) in wanted {
            if self.services.contains_key(file) {
                continue;
            }
            if let Err(error) = self.open(state, now, file, config) {
                let file = file.display();
                failed.push(format!("failed to open database '{file}': {error}"));
            }
        }
        failed
    }

    /// Takes over another configuration of a database that is served.
    fn update(&mut self, state: &mut State, file: &Path, config: &DbConfig) {
        let Some(service) = self.services.get_mut(file) else {
            return;
        };
        let model = config.model.or(service.config.model);
        service.config = config.clone();
        service.config.model = model;
        if model != Some(Model::ActiveBackup) || !config.backup {
            service.stop_backup(state);
        }
        if model == Some(Model::Relay) {
            let remotes = config.source.as_ref().map_or("", |s| s.remotes.as_str());
            let cluster = Servers::parse(remotes).cluster;
            state.server.set_relay_cluster(&service.name, cluster);
        }
        self.start(state, file);
    }

    /// `ovsdb-server/set-active-ovsdb-server`: counts from the next start on.
    pub(crate) fn set_active(&mut self, server: &str) {
        self.sync.from = Some(server.to_owned());
        for service in self.backups() {
            if let Some(source) = &mut service.config.source {
                server.clone_into(&mut source.remotes);
            }
        }
    }

    fn backups(&mut self) -> impl Iterator<Item = &mut Service> {
        let services = self.services.values_mut();
        services.filter(|service| service.config.model == Some(Model::ActiveBackup))
    }

    /// `ovsdb-server/connect-active-ovsdb-server`: all databases follow the active server.
    /// False if there is none.
    pub(crate) fn connect_active(&mut self, state: &mut State) -> bool {
        let Some(from) = self.sync.from.clone() else {
            return false;
        };
        let fresh = self.backup_config(&from);
        for service in self.services.values_mut() {
            if service.config.model == Some(Model::Standalone) {
                service.config = fresh.clone();
            }
        }
        for service in self.backups().filter(|service| !service.config.backup) {
            if let Some(source) = service.config.source.clone() {
                service.config.backup = true;
                service.start_backup(state, source);
            }
        }
        self.sync.is_backup = true;
        true
    }

    /// `ovsdb-server/disconnect-active-ovsdb-server`: all databases are active.
    pub(crate) fn disconnect_active(&mut self, state: &mut State) {
        for service in self.backups() {
            service.config.backup = false;
            service.stop_backup(state);
        }
        self.sync.is_backup = false;
    }

    /// `ovsdb-server/set-active-ovsdb-server-probe-interval`.
    ///
    /// # Errors
    /// The text is not a number.
    pub(crate) fn set_backup_probe(&mut self, state: &mut State, text: &str) -> Result<(), String> {
        let probe = probe_interval(text)?;
        self.backup_probe = probe;
        for service in self.backups() {
            service.set_probe(state, probe);
        }
        Ok(())
    }

    /// `ovsdb-server/set-relay-source-probe-interval`.
    ///
    /// # Errors
    /// The text is not a number.
    pub(crate) fn set_relay_probe(&mut self, state: &mut State, text: &str) -> Result<(), String> {
        let probe = probe_interval(text)?;
        self.relay_probe = probe;
        let relays = self.services.values_mut();
        for service in relays.filter(|s| s.config.model == Some(Model::Relay)) {
            service.set_probe(state, probe);
        }
        Ok(())
    }

    /// `ovsdb-server/set-sync-exclude-tables`.
    pub(crate) fn set_excluded(&mut self, state: &mut State, list: &str) {
        self.sync.exclude = Some(list.to_owned());
        for service in self.backups() {
            service.config.excluded = Some(list.to_owned());
            if let Some(source) = service
                .config
                .source
                .clone()
                .filter(|_| service.config.backup)
            {
                service.start_backup(state, source);
            }
        }
    }

    /// What `ovsdb-server/sync-status` says.
    pub(crate) fn sync_status(&self, state: &State) -> String {
        let by_name: BTreeMap<&str, &Service> = self
            .services
            .values()
            .map(|service| (&*service.name, service))
            .collect();
        let mut text = String::new();
        let mut any = false;
        for (at, (name, service)) in by_name.iter().enumerate() {
            if service.config.model != Some(Model::ActiveBackup) {
                continue;
            }
            any = true;
            let part = if service.config.backup {
                "backup"
            } else {
                "active"
            };
            text += &format!("database: {name}\nstate: {part}\n");
            if let (true, Some((source, _))) = (service.config.backup, &service.running) {
                text += &state.sync_status(name, source);
            }
            if at + 1 < by_name.len() {
                text.push('\n');
            }
        }
        if any {
            text
        } else {
            "state: active\n".to_owned()
        }
    }

    /// Makes backups active that cannot follow the active server.  Those that share its
    /// settings stay together.
    pub(crate) fn drop_failed_backups(&mut self, state: &mut State, shared: bool) {
        let failed = state.server.failed_backups();
        if failed.is_empty() {
            return;
        }
        let all = shared && self.sync.is_backup;
        if all {
            self.sync.is_backup = false;
        }
        for service in self.backups().filter(|service| service.config.backup) {
            if all || failed.iter().any(|name| **name == *service.name) {
                service.config.backup = false;
                service.stop_backup(state);
            }
        }
    }
}

impl Service {
    fn start_backup(&mut self, state: &mut State, source: Source) {
        let wanted = (source.remotes.clone(), self.config.excluded.clone());
        let anew = self.running.as_ref() != Some(&wanted);
        if anew {
            let list = self.config.excluded.as_deref().unwrap_or("");
            let excluded = excluded_tables(list, &self.name);
            state.server.start_backup(&self.name, excluded);
            self.running = Some(wanted);
        }
        state.set_source(&self.name, Some(source), anew);
    }

    fn stop_backup(&mut self, state: &mut State) {
        if self.running.take().is_some() {
            state.set_source(&self.name, None, false);
            state.server.stop_backup(&self.name);
        }
    }

    fn set_probe(&mut self, state: &mut State, probe: Duration) {
        let Some(source) = &mut self.config.source else {
            return;
        };
        source.options.probe_interval = probe;
        state.change_source(&self.name, |source| source.options.probe_interval = probe);
    }
}
