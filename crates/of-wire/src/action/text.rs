//! Lists of actions in text: which name is which action.

use std::fmt::Write;

use net_flow::text::KeyValues;
use net_flow::text::num::{str_to_u8, str_to_u16, str_to_u32, str_to_u64};
use net_flow::text::value::{parse_port, put_port};
use net_flow::{Formats, Names};

use super::check::{Outer, verify_text};
use super::{
    Action, Output, conntrack, encap, field, flow_table, hash, header, learn, output, sample,
};

/// How deep lists may nest.
const MAX_DEPTH: u32 = 100;

/// Reads actions from text, and notes in which formats they can be written.
#[derive(Debug)]
pub struct Parser<'a> {
    /// Names that ports and tables may be called by.
    pub names: &'a Names,
    /// The formats in which everything read so far can be written.
    pub formats: Formats,
    depth: u32,
}

/// An error in a list of actions: its text, and where in the list it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListError {
    /// The text.
    pub message: String,
    /// Bytes of the list that it is about; all of it if it is about no single action.
    pub span: std::ops::Range<usize>,
}

impl<'a> Parser<'a> {
    /// A parser that has read nothing.
    pub const fn new(names: &'a Names) -> Self {
        Self {
            names,
            formats: Formats::ANY,
            depth: 0,
        }
    }

    /// Reads actions, without instructions.
    pub fn actions(&mut self, text: &str) -> Result<Vec<Action>, ListError> {
        self.list(text, false, None)
    }

    /// Reads actions and instructions.
    pub fn instructions(&mut self, text: &str) -> Result<Vec<Action>, ListError> {
        self.list(text, true, None)
    }

    /// Reads the list inside another action.
    pub(super) fn nested(&mut self, text: &str, outer: Outer) -> Result<Vec<Action>, String> {
        self.list(text, false, Some(outer)).map_err(|e| e.message)
    }

    fn list(
        &mut self,
        text: &str,
        instructions: bool,
        outer: Option<Outer>,
    ) -> Result<Vec<Action>, ListError> {
        let whole = |message: String| ListError {
            message,
            span: 0..text.len(),
        };
        if self.depth >= MAX_DEPTH {
            return Err(whole("Action nested too deeply".to_owned()));
        }
        self.depth += 1;
        let mut actions = Vec::new();
        let mut drop = false;
        for kv in KeyValues::new(text) {
            if kv.key.eq_ignore_ascii_case("drop") {
                drop = true;
                continue;
            }
            let parsed = self.one(kv.key, kv.value);
            if kv.key.eq_ignore_ascii_case("meter") && !instructions {
                self.formats &= Formats::OF15_OXM;
            }
            actions.push(parsed.map_err(|message| ListError {
                message,
                span: kv.span.clone(),
            })?);
        }
        self.depth -= 1;
        if drop && !actions.is_empty() {
            return Err(whole(
                "\"drop\" must not be accompanied by any other action or instruction".to_owned(),
            ));
        }
        verify_text(&actions, instructions, outer).map_err(whole)?;
        Ok(actions)
    }

    fn one(&mut self, key: &str, arg: &str) -> Result<Action, String> {
        let lower = key.to_ascii_lowercase();
        if let Some(result) = self.forwarding(&lower, arg) {
            return result;
        }
        if let Some(result) = header::parse(&lower, arg, self) {
            return result;
        }
        if let Some(result) = self.pipeline(&lower, arg) {
            return result;
        }
        if lower == "apply_actions" {
            return Err("apply_actions is the default instruction".to_owned());
        }
        match parse_port(key, self.names) {
            Some(port) => Ok(Action::Output(Output { port, max_len: 0 })),
            None => Err(format!("unknown action {key}")),
        }
    }

    fn forwarding(&mut self, name: &str, arg: &str) -> Option<Result<Action, String>> {
        Some(match name {
            "output" | "output_reg" => output::parse_output(arg, self),
            "output_trunc" => Err(format!("unknown action {arg}")),
            "group" => str_to_u32(arg).map(Action::Group),
            "controller" => output::parse_controller(arg),
            "enqueue" => output::parse_enqueue(arg, self),
            "bundle" => hash::parse_bundle(arg, false, self),
            "bundle_load" => hash::parse_bundle(arg, true, self),
            "multipath" => hash::parse_multipath(arg),
            "set_queue" => str_to_u32(arg).map(Action::SetQueue),
            "pop_queue" => Ok(Action::PopQueue),
            "check_pkt_larger" => output::parse_check_pkt_larger(arg),
            "sample" => sample::parse(arg, self),
            _ => return None,
        })
    }

