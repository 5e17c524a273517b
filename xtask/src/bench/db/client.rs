//! A client of one purpose: it finds where messages end, and looks into them no further.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// A connection.
pub(super) struct Client {
    stream: UnixStream,
    /// What came after the last message.
    rest: Vec<u8>,
    next_id: usize,
}

/// Finds the end of a JSON object that comes in pieces.
#[derive(Clone, Copy, Debug, Default)]
struct Scanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Scanner {
    /// Looks at more bytes; the number of those that belong to the object, if it ends here.
    fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        for (i, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' => self.depth += 1,
                b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(i + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

impl Client {
    /// Connects.
    pub(super) fn connect(path: &Path) -> Result<Self, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        let stream = UnixStream::connect(path).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        Ok(Self {
            stream,
            rest: Vec::new(),
            next_id: 0,
        })
    }

    /// Another handle on the connection, by which it can be shut.
    pub(super) fn handle(&self) -> Result<UnixStream, String> {
        self.stream.try_clone().map_err(|e| e.to_string())
    }

    /// Sends a request.
    pub(super) fn send(&mut self, method: &str, params: &str) -> Result<(), String> {
        self.next_id += 1;
        let id = self.next_id;
        let text = format!("{{\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}");
        let sent = self.stream.write_all(text.as_bytes());
        sent.map_err(|e| format!("{method}: {e}"))
    }

    /// The next message; none at the end of the connection.
    pub(super) fn receive(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut message = std::mem::take(&mut self.rest);
        let mut scanner = Scanner::default();
        let mut seen = 0;
        loop {
            if let Some(more) = scanner.scan(&message[seen..]) {
                self.rest = message.split_off(seen + more);
                return Ok(Some(message));
            }
            seen = message.len();
            message.resize(seen + (1 << 16), 0);
            let count = loop {
                match self.stream.read(&mut message[seen..]) {
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    other => break other.map_err(|e| format!("receive: {e}"))?,
                }
            };
            message.truncate(seen + count);
            if count == 0 {
                return Ok(None);
            }
        }
    }

    /// Sends a request and waits for its reply, which must be no error.  Other messages are
    /// passed over.
    pub(super) fn request(&mut self, method: &str, params: &str) -> Result<Vec<u8>, String> {
        self.send(method, params)?;
        self.reply(method)
    }

    /// The reply to the request that was sent last.
    pub(super) fn reply(&mut self, method: &str) -> Result<Vec<u8>, String> {
        let id = format!("\"id\":{}", self.next_id);
        loop {
            let message = self.receive()?;
            let message = message.ok_or_else(|| format!("{method}: connection closed"))?;
            // The id stands at one of the ends.
            let ends = [
                &message[..message.len().min(64)],
                &message[message.len().saturating_sub(64)..],
            ];
            let ends = ends.map(String::from_utf8_lossy);
            let is_id = |end: &str| {
                let at = end.find(&id).map(|at| at + id.len());
                at.is_some_and(|at| !end[at..].starts_with(|c: char| c.is_ascii_digit()))
            };
            if !ends.iter().any(|end| is_id(end)) {
                continue;
            }
            if message.windows(14).any(|w| w == b"\"error\":\"const")
                || !(ends.iter().any(|end| end.contains("\"error\":null")))
            {
                return Err(format!("{method}: {}", ends[0]));
            }
            return Ok(message);
        }
    }

    /// Reads exactly so many bytes and forgets them.
    pub(super) fn discard(&mut self, mut count: usize) -> Result<(), String> {
        count = count.saturating_sub(std::mem::take(&mut self.rest).len());
        let mut buffer = vec![0; 1 << 18];
        while count > 0 {
            let room = buffer.len().min(count);
            match self.stream.read(&mut buffer[..room]) {
                Ok(0) => return Err("connection closed".into()),
                Ok(read) => count -= read,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(format!("receive: {e}")),
            }
        }
        Ok(())
    }

    /// Reads and forgets until the connection ends.
    pub(super) fn drain(mut self) {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return,
                Err(e) if e.kind() != ErrorKind::Interrupted => return,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_end_where_their_braces_do() {
        let text = br#"{"a":"}\"{","b":{"c":[{}]}}{"next":1}"#;
        for cut in 0..text.len() {
            let mut scanner = Scanner::default();
            let end = scanner
                .scan(&text[..cut])
                .or_else(|| Some(cut + scanner.scan(&text[cut..])?));
            assert_eq!(end, Some(27), "{cut}");
        }
    }
}
