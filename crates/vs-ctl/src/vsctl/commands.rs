//! The commands of `ovs-vsctl`.

use super::{Command, Ctx, Prep, Vsctl, bridge, controller, model, other, port, zone};
use crate::ctl::command::{Syntax, Takes};
use crate::ctl::db::{self, syntax};
use crate::ctl::managers::{self, PROBE};
use crate::ctl::{Done, Handler, show};

const MAY_EXIST: (&str, Takes) = ("--may-exist", Takes::Nothing);
const IF_EXISTS: (&str, Takes) = ("--if-exists", Takes::Nothing);

const MANY: usize = usize::MAX;

fn prepare_nothing(_: &mut Prep<'_>, _: &Command) -> Result<(), String> {
    Ok(())
}

fn prepare_model(prep: &mut Prep<'_>, _: &Command) -> Result<(), String> {
    model::prepare(prep);
    Ok(())
}

fn nothing(_: &mut Ctx<'_>, _: &Command) -> Done {
    Ok(())
}

type Run = fn(&mut Ctx<'_>, &Command) -> Done;

/// A command that works on bridges, ports and interfaces by name.
const fn on_model(
    usage: (&'static str, usize, usize, &'static str),
    options: &'static [(&'static str, Takes)],
    run: Run,
) -> Syntax<Handler<Vsctl>> {
    syntax(usage, options, prepare_model, run)
}

const fn on_zones(
    usage: (&'static str, usize, usize, &'static str),
    options: &'static [(&'static str, Takes)],
    run: Run,
) -> Syntax<Handler<Vsctl>> {
    syntax(usage, options, zone::prepare, run)
}

const fn on_controllers(
    usage: (&'static str, usize, usize, &'static str),
    options: &'static [(&'static str, Takes)],
    run: Run,
) -> Syntax<Handler<Vsctl>> {
    syntax(usage, options, controller::prepare_controllers, run)
}

const BRIDGES: [Syntax<Handler<Vsctl>>; 8] = [
    on_model(
        ("add-br", 1, 3, "!NEW-BRIDGE ?PARENT ?NEW-VLAN"),
        &[MAY_EXIST],
        bridge::add_br,
    ),
    on_model(("del-br", 1, 1, "!BRIDGE"), &[IF_EXISTS], bridge::del_br),
    on_model(
        ("list-br", 0, 0, ""),
        &[("--real", Takes::Nothing), ("--fake", Takes::Nothing)],
        bridge::list_br,
    ),
    on_model(("br-exists", 1, 1, "!BRIDGE"), &[], bridge::br_exists),
    on_model(("br-to-vlan", 1, 1, "!BRIDGE"), &[], bridge::br_to_vlan),
    on_model(("br-to-parent", 1, 1, "!BRIDGE"), &[], bridge::br_to_parent),
    syntax(
        ("br-set-external-id", 2, 3, "!BRIDGE !KEY ?VALUE"),
        &[],
        bridge::prepare_external_ids,
        bridge::br_set_external_id,
    ),
    syntax(
        ("br-get-external-id", 1, 2, "!BRIDGE ?KEY"),
        &[],
        bridge::prepare_external_ids,
        bridge::br_get_external_id,
    ),
];

const PORTS: [Syntax<Handler<Vsctl>>; 9] = [
    on_model(("list-ports", 1, 1, "!BRIDGE"), &[], port::list_ports),
    syntax(
        ("add-port", 2, MANY, "!BRIDGE !NEW-PORT *COLUMN?:KEY=VALUE"),
        &[MAY_EXIST],
        port::prepare_add_port,
        port::add_port,
    ),
    syntax(
        (
            "add-bond",
            4,
            MANY,
            "!BRIDGE !BOND +IFACE *COLUMN?:KEY=VALUE",
        ),
        &[MAY_EXIST, ("--fake-iface", Takes::Nothing)],
        port::prepare_add_bond,
        port::add_bond,
    ),
    on_model(
        ("add-bond-iface", 2, 2, "!BOND !IFACE"),
        &[MAY_EXIST],
        port::add_bond_iface,
    ),
    on_model(
        ("del-bond-iface", 1, 2, "?BOND !IFACE"),
        &[IF_EXISTS],
        port::del_bond_iface,
    ),
    on_model(
        ("del-port", 1, 2, "?BRIDGE !PORT|IFACE"),
        &[IF_EXISTS, ("--with-iface", Takes::Nothing)],
        port::del_port,
    ),
    on_model(("port-to-br", 1, 1, "!PORT"), &[], port::port_to_br),
    on_model(("list-ifaces", 1, 1, "!BRIDGE"), &[], port::list_ifaces),
    on_model(("iface-to-br", 1, 1, "!IFACE"), &[], port::iface_to_br),
];

