//! The datapath as the switch sees it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::JoinHandle;

use base::{Clock, Instant};
use dp_api::{
    Datapath, DatapathStats, DumpedFlow, Error, Execute, FlowPut, FlowStats, PortInfo, PortSpec,
    PortStats, UpcallHandler,
};
use dp_lang::{Action, Features, PortNo, Ufid, find_stateful};
use net_dev::{Device, Providers, Receiver};
use net_flow::slot;
use net_packet::{Batch, Packet};

use crate::balance::FIRST;
use crate::engine::Engine;
use crate::flow::Matching;
use crate::port::{Port, PortTable};
use crate::registry::lock;
use crate::shared::{Command, Handler, MAIN, Mailbox, Shared};
use crate::worker;

/// Threads at most, whatever the number of processors.
const MAX_THREADS: usize = 4;

/// Types of tunnels, for which dummies stand in among dummies.
const TUNNELS: [&str; 3] = ["geneve", "gre", "vxlan"];

/// Rounds of one call of [`Datapath::run`] at most, so that packets that go round in circles do not hold the main loop.
const MAX_ROUNDS: usize = 100;

/// What a datapath is made with.
#[derive(Clone)]
pub struct Options {
    /// Its type: `netdev` or `dummy`.
    pub kind: String,
    /// Its name, which its local port has too.
    pub name: String,
    /// Whether it is a dummy, or stands in for its type: its numbers and devices are those of tests.
    pub dummy: bool,
    /// Who opens its devices.
    pub devices: Providers,
    /// The process's clock.
    pub clock: Clock,
    /// How many threads serve ports; one for each processor, but at most four, if none is given.
    pub threads: Option<usize>,
}

/// The ports that the main loop serves, and the engine that it does it with.
struct Main {
    engine: Engine,
    receivers: Vec<(PortNo, Box<dyn Receiver>)>,
    batch: Batch,
}

impl Main {
    fn obey(&mut self) {
        for command in self.engine.obey() {
            match command {
                Command::AddPort(number, receiver) => self.receivers.push((number, receiver)),
                Command::RemovePort(number, done) => {
                    self.receivers.retain(|(n, _)| *n != number);
                    // Whoever asked may have given up.
                    let _ = done.send(());
                }
                _ => {}
            }
        }
    }
}

/// The userspace datapath.
pub struct UserDatapath {
    kind: String,
    name: String,
    dummy: bool,
    devices: Providers,
    shared: Arc<Shared>,
    main: Mutex<Main>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    max_threads: usize,
    /// Held while the set of ports changes.
    changing: Mutex<()>,
}

fn system(error: &io::Error) -> Error {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    Error::System(error.raw_os_error().unwrap_or(0), text.to_owned())
}

fn no_port(port: PortNo) -> Error {
    Error::NotFound(format!("no port {port}"))
}

fn no_flow(ufid: Ufid) -> Error {
    Error::NotFound(format!("no flow {ufid}"))
}

impl UserDatapath {
    /// Makes a datapath with its local port and no thread; threads start with the first ports that need them.
    ///
    /// # Errors
    /// The local port's device cannot be made, or the system has no descriptors left.
    pub fn open(options: Options) -> Result<Self, Error> {
        let shared = Arc::new(Shared::new(options.clock).map_err(|e| system(&e))?);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let main = Main {
            engine: Engine::new(&shared, MAIN),
            receivers: Vec::new(),
            batch: Batch::new(),
        };
        let datapath = Self {
            kind: options.kind,
            name: options.name,
            dummy: options.dummy,
            devices: options.devices,
            shared,
            main: Mutex::new(main),
            threads: Mutex::default(),
            max_threads: options.threads.unwrap_or(cpus.min(MAX_THREADS)).max(1),
            changing: Mutex::default(),
        };
        datapath.port_add(&PortSpec {
            name: datapath.name.clone(),
            kind: "internal".to_owned(),
            number: Some(PortNo::LOCAL),
            options: Vec::new(),
        })?;
        Ok(datapath)
    }

    fn is_dummy(&self) -> bool {
        self.dummy
    }

    /// Refuses actions that are not there.  A dummy takes them, since it is for looking at what
    /// the switch says; packets end there.
    fn check_actions(&self, actions: &[Action]) -> Result<(), Error> {
        match find_stateful(actions) {
            Some(missing) if !self.dummy => Err(Error::Unsupported(missing.to_string())),
            _ => Ok(()),
        }
    }

