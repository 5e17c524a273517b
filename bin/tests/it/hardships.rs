//! Daemons that are given the wrong files, and too few of them.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use testkit::{Daemon, Scratch, eventually, output};

/// A program with everything below `scratch`, where it runs.
fn command(scratch: &Scratch, name: &str, args: &[&str]) -> Command {
    let ours = Path::new(env!("CARGO_BIN_EXE_ovs-vswitchd"));
    let mut command = Command::new(ours.with_file_name(name));
    surround(&mut command, scratch);
    command.args(args);
    command
}

fn surround(command: &mut Command, scratch: &Scratch) {
    for variable in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"] {
        command.env(variable, scratch.path());
    }
    command.current_dir(scratch.path());
}

/// The same with at most `files` open files.
fn command_with(files: u32, scratch: &Scratch, name: &str, args: &[&str]) -> Command {
    let inner = command(scratch, name, args);
    let mut command = Command::new("sh");
    surround(&mut command, scratch);
    command.args(["-c", &format!("ulimit -n {files}; exec \"$@\""), "sh"]);
    command.arg(inner.get_program()).args(inner.get_args());
    command
}

fn run(scratch: &Scratch, name: &str, args: &[&str]) -> Output {
    output(&mut command(scratch, name, args))
}

fn create_database(scratch: &Scratch) {
    let schema = scratch.file("schema");
    std::fs::write(&schema, db_model::OPEN_VSWITCH_SCHEMA).unwrap();
    let created = run(scratch, "ovsdb-tool", &["create", "conf.db", "schema"]);
    assert!(created.status.success(), "{created:?}");
}

/// What a program that ends by itself says on standard error; it fails if it does not.
fn complaint(scratch: &Scratch, name: &str, args: &[&str]) -> String {
    let mut command = command(scratch, name, args);
    let said = scratch.file("said");
    let stderr = std::fs::File::create(&said).unwrap();
    let mut running = Daemon::start(command.stdout(Stdio::null()).stderr(stderr));
    let ended = running.wait(Duration::from_secs(20));
    let said = std::fs::read_to_string(said).unwrap();
    assert_eq!(ended, Some(false), "{name} {args:?}: {said}");
    said
}

