//! `ovs-vswitchd`: the configuration's client, the switch, and the loop that drives both.

mod database;
mod options;

use std::process::ExitCode;
use std::sync::Arc;

use base::log::{Logger, SWITCH_MODULES};
use base::{Clock, Dirs, Instant};
use io::control::{Commands, builtin};
use io::daemon::{Core, CoreSettings, End, version_text};
use io::{Event, Net, Poll, Token};
use net_dev::{DummyLevel, DummyProvider, Providers};
use vs_switch::config::Step;
use vs_switch::status::{BridgeStatus, Changes, InterfaceStatistics, InterfaceStatus};
use vs_switch::{DatapathProvider, Env, Switch, TOKEN_BASE};

use crate::bridges::Bridges;
use crate::target::Target;
use database::Database;
use options::{Parsed, parse};

/// The program's name.
const PROGRAM: &str = "ovs-vswitchd";

/// What the operator asked for that decides which devices and datapaths there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// `--enable-dummy`, and which real kinds dummies stand in for.
    pub dummies: Option<DummyLevel>,
    /// `--disable-system`: no datapath of the kernel.
    pub disable_system: bool,
}

/// Devices and datapaths.  The executable chooses them; nothing else knows which there are.
pub struct Injected {
    /// Who opens devices.
    pub devices: Providers,
    /// The dummies among them.
    pub dummies: Option<Arc<DummyProvider>>,
    /// Who opens datapaths.
    pub datapaths: Vec<Arc<dyn DatapathProvider>>,
    /// The type of datapath that a bridge gets that names none.
    pub default_datapath: String,
}

/// Opens what a choice stands for; called once, in the daemon's own process.
pub type Inject = fn(Choice, &Clock) -> Result<Injected, String>;

impl Target for Switch {
    fn apply(&mut self, step: &Step, now: Instant) -> Result<(), String> {
        Self::apply(self, step, now)
    }

    fn configured(&mut self) {
        Self::configured(self);
    }

    fn take_changes(&mut self) -> Changes {
        Self::take_changes(self)
    }

    fn interface_status(&self, bridge: &str, interface: &str) -> Option<InterfaceStatus> {
        Self::interface_status(self, bridge, interface)
    }

    fn interface_statistics(&self, bridge: &str, interface: &str) -> Option<InterfaceStatistics> {
        Self::interface_statistics(self, bridge, interface)
    }

    fn mirror_statistics(&self, bridge: &str) -> Vec<(String, u64, u64)> {
        Self::mirror_statistics(self, bridge)
    }

    fn bridge_status(&self, bridge: &str) -> Option<BridgeStatus> {
        Self::bridge_status(self, bridge)
    }

    fn is_settled(&self) -> bool {
        Self::is_settled(self)
    }

    fn types(&self) -> (Vec<String>, Vec<String>) {
        Self::types(self)
    }
}

/// What the daemon's commands work on.
struct State {
    switch: Switch,
    bridges: Bridges,
    database: Database,
}

impl State {
    fn handle(&mut self, event: Event, now: Instant, poll: &Poll) {
        if event.token.0 >= TOKEN_BASE {
            self.switch.handle_event(event, now, poll);
        }
        // The database's session looks at its stream in each round.
    }

    fn run(&mut self, poll: &mut Poll, now: Instant) {
        self.database.run(self.bridges.client_mut(), now);
        self.bridges.run(&mut self.switch, now);
        self.switch.run(poll, now);
        // What steps changed is in force now, and can be reported.
        self.bridges.run(&mut self.switch, now);
        self.database.send(self.bridges.client_mut(), now);
        self.database.watch(poll);
    }

    fn next_deadline(&self, now: Instant) -> Instant {
        let switch = self.switch.next_deadline(now);
        let database = self.database.next_deadline(now);
        switch.min(database).min(self.bridges.next_deadline())
    }
}

/// What the daemon shares with others in its process.
#[derive(Clone, Debug)]
pub struct Process {
    /// The clock.
    pub clock: Clock,
    /// The directories.
    pub dirs: Dirs,
    /// The connections: a database in the same process may be reached in memory.
    pub net: Net,
}

