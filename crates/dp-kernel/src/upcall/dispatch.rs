//! Sockets and handlers: opens and closes them as ports come and go and as the mode of dispatch
//! changes.
//!
//! A thread of its own carries out what cannot be done where it is noticed: a handler that finds
//! its socket overflowed only says so.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use base::Instant;
use dp_api::Dispatch;
use dp_lang::PortNo;
use dp_lang::netlink::{ActionContext, decode_actions, encode_actions};
use net_netlink::errno as number_of;
use net_netlink::ovs::flow::{self, FlowPut, UfidBytes};
use net_netlink::ovs::{datapath, vport};
use net_netlink::{AttrWriter, Builder};
use net_nlsock::{Answer, PacketInbox, Protocol, Socket, Train};

use super::balance::{Balance, Move};
use super::handler::{Control, spawn};
use super::mode::{Chooser, Mode};
use crate::flow::{forget_pids, has_userspace};
use crate::kernel::{errno, lock};
use crate::shared::{Shared, Source};

/// How long sockets that are not used any more are read.
const LINGER: Duration = Duration::from_secs(1);

/// How often the work of handlers is compared while ports have sockets of their own.
const COMPARE: Duration = Duration::from_secs(1);

/// Bytes of packets that may wait for a CPU's socket, which many ports share.
const CPU_WAITING: usize = 4 << 20;

/// The same for a port's own socket: what a flood leaves there is still to be served after it.
const PORT_WAITING: usize = 1 << 20;

/// Features that are always asked for.
const FEATURES: u32 = datapath::feature::UNALIGNED | datapath::feature::VPORT_PIDS;

/// A handler thread.
struct Running {
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

/// The socket of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortSocket {
    token: u64,
    pid: u32,
    handler: usize,
    /// Other ports have it, too: there were no descriptors left.
    is_shared: bool,
}

struct State {
    mode: Option<Mode>,
    handlers: Vec<Running>,
    /// Sockets of CPUs: number and port id, by handler.
    cpus: Vec<(u64, u32)>,
    ports: HashMap<PortNo, PortSocket>,
    balance: Balance,
    /// Sockets that are read until then and closed.
    retired: Vec<(Instant, PortSocket)>,
    next_token: u64,
    compared: Instant,
}

/// What its thread waits for.
struct Wanted {
    chooser: Chooser,
    mode: Option<Mode>,
    stop: bool,
}

