//! The bridge's ports as OpenFlow shows them.

use of_wire::message::{PortConfig, PortDesc, PortMod, PortState, PortStatusReason};
use of_wire::{ErrorCode, PortNo, Version};

use crate::bridge::dispatch::Asked;
use crate::bridge::{Bridge, Output};

/// The settings of a port that a controller may change; the others belong to the spanning
/// tree of OpenFlow 1.0.
const CHANGEABLE: PortConfig = PortConfig::PORT_DOWN
    .union(PortConfig::NO_RECV)
    .union(PortConfig::NO_RECV_STP)
    .union(PortConfig::NO_FLOOD)
    .union(PortConfig::NO_FWD)
    .union(PortConfig::NO_PACKET_IN);

impl Bridge {
    /// The ports in the order of their numbers.
    pub fn ports(&self) -> impl Iterator<Item = &PortDesc> {
        self.ports.values()
    }

    /// One port.
    pub fn port(&self, number: PortNo) -> Option<&PortDesc> {
        self.ports.get(&number)
    }

    /// A port is there, or looks different now: controllers hear of it.
    pub fn set_port(&mut self, desc: PortDesc) {
        let reason = match self.ports.insert(desc.port, desc.clone()) {
            None => PortStatusReason::Add,
            Some(old) if differ_in_liveness_only(&old, &desc) => {
                // OpenFlow 1.0 does not know whether a port is live.
                self.send_port_status_from(Version::V11, PortStatusReason::Modify, &desc, None);
                return;
            }
            Some(old) if old != desc => PortStatusReason::Modify,
            Some(_) => return,
        };
        self.send_port_status(reason, &desc, None);
    }

    /// A port is gone: controllers hear of it.
    pub fn remove_port(&mut self, number: PortNo) {
        if let Some(desc) = self.ports.remove(&number) {
            self.send_port_status(PortStatusReason::Delete, &desc, None);
        }
    }

    /// Whether a port-mod is about a port that is there.
    pub(super) fn check_port_mod(&self, request: &PortMod) -> Result<(), ErrorCode> {
        let port = self.ports.get(&request.port);
        let port = port.ok_or(ErrorCode::OfppmfcBadPort)?;
        if port.hw_addr != request.hw_addr {
            return Err(ErrorCode::OfppmfcBadHwAddr);
        }
        Ok(())
    }

    pub(super) fn handle_port_mod(
        &mut self,
        asked: &Asked<'_>,
        request: &PortMod,
    ) -> Result<(), ErrorCode> {
        self.check_port_mod(request)?;
        let Some(port) = self.ports.get_mut(&request.port) else {
            return Ok(());
        };
        let mask = request.mask & CHANGEABLE;
        let config = (port.config - mask) | (request.config & mask);
        if config == port.config {
            return Ok(());
        }
        port.config = config;
        let desc = port.clone();
        self.outputs.push_back(Output::PortConfig {
            port: request.port,
            config,
        });
        self.send_port_status(PortStatusReason::Modify, &desc, Some(asked.conn));
        Ok(())
    }
}

fn differ_in_liveness_only(old: &PortDesc, new: &PortDesc) -> bool {
    let mut other = old.clone();
    other.state.toggle(PortState::LIVE);
    other == *new
}
