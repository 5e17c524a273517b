//! Interfaces that come, change and go.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::Instant;
use dp_api::PortSpec;
use net_flow::PortNo;
use net_packet::EthAddr;
use of_wire::message::PortConfig as OfPortConfig;
use of_xlate::PatchCounters;

use crate::backer::Backer;
use crate::bridge::PatchEnd;
use crate::config::{InterfaceConfig, PortConfig};
use crate::interface::{Carrier, Interface};
use crate::reserved;
use crate::switch::Switch;
use crate::tunnels;

fn option_list(config: &InterfaceConfig) -> Vec<(String, String)> {
    let options = config.options.iter();
    options.map(|(k, v)| (k.clone(), v.clone())).collect()
}

impl Switch {
    /// Brings one interface to what it should be, touching only what differs.
    pub(crate) fn set_interface(
        &mut self,
        bridge: &str,
        port: &PortConfig,
        config: &InterfaceConfig,
        now: Instant,
    ) {
        let name = &config.name;
        let Some(owner) = self.bridges.get_mut(bridge) else {
            return;
        };
        let Some(old) = owner.interfaces.get_mut(name) else {
            self.add_interface(bridge, port, config, now);
            return;
        };
        let other_number = config.ofport_request.is_some()
            && config.ofport_request != old.number.map(PortNo::to_of10)
            && old.number != Some(PortNo::LOCAL);
        let failed = matches!(old.carrier, Carrier::None(_));
        let other_kind = old.config.kind != config.kind;
        if other_number && !(other_kind || failed || old.port != port.name) {
            // The number may be another's, which gets its new one in the same transaction.
            self.renumber.insert((bridge.to_owned(), name.clone()));
        } else if other_kind || failed || old.port != port.name {
            self.remove_interface(bridge, name, now);
            self.add_interface(bridge, port, config, now);
            return;
        }
        let options_differ = old.config.options != config.options;
        old.config = config.clone();
        if options_differ && old.tunnel().is_some() {
            self.change_tunnel(bridge, port, name, now);
        } else if options_differ {
            self.set_options(bridge, name);
        }
        self.set_up_device(bridge, port, name);
        self.changed_interfaces
            .insert((bridge.to_owned(), name.clone()));
    }

    /// Gives interfaces the numbers that they ask for.  Who has such a number and does not ask
    /// for it makes way; who asks for it keeps it.
    pub(crate) fn renumber_interfaces(&mut self, now: Instant) {
        let wanted = std::mem::take(&mut self.renumber);
        let mut moved = BTreeSet::new();
        for (bridge, name) in wanted {
            let Some(owner) = self.bridges.get(&bridge) else {
                continue;
            };
            let interface = owner.interfaces.get(&name);
            let Some(request) = interface.and_then(|i| i.config.ofport_request) else {
                continue;
            };
            let victim = owner.by_number.get(&PortNo::from_of10(request));
            let holder = victim.and_then(|v| owner.interfaces.get(v));
            if holder.is_some_and(|h| h.config.ofport_request == Some(request)) {
                continue;
            }
            if let Some(victim) = victim {
                moved.insert((bridge.clone(), victim.clone()));
            }
            moved.insert((bridge, name));
        }
        let mut added = Vec::new();
        for (bridge, name) in moved {
            let Some(owner) = self.bridges.get(&bridge) else {
                continue;
            };
            let Some(interface) = owner.interfaces.get(&name) else {
                continue;
            };
            let config = interface.config.clone();
            let Some(port) = owner.ports.get(&interface.port).map(|p| p.config.clone()) else {
                continue;
            };
            self.remove_interface(&bridge, &name, now);
            added.push((bridge, port, config));
        }
        added.sort_by_key(|(_, _, config)| config.ofport_request.is_none());
        for (bridge, port, config) in added {
            self.add_interface(&bridge, &port, &config, now);
            self.unsettled.insert(bridge);
        }
    }

