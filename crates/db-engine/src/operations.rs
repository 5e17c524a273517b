//! The operations of a transaction (RFC 7047 section 5.2).

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use db_model::{
    ColumnSet, Condition, Datum, Error, Kinds, Members, Mutation, Result, Row, SymbolTable,
    TableSchema, Uuid, parse_uuid,
};
use json::{Json, Object};

use crate::execute::Context;
use crate::rbac::{self, Change};
use crate::transaction::Transaction;

/// What an operation comes to.
pub(crate) enum Step {
    /// Its result.
    Result(Json),
    /// It asks that the transaction be durable.
    Durable,
    /// It must wait for a change, or until then.
    Wait(Instant),
}

/// What is in an operation beside its table, unparsed as yet: whatever names columns or rows
/// may be parsed only when the operations before have run.
enum Kind<'a> {
    Insert {
        row: &'a Json,
        uuid: Option<&'a Json>,
        name: Option<&'a Json>,
    },
    Select {
        condition: &'a Json,
        columns: Option<&'a Json>,
        sort: Option<&'a Json>,
    },
    Update {
        condition: &'a Json,
        row: &'a Json,
    },
    Mutate {
        condition: &'a Json,
        mutations: &'a Json,
    },
    Delete {
        condition: &'a Json,
    },
    Wait {
        timeout: Option<&'a Json>,
        condition: &'a Json,
        columns: Option<&'a Json>,
        until: &'a Json,
        rows: &'a Json,
    },
    Commit {
        durable: bool,
    },
    Abort,
    Comment(&'a str),
    Assert(&'a str),
}

/// One operation.
pub(crate) struct Operation<'a> {
    json: &'a Json,
    table: usize,
    kind: Kind<'a>,
}

impl<'a> Operation<'a> {
    /// Reads an operation's members.  `position` is its number, from 1, and of how many.
    pub(crate) fn parse(
        json: &'a Json,
        position: (usize, usize),
        transaction: &Transaction<'_>,
    ) -> Result<Self> {
        let what = format!("ovsdb operation {} of {}", position.0, position.1);
        let fail =
            |details: String| Error::syntax(json, format!("Parsing {what} failed: {details}"));
        let mut members = Members::new(json, what.clone());
        let op = members.required("op", Kinds::ID).and_then(Json::as_str);
        let Some(op) = op else {
            return Err(members
                .finish()
                .err()
                .unwrap_or_else(|| fail(String::new())));
        };
        let has_table = matches!(
            op,
            "insert" | "select" | "update" | "mutate" | "delete" | "wait"
        );
        let mut table = 0;
        if has_table && let Some(name) = members.required("table", Kinds::ID).and_then(Json::as_str)
        {
            table = transaction
                .db
                .schema()
                .table_index(name)
                .ok_or_else(|| fail(format!("No table named {name}.")))?;
        }
        let kind = Self::parse_kind(op, &mut members, &fail)?;
        members.finish()?;
        match kind {
            Some(kind) => Ok(Self { json, table, kind }),
            None => Err(fail("Object expected.".to_owned())),
        }
    }

