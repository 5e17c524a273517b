//! A daemon's logger: levels, destinations, and the writing of lines.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::date::Zone;
use super::pattern::{self, RFC_5424, Record};
use super::syslog::{Syslog, SyslogMethod};
use super::{Destination, Level, sink};
use crate::{Clock, Instant, RateLimiter};

/// The facility `local0`.
const LOCAL0: u8 = 16;
/// The facility `daemon`, which the system log gets by default.
const DAEMON: u8 = 3;

/// A place in the program whose messages are limited together.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The source file.
    pub file: &'static str,
    /// The line in it.
    pub line: u32,
    /// Messages a minute.
    pub rate: u32,
    /// Messages at once after a pause.
    pub burst: u32,
}

#[derive(Debug)]
pub(super) struct Module {
    /// By [`Destination`].
    pub levels: [Level; 3],
    pub rate_limited: bool,
}

#[derive(Debug)]
struct Limited {
    bucket: RateLimiter,
    dropped: u64,
    first: Instant,
    last: Instant,
}

#[derive(Debug)]
pub(super) struct State {
    pub modules: BTreeMap<String, Module>,
    /// Levels of modules that are met for the first time.
    pub default_levels: [Level; 3],
    /// By [`Destination`].
    pub patterns: [String; 3],
    pub facility: Option<u8>,
    pub path: Option<PathBuf>,
    file: Option<File>,
    syslog: Syslog,
    limits: HashMap<(&'static str, u32), Limited>,
}

#[derive(Debug)]
struct Inner {
    program: String,
    clock: Clock,
    started: Instant,
    zone: Zone,
    host: String,
    state: Mutex<State>,
}

/// The log of one daemon.  Clones are the same logger.
#[derive(Clone)]
pub struct Logger(Arc<Inner>);

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Logger").field(&self.0.program).finish()
    }
}

