//! The parts of `--help` that the tools share.

use crate::{Env, usage};

/// The generic database commands; how rows are named follows it.
pub const COMMANDS: &str = "\
Database commands:
  list TBL [REC]              list RECord (or all records) in TBL
  find TBL CONDITION...       list records satisfying CONDITION in TBL
  get TBL REC COL[:KEY]       print values of COLumns in RECord in TBL
  set TBL REC COL[:KEY]=VALUE set COLumn values in RECord in TBL
  add TBL REC COL [KEY=]VALUE add (KEY=)VALUE to COLumn in RECord in TBL
  remove TBL REC COL [KEY=]VALUE  remove (KEY=)VALUE from COLumn
  clear TBL REC COL           clear values from COLumn in RECord in TBL
  create TBL COL[:KEY]=VALUE  create and initialize new record
  destroy TBL REC             delete RECord from TBL
  wait-until TBL REC [COL[:KEY]=VALUE]  wait until condition is true
Potentially unsafe database commands require --force option.
";

/// What differs between the `--help` texts of the tools.
pub(crate) struct Help<'a> {
    /// What the tool is, in the first line.
    pub(crate) title: &'a str,
    /// The tool's own commands, in groups, and an empty line.
    pub(crate) commands: &'a str,
    /// How rows are named, as [`describe`](super::names::describe) says it.
    pub(crate) rows: &'a str,
    /// The general options and an empty line; `{db}` stands for the default database.
    pub(crate) options: &'a str,
    /// The line about `--no-syslog`.
    pub(crate) no_syslog: &'a str,
    /// [`usage::BOOTSTRAP`], or nothing.
    pub(crate) bootstrap: &'a str,
}

impl Help<'_> {
    /// The whole text.
    pub(crate) fn text(&self, env: &Env<'_>) -> String {
        let program = &env.program;
        let db = format!("unix:{}", env.dirs.in_run("db.sock").display());
        let logging = usage::LOGGING
            .replace("{logdir}", &env.dirs.log.display().to_string())
            .replace("{program}", program);
        [
            &format!("{program}: {}\n", self.title),
            &format!("usage: {program} [OPTIONS] COMMAND [ARG...]\n\n"),
            self.commands,
            COMMANDS,
            self.rows,
            "\n",
            &self.options.replace("{db}", &db),
            usage::TABLE,
            "\n",
            &logging,
            self.no_syslog,
            "\n",
            usage::DATABASE_STREAMS,
            self.bootstrap,
            usage::SSL_OPTIONS,
            "\n",
            usage::OTHER,
        ]
        .concat()
    }
}
