//! `ovs-vsctl`: edits the configuration of a switch in its database.

mod bridge;
mod commands;
mod controller;
mod help;
mod model;
mod other;
mod port;
mod tables;
mod zone;

use db_client::{Interest, Layout, Replica, Success};
use db_model::{OPEN_VSWITCH_SCHEMA, Uuid};

use self::model::Model;
use self::tables::Tables;
use crate::ctl::command::Syntax;
use crate::ctl::names::{By, RowName, column};
use crate::ctl::show::{self, ShowTable};
use crate::ctl::{Cmd, Context, Handler, ManagedBy, Managers, Preparation, Schema, Tool, atoi};
use crate::{Env, Exit};

type Ctx<'a> = Context<'a, Vsctl>;
type Prep<'a> = Preparation<'a, Vsctl>;
type Command = Cmd<Vsctl>;

/// The status of a run whose ports could not be set up.
const PORT_FAILED: u8 = 65;

/// The tool in one attempt at its commands.
struct Vsctl {
    tables: Tables,
    names: Vec<RowName>,
    shown: Vec<ShowTable>,
    /// The row of the switch.
    ovs: Option<Uuid>,
    model: Option<Model>,
    /// The interfaces that port commands have inserted.
    new_interfaces: Vec<Uuid>,
}

/// Runs `ovs-vsctl`.
pub fn run(env: &mut Env<'_>, args: &[String]) -> Exit {
    crate::ctl::run::<Vsctl>(env, args)
}

impl Schema for Vsctl {
    fn row_names(&self) -> &[RowName] {
        &self.names
    }

    fn show_tables(&self) -> &[ShowTable] {
        &self.shown
    }
}

impl Tool for Vsctl {
    const MODULE: &'static str = "vsctl";
    const SCHEMA: &'static str = OPEN_VSWITCH_SCHEMA;
    const READS: &'static [&'static str] = commands::READS;

    fn commands() -> &'static [Syntax<Handler<Self>>] {
        &commands::COMMANDS
    }

    fn new(layout: &Layout) -> Self {
        Self {
            tables: Tables::find(layout),
            names: row_names(layout),
            shown: show_tables(layout),
            ovs: None,
            model: None,
            new_interfaces: Vec::new(),
        }
    }

    fn help(&self, env: &Env<'_>, layout: &Layout) -> String {
        help::text(env, layout, &self.names)
    }

    fn prepare(&self, interest: &mut Interest, wait: bool) {
        let ovs = self.tables.ovs;
        interest.add_table(ovs.table);
        if wait {
            interest.add_column(ovs.table, ovs.cur_cfg.id());
        }
    }

    fn begin(ctx: &mut Ctx<'_>, wait: bool) {
        let ovs = ctx.tool.tables.ovs;
        let row = ctx.rows(ovs.table).first().copied();
        let row = row.unwrap_or_else(|| {
            // The first command on an empty database makes the row of the switch.
            ctx.txn.verify_empty(ovs.table);
            ctx.insert(ovs.table)
        });
        ctx.tool.ovs = Some(row);
        if wait {
            ctx.txn.increment(ovs.table, row, ovs.next_cfg.id(), false);
        }
    }

    fn caught_up(&self, replica: &Replica, goal: i64) -> bool {
        let ovs = self.tables.ovs;
        let mut rows = replica.table(ovs.table).rows();
        rows.any(|row| row.read(ovs.cur_cfg) >= goal)
    }

    fn complaint(
        &self,
        env: &Env<'_>,
        replica: &Replica,
        success: &Success,
    ) -> Option<(String, u8)> {
        let t = self.tables.interface;
        let program = &env.program;
        let mut text = String::new();
        for new in &self.new_interfaces {
            let row = success.inserted.get(new);
            let Some(row) = row.and_then(|row| replica.row(t.table, *row)) else {
                continue;
            };
            let (name, error) = (row.read(t.name), row.read(t.error));
            if row.read(t.ofport) != Some(-1) && error.is_none() {
                continue;
            }
            let error = error.map(|error| format!(": {error}")).unwrap_or_default();
            text += &format!(
                "{program}: Error detected while setting up '{name}'{error}.  See ovs-vswitchd \
                 log for details.\n"
            );
        }
        if text.is_empty() {
            return None;
        }
        text += &format!(
            "{program}: The default log directory is \"{}\".\n",
            env.dirs.log.display()
        );
        Some((text, PORT_FAILED))
    }
}

impl ManagedBy for Vsctl {
    fn managers(&self) -> Managers {
        let t = self.tables;
        Managers {
            listed: t.ovs.manager_options,
            table: t.manager.table,
            target: t.manager.target,
            inactivity_probe: t.manager.inactivity_probe,
        }
    }

    fn top(&self) -> Option<Uuid> {
        self.ovs
    }
}

/// How rows are named.
fn row_names(layout: &Layout) -> Vec<RowName> {
    let mut names = Vec::new();
    for (table, name) in [
        ("Bridge", "name"),
        ("Flow_Sample_Collector_Set", "id"),
        ("Flow_Table", "name"),
        ("Interface", "name"),
        ("Manager", "target"),
        ("Mirror", "name"),
        ("Port", "name"),
    ] {
        if let Some((table, column)) = column(layout, table, name) {
            let by = By::Column(column);
            names.push(RowName { table, by });
        }
    }
    for (table, referrer, via) in [
        ("AutoAttach", "Bridge", "auto_attach"),
        ("Controller", "Bridge", "controller"),
        ("IPFIX", "Bridge", "ipfix"),
        ("NetFlow", "Bridge", "netflow"),
        ("QoS", "Port", "qos"),
        ("sFlow", "Bridge", "sflow"),
    ] {
        let found = (
            layout.table(table),
            column(layout, referrer, "name"),
            column(layout, referrer, via),
        );
        if let (Some(table), Some((referrer, name)), Some((_, via))) = found {
            let by = By::Referrer {
                table: referrer,
                name,
                via,
            };
            names.push(RowName { table, by });
        }
    }
    for table in ["Open_vSwitch", "SSL"] {
        if let Some(table) = layout.table(table) {
            names.push(RowName { table, by: By::Dot });
        }
    }
    names
}

/// What `show` shows.
fn show_tables(layout: &Layout) -> Vec<ShowTable> {
    show::find(
        layout,
        &[
            (
                "Open_vSwitch",
                None,
                &["manager_options", "bridges", "ovs_version"],
            ),
            (
                "Bridge",
                Some("name"),
                &["controller", "fail_mode", "datapath_type", "ports"],
            ),
            ("Port", Some("name"), &["tag", "trunks", "interfaces"]),
            ("Interface", Some("name"), &["type", "options", "error"]),
            ("Controller", Some("target"), &["is_connected"]),
            ("Manager", Some("target"), &["is_connected"]),
        ],
    )
}
