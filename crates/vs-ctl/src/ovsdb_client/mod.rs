//! `ovsdb-client`: talks to a database server.

mod choice;
mod data;
mod files;
mod lock;
mod monitor;
mod options;
mod rpc;
mod show;
mod wait;

use std::path::PathBuf;

use base::Dirs;
use db_client::Servers;
use io::daemon::{Core, CoreSettings};
use io::{Net, Poll};
use json::Json;

use self::choice::Wanted;
use self::options::{Early, Settings, parse};
use self::rpc::{Client, Failure};
use crate::{Env, Exit};

/// How a command ends when it has failed.
enum Stop {
    /// With this message.
    Fatal(String),
    /// Its time is up.
    TimedOut,
}

impl From<String> for Stop {
    fn from(text: String) -> Self {
        Self::Fatal(text)
    }
}

type Outcome = Result<Exit, Stop>;

/// What a command needs to be told first.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    /// Nothing: it deals with its arguments and connects itself.
    Nothing,
    /// A server, to which it connects itself when it knows which database it is about.
    Address,
    /// A server.
    Server,
    /// A server and the name of a database there.
    Database,
}

struct Command {
    name: &'static str,
    needs: Needs,
    min: usize,
    max: usize,
    run: fn(&mut Env<'_>, &mut Call<'_>) -> Outcome,
}

/// A command that was called.
struct Call<'a> {
    settings: &'a Settings,
    net: Net,
    server: String,
    database: String,
    args: Vec<String>,
    /// The connection, where the command needs one.
    client: Option<Client>,
    poll: Option<Poll>,
}

impl Call<'_> {
    /// Sends a request and waits for its result; an error ends the command.
    fn request(&mut self, method: &str, params: Vec<Json>) -> Result<Json, Stop> {
        let (Some(client), Some(poll)) = (&mut self.client, &mut self.poll) else {
            return Err(Stop::Fatal("not connected".to_owned()));
        };
        client
            .request(poll, self.settings.deadline, method, params)
            .map_err(failed)
    }
}

/// How a command ends whose request failed.
fn failed(failure: Failure) -> Stop {
    match failure {
        Failure::TimedOut => Stop::TimedOut,
        Failure::Lost(text) => Stop::Fatal(format!("transaction failed ({text})")),
        Failure::Refused(error) => Stop::Fatal(format!("transaction returned error: {error}")),
    }
}

const COMMANDS: [Command; 24] = [
    Command::new("list-dbs", Needs::Server, 0, 0, show::list_dbs),
    Command::new("get-schema", Needs::Database, 0, 0, show::get_schema),
    Command::new(
        "get-schema-version",
        Needs::Database,
        0,
        0,
        show::get_version,
    ),
    Command::new("get-schema-cksum", Needs::Database, 0, 0, show::get_cksum),
    Command::new("list-tables", Needs::Database, 0, 0, show::list_tables),
    Command::new("list-columns", Needs::Database, 0, 1, show::list_columns),
    Command::new("transact", Needs::Address, 1, 1, data::transact),
    Command::new("query", Needs::Address, 1, 1, data::query),
    Command::new("monitor", Needs::Database, 1, usize::MAX, monitor::monitor),
    Command::new("monitor2", Needs::Database, 1, usize::MAX, monitor::monitor),
    Command::new(
        "monitor-cond",
        Needs::Database,
        2,
        usize::MAX,
        monitor::monitor_cond,
    ),
    Command::new(
        "monitor-cond-since",
        Needs::Database,
        2,
        usize::MAX,
        monitor::monitor_cond_since,
    ),
    Command::new("wait", Needs::Nothing, 2, 3, wait::wait),
    Command::new("convert", Needs::Address, 1, 1, files::convert),
    Command::new(
        "needs-conversion",
        Needs::Address,
        1,
        1,
        files::needs_conversion,
    ),
    Command::new("dump", Needs::Database, 0, usize::MAX, data::dump),
    Command::new("backup", Needs::Database, 0, 0, files::backup),
    Command::new("restore", Needs::Database, 0, 0, files::restore),
    Command::new("lock", Needs::Address, 1, 1, lock::lock),
    Command::new("steal", Needs::Address, 1, 1, lock::steal),
    Command::new("unlock", Needs::Address, 1, 1, lock::unlock),
    Command::new("help", Needs::Nothing, 0, usize::MAX, show::help),
    Command::new(
        "list-commands",
        Needs::Nothing,
        0,
        usize::MAX,
        list_commands,
    ),
    Command::new("get-server-id", Needs::Server, 0, 0, show::server_id),
];

