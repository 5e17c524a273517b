//! How the command line names tables, columns and rows.

use db_client::{ColumnId, Interest, Layout, TableId, TableLayout};
use db_model::{AtomType, Datum, Uuid, parse_uuid, text};

use super::context::{Context, Failure, Schema};

/// One way to name rows of a table, besides their UUIDs.
#[derive(Clone, Copy, Debug)]
pub struct RowName {
    /// The table whose rows are named.
    pub table: TableId,
    /// How.
    pub by: By,
}

/// What a row's name is matched against.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// The table has at most one row, which is `.`.
    Dot,
    /// A column of the row itself.
    Column(ColumnId),
    /// A column of another table's row, which refers to the row by its column `via`.
    Referrer {
        /// The other table.
        table: TableId,
        /// The column that the name is matched against.
        name: ColumnId,
        /// The column that refers to the row.
        via: ColumnId,
    },
}

/// A column that a command names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// `_uuid`.
    Uuid,
    /// A column of the schema.
    Column(ColumnId),
}

/// Whether `text` names `name`: in full or abbreviated, letters of any case, `-` as `_`.
fn matches(name: &str, text: &str) -> Option<Match> {
    let same = |(a, b): (u8, u8)| {
        let fold = |c: u8| {
            if c == b'-' {
                b'_'
            } else {
                c.to_ascii_lowercase()
            }
        };
        fold(a) == fold(b)
    };
    if text.is_empty() || text.len() > name.len() || !name.bytes().zip(text.bytes()).all(same) {
        return None;
    }
    Some(if name.len() == text.len() {
        Match::Whole
    } else {
        Match::Abbreviated
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    Whole,
    Abbreviated,
}

/// The one of `names` that `text` names, or all that it might.
fn find<'a, I: Copy>(
    names: impl Iterator<Item = (I, &'a str)>,
    text: &str,
) -> Result<I, Vec<&'a str>> {
    let mut found = Vec::new();
    for (id, name) in names {
        match matches(name, text) {
            Some(Match::Whole) => return Ok(id),
            Some(Match::Abbreviated) => found.push((id, name)),
            None => {}
        }
    }
    match found.as_slice() {
        [(id, _)] => Ok(*id),
        _ => Err(found.into_iter().map(|(_, name)| name).collect()),
    }
}

/// Finds a table by its name or an abbreviation.
///
/// # Errors
/// The message to print.
pub fn find_table(layout: &Layout, name: &str) -> Result<TableId, String> {
    let tables = layout.tables().map(|(id, table)| (id, &*table.name));
    find(tables, name).map_err(|names| {
        if names.is_empty() {
            format!("unknown table \"{name}\"")
        } else {
            format!(
                "\"{name}\" matches multiple table names: {}",
                names.join(", ")
            )
        }
    })
}

/// Finds a column by its name or an abbreviation.
///
/// # Errors
/// The message to print.
pub fn find_column(table: &TableLayout, name: &str) -> Result<ColumnId, String> {
    let columns = table.columns().map(|(id, column)| (id, &*column.name));
    find(columns, name).map_err(|names| {
        let table = &table.name;
        if names.is_empty() {
            format!("{table} does not contain a column whose name matches \"{name}\"")
        } else {
            format!(
                "{table} contains more than one column whose name matches \"{name}\": {}",
                names.join(", ")
            )
        }
    })
}

/// Finds a column, `_uuid` included.
///
/// # Errors
/// The message to print.
pub fn find_column_or_uuid(table: &TableLayout, name: &str) -> Result<Named, String> {
    if name.eq_ignore_ascii_case("_uuid") {
        Ok(Named::Uuid)
    } else {
        find_column(table, name).map(Named::Column)
    }
}

/// A column by the exact names of its table and its own, if the schema has it.
pub(crate) fn column(layout: &Layout, table: &str, column: &str) -> Option<(TableId, ColumnId)> {
    let table = layout.table(table)?;
    Some((table, layout[table].column(column)?))
}

/// Asks for what is needed to find rows of `table` by name.
pub fn prepare_rows(table: TableId, names: &[RowName], interest: &mut Interest) {
    interest.add_table(table);
    for row_name in names.iter().filter(|name| name.table == table) {
        match row_name.by {
            By::Dot => {}
            By::Column(column) => interest.add_column(table, column),
            By::Referrer { table, name, via } => {
                interest.add_table(table);
                interest.add_column(table, name);
                interest.add_column(table, via);
            }
        }
    }
}

/// Asks for what is needed to find the row of `table` called `record`: only rows of that
/// name, if it cannot be anything else.
pub fn prepare_row(
    table: TableId,
    record: &str,
    names: &[RowName],
    layout: &Layout,
    interest: &mut Interest,
) {
    let ways: Vec<By> = names
        .iter()
        .filter(|name| name.table == table)
        .map(|name| name.by)
        .collect();
    let digits = record.bytes().take_while(u8::is_ascii_hexdigit).count();
    match ways.as_slice() {
        [By::Column(column)]
            if record != "."
                && digits < 4
                && layout[table][*column].column_type.key.atom == AtomType::String =>
        {
            let name = &*layout[table][*column].name;
            let clause = vec![name.into(), "==".into(), record.into()];
            interest.add_rows(table, clause.into());
            interest.add_column(table, *column);
        }
        _ => prepare_rows(table, names, interest),
    }
}

/// How rows of each table are named, for `--help`.
pub fn describe(layout: &Layout, names: &[RowName]) -> String {
    let mut text =
        "Database commands may reference a row in each table in the following ways:\n".to_owned();
    for (id, table) in layout.tables() {
        text += &format!("  {}:\n    by UUID\n", table.name);
        for name in names.iter().filter(|name| name.table == id) {
            text += &match name.by {
                By::Dot => "    as \".\"\n".to_owned(),
                By::Column(column) => format!("    by \"{}\"\n", table[column].name),
                By::Referrer { table, name, via } => {
                    let referrer = &layout[table];
                    format!(
                        "    via \"{}\" of {} with matching \"{}\"\n",
                        referrer[via].name, referrer.name, referrer[name].name
                    )
                }
            };
        }
    }
    text
}

impl<T: Schema> Context<'_, T> {
    /// Finds the row that `record` names.
    ///
    /// # Errors
    /// The name fits several rows.
    pub fn find_row(&mut self, table: TableId, record: &str) -> Result<Option<Uuid>, Failure> {
        if let Some(uuid) = parse_uuid(record)
            && self.txn.has_row(self.replica, table, uuid)
        {
            return Ok(Some(uuid));
        }
        if record == "."
            && let [only] = self.rows(table).as_slice()
        {
            return Ok(Some(*only));
        }
        let names = self.tool.row_names();
        let ways: Vec<By> = names
            .iter()
            .filter(|name| name.table == table)
            .map(|name| name.by)
            .collect();
        for by in ways {
            let found = self.find_row_by(table, by, record)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        self.find_row_by_partial_uuid(table, record)
    }

    /// Finds the row that `record` names.
    ///
    /// # Errors
    /// No row has the name, or several have.
    pub fn find_row_or_fail(&mut self, table: TableId, record: &str) -> Result<Uuid, Failure> {
        self.find_row(table, record)?.ok_or_else(|| {
            format!("no row \"{record}\" in table {}", self.layout[table].name).into()
        })
    }

    fn find_row_by(
        &mut self,
        table: TableId,
        by: By,
        record: &str,
    ) -> Result<Option<Uuid>, Failure> {
        match by {
            By::Dot => Ok(None),
            By::Column(column) => self.find_one(table, column, record),
            By::Referrer {
                table: referrer,
                name,
                via,
            } => {
                let Some(row) = self.find_one(referrer, name, record)? else {
                    return Ok(None);
                };
                self.verify(referrer, row, via);
                let references = self.get(referrer, row, via);
                // Several rows are referred to: the name stands for none of them.
                let uuid = match references.as_set() {
                    [atom] => atom.as_uuid(),
                    _ => None,
                };
                Ok(uuid.filter(|uuid| self.txn.has_row(self.replica, table, *uuid)))
            }
        }
    }

    /// The only row whose `column` is `record`.
    fn find_one(
        &mut self,
        table: TableId,
        column: ColumnId,
        record: &str,
    ) -> Result<Option<Uuid>, Failure> {
        let mut found = None;
        for row in self.txn.rows(self.replica, table) {
            if has_name(self.get(table, row, column), record) {
                if found.is_some() {
                    let table = &self.layout[table].name;
                    return Err(format!("multiple rows in {table} match \"{record}\"").into());
                }
                found = Some(row);
            }
        }
        if let Some(row) = found {
            self.verify(table, row, column);
        }
        Ok(found)
    }

    fn find_row_by_partial_uuid(
        &self,
        table: TableId,
        record: &str,
    ) -> Result<Option<Uuid>, Failure> {
        let digits = record.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits < 4 {
            return Ok(None);
        }
        let rows = self.rows(table);
        let mut fitting = rows
            .iter()
            .filter(|row| row.to_string().starts_with(record));
        match (fitting.next(), fitting.next()) {
            (Some(first), Some(second)) => Err(format!(
                "{} contains 2 or more rows whose UUIDs begin with {record}: at least {first} \
                 and {second}",
                self.layout[table].name
            )
            .into()),
            (first, _) => Ok(first.copied()),
        }
    }
}

/// Whether a name column holds `record`: a string, or a number as text.
fn has_name(datum: &Datum, record: &str) -> bool {
    match datum.as_set() {
        [atom] => match atom.as_str() {
            Some(name) => name == record,
            None => text::format_atom(atom) == record,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_are_unique_or_whole() {
        let names = [
            "CT_Timeout_Policy",
            "CT_Zone",
            "Flow_Sample",
            "Flow_Sample_Set",
        ];
        let find = |text| find(names.iter().map(|n| (*n, *n)), text);
        assert_eq!(find("ct-t"), Ok("CT_Timeout_Policy"));
        assert_eq!(find("CT"), Err(vec!["CT_Timeout_Policy", "CT_Zone"]));
        assert_eq!(find("flow_sample"), Ok("Flow_Sample"));
        assert_eq!(find("x"), Err(vec![]));
        assert_eq!(find(""), Err(vec![]));
    }
}
