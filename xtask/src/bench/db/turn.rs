//! One turn of a server: a database's life.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use base::Clock;
use testkit::Scratch;

use super::client::Client;
use super::data::{self, Size};
use super::server::{self, Program, Server};

/// Clients that watch everything.
pub(super) const WATCHERS: usize = 10;

/// Rows of one transaction of the bulk.
const BATCH: usize = 1000;

/// How long small transactions and searches go on.
const WHILE: Duration = Duration::from_secs(3);

/// What a turn has measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub(super) bulk_rows_per_cpu: f64,
    pub(super) bytes_per_atom: f64,
    pub(super) small_per_second: f64,
    pub(super) small_cpu: f64,
    pub(super) searches_per_second: f64,
    pub(super) dump_seconds: f64,
    pub(super) dump_cpu: f64,
    pub(super) compaction_pause: f64,
    pub(super) conversion_pause: f64,
    pub(super) start_seconds: f64,
}

/// Clients on threads that read whatever comes.
struct Watchers {
    handles: Vec<UnixStream>,
    threads: Vec<JoinHandle<()>>,
}

impl Watchers {
    fn start(server: &Server) -> Result<Self, String> {
        let mut this = Self {
            handles: Vec::new(),
            threads: Vec::new(),
        };
        for _ in 0..WATCHERS {
            let mut client = server.client()?;
            client.request("monitor_cond", data::MONITOR)?;
            this.handles.push(client.handle()?);
            this.threads
                .push(std::thread::spawn(move || client.drain()));
        }
        Ok(this)
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        for handle in &self.handles {
            let _ = handle.shutdown(std::net::Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A client that asks for the time of day, so to speak, over and over, and notes the longest
/// wait.
struct Pinger {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<f64, String>>,
}

impl Pinger {
    fn start(socket: &Path) -> Result<Self, String> {
        let mut client = Client::connect(socket)?;
        // Without this the server ends the connection when it converts the database.
        client.request("set_db_change_aware", "[true]")?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let clock = Clock::new();
            let mut longest = Duration::ZERO;
            while !stopped.load(Ordering::Relaxed) {
                let begin = clock.real();
                client.request("list_dbs", "[]")?;
                longest = longest.max(clock.real().since(begin));
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(longest.as_secs_f64() * 1e3)
        });
        Ok(Self { stop, thread })
    }

    /// The longest wait, in milliseconds.
    fn finish(self) -> Result<f64, String> {
        self.stop.store(true, Ordering::Relaxed);
        let result = self.thread.join();
        result.map_err(|_| "the pinging client panicked".to_owned())?
    }
}

/// Runs a turn.
pub(super) fn run(program: &Program, size: Size) -> Result<Values, String> {
    let scratch = Scratch::new();
    server::create(scratch.path(), &data::schema(false))?;
    let mut values = Values::default();
    let (server, _) = Server::start(program, &scratch)?;
    let empty = server.memory()?;
    let watchers = Watchers::start(&server)?;
    bulk(&server, size, &mut values)?;
    let atoms = (size.rows * data::ATOMS) as f64;
    values.bytes_per_atom = (server.memory()? - empty) / atoms;
    small(&server, size, &mut values)?;
    values.searches_per_second = searches(&server, size)?;
    drop(watchers);
    dump(&server, &mut values)?;
    let watchers = Watchers::start(&server)?;
    values.compaction_pause = pause(&server, || {
        let mut control = server.control()?;
        control.request("ovsdb-server/compact", "[\"Bench\"]")
    })?;
    values.conversion_pause = pause(&server, || {
        let params = format!("[\"Bench\",{}]", data::schema(true));
        server.client()?.request("convert", &params)
    })?;
    drop(watchers);
    drop(server);
    values.start_seconds = Server::start(program, &scratch)?.1;
    Ok(values)
}

fn bulk(server: &Server, size: Size, values: &mut Values) -> Result<(), String> {
    let mut client = server.client()?;
    let before = server.cpu()?;
    for first in (0..size.rows).step_by(BATCH) {
        let last = (first + BATCH).min(size.rows);
        client.request("transact", &data::insert_rows(first..last))?;
    }
    // What is written or sent behind the reply's back counts, too.
    std::thread::sleep(Duration::from_millis(500));
    values.bulk_rows_per_cpu = size.rows as f64 / (server.cpu()? - before);
    Ok(())
}

fn small(server: &Server, size: Size, values: &mut Values) -> Result<(), String> {
    let mut client = server.client()?;
    let clock = Clock::new();
    let (begin, before) = (clock.real(), server.cpu()?);
    let mut count = 0;
    while clock.real().since(begin) < WHILE {
        let n = 2 * size.rows + count;
        client.request("transact", &data::insert_rows(n..n + 1))?;
        count += 1;
    }
    values.small_per_second = count as f64 / clock.real().since(begin).as_secs_f64();
    values.small_cpu = (server.cpu()? - before) / count as f64 * 1e6;
    Ok(())
}

fn searches(server: &Server, size: Size) -> Result<f64, String> {
    let mut client = server.client()?;
    let clock = Clock::new();
    let begin = clock.real();
    let mut count = 0;
    while clock.real().since(begin) < WHILE {
        // A stride that visits all rows in no order.
        let n = count * 7919 % size.rows;
        let reply = client.request("transact", &data::update_by_host(n, count + 1))?;
        if !reply.windows(9).any(|w| w == b"\"count\":1") {
            return Err(format!("row {n} was not found"));
        }
        count += 1;
    }
    Ok(count as f64 / clock.real().since(begin).as_secs_f64())
}

/// Everything to all clients at once.
fn dump(server: &Server, values: &mut Values) -> Result<(), String> {
    let length = server
        .client()?
        .request("monitor_cond", data::MONITOR)?
        .len();
    let mut clients = Vec::new();
    for _ in 0..WATCHERS {
        clients.push(server.client()?);
    }
    // One small change, so that nothing that was made for the first client will do.
    let n = usize::from(u16::MAX);
    let params = data::update_by_host(n % 1000, 1_000_001);
    server.client()?.request("transact", &params)?;
    let clock = Clock::new();
    let (begin, before) = (clock.real(), server.cpu()?);
    for client in &mut clients {
        client.send("monitor_cond", data::MONITOR)?;
    }
    let threads: Vec<JoinHandle<Result<(), String>>> = clients
        .into_iter()
        .map(|mut client| std::thread::spawn(move || client.discard(length.saturating_sub(16))))
        .collect();
    for thread in threads {
        let result = thread.join();
        result.map_err(|_| "a client panicked".to_owned())??;
    }
    values.dump_seconds = clock.real().since(begin).as_secs_f64();
    values.dump_cpu = server.cpu()? - before;
    Ok(())
}

/// The longest wait of a client while something else is done.
fn pause(
    server: &Server,
    mut during: impl FnMut() -> Result<Vec<u8>, String>,
) -> Result<f64, String> {
    let pinger = Pinger::start(&server.socket())?;
    std::thread::sleep(Duration::from_millis(200));
    during()?;
    std::thread::sleep(Duration::from_millis(500));
    pinger.finish()
}