    /// The kind of device that serves as a port of type `kind` here.
    fn device_kind<'a>(&self, kind: &'a str) -> &'a str {
        match kind {
            "internal" if self.is_dummy() => "dummy-internal",
            tunnel if TUNNELS.contains(&tunnel) => "dummy",
            "internal" => "tap",
            "" => "system",
            other => other,
        }
    }

    /// A number for a new port.  Dummies get that in their name, from 100 on for bridges, so that tests can foresee it.
    fn choose(&self, ports: &PortTable, name: &str) -> Result<PortNo, Error> {
        if self.is_dummy() {
            let first = if name.starts_with("br") { 100 } else { 0 };
            let digits: String = name
                .chars()
                .skip_while(|c| !c.is_ascii_digit())
                .take_while(char::is_ascii_digit)
                .collect();
            let wanted = digits
                .parse::<u16>()
                .ok()
                .map(|n| PortNo(first + u32::from(n)));
            if let Some(wanted) = wanted.filter(|n| n.0 > 0 && ports.get(*n).is_none()) {
                return Ok(wanted);
            }
        }
        let full = || Error::Full("no port numbers left".to_owned());
        ports.free(1).ok_or_else(full)
    }

    /// Starts the threads, if they do not run yet.
    fn start_threads(&self) -> io::Result<()> {
        let mut threads = lock(&self.threads);
        while threads.len() < self.max_threads {
            let mailbox = Arc::new(Mailbox::new(true)?);
            let worker = self.shared.add_mailbox(mailbox);
            threads.push(worker::spawn(&self.shared, worker)?);
        }
        Ok(())
    }

    fn port(&self, number: PortNo) -> Result<Arc<Port>, Error> {
        let ports = self.shared.ports.load();
        ports.get(number).cloned().ok_or_else(|| no_port(number))
    }

    /// The worker that meets packets from a port.
    fn worker_for(&self, in_port: PortNo) -> usize {
        self.port(in_port).map_or(MAIN, |port| port.worker())
    }

    /// Runs `f` with the main loop's engine, or with a guest if that is busy on this very thread or another.
    fn with_engine(&self, f: impl FnOnce(&mut Engine)) {
        match self.main.try_lock() {
            Ok(mut main) => {
                main.obey();
                f(&mut main.engine);
            }
            Err(TryLockError::Poisoned(poisoned)) => f(&mut poisoned.into_inner().engine),
            Err(TryLockError::WouldBlock) => f(&mut Engine::guest(&self.shared, MAIN)),
        }
    }
}

/// What the userspace datapath can do.  A dummy says that it can do more, so that translations
/// for datapaths that can may be looked at.
fn features(dummy: bool) -> Features {
    Features {
        masked_set: true,
        ufid: true,
        trunc: true,
        clone: true,
        sample_nesting: 10,
        ct_clear: dummy,
        max_hash_algorithm: 1,
        check_pkt_len: true,
        explicit_drop: true,
        ct_zero_snat: dummy,
        max_vlan_headers: 1,
        max_mpls_depth: 3,
        recirc: true,
        ct_state: dummy,
        ct_zone: dummy,
        ct_mark: dummy,
        ct_label: dummy,
        ct_state_nat: dummy,
        ct_orig_tuple: dummy,
        ct_orig_tuple6: dummy,
        nd_extensions: true,
        tunnels: dummy,
        ..Features::default()
    }
}

impl Datapath for UserDatapath {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn features(&self) -> Features {
        features(self.dummy)
    }

    fn is_userspace(&self) -> bool {
        true
    }

    fn set_handler(&self, handler: Arc<dyn UpcallHandler>) {
        self.shared.handler.store(Some(Arc::new(Handler(handler))));
    }

