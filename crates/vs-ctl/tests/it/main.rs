//! The tools against a database server in this process.

mod cluster_files;
mod ovsdb_client;
mod roles;
mod server;
mod vsctl;
mod vtep_ctl;
