//! `set`, `add`, `remove` and `clear`.

use db_client::{ColumnId, Layout, TableId};
use db_model::{Atom, ColumnType, Datum, UNLIMITED, Uuid, text};

use super::{prepare_record, row_arg, table_arg};
use crate::ctl::column::parse_assignment;
use crate::ctl::context::{Cmd, Context, Done, Failure, Preparation, Schema};
use crate::ctl::names::find_column;

pub(super) fn prepare_set<T: Schema>(
    preparation: &mut Preparation<'_, T>,
    cmd: &Cmd<T>,
) -> Result<(), String> {
    let table = prepare_record(preparation, cmd)?;
    prepare_assignments(preparation, table, &cmd.args()[2..])
}

/// Asks for the columns that `column[:key]=value` arguments name.
///
/// # Errors
/// The message to print.
pub(crate) fn prepare_assignments<T>(
    preparation: &mut Preparation<'_, T>,
    table: TableId,
    args: &[String],
) -> Result<(), String> {
    for arg in args {
        let (parsed, _) = parse_assignment(&preparation.layout[table], arg)?;
        preparation.interest.add_column(table, parsed.column);
    }
    Ok(())
}

pub(super) fn set<T: Schema>(context: &mut Context<'_, T>, cmd: &Cmd<T>) -> Done {
    let layout = context.layout.clone();
    let table = table_arg(&layout, cmd)?;
    let Some(row) = row_arg(context, table, cmd)? else {
        return Ok(());
    };
    for arg in &cmd.args()[2..] {
        context.assign(table, row, arg)?;
    }
    Ok(())
}

/// The column that a command's third argument names.
fn column_arg<T>(layout: &Layout, table: TableId, cmd: &Cmd<T>) -> Result<ColumnId, String> {
    find_column(&layout[table], cmd.arg(3).unwrap_or_default())
}

pub(super) fn prepare_column<T: Schema>(
    preparation: &mut Preparation<'_, T>,
    cmd: &Cmd<T>,
) -> Result<(), String> {
    let table = prepare_record(preparation, cmd)?;
    let column = column_arg(preparation.layout, table, cmd)?;
    preparation.interest.add_column(table, column);
    Ok(())
}

/// The column's type with any number of elements but none.
fn some_elements(column_type: &ColumnType) -> ColumnType {
    ColumnType {
        min: 1,
        max: UNLIMITED,
        ..column_type.clone()
    }
}

pub(super) fn add<T: Schema>(context: &mut Context<'_, T>, cmd: &Cmd<T>) -> Done {
    let layout = context.layout.clone();
    let table = table_arg(&layout, cmd)?;
    let id = column_arg(&layout, table, cmd)?;
    let Some(row) = row_arg(context, table, cmd)? else {
        return Ok(());
    };
    context.check_mutable(table, row, id)?;
    let column = &layout[table][id];
    let wide = some_elements(&column.column_type);
    let old = context.get(table, row, id).clone();
    let mut new = old.clone();
    for arg in &cmd.args()[3..] {
        let datum = text::parse_datum(&wide, arg, Some(context.symbols.table()))?;
        context.symbols.note_references(&datum, &column.column_type);
        // Pairs that are there keep their values.
        new = new.union(&datum);
    }
    if new.len() > column.column_type.max as usize {
        return Err(size_error("add", &layout, table, id, new.len(), "maximum"));
    }
    if column.column_type.max == UNLIMITED {
        let added = new.subtract(&old);
        context.txn.put(context.replica, table, row, id, &added);
    } else {
        context.verify(table, row, id);
        context.txn.set(context.replica, table, row, id, new);
    }
    Ok(())
}

