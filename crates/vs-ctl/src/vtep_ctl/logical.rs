//! Commands on logical switches and logical routers.

use db_client::{Column, One, TableColumns, TableId};
use db_model::{Atom, Uuid};

use super::physical::print_sorted;
use super::{Command, Ctx, Prep};
use crate::ctl::{Done, Failure};

/// A table of things with names: logical switches, logical routers.
#[derive(Clone, Copy)]
struct Kind {
    /// What one is called in messages.
    what: &'static str,
    table: TableId,
    name: Column<One<str>>,
}

fn switches(ctx: &Ctx<'_>) -> Kind {
    let t = ctx.tool.tables.logical_switch;
    Kind {
        what: "logical switch",
        table: t.table,
        name: t.name,
    }
}

fn routers(ctx: &Ctx<'_>) -> Kind {
    let t = ctx.tool.tables.logical_router;
    Kind {
        what: "logical router",
        table: t.table,
        name: t.name,
    }
}

impl Kind {
    fn row(self, ctx: &Ctx<'_>, name: &str) -> Option<Uuid> {
        let named = |row: &Uuid| self.name.get(&ctx.txn, ctx.replica, *row) == name;
        ctx.rows(self.table).into_iter().find(named)
    }

    fn find(self, ctx: &Ctx<'_>, name: &str) -> Done<Uuid> {
        let row = self.row(ctx, name);
        row.ok_or_else(|| format!("no {} named {name}", self.what).into())
    }

    fn add(self, ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
        let name = cmd.arg(1).unwrap_or_default();
        if self.row(ctx, name).is_some() {
            if cmd.has("--may-exist") {
                return Ok(());
            }
            let what = self.what;
            return Err(format!("cannot create {what} {name} because it already exists").into());
        }
        let row = ctx.insert(self.table);
        let name = Atom::string(name);
        self.name.set(&mut ctx.txn, ctx.replica, row, name);
        Ok(())
    }

    fn del(self, ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
        let name = cmd.arg(1).unwrap_or_default();
        let row = if cmd.has("--if-exists") {
            self.row(ctx, name)
        } else {
            Some(self.find(ctx, name)?)
        };
        if let Some(row) = row {
            ctx.txn.delete(self.table, row);
        }
        Ok(())
    }

    fn list(self, ctx: &mut Ctx<'_>) {
        let name = |row| self.name.get(&ctx.txn, ctx.replica, row).to_owned();
        let names = ctx.rows(self.table).into_iter().map(name).collect();
        print_sorted(ctx, names);
    }

    fn exists(self, ctx: &Ctx<'_>, cmd: &Command) -> Done {
        match self.row(ctx, cmd.arg(1).unwrap_or_default()) {
            Some(_) => Ok(()),
            None => Err(Failure::Exit(2)),
        }
    }
}

/// Asks for the logical switches.
pub(super) fn prepare_switches(prep: &mut Prep<'_>, _: &Command) -> Result<(), String> {
    prep.tool.tables.logical_switch.want(prep.interest);
    Ok(())
}

/// Asks for the logical routers.
pub(super) fn prepare_routers(prep: &mut Prep<'_>, _: &Command) -> Result<(), String> {
    prep.tool.tables.logical_router.want(prep.interest);
    Ok(())
}

/// The logical switch called `name`.
pub(super) fn find_logical_switch(ctx: &Ctx<'_>, name: &str) -> Done<Uuid> {
    switches(ctx).find(ctx, name)
}

pub(super) fn add_ls(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    switches(ctx).add(ctx, cmd)
}

pub(super) fn del_ls(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    switches(ctx).del(ctx, cmd)
}

pub(super) fn list_ls(ctx: &mut Ctx<'_>, _: &Command) -> Done {
    switches(ctx).list(ctx);
    Ok(())
}

pub(super) fn ls_exists(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    switches(ctx).exists(ctx, cmd)
}

pub(super) fn add_lr(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    routers(ctx).add(ctx, cmd)
}

pub(super) fn del_lr(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    routers(ctx).del(ctx, cmd)
}

pub(super) fn list_lr(ctx: &mut Ctx<'_>, _: &Command) -> Done {
    routers(ctx).list(ctx);
    Ok(())
}

pub(super) fn lr_exists(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    routers(ctx).exists(ctx, cmd)
}

pub(super) fn set_replication_mode(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let mode = cmd.arg(2).unwrap_or_default();
    if mode != "service_node" && mode != "source_node" {
        return Err("Replication mode must be 'service_node' or 'source_node'".into());
    }
    let row = find_logical_switch(ctx, cmd.arg(1).unwrap_or_default())?;
    let column = ctx.tool.tables.logical_switch.replication_mode;
    column.set(&mut ctx.txn, ctx.replica, row, Atom::string(mode));
    Ok(())
}

pub(super) fn get_replication_mode(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let row = find_logical_switch(ctx, cmd.arg(1).unwrap_or_default())?;
    let column = ctx.tool.tables.logical_switch.replication_mode;
    let mode = column.get(&ctx.txn, ctx.replica, row);
    // The words for no mode, which stands for service_node, are what scripts know.
    let mode = mode.unwrap_or("(null)").to_owned();
    ctx.print_line(&mode);
    Ok(())
}
