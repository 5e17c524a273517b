//! `vtep-ctl`: edits the database of a hardware VTEP, schema `hardware_vtep`.

mod commands;
mod help;
mod logical;
mod macs;
mod physical;
mod tables;

use db_client::{Interest, Layout};
use db_model::{HARDWARE_VTEP_SCHEMA, Uuid};

use self::tables::Tables;
use crate::ctl::command::Syntax;
use crate::ctl::names::{By, RowName, column};
use crate::ctl::show::{self, ShowTable};
use crate::ctl::{Cmd, Context, Handler, ManagedBy, Managers, Preparation, Schema, Tool};
use crate::{Env, Exit};

type Ctx<'a> = Context<'a, VtepCtl>;
type Prep<'a> = Preparation<'a, VtepCtl>;
type Command = Cmd<VtepCtl>;

/// The tool in one attempt at its commands.
struct VtepCtl {
    tables: Tables,
    names: Vec<RowName>,
    shown: Vec<ShowTable>,
    /// The only row of table `Global`.
    global: Option<Uuid>,
}

/// Runs `vtep-ctl`.
pub fn run(env: &mut Env<'_>, args: &[String]) -> Exit {
    crate::ctl::run::<VtepCtl>(env, args)
}

impl Schema for VtepCtl {
    fn row_names(&self) -> &[RowName] {
        &self.names
    }

    fn show_tables(&self) -> &[ShowTable] {
        &self.shown
    }
}

impl Tool for VtepCtl {
    const MODULE: &'static str = "vtep_ctl";
    const SCHEMA: &'static str = HARDWARE_VTEP_SCHEMA;
    const READS: &'static [&'static str] = commands::READS;
    const TELLS_CALLER: bool = false;
    const LACKS: &'static [&'static str] = &[
        "no-wait",
        "retry",
        "commands",
        "options",
        "leader-only",
        "no-leader-only",
        "shuffle-remotes",
        "no-shuffle-remotes",
    ];

    fn commands() -> &'static [Syntax<Handler<Self>>] {
        &commands::COMMANDS
    }

    fn new(layout: &Layout) -> Self {
        Self {
            tables: Tables::find(layout),
            names: row_names(layout),
            shown: show_tables(layout),
            global: None,
        }
    }

    fn help(&self, env: &Env<'_>, layout: &Layout) -> String {
        help::text(env, layout, &self.names)
    }

    fn prepare(&self, interest: &mut Interest, _wait: bool) {
        interest.add_table(self.tables.global.table);
    }

    fn begin(ctx: &mut Ctx<'_>, _wait: bool) {
        let table = ctx.tool.tables.global.table;
        let row = ctx.rows(table).first().copied();
        let row = row.unwrap_or_else(|| {
            // The first command on an empty database makes the row.
            ctx.txn.verify_empty(table);
            ctx.insert(table)
        });
        ctx.tool.global = Some(row);
    }
}

impl ManagedBy for VtepCtl {
    fn managers(&self) -> Managers {
        let t = self.tables;
        Managers {
            listed: t.global.managers,
            table: t.manager.table,
            target: t.manager.target,
            inactivity_probe: t.manager.inactivity_probe,
        }
    }

    fn top(&self) -> Option<Uuid> {
        self.global
    }
}

/// How rows are named.
fn row_names(layout: &Layout) -> Vec<RowName> {
    let named = [
        ("Logical_Router", "name"),
        ("Logical_Switch", "name"),
        ("Manager", "target"),
        ("Physical_Port", "name"),
        ("Physical_Switch", "name"),
    ];
    let mut names: Vec<RowName> = named
        .into_iter()
        .filter_map(|(table, name)| column(layout, table, name))
        .map(|(table, name)| RowName {
            table,
            by: By::Column(name),
        })
        .collect();
    if let Some(table) = layout.table("Global") {
        names.push(RowName { table, by: By::Dot });
    }
    names
}

/// What `show` shows.
fn show_tables(layout: &Layout) -> Vec<ShowTable> {
    show::find(
        layout,
        &[
            ("Global", None, &["managers", "switches"]),
            ("Manager", Some("target"), &["is_connected"]),
            (
                "Physical_Switch",
                Some("name"),
                &["management_ips", "tunnel_ips", "ports"],
            ),
            ("Physical_Port", Some("name"), &["vlan_bindings"]),
            ("Logical_Switch", Some("name"), &[]),
        ],
    )
}
