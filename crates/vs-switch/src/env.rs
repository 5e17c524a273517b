//! What a switch is given from outside: clock, devices, datapaths, sockets.

use std::sync::Arc;

use base::{Clock, Coverage, Dirs};
use dp_api::Datapath;
use io::Net;
use net_dev::{DummyProvider, Providers};

/// Opens datapaths of some types.
pub trait DatapathProvider: Send + Sync {
    /// The types, as `Bridge.datapath_type` names them.
    fn kinds(&self) -> Vec<String>;

    /// Opens the datapath of one of those types, making it if need be.
    ///
    /// # Errors
    /// As the datapath says.
    fn open(&self, kind: &str) -> Result<Arc<dyn Datapath>, dp_api::Error>;

    /// Makes a datapath of one of those types beside that which bridges get.
    ///
    /// # Errors
    /// As the datapath says.
    fn create(&self, kind: &str, name: &str) -> Result<Arc<dyn Datapath>, dp_api::Error>;
}

/// A switch's surroundings.
pub struct Env {
    /// The process's clock.
    pub clock: Clock,
    /// Where events are counted.
    pub coverage: Coverage,
    /// Directories of sockets and files.
    pub dirs: Dirs,
    /// Whether controllers are only reached over, and only listened for on, the Unix sockets in
    /// the run directory that are theirs.
    pub confined: bool,
    /// Sockets for OpenFlow.
    pub net: Net,
    /// Who opens devices, for their events and kinds.
    pub devices: Providers,
    /// The dummy devices, if the switch runs with `--enable-dummy`.
    pub dummies: Option<Arc<DummyProvider>>,
    /// Who opens datapaths; the first that has a type opens it.
    pub datapaths: Vec<Arc<dyn DatapathProvider>>,
    /// The type that bridges of the default type get.
    pub default_datapath: String,
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Env").finish_non_exhaustive()
    }
}

impl Env {
    /// The types of datapaths.
    pub(crate) fn datapath_kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = self.datapaths.iter().flat_map(|p| p.kinds()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    fn provider(&self, kind: &str) -> Result<&dyn DatapathProvider, dp_api::Error> {
        let mut providers = self.datapaths.iter();
        let provider = providers.find(|p| p.kinds().iter().any(|k| k == kind));
        let provider = provider.map(|provider| &**provider);
        provider.ok_or_else(|| {
            dp_api::Error::Unsupported(format!("datapath type {kind} is not supported"))
        })
    }

    /// Opens the datapath of type `kind`.
    pub(crate) fn open_datapath(&self, kind: &str) -> Result<Arc<dyn Datapath>, dp_api::Error> {
        self.provider(kind)?.open(kind)
    }

    /// Makes a datapath of type `kind` called `name`.
    pub(crate) fn create_datapath(
        &self,
        kind: &str,
        name: &str,
    ) -> Result<Arc<dyn Datapath>, dp_api::Error> {
        self.provider(kind)?.create(kind, name)
    }
}
