//! The server under test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use base::Clock;
use testkit::{Daemon, Scratch};

use super::client::Client;

/// A server's program.
pub(super) struct Program {
    pub(super) name: &'static str,
    path: PathBuf,
}

impl Program {
    pub(super) fn new(name: &'static str, path: PathBuf) -> Result<Self, String> {
        if path.is_file() {
            Ok(Self { name, path })
        } else {
            Err(format!("bench db: no {}", path.display()))
        }
    }
}

/// A running server, ended when this is dropped.
pub(super) struct Server {
    daemon: Daemon,
    folder: PathBuf,
}

impl Server {
    /// Starts the server on `bench.db` in the scratch folder; also how many seconds passed
    /// until it gave its first answer.
    pub(super) fn start(program: &Program, scratch: &Scratch) -> Result<(Self, f64), String> {
        let folder = scratch.path().to_path_buf();
        for socket in ["db.sock", "ctl.sock"] {
            let _ = std::fs::remove_file(folder.join(socket));
        }
        let mut command = Command::new(&program.path);
        command
            .arg(folder.join("bench.db"))
            .arg(format!(
                "--remote=punix:{}",
                folder.join("db.sock").display()
            ))
            .arg(format!("--unixctl={}", folder.join("ctl.sock").display()))
            .env("OVS_RUNDIR", &folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let clock = Clock::new();
        let begin = clock.real();
        let mut this = Self {
            daemon: Daemon::start(&mut command),
            folder,
        };
        loop {
            if let Ok(mut client) = this.client() {
                client.request("get_schema", "[\"Bench\"]")?;
                return Ok((this, clock.real().since(begin).as_secs_f64()));
            }
            if !this.daemon.runs() {
                return Err(format!("{} has ended", program.path.display()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A new connection to the database.
    pub(super) fn client(&self) -> Result<Client, String> {
        Client::connect(&self.socket())
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join("db.sock")
    }

    /// A connection to the control socket.
    pub(super) fn control(&self) -> Result<Client, String> {
        Client::connect(&self.folder.join("ctl.sock"))
    }

    fn proc_file(&self, name: &str) -> Result<String, String> {
        let path = format!("/proc/{}/{name}", self.daemon.id());
        std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))
    }

    /// Processor seconds of all its threads, to the microsecond.
    pub(super) fn cpu(&self) -> Result<f64, String> {
        let tasks = format!("/proc/{}/task", self.daemon.id());
        let entries = std::fs::read_dir(&tasks).map_err(|e| format!("{tasks}: {e}"))?;
        let mut nanoseconds = 0.0;
        for entry in entries.flatten() {
            let text = std::fs::read_to_string(entry.path().join("schedstat"));
            let text = text.unwrap_or_default();
            let first = text.split_whitespace().next();
            nanoseconds += first.and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
        }
        Ok(nanoseconds / 1e9)
    }

    /// Resident bytes.
    pub(super) fn memory(&self) -> Result<f64, String> {
        let text = self.proc_file("status")?;
        let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        let kib = line
            .and_then(|l| l.split_whitespace().next())
            .and_then(|n| n.parse::<f64>().ok());
        kib.map(|k| k * 1024.0).ok_or_else(|| "no VmRSS".to_owned())
    }
}

/// Makes the empty database file: a log whose only record is the schema.
pub(super) fn create(folder: &Path, schema: &str) -> Result<(), String> {
    let file = folder.join("schema");
    std::fs::write(&file, schema).map_err(|e| e.to_string())?;
    let tool = crate::demo::release().join("ovsdb-tool");
    let made = Command::new(&tool)
        .arg("create")
        .arg(folder.join("bench.db"))
        .arg(&file)
        .output()
        .map_err(|e| format!("{}: {e}", tool.display()))?;
    if made.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&made.stderr).into_owned())
    }
}
