//! One round of upcalls: the switch decides on each, and what it decided goes to the kernel in one
//! train of messages.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Instant;
use dp_api::{NewFlow, Upcall as SwitchUpcall, UpcallHandler, UpcallKind};
use dp_lang::netlink::{decode_cookie, decode_key, ufid_to_bytes};
use dp_lang::text::{FlowFormat, PortNames, format_actions, format_flow};
use dp_lang::{Action, PortNo};
use net_flow::{FlowKey, slot};
use net_netlink::errno as number_of;
use net_netlink::ovs::flow::{self, FlowPut};
use net_netlink::ovs::packet::{Execute, Upcall, Why, execute};
use net_nlsock::{Answer, Socket, Train};
use net_packet::Packet;

use super::item::Item;
use super::queue::Group;
use crate::flow::{encode, encode_list};
use crate::help;
use crate::kernel::errno;
use crate::shared::Shared;

/// What a message of the train was for, in case the kernel refuses it.
enum Purpose {
    /// Actions done to the packet at this place.
    Execute(Place, Arc<[Action]>),
    Put(Box<Pending>),
}

/// A packet of a round: its group's number, and its own in the group.
type Place = (usize, usize);

/// Packets and flows on their way to the kernel.
pub(crate) struct Server {
    socket: Socket,
    train: Train,
    purposes: Vec<Purpose>,
}

/// A packet and where it came from.
struct From<'a> {
    upcall: &'a Upcall<'a>,
    /// The socket that it came by.
    pid: u32,
    /// All packets that are served together.
    round: &'a [Group<Item>],
    /// Its own place among them.
    place: Place,
    /// More come than are served.
    congested: bool,
}

impl From<'_> {
    /// Whether no other packet is served with it.
    fn is_alone(&self) -> bool {
        matches!(self.round, [group] if group.items.len() == 1)
    }
}

/// A flow that follows the packets that it was made for.
struct Pending {
    flow: NewFlow,
    key: Box<FlowKey>,
    raw_key: Vec<u8>,
}

impl Server {
    pub(crate) fn new(socket: Socket) -> Self {
        Self {
            socket,
            train: Train::new(),
            purposes: Vec::new(),
        }
    }

    /// Serves groups of upcalls, each of one flow.
    pub(crate) fn serve(&mut self, shared: &Shared, groups: &[Group<Item>], now: Instant) {
        let switch = shared.switch.load();
        let Some(switch) = switch.as_ref() else {
            let count = groups.iter().map(|g| g.items.len()).sum::<usize>();
            shared.lost.fetch_add(count as u64, Ordering::Relaxed);
            return;
        };
        let mut put = HashSet::new();
        for (number, group) in groups.iter().enumerate() {
            let mut pending: Option<Pending> = None;
            for (index, item) in group.items.iter().enumerate() {
                let Some(upcall) = item.upcall() else {
                    continue;
                };
                let from = From {
                    upcall: &upcall,
                    pid: item.pid(),
                    round: groups,
                    place: (number, index),
                    congested: group.congested,
                };
                let flow = self.decide(shared, &*switch.0, &from, now);
                pending = pending.or(flow);
            }
            if let Some(pending) = pending
                && put.insert(pending.flow.ufid)
            {
                self.put(shared, pending);
            }
        }
        self.send(shared, groups);
    }

