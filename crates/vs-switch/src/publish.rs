//! The views that datapath threads read: assembled from what changed, and published.

use std::collections::BTreeMap;
use std::sync::Arc;

use of_switch::TablesView;
use of_xlate::SwitchView;

use crate::bridge::PatchEnds;
use crate::switch::Switch;

impl Switch {
    /// Publishes what changed, and has the flows that depend on it checked.
    pub(crate) fn publish(&mut self) {
        self.note_learning();
        for backer in self.backers.values_mut().filter(|b| b.is_stale) {
            let mut changes = std::mem::take(&mut backer.changes);
            let patches = PatchEnds {
                ends: &backer.patch_ends,
            };
            let old = backer.shared.view.load();
            let mut bridges = BTreeMap::new();
            for name in &backer.bridges {
                if let Some(bridge) = self.bridges.get_mut(name) {
                    if bridge.is_stale {
                        changes.note_everything();
                    }
                    let tables = std::mem::take(&mut bridge.table_changes);
                    changes.note_tables(bridge.id, &tables);
                    let view = bridge.view(&patches);
                    let before = old.bridges.get(&bridge.id);
                    if before.is_none_or(|old| misses_differ(&old.tables, &view.tables)) {
                        changes.note_everything();
                    }
                    bridges.insert(bridge.id, view);
                }
            }
            if bridges.len() != old.bridges.len() {
                changes.note_everything();
            }
            let view = SwitchView {
                version: old.version + 1,
                bridges,
                datapath_ports: Arc::clone(&backer.ports),
                tunnels: Arc::clone(&backer.tunnels.table),
                features: backer.features,
                recirc: Arc::clone(&old.recirc),
            };
            backer.shared.view.publish(Arc::new(view));
            backer.is_stale = false;
            backer.revalidator.request(changes);
        }
        if std::mem::take(&mut self.reconfigured) {
            self.counters.rev_reconfigure.inc();
        }
    }

    /// Has flows checked when stations were learned or forgotten.
    fn note_learning(&mut self) {
        for bridge in self.bridges.values_mut() {
            let generation = bridge.macs.generation();
            if generation != bridge.macs_seen {
                bridge.macs_seen = generation;
                self.counters.rev_mac_learning.inc();
                if let Some(backer) = self.backers.get_mut(&bridge.kind) {
                    backer.changes.note_macs(bridge.id);
                    backer.is_stale = true;
                }
            }
        }
    }
}

/// Whether some table treats packets that match nothing differently.
fn misses_differ(old: &Arc<TablesView>, new: &Arc<TablesView>) -> bool {
    !Arc::ptr_eq(old, new) && (0..u8::MAX).any(|table| old.miss(table) != new.miss(table))
}
