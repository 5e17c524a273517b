//! `ovsdb-server` as a daemon of its own, or as a thread of another process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::log::{DATABASE_MODULES, Logger};
use base::{Clock, Dirs, Instant};
use db_engine::store;
use db_model::{DatabaseSchema, OPEN_VSWITCH_SCHEMA};
use io::daemon::{Core, CoreSettings, End};
use io::{Commands, Event, Net, Responder, Token, Waker};

use crate::config_file::{Config, DbConfig};
use crate::control;
use crate::kept::{Kept, Setup};
use crate::options::{Options, Parsed, parse};
use crate::server::Server;
use crate::services::{Services, SyncSettings, is_relay_argument};
use crate::state::State;

/// Wakes the loop: reports of writers, the end of a child, a wish to stop.  Tokens of remotes
/// are small numbers.
const WAKE: Token = Token(1 << 61);

/// For so long the start waits for relays to know their databases: who started the server can
/// use them then, if their sources are there.
const RELAY_START: Duration = Duration::from_millis(200);

/// What control commands work on.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) state: State,
    pub(crate) services: Services,
    clock: Clock,
    /// The configuration file, if there is one.
    config: Option<PathBuf>,
    /// Where the next child finds what this one was told, if there is a monitor.
    kept: Option<Kept>,
    /// Who waits for compactions of a database, or of all.
    pub(crate) compactions: Vec<(Option<String>, Responder)>,
}

impl Daemon {
    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Answers those whose compactions are over.
    fn answer_compactions(&mut self) {
        let server = &mut self.state.server;
        let over =
            |(name, _): &mut (Option<String>, Responder)| !server.is_compacting(name.as_deref());
        let over: Vec<_> = self.compactions.extract_if(.., over).collect();
        for (name, responder) in over {
            match server.failed_compactions(name.as_deref()) {
                failed if failed.is_empty() => responder.reply(String::new()),
                failed => responder.error(failed),
            }
        }
    }

    /// Changes databases or remotes, and keeps what there is then for a child that follows.
    ///
    /// # Errors
    /// The configuration is in a file, which is what should be changed; or `change` failed.
    pub(crate) fn change_setup(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        if let Some(config) = &self.config {
            let path = config.display();
            return Err(format!(
                "Update the {path} and use ovsdb-server/reload instead"
            ));
        }
        change(self)?;
        if let Some(kept) = &self.kept {
            let mut setup = Setup {
                remotes: self.state.names.clone(),
                sync: [&self.services.sync.from, &self.services.sync.exclude].map(Clone::clone),
                is_backup: self.services.sync.is_backup,
                ..Setup::default()
            };
            for (file, config) in self.services.databases() {
                setup.files.push(file.to_owned());
                setup.configs.push(config.to_json().to_string());
            }
            if let Err(error) = kept.store(&setup) {
                log::warn!(target: "ovsdb_server",
                    "cannot keep databases and remotes for a restart: {error}");
            }
        }
        Ok(())
    }

    /// Reads the configuration file and does what it says, as far as possible.
    ///
    /// # Errors
    /// There is none, or not all of it could be done: the log says what.
    pub(crate) fn reload(&mut self) -> Result<(), String> {
        let Some(path) = self.config.clone() else {
            return Err("Configuration file was not specified on command line".to_owned());
        };
        let shown = path.display();
        let read = base::read_regular(&path).map_err(|error| {
            let why = base::errno_text(&error);
            log::error!(target: "ovsdb_server",
                "failed to open configuration file '{shown}': {why}");
            Vec::new()
        });
        let applied = read.and_then(|text| {
            log::info!(target: "ovsdb_server", "loading configuration from '{shown}'");
            self.apply(&path, &text)
        });
        applied.map_err(|lines| {
            for line in lines {
                log::warn!(target: "ovsdb_server", "{line}");
            }
            "Configuration failed.  See the log file for details.".to_owned()
        })
    }

