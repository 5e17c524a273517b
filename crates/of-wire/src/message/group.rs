//! Messages about groups, meters and bundles.

use net_flow::PortNo;

use crate::action::Action;

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

/// One alternative of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// Its id (OpenFlow 1.5).
    pub id: u32,
    /// Its share of traffic.
    pub weight: u16,
    /// Live while this port is.
    pub watch_port: PortNo,
    /// Live while this group is; `u32::MAX` for none.
    pub watch_group: u32,
    /// What it does.
    pub actions: Vec<Action>,
}

/// A request to change groups.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupMod {
    /// `OFPGC_*`: 0 add, 1 modify, 2 delete, 3 insert bucket, 5 remove bucket, 0x8000 add or modify.
    pub command: u16,
    /// How it uses its buckets.
    pub kind: GroupType,
    /// The group.
    pub id: u32,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
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
