//! What controllers are told of tables, and set on them.

use net_flow::Field;
use net_flow::field::{Access, Maskable};
use of_wire::message::{Part, TableCaps, TableFeatures, TableMod, TableStats, Vacancy};
use of_wire::{Body, ErrorCode, Version};

use crate::bridge::Bridge;
use crate::bridge::dispatch::Asked;
use crate::tables::{INTERNAL_TABLE, MAX_ENTRIES, TableMiss};

/// Go to table, write metadata, write, apply and clear actions, meter: bit `n` for the
/// instruction that OpenFlow 1.3 numbers `n`.
const INSTRUCTIONS: u32 = 0x7e;
/// The meter among the instructions.
const METER: u32 = 1 << 6;
/// The actions of OpenFlow 1.3 by their numbers there, but those that copy the time to live
/// and those for provider backbones.
const ACTIONS: u32 = 1 << 0
    | 1 << 15
    | 1 << 16
    | 1 << 17
    | 1 << 18
    | 1 << 19
    | 1 << 20
    | 1 << 21
    | 1 << 22
    | 1 << 23
    | 1 << 24
    | 1 << 25;
/// Table configuration before OpenFlow 1.3: continue with the next table.
const MISS_CONTINUE: u32 = 1;
/// Table configuration before OpenFlow 1.3: drop.
const MISS_DROP: u32 = 2;
/// Table features in one message, at some 6 kB each.
const FEATURES_PER_MESSAGE: usize = 7;
/// What decides on eviction: importance and lifetime, and the groups.
const EVICTION_FLAGS: u32 = 7;

impl Bridge {
    pub(super) fn handle_table_stats(&mut self, asked: &Asked<'_>) -> Result<(), ErrorCode> {
        let tables: Vec<(TableFeatures, TableStats)> = (0..INTERNAL_TABLE)
            .filter_map(|id| {
                Some((
                    self.table_features(id, asked.version)?,
                    self.table_stats(id)?,
                ))
            })
            .collect();
        self.reply_parts(
            asked,
            tables,
            usize::from(INTERNAL_TABLE),
            Body::TableStatsReply,
        );
        Ok(())
    }

    pub(super) fn handle_table_features(
        &mut self,
        asked: &Asked<'_>,
        request: &Part<TableFeatures>,
    ) -> Result<(), ErrorCode> {
        for entry in &request.entries {
            self.check_table_change(entry, asked.version)?;
        }
        for entry in &request.entries {
            self.table_names.insert(entry.table, entry.name.clone());
        }
        if request.more {
            return Ok(());
        }
        let features = (0..INTERNAL_TABLE).filter_map(|id| self.table_features(id, asked.version));
        let features: Vec<TableFeatures> = features.collect();
        self.reply_parts(
            asked,
            features,
            FEATURES_PER_MESSAGE,
            Body::TableFeaturesReply,
        );
        Ok(())
    }

    pub(super) fn handle_table_desc(&mut self, asked: &Asked<'_>) -> Result<(), ErrorCode> {
        let describe = |id: u8| {
            let settings = self.tables.settings(id);
            TableMod {
                eviction: Some(settings.is_some_and(|s| s.evict)),
                eviction_flags: Some(EVICTION_FLAGS),
                vacancy: Some(Vacancy::Off),
                ..TableMod::of(id)
            }
        };
        let tables: Vec<TableMod> = (0..INTERNAL_TABLE).map(describe).collect();
        self.reply_parts(
            asked,
            tables,
            usize::from(INTERNAL_TABLE),
            Body::TableDescReply,
        );
        Ok(())
    }

