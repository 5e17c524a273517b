//! Tunnel ports of a datapath.  Those of a type and UDP port share one port of the datapath,
//! which is made for the first and goes with the last.

pub(crate) mod options;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use base::Instant;
use dp_api::{Datapath, Error, PortSpec};
use dp_lang::PortNo as DpPort;
use net_flow::PortNo;
use of_xlate::{BridgeId, Tunnel, TunnelConfig, TunnelCsum, TunnelKey, TunnelMatch, TunnelTable};

use crate::backer::Backer;
use crate::config::{InterfaceConfig, PortConfig};
use crate::interface::Carrier;
use crate::switch::{Switch, random_mac};

/// What carries a tunnel port's packets.
#[derive(Debug)]
pub(crate) struct TunnelCarrier {
    /// The datapath port, which is others' too.
    pub(crate) port: DpPort,
    pub(crate) tunnel: Tunnel,
    /// The address that it shows.
    pub(crate) mac: [u8; 6],
}

/// A datapath port that tunnel ports share.
#[derive(Debug)]
struct Vport {
    port: DpPort,
    /// Whether group based policies are on.
    gbp: bool,
    users: usize,
}

/// The tunnel ports of one datapath.
#[derive(Debug, Default)]
pub(crate) struct Tunnels {
    vports: BTreeMap<String, Vport>,
    /// Whose each is.
    pub(crate) table: Arc<TunnelTable>,
}

/// The name of the datapath port for tunnels like this one.
fn vport_name(config: &TunnelConfig) -> String {
    let prefix = match &*config.kind {
        "vxlan" => "vxlan_sys",
        "geneve" => "genev_sys",
        kind => return format!("{kind}_sys"),
    };
    format!("{prefix}_{}", config.dst_port)
}

impl Tunnels {
    /// Whether a tunnel can share its datapath port with those that are there, apart from one
    /// with the configuration `old`.
    pub(crate) fn may_share(&self, config: &TunnelConfig, old: Option<&TunnelConfig>) -> bool {
        let name = vport_name(config);
        let own = usize::from(old.is_some_and(|old| vport_name(old) == name));
        let vport = self.vports.get(&name);
        vport.is_none_or(|v| v.gbp == config.gbp || v.users <= own)
    }

    /// The datapath port for a tunnel, made if it is not there.
    pub(crate) fn acquire(
        &mut self,
        datapath: &dyn Datapath,
        config: &TunnelConfig,
    ) -> Result<DpPort, Error> {
        let name = vport_name(config);
        if let Some(vport) = self.vports.get_mut(&name) {
            vport.users += 1;
            return Ok(vport.port);
        }
        if !datapath.features().tunnels {
            let kind = datapath.kind();
            return Err(Error::Unsupported(format!(
                "tunnels are not supported by the {kind} datapath yet"
            )));
        }
        let port = open(datapath, &name, config)?;
        let vport = Vport {
            port,
            gbp: config.gbp,
            users: 1,
        };
        self.vports.insert(name, vport);
        Ok(port)
    }

    /// A tunnel does not need its datapath port any more.
    pub(crate) fn release(&mut self, datapath: &dyn Datapath, config: &TunnelConfig) {
        let name = vport_name(config);
        let Some(vport) = self.vports.get_mut(&name) else {
            return;
        };
        vport.users -= 1;
        if vport.users > 0 {
            return;
        }
        let port = vport.port;
        self.vports.remove(&name);
        if let Err(error) = datapath.port_del(port) {
            log::warn!(target: "ofproto_dpif", "failed to remove tunnel port {name} ({error})");
        }
    }
}

impl Tunnels {
    /// Packets that fit a tunnel port are its from now on.
    pub(crate) fn note(&mut self, carrier: &TunnelCarrier, bridge: BridgeId, number: PortNo) {
        let table = Arc::make_mut(&mut self.table);
        // That it is the only one was seen to before.
        let _ = table.add(carrier.matching(), bridge, number);
    }

    /// A tunnel port goes.
    pub(crate) fn forget(&mut self, datapath: &dyn Datapath, carrier: &TunnelCarrier) {
        Arc::make_mut(&mut self.table).remove(&carrier.matching());
        self.release(datapath, &carrier.tunnel.config);
    }
}

impl TunnelCarrier {
    fn matching(&self) -> TunnelMatch {
        TunnelMatch::new(&self.tunnel.config, self.port)
    }
}

