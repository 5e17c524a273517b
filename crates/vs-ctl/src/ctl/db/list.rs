//! `list` and `find`.

use db_client::{Layout, TableId};
use db_model::Uuid;

use super::{prepare_table, table_arg};
use crate::ctl::column::parse_condition;
use crate::ctl::context::{Cmd, Context, Done, Preparation, Schema};
use crate::ctl::names::{Named, find_column_or_uuid};
use crate::table::{Cell, Table};

/// The columns to show: those of `--columns`, or all.
fn columns<T>(layout: &Layout, table: TableId, cmd: &Cmd<T>) -> Result<Vec<Named>, String> {
    let Some(names) = cmd.option("--columns") else {
        let all = layout[table].columns().map(|(id, _)| Named::Column(id));
        return Ok(std::iter::once(Named::Uuid).chain(all).collect());
    };
    let names: Vec<&str> = names
        .split([',', ' '])
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() {
        return Err("must specify at least one column name".to_owned());
    }
    names
        .iter()
        .map(|name| find_column_or_uuid(&layout[table], name))
        .collect()
}

fn prepare_columns<T: Schema>(
    preparation: &mut Preparation<'_, T>,
    cmd: &Cmd<T>,
) -> Result<TableId, String> {
    let table = prepare_table(preparation, cmd)?;
    for column in columns(preparation.layout, table, cmd)? {
        if let Named::Column(column) = column {
            preparation.interest.add_column(table, column);
        }
    }
    Ok(table)
}

pub(super) fn prepare_list<T: Schema>(
    preparation: &mut Preparation<'_, T>,
    cmd: &Cmd<T>,
) -> Result<(), String> {
    prepare_columns(preparation, cmd).map(|_| ())
}

pub(super) fn prepare_find<T: Schema>(
    preparation: &mut Preparation<'_, T>,
    cmd: &Cmd<T>,
) -> Result<(), String> {
    let table = prepare_columns(preparation, cmd)?;
    for arg in &cmd.args()[1..] {
        let (parsed, _, _) = parse_condition(&preparation.layout[table], arg)?;
        preparation.interest.add_column(table, parsed.column);
    }
    Ok(())
}

pub(super) fn list<T: Schema>(context: &mut Context<'_, T>, cmd: &Cmd<T>) -> Done {
    let layout = context.layout.clone();
    let table = table_arg(&layout, cmd)?;
    let mut rows = Vec::new();
    if cmd.args().len() > 1 {
        for record in &cmd.args()[1..] {
            if cmd.has("--if-exists") {
                rows.extend(context.find_row(table, record)?);
            } else {
                rows.push(context.find_row_or_fail(table, record)?);
            }
        }
    } else {
        rows = context.rows(table);
    }
    show(context, cmd, table, &rows)
}

pub(super) fn find<T: Schema>(context: &mut Context<'_, T>, cmd: &Cmd<T>) -> Done {
    let layout = context.layout.clone();
    let table = table_arg(&layout, cmd)?;
    let mut found = Vec::new();
    'rows: for row in context.rows(table) {
        for arg in &cmd.args()[1..] {
            if !context.satisfies(table, row, arg)? {
                continue 'rows;
            }
        }
        found.push(row);
    }
    show(context, cmd, table, &found)
}

fn show<T: Schema>(
    context: &mut Context<'_, T>,
    cmd: &Cmd<T>,
    table: TableId,
    rows: &[Uuid],
) -> Done {
    let layout = context.layout.clone();
    let columns = columns(&layout, table, cmd)?;
    let headings = columns.iter().map(|column| match column {
        Named::Uuid => "_uuid",
        Named::Column(id) => &*layout[table][*id].name,
    });
    let mut shown = Table::new(headings);
    for row in rows {
        let cells = columns.iter().map(|column| match column {
            Named::Uuid => Cell::uuid(*row, context.style),
            Named::Column(id) => {
                let column_type = &layout[table][*id].column_type;
                Cell::datum(context.get(table, *row, *id), column_type, context.style)
            }
        });
        let cells = cells.collect();
        shown.add_row(cells);
    }
    context.out.table = Some(shown);
    Ok(())
}
