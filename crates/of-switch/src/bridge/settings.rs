//! Changes of the bridge's settings by its owner.

use base::Instant;

use crate::bridge::{Bridge, BridgeConfig};
use crate::tables::TableSettings;

impl Bridge {
    /// The settings.
    pub const fn config(&self) -> &BridgeConfig {
        &self.config
    }

    /// Takes over new settings.  Connections keep the version that they negotiated: the owner
    /// closes those of [`Bridge::outdated_conns`].  When the first controller is configured or the
    /// last one goes, all rules of controllers go.
    pub fn configure(&mut self, config: BridgeConfig, now: Instant) {
        let old = std::mem::replace(&mut self.config, config);
        let ids = old.tables.keys().chain(self.config.tables.keys());
        let mut ids: Vec<u8> = ids.copied().collect();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            let settings = self.config.tables.get(&id);
            if settings != old.tables.get(&id) {
                let settings = settings.cloned().unwrap_or_else(TableSettings::default);
                if !settings.name.is_empty() {
                    self.table_names.remove(&id);
                }
                let changes = self.tables.configure(id, settings);
                self.note_changes(changes, now);
            }
        }
        let gained_or_lost = old.has_controllers != self.config.has_controllers;
        let other_mode = old.fail_mode != self.config.fail_mode && !self.config.has_controllers;
        if gained_or_lost || other_mode {
            self.flush(now);
        }
        self.publish();
    }

    /// Connections whose version is not among those that are allowed now.
    pub fn outdated_conns(&self) -> Vec<crate::conn::ConnId> {
        let conns = self.conns.iter().filter(|(_, conn)| {
            let allowed = |v| self.config.versions.contains(v);
            conn.version().is_some_and(|v| !allowed(v))
        });
        conns.map(|(id, _)| *id).collect()
    }
}