    pub(super) fn handle_table_mod(
        &mut self,
        asked: &Asked<'_>,
        request: &TableMod,
    ) -> Result<(), ErrorCode> {
        let tables = match request.table {
            u8::MAX => 0..INTERNAL_TABLE,
            INTERNAL_TABLE => return Err(ErrorCode::OfptmfcEperm),
            id => id..id + 1,
        };
        // What decides on eviction is the switch's own affair.
        let flags = request.eviction_flags.unwrap_or(EVICTION_FLAGS);
        if matches!(request.vacancy, Some(Vacancy::On { .. })) || flags != EVICTION_FLAGS {
            return Err(ErrorCode::OfptmfcBadConfig);
        }
        let miss = match request.miss {
            None => None,
            Some(0) => Some(TableMiss::Controller),
            Some(1) => Some(TableMiss::Continue),
            Some(2) => Some(TableMiss::Drop),
            Some(_) => return Err(ErrorCode::OfptmfcBadConfig),
        };
        for id in tables {
            if let Some(miss) = miss {
                self.tables.set_miss(id, miss);
            }
            let settings = self.tables.settings(id).cloned();
            if let (Some(evict), Some(mut settings)) = (request.eviction, settings) {
                settings.evict = evict;
                let changes = self.tables.configure(id, settings);
                self.note_changes(changes, asked.now);
            }
        }
        Ok(())
    }

    /// A controller may give a table a name, unless the database has; nothing else changes.
    fn check_table_change(
        &self,
        wanted: &TableFeatures,
        version: Version,
    ) -> Result<(), ErrorCode> {
        if wanted.table >= INTERNAL_TABLE {
            return Err(ErrorCode::OfptffcBadTable);
        }
        let current = self.table_features(wanted.table, version);
        let current = current.ok_or(ErrorCode::OfptffcBadTable)?;
        let settings = self.tables.settings(wanted.table);
        let is_named = settings.is_some_and(|s| !s.name.is_empty());
        if is_named && wanted.name != current.name {
            return Err(ErrorCode::OfptffcEperm);
        }
        if wanted.max_entries != current.max_entries {
            return Err(ErrorCode::OfptffcEperm);
        }
        Ok(())
    }

    /// The name that the database gives a table, else that of a controller.
    fn table_name(&self, id: u8) -> String {
        let settings = self.tables.settings(id);
        let named = settings.map(|s| &s.name).filter(|name| !name.is_empty());
        let name = named.or_else(|| self.table_names.get(&id));
        name.cloned().unwrap_or_default()
    }

    fn table_stats(&self, id: u8) -> Option<TableStats> {
        let table = self.tables.table(id)?;
        Some(TableStats {
            table: id,
            active_count: u32::try_from(self.tables.visible_len(id)).unwrap_or(u32::MAX),
            lookup_count: table.counters().lookups(),
            matched_count: table.counters().matched(),
        })
    }

    fn table_features(&self, id: u8, version: Version) -> Option<TableFeatures> {
        let settings = self.tables.settings(id)?;
        let config = match self.tables.table(id)?.miss() {
            TableMiss::Default | TableMiss::Controller => 0,
            TableMiss::Continue => MISS_CONTINUE,
            TableMiss::Drop => MISS_DROP,
        };
        let mut caps = capabilities(id);
        if version >= Version::V15 {
            // There a meter is an action.
            caps.instructions &= !METER;
        }
        let fields = || Field::all().iter().copied();
        Some(TableFeatures {
            table: id,
            name: self.table_name(id),
            metadata_match: u64::MAX,
            metadata_write: u64::MAX,
            max_entries: settings.flow_limit.unwrap_or(MAX_ENTRIES),
            config,
            miss: caps.clone(),
            nonmiss: caps,
            match_fields: fields().collect(),
            mask_fields: fields()
                .filter(|f| f.info().maskable == Maskable::Bitwise)
                .collect(),
            wildcard_fields: fields().collect(),
        })
    }
}

/// What rules of table `id` may do.
fn capabilities(id: u8) -> TableCaps {
    let mut next_tables = [0u64; 4];
    for next in id + 1..INTERNAL_TABLE {
        next_tables[usize::from(next / 64)] |= 1 << (next % 64);
    }
    let has_next = id + 1 < INTERNAL_TABLE;
    let writable = Field::all().iter().copied();
    let writable: Vec<Field> = writable
        .filter(|f| f.info().access == Access::ReadWrite)
        .collect();
    TableCaps {
        next_tables,
        // The last table has none to go to.
        instructions: if has_next {
            INSTRUCTIONS
        } else {
            INSTRUCTIONS & !2
        },
        write_actions: ACTIONS,
        write_set_fields: writable.clone(),
        apply_actions: ACTIONS,
        apply_set_fields: writable,
    }
}
