//! What the main loop of every daemon is built around.

use std::process::ExitCode;

use base::log::Logger;
use base::{Clock, Coverage, Dirs, Instant};
use rustix::process::Signal;
use sys::signal::SignalFd;

use super::detach::{Daemon, Start, signal_text};
use super::options::DaemonOptions;
use crate::control::{Commands, ControlServer, TimeControl, builtin};
use crate::event::{Event, Interest, Poll, Token};
use crate::stream::Net;

/// Tokens from here on are the core's own.
const FIRST_TOKEN: u64 = 1 << 62;

/// What a core is made of.
#[derive(Clone, Debug)]
pub struct CoreSettings {
    /// The clock.
    pub clock: Clock,
    /// The daemon's log.
    pub logger: Logger,
    /// Its directories.
    pub dirs: Dirs,
    /// How it reaches others.
    pub net: Net,
    /// How it runs.
    pub options: DaemonOptions,
    /// Whether SIGHUP reopens the log rather than ending the daemon.
    pub reopen_on_hangup: bool,
    /// Whether it takes the process's signals: not if it shares the process with a daemon
    /// that does.
    pub takes_signals: bool,
}

/// Why a daemon ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was told to with `exit`, or by its owner; with `--cleanup` or not.
    Exit {
        /// Whether `--cleanup` was given.
        cleanup: bool,
    },
    /// A signal came.
    Signal(Signal),
}

/// The parts that all daemons have: event loop, control socket, signals, place among
/// processes.
///
/// ```text
/// let mut core = match Core::start(settings)? { Ok(core) => core, Err(code) => return code };
/// let mut commands = core.commands::<State>();       // add the daemon's own
/// core.complete();
/// while core.end().is_none() {
///     let deadline = state.next_deadline().min(core.next_deadline());
///     core.turn(deadline, &mut commands, &mut state, &mut events)?;
///     /* state handles `events`, which are not the core's, and what is due */
/// }
/// core.finish()
/// ```
#[derive(Debug)]
pub struct Core {
    /// The event loop.  Tokens below 2^62 are the daemon's.
    pub poll: Poll,
    /// The coverage counters.
    pub coverage: Coverage,
    /// What it was made of.
    pub settings: CoreSettings,
    /// `time/stop` and `time/warp`, if the daemon registers them.
    pub time: TimeControl,
    control: ControlServer,
    signals: Option<SignalFd>,
    end: std::rc::Rc<std::cell::Cell<Option<End>>>,
    next_coverage: Instant,
    daemon: Daemon,
}

impl Core {
    /// Goes to the background if that is wanted, and sets everything up.  The inner `Err` is
    /// for processes whose part is over.
    ///
    /// # Errors
    /// The text that the daemon ends with; it was logged and printed.
    pub fn start(settings: CoreSettings) -> Result<Result<Self, u8>, String> {
        let logger = settings.logger.clone();
        logger.bind_thread("");
        Self::try_start(settings).inspect_err(|text| {
            logger.fatal("daemon_unix", text);
        })
    }

    fn try_start(settings: CoreSettings) -> Result<Result<Self, u8>, String> {
        let daemon = match Daemon::start(&settings.options, &settings.logger)? {
            Start::Daemon(daemon) => daemon,
            Start::Exit(status) => return Ok(Err(status)),
        };
        let text = |error: std::io::Error| base::errno_text(&error);
        // Ports and clients take a file each; without more the daemon runs with fewer.
        let _ = sys::thread::raise_file_limit();
        let mut poll = Poll::new(&settings.clock).map_err(text)?;
        let signals = if settings.takes_signals {
            let wanted = [Signal::TERM, Signal::INT, Signal::HUP, Signal::ALARM];
            let signals = SignalFd::new(&wanted).map_err(text)?;
            poll.add(&signals, Token(FIRST_TOKEN), Interest::READ)
                .map_err(text)?;
            Some(signals)
        } else {
            None
        };
        let control = ControlServer::new(
            &settings.net,
            &settings.dirs,
            settings.logger.program(),
            settings.options.unixctl.as_deref(),
            Token(FIRST_TOKEN + 1),
            &mut poll,
        )?;
        Ok(Ok(Self {
            poll,
            coverage: Coverage::new(),
            settings,
            time: TimeControl::new(),
            control,
            signals,
            end: std::rc::Rc::default(),
            next_coverage: Instant::ZERO,
            daemon,
        }))
    }

    /// The commands that every daemon has, `exit` included.
    pub fn commands<C: 'static>(&self, exit_takes_cleanup: bool) -> Commands<C> {
        let mut commands = Commands::new();
        builtin::register(&mut commands, &self.settings.logger, &self.coverage);
        let end = self.end.clone();
        let (usage, max) = if exit_takes_cleanup {
            ("[--cleanup]", 1)
        } else {
            ("", 0)
        };
        commands.answer("exit", usage, 0, max, move |_, args| {
            let cleanup = args.first().is_some_and(|a| a == "--cleanup");
            end.set(Some(End::Exit { cleanup }));
            Ok(String::new())
        });
        commands
    }

    /// Tells whoever waits that the daemon is ready.
    pub fn complete(&mut self) {
        self.daemon.complete();
    }

    /// Ends the loop.
    pub fn exit(&self, end: End) {
        self.end.set(Some(end));
    }

    /// Why the loop is to end, if it is.
    pub fn end(&self) -> Option<End> {
        self.end.get()
    }

    /// The control socket.
    pub fn control(&self) -> &ControlServer {
        &self.control
    }

    /// When the core wants a turn without an event.
    pub fn next_deadline(&self) -> Instant {
        self.next_coverage
    }

    /// Waits until something is ready or `deadline` has come, and does the core's part.
    /// `events` are then those that are the daemon's.
    ///
    /// # Errors
    /// Waiting has failed.
    pub fn turn<C>(
        &mut self,
        deadline: Instant,
        commands: &mut Commands<C>,
        context: &mut C,
        events: &mut Vec<Event>,
    ) -> std::io::Result<()> {
        events.clear();
        self.poll.wait(deadline, events)?;
        let now = self.poll.now();
        if now >= self.next_coverage {
            self.next_coverage = self.coverage.run(now);
        }
        let mine = events.iter().any(|e| e.token.0 >= FIRST_TOKEN);
        if mine {
            events.retain(|e| e.token.0 < FIRST_TOKEN);
            self.take_signals();
            for call in self.control.run(&mut self.poll) {
                commands.dispatch(context, call);
            }
        }
        self.time.run(&mut self.poll);
        Ok(())
    }

    fn take_signals(&mut self) {
        let Some(signals) = &self.signals else { return };
        while let Some(signal) = signals.next() {
            if signal == Signal::HUP && self.settings.reopen_on_hangup {
                // Without a log file there is nothing to reopen.
                let _ = self.settings.logger.reopen();
                continue;
            }
            let number = signal.as_raw();
            log::warn!(target: "fatal_signal",
                "terminating with signal {number} ({})", signal_text(number));
            self.end.set(Some(End::Signal(signal)));
        }
    }

    /// Sends the last answers and takes leave: removes pidfile and sockets.  A daemon that a
    /// signal ends, ends by that signal.
    pub fn finish(mut self) -> ExitCode {
        self.control.finish(&mut self.poll);
        let end = self.end.get();
        drop(self);
        match end {
            Some(End::Signal(signal)) => sys::process::die_by(signal),
            _ => ExitCode::SUCCESS,
        }
    }
}
