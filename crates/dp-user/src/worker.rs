//! A thread that serves ports: it blocks in epoll, and takes a batch from each port that has packets, in turn.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use dp_lang::PortNo;
use net_dev::Receiver;
use net_packet::Batch;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::balance::{Advice, FIRST, Meter};
use crate::engine::Engine;
use crate::registry::lock;
use crate::shared::{Command, Mailbox, Shared};

/// The event data of the wake-up descriptor.
const WAKE: u64 = u64::MAX;

/// Failures in a row after which a port is set aside for [`ASIDE`].
const FAILURES: u32 = 16;

/// How long a port that fails is not asked, in seconds.
const ASIDE: i64 = 1;

struct Served {
    number: PortNo,
    receiver: Box<dyn Receiver>,
    failures: u32,
}

struct Worker {
    shared: Arc<Shared>,
    mailbox: Arc<Mailbox>,
    engine: Engine,
    epoll: std::os::fd::OwnedFd,
    served: Vec<Option<Served>>,
    /// Ports that fail all the time and are out of the epoll set.
    aside: Vec<usize>,
    batch: Batch,
    worker: usize,
    meter: Meter,
}

/// Ends the process if the thread panics: a datapath with a dead thread would look alive and drop everything.
struct EndOnPanic;

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Starts worker `worker`, whose mailbox is registered.
pub(crate) fn spawn(shared: &Arc<Shared>, worker: usize) -> io::Result<JoinHandle<()>> {
    let mailbox = shared.mailbox(worker);
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    if let Some(wake) = mailbox.wake_fd() {
        let data = epoll::EventData::new_u64(WAKE);
        epoll::add(&epoll, wake, data, epoll::EventFlags::IN)?;
    }
    let worker_loop = Worker {
        shared: shared.clone(),
        mailbox,
        engine: Engine::new(shared, worker),
        epoll,
        served: Vec::new(),
        aside: Vec::new(),
        batch: Batch::new(),
        worker,
        meter: Meter::default(),
    };
    let name = format!("dp{worker}");
    std::thread::Builder::new().name(name).spawn(move || {
        let _end = EndOnPanic;
        worker_loop.run();
    })
}