fn warn_netdev(name: &str, text: &str, why: &str) {
    if !text.is_empty() {
        log::warn!(target: "netdev_vport", "{text}");
    }
    log::warn!(target: "netdev", "{name}: could not set configuration ({why})");
}

impl Switch {
    /// Opens what carries a tunnel port's packets, or says in the log why that cannot be.
    /// `old` is what it had before its options changed.
    pub(crate) fn open_tunnel(
        &mut self,
        bridge: &str,
        config: &InterfaceConfig,
        old: Option<&TunnelCarrier>,
    ) -> Result<TunnelCarrier, String> {
        let name = &config.name;
        let read = options::read(name, &config.kind, &config.options);
        let (tunnel, lines) = read.map_err(|error| {
            warn_netdev(name, &error.text, error.why);
            error.text
        })?;
        if !lines.is_empty() {
            log::warn!(target: "netdev_vport", "{}", lines.join("\n"));
        }
        let owner = self.bridges.get(bridge).ok_or("there is no such bridge")?;
        let backer = self.backers.get_mut(&owner.kind);
        let backer = backer.ok_or("there is no datapath")?;
        let datapath = Arc::clone(&backer.datapath);
        let before = old.map(|o| &*o.tunnel.config);
        if !backer.tunnels.may_share(&tunnel, before) {
            let text = format!(
                "{name}: VXLAN-GBP, and non-VXLAN-GBP tunnels can't be configured on the same \
                 dst_port"
            );
            warn_netdev(name, &text, EXISTS);
            return Err(text);
        }
        let port = backer.tunnels.acquire(&*datapath, &tunnel);
        let port = port.map_err(|error| not_added(name, &Backer::error_text(&error)))?;
        let matching = TunnelMatch::new(&tunnel, port);
        let rival = backer.tunnels.table.get(&matching);
        if let Some((bridge, number)) =
            rival.filter(|_| old.is_none_or(|o| o.matching() != matching))
        {
            backer.tunnels.release(&*datapath, &tunnel);
            let owner = self.names.get(&bridge).and_then(|b| self.bridges.get(b));
            let rival = owner.and_then(|b| b.by_number.get(&number));
            let rival = rival.map_or("", String::as_str);
            log::warn!(target: "tunnel",
                "{name}: attempting to add tunnel port with same config as port '{rival}' \
                 ({matching})");
            return Err(not_added(name, EXISTS));
        }
        Ok(TunnelCarrier {
            port,
            tunnel: Tunnel {
                config: Arc::new(tunnel),
                counters: old
                    .map(|o| Arc::clone(&o.tunnel.counters))
                    .unwrap_or_default(),
            },
            mac: old.map_or_else(|| random_mac().0, |o| o.mac),
        })
    }

    /// Brings a tunnel port to its new options; its OpenFlow number stays.
    pub(crate) fn change_tunnel(
        &mut self,
        bridge: &str,
        port: &PortConfig,
        name: &str,
        now: Instant,
    ) {
        let Some(owner) = self.bridges.get_mut(bridge) else {
            return;
        };
        let Some(interface) = owner.interfaces.get_mut(name) else {
            return;
        };
        let config = interface.config.clone();
        let why = Carrier::None("its options change".to_owned());
        let Carrier::Tunnel(old) = std::mem::replace(&mut interface.carrier, why) else {
            return;
        };
        let number = interface.number;
        let new = self.open_tunnel(bridge, &config, Some(&old));
        let Some(owner) = self.bridges.get_mut(bridge) else {
            return;
        };
        let (id, kind) = (owner.id, owner.kind.clone());
        if let Some(backer) = self.backers.get_mut(&kind) {
            let datapath = Arc::clone(&backer.datapath);
            backer.tunnels.forget(&*datapath, &old);
            if let (Ok(carrier), Some(number)) = (&new, number) {
                backer.tunnels.note(carrier, id, number);
            }
        }
        match new {
            Ok(carrier) => {
                if let Some(interface) = owner.interfaces.get_mut(name) {
                    interface.carrier = Carrier::Tunnel(carrier);
                }
                self.mark_stale(bridge);
            }
            Err(_) => {
                self.remove_interface(bridge, name, now);
                self.add_interface(bridge, port, &config, now);
            }
        }
    }
}

/// What the database shows of a port that the datapath refused; the log says it too.
fn not_added(name: &str, why: &str) -> String {
    let text = format!("could not add network device {name} to ofproto ({why})");
    log::warn!(target: "bridge", "{text}");
    text
}

