//! The tables and columns that the commands of `ovs-vsctl` work on by name.

use db_client::{Layout, Map, One, Optional, Set, TableColumns, table};
use db_model::Uuid;

table! {
    pub(super) struct OpenVSwitch = "Open_vSwitch" {
        bridges: Set<Uuid>,
        cur_cfg: One<i64>,
        datapaths: Map<str, Uuid>,
        manager_options: Set<Uuid>,
        next_cfg: One<i64>,
        ssl: Optional<Uuid>,
    }
}

table! {
    pub(super) struct Bridge = "Bridge" {
        auto_attach: Optional<Uuid>,
        controller: Set<Uuid>,
        external_ids: Map<str, str>,
        fail_mode: Optional<str>,
        flood_vlans: Set<i64>,
        ipfix: Optional<Uuid>,
        mirrors: Set<Uuid>,
        name: One<str>,
        netflow: Optional<Uuid>,
        other_config: Map<str, str>,
        ports: Set<Uuid>,
        sflow: Optional<Uuid>,
    }
}

table! {
    pub(super) struct Port = "Port" {
        bond_fake_iface: One<bool>,
        external_ids: Map<str, str>,
        fake_bridge: One<bool>,
        interfaces: Set<Uuid>,
        name: One<str>,
        other_config: Map<str, str>,
        tag: Optional<i64>,
    }
}

table! {
    pub(super) struct Interface = "Interface" {
        error: Optional<str>,
        ingress_policing_burst: One<i64>,
        ingress_policing_rate: One<i64>,
        name: One<str>,
        ofport: Optional<i64>,
        other_config: Map<str, str>,
        r#type: One<str>,
    }
}

table! {
    pub(super) struct Controller = "Controller" {
        inactivity_probe: Optional<i64>,
        target: One<str>,
    }
}

table! {
    pub(super) struct Manager = "Manager" {
        inactivity_probe: Optional<i64>,
        target: One<str>,
    }
}

table! {
    pub(super) struct Ssl = "SSL" {
        bootstrap_ca_cert: One<bool>,
        ca_cert: One<str>,
        certificate: One<str>,
        private_key: One<str>,
    }
}

table! {
    pub(super) struct AutoAttach = "AutoAttach" {
        mappings: Map<i64, i64>,
    }
}

table! {
    pub(super) struct Datapath = "Datapath" {
        capabilities: Map<str, str>,
        ct_zone_default_limit: Optional<i64>,
        ct_zones: Map<i64, Uuid>,
    }
}

table! {
    pub(super) struct CtZone = "CT_Zone" {
        limit: Optional<i64>,
        timeout_policy: Optional<Uuid>,
    }
}

table! {
    pub(super) struct CtTimeoutPolicy = "CT_Timeout_Policy" {
        timeouts: Map<str, i64>,
    }
}

/// All of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tables {
    pub(super) ovs: OpenVSwitch,
    pub(super) bridge: Bridge,
    pub(super) port: Port,
    pub(super) interface: Interface,
    pub(super) controller: Controller,
    pub(super) manager: Manager,
    pub(super) ssl: Ssl,
    pub(super) auto_attach: AutoAttach,
    pub(super) datapath: Datapath,
    pub(super) ct_zone: CtZone,
    pub(super) ct_timeout_policy: CtTimeoutPolicy,
}

impl Tables {
    pub(super) fn find(layout: &Layout) -> Self {
        Self {
            ovs: TableColumns::find(layout),
            bridge: TableColumns::find(layout),
            port: TableColumns::find(layout),
            interface: TableColumns::find(layout),
            controller: TableColumns::find(layout),
            manager: TableColumns::find(layout),
            ssl: TableColumns::find(layout),
            auto_attach: TableColumns::find(layout),
            datapath: TableColumns::find(layout),
            ct_zone: TableColumns::find(layout),
            ct_timeout_policy: TableColumns::find(layout),
        }
    }
}
