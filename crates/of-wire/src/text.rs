//! Flows in text, as `ovs-ofctl` reads and prints them.

use std::fmt;
use std::fmt::Write;
use std::ops::Range;

#[cfg(test)]
use net_flow::Match;
use net_flow::field::Field;
use net_flow::text::num::{str_to_u16, str_to_u32, str_to_u64};
use net_flow::text::value::parse_port;
use net_flow::text::{KeyValue, KeyValues, apply_key, protocol_names};
use net_flow::types::eth_type;
use net_flow::{Formats, Names, PortNo, slot};

use crate::action::{Action, CheckParams, Parser, action_names, check};
use crate::error::ErrorCode;
use crate::message::{FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest};
use crate::of10_match::normalize_and_log;

pub use crate::action::parse_table;
pub(crate) use crate::action::put_table;

/// Why a flow cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowError {
    /// The text that the original prints too.
    pub message: String,
    /// The bytes of the flow that are wrong, where that is known.
    pub span: Option<Range<usize>>,
    /// What was perhaps meant.
    pub hint: Option<String>,
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl FlowError {
    fn plain(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            span: None,
            hint: None,
        }
    }

    fn at(message: String, span: Range<usize>) -> Self {
        Self {
            message,
            span: Some(span),
            hint: None,
        }
    }

    /// Lines that show `flow` with a mark under the part that is wrong, and the suggestion:
    /// what goes after the message for people.
    pub fn explain(&self, flow: &str) -> String {
        let mut out = String::new();
        let span = self
            .span
            .clone()
            .filter(|s| s.end <= flow.len() && s.start < s.end);
        if let Some(span) = span
            && flow.is_char_boundary(span.start)
            && flow.is_char_boundary(span.end)
            && !flow.contains('\n')
        {
            let before = flow[..span.start].chars().count();
            let under = flow[span].chars().count();
            let (gap, mark) = (" ".repeat(before), "^".repeat(under));
            let _ = writeln!(out, "  {flow}\n  {gap}{mark}");
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(out, "  {hint}");
        }
        out
    }
}

/// Which command a flow is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowCommand {
    /// This one.
    Fixed(FlowModCommand),
    /// The flow's first word may say: `add`, `delete`, `delete_strict`, `modify`,
    /// `modify_strict`; else add.
    FirstWord,
    /// It asks for statistics.
    Stats,
}

/// What a flow may say beside its match.
#[derive(Clone, Copy, Default)]
struct Allowed {
    out_port: bool,
    actions: bool,
    importance: bool,
    timeout: bool,
    priority: bool,
    flags: bool,
}

impl Allowed {
    const fn of(command: Option<FlowModCommand>) -> Self {
        let adds = matches!(command, Some(FlowModCommand::Add));
        let modifies = matches!(
            command,
            Some(FlowModCommand::Modify | FlowModCommand::ModifyStrict)
        );
        Self {
            out_port: !adds && !modifies,
            actions: adds || modifies,
            importance: adds,
            timeout: adds || modifies,
            priority: adds || modifies || matches!(command, Some(FlowModCommand::DeleteStrict)),
            flags: adds || modifies,
        }
    }
}

/// A flow that was read, and the formats in which it can be written.
#[derive(Clone, Debug)]
pub struct ParsedFlow {
    /// The flow; its table is 255 if the text does not say one.
    pub flow: FlowMod,
    /// The formats.
    pub formats: Formats,
}

/// Reads a flow, and logs what of its match can match nothing.
pub fn parse_flow(
    text: &str,
    command: FlowCommand,
    names: &Names,
) -> Result<ParsedFlow, FlowError> {
    let parsed = parse(text, command, names)?;
    normalize_and_log(&mut parsed.flow.matching.clone());
    Ok(parsed)
}

