//! Actions that concern flow tables and rules.

use std::fmt::Write;

use net_flow::text::KeyValues;
use net_flow::text::num::{c_int, str_to_u16, str_to_u64};
use net_flow::text::value::{parse_port, put_alt_hex, put_port};
use net_flow::{Names, PortNo};

use super::output::parse_hex;
use super::text::{parse_table, put_table};
use super::{Action, Parser, WriteMetadata};

/// `resubmit(...)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resubmit {
    /// The input port to look up with; `PortNo::IN_PORT` leaves it.
    pub in_port: PortNo,
    /// The table; 255 is the table of the rule itself.
    pub table: u8,
    /// Look up with the connection's original direction in the packet's place.
    pub with_ct_orig: bool,
    /// Said in the form without table, which matters to bytes only.
    pub plain: bool,
}

/// `fin_timeout(...)`, in seconds, 0 for no change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FinTimeout {
    /// New idle timeout.
    pub idle: u16,
    /// New hard timeout.
    pub hard: u16,
}

/// `conjunction(ID,CLAUSE/N)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conjunction {
    /// The conjunctive match.
    pub id: u32,
    /// Which dimension this rule is, from 0.
    pub clause: u8,
    /// How many dimensions there are.
    pub n_clauses: u8,
}

pub(super) fn parse_resubmit(arg: &str, p: &Parser<'_>) -> Result<Action, String> {
    let mut parts = arg.split(',');
    let mut next = || parts.next().filter(|s| !s.is_empty());
    let in_port = match next() {
        Some(s) => {
            let port = parse_port(s, p.names);
            port.ok_or_else(|| format!("{s}: resubmit to unknown port"))?
        }
        None => PortNo::IN_PORT,
    };
    let table = match next() {
        Some(s) => {
            let table = parse_table(s, p.names);
            table.ok_or_else(|| format!("{s}: resubmit to unknown table"))?
        }
        None => 255,
    };
    let with_ct_orig = match next() {
        Some("ct") => true,
        Some(s) => return Err(format!("{s}: unknown parameter")),
        None => false,
    };
    if in_port == PortNo::IN_PORT && table == 255 {
        return Err(
            "at least one \"in_port\" or \"table\" must be specified on resubmit".to_owned(),
        );
    }
    Ok(Action::Resubmit(Resubmit {
        in_port,
        table,
        with_ct_orig,
        plain: false,
    }))
}

pub(super) fn put_resubmit(out: &mut String, a: Resubmit, names: &Names) {
    if a.in_port != PortNo::IN_PORT && a.table == 255 {
        out.push_str("resubmit:");
        return put_port(out, a.in_port, names);
    }
    out.push_str("resubmit(");
    if a.in_port != PortNo::IN_PORT {
        put_port(out, a.in_port, names);
    }
    out.push(',');
    if a.table != 255 {
        put_table(out, a.table, names);
    }
    out.push_str(if a.with_ct_orig { ",ct)" } else { ")" });
}

pub(super) fn parse_fin_timeout(arg: &str) -> Result<Action, String> {
    let mut a = FinTimeout { idle: 0, hard: 0 };
    for kv in KeyValues::new(arg) {
        match kv.key {
            "idle_timeout" => a.idle = str_to_u16(kv.value, kv.key)?,
            "hard_timeout" => a.hard = str_to_u16(kv.value, kv.key)?,
            key => return Err(format!("invalid key '{key}' in 'fin_timeout' argument")),
        }
    }
    Ok(Action::FinTimeout(a))
}

pub(super) fn put_fin_timeout(out: &mut String, a: FinTimeout) {
    out.push_str("fin_timeout(");
    if a.idle != 0 {
        let _ = write!(out, "idle_timeout={},", a.idle);
    }
    if a.hard != 0 {
        let _ = write!(out, "hard_timeout={},", a.hard);
    }
    if out.ends_with(',') {
        out.pop();
    }
    out.push(')');
}

pub(super) fn parse_conjunction(arg: &str) -> Result<Action, String> {
    let parts = || -> Option<(u32, u8, u8)> {
        let id = c_int(arg, 0)?;
        let rest = id.rest.trim_start().strip_prefix(',')?.trim_start();
        let clause = c_int(rest, 10)?;
        let rest = clause.rest.trim_start().strip_prefix('/')?.trim_start();
        let n = c_int(rest, 10)?;
        if !n.rest.trim_start().is_empty() {
            return None;
        }
        let id_value = if id.negative {
            (id.magnitude as u32).wrapping_neg()
        } else {
            id.magnitude as u32
        };
        Some((id_value, clause.magnitude as u8, n.magnitude as u8))
    };
    let (id, clause, n_clauses) =
        parts().ok_or("\"conjunction\" syntax is \"conjunction(id,i/n)\"")?;
    if n_clauses < 2 {
        return Err("conjunction must have at least 2 clauses".to_owned());
    }
    if n_clauses > 64 {
        return Err("conjunction must have at most 64 clauses".to_owned());
    }
    if clause < 1 {
        return Err("clause index must be positive".to_owned());
    }
    if clause > n_clauses {
        return Err("clause index must be less than or equal to number of clauses".to_owned());
    }
    Ok(Action::Conjunction(Conjunction {
        id,
        clause: clause - 1,
        n_clauses,
    }))
}

pub(super) fn parse_note(arg: &str) -> Result<Action, String> {
    let bytes = parse_hex(arg).ok_or("bad hex digit in `note' argument")?;
    Ok(Action::Note(bytes.into()))
}

pub(super) fn parse_write_metadata(arg: &str) -> Result<Action, String> {
    let (value, mask) = match arg.split_once('/') {
        Some((value, mask)) => (value, str_to_u64(mask)?),
        None => (arg, u64::MAX),
    };
    let value = str_to_u64(value)?;
    Ok(Action::WriteMetadata(WriteMetadata { value, mask }))
}

pub(super) fn put_write_metadata(out: &mut String, a: WriteMetadata) {
    out.push_str("write_metadata:");
    put_alt_hex(out, u128::from(a.value));
    if a.mask != u64::MAX {
        out.push('/');
        put_alt_hex(out, u128::from(a.mask));
    }
}