pub(super) fn remove<T: Schema>(context: &mut Context<'_, T>, cmd: &Cmd<T>) -> Done {
    let layout = context.layout.clone();
    let table = table_arg(&layout, cmd)?;
    let id = column_arg(&layout, table, cmd)?;
    let Some(row) = row_arg(context, table, cmd)? else {
        return Ok(());
    };
    context.check_mutable(table, row, id)?;
    let column = &layout[table][id];
    let wide = some_elements(&column.column_type);
    let keys_only = ColumnType {
        value: None,
        ..wide.clone()
    };
    let old = context.get(table, row, id).clone();
    let mut new = old.clone();
    for arg in &cmd.args()[3..] {
        let symbols = Some(context.symbols.table());
        let datum = match text::parse_datum(&wide, arg, symbols) {
            Ok(datum) => datum,
            // What is not pairs may be keys alone.
            Err(_) if wide.is_map() => {
                text::parse_datum(&keys_only, arg, Some(context.symbols.table()))?
            }
            Err(error) => return Err(error.into()),
        };
        new = new.subtract(&datum);
    }
    if new.len() < column.column_type.min as usize {
        return Err(size_error(
            "remove",
            &layout,
            table,
            id,
            new.len(),
            "minimum",
        ));
    }
    if column.column_type.min == 0 {
        let gone: Vec<Atom> = old
            .keys()
            .filter(|key| !new.contains_key(key))
            .cloned()
            .collect();
        let gone = Datum::from_set_lossy(gone);
        context
            .txn
            .drop_keys(context.replica, table, row, id, &gone);
    } else {
        context.verify(table, row, id);
        context.txn.set(context.replica, table, row, id, new);
    }
    Ok(())
}

fn size_error(
    operation: &str,
    layout: &Layout,
    table: TableId,
    id: ColumnId,
    size: usize,
    bound: &str,
) -> Failure {
    let column = &layout[table][id];
    let limit = if bound == "minimum" {
        column.column_type.min
    } else {
        column.column_type.max
    };
    format!(
        "\"{operation}\" operation would put {size} values in column {} of table {} but the \
         {bound} number is {limit}",
        column.name, layout[table].name
    )
    .into()
}

pub(super) fn prepare_clear<T: Schema>(
    preparation: &mut Preparation<'_, T>,
    cmd: &Cmd<T>,
) -> Result<(), String> {
    let table = prepare_record(preparation, cmd)?;
    for name in &cmd.args()[2..] {
        let column = find_column(&preparation.layout[table], name)?;
        preparation.interest.add_column(table, column);
    }
    Ok(())
}

pub(super) fn clear<T: Schema>(context: &mut Context<'_, T>, cmd: &Cmd<T>) -> Done {
    let layout = context.layout.clone();
    let table = table_arg(&layout, cmd)?;
    let Some(row) = row_arg(context, table, cmd)? else {
        return Ok(());
    };
    for name in &cmd.args()[2..] {
        let id = find_column(&layout[table], name)?;
        context.check_mutable(table, row, id)?;
        let column = &layout[table][id];
        if column.column_type.min > 0 {
            return Err(format!(
                "\"clear\" operation cannot be applied to column {} of table {}, which is not \
                 allowed to be empty",
                column.name, layout[table].name
            )
            .into());
        }
        context
            .txn
            .set(context.replica, table, row, id, Datum::EMPTY);
    }
    Ok(())
}

impl<T> Context<'_, T> {
    /// Checks that a column may be written: it is mutable, or its row is new.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn check_mutable(&self, table: TableId, row: Uuid, id: ColumnId) -> Done {
        let column = &self.layout[table][id];
        if column.mutable || self.txn.is_inserted(table, row) {
            return Ok(());
        }
        Err(format!(
            "cannot modify read-only column {} in table {}",
            column.name, self.layout[table].name
        )
        .into())
    }

    /// Does what `column[:key]=value` says.
    ///
    /// # Errors
    /// The argument does not fit the table.
    pub fn assign(&mut self, table: TableId, row: Uuid, arg: &str) -> Done {
        let layout = self.layout.clone();
        let (parsed, value) = parse_assignment(&layout[table], arg)?;
        let id = parsed.column;
        self.check_mutable(table, row, id)?;
        let column = &layout[table][id];
        let column_type = &column.column_type;
        let Some(key) = parsed.key else {
            let symbols = Some(self.symbols.table());
            let datum = text::parse_datum(column_type, value, symbols)?;
            self.symbols.note_references(&datum, column_type);
            self.txn.set(self.replica, table, row, id, datum);
            return Ok(());
        };
        let Some(value_type) = &column_type.value else {
            let name = &column.name;
            return Err(format!("cannot specify key to set for non-map column {name}").into());
        };
        let key = text::parse_atom(&column_type.key, &key, Some(self.symbols.table()))?;
        let value = text::parse_atom(value_type, value, Some(self.symbols.table()))?;
        let pair = Datum::from_map(vec![(key, value)]).unwrap_or_default();
        self.symbols.note_references(&pair, column_type);
        self.txn.put(self.replica, table, row, id, &pair);
        Ok(())
    }
}
