//! The Linux kernel's datapath, over generic netlink.
//!
//! Ports and flows live in the kernel and stay when the process ends; opening a datapath that is
//! there takes over what it has.  Packets that the kernel has no flow for come to handler threads
//! (`upcall`).  What a kernel can do is asked, never assumed: from 4.18 on.
#![forbid(unsafe_code)]

mod datapath;
mod events;
mod flow;
mod help;
mod kernel;
mod kind;
mod links;
mod manage;
mod ports;
mod probe;
mod removal;
mod shared;
mod tracker;
mod upcall;

pub use datapath::{KernelDatapath, Options};
pub use manage::{create, delete, find_module, list};