/// What is no file with a database is refused, by the server and by the tool, neither of which
/// waits for it.
#[test]
fn what_is_no_database_is_refused() {
    let scratch = Scratch::new();
    mknodat(CWD, scratch.file("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    std::fs::create_dir(scratch.file("folder")).unwrap();
    let _listener = UnixListener::bind(scratch.file("socket")).unwrap();
    std::fs::write(scratch.file("empty"), "").unwrap();
    std::fs::write(scratch.file("garbage"), "garbage\n").unwrap();
    let io = |name: &str, why: &str| format!("I/O error: {name}: open failed ({why})\n");
    let other = |name: &str, why: &str| format!("ovsdb error: {name}: {why}\n");
    let expected = [
        ("fifo", io("fifo", "Not a regular file")),
        ("/dev/zero", io("/dev/zero", "Not a regular file")),
        ("socket", io("socket", "Not a regular file")),
        ("folder", io("folder", "Is a directory")),
        ("none", io("none", "No such file or directory")),
        ("empty", other("empty", "cannot identify file type")),
        ("garbage", other("garbage", "unexpected file format")),
    ];
    for (path, text) in &expected {
        let remote = "--remote=punix:other.sock";
        let said = complaint(&scratch, "ovsdb-server", &[path, remote]);
        let why = format!("failed to open database '{path}': {text}");
        assert!(said.contains(&why), "{said}");
        let last = "ovsdb-server: server configuration failed";
        assert_eq!(said.lines().last(), Some(last));
        let said = complaint(&scratch, "ovsdb-tool", &["compact", path]);
        assert_eq!(said, format!("ovsdb-tool: {text}"));
    }
    for command in ["db-is-standalone", "db-is-clustered", "db-name", "show-log"] {
        for (path, text) in &expected[4..] {
            let said = complaint(&scratch, "ovsdb-tool", &[command, path]);
            assert_eq!(said, format!("ovsdb-tool: {text}"), "{command}");
        }
    }
    let said = complaint(&scratch, "ovsdb-server", &["--config-file=fifo"]);
    assert!(
        said.contains("'") && said.contains(": Not a regular file"),
        "{said}"
    );

    create_database(&scratch);
    let args = ["conf.db", "--remote=punix:db.sock", "--unixctl=ctl"];
    let mut server = Daemon::start(&mut command(&scratch, "ovsdb-server", &args));
    eventually("the server listens", || scratch.file("ctl").exists());
    let ctl = scratch.file("ctl").display().to_string();
    let call = ["-t", &ctl, "ovsdb-server/add-db", "fifo"];
    let refused = String::from_utf8_lossy(&run(&scratch, "ovs-appctl", &call).stderr).into_owned();
    assert!(refused.contains("Not a regular file"), "{refused}");

    // Who asks for a compaction hears if there was none.
    let in_the_way = scratch.file("conf.db.compact");
    std::fs::create_dir(&in_the_way).unwrap();
    let compact = ["-t", &ctl, "ovsdb-server/compact"];
    let failed = run(&scratch, "ovs-appctl", &compact);
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(
        !failed.status.success() && said.contains("conf.db.compact: write failed (Is a directory)"),
        "{said}"
    );
    std::fs::remove_dir(&in_the_way).unwrap();
    let compacted = run(&scratch, "ovs-appctl", &compact);
    assert!(compacted.status.success(), "{compacted:?}");

    let stopped = run(&scratch, "ovs-appctl", &["-t", &ctl, "exit"]);
    assert!(stopped.status.success(), "{stopped:?}");
    assert_eq!(server.wait(Duration::from_secs(20)), Some(true));
}

/// Connects to `socket` more often than a daemon has files; those for which there is none are
/// ended rather than left waiting, and with the others gone all is well.
fn crowd(scratch: &Scratch, socket: &str, crowd: usize) {
    let path = scratch.file(socket);
    let connect = || UnixStream::connect(&path).unwrap();
    let mut streams: Vec<UnixStream> = (0..crowd).map(|_| connect()).collect();
    let mut buffer = [0; 64];
    let mut ended = |stream: &mut UnixStream| {
        // Who is served may be greeted first.
        stream.set_nonblocking(true).unwrap();
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != ErrorKind::WouldBlock,
            }
        }
    };
    eventually("the last is ended", || ended(streams.last_mut().unwrap()));
    assert!(!ended(&mut streams[0]), "{socket}: the first was served");
}

#[test]
fn with_no_file_left_connections_are_ended() {
    let scratch = Scratch::new();
    create_database(&scratch);
    let args = ["conf.db", "--remote=punix:db.sock", "--unixctl=db.ctl"];
    let _server = Daemon::start(&mut command_with(40, &scratch, "ovsdb-server", &args));
    eventually("the server listens", || scratch.file("db.sock").exists());
    crowd(&scratch, "db.sock", 60);

    let db = format!("unix:{}", scratch.file("db.sock").display());
    let args = [&db, "--enable-dummy=override", "--unixctl=sw.ctl"];
    let _switch = Daemon::start(&mut command_with(60, &scratch, "ovs-vswitchd", &args));
    let option = format!("--db={db}");
    // Until the server has seen that the crowd is gone, others are ended, too.
    eventually("the server serves again", || {
        let args = [&*option, "--timeout=20", "--no-wait", "init"];
        let add = ["--", "--may-exist", "add-br", "br0"];
        let added = run(&scratch, "ovs-vsctl", &[&args[..], &add].concat());
        added.status.success()
    });
    eventually("the bridge is there", || scratch.file("br0.mgmt").exists());
    crowd(&scratch, "br0.mgmt", 80);
    eventually("the switch serves again", || {
        let mgmt = format!("unix:{}", scratch.file("br0.mgmt").display());
        let shown = run(&scratch, "ovs-ofctl", &["--timeout=5", "show", &mgmt]);
        shown.status.success()
    });
    let shown = run(&scratch, "ovs-vsctl", &[&option, "--timeout=20", "show"]);
    assert!(shown.status.success(), "{shown:?}");
}

