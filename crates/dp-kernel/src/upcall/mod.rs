//! Packets that the kernel hands to the switch: threads that empty sockets into queues, one per
//! port, serve the queues in turn, and send packets and flows back in trains.

mod balance;
pub(crate) mod dispatch;
mod handler;
mod item;
pub(crate) mod mode;
mod queue;
mod serve;

pub(crate) use balance::Served;
