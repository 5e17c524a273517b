//! Messages about groups, meters and bundles.

use net_flow::{Field, PortNo};

use crate::action::Action;

/// All groups, in a request.
pub const GROUP_ALL: u32 = 0xffff_fffc;
/// No group in particular.
pub const GROUP_ANY: u32 = u32::MAX;
/// The highest id of a group.
pub const GROUP_MAX: u32 = 0xffff_ff00;

/// The first bucket of a group, as the place of a command.
pub const BUCKET_FIRST: u32 = 0xffff_fffd;
/// The last bucket.
pub const BUCKET_LAST: u32 = 0xffff_fffe;
/// All buckets, or none in particular.
pub const BUCKET_ALL: u32 = u32::MAX;
/// The highest id of a bucket.
pub const BUCKET_MAX: u32 = 0xffff_ff00;

/// How a group uses its buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum GroupType {
    /// All of them.
    All = 0,
    /// One, chosen by hash.
    Select = 1,
    /// The only one.
    Indirect = 2,
    /// The first that is live.
    FastFailover = 3,
}

impl GroupType {
    /// All types, in the order of their numbers.
    pub const EVERY: [Self; 4] = [Self::All, Self::Select, Self::Indirect, Self::FastFailover];

    /// Its name in flows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Select => "select",
            Self::Indirect => "indirect",
            Self::FastFailover => "ff",
        }
    }
}

/// One alternative of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// Its id, [`BUCKET_ALL`] if it has none yet.
    pub id: u32,
    /// Its share of traffic.
    pub weight: u16,
    /// Live while this port is; [`PortNo::NONE`] for none.
    pub watch_port: PortNo,
    /// Live while this group is; [`GROUP_ANY`] for none.
    pub watch_group: u32,
    /// What it does.
    pub actions: Vec<Action>,
}

impl Bucket {
    /// Whether it is live only while something else is.
    pub fn watches(&self) -> bool {
        self.watch_port != PortNo::NONE || self.watch_group != GROUP_ANY
    }
}

/// How a `select` group chooses (Netronome's property).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// `hash`, `dp_hash`, or empty for the switch's choice.
    pub method: String,
    /// A parameter of the method.
    pub param: u64,
    /// The fields that are hashed, each with the bits of it; none is a choice of the switch's.
    pub fields: Vec<(Field, u128)>,
}

/// A group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its number.
    pub id: u32,
    /// How it uses its buckets.
    pub kind: GroupType,
    /// How it chooses.
    pub selection: Selection,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
}

/// What is to be done with groups (`OFPGC_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum GroupCommand {
    /// Add one.
    Add = 0,
    /// Change one.
    Modify = 1,
    /// Delete one or all.
    Delete = 2,
    /// Insert buckets (OpenFlow 1.5).
    InsertBucket = 3,
    /// Remove buckets (OpenFlow 1.5).
    RemoveBucket = 5,
    /// Change one, or add it (Open vSwitch's).
    AddOrModify = 0x8000,
}

/// A request to change groups.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupMod {
    /// What to do.
    pub command: GroupCommand,
    /// The bucket before or behind which buckets go, or which is removed; [`BUCKET_ALL`] where
    /// that says nothing.
    pub command_bucket: u32,
    /// The group as it is to be; for commands about buckets, those only.
    pub group: Group,
}

/// What a group has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStats {
    /// The group.
    pub id: u32,
    /// Flows and groups that refer to it.
    pub ref_count: u32,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Its age in seconds and nanoseconds, where that is told (OpenFlow 1.3).
    pub duration: Option<(u32, u32)>,
    /// Packets and bytes of each bucket.
    pub buckets: Vec<(u64, u64)>,
}

/// What a switch's groups can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupFeatures {
    /// The types, a bit for each.
    pub types: u32,
    /// `OFPGFC_*`.
    pub capabilities: u32,
    /// Groups of each type at most.
    pub max_groups: [u32; 4],
    /// The actions in buckets of each type, as OpenFlow numbers them.
    pub actions: [u32; 4],
}

/// A band of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterBand {
    /// 1 drop, 2 DSCP remark.
    pub kind: u16,
    /// Rate from which it applies.
    pub rate: u32,
    /// Size of bursts.
    pub burst_size: u32,
    /// Precedence level to remark by.
    pub prec_level: u8,
}

/// A request to change meters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterMod {
    /// `OFPMC_*`: 0 add, 1 modify, 2 delete.
    pub command: u16,
    /// `OFPMF_*`.
    pub flags: u16,
    /// The meter.
    pub id: u32,
    /// Its bands.
    pub bands: Vec<MeterBand>,
}

/// A step in the life of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleControl {
    /// The bundle.
    pub id: u32,
    /// `OFPBCT_*`: 0 open request, 1 reply, 2 close request, 3 reply, 4 commit request, 5 reply,
    /// 6 discard request, 7 reply.
    pub kind: u16,
    /// 1 atomic, 2 ordered.
    pub flags: u16,
}
