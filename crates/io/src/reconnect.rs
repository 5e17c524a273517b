//! Keeping one connection alive: back-off between attempts, probes of an idle peer, limits
//! on tries.  A machine without input or output, used for OVSDB and OpenFlow alike.
//!
//! The owner tells what happened ([`Reconnect::connected`], [`Reconnect::activity`], ...),
//! calls [`Reconnect::run`] when [`Reconnect::next_deadline`] has come, and does the action
//! that comes back.

use std::io::{self, ErrorKind};
use std::time::Duration;

use base::Instant;
use log::Level;

/// What the owner is to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begin to connect, or to listen if passive; then tell [`Reconnect::connecting`] and
    /// how it went.
    Connect,
    /// Close the connection or give up the attempt; then tell [`Reconnect::disconnected`].
    Disconnect,
    /// Send something that the peer will answer.
    Probe,
}

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Switched off, or out of tries.
    Void,
    /// Waiting before the next attempt.
    Backoff,
    /// An attempt is under way.
    Connecting,
    /// Connected, with a sign of life within the probe interval.
    Active,
    /// Connected; a probe has been sent.
    Idle,
    /// The connection is to be dropped and made anew.
    Reconnect,
    /// Passive, waiting for a peer.
    Listening,
}

impl State {
    /// The name that status columns and tools show.
    pub fn name(self) -> &'static str {
        match self {
            Self::Void => "VOID",
            Self::Backoff => "BACKOFF",
            Self::Connecting => "CONNECTING",
            Self::Active => "ACTIVE",
            Self::Idle => "IDLE",
            Self::Reconnect => "RECONNECT",
            Self::Listening => "LISTENING",
        }
    }
}

/// What status columns tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// When the machine was made.
    pub created: Instant,
    /// The last sign of life of the peer.
    pub last_activity: Option<Instant>,
    /// When the connection was last made.
    pub last_connected: Option<Instant>,
    /// When the connection was last lost.
    pub last_disconnected: Option<Instant>,
    /// The current pause between attempts.
    pub backoff: Duration,
    /// Grows with each connection made or lost.
    pub seqno: u32,
    /// Whether there is a connection.
    pub is_connected: bool,
    /// Time spent connected in all.
    pub total_connected: Duration,
    /// Attempts that have ended.
    pub attempted: u32,
    /// Attempts that made a connection.
    pub successful: u32,
    /// Where the connection stands.
    pub state: State,
    /// Since when.
    pub state_entered: Instant,
}

const MIN_PAUSE: Duration = Duration::from_secs(1);
const DEFAULT_MAX_BACKOFF: Duration = Duration::from_secs(8);
const DEFAULT_PROBE: Duration = Duration::from_secs(5);

/// Whose log lines the machine writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Those of module `reconnect`, as for OVSDB.
    Reconnect,
    /// Those of module `rconn`, as for OpenFlow.
    Rconn,
}

impl Wording {
    fn module(self) -> &'static str {
        match self {
            Self::Reconnect => "reconnect",
            Self::Rconn => "rconn",
        }
    }
}

/// The machine.
#[derive(Debug)]
pub struct Reconnect {
    name: String,
    quiet: bool,
    wording: Wording,
    min_backoff: Duration,
    max_backoff: Duration,
    probe_interval: Option<Duration>,
    passive: bool,
    /// Tries left; `None` has no end.
    tries: Option<u32>,
    /// Failures after which the next try comes at once.
    free_tries: u32,
    state: State,
    entered: Instant,
    backoff: Duration,
    last_activity: Instant,
    heard: bool,
    last_connected: Option<Instant>,
    last_disconnected: Option<Instant>,
    last_receive_attempt: Instant,
    created: Instant,
    seqno: u32,
    total_connected: Duration,
    attempted: u32,
    successful: u32,
}

fn error_text(error: Option<&io::Error>) -> String {
    error.map_or(String::new(), |e| format!(" ({})", crate::error_text(e)))
}

impl Reconnect {
    /// A machine that is switched off, for an active connection, with back-off from 1 to 8
    /// seconds, probes after 5, and tries without end.
    pub fn new(now: Instant) -> Self {
        Self {
            name: "void".to_owned(),
            quiet: false,
            wording: Wording::Reconnect,
            min_backoff: MIN_PAUSE,
            max_backoff: DEFAULT_MAX_BACKOFF,
            probe_interval: Some(DEFAULT_PROBE),
            passive: false,
            tries: None,
            free_tries: 0,
            state: State::Void,
            entered: now,
            backoff: Duration::ZERO,
            last_activity: now,
            heard: false,
            last_connected: None,
            last_disconnected: None,
            last_receive_attempt: now,
            created: now,
            seqno: 0,
            total_connected: Duration::ZERO,
            attempted: 0,
            successful: 0,
        }
    }

