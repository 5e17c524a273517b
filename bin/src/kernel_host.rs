//! `ovs-dpctl` with the kernel's datapaths, which it opens itself.

use std::sync::Arc;

use base::{Clock, Instant};
use dp_api::{Datapath, Error};
use dp_ctl::Host;
use dp_kernel::KernelDatapath;
use net_dev::Providers;
use net_dev_linux::LinuxProvider;
use vs_ctl::{Env, Exit};

/// The type of the kernel's datapaths.
const SYSTEM: &str = "system";

/// Has the datapaths of the kernel.
struct Kernel {
    devices: Providers,
    clock: Clock,
}

fn check(kind: &str) -> Result<(), Error> {
    if kind == SYSTEM {
        return Ok(());
    }
    let text = format!("datapath type {kind} is not one of the kernel");
    Err(Error::Unsupported(text))
}

impl Host for Kernel {
    fn kinds(&self) -> Vec<String> {
        vec![SYSTEM.to_owned()]
    }

    fn names(&self, kind: &str) -> Result<Vec<String>, Error> {
        check(kind)?;
        dp_kernel::list()
    }

    fn open(&self, kind: &str, name: &str) -> Result<Arc<dyn Datapath>, Error> {
        check(kind)?;
        let options = dp_kernel::Options {
            name: name.to_owned(),
            devices: self.devices.clone(),
            clock: self.clock.clone(),
        };
        Ok(Arc::new(KernelDatapath::attach(options)?))
    }

    fn create(&mut self, kind: &str, name: &str) -> Result<(), Error> {
        check(kind)?;
        dp_kernel::create(name)
    }

    fn delete(&mut self, kind: &str, name: &str) -> Result<(), Error> {
        check(kind)?;
        dp_kernel::delete(name)
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }
}

/// `ovs-dpctl`.
pub fn dpctl(env: &mut Env<'_>, args: &[String]) -> Exit {
    // Whoever may not ask the kernel may be allowed to ask the switch.
    let (Ok(_), Ok(linux)) = (dp_kernel::list(), LinuxProvider::new()) else {
        return vs_ctl::dpctl::run(env, args);
    };
    let mut kernel = Kernel {
        devices: Providers::new(vec![Arc::new(linux)]),
        clock: Clock::new(),
    };
    vs_ctl::dpctl::run_on(env, args, Some(&mut kernel))
}
