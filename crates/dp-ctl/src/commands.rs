//! The table of commands, and what they have in common.

use std::sync::Arc;

use dp_api::{Datapath, Error};

use crate::host::Host;
use crate::options::{Caller, Options};
use crate::report::Report;
use crate::{conntrack, dump, flows, normalize, ports, show, text_only};

/// A command.
#[derive(Debug)]
pub struct Command {
    /// Its name, without `dpctl/`.
    pub name: &'static str,
    /// Its operands.
    pub usage: &'static str,
    /// Operands at least.
    pub min: usize,
    /// Operands at most.
    pub max: usize,
    /// Whether it changes something.
    pub writes: bool,
    /// Whether a control socket has it too.
    pub on_control: bool,
    /// Whether it is about datapaths, not about text alone.
    pub needs_datapaths: bool,
    run: fn(&mut Call<'_>) -> Outcome,
}

/// Everything that a command needs.
pub(crate) struct Call<'a> {
    pub(crate) command: &'static str,
    pub(crate) host: &'a mut dyn Host,
    pub(crate) caller: Caller,
    pub(crate) options: Options,
    pub(crate) operands: &'a [&'a str],
    pub(crate) report: Report,
}

/// The command failed; the report says why.
#[derive(Debug)]
pub(crate) struct Failed;

pub(crate) type Outcome<T = ()> = Result<T, Failed>;

/// The number of operands that is no limit.
const MANY: usize = usize::MAX;

const fn reads(
    name: &'static str,
    usage: &'static str,
    min: usize,
    max: usize,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command {
        name,
        usage,
        min,
        max,
        writes: false,
        on_control: true,
        needs_datapaths: true,
        run,
    }
}

const fn writes(
    name: &'static str,
    usage: &'static str,
    min: usize,
    max: usize,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command {
        writes: true,
        ..reads(name, usage, min, max, run)
    }
}

/// A command about text alone.
const fn of_text(
    name: &'static str,
    usage: &'static str,
    min: usize,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command {
        needs_datapaths: false,
        ..reads(name, usage, min, MANY, run)
    }
}