impl Logger {
    /// The logger of `program`, with all destinations at level `info` and no file open.
    /// The first logger of a process also takes what unbound threads log.
    pub fn new(program: &str, clock: &Clock, modules: &[&str]) -> Self {
        let module = || Module {
            levels: [Level::Info; 3],
            rate_limited: true,
        };
        let known = modules.iter().map(|m| ((*m).to_owned(), module()));
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let state = State {
            modules: known.collect(),
            default_levels: [Level::Info; 3],
            patterns: [
                "ovs|%05N|%c%T|%p|%m".to_owned(),
                "%D{%Y-%m-%dT%H:%M:%SZ}|%05N|%c%T|%p|%m".to_owned(),
                "%D{%Y-%m-%dT%H:%M:%S.###Z}|%05N|%c%T|%p|%m".to_owned(),
            ],
            facility: None,
            path: None,
            file: None,
            syslog: Syslog::default(),
            limits: HashMap::new(),
        };
        let logger = Self(Arc::new(Inner {
            program: program.to_owned(),
            clock: clock.clone(),
            started: clock.now(),
            zone: Zone::local(),
            host: host.trim().to_owned(),
            state: Mutex::new(state),
        }));
        sink::add(&logger);
        logger
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        let state = &self.0.state;
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the daemon, as log lines and control sockets have it.
    pub fn program(&self) -> &str {
        &self.0.program
    }

    /// Makes this thread log here, under `subprogram` (empty for a daemon's main thread).
    pub fn bind_thread(&self, subprogram: &str) {
        sink::bind(self.clone(), subprogram);
    }

    /// Sets the threshold of `module` (all if `None`) for `destination` (all if `None`).
    pub fn set_level(&self, module: Option<&str>, destination: Option<Destination>, level: Level) {
        let mut state = self.state();
        state.set_level(module, destination, level);
        drop(state);
        sink::refresh();
    }

    /// The least grave level that any module logs anywhere.
    pub(super) fn widest(&self) -> Level {
        let state = self.state();
        let levels = state.modules.values().flat_map(|m| m.levels);
        let levels = levels.chain(state.default_levels);
        levels.max().unwrap_or(Level::Off)
    }

    /// Whether a message of `module` at `level` would go anywhere.
    pub fn enabled(&self, module: &str, level: Level) -> bool {
        self.state().levels(module).iter().any(|l| level <= *l)
    }

    /// Begins to write to `path`, creating it if need be, and says so in the log.
    ///
    /// # Errors
    /// The file cannot be opened; an open one stays in use.
    pub fn open_file(&self, path: &Path) -> std::io::Result<()> {
        let mut options = File::options();
        let opened = options.append(true).create(true).mode(0o660).open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) => {
                let text = crate::errno_text(&error);
                let path = path.display();
                self.log(
                    Level::Warn,
                    "vlog",
                    &format!("failed to open {path} for logging: {text}"),
                );
                return Err(error);
            }
        };
        let mut state = self.state();
        if state.file.is_some() {
            drop(state);
            self.log(Level::Info, "vlog", "closing log file");
            state = self.state();
        }
        state.file = Some(file);
        state.path = Some(path.to_owned());
        drop(state);
        let path = path.display();
        self.log(Level::Info, "vlog", &format!("opened log file {path}"));
        Ok(())
    }

    /// The log file's name, if one was ever opened.
    pub fn file_path(&self) -> Option<PathBuf> {
        self.state().path.clone()
    }

    /// Closes the log file and opens one of the same name.
    ///
    /// # Errors
    /// Logging to a file was never asked for, or the file cannot be opened.
    pub fn reopen(&self) -> Result<(), String> {
        let path = self.file_path();
        let path = path.ok_or_else(|| "Logging to file not configured".to_owned())?;
        self.open_file(&path)
            .map_err(|error| crate::errno_text(&error))
    }

    /// Closes the log file, if it is open.
    pub fn close_file(&self) {
        self.state().file = None;
    }

    /// Hands the log file to another user, who will have to reopen it.
    pub fn file_handle(&self) -> Option<File> {
        self.state().file.as_ref()?.try_clone().ok()
    }

    /// Chooses how the system log is reached.
    pub fn set_syslog_method(&self, method: &str) {
        let method = SyslogMethod::parse(method);
        self.state().syslog.set_method(method);
    }

    /// Also sends system log messages to `HOST:PORT` over UDP.
    ///
    /// # Errors
    /// `target` is not an address and a port.
    pub fn set_syslog_target(&self, target: &str) -> Result<(), String> {
        self.state().syslog.set_target(target)
    }

    /// Logs one message of this thread.
    pub fn log(&self, level: Level, module: &str, message: &str) {
        let mut state = self.state();
        let levels = state.levels(module);
        if level == Level::Off || levels.iter().all(|l| level > *l) {
            return;
        }
        let inner = &*self.0;
        sink::with_thread(|number, subprogram| {
            let mut record = Record {
                program: &inner.program,
                facility: state.facility.unwrap_or(LOCAL0),
                module,
                level,
                wall: inner.clock.real_wall(),
                zone: &inner.zone,
                host: &inner.host,
                number,
                running: inner.clock.now().since(inner.started).as_millis() as u64,
                subprogram,
                message,
            };
            let wants = |d: Destination| level <= levels[d as usize];
            if wants(Destination::Console) {
                let line = pattern::format(&state.patterns[Destination::Console as usize], &record);
                let _ = std::io::stderr().write_all((line + "\n").as_bytes());
            }
            if wants(Destination::Syslog) {
                if state.syslog.has_target() {
                    let line = pattern::format(RFC_5424, &record);
                    state.syslog.send_to_target(&line);
                }
                record.facility = state.facility.unwrap_or(DAEMON);
                let line = pattern::format(&state.patterns[Destination::Syslog as usize], &record);
                let lead = pattern::format(state.syslog.lead(), &record);
                for line in line.split('\n').filter(|l| !l.is_empty()) {
                    state.syslog.send(&format!("{lead}{line}"));
                }
            }
            if wants(Destination::File)
                && let Some(file) = &state.file
            {
                record.facility = state.facility.unwrap_or(LOCAL0);
                let line = pattern::format(&state.patterns[Destination::File as usize], &record);
                let _ = (&*file).write_all((line + "\n").as_bytes());
            }
        });
    }

    /// Logs why the program ends, everywhere but on the console, where it is said in the form
    /// of tools: `PROGRAM: TEXT`.
    pub fn fatal(&self, module: &str, text: &str) {
        let console = Destination::Console as usize;
        let mut state = self.state();
        let levels = state.levels(module);
        if let Some(known) = state.modules.get_mut(module) {
            known.levels[console] = Level::Off;
        }
        drop(state);
        self.log(Level::Emer, module, text);
        let mut state = self.state();
        if let Some(known) = state.modules.get_mut(module) {
            known.levels[console] = levels[console];
        }
        let line = format!("{}: {text}\n", self.0.program);
        // The stream that would show a write error is the one that fails.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    /// Whether a limited message may be logged now.  Tells of the messages that were not.
    pub(super) fn admit(&self, module: &str, level: Level, limit: &Limit) -> bool {
        let now = self.0.clock.now();
        let mut state = self.state();
        if state.modules.get(module).is_some_and(|m| !m.rate_limited) {
            return true;
        }
        let place = (limit.file, limit.line);
        let limited = state.limits.entry(place).or_insert_with(|| Limited {
            bucket: RateLimiter::new(limit.rate, limit.burst),
            dropped: 0,
            first: now,
            last: now,
        });
        if !limited.bucket.allow(now) {
            if limited.dropped == 0 {
                limited.first = now;
            }
            limited.dropped += 1;
            limited.last = now;
            return false;
        }
        let dropped = std::mem::take(&mut limited.dropped);
        if dropped > 0 {
            let first = now.since(limited.first).as_secs();
            let last = now.since(limited.last).as_secs();
            drop(state);
            let text = format!(
                "Dropped {dropped} log messages in last {first} seconds \
                 (most recently, {last} seconds ago) due to excessive rate"
            );
            self.log(level, module, &text);
        }
        true
    }
}

impl State {
    /// The levels of `module`, which is known from now on.
    fn levels(&mut self, module: &str) -> [Level; 3] {
        if let Some(module) = self.modules.get(module) {
            return module.levels;
        }
        let levels = self.default_levels;
        let new = Module {
            levels,
            rate_limited: true,
        };
        self.modules.insert(module.to_owned(), new);
        levels
    }

    pub(super) fn set_level(
        &mut self,
        module: Option<&str>,
        destination: Option<Destination>,
        level: Level,
    ) {
        let set = |levels: &mut [Level; 3]| match destination {
            Some(destination) => levels[destination as usize] = level,
            None => *levels = [level; 3],
        };
        match module {
            Some(name) => {
                self.levels(name);
                if let Some(module) = self.modules.get_mut(name) {
                    set(&mut module.levels);
                }
            }
            None => {
                set(&mut self.default_levels);
                self.modules.values_mut().for_each(|m| set(&mut m.levels));
            }
        }
    }
}
