//! The commands that work on any table: `list`, `find`, `get`, `set`, `add`, `remove`,
//! `clear`, `create`, `destroy`, `wait-until`, `comment`.

mod create;
mod list;
mod read;
mod write;

pub(crate) use write::prepare_assignments;

use super::command::{Syntax, Takes};
use super::context::{Cmd, Context, Done, Handler, Preparation, Prepare, Schema};
use super::names::{find_table, prepare_row, prepare_rows};
use db_client::TableId;

const IF_EXISTS: (&str, Takes) = ("--if-exists", Takes::Nothing);
const COLUMNS: (&str, Takes) = ("--columns", Takes::Argument);
const ID: (&str, Takes) = ("--id", Takes::Argument);

/// The generic commands that change nothing.
pub(crate) const READS: &[&str] = &["comment", "get", "list", "find", "wait-until", "show"];

/// The generic commands, for a tool's own table of commands.
pub const fn commands<T: Schema>() -> [Syntax<Handler<T>>; 11] {
    [
        syntax(
            ("comment", 0, usize::MAX, "*ARG"),
            &[],
            |_, _| Ok(()),
            |_, _| Ok(()),
        ),
        syntax(
            ("get", 2, usize::MAX, "!TABLE !RECORD *COLUMN?:KEY"),
            &[IF_EXISTS, ID],
            read::prepare_get,
            read::get,
        ),
        syntax(
            ("list", 1, usize::MAX, "!TABLE *RECORD"),
            &[IF_EXISTS, COLUMNS],
            list::prepare_list,
            list::list,
        ),
        syntax(
            ("find", 1, usize::MAX, "!TABLE *COLUMN?:KEY=VALUE"),
            &[COLUMNS],
            list::prepare_find,
            list::find,
        ),
        syntax(
            ("set", 3, usize::MAX, "!TABLE !RECORD +COLUMN?:KEY=VALUE"),
            &[IF_EXISTS],
            write::prepare_set,
            write::set,
        ),
        syntax(
            ("add", 4, usize::MAX, "!TABLE !RECORD !COLUMN +?KEY=VALUE"),
            &[IF_EXISTS],
            write::prepare_column,
            write::add,
        ),
        syntax(
            (
                "remove",
                4,
                usize::MAX,
                "!TABLE !RECORD !COLUMN +KEY|VALUE|KEY=VALUE",
            ),
            &[IF_EXISTS],
            write::prepare_column,
            write::remove,
        ),
        syntax(
            ("clear", 3, usize::MAX, "!TABLE !RECORD +COLUMN"),
            &[IF_EXISTS],
            write::prepare_clear,
            write::clear,
        ),
        syntax(
            ("create", 2, usize::MAX, "!TABLE +COLUMN?:KEY=VALUE"),
            &[ID],
            create::prepare_create,
            create::create,
        ),
        syntax(
            ("destroy", 1, usize::MAX, "!TABLE *RECORD"),
            &[IF_EXISTS, ("--all", Takes::Nothing)],
            create::prepare_destroy,
            create::destroy,
        ),
        syntax(
            (
                "wait-until",
                2,
                usize::MAX,
                "!TABLE !RECORD *COLUMN?:KEY=VALUE",
            ),
            &[],
            read::prepare_wait_until,
            read::wait_until,
        ),
    ]
}

type Run<T> = fn(&mut Context<'_, T>, &Cmd<T>) -> Done;

/// One command: its name, fewest and most arguments, and their description; its options;
/// what prepares and runs it.
pub const fn syntax<T>(
    usage: (&'static str, usize, usize, &'static str),
    options: &'static [(&'static str, Takes)],
    prepare: Prepare<T>,
    run: Run<T>,
) -> Syntax<Handler<T>> {
    let (name, min_args, max_args, arguments) = usage;
    Syntax {
        name,
        min_args,
        max_args,
        arguments,
        options,
        run: Handler { prepare, run },
    }
}

/// The table that the command's first argument names.
fn table_arg<T>(layout: &db_client::Layout, cmd: &Cmd<T>) -> Result<TableId, String> {
    find_table(layout, cmd.arg(1).unwrap_or_default())
}

/// Asks for what finding rows of the command's table needs.
fn prepare_table<T: Schema>(
    preparation: &mut Preparation<'_, T>,
    cmd: &Cmd<T>,
) -> Result<TableId, String> {
    let table = table_arg(preparation.layout, cmd)?;
    prepare_rows(table, preparation.tool.row_names(), preparation.interest);
    Ok(table)
}

/// Asks for what finding the row needs that the command's second argument names.
fn prepare_record<T: Schema>(
    preparation: &mut Preparation<'_, T>,
    cmd: &Cmd<T>,
) -> Result<TableId, String> {
    if preparation.whole {
        return prepare_table(preparation, cmd);
    }
    let table = table_arg(preparation.layout, cmd)?;
    prepare_row(
        table,
        cmd.arg(2).unwrap_or_default(),
        preparation.tool.row_names(),
        preparation.layout,
        preparation.interest,
    );
    Ok(table)
}

/// The row that the command's second argument names; `None` if there is none and
/// `--if-exists` was given.
fn row_arg<T: Schema>(
    context: &mut Context<'_, T>,
    table: TableId,
    cmd: &Cmd<T>,
) -> Done<Option<db_model::Uuid>> {
    let record = cmd.arg(2).unwrap_or_default();
    if cmd.has("--if-exists") {
        context.find_row(table, record)
    } else {
        context.find_row_or_fail(table, record).map(Some)
    }
}
