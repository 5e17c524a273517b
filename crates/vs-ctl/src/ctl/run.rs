//! A run of a multi-command tool: from its command line to its exit status.

use std::sync::Arc;
use std::time::Duration;

use base::getopt::{Getopt, Opt, Order};
use base::log::{Destination, Level, Logger, TOOL_MODULES};
use base::{Clock, Instant, VERSION};
use db_client::{
    Client, Interest, Layout, Outcome, Remote, Replica, Servers, Success, Transaction,
};
use db_model::UuidSource;
use io::jsonrpc::SessionOptions;
use io::{Net, Poll, Token};

use super::command::{self, Syntax, Takes};
use super::context::{Cmd, Context, Failure, Handler, Output, Preparation, Schema};
use super::symbols::Symbols;
use crate::options::{Common, CommonOption, LOG_OPTIONS, TLS_OPTIONS, list_options};
use crate::table::{self, Formatter, Style, StyleOption};
use crate::{Env, Exit};

/// A tool that runs commands against a database in one transaction.
pub trait Tool: Schema + Sized + 'static {
    /// The module under which it logs.
    const MODULE: &'static str;

    /// The database's schema, as JSON.
    const SCHEMA: &'static str;

    /// The long names of general options that this tool does not take.
    const LACKS: &'static [&'static str] = &[];

    /// The tool's own commands that change nothing: to call only such is not worth a line in
    /// the system's log.
    const READS: &'static [&'static str];

    /// Whether the comment in the database's log names the process that called the tool.
    const TELLS_CALLER: bool = true;

    /// The commands.
    fn commands() -> &'static [Syntax<Handler<Self>>];

    /// A tool for one attempt.
    fn new(layout: &Layout) -> Self;

    /// The text of `--help`.
    fn help(&self, env: &Env<'_>, layout: &Layout) -> String;

    /// Asks for what every run needs; `wait` tells whether it will wait for the daemon.
    fn prepare(&self, interest: &mut Interest, wait: bool);

    /// Begins a transaction, before the commands.
    fn begin(context: &mut Context<'_, Self>, wait: bool);

    /// Whether the daemon has done what the transaction that set the counter to `goal` asked.
    fn caught_up(&self, _replica: &Replica, _goal: i64) -> bool {
        true
    }

    /// What the daemon could not do: the message and the exit status.
    fn complaint(
        &self,
        _env: &Env<'_>,
        _replica: &Replica,
        _success: &Success,
    ) -> Option<(String, u8)> {
        None
    }
}

/// Options of the multi-command tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolOption {
    Db,
    NoSyslog,
    NoWait,
    DryRun,
    Oneline,
    Timeout,
    Retry,
    Help,
    Commands,
    Options,
    LeaderOnly,
    NoLeaderOnly,
    ShuffleRemotes,
    NoShuffleRemotes,
    Version,
    Common(CommonOption),
    Style(StyleOption),
    /// An option of a command, by its place in the list of all such options.
    Local(usize),
}

const OWN_OPTIONS: [Opt<ToolOption>; 15] = [
    Opt::required("db", None, ToolOption::Db),
    Opt::flag("no-syslog", None, ToolOption::NoSyslog),
    Opt::flag("no-wait", None, ToolOption::NoWait),
    Opt::flag("dry-run", None, ToolOption::DryRun),
    Opt::flag("oneline", None, ToolOption::Oneline),
    Opt::required("timeout", Some('t'), ToolOption::Timeout),
    Opt::flag("retry", None, ToolOption::Retry),
    Opt::flag("help", Some('h'), ToolOption::Help),
    Opt::flag("commands", None, ToolOption::Commands),
    Opt::flag("options", None, ToolOption::Options),
    Opt::flag("leader-only", None, ToolOption::LeaderOnly),
    Opt::flag("no-leader-only", None, ToolOption::NoLeaderOnly),
    Opt::flag("shuffle-remotes", None, ToolOption::ShuffleRemotes),
    Opt::flag("no-shuffle-remotes", None, ToolOption::NoShuffleRemotes),
    Opt::flag("version", Some('V'), ToolOption::Version),
];

/// What the command line asks for.
#[derive(Debug)]
struct Plan {
    db: String,
    wait: bool,
    dry_run: bool,
    oneline: bool,
    retry: bool,
    shuffle: bool,
    leader_only: bool,
    /// 0: none.
    timeout: Duration,
    style: Style,
    /// Options that stood before the first command.
    local: Vec<(String, Option<String>)>,
    /// The commands' words.
    words: Vec<String>,
}

