//! Settings of tables.

use std::fmt::Write as _;

use net_flow::Names;

use crate::message::{Body, TableMod, Vacancy};
use crate::text::put_table;

/// `OFPTMPEF14_*` with their names.
const EVICTION_FLAGS: [(u32, &str); 3] = [(1, "OTHER"), (2, "IMPORTANCE"), (4, "LIFETIME")];

const fn switch(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn put_eviction_flags(out: &mut String, flags: Option<u32>) {
    let Some(flags) = flags else {
        out.push_str("(default)");
        return;
    };
    let named = EVICTION_FLAGS.iter().filter(|(bit, _)| flags & bit != 0);
    let mut names: Vec<String> = named.map(|(_, name)| (*name).to_owned()).collect();
    let rest = flags & !7;
    if rest != 0 || names.is_empty() {
        names.push(if rest == 0 {
            "0".to_owned()
        } else {
            format!("{rest:#x}")
        });
    }
    out.push_str(&names.join("|"));
}

fn put_mod(out: &mut String, m: &TableMod, names: &Names) {
    if m.table == 255 {
        out.push_str(" table_id: ALL_TABLES");
    } else {
        out.push_str(" table_id=");
        put_table(out, m.table, names);
    }
    if let Some(miss) = m.miss {
        let name = ["controller", "continue", "drop"][usize::from(miss.min(2))];
        let _ = write!(out, ", flow_miss_config={name}");
    }
    if let Some(eviction) = m.eviction {
        let _ = write!(out, ", eviction={}", switch(eviction));
    }
    if m.eviction_flags.is_some() {
        out.push_str("eviction_flags=");
        put_eviction_flags(out, m.eviction_flags);
    }
    match m.vacancy {
        None => {}
        Some(Vacancy::Off) => out.push_str(", vacancy=off"),
        Some(Vacancy::On { down, up, .. }) => {
            let _ = write!(out, ", vacancy=on vacancy:{down},{up}");
        }
    }
}

fn put_desc(out: &mut String, m: &TableMod, names: &Names) {
    out.push_str("\n  table ");
    put_table(out, m.table, names);
    let eviction = switch(m.eviction == Some(true));
    let _ = write!(out, ":\n   eviction={eviction} eviction_flags=");
    put_eviction_flags(out, m.eviction_flags);
    out.push_str("\n   vacancy=");
    match m.vacancy {
        Some(Vacancy::On { down, up, now }) => {
            let _ = write!(
                out,
                "on vacancy_down={down}% vacancy_up={up}% vacancy={now}%"
            );
        }
        _ => out.push_str("off"),
    }
    out.push('\n');
}

pub(super) fn put(out: &mut String, body: &Body, names: &Names) -> bool {
    match body {
        Body::TableMod(m) => put_mod(out, m, names),
        Body::TableDescReply(part) => {
            for entry in &part.entries {
                put_desc(out, entry, names);
            }
        }
        _ => return false,
    }
    true
}
