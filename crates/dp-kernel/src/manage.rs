//! The kernel's datapaths as a list: which there are, new ones, and the end of old ones.

use std::io;

use dp_api::Error;
use net_netlink::ovs::datapath::{self, feature};

use crate::kernel::{Kernel, error};

/// Whether the kernel has the module that datapaths need.
///
/// # Errors
/// As the kernel gives them: "No such file or directory" if it is not loaded.
pub fn find_module() -> io::Result<()> {
    Kernel::open().map(drop)
}

/// Names of the kernel's datapaths.
///
/// # Errors
/// As the kernel gives them.
pub fn list() -> Result<Vec<String>, Error> {
    let list = || {
        let kernel = Kernel::open()?;
        let mut request = datapath::dump(kernel.families.datapath);
        kernel.list(&mut request, |message| {
            datapath::Datapath::parse(message).map(|(found, _)| found.name)
        })
    };
    list().map_err(|e: io::Error| error(&e))
}

/// Asks for a datapath by name.
pub(crate) fn get(kernel: &Kernel, name: &str) -> io::Result<datapath::Datapath> {
    let mut request = datapath::get(kernel.families.datapath, name);
    kernel.ask(&mut request, |m| {
        datapath::Datapath::parse(m).map(|(found, _)| found)
    })
}

/// Makes a datapath.
pub(crate) fn make(kernel: &Kernel, name: &str) -> io::Result<()> {
    let base = feature::UNALIGNED | feature::VPORT_PIDS;
    kernel.execute(&mut datapath::create(
        kernel.families.datapath,
        name,
        0,
        base,
    ))
}

/// Whether the kernel chooses sockets by CPU if it is asked to.
pub(crate) fn has_per_cpu(kernel: &Kernel, dp: u32, current: u32) -> bool {
    let family = kernel.families.datapath;
    let set = |features| kernel.execute(&mut datapath::set(family, dp, features, None));
    // A kernel that takes what does not exist cannot be believed.
    let checks = set(current | feature::UNKNOWN).is_err();
    let base = feature::UNALIGNED | feature::VPORT_PIDS;
    let has = checks && set(base | feature::PER_CPU).is_ok() && {
        let mut request = datapath::get_by_index(family, dp);
        let found = kernel.ask(&mut request, datapath::Datapath::parse);
        found.is_ok_and(|(found, _)| found.features & feature::PER_CPU != 0)
    };
    // As it was, until handlers start.
    let _ = set(current);
    has
}

/// Makes a datapath, which stays when this process ends.
///
/// # Errors
/// There is one, or the kernel refuses.
pub fn create(name: &str) -> Result<(), Error> {
    let create = || make(&Kernel::open()?, name);
    create().map_err(|e: io::Error| error(&e))
}

/// Removes a datapath with its ports and flows.
///
/// # Errors
/// There is no such datapath, or the kernel refuses.
pub fn delete(name: &str) -> Result<(), Error> {
    let remove = || {
        let kernel = Kernel::open()?;
        let found = get(&kernel, name)?;
        kernel.execute(&mut datapath::delete(kernel.families.datapath, found.index))
    };
    remove().map_err(|e: io::Error| error(&e))
}