impl Command {
    const fn new(
        name: &'static str,
        needs: Needs,
        min: usize,
        max: usize,
        run: fn(&mut Env<'_>, &mut Call<'_>) -> Outcome,
    ) -> Self {
        Self {
            name,
            needs,
            min,
            max,
            run,
        }
    }
}

/// Runs the tool.
pub fn run(env: &mut Env<'_>, args: &[String]) -> Exit {
    let dirs = Dirs::with(|name| env.var(name).map(PathBuf::from));
    let mut settings = match parse(&env.program, args, dirs) {
        Ok(settings) => settings,
        Err(Early::Print(text)) => {
            env.print(text);
            return Exit::SUCCESS;
        }
        Err(Early::Fail(text)) => return env.fatal(text),
        Err(Early::Usage(text)) => {
            // The stream that would show a write error is the one that fails.
            let _ = writeln!(env.stderr, "{text}");
            return Exit::FAILURE;
        }
    };
    if let Err(text) = settings.daemon.become_user(&settings.logger) {
        return env.fatal(text);
    }
    match run_command(env, &settings) {
        Ok(exit) => exit,
        Err(Stop::Fatal(text)) => env.fatal(text),
        Err(Stop::TimedOut) => {
            log::warn!(target: "fatal_signal", "terminating with signal 14 (Alarm clock)");
            Exit::Alarm
        }
    }
}

fn run_command(env: &mut Env<'_>, settings: &Settings) -> Outcome {
    let Some((name, rest)) = settings.operands.split_first() else {
        return Err("missing command name; use --help for help"
            .to_owned()
            .into());
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return Err(format!("unknown command '{name}'; use --help for help").into());
    };
    let net = Net::new(&settings.dirs);
    net.tls().configure(settings.tls.clone());
    let mut call = Call {
        settings,
        net,
        server: String::new(),
        database: String::new(),
        args: rest.to_vec(),
        client: None,
        poll: None,
    };
    if command.needs != Needs::Nothing {
        call.take_server();
    }
    match command.needs {
        Needs::Nothing | Needs::Address => {}
        Needs::Server => call.connect(None)?,
        Needs::Database => call.connect_to_database(command)?,
    }
    let count = call.args.len();
    if count < command.min || count > command.max {
        return Err(format!("invalid syntax for '{name}' (use --help for help)").into());
    }
    (command.run)(env, &mut call)
}