    /// Has the switch decide on one packet and adds it to the train.  Returns the flow that is to
    /// follow it.
    fn decide(
        &mut self,
        shared: &Shared,
        switch: &dyn UpcallHandler,
        from: &From<'_>,
        now: Instant,
    ) -> Option<Pending> {
        let upcall = from.upcall;
        let Some(key) = key_of(shared, upcall) else {
            shared.lost.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let cookie = upcall.userdata.map(decode_cookie);
        let kind = match upcall.why {
            Why::Miss => UpcallKind::Miss,
            Why::Action => UpcallKind::Action(cookie.as_ref()),
        };
        let asked = SwitchUpcall {
            kind,
            packet: upcall.packet,
            key: &key,
            congested: from.congested,
        };
        let back = &mut |actions| {
            self.send_back(shared, from, &key, &actions);
            if from.is_alone() {
                // It need not wait until its flow is made.
                self.send(shared, from.round);
            }
        };
        let flow = switch.upcall(&asked, now, back);
        let flow = flow.filter(|_| upcall.why == Why::Miss)?;
        Some(Pending {
            flow,
            key: Box::new(key),
            raw_key: upcall.key.bytes().to_vec(),
        })
    }

    /// Adds a packet to the train with what is to be done to it; what the kernel has no action for
    /// is done before.
    fn send_back(
        &mut self,
        shared: &Shared,
        from: &From<'_>,
        key: &FlowKey,
        actions: &Arc<[Action]>,
    ) {
        if !help::needs_help(actions) {
            return self.execute(shared, from, key, actions);
        }
        for (packet, actions) in help::divide(from.upcall.packet, key, actions) {
            let part = Upcall {
                packet: &packet,
                ..*from.upcall
            };
            let part = From {
                upcall: &part,
                ..*from
            };
            self.execute(shared, &part, key, &actions.into());
        }
    }

    fn execute(
        &mut self,
        shared: &Shared,
        from: &From<'_>,
        key: &FlowKey,
        actions: &Arc<[Action]>,
    ) {
        let upcall = from.upcall;
        let port = PortNo(key.get(slot::IN_PORT) as u32);
        let bytes = match encode_list(shared, actions, port) {
            Ok(bytes) => bytes,
            Err(error) => {
                log_execute(shared, key, actions, &error.to_string());
                return;
            }
        };
        let request = Execute {
            packet: upcall.packet,
            key: upcall.key.bytes(),
            actions: &bytes,
            extra: upcall.extra,
            // What comes back of it stays in order behind what waits there.
            upcall_pid: Some(from.pid),
            probe: false,
        };
        let family = shared.kernel.families.packet;
        let mut message = execute(family, shared.dp, &request, 0);
        match self.train.push(&mut message) {
            Ok(_) => {
                let purpose = Purpose::Execute(from.place, actions.clone());
                self.purposes.push(purpose);
            }
            Err(error) => log_execute(shared, key, actions, &error.to_string()),
        }
    }

    fn put(&mut self, shared: &Shared, pending: Pending) {
        let Pending { flow, key, raw_key } = &pending;
        let encoded = match encode(shared, key, &flow.mask, &flow.actions, Some(raw_key)) {
            Ok(encoded) => encoded,
            Err(error) => return pending.log(shared, &error.to_string()),
        };
        let id = ufid_to_bytes(flow.ufid);
        let request = FlowPut {
            ufid: shared.features.ufid.then_some(&id),
            key: &encoded.key,
            mask: Some(&encoded.mask),
            actions: Some(&encoded.actions),
            create: true,
            replace: false,
            clear: false,
            probe: false,
        };
        let family = shared.kernel.families.flow;
        let mut message = flow::put(family, shared.dp, &request, 0);
        match self.train.push(&mut message) {
            Ok(_) => self.purposes.push(Purpose::Put(Box::new(pending))),
            Err(error) => pending.log(shared, &error.to_string()),
        }
    }

    /// Sends the train, and says what the kernel refused.
    fn send(&mut self, shared: &Shared, groups: &[Group<Item>]) {
        if self.train.is_empty() {
            return;
        }
        let purposes = &self.purposes;
        let outcome = self.socket.run(&mut self.train, |index, answer| {
            let (Answer::Outcome(Err(error)), Some(purpose)) = (answer, purposes.get(index)) else {
                return;
            };
            refused(shared, groups, purpose, &error);
        });
        if let Err(error) = outcome {
            let why = base::errno_text(&error);
            base::log_limited!(
                Warn,
                "dpif_netlink",
                (1, 5),
                "{}: packets could not be sent back ({why})",
                shared.display_name()
            );
            self.train.clear();
        }
        self.purposes.clear();
    }
}

/// The key of a packet: metadata as the kernel says, header fields as they are in the packet.
fn key_of(shared: &Shared, upcall: &Upcall<'_>) -> Option<FlowKey> {
    let said = decode_key(upcall.key).ok()?;
    let mut key = net_flow::metadata(&said);
    net_flow::extract(
        &mut Packet::from_frame(upcall.packet),
        &mut key,
        shared.vlan_limit(),
    );
    Some(key)
}

fn refused(shared: &Shared, groups: &[Group<Item>], purpose: &Purpose, error: &io::Error) {
    let why = base::errno_text(error);
    match purpose {
        // Another handler was faster, or the port went meanwhile.
        Purpose::Put(..) if number_of(error) == Some(errno::EEXIST) => {}
        _ if number_of(error) == Some(errno::ENODEV) => {}
        Purpose::Put(pending) => pending.log(shared, &why),
        Purpose::Execute((group, index), actions) => {
            let item = groups.get(*group).and_then(|group| group.items.get(*index));
            let upcall = item.and_then(Item::upcall);
            if let Some(key) = upcall.and_then(|upcall| key_of(shared, &upcall)) {
                log_execute(shared, &key, actions, &why);
            }
        }
    }
}

fn log_execute(shared: &Shared, key: &FlowKey, actions: &[Action], why: &str) {
    let names = PortNames::none();
    base::log_limited!(
        Warn,
        "dpif",
        (60, 5),
        "{}: execute {} failed ({why}) on packet {}",
        shared.display_name(),
        format_actions(actions, &names),
        format_flow(key, None, &names, FlowFormat::default())
    );
}

impl Pending {
    fn log(&self, shared: &Shared, why: &str) {
        let names = PortNames::none();
        base::log_limited!(
            Warn,
            "dpif",
            (60, 5),
            "{}: failed to put[create] ({why}) ufid:{} {}, actions:{}",
            shared.display_name(),
            self.flow.ufid,
            format_flow(
                &self.key,
                Some(&self.flow.mask),
                &names,
                FlowFormat::default()
            ),
            format_actions(&self.flow.actions, &names)
        );
    }
}
