//! Tables.

use std::fmt::Write;

use net_flow::Field;

use crate::message::{Body, TableCaps, TableFeatures, TableStats};
use crate::version::Version;

/// Actions of OpenFlow 1.1 and later by number, in the order in which they are listed.
pub(super) const ACTIONS: [(u32, &str); 25] = [
    (0, "output"),
    (22, "group"),
    (25, "set_field"),
    (1, "set_vlan_vid"),
    (2, "set_vlan_pcp"),
    (18, "strip_vlan"),
    (17, "push_vlan"),
    (3, "mod_dl_src"),
    (4, "mod_dl_dst"),
    (5, "mod_nw_src"),
    (6, "mod_nw_dst"),
    (7, "mod_nw_tos"),
    (8, "mod_nw_ecn"),
    (23, "mod_nw_ttl"),
    (9, "mod_tp_src"),
    (10, "mod_tp_dst"),
    (28, "move"),
    (24, "dec_ttl"),
    (13, "set_mpls_label"),
    (14, "set_mpls_tc"),
    (15, "set_mpls_ttl"),
    (16, "dec_mpls_ttl"),
    (19, "push_mpls"),
    (20, "pop_mpls"),
    (21, "set_queue"),
];

/// Actions of OpenFlow 1.0 by number, in that order.
const ACTIONS10: [(u32, &str); 12] = [
    (0, "output"),
    (11, "enqueue"),
    (1, "set_vlan_vid"),
    (2, "set_vlan_pcp"),
    (3, "strip_vlan"),
    (4, "mod_dl_src"),
    (5, "mod_dl_dst"),
    (6, "mod_nw_src"),
    (7, "mod_nw_dst"),
    (8, "mod_nw_tos"),
    (9, "mod_tp_src"),
    (10, "mod_tp_dst"),
];

/// The names of a set of actions as `version` numbers them.
pub(super) fn action_names(
    set: u32,
    version: Version,
) -> impl Iterator<Item = &'static str> + Clone {
    let all: &[_] = match version {
        Version::V10 => &ACTIONS10,
        _ => &ACTIONS,
    };
    let is_in = move |(bit, _): &&(u32, &str)| set >> bit & 1 != 0;
    all.iter().filter(is_in).map(|(_, name)| *name)
}

/// Instructions by number, in the order in which they are listed.
const INSTRUCTIONS: [(u32, &str); 6] = [
    (6, "meter"),
    (4, "apply_actions"),
    (5, "clear_actions"),
    (3, "write_actions"),
    (2, "write_metadata"),
    (1, "goto_table"),
];

/// The names of fields in the registry's order.
fn field_names(fields: &[Field]) -> Vec<&'static str> {
    let mut sorted = fields.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.iter().map(|f| f.info().name).collect()
}

/// Whether `b` is `a` with the number at the end one higher.
fn sequential(a: &str, b: &str) -> bool {
    let digits = |s: &str| s.len() - s.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (x, y) = (digits(a), digits(b));
    let number = |s: &str| s.parse::<u32>().ok();
    a[..x] == b[..y] && number(&a[x..]).is_some_and(|n| Some(n + 1) == number(&b[y..]))
}

/// How much of the beginning both names share, up to and with an underscore.
fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    a[..same].rfind('_').map_or(0, |at| at + 1)
}

/// Appends names, runs such as `reg0...reg31` and `tun_{id,src}` drawn together.
fn put_names(out: &mut String, names: &[&str], prefix: usize) {
    let mut rest = names;
    let mut first = true;
    while !rest.is_empty() {
        if !first {
            out.push(if prefix > 0 { ',' } else { ' ' });
        }
        first = false;
        let (prefix_run, extra) = prefix_run(rest, prefix);
        let steps = rest.windows(2).take_while(|w| sequential(w[0], w[1]));
        let suffix_run = match steps.count() + 1 {
            2 => 1,
            n => n,
        };
        let run = prefix_run.max(suffix_run);
        if suffix_run >= prefix_run {
            out.push_str(&rest[0][prefix..]);
            if run > 1 {
                let _ = write!(out, "...{}", &rest[run - 1][prefix..]);
            }
        } else {
            let _ = write!(out, "{}{{", &rest[0][prefix..prefix + extra]);
            put_names(out, &rest[..run], prefix + extra);
            out.push('}');
        }
        rest = &rest[run..];
    }
}

/// How many names share a longer beginning than `prefix`, and how much longer.
fn prefix_run(names: &[&str], prefix: usize) -> (usize, usize) {
    let [first, second, rest @ ..] = names else {
        return (names.len(), 0);
    };
    let mut extra = common_prefix(&first[prefix..], &second[prefix..]);
    if extra == 0 {
        return (1, 0);
    }
    let mut run = 2;
    for name in rest {
        let next = match name.get(prefix..) {
            Some(tail) => common_prefix(&first[prefix..], tail),
            None => 0,
        };
        if next == 0 {
            break;
        }
        extra = extra.min(next);
        run += 1;
    }
    (run, extra)
}