    fn pipeline(&mut self, name: &str, arg: &str) -> Option<Result<Action, String>> {
        Some(match name {
            "set_field" => field::parse_set_field(arg, self),
            "load" => field::parse_load(arg),
            "move" => field::parse_move(arg),
            "push" => field::parse_stack(arg).map(Action::StackPush),
            "pop" => field::parse_stack(arg).map(Action::StackPop),
            "delete_field" => field::parse_delete(arg),
            "set_tunnel" => str_to_u64(arg).map(|id| Action::SetTunnel { id, wide: false }),
            "set_tunnel64" => str_to_u64(arg).map(|id| Action::SetTunnel { id, wide: true }),
            "fin_timeout" => flow_table::parse_fin_timeout(arg),
            "resubmit" => flow_table::parse_resubmit(arg, self),
            "conjunction" => flow_table::parse_conjunction(arg),
            "learn" => learn::parse(arg, self),
            "note" => flow_table::parse_note(arg),
            "exit" => Ok(Action::Exit),
            "unroll_xlate" => {
                Err("UNROLL is an internal action that shouldn't be used via OpenFlow".to_owned())
            }
            "ct" => conntrack::parse_ct(arg, self),
            "ct_clear" => Ok(Action::CtClear),
            "nat" => conntrack::parse_nat(arg),
            "clone" => self.nested(arg, Outer::Clone).map(Action::Clone),
            "encap" => encap::parse_encap(arg, self),
            "decap" => encap::parse_decap(arg),
            "dec_nsh_ttl" => Ok(Action::DecNshTtl),
            "debug_recirc" => Ok(Action::DebugRecirc),
            "debug_slow" => Ok(Action::DebugSlow),
            "meter" => {
                self.formats &= Formats::OF13_UP;
                str_to_u32(arg).map(Action::Meter)
            }
            "clear_actions" => Ok(Action::ClearActions),
            "write_actions" => self
                .nested(arg, Outer::WriteActions)
                .map(Action::WriteActions),
            "write_metadata" => {
                self.formats &= Formats::NXM_OF11_UP;
                flow_table::parse_write_metadata(arg)
            }
            "goto_table" => parse_table(arg, self.names)
                .map(Action::GotoTable)
                .ok_or_else(|| format!("unknown table \"{arg}\"")),
            _ => return None,
        })
    }
}

/// The table that `s` numbers or names.
pub fn parse_table(s: &str, names: &Names) -> Option<u8> {
    if s.starts_with('-') {
        log::warn!(target: "ofp_table", "Negative value {s} is not a valid table number.");
        return None;
    }
    if let Some(number) = net_flow::text::num::whole_i64(s, 10) {
        let table = u8::try_from(number).ok();
        if table.is_none() {
            log::warn!(target: "ofp_table",
                "table {number} is outside the supported range 0 through 255");
        }
        return table;
    }
    let name = s.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    let table = names.tables.number(name.unwrap_or(s))?;
    u8::try_from(table).ok()
}

/// Appends a table: its name if there is one, or its number.
pub(crate) fn put_table(out: &mut String, table: u8, names: &Names) {
    if let Some(name) = names.tables.name(u32::from(table)) {
        net_flow::names::put_name(out, name);
    } else {
        let _ = write!(out, "{table}");
    }
}

/// Appends the actions with commas between, `drop` if there is none.
pub fn put_actions(out: &mut String, actions: &[Action], names: &Names) {
    if actions.is_empty() {
        out.push_str("drop");
    }
    for (i, action) in actions.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        put(out, action, names);
    }
}

fn put(out: &mut String, action: &Action, names: &Names) {
    if header::put(out, action) || put_forwarding(out, action, names) {
        return;
    }
    let _ = match action {
        Action::SetField(a) => return field::put_set_field(out, a, names),
        Action::Move(a) => return field::put_move(out, a),
        Action::StackPush(a) => return field::put_stack(out, "push", *a),
        Action::StackPop(a) => return field::put_stack(out, "pop", *a),
        Action::DeleteField(a) => write!(out, "delete_field:{}", a.info().name),
        Action::Encap(a) => return encap::put_encap(out, a),
        Action::Decap(a) => return encap::put_decap(out, *a),
        Action::DecNshTtl => write!(out, "dec_nsh_ttl"),
        Action::SetTunnel { id, wide } => {
            let wide = if *wide || *id > u64::from(u32::MAX) {
                "64"
            } else {
                ""
            };
            let _ = write!(out, "set_tunnel{wide}:");
            net_flow::text::value::put_alt_hex(out, u128::from(*id));
            return;
        }
        Action::FinTimeout(a) => return flow_table::put_fin_timeout(out, *a),
        Action::Resubmit(a) => return flow_table::put_resubmit(out, *a, names),
        Action::Conjunction(a) => {
            write!(
                out,
                "conjunction({},{}/{})",
                a.id,
                u32::from(a.clause) + 1,
                a.n_clauses
            )
        }
        Action::Learn(a) => return learn::put(out, a, names),
        Action::Note(bytes) => {
            out.push_str("note:");
            return output::put_dotted_hex(out, bytes);
        }
        Action::Exit => write!(out, "exit"),
        Action::UnrollXlate { table, cookie } => {
            out.push_str("unroll_xlate(table=");
            put_table(out, *table, names);
            write!(out, ", cookie={cookie})")
        }
        Action::Ct(a) => return conntrack::put_ct(out, a, names),
        Action::CtClear => write!(out, "ct_clear"),
        Action::Nat(a) => return conntrack::put_nat(out, a),
        Action::Clone(list) => return put_nested(out, "clone", list, names),
        Action::DebugRecirc => write!(out, "debug_recirc"),
        Action::DebugSlow => write!(out, "debug_slow"),
        Action::Meter(id) => write!(out, "meter:{id}"),
        Action::ClearActions => write!(out, "clear_actions"),
        Action::WriteActions(list) => return put_nested(out, "write_actions", list, names),
        Action::WriteMetadata(a) => return flow_table::put_write_metadata(out, *a),
        Action::GotoTable(table) => {
            out.push_str("goto_table:");
            return put_table(out, *table, names);
        }
        _ => Ok(()),
    };
}

