//! Rows that name a target to connect to or to listen on, and the commands on managers.

use db_client::{Column, One, Optional, Set, TableId};
use db_model::{Atom, Datum, Uuid};

use super::command::{Syntax, Takes};
use super::context::{Cmd, Context, Done, Handler, Preparation};
use super::run::Tool;

/// The option of commands that insert targets.
pub(crate) const PROBE: (&str, Takes) = ("--inactivity-probe", Takes::Argument);

/// What tables of targets have in common: controllers, managers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Targets {
    pub(crate) table: TableId,
    pub(crate) target: Column<One<str>>,
    pub(crate) inactivity_probe: Column<Optional<i64>>,
}

impl Targets {
    /// Prints the rows' targets, sorted.
    pub(crate) fn print<T>(self, ctx: &mut Context<'_, T>, rows: &[Uuid]) {
        let mut targets: Vec<String> = Vec::new();
        for row in rows {
            targets.push(self.target.get(&ctx.txn, ctx.replica, *row).to_owned());
        }
        targets.sort_unstable();
        targets.dedup();
        for target in targets {
            ctx.print_line(&target);
        }
    }

    /// Inserts a row for each target and returns what refers to them.
    pub(crate) fn insert<T: Tool>(
        self,
        ctx: &mut Context<'_, T>,
        targets: &[String],
        cmd: &Cmd<T>,
    ) -> Datum {
        let mut rows = Vec::new();
        for target in targets {
            if !is_target(target) {
                log::warn!(target: T::MODULE, "target type \"{target}\" is possibly erroneous");
            }
            let row = ctx.insert(self.table);
            let (txn, replica) = (&mut ctx.txn, ctx.replica);
            let text = Atom::string(target.as_str());
            self.target.set(txn, replica, row, text);
            if let Some(probe) = cmd.option(PROBE.0) {
                let probe = Atom::Integer(super::atoi(probe));
                self.inactivity_probe.set(txn, replica, row, probe);
            }
            rows.push(Atom::Uuid(row));
        }
        Datum::from_set_lossy(rows)
    }
}

/// Whether a target has a form that is known.
fn is_target(target: &str) -> bool {
    let kind = target.split_once(':').map(|(kind, _)| kind);
    matches!(
        kind,
        Some("tcp" | "ssl" | "unix" | "ptcp" | "pssl" | "punix")
    )
}

/// Where managers are in a tool's database.
#[derive(Clone, Copy, Debug)]
pub struct Managers {
    /// The column of the top row that refers to them.
    pub listed: Column<Set<Uuid>>,
    /// Their table.
    pub table: TableId,
    /// What they connect to or listen on.
    pub target: Column<One<str>>,
    /// After how many milliseconds of silence a connection is probed.
    pub inactivity_probe: Column<Optional<i64>>,
}

impl Managers {
    fn targets(self) -> Targets {
        Targets {
            table: self.table,
            target: self.target,
            inactivity_probe: self.inactivity_probe,
        }
    }
}

/// A tool with the commands on managers.
pub trait ManagedBy: Tool {
    /// Where the managers are.
    fn managers(&self) -> Managers;

    /// The row that refers to them, once a transaction has begun.
    fn top(&self) -> Option<Uuid>;
}

/// `get-manager`, `del-manager` and `set-manager`.
pub(crate) const fn commands<T: ManagedBy>() -> [Syntax<Handler<T>>; 3] {
    [
        super::db::syntax(("get-manager", 0, 0, ""), &[], prepare, get),
        super::db::syntax(("del-manager", 0, 0, ""), &[], prepare, del),
        super::db::syntax(
            ("set-manager", 1, usize::MAX, "+TARGET"),
            &[PROBE],
            prepare,
            set,
        ),
    ]
}

fn prepare<T: ManagedBy>(prep: &mut Preparation<'_, T>, _: &Cmd<T>) -> Result<(), String> {
    let managers = prep.tool.managers();
    prep.interest.add_table(managers.table);
    for column in [managers.target.id(), managers.inactivity_probe.id()] {
        prep.interest.add_column(managers.table, column);
    }
    let listed = managers.listed;
    prep.interest.add_column(listed.table(), listed.id());
    Ok(())
}

/// The managers, on which the transaction then depends.
fn rows<T: ManagedBy>(ctx: &mut Context<'_, T>) -> Vec<Uuid> {
    let Some(top) = ctx.tool.top() else {
        return Vec::new();
    };
    let managers = ctx.tool.managers();
    managers.listed.verify(&mut ctx.txn, ctx.replica, top);
    let rows: Vec<Uuid> = managers
        .listed
        .get(&ctx.txn, ctx.replica, top)
        .iter()
        .collect();
    for row in &rows {
        managers.target.verify(&mut ctx.txn, ctx.replica, *row);
    }
    rows
}

fn get<T: ManagedBy>(ctx: &mut Context<'_, T>, _: &Cmd<T>) -> Done {
    let rows = rows(ctx);
    ctx.tool.managers().targets().print(ctx, &rows);
    Ok(())
}

/// Writes the managers and deletes those that were there.
fn replace<T: ManagedBy>(ctx: &mut Context<'_, T>, new: Datum) {
    let Some(top) = ctx.tool.top() else {
        return;
    };
    let managers = ctx.tool.managers();
    for row in rows(ctx) {
        ctx.txn.delete(managers.table, row);
    }
    managers.listed.set(&mut ctx.txn, ctx.replica, top, new);
}

fn del<T: ManagedBy>(ctx: &mut Context<'_, T>, _: &Cmd<T>) -> Done {
    replace(ctx, Datum::EMPTY);
    Ok(())
}

fn set<T: ManagedBy>(ctx: &mut Context<'_, T>, cmd: &Cmd<T>) -> Done {
    let new = ctx.tool.managers().targets().insert(ctx, cmd.args(), cmd);
    replace(ctx, new);
    Ok(())
}