/// Runs tool `T` on the program's arguments.
pub fn run<T: Tool>(env: &mut Env<'_>, args: &[String]) -> Exit {
    let clock = Clock::new();
    let schema = match db_model::DatabaseSchema::from_text(T::SCHEMA) {
        Ok(schema) => schema,
        Err(error) => return env.fatal(error),
    };
    let layout = Arc::new(Layout::new(&schema));
    let logger = Logger::new(&env.program, &clock, TOOL_MODULES);
    logger.bind_thread("");
    logger.set_level(None, Some(Destination::Console), Level::Warn);
    logger.set_level(Some("reconnect"), None, Level::Err);
    let mut common = Common::new(logger);
    let plan = match parse::<T>(env, args, &layout, &schema.version, &mut common) {
        Ok(plan) => plan,
        Err(exit) => return exit,
    };
    let parsed = command::parse(T::commands(), &plan.words, plan.local.clone());
    let commands = match parsed {
        Ok(commands) => commands,
        Err(message) => return env.fatal(message),
    };
    let level = if commands.iter().any(writes::<T>) {
        log::Level::Info
    } else {
        log::Level::Debug
    };
    log::log!(target: T::MODULE, level, "Called as {}", escaped(args));
    let net = Net::new(&env.dirs);
    net.tls().configure(common.tls.clone());
    let deadline = if plan.timeout.is_zero() {
        Instant::MAX
    } else {
        clock.now() + plan.timeout
    };
    // Few rows usually tell all that is needed; if not, it takes a second connection.
    for whole in [false, true] {
        let interest = match interest(&layout, &commands, &plan, whole) {
            Ok(interest) => interest,
            Err(message) => return env.fatal(message),
        };
        let poll = match Poll::new(&clock) {
            Ok(poll) => poll,
            Err(error) => return env.fatal(error),
        };
        let mut client = Client::new(Arc::clone(&layout), interest);
        let servers = servers(&plan);
        client.set_leader_only(plan.leader_only);
        client.set_cluster(servers.cluster);
        let options = SessionOptions {
            retry: plan.retry || io::stream::is_passive(&plan.db),
            ..SessionOptions::default()
        };
        let mut runner = Runner::<T> {
            env: &mut *env,
            plan: &plan,
            args,
            commands: &commands,
            layout: Arc::clone(&layout),
            remote: Remote::new(
                &net,
                servers.remotes,
                Token(0),
                options,
                client,
                clock.now(),
            ),
            poll,
            deadline,
        };
        match runner.run() {
            Ok(exit) | Err(End::Exit(exit)) => return exit,
            Err(End::Fatal(message)) => return env.fatal(message),
            Err(End::NeedAll) => {}
        }
    }
    env.fatal("a command asks for more than the whole database")
}

/// Whether a command may change the database.
fn writes<T: Tool>(cmd: &Cmd<T>) -> bool {
    let name = &cmd.syntax.name;
    !T::READS.contains(name) && !super::db::READS.contains(name)
}

/// What the commands need to see.
fn interest<T: Tool>(
    layout: &Layout,
    commands: &[Cmd<T>],
    plan: &Plan,
    whole: bool,
) -> Result<Interest, String> {
    let mut interest = Interest::new();
    let tool = T::new(layout);
    tool.prepare(&mut interest, plan.wait);
    for cmd in commands {
        let mut preparation = Preparation {
            layout,
            interest: &mut interest,
            tool: &tool,
            whole,
        };
        (cmd.syntax.run.prepare)(&mut preparation, cmd)?;
    }
    Ok(interest)
}

/// The servers of `--db`.
fn servers(plan: &Plan) -> Servers {
    let mut servers = Servers::parse(&plan.db);
    if plan.shuffle && servers.remotes.len() > 1 {
        let mut uuids = UuidSource::new(seed());
        let remotes = &mut servers.remotes;
        remotes.sort_by_cached_key(|_| uuids.next_uuid());
    }
    servers
}

