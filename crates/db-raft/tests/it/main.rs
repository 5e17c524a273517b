//! Tests of clusters: their files and messages as Open vSwitch's servers write them, and whole
//! clusters in virtual time.

mod golden;
mod hostile;
mod scenarios;
mod sim;
