//! Going to the background, and the process that watches over a daemon.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::Duration;

use base::log::{Destination, Level, Logger};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use sys::process::Fork;

use super::options::DaemonOptions;
use super::pidfile::{self, Pidfile};

/// Which process the caller is, after [`Daemon::start`].
#[derive(Debug)]
pub enum Start {
    /// The daemon itself: it goes on.
    Daemon(Daemon),
    /// A process whose part is over: it exits with this status.
    Exit(u8),
}

/// A daemon's place among processes.
#[derive(Debug)]
pub struct Daemon {
    logger: Logger,
    detach: bool,
    no_chdir: bool,
    keep_stderr: bool,
    keep_stdout: bool,
    /// Tells the process that waits for us that we are ready.
    ready: Option<OwnedFd>,
    /// Where a monitor reads of a crash.
    crash: Option<OwnedFd>,
    _pidfile: Option<Pidfile>,
}

/// A daemon that crashes again within this time is not started again at once.
const RESTART_PAUSE: Duration = Duration::from_secs(10);
/// The exit status of a Rust program that has panicked.
const PANIC_STATUS: i32 = 101;

impl Daemon {
    /// Goes to the background and under supervision as `options` say, and makes the pidfile.
    /// To be called before any thread is started.  The processes that stay behind return
    /// [`Start::Exit`] when their part is over.
    ///
    /// # Errors
    /// The text that the daemon ends with.
    pub fn start(options: &DaemonOptions, logger: &Logger) -> Result<Start, String> {
        if let Some(path) = &options.pidfile
            && !options.overwrite_pidfile
            && let Some(pid) = pidfile::running(path)
        {
            let path = path.display();
            return Err(format!("{path}: already running as pid {pid}, aborting"));
        }
        if let Some(user) = &options.user {
            user.switch(options.on_datapath, logger)?;
        }
        let mut ready = None;
        let mut crash = None;
        if options.detach {
            match split()? {
                Split::Waiting(child, from_child) => {
                    return Ok(Start::Exit(wait_until_ready(child, from_child)?));
                }
                Split::New(to_parent) => ready = Some(to_parent),
            }
            // The error says that we lead a session already.
            let _ = rustix::process::setsid();
        }
        if options.monitor {
            match supervise(options, logger, &mut ready)? {
                Supervised::Daemon(to_monitor, report) => {
                    ready = Some(to_monitor);
                    crash = Some(report);
                }
                Supervised::Over(status) => return Ok(Start::Exit(status)),
            }
        }
        let pidfile = match &options.pidfile {
            Some(path) => Some(Pidfile::create(path, options.overwrite_pidfile)?),
            None => None,
        };
        Ok(Start::Daemon(Self {
            logger: logger.clone(),
            detach: options.detach,
            no_chdir: options.no_chdir,
            keep_stderr: options.keep_stderr,
            keep_stdout: options.keep_stdout,
            ready,
            crash,
            _pidfile: pidfile,
        }))
    }

    /// Tells whoever waits that the daemon is ready, and lets go of the terminal.
    pub fn complete(&mut self) {
        let log = || Some(self.logger.file_handle()?.into());
        // A copy of the error output would keep whoever reads its other end waiting for as long as the daemon
        // lives.
        let keeps_stderr = !self.detach || self.keep_stderr;
        let stderr = || keeps_stderr.then(|| io::stderr().as_fd().try_clone_to_owned().ok())?;
        if let Some(report) = self.crash.take().or_else(log).or_else(stderr) {
            sys::crash::install(report);
        }
        if let Some(ready) = self.ready.take() {
            // Whoever waited may be gone.
            let _ = rustix::io::write(&ready, &[0]);
        }
        if std::mem::take(&mut self.detach) {
            leave_terminal(
                &self.logger,
                self.no_chdir,
                self.keep_stderr,
                self.keep_stdout,
            );
        }
    }
}

fn leave_terminal(logger: &Logger, no_chdir: bool, keep_stderr: bool, keep_stdout: bool) {
    if !no_chdir {
        // There is always a root.
        let _ = rustix::process::chdir(Path::new("/"));
    }
    if let Ok(null) = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        // The three descriptors exist or are to be made; either is possible.
        let _ = rustix::stdio::dup2_stdin(&null);
        if !keep_stdout {
            let _ = rustix::stdio::dup2_stdout(&null);
        }
        if !keep_stderr {
            let _ = rustix::stdio::dup2_stderr(&null);
        }
    }
    logger.set_level(None, Some(Destination::Console), Level::Off);
}

enum Split {
    /// The old process, its child, and where that says that it is ready.
    Waiting(Pid, OwnedFd),
    /// The new process, and where it says so.
    New(OwnedFd),
}

fn text(what: &str, error: impl Into<io::Error>) -> String {
    format!("{what} failed ({})", base::errno_text(&error.into()))
}

fn split() -> Result<Split, String> {
    let flags = rustix::pipe::PipeFlags::CLOEXEC;
    let (reader, writer) = rustix::pipe::pipe_with(flags).map_err(|e| text("pipe", e))?;
    match sys::process::fork().map_err(|e| text("fork", e))? {
        Fork::Parent(child) => Ok(Split::Waiting(child, reader)),
        Fork::Child => Ok(Split::New(writer)),
    }
}