/// All commands, in the order in which `list-commands` shows them.
pub const COMMANDS: &[Command] = &[
    writes("add-dp", "dp [iface...]", 1, MANY, ports::add_dp),
    writes("del-dp", "dp", 1, 1, ports::del_dp),
    writes("add-if", "dp iface...", 2, MANY, ports::add_if),
    writes("del-if", "dp iface...", 2, MANY, ports::del_if),
    writes("set-if", "dp iface...", 2, MANY, ports::set_if),
    reads("dump-dps", "", 0, 0, show::dump_dps),
    reads("show", "[-s] [dp...]", 0, MANY, show::show),
    reads(
        "dump-flows",
        "[-m] [--names] [dp] [filter=..] [type=..] [pmd=..]",
        0,
        6,
        dump::dump_flows,
    ),
    writes("add-flow", "[dp] flow actions", 2, 3, flows::add_flow),
    writes("mod-flow", "[dp] flow actions", 2, 3, flows::mod_flow),
    reads("get-flow", "[dp] ufid", 1, 2, dump::get_flow),
    writes("del-flow", "[dp] flow", 1, 2, flows::del_flow),
    writes("add-flows", "[dp] file", 1, 2, flows::add_flows),
    writes("mod-flows", "[dp] file", 1, 2, flows::mod_flows),
    writes("del-flows", "[dp] [file]", 0, 2, flows::del_flows),
    reads("offload-stats-show", "[dp]", 0, 1, show::offload_stats),
    reads(
        "dump-conntrack",
        "[-m] [-s] [dp] [zone=N]",
        0,
        4,
        conntrack::dump,
    ),
    reads(
        "dump-conntrack-exp",
        "[dp] [zone=N]",
        0,
        2,
        conntrack::dump_expectations,
    ),
    writes(
        "flush-conntrack",
        "[dp] [zone=N] [mark=X[/M]] [labels=Y[/N]] [ct-orig-tuple [ct-reply-tuple]]",
        0,
        6,
        conntrack::flush,
    ),
    reads("cache-get-size", "[dp]", 0, 1, show::cache_get_size),
    writes(
        "cache-set-size",
        "dp cache <size>",
        3,
        3,
        show::cache_set_size,
    ),
    reads("ct-stats-show", "[dp] [zone=N]", 0, 3, conntrack::stats),
    reads("ct-bkts", "[dp] [gt=N]", 0, 2, conntrack::buckets),
    writes("ct-set-maxconns", "[dp] maxconns", 1, 2, no_tracker),
    reads("ct-get-maxconns", "[dp]", 0, 1, no_tracker),
    reads("ct-get-nconns", "[dp]", 0, 1, no_tracker),
    writes("ct-enable-tcp-seq-chk", "[dp]", 0, 1, no_tracker),
    writes("ct-disable-tcp-seq-chk", "[dp]", 0, 1, no_tracker),
    reads("ct-get-tcp-seq-chk", "[dp]", 0, 1, no_tracker),
    reads(
        "ct-set-limits",
        "[dp] [default=L] [zone=N,limit=L]...",
        1,
        MANY,
        conntrack::set_limits,
    ),
    reads(
        "ct-del-limits",
        "[dp] [default] [zone=N1[,N2]...]",
        1,
        3,
        conntrack::delete_limits,
    ),
    reads(
        "ct-get-limits",
        "[dp] [zone=N1[,N2]...]",
        0,
        2,
        conntrack::get_limits,
    ),
    reads("ct-get-sweep-interval", "[dp]", 0, 1, no_tracker),
    writes("ct-set-sweep-interval", "[dp] ms", 1, 2, no_tracker),
    writes("ipf-set-enabled", "[dp] v4|v6", 1, 2, no_reassembly),
    writes("ipf-set-disabled", "[dp] v4|v6", 1, 2, no_reassembly),
    writes(
        "ipf-set-min-frag",
        "[dp] v4|v6 minfragment",
        2,
        3,
        no_reassembly,
    ),
    writes("ipf-set-max-nfrags", "[dp] maxfrags", 1, 2, no_reassembly),
    reads("ipf-get-status", "[dp]", 0, 1, no_reassembly),
    Command {
        on_control: false,
        ..of_text("help", "", 0, text_only::help)
    },
    of_text("list-commands", "", 0, text_only::list_commands),
    of_text(
        "parse-actions",
        "actions",
        1,
        normalize::parse_actions_command,
    ),
    of_text(
        "normalize-actions",
        "actions",
        2,
        normalize::normalize_actions,
    ),
];

/// The command called `name`.
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Carries out `command`, of which the number of operands was checked.
pub fn run(
    command: &Command,
    host: &mut dyn Host,
    caller: Caller,
    options: Options,
    operands: &[&str],
) -> Report {
    let mut call = Call {
        command: command.name,
        host,
        caller,
        options,
        operands,
        report: Report::default(),
    };
    if (command.run)(&mut call).is_err() {
        call.report.fail();
    }
    call.report
}

/// The kernel's word for an error; `missing` is what "not found" means.
pub(crate) fn errno(error: &Error, missing: &str) -> String {
    let text = match error {
        Error::NotFound(_) => missing,
        Error::Exists(_) => "File exists",
        Error::Invalid(_) => "Invalid argument",
        Error::Unsupported(_) => "Operation not supported",
        Error::Full(_) => "File too large",
        Error::System(number, _) => {
            return base::errno_text(&std::io::Error::from_raw_os_error(*number));
        }
    };
    text.to_owned()
}

pub(crate) const NO_DEVICE: &str = "No such device";
pub(crate) const NO_ENTRY: &str = "No such file or directory";
pub(crate) const INVALID: &str = "Invalid argument";
pub(crate) const NO_FAMILY: &str = "Address family not supported by protocol";

