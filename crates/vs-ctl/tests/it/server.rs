//! A database server on a thread, with empty databases `Open_vSwitch` and `hardware_vtep`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use base::{Clock, Dirs, Instant};
use db_engine::Database;
use db_model::{DatabaseSchema, HARDWARE_VTEP_SCHEMA, OPEN_VSWITCH_SCHEMA, UuidSource};
use db_server::{ClientId, Output, Server};
use io::jsonrpc::Rpc;
use io::{Interest, Net, Poll, Token, Waker};
use testkit::Scratch;
use vs_ctl::{Env, Exit, Tool};

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);

/// The server; it stops when this is dropped.
pub(crate) struct TestServer {
    scratch: Scratch,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// What a run of a tool did.
#[derive(Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl TestServer {
    pub(crate) fn start() -> Self {
        let scratch = Scratch::new();
        let name = format!("punix:{}", scratch.file("db.sock").display());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (started, starts) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || serve(&name, &started, &stopped));
        Self {
            scratch,
            stop,
            waker: starts.recv().expect("the server starts"),
            thread: Some(thread),
        }
    }

    fn db(&self) -> String {
        format!("--db=unix:{}", self.scratch.file("db.sock").display())
    }

    /// Runs `ovs-vsctl --no-wait` with arguments that have no spaces in them.
    pub(crate) fn vsctl(&self, args: &str) -> Ran {
        self.run(&format!("--no-wait {args}"))
    }

    /// Runs `ovs-vsctl` with arguments that have no spaces in them.
    pub(crate) fn run(&self, args: &str) -> Ran {
        self.tool("ovs-vsctl", vs_ctl::vsctl::run, args)
    }

    /// Runs `vtep-ctl` with arguments that have no spaces in them.
    pub(crate) fn vtep(&self, args: &str) -> Ran {
        self.tool("vtep-ctl", vs_ctl::vtep_ctl::run, args)
    }

    /// Runs `ovsdb-client COMMAND SERVER ARG...`.
    pub(crate) fn client(&self, command: &str, args: &[&str]) -> Ran {
        let server = self.db();
        let server = server.trim_start_matches("--db=");
        let words = ["ovsdb-client", "--timeout=60", command, server];
        let all = words.iter().chain(args).map(|arg| (*arg).to_owned());
        run_tool(
            "ovsdb-client",
            vs_ctl::ovsdb_client::run,
            &all.collect::<Vec<_>>(),
        )
    }

    fn tool(&self, name: &str, tool: Tool, args: &str) -> Ran {
        let mut all = vec![name.to_owned(), self.db(), "--timeout=60".to_owned()];
        all.extend(args.split(' ').filter(|a| !a.is_empty()).map(str::to_owned));
        run_tool(name, tool, &all)
    }

    /// The output of a run that must succeed.
    pub(crate) fn ok(&self, args: &str) -> String {
        let ran = self.vsctl(args);
        assert_eq!((ran.exit, &*ran.err), (Exit::SUCCESS, ""), "{args}");
        ran.out
    }

    /// The message of a run that must fail with status 1.
    pub(crate) fn fails(&self, args: &str) -> String {
        let ran = self.vsctl(args);
        assert_eq!((ran.exit, &*ran.out), (Exit::FAILURE, ""), "{args}");
        let message = ran.err.strip_prefix("ovs-vsctl: ").expect("a message");
        message.trim_end().to_owned()
    }
}

fn run_tool(name: &str, tool: Tool, all: &[String]) -> Ran {
    let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
    let mut env = Env::new(name, &mut stdin, &mut out, &mut err);
    let exit = tool(&mut env, all);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Ran {
        exit,
        out: text(out),
        err: text(err),
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server does not panic");
        }
    }
}

fn serve(name: &str, started: &Sender<Waker>, stop: &AtomicBool) {
    let clock = Clock::new();
    let mut poll = Poll::new(&clock).expect("a poll");
    let waker = poll.waker(WAKER).expect("a waker");
    let net = Net::new(&Dirs::from_env());
    let mut listener = net.listen(name, 0, 0).expect("a listener");
    listener
        .watch(&poll, LISTENER, Interest::READ)
        .expect("watched");
    started.send(waker.clone()).expect("awaited");
    let mut server = Server::new(clock.clone(), [5; 32], Arc::new(move || waker.wake()));
    for (text, seed) in [(OPEN_VSWITCH_SCHEMA, 4), (HARDWARE_VTEP_SCHEMA, 6)] {
        let schema = DatabaseSchema::from_text(text).expect("valid schema");
        let db = Database::new(Arc::new(schema), UuidSource::new([seed; 32]));
        server
            .add_database(clock.now(), db, None)
            .expect("a database");
    }
    let mut clients: BTreeMap<ClientId, Rpc> = BTreeMap::new();
    let mut next = 10;
    let mut events = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        while let Ok(stream) = listener.accept() {
            let client = ClientId(next);
            clients.insert(client, Rpc::new(stream, Token(next)));
            server.connect(client, db_server::ClientInfo::default());
            next += 1;
        }
        let now = clock.now();
        let mut gone = Vec::new();
        for (client, rpc) in &mut clients {
            loop {
                match rpc.recv() {
                    Ok(Some(message)) => server.handle_message(now, *client, message),
                    Ok(None) => break,
                    Err(_) => {
                        gone.push(*client);
                        break;
                    }
                }
            }
        }
        server.run(now);
        for (client, output) in server.take_outputs() {
            match (output, clients.get_mut(&client)) {
                (Output::Send(message), Some(rpc)) => rpc.send(&message),
                _ => gone.push(client),
            }
        }
        for (client, rpc) in &mut clients {
            if rpc.watch(&mut poll, true).is_err() {
                gone.push(*client);
            }
        }
        for client in gone {
            if clients.remove(&client).is_some() {
                server.disconnect(client);
            }
        }
        let deadline = server.next_deadline().min(Instant::MAX);
        poll.wait(deadline, &mut events).expect("waited");
        events.clear();
    }
}