/// The options of all commands, each once.
fn local_options<T: Tool>() -> Vec<(&'static str, Takes)> {
    let mut all: Vec<(&str, Takes)> = Vec::new();
    for (option, takes) in T::commands().iter().flat_map(|c| c.options.iter().copied()) {
        if !all.iter().any(|(name, _)| *name == option) {
            all.push((option, takes));
        }
    }
    all
}

fn parse<T: Tool>(
    env: &mut Env<'_>,
    args: &[String],
    layout: &Layout,
    schema_version: &str,
    common: &mut Common,
) -> Result<Plan, Exit> {
    let mut options: Vec<Opt<ToolOption>> = OWN_OPTIONS.to_vec();
    options.retain(|option| !T::LACKS.contains(&option.long));
    options.extend(LOG_OPTIONS.map(|o| o.map(ToolOption::Common)));
    options.extend(table::OPTIONS.map(|o| o.map(ToolOption::Style)));
    options.extend(TLS_OPTIONS.map(|o| o.map(ToolOption::Common)));
    let listed = list_options(&options);
    let local = local_options::<T>();
    for (i, (name, takes)) in local.iter().enumerate() {
        let long = name.trim_start_matches('-');
        options.push(match takes {
            Takes::Nothing => Opt::flag(long, None, ToolOption::Local(i)),
            Takes::Argument => Opt::required(long, None, ToolOption::Local(i)),
        });
    }
    let mut plan = Plan {
        db: format!("unix:{}", env.dirs.in_run("db.sock").display()),
        wait: !T::LACKS.contains(&"no-wait"),
        dry_run: false,
        oneline: false,
        retry: false,
        shuffle: true,
        leader_only: true,
        timeout: Duration::ZERO,
        style: Style {
            format: table::Format::List,
            ..Style::default()
        },
        local: Vec::new(),
        words: Vec::new(),
    };
    if let Some(seconds) = env.var("OVS_CTL_TIMEOUT").and_then(|value| value.to_str()) {
        plan.timeout = Duration::from_secs(seconds.parse().unwrap_or(0));
    }
    let mut getopt = Getopt::new(args, &options, Order::StopAtOperand);
    loop {
        let option = match getopt.next() {
            Ok(None) => break,
            Ok(Some(option)) => option,
            Err(error) => {
                let program = getopt.program();
                let _ = writeln!(env.stderr, "{program}: {error}");
                return Err(Exit::FAILURE);
            }
        };
        let value = option.1;
        let text = value.unwrap_or_default();
        let taken = match option.0 {
            ToolOption::Help => {
                let help = T::new(layout).help(env, layout);
                env.print(help);
                return Err(Exit::SUCCESS);
            }
            ToolOption::Commands => {
                env.print(command::list_commands(T::commands()));
                return Err(Exit::SUCCESS);
            }
            ToolOption::Options => {
                env.print(&listed);
                return Err(Exit::SUCCESS);
            }
            ToolOption::Version => {
                let program = env.program.clone();
                env.print(format!("{program} (Open vSwitch) {VERSION}\n"));
                env.print(format!("DB Schema {schema_version}\n"));
                return Err(Exit::SUCCESS);
            }
            ToolOption::Common(option) => common.set(option, value, &env.dirs),
            ToolOption::Style(option) => plan.style.set(option, value),
            ToolOption::Local(i) => {
                plan.local
                    .push((local[i].0.to_owned(), value.map(str::to_owned)));
                Ok(())
            }
            ToolOption::NoSyslog => {
                let level = Level::Warn;
                let syslog = Some(Destination::Syslog);
                common.logger.set_level(Some(T::MODULE), syslog, level);
                Ok(())
            }
            own => plan.set(own, text),
        };
        if let Err(message) = taken {
            return Err(env.fatal(message));
        }
    }
    plan.words = getopt.into_operands();
    Ok(plan)
}

impl Plan {
    /// Takes in an option that has no other place.
    fn set(&mut self, option: ToolOption, text: &str) -> Result<(), String> {
        match option {
            ToolOption::Db => text.clone_into(&mut self.db),
            ToolOption::NoWait => self.wait = false,
            ToolOption::DryRun => self.dry_run = true,
            ToolOption::Oneline => self.oneline = true,
            ToolOption::Retry => self.retry = true,
            ToolOption::LeaderOnly => self.leader_only = true,
            ToolOption::NoLeaderOnly => self.leader_only = false,
            ToolOption::ShuffleRemotes => self.shuffle = true,
            ToolOption::NoShuffleRemotes => self.shuffle = false,
            ToolOption::Timeout => {
                let seconds = text.parse::<u32>().ok().filter(|seconds| *seconds > 0);
                let seconds =
                    seconds.ok_or_else(|| format!("value {text} on -t or --timeout is invalid"))?;
                self.timeout = Duration::from_secs(seconds.into());
            }
            _ => {}
        }
        Ok(())
    }
}

