//! Streams and listeners of every kind.

use std::io::{ErrorKind, IoSlice, Result};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::{Clock, Dirs, Instant};
use io::stream::Resolve;
use io::{Interest, Net, Poll, Stream, Token};

/// A directory that goes when the test ends.
pub(crate) struct TempDir(pub(crate) PathBuf);

impl TempDir {
    pub(crate) fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("sluice-io-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    pub(crate) fn net(&self) -> Net {
        let mut dirs = Dirs::from_env();
        dirs.run.clone_from(&self.0);
        Net::new(&dirs)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Does `step` until it would not block, waiting a little in between.
pub(crate) fn until<T>(mut step: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match step() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

/// Sends a greeting one way and an answer the other, then closes.
fn talk(client: &mut Stream, server: &mut Stream) {
    until(|| client.connect()).unwrap();
    let parts = [IoSlice::new(b"hel"), IoSlice::new(b"lo")];
    assert_eq!(until(|| client.send(&parts)).unwrap(), 5);
    let mut buffer = [0; 16];
    assert_eq!(until(|| server.recv(&mut buffer)).unwrap(), 5);
    assert_eq!(&buffer[..5], b"hello");
    assert_eq!(until(|| server.send(&[IoSlice::new(b"ok")])).unwrap(), 2);
    assert_eq!(until(|| client.recv(&mut buffer)).unwrap(), 2);
}

fn ends(mut server: Stream, client: Stream) {
    drop(client);
    let mut buffer = [0; 16];
    assert_eq!(until(|| server.recv(&mut buffer)).unwrap(), 0);
}

#[test]
fn streams_of_every_kind() {
    let dir = TempDir::new("kinds");
    let net = dir.net();
    // Longer than an address can hold.
    let deep = format!("{}/s", "d".repeat(120));
    std::fs::create_dir(dir.0.join("d".repeat(120))).unwrap();
    let names = [
        ("punix:s".to_owned(), "unix:s".to_owned()),
        (format!("punix:{deep}"), format!("unix:{deep}")),
        ("ptcp:0:127.0.0.1".to_owned(), "tcp:127.0.0.1".to_owned()),
        ("ptcp:0:[::1]".to_owned(), "tcp:[::1]".to_owned()),
        ("pmem:db".to_owned(), "mem:db".to_owned()),
    ];
    for (passive, active) in names {
        let mut listener = match net.listen(&passive, 0, 48) {
            Ok(listener) => listener,
            // A machine may have no IPv6.
            Err(error) if passive.contains('[') => {
                eprintln!("{passive}: {error}: skipped");
                continue;
            }
            Err(error) => panic!("{passive}: {error}"),
        };
        let port = listener.port().unwrap_or(0);
        let mut client = net.connect(&active, port, 48).unwrap();
        let mut server = until(|| listener.accept()).unwrap();
        talk(&mut client, &mut server);
        if port != 0 {
            assert_eq!(client.peer(), format!("{}:{port}", &active[4..]));
            assert_eq!(server.name(), format!("tcp:{}", server.peer()));
        } else {
            assert!(server.name().starts_with("unix#"));
        }
        ends(server, client);
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    assert!(!dir.0.join("s").exists() && !dir.0.join(&deep).exists());
    assert_eq!(
        net.connect("mem:db", 0, 0).unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
}

#[test]
fn failures_are_those_of_the_system() {
    let dir = TempDir::new("failures");
    let net = dir.net();
    let errno = |name: &str| {
        let connected = net.connect(name, 6640, 0);
        let outcome = connected.and_then(|mut stream| until(|| stream.connect()));
        outcome.unwrap_err().raw_os_error()
    };
    assert_eq!(errno("unix:none"), Some(2));
    assert_eq!(errno("tcp:127.0.0.1:1"), Some(111));
    assert_eq!(errno("bad:1"), Some(97));
    assert_eq!(errno("tcp:1.2.3:4"), Some(97));
    assert_eq!(errno("ssl:127.0.0.1:1"), Some(92));
}

#[test]
fn a_watched_stream_reports_what_it_waits_for() {
    let (mut a, mut b) = Stream::pair().unwrap();
    let mut poll = Poll::new(&Clock::stopped(Instant::ZERO)).unwrap();
    a.watch(&poll, Token(1), Interest::READ).unwrap();
    a.watch(&poll, Token(1), Interest::READ).unwrap();
    b.watch(&poll, Token(2), Interest::NONE).unwrap();
    b.send(&[IoSlice::new(b"x")]).unwrap();
    let mut events = Vec::new();
    poll.wait(Instant::MAX, &mut events).unwrap();
    assert_eq!((events.len(), events[0].token), (1, Token(1)));
    a.unwatch(&poll);
    events.clear();
    poll.wait(Instant::ZERO, &mut events).unwrap();
    assert_eq!(events, []);
}

#[test]
fn a_host_is_looked_up_while_others_are_served() {
    let dir = TempDir::new("names");
    let mut dirs = Dirs::from_env();
    dirs.run.clone_from(&dir.0);
    let (answer, wait) = std::sync::mpsc::channel::<Result<Vec<IpAddr>>>();
    let (asked, count) = (Arc::new(AtomicUsize::new(0)), std::sync::Mutex::new(wait));
    let counted = Arc::clone(&asked);
    let resolve: Resolve = Arc::new(move |host: &str| {
        assert_eq!(host, "db");
        counted.fetch_add(1, Ordering::Relaxed);
        count.lock().unwrap().recv().unwrap()
    });
    let net = Net::with_resolver(&dirs, resolve);
    let mut listener = net.listen("ptcp:0:127.0.0.1", 0, 0).unwrap();
    let port = listener.port().unwrap();
    let name = format!("tcp:db:{port}");
    let mut poll = Poll::new(&Clock::stopped(Instant::ZERO)).unwrap();
    let mut streams = [
        net.connect(&name, 0, 0).unwrap(),
        net.connect(&name, 0, 0).unwrap(),
    ];
    for (n, stream) in streams.iter_mut().enumerate() {
        assert_eq!(stream.connect().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(stream.peer(), format!("db:{port}"));
        stream
            .watch(&poll, Token(n as u64), Interest::READ)
            .unwrap();
    }
    let mut events = Vec::new();
    poll.wait(Instant::ZERO, &mut events).unwrap();
    assert_eq!(events, [], "nobody knows the address yet");
    // Nobody listens on the first, so the second is taken.
    let ips = ["127.0.0.2", "127.0.0.1"].map(|ip| ip.parse().unwrap());
    answer.send(Ok(ips.to_vec())).unwrap();
    for stream in &mut streams {
        while let Err(error) = stream.connect() {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            stream.watch(&poll, Token(9), Interest::READ).unwrap();
            poll.wait(Instant::MAX, &mut events).unwrap();
        }
        let mut server = until(|| listener.accept()).unwrap();
        assert_eq!(stream.peer(), format!("127.0.0.1:{port}"));
        talk(stream, &mut server);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1, "one question for both");
    let mut late = net.connect(&name, 0, 0).unwrap();
    answer
        .send(Err(std::io::Error::other("no such host")))
        .unwrap();
    let error = until(|| late.connect()).unwrap_err();
    assert_eq!(io::error_text(&error), "no such host");
}

#[test]
fn this_host_has_a_name() {
    let dir = TempDir::new("localhost");
    let net = dir.net();
    let mut listener = net.listen("ptcp:0:127.0.0.1", 0, 0).unwrap();
    let name = format!("tcp:localhost:{}", listener.port().unwrap());
    let mut client = net.connect(&name, 0, 0).unwrap();
    until(|| client.connect()).unwrap();
    let mut server = until(|| listener.accept()).unwrap();
    talk(&mut client, &mut server);
}
