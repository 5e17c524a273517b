//! The `@names` of rows that one run of a tool creates or looks up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use db_model::{BaseType, ColumnType, Datum, SymbolTable, Uuid, UuidSource};

/// The `@names` in use, what they stand for, and how they are referred to.
#[derive(Debug)]
pub struct Symbols {
    table: SymbolTable,
    names: HashMap<Uuid, Arc<str>>,
    strong: HashSet<Uuid>,
    weak: HashSet<Uuid>,
}

impl Symbols {
    /// No names yet.
    pub fn new(source: UuidSource) -> Self {
        Self {
            table: SymbolTable::new(source),
            names: HashMap::new(),
            strong: HashSet::new(),
            weak: HashSet::new(),
        }
    }

    /// The table that parsers take.
    pub fn table(&mut self) -> &mut SymbolTable {
        &mut self.table
    }

    /// Defines `@name` as `wish`, or as a new UUID, which may have been referred to before.
    ///
    /// # Errors
    /// The message to print: it is no such name or was defined before.
    pub fn define(&mut self, name: &str, wish: Option<Uuid>) -> Result<Uuid, String> {
        if !name.starts_with('@') {
            return Err(format!("row id \"{name}\" does not begin with \"@\""));
        }
        let name = Arc::from(name);
        let Some(uuid) = self.table.define(&name, wish) else {
            return Err(format!(
                "row id \"{name}\" may only be specified on one --id option"
            ));
        };
        self.names.insert(uuid, name);
        Ok(uuid)
    }

    /// Has `@name` stand for a row that is there.
    ///
    /// # Errors
    /// The message to print: it is no such name, or was used before, when it could only have
    /// meant a row that is yet to be created.
    pub fn name_row(&mut self, name: &str, row: Uuid) -> Result<(), String> {
        if self.table.contains(name) {
            return Err(format!(
                "row id \"{name}\" specified on \"get\" command was used before it was defined"
            ));
        }
        self.define(name, Some(row))?;
        self.keep(row);
        Ok(())
    }

    /// Notes that the row needs no reference in order to live.
    pub fn keep(&mut self, uuid: Uuid) {
        self.strong.insert(uuid);
    }

    /// Notes the references that `datum`, a value of a column of this type, makes.
    pub fn note_references(&mut self, datum: &Datum, column_type: &ColumnType) {
        let mut note = |base: &BaseType, uuid: Option<Uuid>| {
            if let (Some(reference), Some(uuid)) = (base.reference(), uuid) {
                let set = if reference.strong {
                    &mut self.strong
                } else {
                    &mut self.weak
                };
                set.insert(uuid);
            }
        };
        for key in datum.keys() {
            note(&column_type.key, key.as_uuid());
        }
        if let Some(base) = &column_type.value {
            for value in datum.values() {
                note(base, value.as_uuid());
            }
        }
    }

    /// Warns of names that were defined but will not live.
    ///
    /// # Errors
    /// The message to print: a name was used but never defined.
    pub fn check(&self, module: &str) -> Result<(), String> {
        let mut undefined: Vec<&str> = self.table.undefined().collect();
        undefined.sort_unstable();
        if let Some(name) = undefined.first() {
            return Err(format!(
                "row id \"{name}\" is referenced but never created \
                 (e.g. with \"-- --id={name} create ...\")"
            ));
        }
        let mut names: Vec<(&Uuid, &Arc<str>)> = self.names.iter().collect();
        names.sort_unstable_by_key(|(_, name)| Arc::clone(name));
        for (uuid, name) in names {
            if self.strong.contains(uuid) {
                continue;
            }
            if self.weak.contains(uuid) {
                log::warn!(
                    target: module,
                    "row id \"{name}\" was created but only a weak reference to it was \
                     inserted, so it will not actually appear in the database"
                );
            } else {
                log::warn!(
                    target: module,
                    "row id \"{name}\" was created but no reference to it was inserted, so \
                     it will not actually appear in the database"
                );
            }
        }
        Ok(())
    }
}
