//! Tests of the engine as a whole.

mod compaction;
mod crash;
mod following;
mod long_records;
mod monitors;
mod roles;
mod searches;
mod transactions;
mod twin;

use std::sync::Arc;

use base::WallTime;
use db_engine::{Committed, Context, Database, Outcome, transaction_record};
use db_model::{DatabaseSchema, UuidSource};
use json::Json;

/// Parses JSON of a test.
fn parse(text: &str) -> Json {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// An empty database of a schema.
fn database(schema: &str) -> Database {
    let schema = Arc::new(DatabaseSchema::from_text(schema).expect("valid schema"));
    Database::new(schema, UuidSource::new([7; 32]))
}

/// Executes a transaction at time zero.
fn execute(db: &mut Database, params: &str) -> (Json, Option<Committed>) {
    let context = Context::local(&|lock| lock == "mine");
    match db.execute(&parse(params), &context) {
        Outcome::Done(reply, committed) => (reply, committed),
        Outcome::Wait(_) | Outcome::Forward => panic!("waits: {params}"),
    }
}

/// The log record of what was committed.
fn record(db: &Database, committed: &Committed) -> Option<String> {
    let schema = db.schema();
    transaction_record(
        schema,
        &committed.changes,
        WallTime(1),
        &committed.comment,
        true,
    )
}

/// Replaces UUIDs by `<0>`, `<1>`, ... in the order in which they come up in all texts.
#[derive(Default)]
struct UuidFilter(Vec<String>);

impl UuidFilter {
    fn apply(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let head = rest.get(..36).filter(|h| db_model::parse_uuid(h).is_some());
            if let Some(uuid) = head {
                let at = self.0.iter().position(|known| known == uuid);
                let at = at.unwrap_or_else(|| {
                    self.0.push(uuid.to_owned());
                    self.0.len() - 1
                });
                out.push_str(&format!("<{at}>"));
                rest = &rest[36..];
            } else {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        out
    }
}