impl Process {
    /// A process of one daemon, with the directories of its environment.
    pub fn new() -> Self {
        let dirs = Dirs::from_env();
        Self {
            clock: Clock::new(),
            net: Net::new(&dirs),
            dirs,
        }
    }
}

impl Default for Process {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs the daemon with the arguments `args`, whose first is the program's name.
pub fn run(args: &[String], inject: Inject) -> ExitCode {
    run_in(Process::new(), args, inject)
}

/// Runs the daemon in a process that others share.
pub fn run_in(process: Process, args: &[String], inject: Inject) -> ExitCode {
    let Process { clock, dirs, net } = process;
    let logger = Logger::new(PROGRAM, &clock, SWITCH_MODULES);
    logger.bind_thread("");
    let parsed = match parse(args, &logger, &dirs) {
        Ok(Parsed::Run(options)) => options,
        Ok(Parsed::Print(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(text) => return fail(&text),
    };
    net.tls().configure(parsed.tls);
    let confined = !parsed.daemon.no_self_confinement;
    let settings = CoreSettings {
        clock: clock.clone(),
        logger,
        dirs: dirs.clone(),
        net: net.clone(),
        options: parsed.daemon,
        reopen_on_hangup: true,
        takes_signals: true,
    };
    let core = match Core::start(settings) {
        Ok(Ok(core)) => core,
        Ok(Err(status)) => return ExitCode::from(status),
        Err(text) => return fail(&text),
    };
    let injected = match inject(parsed.choice, &clock) {
        Ok(injected) => injected,
        Err(text) => {
            log::error!(target: "vswitchd", "{text}");
            return fail(&text);
        }
    };
    let env = Env {
        clock: clock.clone(),
        coverage: core.coverage.clone(),
        dirs,
        confined,
        net: net.clone(),
        devices: injected.devices,
        dummies: injected.dummies,
        datapaths: injected.datapaths,
        default_datapath: injected.default_datapath,
    };
    let mut bridges = Bridges::new();
    let database = Database::new(&net, &parsed.remote, bridges.client_mut(), clock.now());
    let state = State {
        switch: Switch::new(env),
        bridges,
        database,
    };
    main_loop(core, state, parsed.choice.dummies.is_some())
}

fn fail(text: &str) -> ExitCode {
    eprintln!("{PROGRAM}: {text}");
    ExitCode::FAILURE
}

fn commands(core: &Core, has_dummies: bool) -> Commands<State> {
    let mut commands = core.commands::<State>(true);
    vs_switch::control::register(&mut commands, |state| &mut state.switch);
    builtin::register_memory(&mut commands, |state: &mut State| {
        state.switch.memory_usage()
    });
    if has_dummies {
        core.time.register(&mut commands);
    }
    commands
}

fn main_loop(mut core: Core, mut state: State, has_dummies: bool) -> ExitCode {
    let mut commands = commands(&core, has_dummies);
    let mut events = Vec::new();
    let mut is_complete = false;
    let mut deadline = Instant::ZERO;
    while core.end().is_none() {
        if let Err(error) = core.turn(deadline, &mut commands, &mut state, &mut events) {
            log::error!(target: "poll_loop", "waiting failed: {error}");
            return ExitCode::FAILURE;
        }
        let now = core.poll.now();
        for event in events.drain(..) {
            state.handle(event, now, &core.poll);
        }
        state.run(&mut core.poll, now);
        if !is_complete && state.bridges.is_ready() {
            is_complete = true;
            core.complete();
            let version = version_text(PROGRAM);
            log::info!(target: "bridge", "{version}");
        }
        let now = core.poll.now();
        deadline = state.next_deadline(now).min(core.next_deadline());
    }
    if let Some(End::Exit { cleanup: true }) = core.end() {
        state.switch.clean_up(core.poll.now());
    }
    core.finish()
}

/// The token of the session with the database.
const DATABASE: Token = Token(1);