/// A datapath's name and, before an at sign, its type.
pub(crate) fn split_name(name: &str) -> (&str, &str) {
    name.split_once('@').unwrap_or(("system", name))
}

/// `TYPE@NAME`.
pub(crate) fn full_name(datapath: &Arc<dyn Datapath>) -> String {
    format!("{}@{}", datapath.kind(), datapath.name())
}

impl Call<'_> {
    /// The command fails because of this.
    pub(crate) fn fail<T>(&mut self, text: impl Into<String>) -> Outcome<T> {
        self.report.complain(text);
        Err(Failed)
    }

    /// The same with the kernel's word for it.
    pub(crate) fn fail_with<T>(&mut self, what: &str, why: &str) -> Outcome<T> {
        self.fail(format!("{what} ({why})"))
    }

    pub(crate) fn print(&mut self, text: impl Into<String>) {
        self.report.print(text);
    }

    /// The datapath called `name`, or the kernel's word for why there is none.
    pub(crate) fn try_open(&self, name: &str) -> Result<Arc<dyn Datapath>, String> {
        let (kind, name) = split_name(name);
        if !self.host.kinds().iter().any(|k| k == kind) {
            // The kernel's datapaths are always thought of; others must be known.
            let why = if kind == "system" {
                NO_DEVICE
            } else {
                NO_FAMILY
            };
            return Err(why.to_owned());
        }
        let opened = self.host.open(kind, name);
        opened.map_err(|error| errno(&error, NO_DEVICE))
    }

    /// The datapath called `name`.
    pub(crate) fn open(&mut self, name: &str) -> Outcome<Arc<dyn Datapath>> {
        match self.try_open(name) {
            Ok(datapath) => Ok(datapath),
            Err(why) => self.fail_with("opening datapath", &why),
        }
    }

    /// All datapaths by type and name, and the first failure to list them.
    pub(crate) fn all(&self) -> (Vec<(String, String)>, Option<Error>) {
        let mut all = Vec::new();
        let mut failure = None;
        for kind in self.host.kinds() {
            match self.host.names(&kind) {
                Ok(names) => all.extend(names.into_iter().map(|name| (kind.clone(), name))),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        (all, failure)
    }

    /// Whether there is a datapath called `name`.
    pub(crate) fn exists(&self, name: &str) -> bool {
        let (kind, name) = split_name(name);
        let names = self.host.names(kind).unwrap_or_default();
        names.iter().any(|n| n == name)
    }

    /// The datapath that the first operand names if there are more than `own` operands, and
    /// otherwise the only one; and the operands after it.
    pub(crate) fn optional_datapath<'o>(
        &mut self,
        operands: &'o [&'o str],
        own: usize,
    ) -> Outcome<(Arc<dyn Datapath>, &'o [&'o str])> {
        if operands.len() > own {
            let (name, rest) = (operands[0], &operands[1..]);
            if !self.exists(name) || rest.len() > own {
                return self.fail_with("datapath not found", INVALID);
            }
            return Ok((self.open(name)?, rest));
        }
        let (mut all, _) = self.all();
        let problem = match (all.pop(), all.pop()) {
            (Some((kind, name)), None) => {
                return Ok((self.open(&format!("{kind}@{name}"))?, operands));
            }
            (None, _) => "no datapaths exist",
            _ => "multiple datapaths, specify one",
        };
        self.report.complain(problem);
        self.fail_with("datapath not found", INVALID)
    }
}

fn no_tracker(call: &mut Call<'_>) -> Outcome {
    let name = call.command;
    call.fail_with(
        &format!("{name}: connection tracking is not there yet"),
        "Operation not supported",
    )
}

fn no_reassembly(call: &mut Call<'_>) -> Outcome {
    let name = call.command;
    call.fail_with(
        &format!("{name}: reassembly of fragments is not there yet"),
        "Operation not supported",
    )
}
