//! Opens Linux devices and follows their links.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, Weak};

use net_dev::{Device, Provider};
use net_netlink::route::{Link, group, kind};
use net_nlsock::route::Routes;
use net_nlsock::{EventSocket, Events, Protocol};
use sys::netns::NetNs;

use crate::link::{LinkHandle, lock};
use crate::system::SystemDevice;
use crate::tap::TapDevice;

#[derive(Clone, Debug)]
enum Open {
    System(Weak<SystemDevice>),
    Tap(Weak<TapDevice>),
}

enum Live {
    System(Arc<SystemDevice>),
    Tap(Arc<TapDevice>),
}

impl Open {
    fn live(&self) -> Option<Live> {
        match self {
            Self::System(device) => device.upgrade().map(Live::System),
            Self::Tap(device) => device.upgrade().map(Live::Tap),
        }
    }
}

impl Live {
    fn link(&self) -> &LinkHandle {
        match self {
            Self::System(device) => device.link(),
            Self::Tap(device) => device.link(),
        }
    }

    fn update(&self, link: &Link) {
        match self {
            Self::System(device) => device.update(link),
            // A tap that vanished is gone for good: its file is dead.
            Self::Tap(device) => {
                if device.link().ifindex() == Some(link.index) {
                    device.link().update(link);
                }
            }
        }
    }
}

/// Links that are known, by number, and the open devices, by name.
#[derive(Debug, Default)]
struct Known {
    names: HashMap<u32, String>,
    open: HashMap<String, Open>,
}

impl Known {
    fn live(&self, name: &str) -> Option<Live> {
        self.open.get(name)?.live()
    }

    /// The link `index` no longer has the name `name`.
    fn lose(&self, index: u32, name: &str) {
        if let Some(device) = self.live(name)
            && device.link().ifindex() == Some(index)
        {
            device.link().vanish();
        }
    }

    fn gain(&mut self, link: &Link, changed: &mut BTreeSet<String>) {
        let old = self.names.insert(link.index, link.name.clone());
        if let Some(old) = old.filter(|old| *old != link.name) {
            self.lose(link.index, &old);
            changed.insert(old);
        }
        if let Some(device) = self.live(&link.name) {
            device.update(link);
        }
        changed.insert(link.name.clone());
    }
}

/// Opens the kinds `system` (a device that exists) and `tap` or `internal` (one that is made) in the network namespace
/// that it was made in.
#[derive(Debug)]
pub struct LinuxProvider {
    netns: Option<Arc<NetNs>>,
    routes: Arc<Mutex<Routes>>,
    events: Mutex<EventSocket>,
    events_fd: std::os::fd::OwnedFd,
    known: Mutex<Known>,
}

impl LinuxProvider {
    /// For the network namespace of the calling thread.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn new() -> io::Result<Self> {
        let events = EventSocket::open(Protocol::Route, &[group::LINK])?;
        let events_fd = events.as_fd().try_clone_to_owned()?;
        let mut routes = Routes::open()?;
        let names = routes.links()?.into_iter().map(|l| (l.index, l.name));
        let known = Known {
            names: names.collect(),
            open: HashMap::new(),
        };
        Ok(Self {
            netns: None,
            routes: Arc::new(Mutex::new(routes)),
            events: Mutex::new(events),
            events_fd,
            known: Mutex::new(known),
        })
    }

    /// For another network namespace, wherever the calling thread is.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn new_in(netns: NetNs) -> io::Result<Self> {
        let mut provider = netns.run(Self::new)??;
        provider.netns = Some(Arc::new(netns));
        Ok(provider)
    }

    /// Runs `f` in the provider's namespace.
    fn inside<T: Send>(&self, f: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        match &self.netns {
            Some(netns) => netns.run(f)?,
            None => f(),
        }
    }

    /// Reads all links anew, after events were lost.
    fn resync(&self, known: &mut Known, changed: &mut BTreeSet<String>) -> io::Result<()> {
        let links = lock(&self.routes).links()?;
        let there: BTreeSet<u32> = links.iter().map(|l| l.index).collect();
        let gone: Vec<u32> = known
            .names
            .keys()
            .copied()
            .filter(|index| !there.contains(index))
            .collect();
        for index in gone {
            if let Some(name) = known.names.remove(&index) {
                known.lose(index, &name);
                changed.insert(name);
            }
        }
        for link in &links {
            known.gain(link, changed);
        }
        Ok(())
    }
}

impl Provider for LinuxProvider {
    fn kinds(&self) -> Vec<String> {
        ["system", "tap", "internal"].map(str::to_owned).to_vec()
    }

    fn open(&self, name: &str, kind: &str) -> io::Result<Arc<dyn Device>> {
        let is_system = match kind {
            "system" => true,
            "tap" | "internal" => false,
            _ => {
                let text = format!("unknown device type \"{kind}\"");
                return Err(io::Error::new(io::ErrorKind::Unsupported, text));
            }
        };
        let mut known = lock(&self.known);
        match known.live(name) {
            Some(Live::System(device)) if is_system => return Ok(device),
            Some(Live::Tap(device)) if !is_system => return Ok(device),
            Some(_) => return Err(io::Error::from_raw_os_error(17)),
            None => {}
        }
        let (open, device): (Open, Arc<dyn Device>) = if is_system {
            let device = SystemDevice::open(name, &self.routes, self.netns.clone())?;
            let device = Arc::new(device);
            (Open::System(Arc::downgrade(&device)), device)
        } else {
            let device = Arc::new(self.inside(|| TapDevice::open(name, &self.routes))?);
            (Open::Tap(Arc::downgrade(&device)), device)
        };
        if let Some(index) = device.state().ifindex {
            known.names.insert(index, name.to_owned());
        }
        // Names of devices that were closed are swept out now and then.
        if known.open.len() >= 64 && known.open.len().is_power_of_two() {
            known.open.retain(|_, open| open.live().is_some());
        }
        known.open.insert(name.to_owned(), open);
        Ok(device)
    }

    fn events_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.events_fd.as_fd())
    }

    fn take_events(&self) -> Vec<String> {
        let mut known = lock(&self.known);
        let mut changed = BTreeSet::new();
        let outcome = lock(&self.events).read(|message| {
            let Some(link) = Link::parse(message) else {
                return;
            };
            if message.header.kind == kind::DEL_LINK {
                known.names.remove(&link.index);
                known.lose(link.index, &link.name);
                changed.insert(link.name);
            } else {
                known.gain(&link, &mut changed);
            }
        });
        if !matches!(outcome, Ok(Events::Complete)) {
            // A failure is one of the socket's, and the next event brings it again.
            let _ = self.resync(&mut known, &mut changed);
        }
        changed.into_iter().collect()
    }
}