impl Call<'_> {
    /// Takes the server off the arguments, if they begin with one.
    fn take_server(&mut self) {
        let is_server = self.args.first().is_some_and(|arg| {
            let servers = Servers::parse(arg);
            let first = servers.remotes.first();
            servers.cluster.is_some()
                || first
                    .is_some_and(|one| io::stream::is_active(one) || io::stream::is_passive(one))
        });
        self.server = if is_server {
            self.args.remove(0)
        } else {
            let socket = self.settings.dirs.in_run("db.sock");
            format!("unix:{}", socket.display())
        };
    }

    /// Connects to a server, which must have `database` if there are several to choose from.
    fn connect(&mut self, database: Option<&str>) -> Result<(), Stop> {
        let mut poll = rpc::new_poll(&self.settings.clock)?;
        self.client = Some(self.open(database, &mut poll)?);
        self.poll = Some(poll);
        Ok(())
    }

    /// The same, in an event loop of the caller's.
    fn open(&self, database: Option<&str>, poll: &mut Poll) -> Result<Client, Stop> {
        let servers = Servers::parse(&self.server);
        let wanted = Wanted {
            database,
            leader_only: self.settings.leader_only,
        };
        let deadline = self.settings.deadline;
        let mut client = Client::choose(&self.net, &servers, &wanted, poll, deadline)?;
        let aware = self.settings.change_aware;
        if aware.unwrap_or(true) {
            client.set_change_aware(poll, deadline, aware.is_some())?;
        }
        Ok(client)
    }

    /// Starts what every lasting command needs, and connects in the background.  The inner
    /// `Err` is for processes whose part is over.
    fn start(&self, database: Option<&str>) -> Result<Result<(Core, Client), Exit>, Stop> {
        let settings = self.settings;
        let core = Core::start(CoreSettings {
            clock: settings.clock.clone(),
            logger: settings.logger.clone(),
            dirs: settings.dirs.clone(),
            net: self.net.clone(),
            options: settings.daemon.clone(),
            reopen_on_hangup: false,
            takes_signals: true,
        })?;
        let mut core = match core {
            Ok(core) => core,
            Err(status) => return Ok(Err(Exit::Code(status))),
        };
        let client = self.open(database, &mut core.poll)?;
        Ok(Ok((core, client)))
    }

    /// Connects to a server that has the database that the arguments name, or the usual one.
    fn connect_to_database(&mut self, command: &Command) -> Result<(), Stop> {
        if Servers::parse(&self.server).remotes.len() == 1 {
            self.connect(None)?;
            return self.choose_database(command);
        }
        // What is usual on one server need not be so on the next.
        if self.args.len() <= command.min {
            return Err("database name is required with multiple remotes"
                .to_owned()
                .into());
        }
        self.database = self.args.remove(0);
        let database = self.database.clone();
        self.connect(Some(&database))
    }

    /// The names of the server's databases, sorted.
    fn fetch_databases(&mut self) -> Result<Vec<String>, Stop> {
        let names = self.request("list_dbs", vec![])?;
        let names = names.as_array();
        let names = names.ok_or_else(|| "list_dbs response is not array".to_owned())?;
        let mut sorted = Vec::with_capacity(names.len());
        for (i, name) in names.iter().enumerate() {
            let name = name.as_str();
            let name = name.ok_or_else(|| format!("list_dbs response {i} is not string"))?;
            sorted.push(name.to_owned());
        }
        sorted.sort_unstable();
        Ok(sorted)
    }

    /// Takes the database's name off the arguments, if it is there; else it is the usual
    /// one, or the only one.
    fn choose_database(&mut self, command: &Command) -> Result<(), Stop> {
        const DEFAULT: &str = "Open_vSwitch";
        let names = self.fetch_databases()?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let first = self.args.first().map(String::as_str);
        if let Some(first) =
            first.filter(|first| names.contains(first) && self.args.len() > command.min)
        {
            self.database = first.to_owned();
            self.args.remove(0);
            return Ok(());
        }
        let own: Vec<&&str> = names.iter().filter(|name| !name.starts_with('_')).collect();
        self.database = match own.as_slice() {
            _ if names.contains(&DEFAULT) => DEFAULT.to_owned(),
            [only] => (**only).to_owned(),
            _ => {
                return Err(
                    "could not find a default database, please specify a database name"
                        .to_owned()
                        .into(),
                );
            }
        };
        Ok(())
    }
}

fn list_commands(env: &mut Env<'_>, _: &mut Call<'_>) -> Outcome {
    env.print("The available commands are:\n");
    for command in &COMMANDS {
        env.print(format!("  {}\n", command.name));
    }
    Ok(Exit::SUCCESS)
}
