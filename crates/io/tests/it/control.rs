//! Control sockets and pidfiles.

use std::time::Duration;

use base::log::Logger;
use base::{Clock, Coverage, Dirs, Instant};
use io::control::{ControlClient, TimeControl, builtin};
use io::daemon::pidfile::{self, Pidfile};
use io::{Commands, ControlServer, Poll, Responder, Token};
use json::Json;

use crate::streams::TempDir;

/// What the commands of the test daemon work on.
#[derive(Default)]
struct State {
    waiting: Vec<Responder>,
    done: bool,
}

/// Runs a daemon on another thread until it is told to exit.
fn daemon(dir: &TempDir) -> std::thread::JoinHandle<()> {
    let net = dir.net();
    let mut dirs = Dirs::from_env();
    dirs.run.clone_from(&dir.0);
    let (ready, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let clock = Clock::stopped(Instant::ZERO);
        let logger = Logger::new("testd", &clock, &["bridge"]);
        logger.set("console:off").unwrap();
        let mut poll = Poll::new(&clock).unwrap();
        let socket = Some("testd.ctl");
        let mut control =
            ControlServer::new(&net, &dirs, "testd", socket, Token(0), &mut poll).unwrap();
        let mut commands = Commands::<State>::new();
        builtin::register(&mut commands, &logger, &Coverage::new());
        let time = TimeControl::new();
        time.register(&mut commands);
        commands.register("wait", "", 0, 0, |state: &mut State, call| {
            state.waiting.push(call.responder);
        });
        commands.answer("waiting", "", 0, 0, |state: &mut State, _| {
            Ok(state.waiting.len().to_string())
        });
        commands.answer("release", "", 0, 0, |state: &mut State, _| {
            state.waiting.drain(..).for_each(|w| w.reply("released"));
            Ok(String::new())
        });
        commands.answer("now", "", 0, 0, move |_, _| {
            Ok(clock.now().as_millis().to_string())
        });
        commands.answer("exit", "", 0, 0, |state: &mut State, _| {
            state.done = true;
            Ok(String::new())
        });
        ready.send(()).unwrap();
        let mut state = State::default();
        let mut events = Vec::new();
        while !state.done {
            events.clear();
            poll.wait(Instant::MAX, &mut events).unwrap();
            for call in control.run(&mut poll) {
                commands.dispatch(&mut state, call);
            }
            time.run(&mut poll);
        }
        control.finish(&mut poll);
    });
    wait.recv().unwrap();
    thread
}

fn client(dir: &TempDir) -> ControlClient {
    let clock = Clock::new();
    let deadline = clock.now() + Duration::from_secs(20);
    ControlClient::connect(&dir.0.join("testd.ctl"), &clock, deadline).unwrap()
}

fn ask(client: &mut ControlClient, line: &str) -> Result<String, String> {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let text = |json: Json| json.as_str().map_or(json.to_string(), str::to_owned);
    let answer = client.transact(&words[0], &words[1..]).unwrap();
    answer.map(text).map_err(text)
}

#[test]
fn silent_clients_do_not_lock_others_out() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    let dir = TempDir::new("control-silent");
    let thread = daemon(&dir);
    let (path, clock) = (dir.0.join("testd.ctl"), Clock::new());
    let waiter = std::thread::spawn(move || {
        let deadline = clock.now() + Duration::from_secs(20);
        let mut waiting = ControlClient::connect(&path, &clock, deadline).unwrap();
        ask(&mut waiting, "wait")
    });
    // Not before its command is under way does the crowd come.
    let mut first = client(&dir);
    while ask(&mut first, "waiting").unwrap() == "0" {
        std::thread::yield_now();
    }
    let silent: Vec<UnixStream> = ["", "{\"meth", "[", "\"", "{\"id\":0,"]
        .iter()
        .cycle()
        .take(200)
        .map(|half| {
            let mut stream = UnixStream::connect(dir.0.join("testd.ctl")).unwrap();
            stream.write_all(half.as_bytes()).unwrap();
            // Each is there before the next: an answer shows that the daemon has taken them.
            assert!(ask(&mut client(&dir), "now").is_ok());
            stream
        })
        .collect();
    // The oldest were put out, and are told so.
    let mut byte = [0];
    assert!(matches!((&silent[0]).read(&mut byte), Ok(0) | Err(_)));
    // A command under way keeps its connection.
    assert!(ask(&mut client(&dir), "release").is_ok());
    assert_eq!(waiter.join().unwrap(), Ok("released\n".to_owned()));
    ask(&mut client(&dir), "exit").unwrap();
    thread.join().unwrap();
}

#[test]
fn commands_are_carried_out_or_refused() {
    let dir = TempDir::new("control");
    let thread = daemon(&dir);
    let mut a = client(&dir);
    let mut check = |line, expected: Result<&str, &str>| {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(ask(&mut a, line), expected, "{line}");
    };
    check("version", Ok("testd (Open vSwitch) 3.7.1\n"));
    check(
        "vlog/reopen x",
        Err("\"vlog/reopen\" command takes at most 0 arguments\n"),
    );
    check(
        "coverage/read-counter",
        Err("\"coverage/read-counter\" command requires at least 1 arguments\n"),
    );
    check(
        "nosuch",
        Err("\"nosuch\" is not a valid command \
         (use \"list-commands\" to see a list of valid commands)\n"),
    );
    check("vlog/set bridge:file:dbg", Ok(""));
    check("vlog/reopen", Err("Logging to file not configured\n"));
    check("time/warp 1000 100", Ok("warped\n"));
    check("now", Ok("1000\n"));
    check("time/warp 500", Ok("warped\n"));
    check("now", Ok("1500\n"));
    check("time/warp 5 x", Err("invalid MSECS\n"));
    check(
        "set-options --format json",
        Ok("{\"reply\":\"\",\"reply-format\":\"plain\"}"),
    );
    check("now", Ok("{\"reply\":\"1500\",\"reply-format\":\"plain\"}"));
    check(
        "set-options --format yaml",
        Err("option format has invalid value yaml"),
    );

    // A command that is answered later keeps nobody else waiting.
    let slow_dir = dir.0.clone();
    let slow = std::thread::spawn(move || {
        let clock = Clock::new();
        let deadline = clock.now() + Duration::from_secs(20);
        let mut b = ControlClient::connect(&slow_dir.join("testd.ctl"), &clock, deadline).unwrap();
        ask(&mut b, "wait")
    });
    let mut c = client(&dir);
    while !slow.is_finished() {
        assert_eq!(ask(&mut c, "release"), Ok(String::new()));
    }
    assert_eq!(slow.join().unwrap(), Ok("released\n".to_owned()));
    assert_eq!(ask(&mut c, "exit"), Ok(String::new()));
    thread.join().unwrap();
    assert!(!dir.0.join("testd.ctl").exists());
}

#[test]
fn pidfiles_name_live_processes() {
    let dir = TempDir::new("pidfile");
    let path = dir.0.join("d.pid");
    let pid = i32::try_from(std::process::id()).unwrap();
    let pidfile = Pidfile::create(&path, false).unwrap();
    assert_eq!(pidfile::read(&path).unwrap(), pid);
    drop(pidfile);
    assert!(!path.exists());
    let errno = |text: Option<&str>| {
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        pidfile::read(&path).unwrap_err().raw_os_error()
    };
    assert_eq!(errno(None), Some(2));
    assert_eq!(errno(Some("1\n")), Some(3));
    assert_eq!(errno(Some("x\n")), Some(22));
    // A stale file is no obstacle.
    Pidfile::create(&path, false).unwrap();
}