fn put_fields(out: &mut String, fields: &[Field]) {
    let names = field_names(fields);
    if !names.is_empty() {
        out.push(' ');
        put_names(out, &names, 0);
    }
}

fn put_action_caps(out: &mut String, actions: u32, set_fields: &[Field]) {
    let named = ACTIONS.iter().filter(|(n, _)| actions >> n & 1 != 0);
    let names: Vec<&str> = named.map(|(_, name)| *name).collect();
    if !names.is_empty() {
        let _ = writeln!(out, "        actions: {}", names.join(" "));
    }
    if !set_fields.is_empty() {
        out.push_str("        supported on Set-Field:");
        put_fields(out, set_fields);
        out.push('\n');
    }
}

fn put_caps(out: &mut String, caps: &TableCaps, before: Option<&TableCaps>) {
    let has = |table: usize| caps.next_tables[table / 64] >> (table % 64) & 1 != 0;
    if (0..255).any(has) {
        let mut ranges = Vec::new();
        let mut table = 0;
        while table < 255 {
            if !has(table) {
                table += 1;
                continue;
            }
            let end = (table..255).find(|t| !has(*t)).unwrap_or(255);
            ranges.push(if end == table + 1 {
                table.to_string()
            } else {
                format!("{table}-{}", end - 1)
            });
            table = end;
        }
        let _ = writeln!(out, "      next tables: {}", ranges.join(","));
    }
    if caps.instructions != 0 {
        if before.is_some_and(|b| b.instructions == caps.instructions) {
            out.push_str("      (same instructions)\n");
        } else {
            let named = INSTRUCTIONS
                .iter()
                .filter(|(n, _)| caps.instructions >> n & 1 != 0);
            let names: Vec<&str> = named.map(|(_, name)| *name).collect();
            let _ = writeln!(out, "      instructions: {}", names.join(" "));
        }
    }
    let same_as_before = before.is_some_and(|b| {
        (b.write_actions, &b.write_set_fields) == (caps.write_actions, &caps.write_set_fields)
            && (b.apply_actions, &b.apply_set_fields)
                == (caps.apply_actions, &caps.apply_set_fields)
    });
    let same =
        caps.write_actions == caps.apply_actions && caps.write_set_fields == caps.apply_set_fields;
    if same_as_before && !caps.write_set_fields.is_empty() {
        out.push_str("      (same actions)\n");
    } else if !same {
        out.push_str("      Write-Actions features:\n");
        put_action_caps(out, caps.write_actions, &caps.write_set_fields);
        out.push_str("      Apply-Actions features:\n");
        put_action_caps(out, caps.apply_actions, &caps.apply_set_fields);
    } else if caps.write_actions != 0 || !caps.write_set_fields.is_empty() {
        out.push_str("      Write-Actions and Apply-Actions features:\n");
        put_action_caps(out, caps.write_actions, &caps.write_set_fields);
    }
}

/// Whether two tables' capabilities are the same, apart from a table's own place: the tables
/// that both could go to are compared, and each may leave out those up to itself.
fn same_caps(a: &TableCaps, a_table: u8, b: &TableCaps, b_table: u8) -> bool {
    let has = |caps: &TableCaps, t: u8| caps.next_tables[usize::from(t) / 64] >> (t % 64) & 1 != 0;
    let next = (0..=254u8).all(|t| {
        let (x, y) = (has(a, t), has(b, t));
        x == y || (t > a_table.min(b_table) && t <= a_table.max(b_table))
    });
    let rest = |c: &TableCaps| TableCaps {
        next_tables: [0; 4],
        ..c.clone()
    };
    next && rest(a) == rest(b)
}

fn same_features(a: &TableFeatures, b: &TableFeatures) -> bool {
    (a.metadata_match, a.metadata_write, a.config, a.max_entries)
        == (b.metadata_match, b.metadata_write, b.config, b.max_entries)
        && same_caps(&a.nonmiss, a.table, &b.nonmiss, b.table)
        && same_caps(&a.miss, a.table, &b.miss, b.table)
        && (&a.match_fields, &a.mask_fields, &a.wildcard_fields)
            == (&b.match_fields, &b.mask_fields, &b.wildcard_fields)
}

struct Printer<'a> {
    out: &'a mut String,
    version: Version,
    /// The first and last of tables that are as the one before.
    ditto: Option<(u8, u8)>,
}

