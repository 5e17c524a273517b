//! Lookups in flow tables.

use std::sync::Arc;

use net_flow::{FlowKey, Names, PortNo, slot};
use of_switch::TableMiss;
use of_wire::Action;
use of_wire::action::Controller;

use crate::ctx::{Ctx, Found, MAX_ACTIONS_SIZE, MAX_DEPTH, MAX_RESUBMITS, MAX_STACK, Position};
use crate::dependency::Lookup;
use crate::effect::Effect;
use crate::error::XlateError;
use crate::finish;
use crate::trace::{NodeId, NodeKind};
use crate::translation::Remark;
use crate::view::FragmentMode;
use crate::work::Work;

/// The switch's own table.
const INTERNAL_TABLE: u8 = 254;
/// The reason in a packet-in of a table miss that no rule asked for.
const IMPLICIT_MISS: u8 = 7;

/// A lookup to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query {
    pub(crate) table: u8,
    pub(crate) in_port: PortNo,
    /// A miss may go to the controllers.
    pub(crate) may_packet_in: bool,
    /// The table says what becomes of a miss.
    pub(crate) honor_miss: bool,
    /// The addresses and ports of the connection's first packet stand for the packet's own.
    pub(crate) by_connection: bool,
}

/// Fields that a fragment is looked up without.
struct Kept {
    src: u128,
    dst: u128,
    in_port: u128,
}

fn keep(key: &FlowKey) -> Kept {
    Kept {
        src: key.get(slot::TP_SRC),
        dst: key.get(slot::TP_DST),
        in_port: key.get(slot::IN_PORT),
    }
}

