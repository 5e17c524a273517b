//! Tables as the tools print them: `--format`, `--data` and what belongs to them.

mod html;

use base::getopt::Opt;
use db_model::text::{format_datum, format_datum_bare};
use db_model::{Atom, ColumnType, Datum, Uuid};
use json::{Json, Object};

/// How a table is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns.
    Table,
    /// A line per column, rows apart by a blank line.
    List,
    /// An HTML table.
    Html,
    /// Comma-separated values (RFC 4180, with line feeds alone).
    Csv,
    /// One JSON object per table.
    Json,
}

/// How a database value is written in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// As the commands take it: `{a=b}`, `[1, 2]`.
    String,
    /// Without punctuation.
    Bare,
    /// As the protocol has it.
    Json,
}

/// What the formatting options chose.
#[derive(Clone, Debug)]
pub struct Style {
    /// `--format`.
    pub format: Format,
    /// `--data`.
    pub data: Data,
    /// Not `--no-headings`.
    pub headings: bool,
    /// `--pretty`.
    pub pretty: bool,
    /// `--max-column-width`, in bytes; 0 is unlimited.
    pub max_column_width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            format: Format::Table,
            data: Data::String,
            headings: true,
            pretty: false,
            max_column_width: 0,
        }
    }
}

/// A formatting option, for a tool's option table (see [`OPTIONS`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StyleOption {
    /// `-f`, `--format`.
    Format,
    /// `-d`, `--data`.
    Data,
    /// `--no-headings`.
    NoHeadings,
    /// `--pretty`.
    Pretty,
    /// `--bare`.
    Bare,
    /// `--max-column-width`.
    MaxColumnWidth,
}

/// The formatting options, in the order in which `--options` lists them.
pub const OPTIONS: [Opt<StyleOption>; 6] = [
    Opt::required("format", Some('f'), StyleOption::Format),
    Opt::required("data", Some('d'), StyleOption::Data),
    Opt::flag("no-headings", None, StyleOption::NoHeadings),
    Opt::flag("pretty", None, StyleOption::Pretty),
    Opt::flag("bare", None, StyleOption::Bare),
    Opt::required("max-column-width", None, StyleOption::MaxColumnWidth),
];

impl Style {
    /// Takes in one option.
    ///
    /// # Errors
    /// The message to print: an unknown format.
    pub fn set(&mut self, option: StyleOption, value: Option<&str>) -> Result<(), String> {
        let value = value.unwrap_or_default();
        match option {
            StyleOption::Format => {
                self.format = match value {
                    "table" => Format::Table,
                    "list" => Format::List,
                    "html" => Format::Html,
                    "csv" => Format::Csv,
                    "json" => Format::Json,
                    other => return Err(format!("unknown output format \"{other}\"")),
                };
            }
            StyleOption::Data => {
                self.data = match value {
                    "string" => Data::String,
                    "bare" => Data::Bare,
                    "json" => Data::Json,
                    other => return Err(format!("unknown data format \"{other}\"")),
                };
            }
            StyleOption::NoHeadings => self.headings = false,
            StyleOption::Pretty => self.pretty = true,
            StyleOption::Bare => {
                self.format = Format::List;
                self.data = Data::Bare;
                self.headings = false;
            }
            StyleOption::MaxColumnWidth => {
                let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
                self.max_column_width = digits.parse().unwrap_or(0);
            }
        }
        Ok(())
    }

    /// Whether cells need their JSON form: because the table or its values are JSON.
    pub fn wants_json(&self) -> bool {
        self.format == Format::Json || self.data == Data::Json
    }
}

/// What stands in one row and column.
#[derive(Clone, Debug)]
pub enum Cell {
    /// Text, which is a string in JSON tables.
    Text(String),
    /// A database value in its JSON form.
    Json(Json),
}

impl Cell {
    /// A cell that shows a database value of this type.
    pub fn datum(datum: &Datum, column_type: &ColumnType, style: &Style) -> Self {
        if style.wants_json() {
            Self::Json(datum.to_json_of(column_type))
        } else if style.data == Data::Bare {
            Self::Text(format_datum_bare(datum))
        } else {
            Self::Text(format_datum(datum, column_type))
        }
    }

    /// A cell that shows a row's UUID as a database value.
    pub fn uuid(uuid: Uuid, style: &Style) -> Self {
        if style.wants_json() {
            Self::Json(Atom::Uuid(uuid).to_json())
        } else {
            Self::Text(uuid.to_string())
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Json(json) => json.to_string(),
        }
    }

    fn json(&self) -> Json {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Json(json) => json.clone(),
        }
    }
}

