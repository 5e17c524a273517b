//! A replica of a remote database, typed from its schema, and a transaction builder.
#![forbid(unsafe_code)]