/// The dispatcher.
pub(crate) struct Dispatcher {
    shared: Arc<Shared>,
    state: Mutex<State>,
    wanted: Mutex<Wanted>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Dispatcher {
    pub(crate) fn new(shared: Arc<Shared>, has_per_cpu: bool) -> Self {
        let state = State {
            mode: None,
            handlers: Vec::new(),
            cpus: Vec::new(),
            ports: HashMap::new(),
            balance: Balance::new(1),
            retired: Vec::new(),
            next_token: 0,
            compared: Instant::ZERO,
        };
        let wanted = Wanted {
            chooser: Chooser::new(Dispatch::Auto, has_per_cpu),
            mode: None,
            stop: false,
        };
        Self {
            shared,
            state: Mutex::new(state),
            wanted: Mutex::new(wanted),
            changed: Condvar::new(),
            thread: Mutex::new(None),
        }
    }

    /// The mode in force.
    pub(crate) fn mode(&self) -> Option<Mode> {
        lock(&self.wanted).mode
    }

    /// What an operator wants from now on.
    pub(crate) fn want(self: &Arc<Self>, dispatch: Dispatch) {
        lock(&self.wanted).chooser.want(dispatch);
        self.changed.notify_one();
        let is_running = lock(&self.state).mode.is_some();
        if is_running {
            // It is in force when this returns, as far as the kernel lets it.
            self.follow();
        }
    }

    /// A handler's socket overflowed.
    fn overflowed(&self) {
        let now = self.shared.clock.now();
        let mut wanted = lock(&self.wanted);
        let before = wanted.chooser.mode(now);
        wanted.chooser.overflowed(now);
        let after = wanted.chooser.mode(now);
        drop(wanted);
        if before != after {
            let name = self.shared.display_name();
            log::info!(target: "dpif_netlink",
                "{name}: a socket overflowed; each port gets one of its own for a while");
            self.changed.notify_one();
        }
    }

    /// Starts handlers, and packets come.
    ///
    /// # Errors
    /// Threads or sockets cannot be made, or the kernel refuses.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        {
            let mut state = lock(&self.state);
            if state.mode.is_some() {
                return Ok(());
            }
            // Sockets and descriptors grow with the ports.
            let _ = sys::thread::raise_file_limit();
            let count = sys::thread::allowed_cpus()?.len().max(1);
            state.balance = Balance::new(count);
            // One more is for ports that are kept apart from a flood.
            for index in 0..=count {
                let control = Arc::new(Control::new()?);
                let dispatcher = Arc::downgrade(self);
                let on_overflow = Arc::new(move || {
                    if let Some(dispatcher) = dispatcher.upgrade() {
                        dispatcher.overflowed();
                    }
                });
                let thread = spawn(index, &self.shared, &control, on_overflow)?;
                state.handlers.push(Running {
                    control,
                    thread: Some(thread),
                });
            }
        }
        let now = self.shared.clock.now();
        let mode = lock(&self.wanted).chooser.mode(now);
        self.enter(mode)?;
        let weak = Arc::downgrade(self);
        let builder = std::thread::Builder::new().name("dispatcher".to_owned());
        let thread = builder.spawn(move || {
            while let Some(dispatcher) = weak.upgrade() {
                if !dispatcher.wait() {
                    return;
                }
                dispatcher.follow();
            }
        })?;
        *lock(&self.thread) = Some(thread);
        Ok(())
    }

    /// Waits until there may be something to do; false to stop.
    fn wait(&self) -> bool {
        let now = self.shared.clock.now();
        let mut deadline = self.next_deadline(now);
        let mut wanted = lock(&self.wanted);
        if wanted.stop {
            return false;
        }
        if Some(wanted.chooser.mode(now)) != wanted.mode {
            return true;
        }
        deadline = deadline.min(wanted.chooser.next_deadline(now));
        if deadline == Instant::MAX {
            wanted = self
                .changed
                .wait(wanted)
                .unwrap_or_else(PoisonError::into_inner);
        } else {
            let time = deadline.since(now).max(Duration::from_millis(1));
            let woken = self.changed.wait_timeout(wanted, time);
            wanted = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        !wanted.stop
    }

    fn next_deadline(&self, now: Instant) -> Instant {
        let state = lock(&self.state);
        let closing = state.retired.iter().map(|(at, _)| *at).min();
        let comparing = if state.mode == Some(Mode::PerPort)
            && state.handlers.len() > 1
            && !lock(&self.shared.served).is_empty()
        {
            Some((state.compared + COMPARE).max(now))
        } else {
            None
        };
        let earliest = closing.into_iter().chain(comparing).min();
        earliest.unwrap_or(Instant::MAX)
    }

    /// Does what is due.
    fn follow(&self) {
        let now = self.shared.clock.now();
        let (mode, current) = {
            let wanted = lock(&self.wanted);
            (wanted.chooser.mode(now), wanted.mode)
        };
        if Some(mode) != current
            && let Err(error) = self.enter(mode)
        {
            let name = self.shared.display_name();
            let why = base::errno_text(&error);
            base::log_limited!(
                Warn,
                "dpif_netlink",
                (1, 5),
                "{name}: dispatch mode cannot be changed ({why})"
            );
            // It is not tried again before something changes.
            lock(&self.wanted).mode = Some(mode);
        }
        let mut state = lock(&self.state);
        state.close_retired(&self.shared, now);
        if state.mode == Some(Mode::PerPort) && now >= state.compared + COMPARE {
            state.compared = now;
            let served = std::mem::take(&mut *lock(&self.shared.served));
            let moves = state.balance.rebalance(&served);
            state.carry_out(&self.shared, &moves);
        }
    }

    /// Brings sockets and the kernel into a mode.
    fn enter(&self, mode: Mode) -> io::Result<()> {
        let mut state = lock(&self.state);
        match mode {
            Mode::PerCpu => state.enter_per_cpu(&self.shared)?,
            Mode::PerPort => state.enter_per_port(&self.shared)?,
        }
        state.mode = Some(mode);
        drop(state);
        lock(&self.wanted).mode = Some(mode);
        let name = match mode {
            Mode::PerCpu => "per-cpu",
            Mode::PerPort => "per-vport",
        };
        log::info!(target: "dpif_netlink", "Datapath dispatch mode: {name}");
        Ok(())
    }

    /// The socket that a new port gets; 0 is none.
    pub(crate) fn port_socket(&self, port: Option<PortNo>) -> io::Result<NewSocket> {
        let mut state = lock(&self.state);
        if state.mode != Some(Mode::PerPort) {
            return Ok(NewSocket { socket: None });
        }
        let socket = state.open_socket(&self.shared, port)?;
        Ok(NewSocket {
            socket: Some(socket),
        })
    }

    /// A port was made with a socket.
    pub(crate) fn port_added(&self, port: PortNo, new: NewSocket) -> io::Result<()> {
        if let Some(open) = new.socket {
            let mut state = lock(&self.state);
            state.register(&self.shared, port, open)?;
        }
        Ok(())
    }

    /// Gives a port that exists in the kernel the sockets that it should have.
    pub(crate) fn adopt_port(&self, port: PortNo) -> io::Result<()> {
        let mut state = lock(&self.state);
        if state.mode != Some(Mode::PerPort) || state.ports.contains_key(&port) {
            return Ok(());
        }
        let open = state.open_socket(&self.shared, Some(port))?;
        let pid = open.pid();
        state.register(&self.shared, port, open)?;
        let family = self.shared.kernel.families.vport;
        let mut request = vport::set_pids(family, self.shared.dp, port.0, &[pid]);
        self.shared.kernel.execute(&mut request)
    }

    /// A port is gone.
    pub(crate) fn port_removed(&self, port: PortNo) {
        let mut state = lock(&self.state);
        state.balance.remove(port);
        if let Some(socket) = state.ports.remove(&port) {
            state.close(&self.shared, socket);
        }
        let mut pids = self
            .shared
            .pids
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(pids) = pids.as_mut() {
            pids.remove(&port);
        }
    }

    /// Returns when every packet that a handler has in its hands now is done.
    pub(crate) fn quiesce(&self) {
        let controls: Vec<Arc<Control>> = {
            let state = lock(&self.state);
            state.handlers.iter().map(|h| h.control.clone()).collect()
        };
        for control in controls {
            control.epoch.wait();
        }
    }

    /// Stops all threads.
    pub(crate) fn stop(&self) {
        lock(&self.wanted).stop = true;
        self.changed.notify_one();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        let mut handlers = std::mem::take(&mut lock(&self.state).handlers);
        for handler in &handlers {
            handler.control.stop();
        }
        for handler in &mut handlers {
            if let Some(thread) = handler.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

/// A socket for a port that is about to be made.
pub(crate) struct NewSocket {
    socket: Option<Open>,
}

impl NewSocket {
    /// Its port id; 0 if there is none.
    pub(crate) fn pid(&self) -> u32 {
        self.socket.as_ref().map_or(0, Open::pid)
    }
}

/// A socket that no handler reads yet, or that of another port.
enum Open {
    New(PacketInbox),
    Shared(PortSocket),
}

impl Open {
    fn pid(&self) -> u32 {
        match self {
            Self::New(inbox) => inbox.port_id(),
            Self::Shared(socket) => socket.pid,
        }
    }
}

impl State {
    /// Opens a socket for a port; without descriptors left it shares that of another.
    fn open_socket(&mut self, shared: &Shared, port: Option<PortNo>) -> io::Result<Open> {
        match PacketInbox::open(PORT_WAITING) {
            Ok(inbox) => Ok(Open::New(inbox)),
            Err(e) if matches!(number_of(&e), Some(errno::EMFILE | errno::ENFILE)) => {
                let least = |s: &&PortSocket| s.handler;
                let handler = port.map(|p| self.balance.assign(p));
                let own = self
                    .ports
                    .values()
                    .filter(|s| handler.is_none_or(|h| s.handler == h));
                let found = own.min_by_key(least).or_else(|| self.ports.values().next());
                let Some(socket) = found.copied() else {
                    return Err(e);
                };
                let name = shared.display_name();
                base::log_limited!(
                    Warn,
                    "dpif_netlink",
                    (1, 5),
                    "{name}: no descriptors left: ports share sockets"
                );
                Ok(Open::Shared(PortSocket {
                    is_shared: true,
                    ..socket
                }))
            }
            Err(e) => Err(e),
        }
    }

    /// Has a handler read a port's socket.
    fn register(&mut self, shared: &Shared, port: PortNo, open: Open) -> io::Result<()> {
        let socket = match open {
            Open::Shared(socket) => {
                // Both have it now, and whose its packets are is not known beforehand.
                for other in self.ports.values_mut().filter(|s| s.token == socket.token) {
                    other.is_shared = true;
                }
                socket
            }
            Open::New(inbox) => {
                let handler = self.balance.assign(port);
                let pid = inbox.port_id();
                let source = Source {
                    inbox,
                    port: Some(port),
                };
                let token = self.add_source(shared, source, handler)?;
                PortSocket {
                    token,
                    pid,
                    handler,
                    is_shared: false,
                }
            }
        };
        self.ports.insert(port, socket);
        let mut pids = shared.pids.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(pids) = pids.as_mut() {
            pids.insert(port, socket.pid);
        }
        Ok(())
    }

    fn add_source(&mut self, shared: &Shared, source: Source, handler: usize) -> io::Result<u64> {
        let token = self.next_token;
        self.next_token += 1;
        let source = Arc::new(source);
        let mut sources = shared
            .sources
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        sources.insert(token, source.clone());
        drop(sources);
        let control = &self.handlers[handler].control;
        control.watch(token, &source).inspect_err(|_| {
            let mut sources = shared
                .sources
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            sources.remove(&token);
        })?;
        Ok(token)
    }

    /// Closes a socket, unless other ports have it.
    fn close(&mut self, shared: &Shared, socket: PortSocket) {
        if socket.is_shared && self.ports.values().any(|s| s.token == socket.token) {
            return;
        }
        let mut sources = shared
            .sources
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let source = sources.remove(&socket.token);
        drop(sources);
        if let (Some(source), Some(handler)) = (source, self.handlers.get(socket.handler)) {
            handler.control.unwatch(&source);
        }
    }

    fn close_retired(&mut self, shared: &Shared, now: Instant) {
        let retired = std::mem::take(&mut self.retired);
        let (due, later): (Vec<_>, Vec<_>) = retired.into_iter().partition(|(at, _)| *at <= now);
        self.retired = later;
        for (_, socket) in due {
            self.close(shared, socket);
        }
    }

    /// Moves ports' sockets to other handlers.
    fn carry_out(&mut self, shared: &Shared, moves: &[Move]) {
        let mut moving = Vec::with_capacity(moves.len());
        let sources = shared
            .sources
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        for moved in moves {
            let socket = self.ports.get(&moved.port).filter(|s| !s.is_shared);
            let source = socket.and_then(|socket| sources.get(&socket.token).cloned());
            if let (Some(socket), Some(source)) = (socket, source) {
                self.handlers[socket.handler].control.unwatch(&source);
                moving.push((moved, source));
            }
        }
        drop(sources);
        // Nothing of them is in the old handlers' hands when the new ones begin.
        let old: BTreeSet<usize> = moving.iter().map(|(moved, _)| moved.from).collect();
        for handler in old {
            self.handlers[handler].control.epoch.wait();
        }
        for (moved, source) in moving {
            let Some(socket) = self.ports.get_mut(&moved.port) else {
                continue;
            };
            socket.handler = moved.to;
            let token = socket.token;
            if let Err(error) = self.handlers[moved.to].control.watch(token, &source) {
                let why = base::errno_text(&error);
                base::log_limited!(Warn, "dpif_netlink", (1, 5), "port {}: {why}", moved.port);
            }
        }
    }

    fn enter_per_cpu(&mut self, shared: &Shared) -> io::Result<()> {
        if self.cpus.is_empty() {
            for handler in 0..self.handlers.len().saturating_sub(1) {
                let inbox = PacketInbox::open(CPU_WAITING)?;
                let pid = inbox.port_id();
                let source = Source { inbox, port: None };
                let token = self.add_source(shared, source, handler)?;
                self.cpus.push((token, pid));
            }
        }
        let pids = cpu_pids(&self.cpus)?;
        let features = FEATURES | datapath::feature::PER_CPU;
        let family = shared.kernel.families.datapath;
        let mut request = datapath::set(family, shared.dp, features, Some(&pids));
        shared.kernel.execute(&mut request)?;
        *shared.pids.write().unwrap_or_else(PoisonError::into_inner) = None;
        let until = shared.clock.now() + LINGER;
        for (_, socket) in self.ports.drain() {
            self.retired.push((until, socket));
        }
        self.retired.sort_by_key(|(_, socket)| socket.token);
        self.retired.dedup_by_key(|(_, socket)| socket.token);
        self.balance.clear();
        Ok(())
    }

    fn enter_per_port(&mut self, shared: &Shared) -> io::Result<()> {
        {
            let mut pids = shared.pids.write().unwrap_or_else(PoisonError::into_inner);
            pids.get_or_insert_default();
        }
        let mut train = Train::new();
        let family = shared.kernel.families.vport;
        for port in shared.ports.numbers() {
            if !self.ports.contains_key(&port) {
                let open = self.open_socket(shared, Some(port))?;
                self.register(shared, port, open)?;
            }
            let pid = self.ports.get(&port).map_or(0, |s| s.pid);
            train.push(&mut vport::set_pids(family, shared.dp, port.0, &[pid]))?;
        }
        let mut failure = None;
        shared.kernel.with(|socket| {
            socket.run(&mut train, |_, answer| match answer {
                // A port that vanished meanwhile needs nothing.
                Answer::Outcome(Err(e)) if number_of(&e) != Some(errno::ENODEV) => {
                    failure = Some(e);
                }
                _ => {}
            })
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        let family = shared.kernel.families.datapath;
        let mut request = datapath::set(family, shared.dp, FEATURES, None);
        shared.kernel.execute(&mut request)?;
        repoint(shared)
    }
}

/// The sockets of all CPUs that this machine may ever have: numbers have gaps, and threads may not
/// run everywhere.
fn cpu_pids(cpus: &[(u64, u32)]) -> io::Result<Vec<u32>> {
    let allowed = sys::thread::allowed_cpus()?;
    let possible = sys::thread::possible_cpus().unwrap_or_else(|_| {
        let last = allowed.last().copied().unwrap_or(0);
        last + 1
    });
    Ok(pids_by_cpu(&allowed, possible, cpus))
}

fn pids_by_cpu(allowed: &[usize], possible: usize, sockets: &[(u64, u32)]) -> Vec<u32> {
    let of = |cpu: usize| {
        let own = allowed.iter().position(|c| *c == cpu);
        sockets[own.unwrap_or(cpu) % sockets.len()].1
    };
    (0..possible).map(of).collect()
}

/// Flows that a changed mode made name the wrong sockets.
fn repoint(shared: &Shared) -> io::Result<()> {
    let families = &shared.kernel.families;
    let mut requests: Vec<Builder> = Vec::new();
    let mut dump = flow::dump(families.flow, shared.dp, flow::omit::MASK);
    shared.kernel.visit(&mut dump, |message| {
        if let Some(flow) = flow::Flow::parse(message) {
            requests.extend(repointed(shared, &flow));
        }
    })?;
    let mut train = Train::new();
    for request in &mut requests {
        train.push(request)?;
    }
    if train.is_empty() {
        return Ok(());
    }
    let mut socket = Socket::open(Protocol::Generic)?;
    // A flow that went meanwhile needs nothing.
    socket.run(&mut train, |_, _| ())
}

/// The request that gives a flow the right sockets, if it names any.
fn repointed(shared: &Shared, found: &flow::Flow<'_>) -> Option<Builder> {
    let mut actions = decode_actions(found.actions?).ok()?;
    if !has_userspace(&actions) {
        return None;
    }
    forget_pids(&mut actions);
    let key = found.key?;
    let in_port = key
        .find(3)
        .and_then(|a| a.u32())
        .map_or(PortNo::NONE, PortNo);
    let context = ActionContext {
        features: &shared.features,
        pid: shared.pid(in_port),
    };
    let mut writer = AttrWriter::new();
    encode_actions(&actions, &context, &mut writer).ok()?;
    let bytes = writer.into_bytes().ok()?;
    let ufid: Option<&UfidBytes> = found.ufid.as_ref();
    let put = FlowPut {
        ufid,
        key: key.bytes(),
        mask: None,
        actions: Some(&bytes),
        create: false,
        replace: true,
        clear: false,
        probe: false,
    };
    Some(flow::put(shared.kernel.families.flow, shared.dp, &put, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_has_a_socket_and_allowed_ones_their_own() {
        let sockets = [(0, 100), (1, 101)];
        // CPUs 1 and 6 of 8, with a gap in the numbers.
        assert_eq!(
            pids_by_cpu(&[1, 6], 8, &sockets),
            [100, 100, 100, 101, 100, 101, 101, 101]
        );
        assert_eq!(pids_by_cpu(&[0, 1], 2, &sockets), [100, 101]);
        assert_eq!(pids_by_cpu(&[0], 4, &sockets[..1]), [100; 4]);
    }
}
