//! A switch with dummies, and its control commands.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::{Clock, Coverage, Dirs, Instant};
use dp_api::Datapath;
use dp_user::{Options, UserDatapath};
use io::{Net, Poll};
use net_dev::{DummyLevel, DummyProvider, Providers};
use vs_switch::config::{BridgeConfig, PortConfig, Step};
use vs_switch::{DatapathProvider, Env, Switch};

/// Opens dummy datapaths.
struct Dummies {
    devices: Providers,
    clock: Clock,
}

impl DatapathProvider for Dummies {
    fn kinds(&self) -> Vec<String> {
        vec!["dummy".to_owned()]
    }

    fn open(&self, kind: &str) -> Result<Arc<dyn Datapath>, dp_api::Error> {
        self.create(kind, &format!("ovs-{kind}"))
    }

    fn create(&self, kind: &str, name: &str) -> Result<Arc<dyn Datapath>, dp_api::Error> {
        let options = Options {
            kind: kind.to_owned(),
            name: name.to_owned(),
            devices: self.devices.clone(),
            clock: self.clock.clone(),
            dummy: true,
            threads: Some(1),
        };
        Ok(Arc::new(UserDatapath::open(options)?))
    }
}

/// A switch under test.
pub(crate) struct Harness {
    pub(crate) switch: Switch,
    pub(crate) clock: Clock,
    poll: Poll,
    scratch: Scratch,
}

/// A folder of its own for sockets.
struct Scratch(std::path::PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Harness {
    /// A switch without bridges.
    pub(crate) fn new(name: &str) -> Self {
        let run = std::env::temp_dir().join(format!("vs-switch-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&run).unwrap();
        let mut dirs = Dirs::from_env();
        dirs.run.clone_from(&run);
        let clock = Clock::stopped(Instant::from_millis(1000));
        let dummies = Arc::new(DummyProvider::new(DummyLevel::All));
        let devices = Providers::new(vec![dummies.clone()]);
        let datapath = Dummies {
            devices: devices.clone(),
            clock: clock.clone(),
        };
        let env = Env {
            clock: clock.clone(),
            coverage: Coverage::new(),
            net: Net::new(&dirs),
            dirs,
            confined: true,
            devices,
            dummies: Some(dummies),
            datapaths: vec![Arc::new(datapath)],
            default_datapath: "dummy".to_owned(),
        };
        Self {
            switch: Switch::new(env),
            poll: Poll::new(&clock).unwrap(),
            clock,
            scratch: Scratch(run),
        }
    }

    /// The same with bridge `br0` and these ports of it.
    pub(crate) fn with_bridge(name: &str, ports: &[&str]) -> Self {
        let mut harness = Self::new(name);
        let mut bridge = BridgeConfig::new("br0");
        bridge.hwaddr = Some(0xaa55_aa55_0000);
        harness.apply(Step::AddBridge(bridge));
        for port in ports {
            harness.apply(Step::AddPort {
                bridge: "br0".to_owned(),
                port: PortConfig::new(port, "dummy"),
            });
        }
        harness.run();
        harness
    }

    pub(crate) fn apply(&mut self, step: Step) {
        self.switch.apply(&step, self.clock.now()).unwrap();
    }

    /// Some rounds of the main loop.
    pub(crate) fn run(&mut self) {
        for _ in 0..4 {
            self.switch.run(&mut self.poll, self.clock.now());
        }
    }

    /// Where its sockets are.
    pub(crate) fn folder(&self) -> &Path {
        &self.scratch.0
    }

    /// A round of the main loop that looks at its sockets.
    pub(crate) fn serve(&mut self) {
        let mut events = Vec::new();
        let now = self.clock.now();
        self.poll.wait(now, &mut events).unwrap();
        for event in events {
            self.switch.handle_event(event, now, &self.poll);
        }
        self.switch.run(&mut self.poll, now);
    }

    /// Lets time pass in steps of 100 ms.
    pub(crate) fn warp(&mut self, time: Duration) {
        let end = self.clock.now() + time;
        while self.clock.now() < end {
            self.clock.step(Duration::from_millis(100));
            self.run();
        }
    }

    /// A control command and its answer.
    pub(crate) fn command(&mut self, line: &[&str]) -> Result<String, String> {
        let args: Vec<String> = line[1..].iter().map(|s| (*s).to_owned()).collect();
        let answer = vs_switch::control::run(&mut self.switch, line[0], &args);
        self.run();
        answer
    }
}
