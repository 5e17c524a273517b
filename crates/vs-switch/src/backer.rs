//! One datapath with what the switch keeps for it: the view that its threads read, the
//! flows that it installed, and what its threads leave for the main loop.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::{Instant, Published};
use dp_api::{Datapath, DumpedFlow};
use dp_lang::text::PortNames;
use dp_lang::{Features, PortNo as DpPort};
use net_flow::{FlowKey, PortNo, slot};
use net_packet::Packet;
use of_xlate::{BridgeId, IdSource, RecircTable, SwitchView};

use crate::bridge::PatchEnd;
use crate::changes::ViewChanges;
use crate::counters::Counters;
use crate::events::Events;
use crate::megaflow::Megaflows;
use crate::revalidate::Revalidator;
use crate::sightings::Sightings;
use crate::tunnels::Tunnels;

/// What the threads of a datapath and the main loop share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) view: Published<SwitchView>,
    /// How the log calls the datapath, and the module that its packets are logged under.
    pub(crate) log_name: String,
    pub(crate) log_module: &'static str,
    pub(crate) megaflows: Megaflows,
    pub(crate) events: Events,
    pub(crate) counters: Counters,
    /// Flows that may be installed at most.
    pub(crate) flow_limit: AtomicUsize,
    /// Flows that were in the datapath when it was last dumped, and those put since.
    pub(crate) flows: AtomicUsize,
    /// What packets of a flood would have met.
    pub(crate) sightings: Sightings,
    /// Whether flows may match less than every field (`upcall/disable-megaflows`).
    pub(crate) wildcards: AtomicBool,
}

/// A datapath in use.
pub(crate) struct Backer {
    pub(crate) kind: String,
    pub(crate) datapath: Arc<dyn Datapath>,
    /// What is used of what the datapath can do.
    pub(crate) features: Features,
    pub(crate) shared: Arc<Shared>,
    /// Whose each of its ports is.
    pub(crate) ports: Arc<HashMap<DpPort, (BridgeId, PortNo)>>,
    /// Its tunnel ports.
    pub(crate) tunnels: Tunnels,
    /// Names of the bridges on it.
    pub(crate) bridges: BTreeSet<String>,
    /// Packets and flows are left alone for now.
    pub(crate) is_held: bool,
    /// Its patch ports that were set up, by interface.
    pub(crate) patch_ends: HashMap<String, PatchEnd>,
    pub(crate) revalidator: Revalidator,
    /// VLAN tags that are looked at; 0 is all.
    pub(crate) vlan_limit: u8,
    /// Whether something differs from the published view.
    pub(crate) is_stale: bool,
    /// What is known of how it differs.
    pub(crate) changes: ViewChanges,
}

impl std::fmt::Debug for Backer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backer")
            .field("kind", &self.kind)
            .field("bridges", &self.bridges)
            .finish_non_exhaustive()
    }
}

impl Backer {
    /// Puts `datapath` into use.
    pub(crate) fn new(
        kind: &str,
        datapath: Arc<dyn Datapath>,
        counters: &Counters,
        flow_limit: u32,
        is_held: bool,
    ) -> Self {
        let features = datapath.features();
        let ids = if features.outlives_process {
            IdSource::Hash
        } else {
            IdSource::Counter
        };
        let view = SwitchView {
            features,
            recirc: Arc::new(RecircTable::new(ids)),
            ..SwitchView::default()
        };
        let (log_name, log_module) = if datapath.is_userspace() {
            (datapath.name().to_owned(), "dpif_netdev")
        } else {
            (format!("{}@{}", datapath.kind(), datapath.name()), "dpif")
        };
        let shared = Arc::new(Shared {
            log_name,
            log_module,
            view: Published::new(view),
            megaflows: Megaflows::default(),
            events: Events::default(),
            counters: counters.clone(),
            flow_limit: AtomicUsize::new(flow_limit as usize),
            flows: AtomicUsize::new(0),
            sightings: Sightings::default(),
            wildcards: AtomicBool::new(true),
        });
        if !is_held {
            let handler: Arc<Shared> = Arc::clone(&shared);
            datapath.set_handler(handler);
        }
        Self {
            kind: kind.to_owned(),
            datapath,
            features,
            shared,
            ports: Arc::default(),
            tunnels: Tunnels::default(),
            is_held,
            bridges: BTreeSet::new(),
            patch_ends: HashMap::new(),
            revalidator: Revalidator::default(),
            vlan_limit: 1,
            is_stale: true,
            changes: ViewChanges::default(),
        }
    }