    fn port_add(&self, spec: &PortSpec) -> Result<PortNo, Error> {
        let _changing = lock(&self.changing);
        let ports = self.shared.ports.load_full();
        if ports.by_name(&spec.name).is_some() {
            return Err(Error::Exists(format!("port {} exists", spec.name)));
        }
        let number = match spec.number {
            Some(number) if ports.get(number).is_some() => {
                return Err(Error::Exists(format!("port number {number} is taken")));
            }
            Some(number) if number.0 > u32::from(u16::MAX) => {
                return Err(Error::Invalid(format!("port number {number} is too large")));
            }
            Some(number) => number,
            None => self.choose(&ports, &spec.name)?,
        };
        let is_stand_in = TUNNELS.contains(&spec.kind.as_str());
        if is_stand_in && !self.dummy {
            let kind = &spec.kind;
            return Err(Error::Unsupported(format!(
                "the userspace datapath has no {kind} ports yet"
            )));
        }
        let kind = self.device_kind(&spec.kind);
        let device = self.devices.open(&spec.name, kind);
        let device = device.map_err(|e| system(&e))?;
        device.set_options(&spec.options).map_err(Error::Invalid)?;
        let receiver = device.open_receiver().map_err(|e| system(&e))?;
        let worker = if receiver.fd().is_some() {
            self.start_threads().map_err(|e| system(&e))?;
            FIRST
        } else {
            MAIN
        };
        let port = Port {
            number,
            device,
            stands_for: is_stand_in.then(|| spec.kind.clone()),
            worker: Mutex::new(worker),
            tx_dropped: AtomicU64::new(0),
        };
        self.shared
            .ports
            .store(Arc::new(ports.with(Arc::new(port))));
        let add = Command::AddPort(number, receiver);
        self.shared.mailbox(worker).send(add);
        Ok(number)
    }

    fn port_del(&self, number: PortNo) -> Result<(), Error> {
        let _changing = lock(&self.changing);
        if number == PortNo::LOCAL {
            let text = format!("port {number} is the datapath's own");
            return Err(Error::Invalid(text));
        }
        let port = self.port(number)?;
        let ports = self.shared.ports.load_full().without(number);
        self.shared.ports.store(Arc::new(ports));
        let (done, wait) = sync_channel(1);
        let remove = Command::RemovePort(number, done);
        let worker = {
            // Its worker may just be handing it to another; who takes it comes to see that it is gone.
            let worker = lock(&port.worker);
            self.shared.mailbox(*worker).send(remove);
            *worker
        };
        if worker == MAIN {
            // If the engine is busy it is on this thread, and obeys when it is done.
            self.with_engine(|_| ());
        } else {
            // The device closes when the last thread has let go of it, and it is to be closed when this returns.
            let _ = wait.recv();
            self.shared.quiesce();
        }
        Ok(())
    }

    fn port_set(&self, port: PortNo, options: &[(String, String)]) -> Result<(), Error> {
        let port = self.port(port)?;
        port.device.set_options(options).map_err(Error::Invalid)
    }

    fn ports(&self) -> Vec<PortInfo> {
        let ports = self.shared.ports.load();
        let infos = ports.iter().map(|port| PortInfo {
            number: port.number,
            name: port.device.name().to_owned(),
            kind: match &port.stands_for {
                Some(kind) => kind.clone(),
                None => port.device.kind().to_owned(),
            },
        });
        infos.collect()
    }

    fn port_device(&self, port: PortNo) -> Result<Arc<dyn Device>, Error> {
        Ok(self.port(port)?.device.clone())
    }

    fn port_stats(&self, port: PortNo) -> Result<PortStats, Error> {
        let port = self.port(port)?;
        let stats = port.device.stats().map_err(|e| system(&e))?;
        let dropped = port.tx_dropped.load(Ordering::Relaxed);
        Ok(PortStats {
            rx_packets: stats.rx_packets.unwrap_or(0),
            rx_bytes: stats.rx_bytes.unwrap_or(0),
            rx_dropped: stats.rx_dropped.unwrap_or(0),
            rx_errors: stats.rx_errors.unwrap_or(0),
            tx_packets: stats.tx_packets.unwrap_or(0),
            tx_bytes: stats.tx_bytes.unwrap_or(0),
            tx_dropped: stats.tx_dropped.unwrap_or(0) + dropped,
            tx_errors: stats.tx_errors.unwrap_or(0),
        })
    }