struct Runner<'a, 'e, T: Tool> {
    env: &'a mut Env<'e>,
    plan: &'a Plan,
    args: &'a [String],
    commands: &'a [Cmd<T>],
    layout: Arc<Layout>,
    remote: Remote,
    poll: Poll,
    deadline: Instant,
}

/// A run of all commands that may be committed.
struct Attempt<T> {
    transaction: Transaction,
    outputs: Vec<Output>,
    tool: T,
}

/// Why a run ends before its work is done.
enum End {
    Exit(Exit),
    Fatal(String),
    NeedAll,
}

impl<T: Tool> Runner<'_, '_, T> {
    fn run(&mut self) -> Result<Exit, End> {
        let mut seen = None;
        let mut refused = 0;
        loop {
            self.wait_until(|remote| {
                let client = remote.client();
                client.is_following() && seen != Some(client.replica().version())
            })?;
            seen = Some(self.remote.client().replica().version());
            let Some(attempt) = self.attempt()? else {
                continue;
            };
            let outcome = self.commit(&attempt.transaction)?;
            match outcome {
                Outcome::Unchanged => {
                    self.print(attempt.outputs, &Success::default());
                    return Ok(Exit::SUCCESS);
                }
                Outcome::Success(success) => {
                    self.print(attempt.outputs, &success);
                    return self.wait_for_daemon(&attempt.tool, &success);
                }
                Outcome::TryAgain => {}
                Outcome::NotLocked => {
                    return Err(End::Fatal("database not locked".to_owned()));
                }
                // What others did meanwhile may be why: the commands then tell it better.
                Outcome::Error(_)
                    if refused < 3 && seen != Some(self.remote.client().replica().version()) =>
                {
                    refused += 1;
                }
                Outcome::Error(error) => {
                    log::warn!(target: "ovsdb_idl", "transaction error: {error}");
                    return Err(End::Fatal(format!("transaction error: {error}")));
                }
            }
        }
    }

    /// Runs the event loop until `ready`.
    fn wait_until(&mut self, ready: impl Fn(&Remote) -> bool) -> Result<(), End> {
        let mut events = Vec::new();
        loop {
            let now = self.poll.now();
            self.remote.run(now);
            if ready(&self.remote) {
                return Ok(());
            }
            if now >= self.deadline {
                log::warn!(
                    target: "fatal_signal",
                    "terminating with signal 14 (Alarm clock)"
                );
                return Err(End::Exit(Exit::Alarm));
            }
            let db = &self.plan.db;
            if let Some(failure) = self.remote.client().failure() {
                return Err(End::Fatal(format!("{db}: {failure}")));
            }
            if !self.remote.session().is_alive() {
                let error = self.remote.session().last_error();
                let error = error.map_or_else(String::new, error_text);
                return Err(End::Fatal(format!(
                    "{db}: database connection failed ({error})"
                )));
            }
            self.remote.watch(&mut self.poll);
            let deadline = self.remote.next_deadline(now).min(self.deadline);
            if let Err(error) = self.poll.wait(deadline, &mut events) {
                return Err(End::Fatal(error_text(&error)));
            }
            events.clear();
        }
    }