    /// The name under which logs and commands show the datapath: `netdev@ovs-netdev`.
    pub(crate) fn display_name(&self) -> String {
        format!("{}@{}", self.datapath.kind(), self.datapath.name())
    }

    /// Logs what the datapath can do.
    pub(crate) fn log_features(&self) {
        let name = self.display_name();
        for line in feature_lines(&self.datapath.features()) {
            log::info!(target: "ofproto_dpif", "{name}: {line}");
        }
    }

    /// The names of its ports.
    pub(crate) fn port_names(&self) -> PortNames {
        let ports = self.datapath.ports().into_iter();
        ports.map(|port| (port.number, port.name)).collect()
    }

    /// Reduces a key to as many VLAN tags as are looked at; what follows them is then the
    /// Ethernet type.
    pub(crate) fn limit_vlans(&self, key: &mut FlowKey) {
        let tci = key.get(slot::VLAN2_TCI);
        if self.vlan_limit == 1 && tci != 0 {
            key.set(slot::ETH_TYPE, key.get(slot::VLAN2_TPID));
            for word in [slot::VLAN2_TPID, slot::VLAN2_TCI] {
                key.set(word, 0);
            }
        }
    }

    /// Puts the fields of a packet into `key`, whose metadata is there already.
    pub(crate) fn extract(&self, packet: &[u8], key: &mut FlowKey) {
        let limit = match self.vlan_limit {
            0 => net_flow::extract::MAX_VLANS,
            limit => limit,
        };
        net_flow::extract(&mut Packet::from_frame(packet), key, limit);
    }

    /// All flows, the oldest first.
    pub(crate) fn flows(&self) -> Vec<DumpedFlow> {
        let mut flows = Vec::new();
        self.datapath.flow_dump(&mut |flow| {
            flows.push(flow);
            true
        });
        let megaflows = &self.shared.megaflows;
        flows.sort_by_cached_key(|flow| (megaflows.age_rank(flow.ufid), flow.key.clone()));
        flows
    }

    pub(crate) fn flow_limit(&self) -> usize {
        self.shared.flow_limit.load(Ordering::Relaxed)
    }

    /// When it wants the main loop's attention.
    pub(crate) fn next_deadline(&self, now: Instant) -> Instant {
        if self.is_stale {
            return now;
        }
        self.revalidator.next_deadline()
    }
}

/// What a datapath can do, in the words and the order of the log.
fn feature_lines(features: &Features) -> Vec<String> {
    let says = |is_there: bool| match is_there {
        true => "supports",
        false => "does not support",
    };
    let mut lines = vec![
        format!("Datapath {} recirculation", says(features.recirc)),
        format!(
            "VLAN header stack length probed as {}",
            features.max_vlan_headers
        ),
        format!(
            "MPLS label stack length probed as {}",
            features.max_mpls_depth
        ),
    ];
    if !features.masked_set {
        lines.push("datapath does not support masked set action feature.".to_owned());
    }
    let capabilities = [
        (features.trunc, "truncate action"),
        (features.ufid, "unique flow ids"),
        (features.clone, "clone action"),
    ];
    lines
        .extend(capabilities.map(|(is_there, what)| format!("Datapath {} {what}", says(is_there))));
    lines.push(format!(
        "Max sample nesting level probed as {}",
        features.sample_nesting
    ));
    lines.push(format!(
        "Datapath {} eventmask in conntrack action",
        says(features.ct_eventmask)
    ));
    let capabilities = [
        (features.ct_clear, "ct_clear action"),
        (features.check_pkt_len, "check_pkt_len action"),
        (features.ct_timeout, "timeout policy in conntrack action"),
        (features.explicit_drop, "explicit drop action"),
        (features.nd_extensions, "IPv6 ND Extensions"),
        (features.add_mpls, "add_mpls action"),
        (features.psample, "psample action"),
        (features.ct_state, "ct_state"),
        (features.ct_zone, "ct_zone"),
        (features.ct_mark, "ct_mark"),
        (features.ct_label, "ct_label"),
        (features.ct_state_nat, "ct_state_nat"),
        (features.ct_orig_tuple, "ct_orig_tuple"),
        (features.ct_orig_tuple6, "ct_orig_tuple6"),
    ];
    lines
        .extend(capabilities.map(|(is_there, what)| format!("Datapath {} {what}", says(is_there))));
    lines
}