    /// Logs at debug level only.
    pub fn set_quiet(&mut self, quiet: bool) {
        self.quiet = quiet;
    }

    /// Sets whose log lines it writes.
    pub fn set_wording(&mut self, wording: Wording) {
        self.wording = wording;
    }

    /// The name in log lines, usually whom to connect to.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the name in log lines.
    pub fn set_name(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    /// Limits how many attempts may still be made; `None` sets no limit.
    pub fn set_tries(&mut self, tries: Option<u32>) {
        self.tries = tries;
    }

    /// The attempts that may still be made.
    pub fn tries(&self) -> Option<u32> {
        self.tries
    }

    /// Lets the first of `tries` attempts follow each other without a pause, as when there
    /// are several remotes to try.
    pub fn set_free_tries(&mut self, tries: u32) {
        self.free_tries = tries;
    }

    /// Sets the least and the longest pause between attempts, each at least a second;
    /// a `max` of zero stands for the default.
    pub fn set_backoff(&mut self, min: Duration, max: Duration) {
        self.min_backoff = min.max(MIN_PAUSE);
        let max = if max.is_zero() {
            DEFAULT_MAX_BACKOFF
        } else {
            max
        };
        self.max_backoff = max.max(self.min_backoff);
        if self.state == State::Backoff {
            self.backoff = self.backoff.min(self.max_backoff);
        }
    }

    /// Sets after how long without a sign of life the peer is probed, and how long it has to
    /// answer: at least a second, zero for never.
    pub fn set_probe_interval(&mut self, interval: Duration) {
        self.probe_interval = (!interval.is_zero()).then(|| interval.max(MIN_PAUSE));
    }

    /// The probe interval; zero for never.
    pub fn probe_interval(&self) -> Duration {
        self.probe_interval.unwrap_or_default()
    }

    /// Whether the machine listens rather than connects.
    pub fn is_passive(&self) -> bool {
        self.passive
    }

    /// Makes it listen, or connect.
    pub fn set_passive(&mut self, passive: bool, now: Instant) {
        if self.passive == passive {
            return;
        }
        self.passive = passive;
        let restart = match self.state {
            State::Connecting | State::Reconnect => passive,
            State::Listening => !passive && self.take_try(),
            _ => false,
        };
        if restart {
            self.enter(State::Backoff, now);
            self.backoff = Duration::ZERO;
        }
    }

    /// Whether it is switched on and has tries left.
    pub fn is_enabled(&self) -> bool {
        self.state != State::Void
    }

    /// Switches it on: the first attempt is made at once.
    pub fn enable(&mut self, now: Instant) {
        if self.state == State::Void && self.take_try() {
            self.enter(State::Backoff, now);
            self.backoff = Duration::ZERO;
        }
    }

    /// Switches it off; the owner closes what is open.
    pub fn disable(&mut self, now: Instant) {
        if self.state != State::Void {
            self.enter(State::Void, now);
        }
    }

    /// Asks for the connection, or the attempt at one, to be dropped and made anew.
    pub fn force_reconnect(&mut self, now: Instant) {
        if matches!(self.state, State::Connecting | State::Active | State::Idle) {
            self.enter(State::Reconnect, now);
        }
    }

    /// Tells that the connection is gone or the attempt has failed: with the reason, or `None`
    /// if we dropped it.  An error of kind `UnexpectedEof` means that the peer closed it.
    pub fn disconnected(&mut self, now: Instant, error: Option<&io::Error>) {
        if matches!(self.state, State::Backoff | State::Void) {
            return;
        }
        self.log_loss(error);
        let was_connected = self.is_connected();
        if was_connected {
            self.last_disconnected = Some(now);
        }
        if !self.take_try() {
            self.enter(State::Void, now);
            return;
        }
        let lasted = self
            .last_activity
            .since(self.last_connected.unwrap_or(Instant::ZERO));
        if self.free_tries > 1 {
            self.free_tries -= 1;
            self.backoff = Duration::ZERO;
        } else if was_connected && (self.passive || lasted >= self.backoff) {
            self.backoff = if self.passive {
                Duration::ZERO
            } else {
                self.min_backoff
            };
        } else {
            self.back_off_more();
        }
        self.enter(State::Backoff, now);
    }

    fn log_loss(&self, error: Option<&io::Error>) {
        if let Some((level, text)) = self.loss(error) {
            self.log_at(level, &text);
        }
    }

    /// What is told of the end of a connection or attempt, if anything, and how loud.
    fn loss(&self, error: Option<&io::Error>) -> Option<(Level, String)> {
        let closed = error.is_some_and(|e| e.kind() == ErrorKind::UnexpectedEof);
        let error = error.filter(|_| !closed);
        let text = error_text(error);
        // What has a reason is told of quiet connections, too.
        let level = |told: Level| {
            if error.is_some() { told } else { self.level() }
        };
        let told = match self.state {
            State::Active | State::Idle if closed => {
                (self.level(), "connection closed by peer".to_owned())
            }
            State::Active | State::Idle => {
                (level(Level::Warn), format!("connection dropped{text}"))
            }
            State::Listening => {
                let text = format!("error listening for connections{text}");
                (level(Level::Warn), text)
            }
            // Further attempts would only fill the log.
            _ if self.backoff >= self.max_backoff => return None,
            _ => {
                let (what, failed) = match (self.passive, self.wording) {
                    (true, _) => ("listen attempt", Level::Info),
                    (false, Wording::Reconnect) => ("connection attempt", Level::Info),
                    (false, Wording::Rconn) => ("connection", Level::Warn),
                };
                let how = if error.is_some() {
                    "failed"
                } else {
                    "timed out"
                };
                (level(failed), format!("{what} {how}{text}"))
            }
        };
        Some(told)
    }

    fn back_off_more(&mut self) {
        if self.backoff < self.min_backoff {
            self.backoff = self.min_backoff;
        } else if self.backoff < self.max_backoff / 2 {
            self.backoff *= 2;
            let what = if self.passive {
                "trying to listen again"
            } else {
                "reconnect"
            };
            let seconds = short_seconds(self.backoff);
            self.log(&format!("waiting {seconds} seconds before {what}"));
        } else {
            if self.backoff < self.max_backoff {
                let what = match (self.passive, self.wording) {
                    (true, _) => "try to listen",
                    (false, Wording::Reconnect) => "reconnect",
                    (false, Wording::Rconn) => "retry connections",
                };
                let text = format!(
                    "continuing to {what} in the background but suppressing further logging"
                );
                self.log(&text);
            }
            self.backoff = self.max_backoff;
        }
    }

    /// How loud the usual course of things is told.
    const fn level(&self) -> Level {
        if self.quiet {
            Level::Debug
        } else {
            Level::Info
        }
    }

    fn log(&self, text: &str) {
        self.log_at(self.level(), text);
    }

    fn log_at(&self, level: Level, text: &str) {
        log::log!(target: self.wording.module(), level, "{}: {text}", self.name);
    }

    /// Tells that an attempt has begun.
    pub fn connecting(&mut self, now: Instant) {
        if self.state != State::Connecting {
            if self.passive {
                self.log("listening...");
            } else if self.backoff < self.max_backoff {
                self.log("connecting...");
            }
            self.enter(State::Connecting, now);
        }
    }

    /// Tells that a passive machine's listener is open.
    pub fn listening(&mut self, now: Instant) {
        if self.state != State::Listening {
            self.log("listening...");
            self.enter(State::Listening, now);
        }
    }

    /// Tells that accepting has failed.
    pub fn listen_error(&mut self, now: Instant, error: &io::Error) {
        if self.state == State::Listening {
            self.disconnected(now, Some(error));
        }
    }

    /// Tells that the connection is made.
    pub fn connected(&mut self, now: Instant) {
        if !self.is_connected() {
            self.connecting(now);
            self.log("connected");
            self.enter(State::Active, now);
            self.last_connected = Some(now);
        }
    }

    /// Tells that the attempt has failed.
    pub fn connect_failed(&mut self, now: Instant, error: Option<&io::Error>) {
        self.connecting(now);
        self.disconnected(now, error);
    }

    /// Tells of a sign of life of the peer, such as something received.
    pub fn activity(&mut self, now: Instant) {
        if self.state == State::Idle {
            self.enter(State::Active, now);
        }
        self.last_activity = now;
        self.heard = true;
    }

    /// Tells that the owner has looked for something to receive.  A peer is taken for dead
    /// only if nothing came although someone looked; [`Instant::MAX`] says that it always
    /// looks in time.
    pub fn receive_attempted(&mut self, at: Instant) {
        self.last_receive_attempt = at;
    }

    fn take_try(&mut self) -> bool {
        match &mut self.tries {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    fn enter(&mut self, state: State, now: Instant) {
        if self.state == State::Connecting {
            self.attempted += 1;
            if state == State::Active {
                self.successful += 1;
            }
        }
        let (was, is) = (is_connected(self.state), is_connected(state));
        if was != is {
            if was {
                self.total_connected += now.since(self.last_connected.unwrap_or(now));
            }
            self.seqno += 1;
        }
        log::debug!(target: self.wording.module(),
            "{}: entering {}", self.name, state.name());
        self.state = state;
        self.entered = now;
    }

    /// When [`Reconnect::run`] is to be called; [`Instant::MAX`] if only news can change
    /// anything.
    pub fn next_deadline(&self, now: Instant) -> Instant {
        let patience = |from: Instant| match self.probe_interval {
            None => Instant::MAX,
            Some(interval) => {
                let expires = from + interval;
                if now < expires || self.last_receive_attempt >= expires {
                    expires
                } else {
                    // Overdue, but nobody has looked whether something came: do so soon.
                    now + Duration::from_millis(1)
                }
            }
        };
        match self.state {
            State::Void | State::Listening => Instant::MAX,
            State::Backoff => self.entered + self.backoff,
            State::Connecting => self.entered + self.backoff.max(MIN_PAUSE),
            State::Active => patience(self.last_activity.max(self.entered)),
            State::Idle => patience(self.entered),
            State::Reconnect => self.entered,
        }
    }

    /// What is to be done now, if anything.
    pub fn run(&mut self, now: Instant) -> Option<Action> {
        if now < self.next_deadline(now) {
            return None;
        }
        match self.state {
            State::Void | State::Listening => None,
            State::Backoff => Some(Action::Connect),
            State::Connecting | State::Reconnect => Some(Action::Disconnect),
            State::Active => {
                let idle = now.since(self.last_activity.max(self.entered));
                let idle = match self.wording {
                    Wording::Reconnect => format!("{} ms", idle.as_millis()),
                    Wording::Rconn => format!("{} seconds", idle.as_secs()),
                };
                log::debug!(target: self.wording.module(),
                    "{}: idle {idle}, sending inactivity probe", self.name);
                self.enter(State::Idle, now);
                Some(Action::Probe)
            }
            State::Idle => {
                let level = if self.quiet {
                    Level::Debug
                } else {
                    Level::Error
                };
                let seconds = short_seconds(now.since(self.entered));
                log::log!(target: self.wording.module(), level,
                    "{}: no response to inactivity probe after {seconds} seconds, disconnecting",
                    self.name);
                Some(Action::Disconnect)
            }
        }
    }

    /// Where the connection stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether there is a connection.
    pub fn is_connected(&self) -> bool {
        is_connected(self.state)
    }

    /// The figures that status columns show.
    pub fn stats(&self, now: Instant) -> Stats {
        let current = match self.last_connected {
            Some(at) if self.is_connected() => now.since(at),
            _ => Duration::ZERO,
        };
        Stats {
            created: self.created,
            last_activity: self.heard.then_some(self.last_activity),
            last_connected: self.last_connected,
            last_disconnected: self.last_disconnected,
            backoff: self.backoff,
            seqno: self.seqno,
            is_connected: self.is_connected(),
            total_connected: self.total_connected + current,
            attempted: self.attempted,
            successful: self.successful,
            state: self.state,
            state_entered: self.entered,
        }
    }
}

fn is_connected(state: State) -> bool {
    matches!(state, State::Active | State::Idle)
}

/// Seconds with three significant digits, as C's `%.3g` prints them.
pub(crate) fn short_seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let digits = match seconds {
        s if s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        _ => 3,
    };
    if seconds >= 999.5 {
        let exponent = seconds.log10().floor();
        let text = format!("{:.2}", seconds / 10f64.powf(exponent));
        let text = text.trim_end_matches('0').trim_end_matches('.');
        return format!("{text}e+{exponent:02}");
    }
    let text = format!("{seconds:.digits$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs commands of a small language and compares what each line leads to.
    fn check(script: &str) {
        let mut now = Instant::from_millis(1000);
        let mut fsm = Reconnect::new(now);
        for line in script.lines().map(str::trim).filter(|l| !l.is_empty()) {
            let (command, expected) = line.split_once("->").unwrap();
            let refused = io::Error::from_raw_os_error(111);
            let mut got = String::new();
            for word in command.split_whitespace() {
                match word {
                    "enable" => fsm.enable(now),
                    "disable" => fsm.disable(now),
                    "force" => fsm.force_reconnect(now),
                    "connecting" => fsm.connecting(now),
                    "connected" => fsm.connected(now),
                    "refused" => fsm.connect_failed(now, Some(&refused)),
                    "dropped" => fsm.disconnected(now, Some(&refused)),
                    "activity" => fsm.activity(now),
                    "passive" => fsm.set_passive(true, now),
                    "listening" => fsm.listening(now),
                    "look" => fsm.receive_attempted(now),
                    "wait" => now = fsm.next_deadline(now),
                    "run" => got = fsm.run(now).map_or(String::new(), |a| format!("{a:?} ")),
                    number => match number.split_once('=') {
                        Some(("tries", tries)) => fsm.set_tries(tries.parse().ok()),
                        Some(("free", tries)) => fsm.set_free_tries(tries.parse().unwrap()),
                        _ => now += Duration::from_millis(number.parse().unwrap()),
                    },
                }
            }
            let backoff = fsm.backoff.as_millis();
            got += &format!("{} {backoff} {}", fsm.state.name(), now.as_millis());
            assert_eq!(got, expected.trim(), "{line}");
        }
    }

    #[test]
    fn pauses_double_up_to_the_limit() {
        check(
            "run -> VOID 0 1000
             enable run -> Connect BACKOFF 0 1000
             refused run -> BACKOFF 1000 1000
             wait run -> Connect BACKOFF 1000 2000
             refused wait run -> Connect BACKOFF 2000 4000
             refused wait run -> Connect BACKOFF 4000 8000
             refused wait run -> Connect BACKOFF 8000 16000
             connecting wait run -> Disconnect CONNECTING 8000 24000
             connected 500 activity dropped -> BACKOFF 8000 24500
             wait run connected 9000 activity dropped -> Connect BACKOFF 1000 41500",
        );
    }

    #[test]
    fn a_quiet_peer_is_probed_then_dropped() {
        check(
            "enable run connected -> Connect ACTIVE 0 1000
             4999 look run -> ACTIVE 0 5999
             1 run -> ACTIVE 0 6000
             look run -> Probe IDLE 0 6000
             1000 activity run -> ACTIVE 0 7000
             5000 look run -> Probe IDLE 0 12000
             5000 run -> IDLE 0 17000
             look run -> Disconnect IDLE 0 17000
             dropped -> BACKOFF 1000 17000",
        );
    }

    #[test]
    fn what_is_told_of_a_loss_and_how_loud() {
        let now = Instant::from_millis(1000);
        let refused = io::Error::from_raw_os_error(111);
        let end = io::Error::from(ErrorKind::UnexpectedEof);
        let mut fsm = Reconnect::new(now);
        fsm.enable(now);
        fsm.connecting(now);
        let told = |fsm: &Reconnect, error| {
            let (level, text) = fsm.loss(error).unwrap();
            format!("{level} {text}")
        };
        assert_eq!(
            told(&fsm, Some(&refused)),
            "INFO connection attempt failed (Connection refused)"
        );
        assert_eq!(told(&fsm, None), "INFO connection attempt timed out");
        fsm.connected(now);
        for (quiet, usual) in [(false, "INFO"), (true, "DEBUG")] {
            fsm.set_quiet(quiet);
            let closed = format!("{usual} connection closed by peer");
            assert_eq!(told(&fsm, Some(&end)), closed);
            assert_eq!(
                told(&fsm, Some(&refused)),
                "WARN connection dropped (Connection refused)"
            );
            assert_eq!(told(&fsm, None), format!("{usual} connection dropped"));
        }
    }

    #[test]
    fn tries_run_out_and_some_are_free() {
        check(
            "tries=2 enable run -> Connect BACKOFF 0 1000
             refused wait run refused -> Connect VOID 1000 2000
             enable -> VOID 1000 2000",
        );
        check(
            "free=2 enable run refused run -> Connect BACKOFF 0 1000
             refused run -> BACKOFF 1000 1000",
        );
    }

    #[test]
    fn passive_and_forced() {
        check(
            "passive enable run -> Connect BACKOFF 0 1000
             listening run -> LISTENING 0 1000
             connected force run -> Disconnect RECONNECT 0 1000
             dropped run -> BACKOFF 1000 1000
             disable run -> VOID 1000 1000",
        );
    }

    #[test]
    fn seconds_as_c_prints_them() {
        let check = |millis, expected| {
            assert_eq!(short_seconds(Duration::from_millis(millis)), expected);
        };
        check(1000, "1");
        check(2500, "2.5");
        check(5004, "5");
        check(12345, "12.3");
        check(123, "0.123");
        check(100_000, "100");
        check(1_234_000, "1.23e+03");
    }
}