const CONTROLLERS: [Syntax<Handler<Vsctl>>; 6] = [
    on_controllers(
        ("get-controller", 1, 1, "!BRIDGE"),
        &[],
        controller::get_controller,
    ),
    on_controllers(
        ("del-controller", 1, 1, "!BRIDGE"),
        &[],
        controller::del_controller,
    ),
    on_controllers(
        ("set-controller", 1, MANY, "!BRIDGE +TARGET"),
        &[PROBE],
        controller::set_controller,
    ),
    on_model(
        ("get-fail-mode", 1, 1, "!BRIDGE"),
        &[],
        controller::get_fail_mode,
    ),
    on_model(
        ("del-fail-mode", 1, 1, "!BRIDGE"),
        &[],
        controller::del_fail_mode,
    ),
    on_model(
        ("set-fail-mode", 2, 2, "!BRIDGE !MODE"),
        &[],
        controller::set_fail_mode,
    ),
];

const TLS: [Syntax<Handler<Vsctl>>; 3] = [
    syntax(
        ("get-ssl", 0, 0, ""),
        &[],
        controller::prepare_ssl,
        controller::get_ssl,
    ),
    syntax(
        ("del-ssl", 0, 0, ""),
        &[],
        controller::prepare_ssl,
        controller::del_ssl,
    ),
    syntax(
        ("set-ssl", 3, 3, "!PRIVATE-KEY !CERTIFICATE !CA-CERT"),
        &[("--bootstrap", Takes::Nothing)],
        controller::prepare_ssl,
        controller::set_ssl,
    ),
];

const OTHERS: [Syntax<Handler<Vsctl>>; 13] = [
    syntax(("init", 0, 0, ""), &[], prepare_nothing, nothing),
    show::command(),
    syntax(
        ("emer-reset", 0, 0, ""),
        &[],
        other::prepare_emer_reset,
        other::emer_reset,
    ),
    syntax(
        ("add-aa-mapping", 3, 3, "!BRIDGE !ARG !ARG"),
        &[],
        other::prepare_auto_attach,
        other::add_aa_mapping,
    ),
    syntax(
        ("del-aa-mapping", 3, 3, "!BRIDGE !ARG !ARG"),
        &[],
        other::prepare_auto_attach,
        other::del_aa_mapping,
    ),
    syntax(
        ("get-aa-mapping", 1, 1, "!BRIDGE"),
        &[],
        other::prepare_auto_attach,
        other::get_aa_mapping,
    ),
    on_zones(
        ("add-zone-tp", 3, MANY, ""),
        &[MAY_EXIST],
        zone::add_zone_tp,
    ),
    on_zones(("del-zone-tp", 2, 2, ""), &[IF_EXISTS], zone::del_zone_tp),
    on_zones(("list-zone-tp", 1, 1, ""), &[], zone::list_zone_tp),
    on_zones(
        ("set-zone-limit", 3, 3, "!ARG !ARG !ARG"),
        &[],
        zone::set_zone_limit,
    ),
    on_zones(
        ("del-zone-limit", 2, 2, "!ARG !ARG"),
        &[IF_EXISTS],
        zone::del_zone_limit,
    ),
    on_zones(
        ("list-zone-limits", 1, 1, "!ARG"),
        &[],
        zone::list_zone_limits,
    ),
    on_zones(("list-dp-cap", 1, 1, ""), &[], zone::list_dp_cap),
];

/// The commands that change nothing.
pub(super) const READS: &[&str] = &[
    "list-br",
    "br-exists",
    "br-to-vlan",
    "br-to-parent",
    "br-get-external-id",
    "list-ports",
    "port-to-br",
    "list-ifaces",
    "iface-to-br",
    "get-controller",
    "get-fail-mode",
    "get-manager",
    "get-ssl",
    "get-aa-mapping",
    "list-zone-tp",
    "list-zone-limits",
    "list-dp-cap",
];

/// All commands, those of this tool first.
pub(super) static COMMANDS: std::sync::LazyLock<Vec<Syntax<Handler<Vsctl>>>> =
    std::sync::LazyLock::new(|| {
        let mut all = Vec::new();
        all.extend(BRIDGES);
        all.extend(PORTS);
        all.extend(CONTROLLERS);
        all.extend(managers::commands());
        all.extend(TLS);
        all.extend(OTHERS);
        all.extend(db::commands());
        all
    });