impl Worker {
    fn run(mut self) {
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            let second = Timespec {
                tv_sec: ASIDE,
                tv_nsec: 0,
            };
            let timeout = (!self.aside.is_empty()).then_some(&second);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                // Only a broken descriptor is left, which is a bug.
                Err(e) => panic!("epoll: {e}"),
            }
            if events.is_empty() {
                self.readmit();
            }
            self.mailbox.epoch.enter();
            let go_on = self.round(&events);
            self.mailbox.epoch.leave();
            if !go_on {
                return;
            }
            self.balance();
        }
    }

    fn round(&mut self, events: &[epoll::Event]) -> bool {
        let now = self.shared.clock.now();
        let mut begun = self.shared.clock.real();
        for event in events {
            let data = event.data.u64();
            if data == WAKE {
                if let Some(wake) = self.mailbox.wake_fd() {
                    // It only has to be empty.
                    let _ = rustix::io::read(wake, &mut [0; 8]);
                }
                continue;
            }
            let index = data as usize;
            let Some(number) = self.receive(index) else {
                continue;
            };
            // Whatever was installed before these packets came is in the mailbox by now.
            if !self.obey() {
                return false;
            }
            self.engine.receive(&mut self.batch, number, now);
            let done = self.shared.clock.real();
            self.meter.note(index, done.since(begun));
            begun = done;
        }
        self.obey()
    }

    /// Takes a batch from a port.
    fn receive(&mut self, index: usize) -> Option<PortNo> {
        let served = self.served.get_mut(index)?.as_mut()?;
        let result = served
            .receiver
            .receive(&mut self.batch, &mut self.engine.pool);
        if result.is_ok() {
            served.failures = 0;
        } else {
            served.failures += 1;
            if served.failures == FAILURES
                && let Some(fd) = served.receiver.fd()
                && epoll::delete(&self.epoll, fd).is_ok()
            {
                self.aside.push(index);
            }
        }
        (!self.batch.is_empty()).then_some(served.number)
    }

    /// Asks the ports that were set aside again.
    fn readmit(&mut self) {
        for index in std::mem::take(&mut self.aside) {
            if let Some(Some(served)) = self.served.get_mut(index) {
                served.failures = 0;
                if watch(&self.epoll, served, index).is_err() {
                    self.aside.push(index);
                }
            }
        }
    }

    /// Does what the mailbox says; false to stop.
    fn obey(&mut self) -> bool {
        for command in self.engine.obey() {
            match command {
                Command::AddPort(number, receiver) => self.add(number, receiver),
                Command::RemovePort(number, done) => {
                    self.remove(number);
                    // Whoever asked may have given up.
                    let _ = done.send(());
                }
                Command::Stop => return false,
                Command::Insert(_) | Command::Remove(_) | Command::Sweep => {}
            }
        }
        true
    }

    /// Evens out the load of the threads.
    fn balance(&mut self) {
        let now = self.shared.clock.real();
        let shared = &self.shared;
        let loads = || {
            let all = shared.mailboxes();
            all.iter().map(|m| m.stats.load.get(now)).collect()
        };
        let report = &self.mailbox.stats.load;
        match self.meter.judge(self.worker, now, report, loads) {
            Advice::Keep => {}
            Advice::Move { places, to } => self.hand_over(&places, to),
            Advice::Return => {
                let all: Vec<usize> = (0..self.served.len()).collect();
                self.hand_over(&all, FIRST);
            }
        }
    }

    /// Has another thread serve the ports at `places`.  Packets that came in are done, so that none overtakes
    /// another.
    fn hand_over(&mut self, places: &[usize], to: usize) {
        let number = |place: &usize| Some(self.served.get(*place)?.as_ref()?.number);
        let numbers: HashSet<PortNo> = places.iter().filter_map(number).collect();
        if numbers.is_empty() {
            return;
        }
        let flows = self.engine.flows_from(&numbers, to);
        let target = self.shared.mailbox(to);
        target.send_all(flows.into_iter().map(Command::Insert));
        for place in places {
            self.hand_over_port(*place, to);
        }
    }

    fn hand_over_port(&mut self, place: usize, to: usize) {
        let Some(number) = self.served[place].as_ref().map(|s| s.number) else {
            return;
        };
        let ports = self.shared.ports.load_full();
        let Some(port) = ports.get(number) else {
            return;
        };
        let mut worker = lock(&port.worker);
        // Whoever removes a port takes it out of the table before it locks this.
        let ports = self.shared.ports.load();
        let is_there = ports.get(number).is_some_and(|p| Arc::ptr_eq(p, port));
        if !is_there || *worker != self.worker {
            // This thread will be told to give it up.
            return;
        }
        let Some(served) = self.served[place].take() else {
            return;
        };
        self.forget(&served, place);
        let add = Command::AddPort(number, served.receiver);
        self.shared.mailbox(to).send(add);
        *worker = to;
        log::debug!(target: "dpif_netdev", "port {number} moves from dp{} to dp{to}", self.worker);
    }

    /// Waits for a port no longer.
    fn forget(&mut self, served: &Served, place: usize) {
        if let Some(fd) = served.receiver.fd() {
            // It is not there if the port was set aside.
            let _ = epoll::delete(&self.epoll, fd);
        }
        self.aside.retain(|i| *i != place);
    }

    fn add(&mut self, number: PortNo, receiver: Box<dyn Receiver>) {
        let free = self.served.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.served.push(None);
            self.served.len() - 1
        });
        let served = Served {
            number,
            receiver,
            failures: 0,
        };
        if let Err(e) = watch(&self.epoll, &served, index) {
            log::warn!(target: "dpif_netdev", "port {number} cannot be served: {e}");
        }
        self.served[index] = Some(served);
    }

    fn remove(&mut self, number: PortNo) {
        let is = |s: &Option<Served>| s.as_ref().is_some_and(|s| s.number == number);
        if let Some(index) = self.served.iter().position(is)
            && let Some(served) = self.served[index].take()
        {
            self.forget(&served, index);
        }
    }
}

fn watch(epoll: impl AsFd, served: &Served, index: usize) -> io::Result<()> {
    let fd = served.receiver.fd().ok_or(io::ErrorKind::Unsupported)?;
    let data = epoll::EventData::new_u64(index as u64);
    Ok(epoll::add(epoll, fd, data, epoll::EventFlags::IN)?)
}
