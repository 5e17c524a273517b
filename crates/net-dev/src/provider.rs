//! Who opens devices.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::Device;

/// Opens devices of some kinds.
pub trait Provider: Send + Sync {
    /// The kinds that it opens.
    fn kinds(&self) -> Vec<String>;

    /// Opens a device, making it if its kind is made.
    ///
    /// # Errors
    /// As the system gives them: `NotFound` or errno 19 if there is no such device, `Unsupported` if the kind is
    /// not one of [`Provider::kinds`].
    fn open(&self, name: &str, kind: &str) -> io::Result<Arc<dyn Device>>;

    /// What becomes readable when devices come, go or change.
    fn events_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Brings the state of open devices up to date; the names of devices, open or not, that came, went or changed
    /// since the last call.
    fn take_events(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Several providers; of those that have a kind the first opens it.
#[derive(Clone)]
pub struct Providers(Vec<Arc<dyn Provider>>);

impl Providers {
    /// These, in this order.
    pub fn new(providers: Vec<Arc<dyn Provider>>) -> Self {
        Self(providers)
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Provider>> {
        self.0.iter()
    }

    /// All kinds.
    pub fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = self.0.iter().flat_map(|p| p.kinds()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// Opens a device.
    ///
    /// # Errors
    /// As [`Provider::open`].
    pub fn open(&self, name: &str, kind: &str) -> io::Result<Arc<dyn Device>> {
        let has = |p: &&Arc<dyn Provider>| p.kinds().iter().any(|k| k == kind);
        match self.0.iter().find(has) {
            Some(provider) => provider.open(name, kind),
            None => Err(unknown_kind(kind)),
        }
    }
}

pub(crate) fn unknown_kind(kind: &str) -> io::Error {
    let text = format!("unknown device type \"{kind}\"");
    io::Error::new(io::ErrorKind::Unsupported, text)
}