/// `sluice up` says which variables there are where it may not write.
#[test]
fn folders_that_cannot_be_had_are_named() {
    let scratch = Scratch::new();
    std::fs::write(scratch.file("file"), "").unwrap();
    let elsewhere = scratch.file("file").join("below");
    for (variable, advice) in [
        ("OVS_RUNDIR", "set OVS_RUNDIR"),
        ("OVS_DBDIR", "set OVS_DBDIR, or name another file with --db"),
    ] {
        let mut command = command(&scratch, "sluice", &["up"]);
        let failed = output(command.env(variable, &elsewhere));
        assert!(!failed.status.success());
        let said = String::from_utf8_lossy(&failed.stderr);
        let text = format!("{}: Not a directory; {advice}\n", elsewhere.display());
        assert_eq!(said, format!("sluice up: {text}"));
    }
}

/// Sends requests until no more are taken, without reading an answer, and asks others' questions
/// meanwhile.  Then all answers are there.
fn ask_without_listening(scratch: &Scratch, socket: &str, method: &str, others: &dyn Fn()) {
    const ENOUGH: usize = 4 << 20;
    let mut stream = UnixStream::connect(scratch.file(socket)).unwrap();
    stream.set_nonblocking(true).unwrap();
    let request = format!(r#"{{"id":0,"method":"{method}","params":[]}}"#);
    let requests = request.repeat(1000);
    let mut sent = 0;
    let mut refusals = 0;
    while sent < ENOUGH && refusals < 20 {
        match stream.write(&requests.as_bytes()[sent % requests.len()..]) {
            Ok(written) => (sent, refusals) = (sent + written, 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                // What the daemon would still take, it has taken when it answers others.
                others();
                refusals += 1;
            }
        }
    }
    assert!(sent < ENOUGH, "{socket}: {sent} bytes were taken");
    stream.set_nonblocking(false).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let (mut left, mut parser) = (sent / request.len(), json::Parser::new());
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0, "{socket}: the end with {left} answers to come");
        let mut rest = &buffer[..n];
        while !rest.is_empty() {
            rest = &rest[parser.feed(rest)..];
            if parser.is_done() {
                let mut done = std::mem::replace(&mut parser, json::Parser::new());
                done.take().unwrap();
                left -= 1;
            }
        }
    }
}

/// Who asks and does not listen does not fill a daemon's memory, nor does anybody else notice.
#[test]
fn answers_that_nobody_takes_do_not_pile_up() {
    let scratch = Scratch::new();
    create_database(&scratch);
    let args = ["conf.db", "--remote=punix:db.sock", "--unixctl=ctl"];
    let _server = Daemon::start(&mut command(&scratch, "ovsdb-server", &args));
    eventually("the server listens", || scratch.file("db.sock").exists());
    let ctl = scratch.file("ctl").display().to_string();
    let db = format!("unix:{}", scratch.file("db.sock").display());
    let others = || {
        let listed = run(
            &scratch,
            "ovs-appctl",
            &["-t", &ctl, "ovsdb-server/list-dbs"],
        );
        assert!(listed.status.success(), "{listed:?}");
        let listed = run(&scratch, "ovsdb-client", &["list-dbs", &db]);
        assert!(listed.status.success(), "{listed:?}");
    };
    for (socket, method) in [
        ("db.sock", "get_server_id"),
        ("db.sock", "echo"),
        ("ctl", "version"),
    ] {
        ask_without_listening(&scratch, socket, method, &others);
    }
}
