//! The kernel's module as this crate speaks to it: families, and sockets for requests.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dp_api::Error;
use net_netlink::genl::Family;
use net_netlink::ovs::family;
use net_netlink::{Builder, Message, errno as number_of};
use net_nlsock::{Completeness, Protocol, Socket, generic};

/// Request sockets that are kept open; more are made when more threads ask at once.
const KEPT: usize = 4;

/// Error numbers that mean something here.
pub(crate) mod errno {
    pub(crate) const ENOENT: i32 = 2;
    pub(crate) const EEXIST: i32 = 17;
    pub(crate) const ENODEV: i32 = 19;
    pub(crate) const EMFILE: i32 = 24;
    pub(crate) const ENFILE: i32 = 23;
    pub(crate) const EFBIG: i32 = 27;
    pub(crate) const EOPNOTSUPP: i32 = 95;
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The numbers of the module's families on this boot.
#[derive(Clone, Debug)]
pub(crate) struct Families {
    pub(crate) datapath: u16,
    pub(crate) vport: u16,
    pub(crate) flow: u16,
    pub(crate) packet: u16,
    /// Kernels from 4.15 on.
    pub(crate) meter: Option<u16>,
    /// Kernels from 4.18 on.
    pub(crate) ct_limit: Option<u16>,
    /// The multicast group of ports.
    pub(crate) vport_group: u32,
}

impl Families {
    fn find(socket: &mut Socket) -> io::Result<Self> {
        let mut get = |name: &str| generic::family(socket, name);
        let datapath = get(family::DATAPATH)?;
        let vport = get(family::VPORT)?;
        let optional = |family: io::Result<Family>| match family {
            Ok(family) => Ok(Some(family.id)),
            Err(e) if number_of(&e) == Some(errno::ENOENT) => Ok(None),
            Err(e) => Err(e),
        };
        Ok(Self {
            datapath: datapath.id,
            vport: vport.id,
            flow: get(family::FLOW)?.id,
            packet: get(family::PACKET)?.id,
            meter: optional(get(family::METER))?,
            ct_limit: optional(get(family::CT_LIMIT))?,
            vport_group: vport
                .group(family::VPORT)
                .ok_or_else(|| io::Error::other("family ovs_vport has no multicast group"))?,
        })
    }
}

/// The module, in the network namespace of the process.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) families: Families,
    sockets: Mutex<Vec<Socket>>,
}

impl Kernel {
    /// Finds the module.
    ///
    /// # Errors
    /// As the kernel gives them: "No such file or directory" if it is not loaded.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::open(Protocol::Generic)?;
        Ok(Self {
            families: Families::find(&mut socket)?,
            sockets: Mutex::new(vec![socket]),
        })
    }

    /// Hands a socket to `f` that nobody else uses meanwhile.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut Socket) -> io::Result<T>) -> io::Result<T> {
        let kept = lock(&self.sockets).pop();
        let mut socket = match kept {
            Some(socket) => socket,
            None => Socket::open(Protocol::Generic)?,
        };
        let result = f(&mut socket);
        let mut sockets = lock(&self.sockets);
        if sockets.len() < KEPT {
            sockets.push(socket);
        }
        result
    }

    /// Sends a request and waits for the outcome.
    pub(crate) fn execute(&self, request: &mut Builder) -> io::Result<()> {
        self.with(|socket| socket.execute(request))
    }

    /// Sends a request and gives what `parse` makes of the last answer that it understands.
    pub(crate) fn ask<T>(
        &self,
        request: &mut Builder,
        mut parse: impl FnMut(&Message<'_>) -> Option<T>,
    ) -> io::Result<T> {
        let mut found = None;
        let keep = |message: &Message<'_>| {
            if let Some(value) = parse(message) {
                found = Some(value);
            }
        };
        self.with(|socket| socket.transact(request, keep))?;
        found.ok_or_else(|| io::Error::other("netlink answer without what was asked for"))
    }

    /// Sends a dump request and gives what `parse` makes of each answer.
    pub(crate) fn list<T>(
        &self,
        request: &mut Builder,
        parse: impl FnMut(&Message<'_>) -> Option<T>,
    ) -> io::Result<Vec<T>> {
        self.with(|socket| socket.dump(request, parse))
    }

    /// Sends a dump request and hands each answer to `visit` as it comes.
    pub(crate) fn visit(
        &self,
        request: &mut Builder,
        visit: impl FnMut(&Message<'_>),
    ) -> io::Result<Completeness> {
        self.with(|socket| socket.visit(request, visit))
    }
}

/// The datapath's error for the system's.
pub(crate) fn error(error: &io::Error) -> Error {
    let text = base::errno_text(error);
    match number_of(error) {
        Some(errno::ENOENT | errno::ENODEV) => Error::NotFound(text),
        Some(errno::EEXIST) => Error::Exists(text),
        Some(number) => Error::System(number, text),
        None => Error::System(0, error.to_string()),
    }
}