fn first_word(text: &str) -> (FlowModCommand, usize) {
    let start = text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len();
    let rest = &text[start..];
    let len = rest
        .find([',', ' ', '\t', '\r', '\n'])
        .unwrap_or(rest.len());
    let word = &rest[..len];
    // Any beginning of a command's name stands for it, in this order.
    let commands = [
        ("add", FlowModCommand::Add),
        ("delete", FlowModCommand::Delete),
        ("delete_strict", FlowModCommand::DeleteStrict),
        ("modify", FlowModCommand::Modify),
        ("modify_strict", FlowModCommand::ModifyStrict),
    ];
    let found = commands
        .into_iter()
        .find(|(name, _)| name.starts_with(word));
    found.map_or((FlowModCommand::Add, start), |(_, c)| (c, start + len))
}

fn parse(text: &str, command: FlowCommand, names: &Names) -> Result<ParsedFlow, FlowError> {
    let (command, skip) = match command {
        FlowCommand::Fixed(command) => (Some(command), 0),
        FlowCommand::Stats => (None, 0),
        FlowCommand::FirstWord => {
            let (command, skip) = first_word(text);
            (Some(command), skip)
        }
    };
    let allowed = Allowed::of(command);
    let mut flow = FlowMod::new(command.unwrap_or(FlowModCommand::Delete));
    flow.table = 255;
    let (match_text, actions_at) = if allowed.actions {
        let (end, start) =
            actions_span(text, skip).ok_or_else(|| FlowError::plain("must specify an action"))?;
        (&text[skip..end], Some(start))
    } else {
        (&text[skip..], None)
    };
    let modify = matches!(
        command,
        Some(FlowModCommand::Modify | FlowModCommand::ModifyStrict)
    );
    let mut reader = FlowReader {
        flow,
        command,
        allowed,
        names,
        formats: Formats::ANY,
    };
    for kv in KeyValues::new(match_text) {
        let span = kv.span.start + skip..kv.span.end + skip;
        reader.key(&kv).map_err(|message| {
            let mut error = FlowError::at(message, span);
            error.hint = suggest_key(&kv, allowed, &error.message);
            error
        })?;
    }
    reader.limit_ipv6();
    let FlowReader {
        mut flow,
        mut formats,
        ..
    } = reader;
    flow.new_cookie = match (command, flow.new_cookie) {
        (Some(FlowModCommand::Add), None) => Some(0),
        // A modify that finds no flow adds one, unless it searches by cookie.
        (_, None) if modify && flow.cookie_mask == 0 => Some(0),
        (_, cookie) => cookie,
    };
    if let Some(start) = actions_at {
        flow.actions = parse_actions(&text[start..], start, &flow, names, &mut formats)?;
    }
    Ok(ParsedFlow { flow, formats })
}

/// Where the match ends, and where the actions begin.
fn actions_span(text: &str, skip: usize) -> Option<(usize, usize)> {
    let end = skip + text[skip..].find("action")?;
    let equals = text[end + 1..].find('=')?;
    Some((end, end + 1 + equals + 1))
}

fn parse_actions(
    text: &str,
    start: usize,
    flow: &FlowMod,
    names: &Names,
    formats: &mut Formats,
) -> Result<Vec<Action>, FlowError> {
    let mut parser = Parser::new(names);
    let mut actions = parser.instructions(text).map_err(|e| {
        let mut error = FlowError::at(e.message, e.span.start + start..e.span.end + start);
        if let Some(name) = error.message.strip_prefix("unknown action ") {
            error.hint = suggest(name, action_names().iter().copied());
        }
        error
    })?;
    *formats &= parser.formats;
    let params = CheckParams {
        matching: &flow.matching,
        max_ports: PortNo::MAX.0,
        table: flow.table,
        n_tables: 255,
    };
    let checked = check(&mut actions, &params).and_then(|usable| {
        *formats &= usable;
        if formats.is_empty() {
            Err(ErrorCode::OfpbacMatchInconsistent)
        } else {
            Ok(())
        }
    });
    checked.map_err(|code| {
        let message = format!("actions are invalid with specified match ({code})");
        FlowError::at(message, start..start + text.trim_end().len())
    })?;
    Ok(actions)
}

struct FlowReader<'a> {
    flow: FlowMod,
    command: Option<FlowModCommand>,
    allowed: Allowed,
    names: &'a Names,
    formats: Formats,
}