fn wait(child: Pid) -> Result<WaitStatus, String> {
    loop {
        match rustix::process::waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(status),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(text("waitpid", error)),
        }
    }
}

/// Waits for `child` to be ready.  The status to exit with: 0 if it is, its own if it ended.
fn wait_until_ready(child: Pid, from_child: OwnedFd) -> Result<u8, String> {
    let mut byte = [0];
    if std::fs::File::from(from_child)
        .read_exact(&mut byte)
        .is_ok()
    {
        return Ok(0);
    }
    let status = wait(child)?;
    match status.exit_status() {
        // It has said why.
        Some(code) if code != 0 => Ok(u8::try_from(code).unwrap_or(1)),
        _ => Err(format!(
            "fork child died before signaling startup ({})",
            describe(status)
        )),
    }
}

/// How a process ended, in the words of log lines.
fn describe(status: WaitStatus) -> String {
    if let Some(code) = status.exit_status() {
        return format!("exit status {code}");
    }
    if let Some(number) = status.terminating_signal() {
        let core = if status.as_raw() & 0x80 != 0 {
            ", core dumped"
        } else {
            ""
        };
        return format!("killed ({}){core}", signal_text(number));
    }
    format!("terminated abnormally ({:#x})", status.as_raw())
}

/// What the C library calls a signal.
pub(super) fn signal_text(number: i32) -> String {
    let name = match Signal::from_named_raw(number) {
        Some(Signal::HUP) => "Hangup",
        Some(Signal::INT) => "Interrupt",
        Some(Signal::QUIT) => "Quit",
        Some(Signal::ILL) => "Illegal instruction",
        Some(Signal::ABORT) => "Aborted",
        Some(Signal::BUS) => "Bus error",
        Some(Signal::FPE) => "Floating point exception",
        Some(Signal::KILL) => "Killed",
        Some(Signal::SEGV) => "Segmentation fault",
        Some(Signal::PIPE) => "Broken pipe",
        Some(Signal::ALARM) => "Alarm clock",
        Some(Signal::TERM) => "Terminated",
        _ => return format!("signal {number}"),
    };
    name.to_owned()
}

fn is_crash(status: WaitStatus) -> bool {
    let signals = [
        Signal::ABORT,
        Signal::ALARM,
        Signal::BUS,
        Signal::FPE,
        Signal::ILL,
        Signal::PIPE,
        Signal::SEGV,
        Signal::XCPU,
        Signal::XFSZ,
    ];
    let signal = status.terminating_signal();
    let by_signal = signal.is_some_and(|s| signals.iter().any(|c| c.as_raw() == s));
    by_signal || status.exit_status() == Some(PANIC_STATUS)
}

/// Logs what a process that crashed has said of it.
fn log_report(report: OwnedFd) {
    let mut text = Vec::new();
    // It ends where the child's end was closed; what is there counts.
    let _ = std::fs::File::from(report).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    if !text.is_empty() {
        log::warn!(target: "backtrace", "{}", text.trim_end());
    }
}

enum Supervised {
    /// The daemon: where it says that it is ready, and where it reports a crash.
    Daemon(OwnedFd, OwnedFd),
    Over(u8),
}

/// Becomes the monitor, which starts the daemon as its child, again and again as long as it
/// crashes.  Returns as the daemon, or when all is over.
fn supervise(
    options: &DaemonOptions,
    logger: &Logger,
    ready: &mut Option<OwnedFd>,
) -> Result<Supervised, String> {
    let clock = base::Clock::new();
    let mut crashes = 0;
    let mut last_restart: Option<base::Instant> = None;
    loop {
        let flags = rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK;
        let (report, to_report) = rustix::pipe::pipe_with(flags).map_err(|e| text("pipe", e))?;
        let (child, from_child) = match split()? {
            Split::New(to_monitor) => {
                logger.bind_thread("");
                return Ok(Supervised::Daemon(to_monitor, to_report));
            }
            Split::Waiting(child, from_child) => (child, from_child),
        };
        logger.bind_thread("monitor");
        let status = wait_until_ready(child, from_child)?;
        if status != 0 {
            return Ok(Supervised::Over(status));
        }
        if let Some(ready) = ready.take() {
            // Whoever waited may be gone.
            let _ = rustix::io::write(&ready, &[0]);
            leave_terminal(
                logger,
                options.no_chdir,
                options.keep_stderr,
                options.keep_stdout,
            );
        }
        let status = wait(child)?;
        let how = describe(status);
        if !is_crash(status) {
            log::info!(target: "daemon_unix", "pid {child} died, {how}, exiting");
            return Ok(Supervised::Over(0));
        }
        log_report(report);
        crashes += 1;
        let what = format!("{crashes} crashes: pid {child} died, {how}");
        let since = last_restart.map(|at| clock.now().since(at));
        if let Some(since) = since.filter(|since| *since < RESTART_PAUSE) {
            log::warn!(target: "daemon_unix",
                "{what}, waiting until 10 seconds since last restart");
            std::thread::sleep(RESTART_PAUSE - since);
        }
        last_restart = Some(clock.now());
        log::error!(target: "daemon_unix", "{what}, restarting");
    }
}
