//! One TLS session over a socket.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustls::Connection;

use super::{Tls, der};
use crate::event::Interest;

/// How much may wait to be sent before more is refused.
const OUTPUT_LIMIT: usize = 256 * 1024;

pub(crate) struct TlsSession {
    connection: Connection,
    established: bool,
    /// Set if the peer's CA certificate is to be taken from its chain.
    bootstrap: Option<Tls>,
}

struct Socket<'a>(&'a OwnedFd);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(self.0, buffer, RecvFlags::empty())?.0)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, buffer, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What went wrong; what the peer says of it in OpenSSL's words.
fn error_text(error: &rustls::Error) -> String {
    let rustls::Error::AlertReceived(alert) = error else {
        return error.to_string();
    };
    let mut words = String::new();
    for letter in format!("{alert:?}").chars() {
        if letter.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    format!("ssl/tls alert{words}")
}

fn would_block() -> io::Error {
    io::ErrorKind::WouldBlock.into()
}

impl TlsSession {
    pub(super) fn new(mut connection: Connection, bootstrap: Option<Tls>) -> Self {
        connection.set_buffer_limit(Some(OUTPUT_LIMIT));
        Self {
            connection,
            established: false,
            bootstrap,
        }
    }

    pub(crate) fn interest(&self, wanted: Interest) -> Interest {
        if self.established {
            Interest::new(wanted.read, wanted.write || self.connection.wants_write())
        } else {
            Interest::new(true, self.connection.wants_write())
        }
    }

    pub(crate) fn peer_common_name(&self) -> Option<String> {
        let cert = self.connection.peer_certificates()?.first()?;
        let cert = webpki::EndEntityCert::try_from(cert).ok()?;
        der::common_name(cert.subject())
    }

    /// Sends what waits to be sent, as far as the socket takes it.
    pub(crate) fn flush(&mut self, fd: &OwnedFd) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Socket(fd)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads from the socket once.  `Ok(false)` is its end.
    fn fill(&mut self, fd: &OwnedFd, name: &str) -> io::Result<bool> {
        if self.connection.read_tls(&mut Socket(fd))? == 0 {
            return Ok(false);
        }
        if let Err(error) = self.connection.process_new_packets() {
            // The peer is told why.
            let _ = self.flush(fd);
            let text = error_text(&error);
            base::log_limited!(Warn, "stream_ssl", (10, 25), "{name}: {text}");
            return Err(Errno::PROTO.into());
        }
        Ok(true)
    }

    pub(crate) fn handshake(&mut self, fd: &OwnedFd, name: &str) -> io::Result<()> {
        if self.established {
            return Ok(());
        }
        loop {
            self.flush(fd)?;
            if !self.connection.is_handshaking() {
                break;
            }
            if self.connection.wants_write() {
                return Err(would_block());
            }
            if !self.fill(fd, name)? {
                base::log_limited!(
                    Warn,
                    "stream_ssl",
                    (10, 25),
                    "{name}: connection closed during the TLS handshake"
                );
                return Err(Errno::PROTO.into());
            }
        }
        if let Some(tls) = self.bootstrap.take() {
            tls.bootstrap(self.connection.peer_certificates().unwrap_or_default())?;
        }
        if let Connection::Server(server) = &self.connection
            && let Some(wanted) = server.server_name()
        {
            log::debug!(target: "stream_ssl", "connection indicated server name {wanted}");
        }
        self.established = true;
        Ok(())
    }

    pub(crate) fn recv(
        &mut self,
        fd: &OwnedFd,
        name: &str,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A peer that closes without saying so has closed all the same.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            let open = self.fill(fd, name)?;
            self.flush(fd)?;
            if !open {
                return Ok(0);
            }
        }
    }

    pub(crate) fn send(&mut self, fd: &OwnedFd, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.flush(fd)?;
        let sent = self.connection.writer().write_vectored(buffers)?;
        self.flush(fd)?;
        if sent == 0 && buffers.iter().any(|b| !b.is_empty()) {
            return Err(would_block());
        }
        Ok(sent)
    }
}
