//! The switch over dummy devices and the userspace datapath, under a stopped clock.

mod controller;
mod counters;
mod forwarding;
mod harness;
