//! The database: one table of nine columns of all kinds.

use std::fmt::Write as _;

/// How many columns the table has.
pub(super) const COLUMNS: usize = 9;

/// How many atoms a row has, `_uuid` and `_version` apart.
pub(super) const ATOMS: usize = 13;

/// How large the database is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) rows: usize,
}

/// The schema; a later version has one more column.
pub(super) fn schema(converted: bool) -> String {
    let (version, more) = if converted {
        ("2.0.0", ",\"more\":{\"type\":\"string\"}")
    } else {
        ("1.0.0", "")
    };
    let set = "\"min\":0,\"max\":\"unlimited\"";
    format!(
        "{{\"name\":\"Bench\",\"version\":\"{version}\",\"tables\":{{\"Port\":{{\"isRoot\":true,\
         \"indexes\":[[\"name\"]],\"columns\":{{\
         \"name\":{{\"type\":\"string\"}},\
         \"host\":{{\"type\":\"string\"}},\
         \"mac\":{{\"type\":\"string\"}},\
         \"ip\":{{\"type\":\"string\"}},\
         \"key\":{{\"type\":\"integer\"}},\
         \"up\":{{\"type\":\"boolean\"}},\
         \"tag\":{{\"type\":{{\"key\":\"integer\",\"min\":0,\"max\":1}}}},\
         \"nets\":{{\"type\":{{\"key\":\"string\",{set}}}}},\
         \"ids\":{{\"type\":{{\"key\":\"string\",\"value\":\"string\",{set}}}}}\
         {more}}}}}}}}}"
    )
}

/// The row with number `n` as JSON.
pub(super) fn row(n: usize) -> String {
    let (a, b, c) = (n >> 16 & 255, n >> 8 & 255, n & 255);
    format!(
        "{{\"name\":\"p{n:06}\",\"host\":\"h{n:06}\",\
         \"mac\":\"0a:00:00:{a:02x}:{b:02x}:{c:02x}\",\"ip\":\"10.{a}.{b}.{c}\",\
         \"key\":{n},\"up\":true,\"tag\":{},\"nets\":[\"set\",[\"n{}\",\"o{}\"]],\
         \"ids\":[\"map\",[[\"a\",\"i{n:05}\"],[\"b\",\"z{}\"]]]}}",
        n % 4094 + 1,
        n % 1000,
        n % 500,
        n % 10
    )
}

fn insert(n: usize) -> String {
    format!(
        "{{\"op\":\"insert\",\"table\":\"Port\",\"row\":{}}}",
        row(n)
    )
}

/// The parameters of a transaction that inserts rows.
pub(super) fn insert_rows(numbers: std::ops::Range<usize>) -> String {
    let mut params = String::from("[\"Bench\"");
    for n in numbers {
        let _ = write!(params, ",{}", insert(n));
    }
    params.push(']');
    params
}

/// The parameters of a transaction that finds a row by a column without an index.
pub(super) fn update_by_host(n: usize, key: usize) -> String {
    format!(
        "[\"Bench\",{{\"op\":\"update\",\"table\":\"Port\",\
         \"where\":[[\"host\",\"==\",\"h{n:06}\"]],\"row\":{{\"key\":{key}}}}}]"
    )
}

/// The parameters of `monitor_cond` for everything.
pub(super) const MONITOR: &str = "[\"Bench\",\"m\",{\"Port\":[{}]}]";
