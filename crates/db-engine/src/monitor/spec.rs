//! What a monitor watches.

use db_model::{
    Clause, Condition, DatabaseSchema, Error, Kinds, Members, Result, TableSchema, UUID_COLUMN,
};
use json::{Json, Object};

/// Which form of updates a monitor gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// `monitor`: whole old and new rows, in `update`.
    V1,
    /// `monitor_cond`: differences, in `update2`.
    V2,
    /// `monitor_cond_since`: differences and the transaction's id, in `update3`.
    V3,
}

/// Which kinds of changes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Select {
    /// The contents at the beginning.
    pub initial: bool,
    /// Rows that come.
    pub insert: bool,
    /// Rows that go.
    pub delete: bool,
    /// Rows that change.
    pub modify: bool,
}

impl Select {
    /// All kinds.
    pub const ALL: Self = Self {
        initial: true,
        insert: true,
        delete: true,
        modify: true,
    };

    fn from_json(json: &Json, table: &str) -> Result<Self> {
        let mut members = Members::new(json, format!("table {table} select"));
        let mut flag = |name: &str| {
            let value = members.optional(name, Kinds::BOOLEAN);
            value.and_then(Json::as_bool).unwrap_or(true)
        };
        let this = Self {
            initial: flag("initial"),
            insert: flag("insert"),
            delete: flag("delete"),
            modify: flag("modify"),
        };
        members.finish()?;
        Ok(this)
    }

    const fn bits(self) -> u8 {
        self.initial as u8
            | (self.insert as u8) << 1
            | (self.delete as u8) << 2
            | (self.modify as u8) << 3
    }
}

/// What is watched of one table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSpec {
    /// Index of the table.
    pub table: usize,
    /// The columns, ascending, with what is told of them.
    pub columns: Vec<(usize, Select)>,
    /// Which rows; clauses are joined with "or", and none means all rows.
    pub condition: Condition,
}

impl TableSpec {
    /// Whether the row is watched.
    pub fn matches(&self, row: &db_model::Row) -> bool {
        self.condition.clauses.is_empty() || self.condition.matches_any(row)
    }

    /// The columns for which a kind of change is told.
    pub(crate) fn columns_for(
        &self,
        kind: impl Fn(&Select) -> bool,
    ) -> impl Iterator<Item = usize> {
        let chosen = self.columns.iter().filter(move |(_, select)| kind(select));
        chosen.map(|(column, _)| *column)
    }
}

/// What a monitor watches.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The form of its updates.
    pub version: Version,
    /// The watched tables, ascending.
    pub tables: Vec<TableSpec>,
}

impl Spec {
    /// Parses `<monitor-requests>`: a member per table.
    ///
    /// # Errors
    /// A table or column does not exist or is listed twice, or the syntax is wrong.
    pub fn from_json(version: Version, json: &Json, schema: &DatabaseSchema) -> Result<Self> {
        let object = json
            .as_object()
            .ok_or_else(|| Error::syntax(json, "monitor-requests must be object"))?;
        let mut tables = Vec::new();
        for (name, requests) in object.iter() {
            let table = schema
                .table_index(name)
                .ok_or_else(|| Error::new("syntax error", format!("no table named {name}")))?;
            let table_schema = &schema.tables[table];
            let mut spec = TableSpec {
                table,
                columns: Vec::new(),
                condition: Condition::default(),
            };
            let one = std::slice::from_ref(requests);
            let mut unconditional = false;
            for request in requests.as_array().unwrap_or(one) {
                unconditional |= !spec.add_request(version, request, table_schema)?;
            }
            if unconditional {
                spec.condition = Condition::default();
            }
            spec.columns.sort_unstable_by_key(|(column, _)| *column);
            if let Some(pair) = spec.columns.windows(2).find(|w| w[0].0 == w[1].0) {
                let column = &table_schema.columns[pair[0].0].name;
                let details = format!("column {column} mentioned more than once");
                return Err(Error::new("syntax error", details));
            }
            tables.push(spec);
        }
        tables.sort_unstable_by_key(|spec| spec.table);
        Ok(Self { version, tables })
    }