    fn flow_put(&self, flow: FlowPut) -> Result<Ufid, Error> {
        self.check_actions(&flow.actions)?;
        if flow.zero_stats {
            let text = "counters belong to the threads and are not reset";
            return Err(Error::Unsupported(text.to_owned()));
        }
        let mask = flow.mask.expand_mask();
        if mask.get(slot::IN_PORT) != slot::IN_PORT.max() {
            let what = if flow.replace { "[modify]" } else { "[create]" };
            base::log_limited!(
                Error,
                "dpif_netdev",
                (1, 5),
                "failed to put{what} flow: in_port is not an exact match"
            );
            let text = "a flow must match its input port exactly";
            return Err(Error::Invalid(text.to_owned()));
        }
        let key = flow.key.expand();
        let matching = Matching::new(&key, &mask);
        let ufid = flow
            .ufid
            .unwrap_or_else(|| Ufid::of(&matching.key, &matching.mask));
        {
            let flows = lock(&self.shared.flows);
            if let Some(entry) = flows.get(ufid) {
                if !flow.replace {
                    return Err(Error::Exists(format!("flow {ufid} exists")));
                }
                entry.set_actions(&flow.actions);
                return Ok(ufid);
            }
        }
        let worker = self.worker_for(PortNo(key.get(slot::IN_PORT) as u32));
        let installed = self.shared.install(worker, ufid, matching, flow.actions);
        if let (flow, true) = installed {
            self.shared.mailbox(worker).send(Command::Insert(flow));
        }
        Ok(ufid)
    }

    fn flow_del(&self, ufid: Ufid) -> Result<FlowStats, Error> {
        self.shared.remove(ufid).ok_or_else(|| no_flow(ufid))
    }

    fn flow_get(&self, ufid: Ufid) -> Result<DumpedFlow, Error> {
        let flows = lock(&self.shared.flows);
        let found = flows.get(ufid).and_then(|entry| entry.dump());
        found.ok_or_else(|| no_flow(ufid))
    }

    fn flow_flush(&self) {
        self.shared.flush();
    }

    fn flow_dump(&self, visit: &mut dyn FnMut(DumpedFlow) -> bool) {
        let all = lock(&self.shared.flows).all();
        for flow in all.iter().filter_map(|entry| entry.dump()) {
            if !visit(flow) {
                return;
            }
        }
    }

    fn flow_counts(&self, visit: &mut dyn FnMut(Ufid, &FlowStats)) {
        let all = lock(&self.shared.flows).counts();
        for (ufid, stats) in &all {
            visit(*ufid, stats);
        }
    }

    fn execute(&self, execute: Execute) -> Result<(), Error> {
        self.check_actions(&execute.actions)?;
        let now = self.shared.clock.now();
        let packet = Packet::from_frame(&execute.packet);
        self.with_engine(|engine| engine.send(packet, &execute.key, &execute.actions, now));
        Ok(())
    }

    fn run(&self, now: Instant) -> bool {
        let Ok(mut main) = self.main.try_lock() else {
            return false;
        };
        let main = &mut *main;
        let mut any = false;
        for _ in 0..MAX_ROUNDS {
            main.obey();
            let mut more = false;
            for (number, receiver) in &mut main.receivers {
                let batch = &mut main.batch;
                // Dummies do not fail, and another device's failure shows in its state.
                let _ = receiver.receive(batch, &mut main.engine.pool);
                if !batch.is_empty() {
                    more = true;
                    main.engine.receive(batch, *number, now);
                }
            }
            any |= more;
            if !more {
                break;
            }
        }
        any
    }

    fn set_vlan_limit(&self, limit: u8) {
        let most = net_flow::extract::MAX_VLANS;
        let limit = if limit == 0 { most } else { limit.min(most) };
        self.shared.max_vlans.store(limit, Ordering::Relaxed);
    }

    fn quiesce(&self) {
        self.shared.quiesce();
    }

    fn stats(&self) -> DatapathStats {
        let mut all = DatapathStats::default();
        for mailbox in self.shared.mailboxes() {
            let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            all.hits += get(&mailbox.stats.hits);
            all.misses += get(&mailbox.stats.misses);
            all.lost += get(&mailbox.stats.lost);
            all.mask_hits += get(&mailbox.stats.visited);
            *all.cache_hits.get_or_insert_default() += get(&mailbox.stats.cache_hits);
        }
        let flows = lock(&self.shared.flows);
        all.flows = flows.len() as u64;
        all.masks = flows.masks() as u64;
        all
    }
}

impl Drop for UserDatapath {
    fn drop(&mut self) {
        for mailbox in self.shared.mailboxes() {
            mailbox.send(Command::Stop);
        }
        for thread in lock(&self.threads).drain(..) {
            // A thread that panicked has ended the process.
            let _ = thread.join();
        }
    }
}