    /// Reads the members of an operation called `op`; `None` if one is missing, which
    /// `members` will report.
    fn parse_kind(
        op: &str,
        members: &mut Members<'a>,
        fail: &dyn Fn(String) -> Error,
    ) -> Result<Option<Kind<'a>>> {
        let text = |json: Option<&'a Json>| json.and_then(Json::as_str);
        Ok(match op {
            "insert" => {
                let uuid = members.optional("uuid", Kinds::STRING);
                let name = members.optional("uuid-name", Kinds::ID);
                let row = members.required("row", Kinds::OBJECT);
                row.map(|row| Kind::Insert { row, uuid, name })
            }
            "select" => {
                let condition = members.required("where", Kinds::ARRAY);
                let columns = members.optional("columns", Kinds::ARRAY);
                let sort = members.optional("sort", Kinds::ARRAY);
                condition.map(|condition| Kind::Select {
                    condition,
                    columns,
                    sort,
                })
            }
            "update" => {
                let condition = members.required("where", Kinds::ARRAY);
                let row = members.required("row", Kinds::OBJECT);
                condition
                    .zip(row)
                    .map(|(condition, row)| Kind::Update { condition, row })
            }
            "mutate" => {
                let condition = members.required("where", Kinds::ARRAY);
                let mutations = members.required("mutations", Kinds::ARRAY);
                condition
                    .zip(mutations)
                    .map(|(condition, mutations)| Kind::Mutate {
                        condition,
                        mutations,
                    })
            }
            "delete" => members
                .required("where", Kinds::ARRAY)
                .map(|condition| Kind::Delete { condition }),
            "wait" => {
                let timeout = members.optional("timeout", Kinds::NUMBER);
                let condition = members.required("where", Kinds::ARRAY);
                let columns = members.optional("columns", Kinds::ARRAY);
                let until = members.required("until", Kinds::STRING);
                let rows = members.required("rows", Kinds::ARRAY);
                condition
                    .zip(until)
                    .zip(rows)
                    .map(|((condition, until), rows)| Kind::Wait {
                        timeout,
                        condition,
                        columns,
                        until,
                        rows,
                    })
            }
            "commit" => members
                .required("durable", Kinds::BOOLEAN)
                .and_then(Json::as_bool)
                .map(|durable| Kind::Commit { durable }),
            "abort" => Some(Kind::Abort),
            "comment" => text(members.required("comment", Kinds::STRING)).map(Kind::Comment),
            "assert" => text(members.required("lock", Kinds::STRING)).map(Kind::Assert),
            other => return Err(fail(format!("No operation \"{other}\""))),
        })
    }

    /// Whether the operation changes the database.
    pub(crate) fn is_write(&self) -> bool {
        matches!(
            self.kind,
            Kind::Insert { .. } | Kind::Update { .. } | Kind::Mutate { .. } | Kind::Delete { .. }
        )
    }

    fn name(&self) -> &'a str {
        self.json.get("op").and_then(Json::as_str).unwrap_or("")
    }

    /// Executes the operation.
    pub(crate) fn run(
        &self,
        transaction: &mut Transaction<'_>,
        symbols: &mut SymbolTable,
        context: &Context<'_>,
    ) -> Result<Step> {
        if self.is_write() && context.read_only {
            return Err(Error::new(
                "not allowed",
                format!(
                    "{} operation not allowed when database server is in read only mode",
                    self.name()
                ),
            ));
        }
        if self.is_write() && transaction.db.schema().name.starts_with('_') {
            let table = transaction.schema(self.table);
            return Err(Error::new(
                "not allowed",
                format!(
                    "{} operation not allowed on table in reserved database {}",
                    self.name(),
                    table.name
                ),
            ));
        }
        let result = match &self.kind {
            Kind::Insert { row, uuid, name } => {
                self.insert(transaction, symbols, context, row, (*uuid, *name))?
            }
            Kind::Select {
                condition,
                columns,
                sort,
            } => self.select(transaction, symbols, condition, *columns, *sort)?,
            Kind::Update { condition, row } => {
                self.update(transaction, symbols, context, condition, row)?
            }
            Kind::Mutate {
                condition,
                mutations,
            } => self.mutate(transaction, symbols, context, condition, mutations)?,
            Kind::Delete { condition } => {
                let found = self.find(transaction, symbols, condition)?;
                self.check_role(transaction, context, Change::Delete, &found)?;
                for uuid in &found {
                    transaction.delete(self.table, *uuid);
                }
                count(found.len())
            }
            Kind::Wait { .. } => return self.wait(transaction, symbols, context),
            Kind::Commit { durable: true } => return Ok(Step::Durable),
            Kind::Commit { durable: false } => Json::object(),
            Kind::Abort => return Err(Error::new("aborted", "aborted by request")),
            Kind::Comment(line) => {
                transaction.add_comment(line);
                Json::object()
            }
            Kind::Assert(lock) => {
                if !(context.owns_lock)(lock) {
                    let details = format!("Asserted lock {lock} not held.");
                    return Err(Error::new("not owner", details));
                }
                Json::object()
            }
        };
        Ok(Step::Result(result))
    }

    fn find(
        &self,
        transaction: &mut Transaction<'_>,
        symbols: &mut SymbolTable,
        condition: &Json,
    ) -> Result<Vec<Uuid>> {
        let schema = transaction.schema(self.table);
        let condition = Condition::from_json(condition, &schema, Some(symbols))?;
        Ok(transaction.matching(self.table, &condition))
    }

    /// Checks that the client's role lets it change these rows.
    fn check_role(
        &self,
        transaction: &Transaction<'_>,
        context: &Context<'_>,
        change: Change<'_>,
        found: &[Uuid],
    ) -> Result<()> {
        let rows = rbac::rows(transaction, self.table, found);
        rbac::check(transaction, context.identity, self.table, change, rows)
    }

    fn insert(
        &self,
        transaction: &mut Transaction<'_>,
        symbols: &mut SymbolTable,
        context: &Context<'_>,
        row: &Json,
        (uuid, name): (Option<&Json>, Option<&Json>),
    ) -> Result<Json> {
        let wish = match uuid {
            Some(json) => {
                let text = json.as_str().unwrap_or("");
                let uuid = parse_uuid(text).ok_or_else(|| Error::syntax(json, "bad uuid"))?;
                if transaction.is_taken(self.table, uuid) {
                    let details = "This UUID would duplicate a UUID already present within the table or deleted within the same transaction.";
                    return Err(Error::new("duplicate uuid", details).at(json));
                }
                Some(uuid)
            }
            None => None,
        };
        let uuid = match name {
            Some(json) => {
                let name: Arc<str> = json.as_str().unwrap_or("").into();
                symbols.define(&name, wish).ok_or_else(|| {
                    let details = "This \"uuid-name\" appeared on an earlier \"insert\" operation.";
                    Error::new("duplicate uuid-name", details).at(json)
                })?
            }
            None => wish.unwrap_or_else(|| symbols.new_uuid()),
        };
        let schema = transaction.schema(self.table);
        let mut new = Row::new(&schema, uuid);
        let values = row_from_json(row, &schema, symbols)?;
        for (column, definition) in schema.own_columns() {
            match values.iter().find(|(given, _)| *given == column) {
                Some((_, datum)) => new.set(column, datum.clone()),
                None => definition.check(new.get(column))?,
            }
        }
        let inserted = std::iter::once(&new);
        rbac::check(
            transaction,
            context.identity,
            self.table,
            Change::Insert,
            inserted,
        )?;
        transaction.insert(self.table, new);
        let uuid = db_model::Atom::Uuid(uuid).to_json();
        Ok(Object::new().with("uuid", uuid).into())
    }

    fn select(
        &self,
        transaction: &mut Transaction<'_>,
        symbols: &mut SymbolTable,
        condition: &Json,
        columns: Option<&Json>,
        sort: Option<&Json>,
    ) -> Result<Json> {
        let schema = transaction.schema(self.table);
        let parsed = Condition::from_json(condition, &schema, Some(symbols))?;
        let columns = columns_or_all(columns, &schema)?;
        let sort = match sort {
            Some(json) => sort_columns(json, &schema)?,
            None => Vec::new(),
        };
        let found = transaction.matching(self.table, &parsed);
        let mut rows: Vec<&Arc<Row>> = found
            .iter()
            .filter_map(|uuid| transaction.get(self.table, *uuid))
            .collect();
        if sort.is_empty() {
            rows.sort_unstable_by_key(|row| row.uuid());
        } else {
            rows.sort_by(|a, b| compare_rows(a, b, &sort));
        }
        let mut seen = BTreeSet::new();
        let distinct = !columns.contains(db_model::UUID_COLUMN);
        let rows = rows.into_iter().filter_map(|row| {
            let json = row_to_json(row, &schema, &columns);
            (!distinct || seen.insert(json.to_string())).then_some(json)
        });
        let rows = Json::Array(rows.collect());
        Ok(Object::new().with("rows", rows).into())
    }

    fn update(
        &self,
        transaction: &mut Transaction<'_>,
        symbols: &mut SymbolTable,
        context: &Context<'_>,
        condition: &Json,
        row: &Json,
    ) -> Result<Json> {
        let schema = transaction.schema(self.table);
        let values = row_from_json(row, &schema, symbols)?;
        for (column, _) in &values {
            let column = &schema.columns[*column];
            if !column.mutable {
                let details = format!(
                    "Cannot update immutable column {} in table {}.",
                    column.name, schema.name
                );
                return Err(Error::constraint(details).at(self.json));
            }
        }
        let found = self.find(transaction, symbols, condition)?;
        let columns: Vec<usize> = values.iter().map(|(column, _)| *column).collect();
        self.check_role(transaction, context, Change::Update(&columns), &found)?;
        for uuid in &found {
            let same = transaction.get(self.table, *uuid).is_some_and(|row| {
                let mut values = values.iter();
                values.all(|(column, datum)| row.get(*column) == datum)
            });
            if same {
                continue;
            }
            if let Some(row) = transaction.modify(self.table, *uuid) {
                for (column, datum) in &values {
                    row.set(*column, datum.clone());
                }
            }
        }
        Ok(count(found.len()))
    }

    fn mutate(
        &self,
        transaction: &mut Transaction<'_>,
        symbols: &mut SymbolTable,
        context: &Context<'_>,
        condition: &Json,
        mutations: &Json,
    ) -> Result<Json> {
        let schema = transaction.schema(self.table);
        let mutations = Mutation::list_from_json(mutations, &schema, Some(&mut *symbols))?;
        let found = self.find(transaction, symbols, condition)?;
        if mutations.is_empty() {
            // It only counts.
            return Ok(count(found.len()));
        }
        let columns: Vec<usize> = mutations.iter().map(|mutation| mutation.column).collect();
        self.check_role(transaction, context, Change::Mutate(&columns), &found)?;
        for uuid in &found {
            if let Some(row) = transaction.modify(self.table, *uuid) {
                for mutation in &mutations {
                    mutation.apply(&schema, row)?;
                }
            }
        }
        Ok(count(found.len()))
    }

    fn wait(
        &self,
        transaction: &mut Transaction<'_>,
        symbols: &mut SymbolTable,
        context: &Context<'_>,
    ) -> Result<Step> {
        let Kind::Wait {
            timeout,
            condition,
            columns,
            until,
            rows,
        } = &self.kind
        else {
            return Ok(Step::Result(Json::Null));
        };
        let schema = transaction.schema(self.table);
        let parsed = Condition::from_json(condition, &schema, Some(&mut *symbols))?;
        let columns = columns_or_all(*columns, &schema)?;
        let equal = match until.as_str() {
            Some("==") => true,
            Some("!=") => false,
            _ => {
                let details = "\"until\" must be \"==\" or \"!=\"";
                return Err(Error::syntax(until, details));
            }
        };
        let project = |row: &Row| row_to_json(row, &schema, &columns).to_string();
        let mut expected = BTreeSet::new();
        for json in rows.as_array().unwrap_or(&[]) {
            let mut row = Row::new(&schema, Uuid::nil());
            for (column, datum) in row_from_json(json, &schema, symbols)? {
                row.set(column, datum);
            }
            expected.insert(project(&row));
        }
        let found = transaction.matching(self.table, &parsed);
        let actual: BTreeSet<String> = found
            .iter()
            .filter_map(|uuid| transaction.get(self.table, *uuid))
            .map(|row| project(row))
            .collect();
        if (actual == expected) == equal {
            return Ok(Step::Result(Json::object()));
        }
        let deadline = timeout.map(|timeout| {
            let millis = match timeout {
                Json::Real(value) => *value as u64,
                other => other
                    .as_integer()
                    .and_then(|v| v.try_into().ok())
                    .unwrap_or(0),
            };
            context.since + Duration::from_millis(millis)
        });
        match deadline {
            Some(deadline) if context.now >= deadline => {
                let elapsed = context.now.since(context.since).as_millis();
                let details = if elapsed > 0 {
                    format!("\"wait\" timed out after {elapsed} ms")
                } else {
                    "\"where\" clause test failed".to_owned()
                };
                Err(Error::new("timed out", details))
            }
            deadline => Ok(Step::Wait(deadline.unwrap_or(Instant::MAX))),
        }
    }
}

