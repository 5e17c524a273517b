//! What the tools that edit a database share (`ovs-vsctl`, later `vtep-ctl`): the
//! grammar of commands.

pub mod command;
