//! `show`: a brief overview of the database as a tree of rows.

use db_client::{ColumnId, Layout, TableId};
use db_model::{BaseType, Uuid, text};

use super::command::{Syntax, Takes};
use super::context::{Cmd, Context, Done, Handler, Preparation, Schema};
use super::names::find_table;

/// A table that `show` shows.
#[derive(Clone, Debug)]
pub struct ShowTable {
    /// The table.
    pub table: TableId,
    /// The column that names its rows; without one only the UUID is shown.
    pub name: Option<ColumnId>,
    /// The columns to show if they are not empty; rows that they refer to are shown in
    /// full if they are of a table that is shown.
    pub columns: Vec<ColumnId>,
}

/// Finds what `show` shows: table, column that names its rows, columns to show.
pub(crate) fn find(layout: &Layout, tables: &[(&str, Option<&str>, &[&str])]) -> Vec<ShowTable> {
    let mut shown = Vec::new();
    for (name, named_by, columns) in tables {
        let Some(table) = layout.table(name) else {
            continue;
        };
        shown.push(ShowTable {
            table,
            name: named_by.and_then(|name| layout[table].column(name)),
            columns: columns
                .iter()
                .filter_map(|column| layout[table].column(column))
                .collect(),
        });
    }
    shown
}

/// Which rows `--filter` lets through.
#[derive(Debug)]
struct Filter {
    /// Lower-case parts of text, by table; a row of the table must show one of them.
    parts: Vec<(TableId, String)>,
}

/// The command.
pub const fn command<T: Schema>() -> Syntax<Handler<T>> {
    super::db::syntax(
        ("show", 0, 0, ""),
        &[("--filter", Takes::Argument)],
        prepare,
        show,
    )
}

fn prepare<T: Schema>(preparation: &mut Preparation<'_, T>, cmd: &Cmd<T>) -> Result<(), String> {
    for shown in preparation.tool.show_tables() {
        preparation.interest.add_table(shown.table);
        for column in shown.columns.iter().chain(&shown.name) {
            preparation.interest.add_column(shown.table, *column);
        }
    }
    parse_filter(preparation.layout, preparation.tool, cmd).map(|_| ())
}

/// Reads `--filter=TABLE(PART|PART...),...`; a part alone is for the top table.
fn parse_filter<T: Schema>(layout: &Layout, tool: &T, cmd: &Cmd<T>) -> Result<Filter, String> {
    let mut parts = Vec::new();
    let rules = cmd.option("--filter").unwrap_or_default();
    for rule in rules.split(',').filter(|rule| !rule.is_empty()) {
        let (table, alternatives) = match rule.split_once('(') {
            Some((table, rest)) => {
                let Some(alternatives) = rest.strip_suffix(')') else {
                    return Err("Malformed filter: missing closing ')'".to_owned());
                };
                (find_table(layout, table)?, alternatives)
            }
            None => match tool.show_tables().first() {
                Some(top) => (top.table, rule),
                None => continue,
            },
        };
        for part in alternatives.split('|') {
            // An empty part lets nothing through.
            parts.push((table, part.to_lowercase()));
        }
    }
    Ok(Filter { parts })
}

impl Filter {
    fn admits(&self, table: TableId, text: &str) -> bool {
        let mut parts = self.parts.iter().filter(|(t, _)| *t == table).peekable();
        if parts.peek().is_none() {
            return true;
        }
        let text = text.to_lowercase();
        parts.any(|(_, part)| !part.is_empty() && text.contains(part.as_str()))
    }
}

fn show<T: Schema>(context: &mut Context<'_, T>, cmd: &Cmd<T>) -> Done {
    let filter = parse_filter(&context.layout.clone(), context.tool, cmd)?;
    let tables = context.tool.show_tables().to_vec();
    let Some(top) = tables.first() else {
        return Ok(());
    };
    for row in context.rows(top.table) {
        let mut tree = Tree {
            context,
            tables: &tables,
            filter: &filter,
            path: Vec::new(),
        };
        let text = tree.row(top, row, 0);
        context.out.text.push_str(&text);
    }
    Ok(())
}

struct Tree<'a, 'b, T> {
    context: &'a Context<'b, T>,
    tables: &'a [ShowTable],
    filter: &'a Filter,
    /// The tables above the row being shown, which are not shown again below.
    path: Vec<TableId>,
}

impl<T> Tree<'_, '_, T> {
    /// The text of a row and the rows below it, or nothing if the filter holds it back.
    fn row(&mut self, shown: &ShowTable, row: Uuid, level: usize) -> String {
        let layout = &self.context.layout[shown.table];
        let mut out = " ".repeat(4 * level);
        match shown.name {
            Some(name) => {
                let value = self.context.get(shown.table, row, name);
                let value = text::format_datum(value, &layout[name].column_type);
                out += &format!("{} {value}\n", layout.name);
            }
            None => out += &format!("{row}\n"),
        }
        self.path.push(shown.table);
        for column in &shown.columns {
            out += &self.column(shown.table, row, *column, level + 1);
        }
        self.path.pop();
        if self.filter.admits(shown.table, &out) {
            out
        } else {
            String::new()
        }
    }

    /// What the column `name` of a row that a map refers to holds.
    fn name_of(&self, table: TableId, name: ColumnId, row: Uuid) -> String {
        let context = &self.context;
        if !context.txn.has_row(context.replica, table, row) {
            return "\"<null>\"".to_owned();
        }
        let column = &context.layout[table][name];
        text::format_datum(context.get(table, row, name), &column.column_type)
    }

    fn column(&mut self, table: TableId, row: Uuid, id: ColumnId, level: usize) -> String {
        let column = &self.context.layout[table][id];
        let datum = self.context.get(table, row, id).clone();
        if let Some(reference) = column.column_type.key.reference()
            && let Some(target) = self.context.layout.table(&reference.table)
            && let Some(shown) = self.tables.iter().find(|shown| shown.table == target)
            && !self.path.contains(&target)
        {
            return datum
                .keys()
                .filter_map(db_model::Atom::as_uuid)
                .filter(|uuid| {
                    self.context
                        .txn
                        .has_row(self.context.replica, target, *uuid)
                })
                .collect::<Vec<Uuid>>()
                .into_iter()
                .map(|uuid| self.row(shown, uuid, level))
                .collect();
        }
        if let Some(target) = column
            .column_type
            .value
            .as_ref()
            .and_then(BaseType::reference)
            && let Some(target) = self.context.layout.table(&target.table)
            && let Some(shown) = self.tables.iter().find(|shown| shown.table == target)
            && let Some(name) = shown.name
        {
            let mut out = format!("{}{}:\n", " ".repeat(4 * level), column.name);
            for (key, value) in datum.as_map() {
                let key = text::format_atom(key);
                let value = self.name_of(target, name, value.as_uuid().unwrap_or_default());
                out += &format!("{}{key}={value}\n", " ".repeat(4 * level + 4));
            }
            return out;
        }
        if datum.is_default(&column.column_type) {
            return String::new();
        }
        let value = text::format_datum(&datum, &column.column_type);
        format!("{}{}: {value}\n", " ".repeat(4 * level), column.name)
    }
}
