//! The OVSDB data model (RFC 7047 section 3 and 5.1): atoms, datums, types, schemas, rows,
//! conditions and mutations, with their JSON forms and the text forms of the command line.
//!
//! Values are immutable and shared: cloning an [`Atom`], a [`Datum`] or an `Arc<Row>` copies
//! no data.
#![forbid(unsafe_code)]

mod atom;
mod base_type;
mod column_type;
mod condition;
mod datum;
mod datum_ops;
mod error;
mod members;
mod mutation;
mod row;
mod schema;
mod short_text;
mod symbols;
pub mod text;
mod vswitch;
mod vtep;

pub use atom::{Atom, AtomType, parse_uuid};
pub use base_type::{BaseType, Constraint, RefTable};
pub use column_type::{ColumnType, UNLIMITED};
pub use condition::{Clause, Condition, Function};
pub use datum::{Datum, SizeCheck};
pub use error::{Error, Result};
pub use members::{Kinds, Members, is_id};
pub use mutation::{Mutation, Mutator};
pub use row::Row;
pub use schema::{
    ColumnSchema, ColumnSet, DatabaseSchema, TableSchema, UUID_COLUMN, VERSION_COLUMN,
};
pub use short_text::Text;
pub use symbols::{SymbolTable, UuidSource};
pub use uuid::Uuid;
pub use vswitch::OPEN_VSWITCH_SCHEMA;
pub use vtep::HARDWARE_VTEP_SCHEMA;