/// A table to be printed.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Printed above it.
    pub caption: Option<String>,
    /// The time of what it shows, as text, printed above it.
    pub timestamp: Option<String>,
    headings: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these columns and no rows.
    pub fn new<S: Into<String>>(headings: impl IntoIterator<Item = S>) -> Self {
        Self {
            headings: headings.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Adds a row; it has a cell for each column.
    pub fn add_row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.headings.len(), "a cell per column");
        self.rows.push(cells);
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Formats the tables of one run; text tables are set apart by blank lines.
#[derive(Debug)]
pub struct Formatter {
    style: Style,
    first: bool,
}

impl Formatter {
    /// A formatter that has printed nothing yet.
    pub fn new(style: Style) -> Self {
        Self { style, first: true }
    }

    /// The options in force.
    pub fn style(&self) -> &Style {
        &self.style
    }

    /// The text of `table`.
    pub fn format(&mut self, table: &Table) -> String {
        let mut out = String::new();
        if self.style.format == Format::Json {
            self.json(table, &mut out);
            return out;
        }
        if !std::mem::take(&mut self.first) {
            out.push('\n');
        }
        if let Some(timestamp) = &table.timestamp {
            out.push_str(timestamp);
            out.push('\n');
        }
        if self.style.format != Format::Html
            && let Some(caption) = &table.caption
        {
            out.push_str(caption);
            out.push('\n');
        }
        match self.style.format {
            Format::List => self.list(table, &mut out),
            Format::Html => html::format(table, &self.style, &mut out),
            Format::Csv => self.csv(table, &mut out),
            Format::Table | Format::Json => self.aligned(table, &mut out),
        }
        out
    }

    fn aligned(&self, table: &Table, out: &mut String) {
        let rows: Vec<Vec<String>> = table
            .rows
            .iter()
            .map(|row| row.iter().map(Cell::text).collect())
            .collect();
        let limit = match self.style.max_column_width {
            0 => usize::MAX,
            limit => limit,
        };
        let widths: Vec<usize> = (0..table.headings.len())
            .map(|column| {
                let cells = rows.iter().map(|row| row[column].len()).max();
                let cells = cells.unwrap_or(0).min(limit);
                if self.style.headings {
                    cells.max(table.headings[column].len())
                } else {
                    cells
                }
            })
            .collect();
        if self.style.headings {
            aligned_line(&table.headings, &widths, out);
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            aligned_line(&rules, &widths, out);
        }
        for row in &rows {
            aligned_line(row, &widths, out);
        }
    }

    fn list(&self, table: &Table, out: &mut String) {
        for (i, row) in table.rows.iter().enumerate() {
            if i > 0 {
                out.push('\n');
            }
            for (heading, cell) in table.headings.iter().zip(row) {
                if self.style.headings {
                    out.push_str(heading);
                    out.extend(std::iter::repeat_n(
                        ' ',
                        20usize.saturating_sub(heading.len()),
                    ));
                    out.push_str(": ");
                }
                out.push_str(&cell.text());
                out.push('\n');
            }
        }
    }

    fn csv(&self, table: &Table, out: &mut String) {
        if self.style.headings {
            csv_line(table.headings.iter().cloned(), out);
        }
        for row in &table.rows {
            csv_line(row.iter().map(Cell::text), out);
        }
    }

    fn json(&self, table: &Table, out: &mut String) {
        let mut object = Object::new();
        if let Some(caption) = &table.caption {
            object.insert("caption", caption.as_str());
        }
        if let Some(timestamp) = &table.timestamp {
            object.insert("time", timestamp.as_str());
        }
        let headings: Vec<Json> = table.headings.iter().map(|h| h.as_str().into()).collect();
        object.insert("headings", headings);
        let rows: Vec<Json> = table
            .rows
            .iter()
            .map(|row| Json::Array(row.iter().map(Cell::json).collect()))
            .collect();
        object.insert("data", rows);
        let object = Json::Object(object);
        *out += &if self.style.pretty {
            format!("{object:#}\n")
        } else {
            format!("{object}\n")
        };
    }
}

/// One line of aligned cells; the last is not padded.
fn aligned_line(cells: &[String], widths: &[usize], out: &mut String) {
    for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if i > 0 {
            out.push(' ');
        }
        let cell = &cell[..cell.floor_char_boundary(*width)];
        out.push_str(cell);
        if i + 1 < cells.len() {
            out.extend(std::iter::repeat_n(' ', width - cell.len()));
        }
    }
    out.push('\n');
}

fn csv_line(cells: impl Iterator<Item = String>, out: &mut String) {
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            out.push(',');
        }
        if cell.contains(['"', ',', '\n', '\r']) {
            out.push('"');
            out.push_str(&cell.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(&cell);
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests;
