//! `ofproto/list-tunnels`.

use base::Instant;

use super::{Command, command};
use crate::switch::Switch;
use crate::tunnels::list_line;

pub(super) const COMMANDS: &[Command] = &[command("ofproto/list-tunnels", "", 0, 0, list)];

/// Lists the tunnel ports in the order in which a packet is tried with them.
fn list(switch: &mut Switch, _args: &[String], _now: Instant) -> Result<String, String> {
    let mut text = String::new();
    for backer in switch.backers.values() {
        for (_, (bridge, port)) in backer.tunnels.table.iter() {
            let owner = switch.names.get(&bridge);
            let owner = owner.and_then(|name| switch.bridges.get(name));
            let interface = owner.and_then(|b| b.by_number(port));
            if let Some((interface, carrier)) = interface.and_then(|i| Some((i, i.tunnel()?))) {
                let name = &interface.config.name;
                text += &list_line(name, carrier.port, &carrier.tunnel.config);
            }
        }
    }
    Ok(text)
}