    fn set_options(&mut self, bridge: &str, name: &str) {
        let Some(owner) = self.bridges.get(bridge) else {
            return;
        };
        let interface = &owner.interfaces[name];
        if interface.is_patch() {
            self.note_patch(bridge, name);
            return;
        }
        let Some(backer) = self.backers.get(&owner.kind) else {
            return;
        };
        let options = option_list(&interface.config);
        if let Some(port) = interface.datapath_port()
            && let Err(error) = backer.datapath.port_set(port, &options)
        {
            log::warn!(target: "bridge", "could not configure network device {name} ({error})");
        }
    }

    /// Sets up a new interface.
    pub(crate) fn add_interface(
        &mut self,
        bridge: &str,
        port: &PortConfig,
        config: &InterfaceConfig,
        now: Instant,
    ) {
        let name = &config.name;
        let is_reserved = reserved::is_reserved(name, &self.env.datapath_kinds());
        let opened = (!is_reserved).then(|| self.open_carrier(bridge, config));
        let carrier = match opened.transpose() {
            Ok(None) => {
                log::warn!(target: "bridge",
                    "could not create interface {name}, name is reserved");
                // The column says nothing: the log does.
                Carrier::None(String::new())
            }
            Ok(Some(carrier)) => {
                self.waiting.remove(name);
                carrier
            }
            Err(error) => {
                if !tunnels::options::is_tunnel(&config.kind) {
                    log::warn!(target: "bridge", "{error}");
                }
                self.waiting.insert(name.clone(), bridge.to_owned());
                Carrier::None(error)
            }
        };
        let Some(owner) = self.bridges.get_mut(bridge) else {
            return;
        };
        let number = match carrier {
            Carrier::None(_) => None,
            _ if name == bridge => Some(PortNo::LOCAL),
            _ => {
                let number = owner.numbers.allot(name, config.wished_number());
                number.map(PortNo::from_of10)
            }
        };
        let seen_changes = match &carrier {
            Carrier::Datapath { device, .. } => device.changes(),
            Carrier::None(_) | Carrier::Patch(_) | Carrier::Tunnel(_) => 0,
        };
        let interface = Interface {
            config: config.clone(),
            port: port.name.clone(),
            number,
            carrier,
            of_config: OfPortConfig::empty(),
            created: now,
            was_present: true,
            seen_changes,
        };
        if let (Some(number), Some(backer)) = (number, self.backers.get_mut(&owner.kind)) {
            if let Some(carrier) = interface.tunnel() {
                backer.tunnels.note(carrier, owner.id, number);
            }
            if let Some(datapath_port) = interface.own_datapath_port() {
                let ports = Arc::make_mut(&mut backer.ports);
                ports.insert(datapath_port, (owner.id, number));
            }
            owner.by_number.insert(number, name.clone());
            let shown = number.to_of10();
            log::info!(target: "bridge", "bridge {bridge}: added interface {name} on port {shown}");
        }
        let is_patch = interface.is_patch();
        owner.interfaces.insert(name.clone(), interface);
        self.owners.insert(name.clone(), bridge.to_owned());
        self.set_up_device(bridge, port, name);
        if let Some(owner) = self.bridges.get_mut(bridge) {
            owner.announce_port(name);
        }
        if is_patch {
            self.note_patch(bridge, name);
        }
        self.counters.ofproto_update_port.inc();
        self.changed_interfaces
            .insert((bridge.to_owned(), name.clone()));
    }

