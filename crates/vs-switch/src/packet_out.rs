//! Packets that controllers send through actions.

use base::Instant;
use dp_api::Execute;
use dp_lang::PortNo as DpPort;
use net_flow::{FlowKey, PortNo, slot};
use of_wire::ErrorCode;
use of_wire::message::PacketOut;
use of_xlate::{Input, Purpose, translate};

use crate::switch::Switch;
use crate::upcall::log_remarks;

impl Switch {
    /// Sends a packet through actions, with the newest published view.
    pub(crate) fn packet_out(
        &mut self,
        bridge: &str,
        packet: PacketOut,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        self.counters.ofproto_packet_out.inc();
        let Some(owner) = self.bridges.get(bridge) else {
            return Ok(());
        };
        let Some(backer) = self.backers.get(&owner.kind) else {
            return Ok(());
        };
        let view = backer.shared.view.load();
        let in_port = PortNo(packet.metadata.key().get(slot::IN_PORT) as u32);
        // What the message says of the packet, and what is in its headers.
        let mut key = packet.metadata.key().clone();
        backer.extract(&packet.packet, &mut key);
        let input = Input {
            bridge: owner.id,
            key: &key,
            packet: Some(&packet.packet),
            actions: Some(packet.actions.into()),
            resume: None,
            purpose: Purpose::PacketOut,
            now,
        };
        self.counters.xlate_actions.inc();
        let translation = translate(&view, &input, None);
        log_remarks(&translation);
        if translation.error.is_some() {
            return Err(ErrorCode::OfpfmfcUnknown);
        }
        for effect in &translation.effects {
            effect.apply(1, packet.packet.len() as u64, now);
        }
        let mut datapath_key = key.clone();
        let port = owner.by_number(in_port).and_then(|i| i.datapath_port());
        let port = port.unwrap_or(DpPort::NONE);
        datapath_key.set(slot::IN_PORT, u128::from(port.0));
        clear_pipeline(&mut datapath_key);
        if translation.actions.is_empty() {
            return Ok(());
        }
        let execute = Execute {
            packet: packet.packet,
            key: datapath_key,
            actions: translation.actions.into(),
        };
        if let Err(error) = backer.datapath.execute(execute) {
            base::log_limited!(
                Warn,
                "ofproto_dpif",
                (60, 5),
                "{bridge}: packet-out could not be carried out: {error}"
            );
        }
        // The states that its actions name live until they were carried out.
        drop(translation.frozen);
        Ok(())
    }
}

/// Registers and metadata are the pipeline's, not the datapath's.
fn clear_pipeline(key: &mut FlowKey) {
    key.set(slot::METADATA, 0);
    for n in 0..16 {
        key.set(slot::xreg(n), 0);
    }
}
