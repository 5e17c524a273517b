//! Devices and datapaths for the switch.

use std::sync::Arc;

use base::Clock;
use dp_api::Datapath;
use dp_kernel::KernelDatapath;
use dp_user::{Options, UserDatapath};
use net_dev::{DummyLevel, DummyProvider, Provider, Providers};
use net_dev_linux::LinuxProvider;
use vs_bridge::daemon::{Choice, Injected};
use vs_switch::DatapathProvider;

/// Opens userspace datapaths: real ones and dummies.
struct UserDatapaths {
    /// The types that it opens, and whether they are dummies.
    kinds: Vec<(String, bool)>,
    devices: Providers,
    clock: Clock,
}

impl DatapathProvider for UserDatapaths {
    fn kinds(&self) -> Vec<String> {
        self.kinds.iter().map(|(kind, _)| kind.clone()).collect()
    }

    fn open(&self, kind: &str) -> Result<Arc<dyn Datapath>, dp_api::Error> {
        self.create(kind, &format!("ovs-{kind}"))
    }

    fn create(&self, kind: &str, name: &str) -> Result<Arc<dyn Datapath>, dp_api::Error> {
        let known = self.kinds.iter().find(|(k, _)| k == kind);
        let options = Options {
            kind: kind.to_owned(),
            name: name.to_owned(),
            dummy: known.is_some_and(|(_, dummy)| *dummy),
            devices: self.devices.clone(),
            clock: self.clock.clone(),
            threads: None,
        };
        Ok(Arc::new(UserDatapath::open(options)?))
    }
}

/// Opens datapaths of the kernel.
struct KernelDatapaths {
    devices: Providers,
    clock: Clock,
}

impl DatapathProvider for KernelDatapaths {
    fn kinds(&self) -> Vec<String> {
        vec![SYSTEM.to_owned()]
    }

    fn open(&self, kind: &str) -> Result<Arc<dyn Datapath>, dp_api::Error> {
        self.create(kind, &format!("ovs-{kind}"))
    }

    fn create(&self, _kind: &str, name: &str) -> Result<Arc<dyn Datapath>, dp_api::Error> {
        let options = dp_kernel::Options {
            name: name.to_owned(),
            devices: self.devices.clone(),
            clock: self.clock.clone(),
        };
        dp_kernel::find_module().map_err(|error| {
            let why = base::errno_text(&error);
            dp_api::Error::Unsupported(format!("the kernel has no module openvswitch ({why})"))
        })?;
        Ok(Arc::new(KernelDatapath::open(options)?))
    }
}

/// The type of the kernel's datapath.
const SYSTEM: &str = "system";

/// The type of datapath that bridges get that name none: the kernel's, if it has one.
fn default_kind(has_kernel_provider: bool) -> &'static str {
    if !has_kernel_provider {
        return "netdev";
    }
    match dp_kernel::find_module() {
        Ok(()) => SYSTEM,
        Err(error) => {
            log::info!(target: "dpif_netlink",
                "the kernel has no module openvswitch ({}): bridges without a datapath_type \
                 get the userspace datapath", base::errno_text(&error));
            "netdev"
        }
    }
}

/// Opens what `choice` stands for.
///
/// # Errors
/// The system gives no devices.
pub fn inject(choice: Choice, clock: &Clock) -> Result<Injected, String> {
    let dummies = choice
        .dummies
        .map(|level| Arc::new(DummyProvider::new(level)));
    let level = choice.dummies.unwrap_or(DummyLevel::Own);
    let mut providers: Vec<Arc<dyn Provider>> = Vec::new();
    if let Some(dummies) = &dummies {
        // Of two that open a kind the first does: dummies stand in for real devices.
        providers.push(dummies.clone());
    }
    let all_are_dummies = dummies.is_some() && level == DummyLevel::All;
    if !all_are_dummies {
        let linux = LinuxProvider::new();
        let linux = linux.map_err(|e| format!("cannot open network devices: {e}"))?;
        providers.push(Arc::new(linux));
    }
    let devices = Providers::new(providers);
    let mut kinds = vec![("netdev".to_owned(), all_are_dummies)];
    if dummies.is_some() {
        kinds.push(("dummy".to_owned(), true));
        if level != DummyLevel::Own && !choice.disable_system {
            kinds.push(("system".to_owned(), true));
        }
    }
    let system_is_dummy = kinds.iter().any(|(kind, _)| kind == SYSTEM);
    let has_kernel = !all_are_dummies && !system_is_dummy && !choice.disable_system;
    let default = if system_is_dummy {
        SYSTEM
    } else {
        default_kind(has_kernel)
    };
    let user = UserDatapaths {
        kinds,
        devices: devices.clone(),
        clock: clock.clone(),
    };
    let mut datapaths: Vec<Arc<dyn DatapathProvider>> = vec![Arc::new(user)];
    if has_kernel {
        datapaths.push(Arc::new(KernelDatapaths {
            devices: devices.clone(),
            clock: clock.clone(),
        }));
    }
    Ok(Injected {
        devices,
        dummies,
        datapaths,
        default_datapath: default.to_owned(),
    })
}
