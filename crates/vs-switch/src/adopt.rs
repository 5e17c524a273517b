//! Flows and ports that a datapath has from before the switch started.
//!
//! Packets go on as they did until the switch knows what is wanted: nothing that was found is
//! removed, and no packet is decided on, before the configuration was carried out once, and not
//! while `other_config:flow-restore-wait` says that controllers' rules are still to come.

use std::sync::Arc;

use base::{Clock, Instant};
use dp_api::DumpedFlow;
use dp_lang::Ufid;
use net_flow::{MiniKey, slot};
use of_xlate::{Dependencies, SwitchView};

use crate::backer::Backer;
use crate::megaflow::Megaflow;
use crate::revalidate::Check;
use crate::switch::Switch;

impl Switch {
    /// The configuration was carried out once: ports that nobody wants go, and flows are looked
    /// at.
    pub fn configured(&mut self) {
        if std::mem::replace(&mut self.is_configured, true) {
            return;
        }
        for backer in self.backers.values() {
            for name in backer.datapath.remove_leftovers() {
                log::info!(target: "ofproto_dpif",
                    "{}: removed port {name}, which no bridge has", backer.display_name());
            }
        }
    }

    /// Whether a datapath is left alone for now.
    pub(crate) const fn must_hold(&self, outlives_process: bool) -> bool {
        self.settings.flow_restore_wait || (outlives_process && !self.is_configured)
    }

    /// Takes datapaths into use that were left alone.  What is wanted of them is published.
    pub(crate) fn release_datapaths(&mut self, now: Instant) {
        let clock = self.env.clock.clone();
        let (restoring, configured) = (self.settings.flow_restore_wait, self.is_configured);
        for backer in self.backers.values_mut().filter(|b| b.is_held) {
            let is_early = backer.features.outlives_process && !configured;
            if !restoring && !is_early {
                backer.release(now, &clock);
            }
        }
    }
}

impl Backer {
    /// Takes the datapath into use: packets without a flow come, and flows that were found stay if
    /// they are what is wanted.
    fn release(&mut self, now: Instant, clock: &Clock) {
        self.is_held = false;
        self.datapath.set_handler(self.shared.clone());
        self.adopt_all(now);
        self.revalidate(now, clock);
    }

    /// Takes over the flow `ufid`; false if it is gone.
    pub(crate) fn adopt(&self, ufid: Ufid, now: Instant) -> bool {
        let Ok(flow) = self.datapath.flow_get(ufid) else {
            return false;
        };
        let megaflow = adopted(&flow, self.datapath.is_userspace(), now);
        self.shared.megaflows.add(ufid, megaflow);
        true
    }

    /// Takes over all flows that are not known.  Those of packets that come back to the datapath
    /// mean something only once the flows that send them there were looked at.
    fn adopt_all(&self, now: Instant) {
        let mut unknown = Vec::new();
        self.datapath.flow_counts(&mut |ufid, _| {
            if !self.shared.megaflows.shard(ufid).contains_key(&ufid) {
                unknown.push(ufid);
            }
        });
        unknown.retain(|ufid| self.adopt(*ufid, now));
        if unknown.is_empty() {
            return;
        }
        log::info!(target: "ofproto_dpif",
            "{}: found {} flows", self.display_name(), unknown.len());
        let view = self.shared.view.load();
        loop {
            let (ready, later): (Vec<Ufid>, Vec<Ufid>) = unknown
                .iter()
                .partition(|ufid| self.is_meaningful(**ufid, &view));
            for ufid in &ready {
                let check = self.retranslate(*ufid, &view, now);
                self.carry_out(*ufid, &check, now);
            }
            if ready.is_empty() {
                for ufid in &later {
                    self.carry_out(*ufid, &Check::Delete, now);
                }
                return;
            }
            unknown = later;
        }
    }

    /// Whether it is known what packets of this flow have been through.
    fn is_meaningful(&self, ufid: Ufid, view: &SwitchView) -> bool {
        let shard = self.shared.megaflows.shard(ufid);
        let Some(megaflow) = shard.get(&ufid) else {
            return true;
        };
        let id = megaflow.key.expand().get(slot::RECIRC_ID) as u32;
        id == 0 || view.recirc.get(id).is_some()
    }
}

/// A flow that the switch did not install, or not in this life.
fn adopted(flow: &DumpedFlow, is_userspace: bool, now: Instant) -> Megaflow {
    let mut mask = flow.mask.expand_mask();
    if !is_userspace {
        // A kernel matches these whatever its masks say.
        for slot in [
            slot::PACKET_TYPE,
            slot::VLAN_TCI,
            slot::VLAN2_TCI,
            slot::ETH_TYPE,
        ] {
            mask.set_exact(slot);
        }
    }
    Megaflow {
        key: Arc::new(flow.key.clone()),
        mask: Arc::new(MiniKey::new(mask.as_key())),
        actions: Arc::clone(&flow.actions),
        version: 0,
        dependencies: Dependencies::default(),
        effects: Vec::new(),
        frozen: Vec::new(),
        created: now,
        sequence: 0,
        // What it counted before is nobody's.
        credited: (flow.stats.packets, flow.stats.bytes),
        seen: 0,
    }
}