impl FlowReader<'_> {
    fn key(&mut self, kv: &KeyValue<'_>) -> Result<(), String> {
        if self.allowed.flags && self.flag(kv.key) {
            return Ok(());
        }
        if matches!(kv.key, "no_readonly_table" | "allow_hidden_fields") {
            return Ok(());
        }
        let (m, formats) = (&mut self.flow.matching, &mut self.formats);
        if let Some(result) = apply_key(m, kv.key, kv.value, self.names, formats) {
            return result;
        }
        if kv.value.is_empty() {
            return Err(format!("field {} missing value", kv.key));
        }
        self.setting(kv.key, kv.value)
    }

    fn flag(&mut self, key: &str) -> bool {
        let (flag, formats) = match key {
            "send_flow_rem" => (FlowModFlags::SEND_FLOW_REM, Formats::ANY),
            "check_overlap" => (FlowModFlags::CHECK_OVERLAP, Formats::ANY),
            "reset_counts" => (FlowModFlags::RESET_COUNTS, Formats::OF12_UP),
            "no_packet_counts" => (FlowModFlags::NO_PKT_COUNTS, Formats::OF13_UP),
            "no_byte_counts" => (FlowModFlags::NO_BYT_COUNTS, Formats::OF13_UP),
            _ => return false,
        };
        self.flow.flags |= flag;
        self.formats &= formats;
        true
    }

    fn setting(&mut self, key: &str, value: &str) -> Result<(), String> {
        let (allowed, flow) = (self.allowed, &mut self.flow);
        match key {
            "table" => {
                let table = parse_table(value, self.names);
                flow.table = table.ok_or_else(|| format!("unknown table \"{value}\""))?;
                if flow.table != 255 {
                    self.formats &= Formats::TID_ANY;
                }
            }
            "out_port" if allowed.out_port => {
                let port = parse_port(value, self.names);
                flow.out_port =
                    port.ok_or_else(|| format!("{value} is not a valid OpenFlow port"))?;
            }
            "out_group" if allowed.out_port => {
                self.formats &= Formats::OF11_UP;
                let group = parse_group(value);
                flow.out_group =
                    group.ok_or_else(|| format!("{value} is not a valid OpenFlow group"))?;
            }
            "priority" if allowed.priority => flow.priority = str_to_u16(value, key)?,
            "idle_timeout" if allowed.timeout => flow.idle_timeout = str_to_u16(value, key)?,
            "hard_timeout" if allowed.timeout => flow.hard_timeout = str_to_u16(value, key)?,
            "importance" if allowed.importance => flow.importance = str_to_u16(value, key)?,
            "cookie" => self.cookie(value)?,
            // What dump-flows prints can be read back.
            "duration" | "n_packets" | "n_bytes" | "idle_age" | "hard_age" => {}
            _ => return Err(format!("unknown keyword {key}")),
        }
        Ok(())
    }

    fn cookie(&mut self, value: &str) -> Result<(), String> {
        let adds = self.command == Some(FlowModCommand::Add);
        if let Some((cookie, mask)) = value.split_once('/') {
            if adds {
                return Err("flow additions cannot use a cookie mask".to_owned());
            }
            self.flow.cookie = str_to_u64(cookie)?;
            self.flow.cookie_mask = str_to_u64(mask)?;
            if self.flow.cookie_mask != 0 {
                self.formats &= Formats::NXM_OF11_UP;
            }
            return Ok(());
        }
        let modifies = matches!(
            self.command,
            Some(FlowModCommand::Modify | FlowModCommand::ModifyStrict)
        );
        if !adds && !modifies {
            return Err(format!(
                "cannot set cookie (to match on a cookie, specify a mask, e.g. cookie={value}/-1)"
            ));
        }
        let cookie = str_to_u64(value)?;
        self.flow.modify_cookie = true;
        self.flow.new_cookie = (cookie != u64::MAX).then_some(cookie);
        Ok(())
    }

    /// Only extensible matches can match what is inside IPv6.
    fn limit_ipv6(&mut self) {
        let m = &self.flow.matching;
        let inside = [slot::NW_PROTO, slot::NW_TOS, slot::TP_SRC, slot::TP_DST];
        let any = inside.iter().any(|slot| m.mask().get(*slot) != 0);
        if m.eth_type() == eth_type::IPV6 && any {
            self.formats &= Formats::NXM_OXM_ANY;
        }
    }
}

