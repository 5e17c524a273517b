//! Messages about tables.

use net_flow::Field;

/// Counters of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TableStats {
    /// The table.
    pub table: u8,
    /// Flows in it.
    pub active_count: u32,
    /// Packets looked up in it.
    pub lookup_count: u64,
    /// Packets that met a flow.
    pub matched_count: u64,
}

/// What flows of a table may do: those for packets that match something, and the
/// table-miss flow.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TableCaps {
    /// Tables that they may go to: bit `n` of word `n / 64`.
    pub next_tables: [u64; 4],
    /// Instructions, a bit for each as OpenFlow 1.3 numbers them.
    pub instructions: u32,
    /// Actions in the action set, a bit for each as OpenFlow 1.3 numbers them.
    pub write_actions: u32,
    /// Fields that the action set may write.
    pub write_set_fields: Vec<Field>,
    /// Actions to apply, a bit for each as OpenFlow 1.3 numbers them.
    pub apply_actions: u32,
    /// Fields that applied actions may write.
    pub apply_set_fields: Vec<Field>,
}

/// What a table can do.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TableFeatures {
    /// The table.
    pub table: u8,
    /// Its name.
    pub name: String,
    /// The bits of metadata that it can match.
    pub metadata_match: u64,
    /// The bits of metadata that it can write.
    pub metadata_write: u64,
    /// How many flows it takes.
    pub max_entries: u32,
    /// Table configuration of OpenFlow 1.1 and 1.2 (`OFPTC11_*`), or flags later.
    pub config: u32,
    /// What its flows may do.
    pub nonmiss: TableCaps,
    /// What its table-miss flow may do.
    pub miss: TableCaps,
    /// The fields that it can match exactly.
    pub match_fields: Vec<Field>,
    /// Of those, the ones that it can match under any mask.
    pub mask_fields: Vec<Field>,
    /// Of those, the ones that a flow may leave out.
    pub wildcard_fields: Vec<Field>,
}

/// A request to change a table, and what is said of it in OpenFlow 1.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMod {
    /// The table; 255 for all.
    pub table: u8,
    /// What happens to packets that match nothing: `None` is unsaid, 0 the controller, 1 continue,
    /// 2 drop (OpenFlow 1.1 and 1.2).
    pub miss: Option<u8>,
    /// Flows may be evicted (OpenFlow 1.4).
    pub eviction: Option<bool>,
    /// `OFPTMPEF14_*` flags of eviction.
    pub eviction_flags: Option<u32>,
    /// Vacancy events (OpenFlow 1.4).
    pub vacancy: Option<Vacancy>,
}

impl TableMod {
    /// Nothing said of a table.
    pub const fn of(table: u8) -> Self {
        Self {
            table,
            miss: None,
            eviction: None,
            eviction_flags: None,
            vacancy: None,
        }
    }
}

/// Whether controllers are told when a table becomes full or has room again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vacancy {
    /// They are not.
    Off,
    /// They are, at these shares of free room, in percent.
    On {
        /// Room has become less than this.
        down: u8,
        /// Room has become more than this.
        up: u8,
        /// The room at the moment; 0 in a request.
        now: u8,
    },
}
