//! Programs that a test starts.

use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::time::Duration;

/// A program in the background, ended when it is dropped.
#[derive(Debug)]
pub struct Daemon(Child);

impl Daemon {
    /// Starts it.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        Self(
            command
                .spawn()
                .unwrap_or_else(|e| panic!("{command:?}: {e}")),
        )
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Waits for its end and says whether it was well; none if it still runs after `limit`.
    pub fn wait(&mut self, limit: Duration) -> Option<bool> {
        let step = Duration::from_millis(20);
        for _ in 0..=limit.as_millis() / step.as_millis() {
            if let Ok(Some(status)) = self.0.try_wait() {
                return Some(status.success());
            }
            std::thread::sleep(step);
        }
        None
    }

    /// Ends it at once, as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        for _ in 0..100 {
            if !self.runs() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.kill();
    }
}

/// Waits until `done`, as what another program does takes a while.
///
/// # Panics
/// It is not after 20 seconds.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let clock = base::Clock::new();
    let begin = clock.real();
    while !done() {
        let waited = clock.real().since(begin);
        assert!(waited < Duration::from_secs(20), "still not: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a program to its end.
///
/// # Panics
/// When it cannot be started.
pub fn output(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

/// The path of one of Sluice's own executables, which are built beside the running test.
///
/// # Panics
/// When it was not built.
pub fn sluice_program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap_or_else(|e| panic!("own path: {e}"));
    let folder = test
        .ancestors()
        .nth(2)
        .map(PathBuf::from)
        .unwrap_or_default();
    let path = folder.join(name);
    assert!(path.exists(), "{} was not built", path.display());
    path
}
