//! Ways to the system log.

use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;

/// How the system log is reached.
#[derive(Debug, Default)]
pub(super) enum SyslogMethod {
    /// The socket of the C library, in its form.
    #[default]
    Libc,
    /// Not at all.
    Null,
    /// A unix datagram socket, with only the priority in front.
    Unix(String),
    /// UDP to an address and port.
    Udp(String),
}

impl SyslogMethod {
    /// Reads `libc`, `null`, `unix:FILE` or `udp:IP:PORT`; anything else is as `libc`.
    pub(super) fn parse(text: &str) -> Self {
        if let Some(file) = text.strip_prefix("unix:") {
            Self::Unix(file.to_owned())
        } else if let Some(address) = text.strip_prefix("udp:") {
            Self::Udp(address.to_owned())
        } else if text == "null" {
            Self::Null
        } else {
            Self::Libc
        }
    }
}

#[derive(Debug)]
enum Socket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
}

#[derive(Debug, Default)]
pub(super) struct Syslog {
    method: SyslogMethod,
    socket: Option<Socket>,
    target: Option<UdpSocket>,
}

impl Syslog {
    pub(super) fn set_method(&mut self, method: SyslogMethod) {
        self.method = method;
        self.socket = None;
    }

    pub(super) fn set_target(&mut self, target: &str) -> Result<(), String> {
        let open = || -> std::io::Result<UdpSocket> {
            let v6 = target.starts_with('[');
            let socket = UdpSocket::bind(if v6 { "[::]:0" } else { "0.0.0.0:0" })?;
            socket.connect(target)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|e| format!("{target}: {}", crate::errno_text(&e)))?;
        self.target = Some(socket);
        Ok(())
    }

    fn open(&self) -> std::io::Result<Option<Socket>> {
        Ok(match &self.method {
            SyslogMethod::Null => None,
            SyslogMethod::Libc => Some(Socket::Unix(connect("/dev/log")?)),
            SyslogMethod::Unix(path) => Some(Socket::Unix(connect(path)?)),
            SyslogMethod::Udp(address) => {
                let v6 = address.starts_with('[');
                let socket = UdpSocket::bind(if v6 { "[::]:0" } else { "0.0.0.0:0" })?;
                socket.connect(address)?;
                socket.set_nonblocking(true)?;
                Some(Socket::Udp(socket))
            }
        })
    }

    pub(super) fn has_target(&self) -> bool {
        self.target.is_some()
    }

    pub(super) fn send_to_target(&self, message: &str) {
        if let Some(target) = &self.target {
            // A message that cannot be sent is lost, as it is in C.
            let _ = target.send(message.as_bytes());
        }
    }

    /// The pattern of what stands before a message: the C library's form for its socket, the
    /// bare priority otherwise.
    pub(super) fn lead(&self) -> &'static str {
        match self.method {
            SyslogMethod::Libc => "<%B>%d{%b %e %T} %A: ",
            _ => "<%B>",
        }
    }

    /// Sends one line; a message that cannot be sent is lost, as it is in C.
    pub(super) fn send(&mut self, message: &str) {
        if self.socket.is_none() {
            self.socket = self.open().ok().flatten();
        }
        let sent = match &self.socket {
            None => return,
            Some(Socket::Unix(socket)) => socket.send(message.as_bytes()),
            Some(Socket::Udp(socket)) => socket.send(message.as_bytes()),
        };
        if sent.is_err() {
            // The daemon behind it may have been restarted: open anew next time.
            self.socket = None;
        }
    }
}

fn connect(path: &str) -> std::io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
