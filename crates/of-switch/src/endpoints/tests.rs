use std::io::{ErrorKind, IoSlice};
use std::path::PathBuf;
use std::time::Duration;

use ::io::{Net, Poll, Stream, Token};
use base::{Clock, Dirs, Instant};
use of_wire::message::{PortStats, QueueStats};
use of_wire::{Action, ErrorCode, PortNo};

use super::{ControllerSettings, EndpointSettings, Endpoints};
use crate::bridge::{Bridge, BridgeConfig, Facts, Output};

struct Nothing;

impl Facts for Nothing {
    fn port_stats(&self, _: PortNo) -> Option<PortStats> {
        None
    }

    fn queue_stats(&self, _: PortNo, _: Option<u32>) -> Vec<QueueStats> {
        Vec::new()
    }

    fn queues(&self, _: PortNo) -> Vec<(u32, Option<u16>, Option<u16>)> {
        Vec::new()
    }

    fn check_match(&self, _: &net_flow::FlowMask) -> Result<(), ErrorCode> {
        Ok(())
    }
    fn check_actions(&self, _: &[Action]) -> Result<(), ErrorCode> {
        Ok(())
    }
}

/// A bridge with its endpoints, on a clock that stands still.
struct Daemon {
    clock: Clock,
    poll: Poll,
    net: Net,
    bridge: Bridge,
    endpoints: Endpoints,
    dir: PathBuf,
}

