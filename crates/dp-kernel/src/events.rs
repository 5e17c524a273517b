//! Ports that the kernel removed by itself, because their devices went.

use std::io;

use dp_lang::PortNo;
use net_netlink::ovs::vport::Vport;
use net_nlsock::{EventSocket, Events, Protocol};

/// Hears of ports.
#[derive(Debug)]
pub(crate) struct PortEvents {
    socket: EventSocket,
    dp: u32,
}

impl PortEvents {
    /// Hears of the ports of datapath `dp`, by the multicast group of ports.
    pub(crate) fn open(group: u32, dp: u32) -> io::Result<Self> {
        let socket = EventSocket::open(Protocol::Generic, &[group])?;
        Ok(Self { socket, dp })
    }

    /// The ports that went since the last call, those included that were removed on request;
    /// `None` if some events were lost.
    pub(crate) fn gone(&mut self) -> io::Result<Option<Vec<PortNo>>> {
        let mut gone = Vec::new();
        let dp = self.dp;
        let events = self.socket.read(|message| {
            let Some((vport, is_gone)) = Vport::parse(message).filter(|(v, _)| v.dp == dp) else {
                return;
            };
            let port = PortNo(vport.port);
            if is_gone {
                gone.push(port);
            } else {
                // It was made again meanwhile.
                gone.retain(|p| *p != port);
            }
        })?;
        Ok((events == Events::Complete).then_some(gone))
    }
}