    fn apply(&mut self, path: &Path, text: &[u8]) -> Result<(), Vec<String>> {
        let config = Config::parse(text).map_err(|mut lines| {
            let shown = path.display();
            lines.push(format!("failed to load configuration from {shown}"));
            lines
        })?;
        let databases = config.databases.into_iter();
        let databases = databases.map(|(file, config)| (file.into(), config));
        let mut lines = self.serve_databases(&databases.collect());
        self.state.set_remotes(config.remotes);
        lines.extend(self.state.check().err());
        if lines.is_empty() { Ok(()) } else { Err(lines) }
    }

    /// Serves these databases and no others.  Returns what failed.
    fn serve_databases(&mut self, databases: &BTreeMap<PathBuf, DbConfig>) -> Vec<String> {
        let now = self.now();
        let mut lines = self.services.reconfigure(&mut self.state, now, databases);
        if !lines.is_empty() {
            lines.push("failed to configure databases".to_owned());
        }
        lines
    }

    /// Serves what the command line names.  Returns what failed.
    fn serve_arguments(&mut self, files: &[PathBuf]) -> Vec<String> {
        let mut databases = BTreeMap::new();
        for argument in files {
            let (file, config) = self.services.config_for(argument);
            if databases.insert(file, config).is_some() {
                log::warn!(target: "ovsdb_server",
                    "Duplicate database configuration: {}", argument.display());
            }
        }
        let mut lines = self.serve_databases(&databases);
        lines.extend(self.state.check().err());
        lines
    }

    /// Serves what was served before, in part rather than not at all.
    fn serve_again(&mut self, setup: &Setup) {
        let [from, exclude] = setup.sync.clone();
        self.services.sync = SyncSettings {
            from,
            exclude,
            is_backup: setup.is_backup,
        };
        let mut databases = BTreeMap::new();
        for (file, config) in setup.files.iter().zip(&setup.configs) {
            let json = json::parse(config.as_bytes()).ok();
            let shown = file.display().to_string();
            let config = json.and_then(|json| DbConfig::from_json(&shown, &json).ok());
            databases.insert(file.clone(), config.unwrap_or_default());
        }
        for line in self.serve_databases(&databases) {
            log::error!(target: "ovsdb_server", "{line}");
        }
    }
}

