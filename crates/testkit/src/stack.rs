//! A database server and a switch, in a namespace of their own, with the tools of the same
//! make or of the other.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::net::quiet_netns;
use crate::{Daemon, Scratch};
use sys::netns::NetNs;

/// Where programs are.
#[derive(Clone, Debug)]
pub struct Stack {
    /// What they are called in reports.
    pub name: &'static str,
    /// The folder of `ovs-vswitchd` and `ovsdb-server`.
    pub daemons: PathBuf,
    /// The folder of the tools.
    pub tools: PathBuf,
    /// The file with the `Open_vSwitch` schema.
    pub schema: PathBuf,
    /// Whether segmentation offload must be asked for.
    pub wants_tso_setting: bool,
    /// More arguments for the switch.
    pub switch_args: &'static [&'static str],
    /// Type of the datapath of bridge `br0`.
    pub datapath_type: &'static str,
}

impl Stack {
    /// Sluice's own programs in `folder`.
    pub fn ours(folder: &Path) -> Self {
        let testkit = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self {
            name: "Sluice",
            daemons: folder.to_path_buf(),
            tools: folder.to_path_buf(),
            schema: testkit.join("../db-model/schema/vswitch.ovsschema"),
            wants_tso_setting: false,
            switch_args: &["--disable-system"],
            datapath_type: "netdev",
        }
    }

    /// Debian's Open vSwitch, if it is installed.
    ///
    /// # Errors
    /// It is not.
    pub fn debian() -> Result<Self, String> {
        let daemons = PathBuf::from("/usr/sbin");
        if !daemons.join("ovs-vswitchd").exists() {
            return Err("no /usr/sbin/ovs-vswitchd (package openvswitch-switch)".into());
        }
        Ok(Self {
            name: "original",
            daemons,
            tools: "/usr/bin".into(),
            schema: "/usr/share/openvswitch/vswitch.ovsschema".into(),
            wants_tso_setting: true,
            switch_args: &["--disable-system"],
            datapath_type: "netdev",
        })
    }

    /// The same daemons with the tools of `other`.
    #[must_use]
    pub fn with_tools_of(&self, other: &Self) -> Self {
        Self {
            tools: other.tools.clone(),
            ..self.clone()
        }
    }

    /// The same with bridges of the kernel's datapath.
    #[must_use]
    pub fn with_kernel(&self) -> Self {
        Self {
            switch_args: &[],
            datapath_type: "system",
            ..self.clone()
        }
    }

    /// The same with dummy devices and datapaths in place of all real ones.
    #[must_use]
    pub fn with_dummies(&self) -> Self {
        let switch_args = &["--enable-dummy=override"];
        Self {
            switch_args,
            datapath_type: "dummy",
            ..self.clone()
        }
    }

    /// Starts both daemons; `settings` go into `other_config` before the switch starts,
    /// which gets a bridge `br0`.
    ///
    /// # Errors
    /// What went wrong first.
    pub fn start(&self, settings: &[&str]) -> Result<Running, String> {
        let mut running = self.start_server()?;
        for setting in settings {
            let column = format!("other_config:{setting}");
            running.tool(
                "ovs-vsctl",
                &["--no-wait", "set", "open_vswitch", ".", &column],
            )?;
        }
        running.start_switch()?;
        let kind = format!("datapath_type={}", self.datapath_type);
        let bridge = [
            "--timeout=20",
            "add-br",
            "br0",
            "--",
            "set",
            "bridge",
            "br0",
            &kind,
        ];
        running.tool("ovs-vsctl", &bridge)?;
        Ok(running)
    }

    /// Starts the database server alone, with an empty database of the switch's schema.
    ///
    /// # Errors
    /// What went wrong first.
    pub fn start_server(&self) -> Result<Running, String> {
        let scratch = Scratch::new();
        let netns = quiet_netns().map_err(|e| format!("network namespace: {e}"))?;
        let mut running = Running {
            stack: self.clone(),
            folder: scratch.path().to_path_buf(),
            server: None,
            switch: None,
            netns,
            _scratch: scratch,
        };
        let path = running.folder.join("conf.db").display().to_string();
        let schema = self.schema.display().to_string();
        running.tool("ovsdb-tool", &["create", &path, &schema])?;
        running.start_server()?;
        running.tool("ovs-vsctl", &["--no-wait", "init"])?;
        Ok(running)
    }

    /// Debian puts `ovsdb-server` and `ovs-vswitchd` into sbin, or into bin.
    pub fn daemon(&self, name: &str) -> PathBuf {
        let path = self.daemons.join(name);
        if path.exists() {
            path
        } else {
            self.tools.join(name)
        }
    }
}