    /// What makes monitors that watch the same equal.
    pub(crate) fn key(&self) -> String {
        use std::fmt::Write;
        let mut key = format!("{:?}", self.version);
        for table in &self.tables {
            // Writing to a `String` cannot fail.
            let _ = write!(key, ";{}:", table.table);
            for (column, select) in &table.columns {
                let _ = write!(key, "{column}/{},", select.bits());
            }
            for clause in &table.condition.clauses {
                match clause {
                    Clause::Constant(value) => {
                        let _ = write!(key, "{value}|");
                    }
                    Clause::Test {
                        column,
                        function,
                        argument,
                    } => {
                        let argument = argument.to_json();
                        let _ = write!(key, "{column}{}{argument}|", function.name());
                    }
                }
            }
        }
        key
    }

    /// Replaces the condition on a table.
    pub(crate) fn set_condition(&mut self, table: usize, condition: Condition) {
        if let Some(spec) = self.tables.iter_mut().find(|t| t.table == table) {
            spec.condition = condition;
        }
    }

    /// What is watched of a table.
    pub fn table(&self, table: usize) -> Option<&TableSpec> {
        self.tables.iter().find(|spec| spec.table == table)
    }
}

impl TableSpec {
    /// Adds what one request asks for.  False if it has no condition.
    fn add_request(&mut self, version: Version, json: &Json, schema: &TableSchema) -> Result<bool> {
        let mut members = Members::new(json, format!("table {}", schema.name));
        let condition = match version {
            Version::V1 => None,
            Version::V2 | Version::V3 => members.optional("where", Kinds::ARRAY.or(Kinds::BOOLEAN)),
        };
        let columns = members.optional("columns", Kinds::ARRAY);
        let select = members.optional("select", Kinds::OBJECT);
        members.finish()?;
        let select = match select {
            Some(json) => Select::from_json(json, &schema.name)?,
            None => Select::ALL,
        };
        match columns {
            Some(json) => {
                for name in json.as_array().unwrap_or(&[]) {
                    let Some(name) = name.as_str() else {
                        return Err(Error::syntax(json, "array of column names expected"));
                    };
                    let column = schema.column_index(name).ok_or_else(|| {
                        let details = format!("{name} is not a valid column name");
                        Error::syntax(json, details)
                    })?;
                    if self.columns.iter().any(|(known, _)| *known == column) {
                        let details = format!("column {name} mentioned more than once");
                        return Err(Error::syntax(json, details));
                    }
                    self.columns.push((column, select));
                }
            }
            None => {
                let all = (0..schema.columns.len()).filter(|&c| c != UUID_COLUMN);
                self.columns.extend(all.map(|column| (column, select)));
            }
        }
        match condition {
            Some(json) => {
                let parsed = condition_from_json(json, schema)?;
                let some = !parsed.clauses.is_empty();
                self.condition.clauses.extend(parsed.clauses);
                Ok(some)
            }
            None => Ok(false),
        }
    }
}

fn condition_from_json(json: &Json, schema: &TableSchema) -> Result<Condition> {
    match json {
        Json::Boolean(value) => Ok(Condition {
            clauses: vec![Clause::Constant(*value)],
        }),
        _ => Condition::from_json(json, schema, None),
    }
}

/// Parses `<monitor-cond-update-requests>`: new conditions, by table.
///
/// # Errors
/// A table is not watched, or the syntax is wrong.
pub fn parse_conditions(
    json: &Json,
    spec: &Spec,
    schema: &DatabaseSchema,
) -> Result<Vec<(usize, Condition)>> {
    let object: &Object = json.as_object().ok_or_else(|| {
        Error::new(
            "syntax error",
            "monitor-cond-change-requests must be object",
        )
    })?;
    let mut conditions = Vec::new();
    for (name, requests) in object.iter() {
        let table = schema
            .table_index(name)
            .ok_or_else(|| Error::new("syntax error", format!("no table named {name}")))?;
        if spec.table(table).is_none() {
            let details = format!("no table named {name} in monitor session");
            return Err(Error::new("syntax error", details));
        }
        let requests = requests.as_array().ok_or_else(|| {
            let details = format!("table {name} no monitor-cond-change JSON array");
            Error::new("syntax error", details)
        })?;
        for request in requests {
            let mut members = Members::new(request, format!("table {name}"));
            let columns = members.optional("columns", Kinds::ANY);
            let condition = members.optional("where", Kinds::ARRAY.or(Kinds::BOOLEAN));
            members.finish()?;
            if columns.is_some() {
                let details = "changing columns is unsupported";
                return Err(Error::syntax(request, details));
            }
            let condition = match condition {
                Some(json) => condition_from_json(json, &schema.tables[table])?,
                None => Condition::default(),
            };
            conditions.push((table, condition));
        }
    }
    Ok(conditions)
}