impl Ctx<'_> {
    /// Looks the packet up, in later tables too if the table's settings say so.  Returns
    /// what was found in which table.
    pub(crate) fn look_up(&mut self, query: &Query) -> (Found, u8) {
        let hide_ports = if self.flow.fragment() & 1 != 0 {
            match self.bridge.fragments {
                FragmentMode::NxMatch => false,
                FragmentMode::Normal => true,
                FragmentMode::Drop => {
                    self.count_lookup(query.table, true);
                    return (Found::Fragment, query.table);
                }
            }
        } else {
            false
        };
        let kept = keep(self.flow.key());
        self.flow.set(slot::IN_PORT, u128::from(query.in_port.0));
        if hide_ports {
            self.flow.set(slot::TP_SRC, 0);
            self.flow.set(slot::TP_DST, 0);
        }
        let answer = self.search(query);
        self.flow.set(slot::IN_PORT, kept.in_port);
        if hide_ports {
            self.flow.set(slot::TP_SRC, kept.src);
            self.flow.set(slot::TP_DST, kept.dst);
        }
        match answer {
            Ok(found) => found,
            Err((table, miss)) => (self.missed(query, table, miss), table),
        }
    }

    fn search(&mut self, query: &Query) -> Result<(Found, u8), (u8, TableMiss)> {
        let mut table = query.table;
        loop {
            if let Some(rule) = self.search_one(table, query.by_connection) {
                return Ok((rule, table));
            }
            if !query.honor_miss {
                return Err((table, TableMiss::Continue));
            }
            let view = self.bridge.tables.table(table);
            let miss = view.map_or(TableMiss::Drop, |t| t.miss());
            if miss != TableMiss::Continue || table + 1 >= INTERNAL_TABLE {
                return Err((table, miss));
            }
            table += 1;
        }
    }

    fn search_one(&mut self, table: u8, by_connection: bool) -> Option<Found> {
        let bridge = Arc::clone(&self.bridge);
        let view = bridge.tables.table(table)?;
        if by_connection {
            self.flow.swap_connection();
        }
        let (key, mask) = self.flow.parts();
        let rule = view.lookup(key, mask);
        self.dependencies.note_lookup(Lookup {
            bridge: bridge.id,
            table,
            priority: rule.map_or(i32::MIN, |r| r.priority),
            by_connection,
            ..Lookup::of(self.input.key, key, self.dependencies.last_changes())
        });
        if by_connection {
            self.flow.swap_connection();
        }
        self.count_lookup(table, rule.is_some());
        rule.map(|r| Found::Rule(Arc::clone(r)))
    }

    fn count_lookup(&mut self, table: u8, matched: bool) {
        if let Some(view) = self.bridge.tables.table(table) {
            let counters = Arc::clone(view.counters());
            self.effects.push(Effect::Table(counters, matched));
        }
    }

    fn missed(&mut self, query: &Query, table: u8, miss: TableMiss) -> Found {
        if !query.may_packet_in {
            return Found::NoPacketIn;
        }
        let to_controller = match miss {
            TableMiss::Continue | TableMiss::Controller => {
                let port = self.input_port();
                if port.is_none() {
                    let number = self.flow.in_port();
                    let text = format!("packet-in on unknown OpenFlow port {number}");
                    self.remarks.push(Remark {
                        is_error: true,
                        text,
                    });
                }
                port.is_some_and(|p| !p.flags.no_packet_in)
            }
            TableMiss::Default => self.bridge.tables.miss(table) == TableMiss::Controller,
            TableMiss::Drop => false,
        };
        if to_controller {
            Found::Miss
        } else {
            Found::NoPacketIn
        }
    }

    /// The actions that a lookup came to.
    pub(crate) fn actions_of(&mut self, found: &Found) -> Arc<[Action]> {
        match found {
            Found::Rule(rule) => Arc::clone(&rule.actions),
            Found::Miss => {
                let controller = Controller {
                    reason: IMPLICIT_MISS,
                    ..Controller::default()
                };
                Arc::from([Action::Controller(Box::new(controller))])
            }
            Found::NoPacketIn | Found::Fragment => Arc::from([]),
        }
    }

    /// Makes `found` the current rule.  Returns the position before and the trace's node
    /// to go back to.
    pub(crate) fn enter_table(
        &mut self,
        found: &Found,
        table: u8,
        shown: u8,
    ) -> (Position, NodeId) {
        let mut at = Position {
            table,
            cookie: 0,
            internal: true,
            table_miss: false,
            depth: self.at.depth,
            in_bucket: false,
        };
        if let Found::Rule(rule) = found {
            let mini = net_classifier::Rule::mini_match(&**rule);
            at.cookie = rule.cookie;
            at.internal = rule.table == INTERNAL_TABLE;
            at.table_miss = rule.priority == 0 && mini.mask().map() == 0;
            self.effects.push(Effect::Rule(Arc::clone(rule)));
        }
        let node = match &mut self.trace {
            Some(trace) => {
                let text = format!("{shown:2}. {}", found.text(&trace.names));
                trace.enter(NodeKind::Table, text)
            }
            None => NodeId::ROOT,
        };
        (std::mem::replace(&mut self.at, at), node)
    }

    /// Whether one more table lookup is allowed.
    pub(crate) fn has_resources(&mut self) -> bool {
        if self.at.depth >= MAX_DEPTH {
            self.warn(format!("over max translation depth {MAX_DEPTH}"));
            self.error = Some(XlateError::RecursionTooDeep);
        } else if self.resubmits >= MAX_RESUBMITS {
            self.warn(format!("over {MAX_RESUBMITS} resubmit actions"));
            self.error = Some(XlateError::TooManyResubmits);
        } else if finish::size(&self.out) > MAX_ACTIONS_SIZE {
            self.warn("resubmits yielded over 64 kB of actions".to_string());
            self.exit = true;
        } else if self.stack_size() >= MAX_STACK {
            self.warn("resubmits yielded over 64 kB of stack".to_string());
            self.error = Some(XlateError::StackTooDeep);
        } else {
            return true;
        }
        false
    }

    /// Whether the packet belongs to a connection whose first packet is known.
    fn may_swap_connection(&mut self) -> bool {
        // A rule may ask for this only if it matches valid connections, which all have one; so
        // that there is none matters alone.
        let is_known = self.flow.key().get(slot::CT_NW_PROTO) != 0 && self.flow.is_ip();
        if !is_known {
            self.flow.mark(slot::CT_NW_PROTO);
            self.warn("resubmit(ct) with non-tracked or non-IP packet!".to_owned());
        }
        is_known
    }

    fn stack_size(&self) -> usize {
        let bytes = self
            .stack
            .iter()
            .map(|i| usize::from(i.bits.div_ceil(8)) + 1);
        bytes.sum()
    }

    /// Looks the packet up in a table and carries out what is found there.  `nested` does
    /// so on a copy of the packet.
    pub(crate) fn go_to_table(&mut self, query: &Query, last: bool, nested: bool) {
        if !self.has_resources() || query.by_connection && !self.may_swap_connection() {
            return;
        }
        let deeper = u32::from(query.table <= self.at.table);
        let (found, table) = self.look_up(query);
        let (before, node) = self.enter_table(&found, table, query.table);
        self.resubmits += 1;
        self.at.depth += deeper;
        self.work.push(Work::EndTable(before, node));
        let actions = self.actions_of(&found);
        if nested {
            self.clone_packet(actions, last);
        } else {
            self.push_actions(actions, last);
        }
    }
}

impl Found {
    fn text(&self, names: &Names) -> String {
        match self {
            Self::Miss => "No match, and a \"packet-in\" is called for.".to_string(),
            Self::NoPacketIn => "No match.".to_string(),
            Self::Fragment => {
                "Packets are IP fragments and the fragment handling mode is \"drop\".".to_string()
            }
            Self::Rule(rule) => {
                let mut text = String::new();
                let full = rule.matching();
                net_flow::text::put_match(&mut text, &full, 32768, names);
                if !text.is_empty() {
                    text.push_str(", ");
                }
                text.push_str(&format!("priority {}", rule.priority));
                if rule.cookie != 0 {
                    text.push_str(&format!(", cookie {:#x}", rule.cookie));
                }
                text
            }
        }
    }
}
