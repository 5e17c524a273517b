//! What a tool sees of its process, and how it ends.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use base::Dirs;
use base::getopt::utf8_args;

/// What a tool sees of its process: its name, standard streams and environment.
pub struct Env<'a> {
    /// The name that error messages begin with, such as `ovs-vsctl`.
    pub program: String,
    /// Standard input.
    pub stdin: &'a mut dyn Read,
    /// Standard output.  Write errors (a closed pipe) end the output silently.
    pub stdout: &'a mut dyn Write,
    /// Standard error.
    pub stderr: &'a mut dyn Write,
    /// Where files are.
    pub dirs: Dirs,
    vars: BTreeMap<OsString, OsString>,
}

impl<'a> Env<'a> {
    /// An environment with the given streams and no variables: what tests use.
    pub fn new(
        program: &str,
        stdin: &'a mut dyn Read,
        stdout: &'a mut dyn Write,
        stderr: &'a mut dyn Write,
    ) -> Self {
        Self {
            program: program.to_owned(),
            stdin,
            stdout,
            stderr,
            dirs: Dirs::from_env(),
            vars: BTreeMap::new(),
        }
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn with_var(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.vars.insert(name.into(), value.into());
        self
    }

    /// The value of environment variable `name`, if it is set.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Prints to standard output; a reader that went away is ignored.
    pub fn print(&mut self, text: impl fmt::Display) {
        let _ = write!(self.stdout, "{text}");
    }

    /// Prints the line `PROGRAM: message` to standard error and gives the exit status
    /// of a fatal error.
    pub fn fatal(&mut self, message: impl fmt::Display) -> Exit {
        let _ = self.stdout.flush();
        let _ = writeln!(self.stderr, "{}: {message}", self.program);
        Exit::FAILURE
    }
}

impl fmt::Debug for Env<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("program", &self.program)
            .field("vars", &self.vars)
            .finish_non_exhaustive()
    }
}

/// How a tool ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exits with this status.
    Code(u8),
    /// It dies by SIGALRM, because `--timeout` ran out.
    Alarm,
}

impl Exit {
    /// Status 0.
    pub const SUCCESS: Self = Self::Code(0);
    /// Status 1: usage, syntax, connection or transaction error.
    pub const FAILURE: Self = Self::Code(1);
}

/// A tool as a function: the environment and the arguments, the first of which is the
/// program as it was called.
pub type Tool = fn(&mut Env<'_>, &[String]) -> Exit;

/// Runs `tool` with the process's own arguments, streams and environment: the whole of
/// an executable's `main`.
pub fn main(tool: Tool) -> ExitCode {
    main_with(tool, std::env::args_os().collect())
}

/// The same with other arguments, the first of which is the tool's name.
pub fn main_with(tool: Tool, args: Vec<OsString>) -> ExitCode {
    let (mut stdin, mut stderr) = (io::stdin().lock(), io::stderr());
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let mut env = Env::new("", &mut stdin, &mut stdout, &mut stderr);
    env.vars = std::env::vars_os().collect();
    let exit = run_with(&mut env, tool, args);
    let _ = stdout.flush();
    match exit {
        Exit::Code(code) => ExitCode::from(code),
        Exit::Alarm => {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::ALARM,
            );
            // Only reached if SIGALRM is ignored.
            ExitCode::from(142)
        }
    }
}

/// Names the program before its arguments are looked at, so that what is wrong with them is
/// said in its name.
fn run_with(env: &mut Env<'_>, tool: Tool, args: Vec<OsString>) -> Exit {
    let name = args.first().map(|arg| arg.to_string_lossy());
    env.program = base_name(name.as_deref().unwrap_or_default()).to_owned();
    match utf8_args(args) {
        Ok(args) => tool(env, &args),
        Err(message) => env.fatal(message),
    }
}

/// The last component of a path.
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn arguments_that_are_no_text_are_refused_in_the_programs_name() {
        let (mut stdin, mut stdout, mut stderr) = (io::empty(), Vec::new(), Vec::new());
        let mut env = Env::new("", &mut stdin, &mut stdout, &mut stderr);
        let args = vec![
            "/usr/bin/ovs-vsctl".into(),
            OsString::from_vec(vec![b'x', 0xff]),
        ];
        let exit = run_with(&mut env, |_, _| Exit::SUCCESS, args);
        assert_eq!(exit, Exit::FAILURE);
        assert_eq!(
            String::from_utf8_lossy(&stderr),
            "ovs-vsctl: argument 1 (x\u{fffd}) is not UTF-8\n"
        );
    }
}
