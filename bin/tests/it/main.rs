//! The programs as an operator and as other programs meet them: real daemons, real hosts,
//! in network namespaces of their own.

mod both_makes;
mod cluster_servers;
mod clusters;
mod config_file;
mod database_clients;
mod datapaths;
mod detach;
mod foreign;
mod hardships;
mod hosts;
mod killed_server;
mod megaflows;
mod monitored_server;
mod ovn;
mod scale;
mod upstreams;

use std::path::Path;

use testkit::{Need, Stack};

/// Sluice's programs, as cargo built them for these tests.
fn ours() -> Stack {
    let program = Path::new(env!("CARGO_BIN_EXE_ovs-vswitchd"));
    Stack::ours(program.parent().unwrap_or(program))
}

/// What every test with real hosts needs.
const HOSTS: &[Need] = &[Need::Root, Need::Netns, Need::Tun];
