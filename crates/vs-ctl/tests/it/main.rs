//! The tools against a database server in this process.

mod server;
mod vsctl;
mod vtep_ctl;