    /// Opens what carries an interface's packets.
    fn open_carrier(&mut self, bridge: &str, config: &InterfaceConfig) -> Result<Carrier, String> {
        let name = &config.name;
        if config.kind == "patch" {
            return match config.options.get("peer") {
                None => Err(format!("{name}: patch type requires valid 'peer' argument")),
                Some(peer) if peer == name => Err(format!("{name}: patch peer must not be self")),
                Some(_) => Ok(Carrier::Patch(Arc::new(PatchCounters::default()))),
            };
        }
        if tunnels::options::is_tunnel(&config.kind) {
            return self.open_tunnel(bridge, config, None).map(Carrier::Tunnel);
        }
        if tunnels::options::is_later(&config.kind) {
            let kind = &config.kind;
            return Err(format!(
                "{name}: tunnels of type {kind} are not supported yet"
            ));
        }
        let owner = self.bridges.get(bridge).ok_or("there is no such bridge")?;
        let backer = self
            .backers
            .get(&owner.kind)
            .ok_or("there is no datapath")?;
        let is_known = |k: &String| *k == config.kind;
        if config.kind != "internal" && !self.env.devices.kinds().iter().any(is_known) {
            let kind = &config.kind;
            log::warn!(target: "netdev", "could not create netdev {name} of unknown type {kind}");
            return Err(format!(
                "could not open network device {name} (Address family not supported by protocol)"
            ));
        }
        let spec = PortSpec {
            name: name.clone(),
            kind: config.kind.clone(),
            number: None,
            options: option_list(config),
        };
        let port = backer.datapath.port_add(&spec).map_err(|error| {
            let why = Backer::error_text(&error);
            format!("could not open network device {name} ({why})")
        })?;
        let device = backer.datapath.port_device(port);
        let device = device.map_err(|error| error.to_string())?;
        Ok(Carrier::Datapath { port, device })
    }

    /// Applies the settings of an interface to its device.
    fn set_up_device(&mut self, bridge: &str, port: &PortConfig, name: &str) {
        let Some(owner) = self.bridges.get(bridge) else {
            return;
        };
        let interface = &owner.interfaces[name];
        let Some(device) = interface.device() else {
            return;
        };
        let state = device.state();
        if let Some(mtu) = interface.config.mtu_request
            && mtu != state.mtu
            && let Err(error) = device.set_mtu(mtu)
        {
            log::warn!(target: "bridge", "failed to set MTU of network device {name}: {}",
                base::errno_text(&error));
        }
        let mac = interface.config.mac.or(port.mac).map(EthAddr::from_u64);
        if let Some(mac) = mac
            && name != bridge
            && interface.config.kind == "internal"
            && mac != state.mac
            && let Err(error) = device.set_mac(mac)
        {
            log::error!(target: "bridge", "interface {name}: setting hardware address failed ({})",
                base::errno_text(&error));
        }
    }

    /// Takes an interface down.
    pub(crate) fn remove_interface(&mut self, bridge: &str, name: &str, now: Instant) {
        let Some(owner) = self.bridges.get_mut(bridge) else {
            return;
        };
        let Some(interface) = owner.interfaces.remove(name) else {
            return;
        };
        self.waiting.remove(name);
        self.owners.remove(name);
        owner.is_stale = true;
        if let Some(number) = interface.number {
            owner.by_number.remove(&number);
            owner.numbers.free(name, now);
            owner.model.remove_port(number);
            let shown = number.to_of10();
            log::info!(target: "bridge",
                "bridge {bridge}: deleted interface {name} on port {shown}");
        }
        if let Some(backer) = self.backers.get_mut(&owner.kind) {
            backer.is_stale = true;
            backer.patch_ends.remove(name);
            if let Some(carrier) = interface.tunnel() {
                backer.tunnels.forget(&*backer.datapath, carrier);
            }
            if let Some(port) = interface.own_datapath_port() {
                Arc::make_mut(&mut backer.ports).remove(&port);
                if let Err(error) = backer.datapath.port_del(port) {
                    log::warn!(target: "bridge", "bridge {bridge}: removing {name}: {error}");
                }
            }
        }
        if let Some(peer) = interface.peer() {
            let peer = peer.to_owned();
            self.mark_patch_owner(&peer);
        }
    }

    /// Takes note of where a patch port leads, and of whose view that changes.
    fn note_patch(&mut self, bridge: &str, name: &str) {
        let Some(owner) = self.bridges.get(bridge) else {
            return;
        };
        let interface = &owner.interfaces[name];
        let (Some(number), Some(peer)) = (interface.number, interface.peer()) else {
            return;
        };
        let peer = peer.to_owned();
        let end = PatchEnd {
            bridge: owner.id,
            number,
            peer: peer.clone(),
        };
        if let Some(backer) = self.backers.get_mut(&owner.kind) {
            backer.patch_ends.insert(name.to_owned(), end);
        }
        self.mark_stale(bridge);
        self.mark_patch_owner(&peer);
    }