impl Daemon {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("of-switch.{name}.{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let clock = Clock::stopped(Instant::from_millis(1_000_000));
        let dirs = Dirs {
            run: dir.clone(),
            ..Dirs::from_env()
        };
        let net = Net::new(&dirs);
        Self {
            poll: Poll::new(&clock).unwrap(),
            bridge: Bridge::new(BridgeConfig::new("br0", 1), clock.now()),
            endpoints: Endpoints::new(&net, Token(1 << 40)),
            net,
            clock,
            dir,
        }
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    fn configure(&mut self, controllers: Vec<ControllerSettings>) {
        let mut config = self.bridge.config().clone();
        config.has_controllers = controllers.iter().any(ControllerSettings::is_primary);
        let now = self.clock.now();
        self.bridge.configure(config, now);
        let settings = EndpointSettings {
            bridge: "br0".to_owned(),
            management: Some(self.path("br0.mgmt")),
            snoop: Some(self.path("br0.snoop")),
            controllers,
        };
        self.endpoints
            .configure(settings, now, &mut self.bridge, &self.poll);
    }

    /// Runs the loop until nothing moves any more.
    fn run(&mut self) {
        for _ in 0..20 {
            let now = self.clock.now();
            let mut events = Vec::new();
            self.poll.wait(Instant::ZERO, &mut events).unwrap();
            for event in events {
                assert!(self.endpoints.owns(event.token));
                self.endpoints
                    .handle_event(event, now, &mut self.bridge, &self.poll);
            }
            self.bridge.run(now, &Nothing);
            while let Some(output) = self.bridge.poll_output() {
                match output {
                    Output::Close { conn } => self.endpoints.close(conn),
                    Output::AwaitDatapath { version } => self.bridge.datapath_passed(version),
                    _ => {}
                }
            }
            self.endpoints.run(now, &mut self.bridge, &self.poll);
        }
    }

    fn connect(&self, name: &str) -> Stream {
        let target = format!("unix:{}", self.path(name));
        self.net.connect(&target, 0, 0).unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn send(stream: &mut Stream, bytes: &[u8]) {
    assert_eq!(stream.send(&[IoSlice::new(bytes)]).unwrap(), bytes.len());
}

/// What has arrived; `None` at the end of the stream.
fn received(stream: &mut Stream) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.recv(&mut buffer) {
            Ok(0) => return None,
            Ok(n) => all.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(all),
            Err(error) => panic!("{error}"),
        }
    }
}

const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
const ECHO: [u8; 8] = [4, 2, 0, 8, 0, 0, 0, 2];
const ECHO_REPLY: [u8; 8] = [4, 3, 0, 8, 0, 0, 0, 2];

#[test]
fn the_management_socket_serves_and_probes() {
    let mut daemon = Daemon::new("mgmt");
    daemon.configure(Vec::new());
    daemon.run();
    let mut client = daemon.connect("br0.mgmt");
    send(&mut client, &HELLO);
    daemon.run();
    assert_eq!(received(&mut client).unwrap()[..4], [6, 0, 0, 8]);
    send(&mut client, &ECHO[..3]);
    daemon.run();
    send(&mut client, &ECHO[3..]);
    daemon.run();
    assert_eq!(received(&mut client).unwrap(), ECHO_REPLY);
    daemon.clock.step(Duration::from_secs(60));
    daemon.run();
    assert_eq!(received(&mut client).unwrap()[1], 2, "an echo request");
    daemon.clock.step(Duration::from_secs(60));
    daemon.run();
    assert_eq!(received(&mut client), None);
    let mut rude = daemon.connect("br0.mgmt");
    send(&mut rude, &ECHO);
    daemon.run();
    let mut buffer = [0; 64];
    assert_eq!(
        rude.recv(&mut buffer).unwrap(),
        8,
        "the hello, then the end"
    );
    assert_eq!(received(&mut rude), None);
}

#[test]
fn a_lost_controller_is_called_again_and_then_done_without() {
    let mut daemon = Daemon::new("primary");
    let target = format!("unix:{}", daemon.path("controller"));
    let passive = format!("p{target}");
    let mut listener = daemon.net.listen(&passive, 0, 0).unwrap();
    daemon.configure(vec![ControllerSettings::new(&target)]);
    assert_eq!(daemon.bridge.view().table(0).unwrap().len(), 0);
    daemon.run();
    let mut controller = listener.accept().unwrap();
    send(&mut controller, &HELLO);
    daemon.run();
    assert!(daemon.endpoints.is_any_controller_connected());

    let mut snoop = daemon.connect("br0.snoop");
    daemon.run();
    send(&mut controller, &ECHO);
    daemon.run();
    let copied = received(&mut snoop).unwrap();
    assert_eq!(copied[8..], [ECHO, ECHO_REPLY].concat());

    drop((controller, listener));
    daemon.run();
    assert!(!daemon.endpoints.is_any_controller_connected());
    daemon.clock.step(Duration::from_secs(14));
    daemon.run();
    assert_eq!(daemon.bridge.view().table(0).unwrap().len(), 0);
    daemon.clock.step(Duration::from_secs(1));
    daemon.run();
    let view = daemon.bridge.view();
    assert_eq!(view.table(0).unwrap().len(), 1, "fails open");
    let status = daemon.endpoints.status(daemon.clock.now(), &daemon.bridge);
    assert!(!status[0].is_connected && status[0].target == target);

    let mut listener = daemon.net.listen(&passive, 0, 0).unwrap();
    daemon.clock.step(Duration::from_secs(8));
    daemon.run();
    let mut controller = listener.accept().unwrap();
    send(&mut controller, &HELLO);
    daemon.run();
    assert_eq!(daemon.bridge.view().table(0).unwrap().len(), 0);
    daemon.configure(Vec::new());
    daemon.run();
    received(&mut controller);
    assert_eq!(received(&mut controller), None);
}

#[test]
fn connections_that_say_nothing_lock_nobody_out() {
    let mut daemon = Daemon::new("silent");
    daemon.configure(Vec::new());
    daemon.run();
    for socket in ["br0.mgmt", "br0.snoop"] {
        let mut first = daemon.connect(socket);
        send(&mut first, &HELLO);
        daemon.run();
        let mut silent = Vec::new();
        for i in 0..50 {
            let mut stream = daemon.connect(socket);
            if i % 2 == 0 {
                // Half a message is no better than none, but it is no silence for who snoops.
                send(
                    &mut stream,
                    &HELLO[..if socket == "br0.mgmt" { 5 } else { 0 }],
                );
            }
            silent.push(stream);
            daemon.run();
        }
        let mut late = daemon.connect(socket);
        send(&mut late, &HELLO);
        daemon.run();
        assert_eq!(received(&mut late).unwrap()[..4], [6, 0, 0, 8], "{socket}");
        received(&mut first).expect("who has spoken stays");
        let gone = |stream: &mut Stream| received(stream).is_none();
        assert!(gone(&mut silent[0]) && !gone(silent.last_mut().unwrap()));
    }
}