/// Runs the program.  `args[0]` is its name as it was called.
pub fn run(args: &[String]) -> ExitCode {
    let clock = Clock::new();
    let logger = Logger::new("ovsdb-server", &clock, DATABASE_MODULES);
    let dirs = Dirs::from_env();
    let options = match parse(args, &logger, &dirs) {
        Ok(Parsed::Serve(options)) => options,
        Ok(Parsed::Print(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(error) => return fail(&error),
    };
    let net = Net::new(&dirs);
    let settings = CoreSettings {
        clock,
        logger,
        net,
        options: options.daemon.clone(),
        dirs,
        reopen_on_hangup: true,
        takes_signals: true,
    };
    let stop = Arc::new(AtomicBool::new(false));
    match serve(settings, &options, &stop, |_| {}) {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

fn fail(error: &str) -> ExitCode {
    eprintln!("ovsdb-server: {error}");
    ExitCode::FAILURE
}

/// Makes database files that are not there, if that is wanted.
fn create_files(options: &Options) -> Result<(), String> {
    if !options.create {
        return Ok(());
    }
    let schema = DatabaseSchema::from_text(OPEN_VSWITCH_SCHEMA).map_err(|e| e.to_string())?;
    for file in &options.files {
        if is_relay_argument(file) || file.exists() {
            continue;
        }
        if let Some(directory) = file.parent() {
            std::fs::create_dir_all(directory)
                .map_err(|error| format!("{}: {error}", directory.display()))?;
        }
        log::info!(target: "ovsdb_server", "{}: creating database", file.display());
        store::create(file, &file.display().to_string(), &schema)
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Random bytes for UUIDs.
fn seed() -> Result<[u8; 32], String> {
    let mut seed = [0; 32];
    let mut filled = 0;
    while filled < seed.len() {
        filled +=
            rustix::rand::getrandom(&mut seed[filled..], rustix::rand::GetRandomFlags::empty())
                .map_err(|error| format!("cannot get random numbers: {error}"))?;
    }
    Ok(seed)
}

/// How databases are written and told, as the command line says it.
fn set_up(server: &mut Server, options: &Options) {
    if options.transaction_ids {
        server.tell_transaction_ids();
    }
    server.set_record_differences(options.column_differences);
    server.set_conversions_with_data(options.conversions_with_data);
}

/// Serves until it is told to end.  `ready` gets the waker once everything is set up.
fn serve(
    settings: CoreSettings,
    options: &Options,
    stop: &Arc<AtomicBool>,
    ready: impl FnOnce(Waker),
) -> Result<ExitCode, String> {
    let directory = std::env::current_dir().unwrap_or_default();
    let net = settings.net.clone();
    let clock = settings.clock.clone();
    let kept = match options.daemon.monitor {
        true => Some(Kept::new().map_err(|error| base::errno_text(&error))?),
        false => None,
    };
    let mut core = match Core::start(settings)? {
        Ok(core) => core,
        Err(status) => return Ok(ExitCode::from(status)),
    };
    let waker = core
        .poll
        .waker(WAKE)
        .map_err(|error| base::errno_text(&error))?;
    let wake = waker.clone();
    let mut server = Server::new(clock.clone(), seed()?, Arc::new(move || wake.wake()));
    create_files(options)?;
    set_up(&mut server, options);
    let setup = kept.as_ref().and_then(Kept::load);
    let remotes = setup
        .as_ref()
        .map_or(&options.remotes, |setup| &setup.remotes);
    let state = State::new(
        server,
        &net,
        remotes.clone(),
        options.tls.clone(),
        options.tls_columns.clone(),
    );
    let sync = SyncSettings {
        from: options.sync_from.clone(),
        exclude: options.sync_exclude.clone(),
        is_backup: options.sync_from.is_some() && !options.active,
    };
    let config = options.config_file.as_ref();
    let mut daemon = Daemon {
        state,
        services: Services::new(directory.clone(), sync),
        clock,
        config: config.map(|path| directory.join(path)),
        kept,
        compactions: Vec::new(),
    };
    let failed = match &setup {
        _ if daemon.config.is_some() => daemon.reload().is_err(),
        None => {
            let lines = daemon.serve_arguments(&options.files);
            for line in &lines {
                log::warn!(target: "ovsdb_server", "{line}");
            }
            !lines.is_empty()
        }
        Some(setup) => {
            daemon.serve_again(setup);
            false
        }
    };
    if failed {
        return Err("server configuration failed".to_owned());
    }
    daemon.state.reconfigure(&mut core.poll);
    let mut commands = core.commands(false);
    core.time.register(&mut commands);
    control::register(&mut commands);
    if !options.column_differences {
        control::register_column_diff(&mut commands);
    }
    let child = match &options.run {
        Some(command) => Some(Child::start(command, waker.clone())?),
        None => None,
    };
    let mut events = Vec::new();
    let until = core.poll.now() + RELAY_START;
    while daemon.state.server.awaits_relays() && core.poll.now() < until && core.end().is_none() {
        turn(&mut core, &mut commands, &mut daemon, until, &mut events)?;
    }
    core.complete();
    // With a command to run this is more of a tool, of which nobody wants to read that.
    if child.is_none() {
        log::info!(target: "ovsdb_server", "{}", io::daemon::version_text("ovsdb-server"));
    }
    ready(waker);
    while core.end().is_none() {
        let whenever = Instant::MAX;
        turn(&mut core, &mut commands, &mut daemon, whenever, &mut events)?;
        let child_over = child.as_ref().is_some_and(Child::is_over);
        if stop.load(Ordering::Acquire) || child_over {
            core.exit(End::Exit { cleanup: false });
        }
    }
    daemon.state.shut_down(&mut core.poll);
    daemon.state.server.drain_writers();
    drop(daemon);
    let code = core.finish();
    match child {
        Some(child) => child.finish(code),
        None => Ok(code),
    }
}

/// A turn of the loop, which waits for something to happen until `until` at most.
fn turn(
    core: &mut Core,
    commands: &mut Commands<Daemon>,
    daemon: &mut Daemon,
    until: Instant,
    events: &mut Vec<Event>,
) -> Result<(), String> {
    let now = core.poll.now();
    let due = daemon.state.next_deadline(now).min(core.next_deadline());
    core.turn(due.min(until), commands, daemon, events)
        .map_err(|error| base::errno_text(&error))?;
    daemon.state.run(events, &mut core.poll);
    if let Some(words) = daemon.state.crash {
        return Err(words.to_owned());
    }
    daemon.answer_compactions();
    let shared = daemon.config.is_none();
    daemon
        .services
        .drop_failed_backups(&mut daemon.state, shared);
    Ok(())
}

/// The command of `--run`.
struct Child {
    command: String,
    over: Arc<AtomicBool>,
    waiter: std::thread::JoinHandle<std::io::Result<std::process::ExitStatus>>,
}

impl Child {
    fn start(command: &str, waker: Waker) -> Result<Self, String> {
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", command])
            .spawn()
            .map_err(|error| format!("{command}: {}", base::errno_text(&error)))?;
        let over = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&over);
        let waiter = std::thread::Builder::new()
            .name("child".to_owned())
            .spawn(move || {
                let status = child.wait();
                done.store(true, Ordering::Release);
                waker.wake();
                status
            })
            .map_err(|error| base::errno_text(&error))?;
        Ok(Self {
            command: command.to_owned(),
            over,
            waiter,
        })
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    fn finish(self, code: ExitCode) -> Result<ExitCode, String> {
        use std::os::unix::process::ExitStatusExt;
        if !self.is_over() {
            return Ok(code);
        }
        let command = &self.command;
        match self.waiter.join() {
            Ok(Ok(status)) if status.success() => Ok(code),
            Ok(Ok(status)) => Err(match status.signal() {
                Some(signal) => format!("{command}: child exited, killed (signal {signal})"),
                None => {
                    let status = status.code().unwrap_or(-1);
                    format!("{command}: child exited, exit status {status}")
                }
            }),
            _ => Err(format!("{command}: cannot tell how it ended")),
        }
    }
}

/// A database server on a thread of this process.
#[derive(Debug)]
pub struct Embedded {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What an embedded server needs.
#[derive(Debug)]
pub struct EmbedSettings {
    /// The clock of the process.
    pub clock: Clock,
    /// A logger of the server's own, such as `Logger::new("ovsdb-server", ...)`.
    pub logger: Logger,
    /// The directories.
    pub dirs: Dirs,
    /// The connections of the process: clients reach a remote `pmem:NAME` as `mem:NAME`.
    pub net: Net,
    /// What to serve.
    pub options: Options,
}

impl Embedded {
    /// Starts the server and waits until it serves.  `on_end` is called when it ends, by
    /// itself (its control command `exit`, or an error) or because it was told to.
    ///
    /// # Errors
    /// The text of why it cannot serve.
    pub fn start(
        settings: EmbedSettings,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Self, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let stop_too = Arc::clone(&stop);
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("ovsdb-server".to_owned())
            .spawn(move || {
                let core = CoreSettings {
                    clock: settings.clock,
                    logger: settings.logger,
                    dirs: settings.dirs,
                    net: settings.net,
                    options: settings.options.daemon.clone(),
                    reopen_on_hangup: true,
                    takes_signals: false,
                };
                let ready = sender.clone();
                // Nobody waits for what is sent after the first message.
                let outcome = serve(core, &settings.options, &stop_too, move |waker| {
                    let _ = ready.send(Ok(waker));
                });
                if let Err(error) = outcome {
                    log::error!(target: "ovsdb_server", "{error}");
                    let _ = sender.send(Err(error));
                }
                on_end();
            })
            .map_err(|error| base::errno_text(&error))?;
        match receiver.recv() {
            Ok(Ok(waker)) => Ok(Self {
                stop,
                waker,
                thread: Some(thread),
            }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err("the database server ended at once".to_owned()),
        }
    }

    /// Whether it still serves.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// Ends it, once everything is written, and waits for that.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.end();
    }
}