/// The group that `s` numbers or names.
pub fn parse_group(s: &str) -> Option<u32> {
    match s.to_ascii_lowercase().as_str() {
        "all" => Some(0xffff_fffc),
        "any" => Some(u32::MAX),
        _ => str_to_u32(s).ok().filter(|id| *id <= 0xffff_ff00),
    }
}

/// Reads which flows' statistics are asked for.
pub fn parse_stats_request(
    text: &str,
    names: &Names,
) -> Result<(FlowStatsRequest, Formats), FlowError> {
    let parsed = parse(text, FlowCommand::Stats, names)?;
    let ParsedFlow {
        flow, mut formats, ..
    } = parsed;
    // Requests have a table id in every format, also in those whose flow-mods have none.
    for any in [Formats::OF10_STD_ANY, Formats::OF10_NXM_ANY] {
        if formats.intersects(any) {
            formats |= any;
        }
    }
    Ok((
        FlowStatsRequest {
            matching: flow.matching,
            cookie: flow.cookie,
            cookie_mask: flow.cookie_mask,
            out_port: flow.out_port,
            out_group: flow.out_group,
            table: flow.table,
            nicira: false,
        },
        formats,
    ))
}

fn suggest_key(kv: &KeyValue<'_>, allowed: Allowed, message: &str) -> Option<String> {
    if !message.starts_with("unknown keyword") && !message.starts_with("field ") {
        return None;
    }
    let settings: &[(&str, bool)] = &[
        ("table", true),
        ("cookie", true),
        ("out_port", allowed.out_port),
        ("out_group", allowed.out_port),
        ("priority", allowed.priority),
        ("idle_timeout", allowed.timeout),
        ("hard_timeout", allowed.timeout),
        ("importance", allowed.importance),
        ("send_flow_rem", allowed.flags),
        ("check_overlap", allowed.flags),
        ("reset_counts", allowed.flags),
        ("no_packet_counts", allowed.flags),
        ("no_byte_counts", allowed.flags),
    ];
    let settings = settings
        .iter()
        .filter(|(_, may)| *may)
        .map(|(name, _)| *name);
    let fields = Field::all()
        .iter()
        .flat_map(|f| [f.info().name, f.info().alias]);
    suggest(kv.key, settings.chain(protocol_names()).chain(fields))
}

/// A question whether the name that is most like `wrong` was meant, if one is like it.
fn suggest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let wrong = wrong.to_ascii_lowercase();
    let limit = wrong.len().div_ceil(3).min(3);
    let scored = names
        // A name of another length is that far away at least; a long text costs nothing.
        .filter(|n| !n.is_empty() && n.len().abs_diff(wrong.len()) <= limit)
        .map(|n| (distance(&wrong, n), n));
    let (best, name) = scored.min_by_key(|(d, _)| *d)?;
    (best <= limit).then(|| format!("did you mean \"{name}\"?"))
}