impl Printer<'_> {
    fn finish(&mut self) {
        let Some((first, last)) = self.ditto.take() else {
            return;
        };
        let _ = if first == last {
            writeln!(self.out, "\n  table {first}: ditto")
        } else {
            writeln!(self.out, "\n  tables {first}...{last}: ditto")
        };
    }

    fn table(
        &mut self,
        f: &TableFeatures,
        before: Option<&TableFeatures>,
        stats: Option<&TableStats>,
        stats_before: Option<&TableStats>,
    ) {
        let same_stats = stats.is_none_or(|s| {
            stats_before.is_some_and(|b| {
                (b.active_count, b.lookup_count, b.matched_count)
                    == (s.active_count, s.lookup_count, s.matched_count)
            })
        });
        let same = before.is_some_and(|b| same_features(f, b));
        if same_stats && same && f.name.is_empty() {
            let first = self.ditto.map_or(f.table, |(first, _)| first);
            self.ditto = Some((first, f.table));
            return;
        }
        self.finish();
        let _ = write!(self.out, "\n  table {}", f.table);
        if !f.name.is_empty() {
            let _ = write!(self.out, " (\"{}\")", f.name);
        }
        if same_stats && same {
            self.out.push_str(": ditto");
            return;
        }
        self.out.push_str(":\n");
        if let Some(s) = stats {
            let _ = writeln!(
                self.out,
                "    active={}, lookup={}, matched={}",
                s.active_count, s.lookup_count, s.matched_count
            );
        }
        let empty = TableFeatures {
            table: f.table,
            name: f.name.clone(),
            ..TableFeatures::default()
        };
        if !same {
            self.features(f, before, stats.is_none());
        } else if *f != empty {
            self.out.push_str("    (same features)\n");
        }
    }

    fn features(&mut self, f: &TableFeatures, before: Option<&TableFeatures>, features: bool) {
        let out = &mut *self.out;
        if f.metadata_match != 0 || f.metadata_write != 0 {
            out.push_str("    metadata: match=");
            net_flow::text::value::put_alt_hex(out, u128::from(f.metadata_match));
            out.push_str(" write=");
            net_flow::text::value::put_alt_hex(out, u128::from(f.metadata_write));
            out.push('\n');
        }
        let miss = ["controller", "continue", "drop"];
        if (self.version == Version::V11 || self.version == Version::V12)
            && let Some(miss) = miss.get(f.config as usize & 3)
        {
            let _ = writeln!(out, "    config={miss}");
        }
        if self.version >= Version::V14 && features {
            for (bit, name) in [(1, "eviction"), (2, "vacancy events")] {
                let not = if f.config & bit != 0 { "" } else { "not " };
                let _ = writeln!(out, "    {name}: {not}supported");
            }
        }
        if f.max_entries != 0 {
            let _ = writeln!(out, "    max_entries={}", f.max_entries);
        }
        let none = TableCaps::default();
        let nonmiss_empty = f.nonmiss == none;
        let same_instructions = before.is_some_and(|b| {
            same_caps(&f.nonmiss, f.table, &b.nonmiss, b.table)
                && same_caps(&f.miss, f.table, &b.miss, b.table)
        });
        let nonmiss_before = before.map(|b| &b.nonmiss);
        if same_instructions {
            if !nonmiss_empty {
                out.push_str("    (same instructions)\n");
            }
        } else if f.nonmiss != f.miss {
            out.push_str("    instructions (other than table miss):\n");
            put_caps(out, &f.nonmiss, nonmiss_before);
            out.push_str("    instructions (table miss):\n");
            put_caps(out, &f.miss, before.map(|b| &b.miss));
        } else if !nonmiss_empty {
            out.push_str("    instructions (table miss and others):\n");
            put_caps(out, &f.nonmiss, nonmiss_before);
        }
        self.matching(f, before);
    }

    fn matching(&mut self, f: &TableFeatures, before: Option<&TableFeatures>) {
        let out = &mut *self.out;
        if f.match_fields.is_empty() {
            return;
        }
        if before.is_some_and(|b| b.match_fields == f.match_fields) {
            out.push_str("    (same matching)\n");
            return;
        }
        out.push_str("    matching:\n");
        for (mask, wild, title) in [
            (true, true, "arbitrary mask"),
            (false, true, "exact match or wildcard"),
            (false, false, "must exact match"),
        ] {
            let fits = |field: &&Field| {
                f.mask_fields.contains(field) == mask && f.wildcard_fields.contains(field) == wild
            };
            let fields: Vec<Field> = f.match_fields.iter().filter(fits).copied().collect();
            if !fields.is_empty() {
                let _ = write!(out, "      {title}:");
                put_fields(out, &fields);
                out.push('\n');
            }
        }
    }
}

/// The text of table features that came in any number of messages.
pub fn table_features_text(tables: &[TableFeatures], version: Version) -> String {
    let mut out = String::new();
    let mut printer = Printer {
        out: &mut out,
        version,
        ditto: None,
    };
    let mut before = None;
    for f in tables {
        printer.table(f, before, None, None);
        before = Some(f);
    }
    printer.finish();
    out
}

pub(super) fn put(out: &mut String, body: &Body, version: Version) -> bool {
    let mut printer = Printer {
        out,
        version,
        ditto: None,
    };
    match body {
        Body::TableStatsReply(part) => {
            let mut before: Option<&(TableFeatures, TableStats)> = None;
            for entry in &part.entries {
                let (f, s) = entry;
                printer.table(f, before.map(|b| &b.0), Some(s), before.map(|b| &b.1));
                before = Some(entry);
            }
            printer.finish();
        }
        Body::TableFeaturesRequest(part) | Body::TableFeaturesReply(part) => {
            let mut before = None;
            for f in &part.entries {
                printer.table(f, before, None, None);
                before = Some(f);
            }
            printer.finish();
        }
        _ => return false,
    }
    true
}