const EXISTS: &str = "File exists";

/// Adds a datapath port, or takes over the one that is there.
fn open(datapath: &dyn Datapath, name: &str, config: &TunnelConfig) -> Result<DpPort, Error> {
    let mut options = Vec::new();
    if config.dst_port != 0 {
        options.push(("dst_port".to_owned(), config.dst_port.to_string()));
    }
    let extensions = [(config.gbp, "gbp"), (config.gpe, "gpe")];
    let extensions: Vec<_> = extensions.iter().filter(|(on, _)| *on).collect();
    if !extensions.is_empty() {
        let names: Vec<&str> = extensions.iter().map(|(_, name)| *name).collect();
        options.push(("exts".to_owned(), names.join(",")));
    }
    let spec = PortSpec {
        name: name.to_owned(),
        kind: config.kind.to_string(),
        number: None,
        options,
    };
    match datapath.port_add(&spec) {
        Err(Error::Exists(why)) => {
            let known = datapath.ports().into_iter();
            let mut own = known.filter(|p| p.name == name && *p.kind == *config.kind);
            own.next().map(|p| p.number).ok_or(Error::Exists(why))
        }
        other => other,
    }
}

/// A tunnel port as `ofproto/list-tunnels` shows it.
pub(crate) fn list_line(name: &str, port: DpPort, config: &TunnelConfig) -> String {
    let matching = TunnelMatch::new(config, port);
    let mut line = format!("port {port}: {name} ({}: {matching}", config.kind);
    if config.out_key != config.in_key {
        let _ = match config.out_key {
            TunnelKey::Absent => write!(line, ", out_key=none"),
            TunnelKey::Flow => write!(line, ", out_key=flow"),
            TunnelKey::Value(0) => write!(line, ", out_key=0"),
            TunnelKey::Value(key) => write!(line, ", out_key={key:#x}"),
        };
    }
    let _ = match config.ttl {
        None => write!(line, ", ttl=inherit"),
        Some(ttl) => write!(line, ", ttl={ttl}"),
    };
    let _ = match config.tos {
        None => write!(line, ", tos=inherit"),
        Some(0) => Ok(()),
        Some(tos) => write!(line, ", tos={tos:#x}"),
    };
    if !config.dont_fragment {
        line += ", df=false";
    }
    line += match config.csum {
        TunnelCsum::Enabled => ", csum=true",
        TunnelCsum::Disabled => ", csum=false",
        TunnelCsum::ByProtocol | TunnelCsum::Without => "",
    };
    line += ")\n";
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_of_one_kind_share_a_port() {
        let config = |kind: &str, dst_port, gbp| TunnelConfig {
            dst_port,
            gbp,
            ..TunnelConfig::new(kind)
        };
        assert_eq!(vport_name(&config("vxlan", 4789, false)), "vxlan_sys_4789");
        assert_eq!(vport_name(&config("geneve", 6081, false)), "genev_sys_6081");
        assert_eq!(vport_name(&config("gre", 0, false)), "gre_sys");
        assert_eq!(vport_name(&config("ip6erspan", 0, false)), "ip6erspan_sys");
        let mut tunnels = Tunnels::default();
        let vport = Vport {
            port: DpPort(1),
            gbp: false,
            users: 1,
        };
        tunnels.vports.insert("vxlan_sys_4789".to_owned(), vport);
        let (plain, gbp) = (config("vxlan", 4789, false), config("vxlan", 4789, true));
        assert!(tunnels.may_share(&plain, None));
        assert!(!tunnels.may_share(&gbp, None));
        assert!(tunnels.may_share(&gbp, Some(&plain)));
        assert!(tunnels.may_share(&config("vxlan", 1, true), None));
    }

    #[test]
    fn a_line_of_the_list() {
        let config = TunnelConfig {
            remote: Some([1, 1, 1, 1].into()),
            out_key: TunnelKey::Value(5),
            tos: Some(4),
            dont_fragment: false,
            csum: TunnelCsum::Enabled,
            ..TunnelConfig::new("gre")
        };
        assert_eq!(
            list_line("p1", DpPort(1), &config),
            "port 1: p1 (gre: ::->1.1.1.1, key=0, legacy_l2, dp port=1, out_key=0x5, ttl=64, \
             tos=0x4, df=false, csum=true)\n"
        );
    }
}