fn count(rows: usize) -> Json {
    Object::new().with("count", rows as i64).into()
}

fn columns_or_all(columns: Option<&Json>, schema: &TableSchema) -> Result<ColumnSet> {
    match columns {
        Some(json) => ColumnSet::from_json(json, schema),
        None => Ok(ColumnSet::all(schema)),
    }
}

/// The columns to sort by, in the order in which they are given.
fn sort_columns(json: &Json, schema: &TableSchema) -> Result<Vec<usize>> {
    ColumnSet::from_json(json, schema)?;
    let names = json.as_array().unwrap_or(&[]).iter();
    Ok(names
        .filter_map(|name| schema.column_index(name.as_str()?))
        .collect())
}

fn compare_rows(a: &Row, b: &Row, columns: &[usize]) -> Ordering {
    columns
        .iter()
        .map(|&column| a.get(column).compare(b.get(column)))
        .find(|order| *order != Ordering::Equal)
        .unwrap_or(Ordering::Equal)
}

/// Parses `<row>`: the columns that are given.
fn row_from_json(
    json: &Json,
    schema: &TableSchema,
    symbols: &mut SymbolTable,
) -> Result<Vec<(usize, Datum)>> {
    let object = json
        .as_object()
        .ok_or_else(|| Error::syntax(json, "row must be JSON object"))?;
    object
        .iter()
        .map(|(name, value)| {
            let column = schema.require_column(name, json)?;
            let column_type = &schema.columns[column].column_type;
            let datum = Datum::from_json(value, column_type, Some(&mut *symbols))?;
            Ok((column, datum))
        })
        .collect()
}

/// The JSON form of a row's columns.
pub(crate) fn row_to_json(row: &Row, schema: &TableSchema, columns: &ColumnSet) -> Json {
    let members = columns.iter().map(|column| {
        let schema = &schema.columns[column];
        let value = row.get(column).to_json_of(&schema.column_type);
        (Arc::clone(&schema.name), value)
    });
    Json::Object(members.collect())
}