fn put_nested(out: &mut String, name: &str, list: &[Action], names: &Names) {
    out.push_str(name);
    out.push('(');
    put_actions(out, list, names);
    out.push(')');
}

fn put_forwarding(out: &mut String, action: &Action, names: &Names) -> bool {
    let _ = match action {
        Action::Output(a) => {
            output::put_output(out, *a, names);
            Ok(())
        }
        Action::OutputTrunc(a) => {
            out.push_str("output(port=");
            put_port(out, a.port, names);
            write!(out, ",max_len={})", a.max_len)
        }
        Action::OutputReg(a) => {
            out.push_str("output:");
            net_flow::text::subfield::put(out, a.src);
            Ok(())
        }
        Action::Group(id) => write!(out, "group:{id}"),
        Action::Controller(a) => {
            output::put_controller(out, a);
            Ok(())
        }
        Action::Enqueue(a) => {
            out.push_str("enqueue:");
            put_port(out, a.port, names);
            write!(out, ":{}", a.queue)
        }
        Action::Bundle(a) => {
            hash::put_bundle(out, a, names);
            Ok(())
        }
        Action::Multipath(a) => {
            hash::put_multipath(out, a);
            Ok(())
        }
        Action::SetQueue(id) => write!(out, "set_queue:{id}"),
        Action::PopQueue => write!(out, "pop_queue"),
        Action::CheckPktLarger(a) => {
            let _ = write!(out, "check_pkt_larger({})->", a.pkt_len);
            net_flow::text::subfield::put(out, a.dst);
            Ok(())
        }
        Action::Sample(a) => {
            sample::put(out, a, names);
            Ok(())
        }
        _ => return false,
    };
    true
}

/// The names that actions can begin with, for suggestions.
pub fn action_names() -> &'static [&'static str] {
    &[
        "output",
        "group",
        "controller",
        "enqueue",
        "bundle",
        "bundle_load",
        "multipath",
        "set_queue",
        "pop_queue",
        "check_pkt_larger",
        "sample",
        "set_field",
        "load",
        "move",
        "push",
        "pop",
        "delete_field",
        "set_tunnel",
        "set_tunnel64",
        "fin_timeout",
        "resubmit",
        "conjunction",
        "learn",
        "note",
        "exit",
        "ct",
        "ct_clear",
        "nat",
        "clone",
        "encap",
        "decap",
        "dec_nsh_ttl",
        "meter",
        "clear_actions",
        "write_actions",
        "write_metadata",
        "goto_table",
        "drop",
        "set_vlan_vid",
        "set_vlan_pcp",
        "mod_vlan_vid",
        "mod_vlan_pcp",
        "strip_vlan",
        "pop_vlan",
        "push_vlan",
        "mod_dl_src",
        "mod_dl_dst",
        "mod_nw_src",
        "mod_nw_dst",
        "mod_nw_tos",
        "mod_nw_ecn",
        "mod_nw_ttl",
        "set_nw_ttl",
        "mod_tp_src",
        "mod_tp_dst",
        "dec_ttl",
        "set_mpls_label",
        "set_mpls_tc",
        "set_mpls_ttl",
        "dec_mpls_ttl",
        "push_mpls",
        "pop_mpls",
        "in_port",
        "normal",
        "flood",
        "all",
        "local",
    ]
}

/// As C's `atoi`: the number at the beginning, 0 if there is none.
pub(super) fn atoi(s: &str) -> i64 {
    let n = net_flow::text::num::c_int(s, 10);
    n.map_or(0, |n| {
        let value = n.magnitude as i64;
        if n.negative {
            value.wrapping_neg()
        } else {
            value
        }
    })
}

/// A 16-bit number below `1 << bits`.
pub(super) fn limited_u16(arg: &str, name: &str, max: u16) -> Result<u16, String> {
    let value = str_to_u16(arg, name)?;
    if value > max {
        return Err(format!("{arg}: not a valid {name}"));
    }
    Ok(value)
}

/// An 8-bit number that has only bits of `mask`.
pub(super) fn masked_u8(arg: &str, name: &str, mask: u8) -> Result<u8, String> {
    let value = str_to_u8(arg, name)?;
    if value & !mask != 0 {
        return Err(format!("{arg}: not a valid {name}"));
    }
    Ok(value)
}