fn wait_for(path: &Path) -> Result<(), String> {
    for _ in 0..200 {
        // The file is there a moment before anybody listens.
        if UnixStream::connect(path).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    Err(format!("nobody listens on {}", path.display()))
}

/// A running database server and switch, ended when this is dropped.
#[derive(Debug)]
pub struct Running {
    stack: Stack,
    /// The run directory.
    pub folder: PathBuf,
    switch: Option<Daemon>,
    server: Option<Daemon>,
    /// The namespace of the daemons.
    pub netns: NetNs,
    _scratch: Scratch,
}

impl Running {
    /// Starts the database server, again if it was killed.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_server(&mut self) -> Result<(), String> {
        let socket = self.folder.join("db.sock");
        // What a killed server left would look like a server that is there.
        let _ = std::fs::remove_file(&socket);
        let mut server = Command::new(self.stack.daemon("ovsdb-server"));
        server
            .arg(self.folder.join("conf.db"))
            .arg(format!("--remote=punix:{}", socket.display()))
            .arg("--remote=db:Open_vSwitch,Open_vSwitch,manager_options");
        self.server = Some(self.spawn(&mut server, "ovsdb-server")?);
        wait_for(&socket)
    }

    /// Starts the switch, again if it was killed or told to exit.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_switch(&mut self) -> Result<(), String> {
        let mut switch = Command::new(self.stack.daemon("ovs-vswitchd"));
        let socket = self.folder.join("db.sock");
        switch
            .arg(format!("unix:{}", socket.display()))
            .args(self.stack.switch_args);
        self.switch = Some(self.spawn(&mut switch, "ovs-vswitchd")?);
        Ok(())
    }

    /// Ends the switch at once, as `kill -9` does.
    pub fn kill_switch(&mut self) {
        if let Some(mut switch) = self.switch.take() {
            switch.kill();
        }
    }

    /// Ends the database server at once, as `kill -9` does.
    pub fn kill_server(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill();
        }
    }

    /// Where the database server listens: `unix:PATH`.
    pub fn database(&self) -> String {
        format!("unix:{}", self.folder.join("db.sock").display())
    }

    fn spawn(&self, command: &mut Command, name: &str) -> Result<Daemon, String> {
        let control = self.folder.join(format!("{name}.ctl"));
        command.arg(format!("--unixctl={}", control.display()));
        command.arg(format!(
            "--pidfile={}",
            self.folder.join(format!("{name}.pid")).display()
        ));
        let daemon = self.background(command, name)?;
        // Where tools look that are told only the name of the daemon.
        let usual = self.folder.join(format!("{name}.{}.ctl", daemon.id()));
        std::os::unix::fs::symlink(&control, usual).map_err(|e| format!("{name}: {e}"))?;
        Ok(daemon)
    }

    /// Starts any program in the namespace of the daemons.  What it writes goes to `NAME.out`
    /// in the run directory, behind what is there.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn background(&self, command: &mut Command, name: &str) -> Result<Daemon, String> {
        let mut options = std::fs::OpenOptions::new();
        let log = options
            .create(true)
            .append(true)
            .open(self.folder.join(format!("{name}.out")));
        let log = log.and_then(|log| Ok((log.try_clone()?, log)));
        let (out, err) = log.map_err(|e| format!("{name}: {e}"))?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        self.environment(command);
        let started = self.netns.run(|| Daemon::start(command));
        started.map_err(|e| format!("{name}: {e}"))
    }

    /// What [`Running::background`] keeps of a program.
    pub fn written(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(format!("{name}.out"))).unwrap_or_default()
    }

    fn environment(&self, command: &mut Command) {
        for name in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"] {
            command.env(name, &self.folder);
        }
    }

    /// Runs a tool and returns what it printed.
    ///
    /// # Errors
    /// It failed: its arguments and what it said.
    pub fn tool(&self, name: &str, args: &[&str]) -> Result<String, String> {
        let mut command = Command::new(self.stack.tools.join(name));
        self.environment(&mut command);
        let output = command
            .args(args)
            .output()
            .map_err(|e| format!("{name}: {e}"))?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{name} {}: {}", args.join(" "), error.trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Asks the switch's control socket.
    ///
    /// # Errors
    /// What the switch or the tool said.
    pub fn appctl(&self, args: &[&str]) -> Result<String, String> {
        let target = self.folder.join("ovs-vswitchd.ctl").display().to_string();
        self.tool("ovs-appctl", &[&["-t", &target][..], args].concat())
    }

    /// The process that the switch is, 0 if it does not run.
    pub fn switch_id(&self) -> u32 {
        self.switch.as_ref().map_or(0, Daemon::id)
    }

    /// The processor time that the switch has used, in seconds.
    ///
    /// # Errors
    /// The switch is gone.
    pub fn switch_cpu(&self) -> Result<f64, String> {
        let text = self.proc_file("stat")?;
        let after_name = text.rsplit(')').next().unwrap_or("");
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = |n: usize| fields.get(n).and_then(|f| f.parse::<f64>().ok());
        let used = ticks(11).zip(ticks(12)).map(|(user, system)| user + system);
        used.map(|t| t / 100.0)
            .ok_or_else(|| format!("unexpected /proc stat: {text}"))
    }

    /// The switch's resident memory in MiB.
    ///
    /// # Errors
    /// The switch is gone.
    pub fn switch_memory(&self) -> Result<f64, String> {
        let text = self.proc_file("status")?;
        let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        let kib = line
            .and_then(|l| l.split_whitespace().next())
            .and_then(|n| n.parse::<f64>().ok());
        kib.map(|k| k / 1024.0)
            .ok_or_else(|| "no VmRSS".to_string())
    }

    /// What the daemons wrote and what the switch says of itself, for a failed test.
    pub fn report(&self) -> String {
        let mut report = String::new();
        for name in ["ovsdb-server", "ovs-vswitchd"] {
            let text = self.written(name);
            report.push_str(&format!("--- {name}\n{text}"));
        }
        for command in ["dpif/show", "dpctl/dump-flows"] {
            let text = self.appctl(&[command]).unwrap_or_else(|e| e);
            report.push_str(&format!("--- {command}\n{text}"));
        }
        report
    }

    fn proc_file(&self, name: &str) -> Result<String, String> {
        let pid = self.switch_id();
        let path = format!("/proc/{pid}/{name}");
        std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))
    }
}
