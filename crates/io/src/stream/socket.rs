//! Sockets under streams and listeners.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, sockopt};

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    Ok(rustix::net::socketpair(family, kind, FLAGS, None)?)
}

/// A unix socket's address, and what must stay open as long as it is used: a path that is
/// too long for an address is reached through its open directory.
struct UnixAddress {
    address: SocketAddrUnix,
    _directory: Option<OwnedFd>,
}

impl UnixAddress {
    fn new(path: &Path) -> io::Result<Self> {
        match SocketAddrUnix::new(path) {
            Ok(address) => Ok(Self {
                address,
                _directory: None,
            }),
            Err(Errno::NAMETOOLONG) => {
                let parent = path.parent().unwrap_or(Path::new("/"));
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let directory = rustix::fs::open(parent, flags, Mode::empty())?;
                let name = path.file_name().ok_or(Errno::INVAL)?;
                let short = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
                Ok(Self {
                    address: SocketAddrUnix::new(short.join(name))?,
                    _directory: Some(directory),
                })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Begins to connect to `path`.
pub(super) fn connect_unix(path: &Path) -> io::Result<OwnedFd> {
    let address = UnixAddress::new(path)?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    rustix::net::connect(&socket, &address.address)?;
    Ok(socket)
}

/// Listens on `path`, which replaces what is there.
pub(super) fn listen_unix(path: &Path) -> io::Result<OwnedFd> {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        let text = base::errno_text(&error);
        log::warn!(target: "socket_util_unix", "unlinking \"{}\": {text}\n", path.display());
    }
    let address = UnixAddress::new(path)?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    // The mode of the socket becomes that of the file, less the umask.
    rustix::fs::fchmod(&socket, Mode::RWXU | Mode::RWXG)?;
    let bind = || {
        rustix::net::bind(&socket, &address.address)?;
        rustix::net::listen(&socket, 64)
    };
    if let Err(error) = bind() {
        let error = io::Error::from(error);
        let text = base::errno_text(&error);
        log::error!(target: "stream_unix", "{}: binding failed: {text}", path.display());
        return Err(error);
    }
    Ok(socket)
}

fn family(address: &SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

fn set_dscp(socket: &OwnedFd, address: &SocketAddr, dscp: u8) -> io::Result<()> {
    let tos = dscp << 2;
    match address {
        SocketAddr::V4(_) => sockopt::set_ip_tos(socket, tos)?,
        SocketAddr::V6(_) => sockopt::set_ipv6_tclass(socket, tos.into())?,
    }
    Ok(())
}

/// Begins to connect to `address`; whether that is done already comes back too.
pub(super) fn connect_tcp(address: &SocketAddr, dscp: u8) -> io::Result<(OwnedFd, bool)> {
    let socket = rustix::net::socket_with(family(address), SocketType::STREAM, FLAGS, None)?;
    set_dscp(&socket, address, dscp)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match rustix::net::connect(&socket, address) {
        Ok(()) => Ok((socket, true)),
        Err(Errno::INPROGRESS) => Ok((socket, false)),
        Err(error) => Err(error.into()),
    }
}

/// Listens on `address`.  `target` is what the name says of it, for log lines.
pub(super) fn listen_tcp(address: &SocketAddr, dscp: u8, target: &str) -> io::Result<OwnedFd> {
    let step = |what: &str, result: Result<(), Errno>| {
        result.map_err(|error| {
            let error = io::Error::from(error);
            let text = base::errno_text(&error);
            log::error!(target: "socket_util", "{target}: {what}: {text}");
            error
        })
    };
    let socket = rustix::net::socket_with(family(address), SocketType::STREAM, FLAGS, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    step("bind", rustix::net::bind(&socket, address))?;
    set_dscp(&socket, address, dscp)?;
    step("listen", rustix::net::listen(&socket, 64))?;
    if address.port() == 0
        && let Some(bound) = local_address(&socket)
    {
        let port = bound.port();
        log::info!(target: "socket_util", "{target}: listening on port {port}");
    }
    Ok(socket)
}

/// Whether a connection under way is made.
pub(super) fn finish_connect(socket: &OwnedFd) -> io::Result<()> {
    sockopt::socket_error(socket)??;
    match rustix::net::getpeername(socket) {
        Ok(_) => Ok(()),
        Err(Errno::NOTCONN) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn accept(socket: &OwnedFd) -> io::Result<OwnedFd> {
    Ok(rustix::net::accept_with(socket, FLAGS)?)
}

/// Whether the process or the system has no file descriptor left.
pub(super) fn is_out_of_files(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    )
}

/// A file descriptor that is good for nothing but being closed.
pub(super) fn spare() -> io::Result<OwnedFd> {
    let flags = rustix::event::EventfdFlags::CLOEXEC;
    Ok(rustix::event::eventfd(0, flags)?)
}

fn ip(address: SocketAddrAny) -> Option<SocketAddr> {
    SocketAddr::try_from(address).ok()
}

pub(super) fn local_address(socket: impl AsFd) -> Option<SocketAddr> {
    ip(rustix::net::getsockname(socket).ok()?)
}

pub(super) fn peer_address(socket: impl AsFd) -> Option<SocketAddr> {
    ip(rustix::net::getpeername(socket).ok()??)
}
