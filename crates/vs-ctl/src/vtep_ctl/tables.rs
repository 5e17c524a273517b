//! The tables and columns that the commands of `vtep-ctl` work on by name.

use db_client::{Column, Interest, Layout, Map, One, Optional, Set, TableColumns, TableId, table};
use db_model::Uuid;

table! {
    pub(super) struct Global = "Global" {
        managers: Set<Uuid>,
        switches: Set<Uuid>,
    }
}

table! {
    pub(super) struct Manager = "Manager" {
        inactivity_probe: Optional<i64>,
        target: One<str>,
    }
}

table! {
    pub(super) struct PhysicalSwitch = "Physical_Switch" {
        name: One<str>,
        ports: Set<Uuid>,
    }
}

table! {
    pub(super) struct PhysicalPort = "Physical_Port" {
        name: One<str>,
        vlan_bindings: Map<i64, Uuid>,
    }
}

table! {
    pub(super) struct LogicalSwitch = "Logical_Switch" {
        name: One<str>,
        replication_mode: Optional<str>,
    }
}

table! {
    pub(super) struct LogicalRouter = "Logical_Router" {
        name: One<str>,
    }
}

table! {
    struct UcastMacsLocal = "Ucast_Macs_Local" {
        mac = "MAC": One<str>,
        logical_switch: One<Uuid>,
        locator: One<Uuid>,
    }
}

table! {
    struct UcastMacsRemote = "Ucast_Macs_Remote" {
        mac = "MAC": One<str>,
        logical_switch: One<Uuid>,
        locator: One<Uuid>,
    }
}

table! {
    struct McastMacsLocal = "Mcast_Macs_Local" {
        mac = "MAC": One<str>,
        logical_switch: One<Uuid>,
        locator_set: One<Uuid>,
    }
}

table! {
    struct McastMacsRemote = "Mcast_Macs_Remote" {
        mac = "MAC": One<str>,
        logical_switch: One<Uuid>,
        locator_set: One<Uuid>,
    }
}

table! {
    pub(super) struct LocatorSet = "Physical_Locator_Set" {
        locators: Set<Uuid>,
    }
}

table! {
    pub(super) struct Locator = "Physical_Locator" {
        dst_ip: One<str>,
        encapsulation_type: One<str>,
    }
}

/// A table of MAC bindings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Macs {
    pub(super) table: TableId,
    pub(super) mac: Column<One<str>>,
    pub(super) logical_switch: Column<One<Uuid>>,
    /// The locator of a unicast address, or the set of locators of a multicast address.
    pub(super) location: Column<One<Uuid>>,
}

/// The bindings that one side writes: the VTEP, or the network's controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    /// `local` or `remote`.
    pub(super) name: &'static str,
    pub(super) unicast: Macs,
    pub(super) multicast: Macs,
}

/// All of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tables {
    pub(super) global: Global,
    pub(super) manager: Manager,
    pub(super) switch: PhysicalSwitch,
    pub(super) port: PhysicalPort,
    pub(super) logical_switch: LogicalSwitch,
    pub(super) logical_router: LogicalRouter,
    pub(super) local: Side,
    pub(super) remote: Side,
    pub(super) locator_set: LocatorSet,
    pub(super) locator: Locator,
}

/// A table of MAC bindings, by the columns that it has.
macro_rules! macs {
    ($layout:expr, $table:ty, $location:ident) => {{
        let t = <$table>::find($layout);
        Macs {
            table: t.table,
            mac: t.mac,
            logical_switch: t.logical_switch,
            location: t.$location,
        }
    }};
}

impl Macs {
    fn want(self, interest: &mut Interest) {
        interest.add_table(self.table);
        for column in [self.mac.id(), self.logical_switch.id(), self.location.id()] {
            interest.add_column(self.table, column);
        }
    }
}

impl Side {
    /// Wants both tables.
    pub(super) fn want(self, interest: &mut Interest) {
        self.unicast.want(interest);
        self.multicast.want(interest);
    }
}

impl Tables {
    pub(super) fn find(layout: &Layout) -> Self {
        Self {
            global: TableColumns::find(layout),
            manager: TableColumns::find(layout),
            switch: TableColumns::find(layout),
            port: TableColumns::find(layout),
            logical_switch: TableColumns::find(layout),
            logical_router: TableColumns::find(layout),
            local: Side {
                name: "local",
                unicast: macs!(layout, UcastMacsLocal, locator),
                multicast: macs!(layout, McastMacsLocal, locator_set),
            },
            remote: Side {
                name: "remote",
                unicast: macs!(layout, UcastMacsRemote, locator),
                multicast: macs!(layout, McastMacsRemote, locator_set),
            },
            locator_set: TableColumns::find(layout),
            locator: TableColumns::find(layout),
        }
    }
}