/// How many letters must be added, dropped, changed or swapped to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// A match alone.
#[cfg(test)]
pub(crate) fn parse_match(text: &str) -> Result<Match, String> {
    let mut m = Match::any();
    let mut formats = Formats::ANY;
    for kv in KeyValues::new(text) {
        apply_key(&mut m, kv.key, kv.value, &Names::default(), &mut formats)
            .unwrap_or_else(|| Err(format!("unknown keyword {}", kv.key)))?;
    }
    Ok(m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Dialect, Message, Version};

    fn flow(text: &str) -> Result<ParsedFlow, FlowError> {
        let command = FlowCommand::Fixed(FlowModCommand::Add);
        parse_flow(text, command, &Names::default())
    }

    #[test]
    fn translation_to_no_address_can_be_sent() {
        for (text, want) in [
            ("ct(commit,nat(src=0.0.0.0))", "ct(commit,nat(src))"),
            (
                "ct(commit,nat(src=10.0.0.1))",
                "ct(commit,nat(src=10.0.0.1))",
            ),
        ] {
            let flow = flow(&format!("ip,actions={text}")).unwrap().flow;
            let message = Message::new(Version::V13, 1, Body::FlowMod(Box::new(flow)));
            let dialect = Dialect::of(Version::V13);
            let read = Message::decode(&message.encode(dialect), dialect);
            let Ok(Body::FlowMod(read)) = read.map(|m| m.body) else {
                panic!("{text}");
            };
            let mut shown = String::new();
            crate::action::put_actions(&mut shown, &read.actions, &Names::default());
            assert_eq!(shown, want);
        }
    }

    #[test]
    fn requests_have_a_table_in_every_format() {
        let formats = |text: &str| parse_stats_request(text, &Names::default()).unwrap().1;
        assert_eq!(formats("table=1"), Formats::ANY);
        let ct = formats("table=1,ct_state=+trk+est");
        assert!(ct.contains(Formats::OF10_NXM) && !ct.intersects(Formats::OF10_STD_ANY));
    }

    #[test]
    fn flows_survive_every_dialect_that_can_say_them() {
        for text in [
            "tcp,nw_src=10.0.0.0/8,actions=output:1",
            "priority=5,in_port=1,dl_vlan=9,actions=strip_vlan,CONTROLLER:65535",
            "table=3,cookie=0x5,send_flow_rem,actions=resubmit(,4),NORMAL",
            "ip,actions=mod_nw_src:1.2.3.4,mod_nw_tos:4,dec_ttl,FLOOD",
            "actions=load:0x5->NXM_NX_REG0[],move:NXM_NX_REG0[]->NXM_NX_REG1[],LOCAL",
            "actions=learn(table=1,idle_timeout=5,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],\
             output:NXM_OF_IN_PORT[])",
            "ip,actions=ct(commit,zone=5,nat(src=10.0.0.1-10.0.0.5:5-10),exec(load:0x1->NXM_NX_CT_MARK[]))",
            "actions=write_metadata:0x5/0xff",
            "actions=goto_table:5",
            "actions=multipath(eth_src,50,modulo_n,1,0,NXM_NX_REG0[]),note:01.02",
            "actions=controller(reason=no_match,max_len=5,id=7,userdata=01.02,pause)",
            "actions=clone(output:1),sample(probability=5,collector_set_id=1,obs_domain_id=2,obs_point_id=3)",
        ] {
            let parsed = flow(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            for format in parsed.formats.iter() {
                let mut flow = parsed.flow.clone();
                let dialect = Dialect {
                    format,
                    ..Dialect::of(Version::V10)
                };
                if !dialect.has_table_id() && dialect.version() == Version::V10 {
                    flow.table = 255;
                } else if flow.table == 255 {
                    flow.table = 0;
                }
                let version = dialect.version();
                let message = Message::new(version, 1, Body::FlowMod(Box::new(flow.clone())));
                let bytes = message.encode(dialect);
                let back = Message::decode(&bytes, dialect);
                let back = back.unwrap_or_else(|e| panic!("{text} {format:?}: {e} {bytes:02x?}"));
                let again = back.encode(dialect);
                assert_eq!(again, bytes, "{text} {format:?}");
            }
        }
    }

    #[test]
    fn errors_point_and_suggest() {
        let e = flow("ip,nw_srx=1.2.3.4,actions=drop").unwrap_err();
        assert_eq!(e.message, "unknown keyword nw_srx");
        assert_eq!(
            e.explain("ip,nw_srx=1.2.3.4,actions=drop"),
            "  ip,nw_srx=1.2.3.4,actions=drop\n     ^^^^^^^^^^^^^^\n  did you mean \"nw_src\"?\n"
        );
        let e = flow("actions=ouput:1").unwrap_err();
        assert_eq!(e.message, "unknown action ouput");
        assert_eq!(e.hint.as_deref(), Some("did you mean \"output\"?"));
        assert_eq!(flow("ip").unwrap_err().message, "must specify an action");
    }
}
