//! `create` and `destroy`.

use db_model::parse_uuid;

use super::write::prepare_assignments;
use super::{prepare_table, table_arg};
use crate::ctl::context::{Cmd, Context, Done, Preparation, Schema};
use crate::ctl::names::find_table;

pub(super) fn prepare_create<T: Schema>(
    preparation: &mut Preparation<'_, T>,
    cmd: &Cmd<T>,
) -> Result<(), String> {
    // A new row needs nothing of the database: only the arguments are checked.
    let table = find_table(preparation.layout, cmd.arg(1).unwrap_or_default())?;
    let mut ignored = db_client::Interest::new();
    let mut checked = Preparation {
        layout: preparation.layout,
        interest: &mut ignored,
        tool: preparation.tool,
        whole: preparation.whole,
    };
    prepare_assignments(&mut checked, table, &cmd.args()[1..])
}

pub(super) fn create<T: Schema>(context: &mut Context<'_, T>, cmd: &Cmd<T>) -> Done {
    let layout = context.layout.clone();
    let table = table_arg(&layout, cmd)?;
    let row = match cmd.option("--id") {
        Some(id) => match parse_uuid(id) {
            Some(uuid) => {
                context.txn.insert_persistent(table, uuid);
                uuid
            }
            None => {
                let uuid = context.symbols.define(id, None)?;
                context.txn.insert(table, uuid);
                uuid
            }
        },
        None => {
            if !layout[table].is_root {
                log::warn!(
                    target: "db_ctl_base",
                    "applying \"create\" command to table {} without --id option will have no \
                     effect",
                    layout[table].name
                );
            }
            let uuid = context.uuids.next_uuid();
            context.txn.insert(table, uuid);
            uuid
        }
    };
    if layout[table].is_root {
        context.symbols.keep(row);
    }
    for arg in &cmd.args()[1..] {
        context.assign(table, row, arg)?;
    }
    context.out.created = Some(row);
    Ok(())
}

pub(super) fn prepare_destroy<T: Schema>(
    preparation: &mut Preparation<'_, T>,
    cmd: &Cmd<T>,
) -> Result<(), String> {
    let all = cmd.has("--all");
    if all && cmd.args().len() > 1 {
        return Err("--all and records argument should not be specified together".to_owned());
    }
    if all && cmd.has("--if-exists") {
        return Err("--all and --if-exists should not be specified together".to_owned());
    }
    if !all && cmd.args().len() < 2 {
        log::warn!(
            target: "db_ctl_base",
            "either --all or records argument should be specified"
        );
    }
    prepare_table(preparation, cmd).map(|_| ())
}

pub(super) fn destroy<T: Schema>(context: &mut Context<'_, T>, cmd: &Cmd<T>) -> Done {
    let layout = context.layout.clone();
    let table = table_arg(&layout, cmd)?;
    if cmd.has("--all") {
        for row in context.rows(table) {
            context.txn.delete(table, row);
        }
    }
    for record in &cmd.args()[1..] {
        if cmd.has("--if-exists") {
            if let Some(row) = context.find_row(table, record)? {
                context.txn.delete(table, row);
            }
        } else {
            let row = context.find_row_or_fail(table, record)?;
            context.txn.delete(table, row);
        }
    }
    Ok(())
}
