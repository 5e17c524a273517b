//! A thread that serves upcalls.
//!
//! It blocks until a socket has packets; then it moves what is there to queues, one per port, and
//! serves the queues in turn.  A packet that comes alone is so served at once and with one wake-up.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use base::Epoch;
use dp_lang::PortNo;
use net_netlink::Message;
use net_netlink::ovs::packet::Upcall;
use net_nlsock::{Inbox, Protocol, Socket};
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

use super::balance::Served;
use super::item::{Item, port_of};
use super::queue::{Limits, Queues};
use super::serve::Server;
use crate::kernel::lock;
use crate::shared::{Shared, Source};

/// The event data of the wake-up descriptor.
const WAKE: u64 = u64::MAX;

/// Messages that are read by one call.
const READ: usize = 32;

/// Room for one message: a packet of 64 KiB, its key and what goes with it.
const ROOM: usize = (64 << 10) + 4096;

/// Messages that are read of a socket of several ports before others get their turn.
const READ_MOST: usize = 64;

/// A port whose socket is its own has so many packets taken from it ahead of their turn: what waits
/// there costs nothing when it is too much, and what was taken here would be dropped for its copy.
const AHEAD: usize = 96;

/// With so many taken a socket is left alone for now, so that it is read by few calls.
const ENOUGH: usize = AHEAD - READ;

/// Upcalls after which the dispatcher hears of them, even if there is no pause.
const REPORT: u64 = 1024;

/// Buffers that are kept for messages.
const SPARE: usize = 512;

/// What a handler thread and the others share.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) epoll: OwnedFd,
    wake: OwnedFd,
    stop: AtomicBool,
    /// Entered while packets are in the thread's hands.
    pub(crate) epoch: Epoch,
}

impl Control {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let data = epoll::EventData::new_u64(WAKE);
        epoll::add(&epoll, &wake, data, epoll::EventFlags::IN)?;
        Ok(Self {
            epoll,
            wake,
            stop: AtomicBool::new(false),
            epoch: Epoch::default(),
        })
    }

    /// Has the thread read a socket from now on.
    pub(crate) fn watch(&self, token: u64, source: &Source) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        epoll::add(
            &self.epoll,
            source.inbox.as_fd(),
            data,
            epoll::EventFlags::IN,
        )?;
        Ok(())
    }

    /// The thread reads a socket no more.
    pub(crate) fn unwatch(&self, source: &Source) {
        // It may have been another thread's already.
        let _ = epoll::delete(&self.epoll, source.inbox.as_fd());
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        // A counter that is full wakes as well.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// Ends the process if the thread panics: a switch with a dead handler would look alive and lose
/// packets.
struct EndOnPanic;

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

struct Handler {
    shared: Arc<Shared>,
    control: Arc<Control>,
    /// Tells whoever decides on the dispatch of an overflow.
    on_overflow: Arc<dyn Fn() + Send + Sync>,
    inbox: Inbox,
    queues: Queues<Item>,
    server: Server,
    spare: Vec<Vec<u8>>,
    /// Upcalls of each port that the dispatcher does not know of yet.
    counts: HashMap<PortNo, Served>,
    counted: u64,
}

/// Starts handler `index`.
pub(crate) fn spawn(
    index: usize,
    shared: &Arc<Shared>,
    control: &Arc<Control>,
    on_overflow: Arc<dyn Fn() + Send + Sync>,
) -> io::Result<JoinHandle<()>> {
    let handler = Handler {
        shared: shared.clone(),
        control: control.clone(),
        on_overflow,
        inbox: Inbox::new(READ, ROOM),
        queues: Queues::new(Limits::default()),
        server: Server::new(Socket::open(Protocol::Generic)?),
        spare: Vec::new(),
        counts: HashMap::new(),
        counted: 0,
    };
    let builder = thread::Builder::new().name(format!("handler{index}"));
    builder.spawn(move || {
        let _end = EndOnPanic;
        handler.run();
    })
}

impl Handler {
    fn run(mut self) {
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            // What waits is served after a look at what came meanwhile.
            let at_once = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let timeout = (self.queues.len() > 0).then_some(&at_once);
            match epoll::wait(&self.control.epoll, spare_capacity(&mut events), timeout) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                // Only a broken descriptor is left, which is a bug.
                Err(e) => panic!("epoll: {e}"),
            }
            if self.control.stop.load(Ordering::Acquire) {
                return;
            }
            self.control.epoch.enter();
            for event in &events {
                self.read(event.data.u64());
            }
            self.serve();
            self.control.epoch.leave();
            if self.queues.len() == 0 || self.counted >= REPORT {
                self.report();
            }
        }
    }

    /// Moves what a socket holds to the queues.
    fn read(&mut self, token: u64) {
        let sources = self.shared.sources.read();
        let sources = sources.unwrap_or_else(PoisonError::into_inner);
        let Some(source) = sources.get(&token).cloned() else {
            return;
        };
        drop(sources);
        let pid = source.inbox.port_id();
        let most = match source.port.map(|port| self.queues.waiting(port)) {
            Some(waiting) if waiting > ENOUGH => return,
            Some(waiting) => AHEAD - waiting,
            None => READ_MOST,
        };
        let mut read = 0;
        while read < most {
            let now = READ.min(most - read);
            let Self {
                shared,
                inbox,
                queues,
                spare,
                ..
            } = self;
            let received = source.inbox.receive(inbox, now, |message| {
                keep(shared, queues, spare, message, pid)
            });
            let received = match received {
                Ok(received) => received,
                Err(error) => {
                    let why = base::errno_text(&error);
                    base::log_limited!(Warn, "dpif_netlink", (1, 5), "handler: {why}");
                    return;
                }
            };
            let cut = received.cut as u64;
            self.shared.lost.fetch_add(cut, Ordering::Relaxed);
            if received.overflow {
                (self.on_overflow)();
            }
            read += received.messages;
            if received.messages < now {
                return;
            }
        }
    }

    /// Serves one round.
    fn serve(&mut self) {
        let groups = self.queues.round();
        if groups.is_empty() {
            return;
        }
        let now = self.shared.clock.now();
        self.server.serve(&self.shared, &groups, now);
        for group in groups {
            let count = group.items.len() as u64;
            self.counted += count;
            self.counts.entry(group.port).or_default().add(Served {
                count,
                congested: u64::from(group.congested),
            });
            let room = SPARE.saturating_sub(self.spare.len());
            let buffers = group.into_iter().take(room).map(Item::into_buffer);
            self.spare.extend(buffers);
        }
    }

    /// Tells the dispatcher how many upcalls each port had.
    fn report(&mut self) {
        self.counted = 0;
        if !self.counts.is_empty() {
            let ports = self.shared.ports.read();
            let mut served = lock(&self.shared.served);
            for (port, count) in self.counts.drain() {
                served.entry(port).or_default().add(count);
                if let Some(port) = ports.get(port) {
                    port.count_served(count.count);
                }
            }
        }
    }
}

/// Puts a message into its port's queue, or counts it as dropped.
fn keep(
    shared: &Shared,
    queues: &mut Queues<Item>,
    spare: &mut Vec<Vec<u8>>,
    message: &Message<'_>,
    pid: u32,
) {
    let Some(upcall) = Upcall::parse(message).filter(|u| u.dp == shared.dp) else {
        return;
    };
    let port = port_of(&upcall);
    if !queues.has_room(port) {
        if let Some(port) = shared.ports.get(port) {
            port.count_dropped();
        }
        return;
    }
    let item = Item::keep(message, &upcall, pid, spare.pop().unwrap_or_default());
    queues.push(port, item);
}
