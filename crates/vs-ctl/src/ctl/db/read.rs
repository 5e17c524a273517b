//! `get` and `wait-until`.

use db_model::text;

use super::{prepare_record, row_arg, table_arg};
use crate::ctl::column::{parse_column_key, parse_condition};
use crate::ctl::context::{Cmd, Context, Done, Failure, Preparation, Schema};
use crate::ctl::names::Named;

pub(super) fn prepare_get<T: Schema>(
    preparation: &mut Preparation<'_, T>,
    cmd: &Cmd<T>,
) -> Result<(), String> {
    if cmd.has("--id") && cmd.has("--if-exists") {
        return Err("--if-exists and --id may not be specified together".to_owned());
    }
    let table = prepare_record(preparation, cmd)?;
    for arg in &cmd.args()[2..] {
        let parsed = parse_column_key(&preparation.layout[table], arg)?;
        if let Named::Column(column) = parsed.column {
            preparation.interest.add_column(table, column);
        }
    }
    Ok(())
}

pub(super) fn get<T: Schema>(context: &mut Context<'_, T>, cmd: &Cmd<T>) -> Done {
    let layout = context.layout.clone();
    let table = table_arg(&layout, cmd)?;
    let record = cmd.arg(2).unwrap_or_default();
    let Some(row) = row_arg(context, table, cmd)? else {
        return Ok(());
    };
    // It makes sense in a script, which wants to know that the row is there.
    if !cmd.has("--id") && cmd.args().len() < 3 && rustix::termios::isatty(rustix::stdio::stdout())
    {
        log::warn!(
            target: "db_ctl_base",
            "\"get\" command without row arguments or \"--id\" is possibly erroneous"
        );
    }
    if let Some(name) = cmd.option("--id") {
        context.symbols.name_row(name, row)?;
    }
    for arg in &cmd.args()[2..] {
        let parsed = parse_column_key(&layout[table], arg)?;
        let Named::Column(id) = parsed.column else {
            context.print_line(&row.to_string());
            continue;
        };
        let column = &layout[table][id];
        context.verify(table, row, id);
        let Some(key) = parsed.key else {
            let value = text::format_datum(context.get(table, row, id), &column.column_type);
            context.print_line(&value);
            continue;
        };
        let name = &column.name;
        if !column.column_type.is_map() {
            return Err(format!("cannot specify key to get for non-map column {name}").into());
        }
        let typed = key;
        let key_type = &column.column_type.key;
        let key = text::parse_atom(key_type, &typed, Some(context.symbols.table()))?;
        match context.get(table, row, id).get(&key) {
            Some(value) => {
                let value = text::format_atom(value);
                context.print_line(&value);
            }
            None if cmd.has("--if-exists") => context.print_line(""),
            None => {
                let table = &layout[table].name;
                return Err(format!(
                    "no key \"{typed}\" in {table} record \"{record}\" column {name}"
                )
                .into());
            }
        }
    }
    Ok(())
}

pub(super) fn prepare_wait_until<T: Schema>(
    preparation: &mut Preparation<'_, T>,
    cmd: &Cmd<T>,
) -> Result<(), String> {
    let table = prepare_record(preparation, cmd)?;
    for arg in &cmd.args()[2..] {
        let (parsed, _, _) = parse_condition(&preparation.layout[table], arg)?;
        preparation.interest.add_column(table, parsed.column);
    }
    Ok(())
}

pub(super) fn wait_until<T: Schema>(context: &mut Context<'_, T>, cmd: &Cmd<T>) -> Done {
    let layout = context.layout.clone();
    let table = table_arg(&layout, cmd)?;
    let record = cmd.arg(2).unwrap_or_default();
    let Some(row) = context.find_row(table, record)? else {
        return Err(Failure::NotYet);
    };
    for arg in &cmd.args()[2..] {
        if !context.satisfies(table, row, arg)? {
            return Err(Failure::NotYet);
        }
    }
    Ok(())
}
