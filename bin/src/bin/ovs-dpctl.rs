//! `ovs-dpctl`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    vs_ctl::main(sluice::kernel_host::dpctl)
}
