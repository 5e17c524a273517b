//! Executing the `transact` method's parameters.

use base::Instant;
use db_model::{Error, SymbolTable, Uuid};
use json::Json;

use crate::changes::Changes;
use crate::database::Database;
use crate::operations::{Operation, Step};
use crate::rbac::Identity;
use crate::transaction::Transaction;

/// Under which circumstances a transaction is executed.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The time, for `wait` operations.
    pub now: Instant,
    /// When the transaction was received.
    pub since: Instant,
    /// Whether the client may not change anything.
    pub read_only: bool,
    /// Whether the client owns a lock.
    pub owns_lock: &'a dyn Fn(&str) -> bool,
    /// Who the client is, if its role restricts it.
    pub identity: Option<&'a Identity<'a>>,
    /// Whether changes are another server's to commit: a transaction that has some is only
    /// tried here.
    pub forwards: bool,
}

impl<'a> Context<'a> {
    /// Of who works on the database itself, at time zero: everything is allowed, nothing waits.
    pub fn local(owns_lock: &'a dyn Fn(&str) -> bool) -> Self {
        Self {
            now: Instant::ZERO,
            since: Instant::ZERO,
            read_only: false,
            owns_lock,
            identity: None,
            forwards: false,
        }
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("now", &self.now)
            .field("since", &self.since)
            .field("read_only", &self.read_only)
            .field("identity", &self.identity)
            .field("forwards", &self.forwards)
            .finish_non_exhaustive()
    }
}

/// What a transaction that was committed leaves to be done.
#[derive(Clone, Debug)]
pub struct Committed {
    /// What changed; empty if nothing did.
    pub changes: Changes,
    /// The comment for the log.
    pub comment: String,
    /// Whether the reply must wait until the changes are on the disk.
    pub durable: bool,
    /// The transaction's id, which `monitor_cond_since` knows it by.
    pub id: Uuid,
}

/// How the execution of a transaction ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It is done: the reply's `result`, and what was committed (nothing, after an error).
    Done(Json, Option<Committed>),
    /// A `wait` operation is not satisfied: execute it again when something has changed, or
    /// at the given time at the latest.
    Wait(Instant),
    /// Nothing speaks against it, and it is to be sent to the server that commits changes.
    Forward,
}

impl Database {
    /// Executes the parameters of `transact`: the database's name and operations.
    pub fn execute(&mut self, params: &Json, context: &Context<'_>) -> Outcome {
        let operations = match params.as_array() {
            Some([Json::String(name), operations @ ..]) if *name == self.schema.name => operations,
            _ => {
                let error = Error::syntax(params, "database name expected as first parameter");
                return Outcome::Done(error.to_json(), None);
            }
        };
        let mut symbols = SymbolTable::new(self.uuids.fork());
        let mut durable = false;
        let mut results = Vec::with_capacity(operations.len());
        let mut failed = false;
        let mut writes = false;
        let mut transaction = Transaction::new(self);
        for (number, json) in operations.iter().enumerate() {
            let position = (number + 1, operations.len());
            let step = Operation::parse(json, position, &transaction).and_then(|operation| {
                writes |= operation.is_write();
                operation.run(&mut transaction, &mut symbols, context)
            });
            match step {
                Ok(Step::Result(result)) => results.push(result),
                Ok(Step::Durable) => {
                    durable = true;
                    results.push(Json::object());
                }
                Ok(Step::Wait(until)) => return Outcome::Wait(until),
                Err(error) => {
                    results.push(error.to_json());
                    failed = true;
                    break;
                }
            }
        }
        let comment = std::mem::take(&mut transaction.comment);
        if failed {
            drop(transaction);
            results.resize(operations.len(), Json::Null);
            return Outcome::Done(Json::Array(results), None);
        }
        if context.forwards && writes {
            return Outcome::Forward;
        }
        match transaction.commit() {
            Ok(changes) => {
                let committed = Committed {
                    changes,
                    comment,
                    durable,
                    id: self.uuids.next_uuid(),
                };
                Outcome::Done(Json::Array(results), Some(committed))
            }
            Err(error) => {
                results.push(error.to_json());
                Outcome::Done(Json::Array(results), None)
            }
        }
    }
}
