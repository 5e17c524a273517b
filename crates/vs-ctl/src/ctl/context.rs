//! What commands work on: a replica, a transaction, and the output so far.

use std::sync::Arc;

use db_client::{ColumnId, Interest, Layout, Replica, TableId, Transaction};
use db_model::{Datum, Uuid, UuidSource};

use super::command::Command;
use super::names::RowName;
use super::show::ShowTable;
use super::symbols::Symbols;
use crate::table::{Style, Table};

/// Why a command did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The program ends with this message and status 1.
    Fatal(String),
    /// The program ends at once with this status and no message.
    Exit(u8),
    /// The database is not yet as the command wants it: try again when it changes.
    NotYet,
    /// The rows that were asked for do not tell enough: try again with all rows.
    NeedAll,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Fatal(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::Fatal(message.to_owned())
    }
}

/// The result of a command.
pub type Done<T = ()> = Result<T, Failure>;

/// A command of tool `T` from the command line.
pub type Cmd<T> = Command<Handler<T>>;

/// Says which columns a command needs, before there is a connection.
pub type Prepare<T> = fn(&mut Preparation<'_, T>, &Cmd<T>) -> Result<(), String>;

/// What a command does.
pub struct Handler<T: 'static> {
    /// Asks for the columns that the command needs.
    pub prepare: Prepare<T>,
    /// Runs it.
    pub run: fn(&mut Context<'_, T>, &Cmd<T>) -> Done,
}

impl<T> std::fmt::Debug for Handler<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handler")
    }
}

/// What a tool tells the generic database commands of its database.
pub trait Schema {
    /// How rows are named, by table.
    fn row_names(&self) -> &[RowName];
    /// What `show` shows, the top table first.
    fn show_tables(&self) -> &[ShowTable];
}

/// What a command sees before there is a connection.
pub struct Preparation<'a, T> {
    /// The tables and columns.
    pub layout: &'a Layout,
    /// What will be asked for.
    pub interest: &'a mut Interest,
    /// The tool.
    pub tool: &'a T,
    /// Whether to ask for all rows, even where fewer usually do.
    pub whole: bool,
}

/// What one command has put out.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Lines of text.
    pub text: String,
    /// A table, printed instead of the text.
    pub table: Option<Table>,
    /// An inserted row whose UUID is printed once it is known.
    pub created: Option<Uuid>,
}

/// What commands work on.
pub struct Context<'a, T> {
    /// The database.
    pub replica: &'a Replica,
    /// What of it was asked for.
    pub interest: &'a Interest,
    /// The tables and columns.
    pub layout: Arc<Layout>,
    /// The changes.
    pub txn: Transaction,
    /// The `@names`.
    pub symbols: Symbols,
    /// New UUIDs.
    pub uuids: UuidSource,
    /// What the running command puts out.
    pub out: Output,
    /// How tables will be printed.
    pub style: &'a Style,
    /// The tool, with what it remembers between commands.
    pub tool: &'a mut T,
}

impl<T> Context<'_, T> {
    /// The value of a column, changes counted.
    pub fn get(&self, table: TableId, row: Uuid, column: ColumnId) -> &Datum {
        self.txn.get(self.replica, table, row, column)
    }

    /// The rows of a table, changes counted, sorted by UUID.
    pub fn rows(&self, table: TableId) -> Vec<Uuid> {
        let mut rows = self.txn.rows(self.replica, table);
        rows.sort_unstable();
        rows
    }

    /// Inserts a row, whose UUID the server will choose.
    pub fn insert(&mut self, table: TableId) -> Uuid {
        let uuid = self.uuids.next_uuid();
        self.txn.insert(table, uuid);
        uuid
    }

    /// Makes the transaction depend on a column's value.
    pub fn verify(&mut self, table: TableId, row: Uuid, column: ColumnId) {
        self.txn.verify(self.replica, table, row, column);
    }

    /// Appends a line to the output.
    pub fn print_line(&mut self, line: &str) {
        self.out.text.push_str(line);
        self.out.text.push('\n');
    }
}
