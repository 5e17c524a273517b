//! OpenFlow connections and the switch model behind them: tables of rules, timeouts, roles,
//! asynchronous messages.
//!
//! Nothing here opens a socket or reads a clock: bytes and instants come in, messages and
//! effects go out.
#![forbid(unsafe_code)]

pub mod async_config;
pub mod bridge;
mod bundle;
mod conn;
mod dump;
pub mod endpoints;
pub mod group;
pub mod in_band;
pub mod packet_in_queue;
pub mod rule;
pub mod tables;
pub mod timers;
mod wire;

pub use bridge::{Bridge, BridgeConfig, Facts, FailMode, FragMode, Output, PacketInEvent, Request};
pub use conn::{ConnConfig, ConnId, ConnKind};
pub use endpoints::{ControllerSettings, ControllerStatus, EndpointSettings, Endpoints};
pub use group::{GroupEntry, HashTable, Selector};
pub use in_band::InBand;
pub use rule::{Rule, RuleCounts, RuleId, RuleSpec};
pub use tables::{Change, GroupsView, TableMiss, TableView, Tables, TablesView};