    /// The bridge of a patch port sees its other end differently.
    fn mark_patch_owner(&mut self, interface: &str) {
        let ends = self.backers.values();
        let owner = ends.filter_map(|b| b.patch_ends.get(interface)).next();
        if let Some(name) = owner.and_then(|end| self.names.get(&end.bridge)).cloned() {
            self.mark_stale(&name);
        }
    }

    /// Looks at devices that changed, and tries again those that were not there.
    pub(crate) fn follow_devices(&mut self, now: Instant) {
        let mut names = BTreeSet::new();
        for provider in self.env.devices.iter() {
            names.extend(provider.take_events());
        }
        for name in &names {
            self.device_event(name, now);
        }
    }

    /// Looks at the device called `name`.
    pub(crate) fn device_event(&mut self, name: &str, now: Instant) {
        if let Some(bridge) = self.waiting.get(name).cloned() {
            self.retry_interface(&bridge, name, now);
            return;
        }
        let Some(bridge) = self.owners.get(name).cloned() else {
            return;
        };
        let owner = self.bridges.get_mut(&bridge);
        let Some(interface) = owner.and_then(|b| b.interfaces.get_mut(name)) else {
            return;
        };
        let Carrier::Datapath { device, .. } = &interface.carrier else {
            return;
        };
        let changes = device.changes();
        if changes != interface.seen_changes {
            interface.seen_changes = changes;
            interface.was_present = device.state().present;
            self.device_changed(&bridge, name);
        }
    }

    fn retry_interface(&mut self, bridge: &str, name: &str, now: Instant) {
        let Some(owner) = self.bridges.get(bridge) else {
            return;
        };
        let Some(interface) = owner.interfaces.get(name) else {
            return;
        };
        let config = interface.config.clone();
        let Some(port) = owner.ports.get(&interface.port).map(|p| p.config.clone()) else {
            return;
        };
        self.remove_interface(bridge, name, now);
        self.add_interface(bridge, &port, &config, now);
        self.unsettled.insert(bridge.to_owned());
    }

    fn device_changed(&mut self, bridge: &str, name: &str) {
        let Some(owner) = self.bridges.get_mut(bridge) else {
            return;
        };
        let interface = &owner.interfaces[name];
        if let (Some(number), false) = (interface.number, interface.was_present) {
            // Its number stays reserved: the device may come back.
            owner.model.remove_port(number);
            owner.is_stale = true;
        } else {
            owner.show_port(name);
        }
        self.counters.rev_port_toggled.inc();
        self.mark_stale(bridge);
        self.unsettled.insert(bridge.to_owned());
        self.changed_interfaces
            .insert((bridge.to_owned(), name.to_owned()));
    }

    /// Carries out what a controller has set on a port.
    pub(crate) fn set_port_config(&mut self, bridge: &str, number: PortNo, config: OfPortConfig) {
        let Some(owner) = self.bridges.get_mut(bridge) else {
            return;
        };
        let Some(name) = owner.by_number.get(&number).cloned() else {
            return;
        };
        let Some(interface) = owner.interfaces.get_mut(&name) else {
            return;
        };
        interface.of_config = config & !OfPortConfig::PORT_DOWN;
        let up = !config.contains(OfPortConfig::PORT_DOWN);
        if let Some(device) = interface.device()
            && device.state().up != up
        {
            if let Err(error) = device.set_up(up) {
                let (state, why) = (if up { "up" } else { "down" }, base::errno_text(&error));
                log::warn!(target: "ofproto", "{bridge}: failed to set {name} {state}: {why}");
            }
            let changes = device.changes();
            interface.seen_changes = changes;
            owner.show_port(&name);
            self.changed_interfaces
                .insert((bridge.to_owned(), name.clone()));
        }
        self.mark_stale(bridge);
    }
}
