//! The switch over dummy devices and the userspace datapath, under a stopped clock.

mod forwarding;
mod harness;