    /// Runs all commands; `None` if one must wait for the database to change.
    fn attempt(&mut self) -> Result<Option<Attempt<T>>, End> {
        let mut tool = T::new(&self.layout);
        let mut uuids = UuidSource::new(seed());
        let mut context = Context {
            replica: self.remote.client().replica(),
            interest: self.remote.client().interest(),
            layout: Arc::clone(&self.layout),
            txn: Transaction::new(),
            symbols: Symbols::new(uuids.fork()),
            uuids,
            out: Output::default(),
            style: &self.plan.style,
            tool: &mut tool,
        };
        context.txn.dry_run = self.plan.dry_run;
        let program = &self.env.program;
        context
            .txn
            .comment(called_as(program, self.args, T::TELLS_CALLER));
        T::begin(&mut context, self.plan.wait);
        let mut outputs = Vec::new();
        for cmd in self.commands {
            match (cmd.syntax.run.run)(&mut context, cmd) {
                Ok(()) => outputs.push(std::mem::take(&mut context.out)),
                Err(Failure::NotYet) => return Ok(None),
                Err(Failure::NeedAll) => return Err(End::NeedAll),
                Err(Failure::Exit(code)) => return Err(End::Exit(Exit::Code(code))),
                Err(Failure::Fatal(message)) => return Err(End::Fatal(message)),
            }
        }
        context.symbols.check(T::MODULE).map_err(End::Fatal)?;
        let (transaction, outputs) = (context.txn, outputs);
        Ok(Some(Attempt {
            transaction,
            outputs,
            tool,
        }))
    }

    fn commit(&mut self, transaction: &Transaction) -> Result<Outcome, End> {
        if let Err(outcome) = self.remote.client_mut().commit(transaction) {
            return Ok(outcome);
        }
        loop {
            if let Some((_, outcome)) = self.remote.client_mut().poll_outcome() {
                return Ok(outcome);
            }
            self.wait_until(|remote| remote.client().has_outcome())?;
        }
    }

    fn print(&mut self, outputs: Vec<Output>, success: &Success) {
        let mut formatter = Formatter::new(self.plan.style.clone());
        for output in outputs {
            if let Some(table) = &output.table {
                self.env.print(formatter.format(table));
                continue;
            }
            let text = match output.created {
                Some(row) => format!("{}\n", success.inserted.get(&row).unwrap_or(&row)),
                None => output.text,
            };
            if self.plan.oneline {
                let line = text.strip_suffix('\n').unwrap_or(&text);
                let line = line.replace('\\', "\\\\").replace('\n', "\\n");
                self.env.print(line + "\n");
            } else {
                self.env.print(text);
            }
        }
        let _ = self.env.stdout.flush();
    }

    fn wait_for_daemon(&mut self, tool: &T, success: &Success) -> Result<Exit, End> {
        let goal = match success.increment {
            Some(goal) if self.plan.wait && !self.plan.dry_run => goal,
            _ => return Ok(Exit::SUCCESS),
        };
        self.wait_until(|remote| {
            let client = remote.client();
            client.is_following() && tool.caught_up(client.replica(), goal)
        })?;
        let replica = self.remote.client().replica();
        let complaint = tool.complaint(self.env, replica, success);
        Ok(match complaint {
            None => Exit::SUCCESS,
            Some((text, status)) => {
                let _ = write!(self.env.stderr, "{text}");
                Exit::Code(status)
            }
        })
    }
}

/// The comment that tells in the database's log who made the change.
fn called_as(program: &str, args: &[String], tells_caller: bool) -> String {
    let args = escaped(args);
    let parent = rustix::process::getppid().filter(|_| tells_caller);
    let Some(parent) = parent.map(|pid| pid.as_raw_nonzero()) else {
        return format!("{program}: {args}");
    };
    let line = std::fs::read(format!("/proc/{parent}/cmdline")).unwrap_or_default();
    let word = line.split(|byte| *byte == 0 || *byte == b'\n').next();
    let word = String::from_utf8_lossy(word.unwrap_or_default());
    format!("{program} (invoked by {word} (pid {parent})): {args}")
}

/// The words of a command line, with quotes around those that a reader could misread.
fn escaped(args: &[String]) -> String {
    let word = |arg: &String| {
        if !arg.contains([' ', '\t', '\r', '\n', '\u{b}', '\\', '\'', '"']) {
            return arg.clone();
        }
        let arg = arg.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{arg}\"")
    };
    args.iter().map(word).collect::<Vec<String>>().join(" ")
}

/// The system's words for an error.
fn error_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// A seed that no other run has.
fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    // A kernel that has no randomness yet gives less: the process and time must do.
    let got = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
    if got.is_err() {
        let pid = std::process::id().to_le_bytes();
        seed[..4].copy_from_slice(&pid);
    }
    seed
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_that_could_be_misread_are_quoted() {
        let args = ["a", "b c", "d\"e", "f\\g", "h'", ""].map(str::to_owned);
        assert_eq!(super::escaped(&args), r#"a "b c" "d\"e" "f\\g" "h'" "#);
    }
}
