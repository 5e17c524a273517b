//! The commands of `vtep-ctl`.

use super::{Command, Ctx, Prep, VtepCtl, logical, macs, physical};
use crate::ctl::command::{Syntax, Takes};
use crate::ctl::db::{self, syntax};
use crate::ctl::{Done, Handler, managers, show};

const MAY_EXIST: (&str, Takes) = ("--may-exist", Takes::Nothing);
const IF_EXISTS: (&str, Takes) = ("--if-exists", Takes::Nothing);

type Usage = (&'static str, usize, usize, &'static str);
type Options = &'static [(&'static str, Takes)];
type Prepare = fn(&mut Prep<'_>, &Command) -> Result<(), String>;
type Run = fn(&mut Ctx<'_>, &Command) -> Done;
type Row = (Usage, Options, Prepare, Run);

const PHYSICAL: [Row; 10] = [
    (
        ("add-ps", 1, 1, "!PS"),
        &[MAY_EXIST],
        physical::prepare,
        physical::add_ps,
    ),
    (
        ("del-ps", 1, 1, "!PS"),
        &[IF_EXISTS],
        physical::prepare,
        physical::del_ps,
    ),
    (
        ("list-ps", 0, 0, ""),
        &[],
        physical::prepare,
        physical::list_ps,
    ),
    (
        ("ps-exists", 1, 1, "!PS"),
        &[],
        physical::prepare,
        physical::ps_exists,
    ),
    (
        ("list-ports", 1, 1, "!PS"),
        &[],
        physical::prepare,
        physical::list_ports,
    ),
    (
        ("add-port", 2, 2, "!PS !PORT"),
        &[MAY_EXIST],
        physical::prepare,
        physical::add_port,
    ),
    (
        ("del-port", 2, 2, "!PS !PORT"),
        &[IF_EXISTS],
        physical::prepare,
        physical::del_port,
    ),
    (
        ("list-bindings", 2, 2, "!PS !PORT"),
        &[],
        physical::prepare_bindings,
        physical::list_bindings,
    ),
    (
        ("bind-ls", 4, 4, "!PS !PORT !VLAN !LS"),
        &[],
        physical::prepare_bindings,
        physical::bind_ls,
    ),
    (
        ("unbind-ls", 3, 3, "!PS !PORT !VLAN"),
        &[],
        physical::prepare_bindings,
        physical::unbind_ls,
    ),
];

const LOGICAL: [Row; 10] = [
    (
        ("add-ls", 1, 1, "!LS"),
        &[MAY_EXIST],
        logical::prepare_switches,
        logical::add_ls,
    ),
    (
        ("del-ls", 1, 1, "!LS"),
        &[IF_EXISTS],
        logical::prepare_switches,
        logical::del_ls,
    ),
    (
        ("list-ls", 0, 0, ""),
        &[],
        logical::prepare_switches,
        logical::list_ls,
    ),
    (
        ("ls-exists", 1, 1, "!LS"),
        &[],
        logical::prepare_switches,
        logical::ls_exists,
    ),
    (
        ("set-replication-mode", 2, 2, "!LS !MODE"),
        &[],
        logical::prepare_switches,
        logical::set_replication_mode,
    ),
    (
        ("get-replication-mode", 1, 1, "!LS"),
        &[],
        logical::prepare_switches,
        logical::get_replication_mode,
    ),
    (
        ("add-lr", 1, 1, "!LR"),
        &[MAY_EXIST],
        logical::prepare_routers,
        logical::add_lr,
    ),
    (
        ("del-lr", 1, 1, "!LR"),
        &[IF_EXISTS],
        logical::prepare_routers,
        logical::del_lr,
    ),
    (
        ("list-lr", 0, 0, ""),
        &[],
        logical::prepare_routers,
        logical::list_lr,
    ),
    (
        ("lr-exists", 1, 1, "!LR"),
        &[],
        logical::prepare_routers,
        logical::lr_exists,
    ),
];

const MACS: [(Usage, Run); 12] = [
    (
        ("add-ucast-local", 3, 4, "!LS !MAC ?ENCAP !IP"),
        macs::add_ucast_local,
    ),
    (("del-ucast-local", 2, 2, "!LS !MAC"), macs::del_ucast_local),
    (
        ("add-mcast-local", 3, 4, "!LS !MAC ?ENCAP !IP"),
        macs::add_mcast_local,
    ),
    (
        ("del-mcast-local", 3, 4, "!LS !MAC ?ENCAP !IP"),
        macs::del_mcast_local,
    ),
    (("clear-local-macs", 1, 1, "!LS"), macs::clear_local),
    (("list-local-macs", 1, 1, "!LS"), macs::list_local),
    (
        ("add-ucast-remote", 3, 4, "!LS !MAC ?ENCAP !IP"),
        macs::add_ucast_remote,
    ),
    (
        ("del-ucast-remote", 2, 2, "!LS !MAC"),
        macs::del_ucast_remote,
    ),
    (
        ("add-mcast-remote", 3, 4, "!LS !MAC ?ENCAP !IP"),
        macs::add_mcast_remote,
    ),
    (
        ("del-mcast-remote", 3, 4, "!LS !MAC ?ENCAP !IP"),
        macs::del_mcast_remote,
    ),
    (("clear-remote-macs", 1, 1, "!LS"), macs::clear_remote),
    (("list-remote-macs", 1, 1, "!LS"), macs::list_remote),
];

/// The commands that change nothing.
pub(super) const READS: &[&str] = &[
    "list-ps",
    "ps-exists",
    "list-ports",
    "list-ls",
    "ls-exists",
    "list-bindings",
    "get-replication-mode",
    "list-lr",
    "lr-exists",
    "list-local-macs",
    "list-remote-macs",
    "get-manager",
];

/// All commands, those of this tool first.
pub(super) static COMMANDS: std::sync::LazyLock<Vec<Syntax<Handler<VtepCtl>>>> =
    std::sync::LazyLock::new(|| {
        let own = PHYSICAL.into_iter().chain(LOGICAL);
        let own = own.map(|(usage, options, prepare, run)| syntax(usage, options, prepare, run));
        let macs = MACS.into_iter();
        let macs = macs.map(|(usage, run)| syntax(usage, &[], macs::prepare, run));
        let mut all: Vec<_> = own.chain(macs).collect();
        all.extend(managers::commands());
        all.push(show::command());
        all.extend(db::commands());
        all
    });
