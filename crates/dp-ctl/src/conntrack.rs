//! Tracked connections: `dump-conntrack`, `flush-conntrack`, `ct-stats-show`, limits of zones.

use std::fmt::Write as _;
use std::sync::Arc;

use dp_api::{Conntrack, Datapath, Error};
use dp_lang::connection::TcpState;
use dp_lang::text::{ConnectionFormat, format_connection, format_limits};
use dp_lang::{Connection, CtLimit};
use net_flow::CtMatch;
use net_flow::connection::zone_prefix;
use net_flow::text::KeyValues;
use net_flow::text::num::{str_to_u16, str_to_u32, whole_u64};

use crate::commands::{Call, INVALID, NO_ENTRY, Outcome, errno};

const UNSUPPORTED: &str = "Operation not supported";

/// Does `f` with a datapath's tracker; the kernel's word for why that failed.
fn with_tracker<T>(
    datapath: &Arc<dyn Datapath>,
    f: impl FnOnce(&dyn Conntrack) -> Result<T, Error>,
) -> Result<T, String> {
    let tracker = datapath.conntrack().ok_or(UNSUPPORTED)?;
    f(tracker).map_err(|error| errno(&error, NO_ENTRY))
}

/// Takes `zone=N` off the end of the operands.
fn last_zone<'o>(operands: &'o [&'o str]) -> (Option<u16>, &'o [&'o str]) {
    let Some((last, rest)) = operands.split_last() else {
        return (None, operands);
    };
    match last.strip_prefix("zone=").and_then(zone_prefix) {
        Some(zone) => (Some(zone), rest),
        None => (None, operands),
    }
}

impl Call<'_> {
    /// The datapath that the first operand names if it names one, or else the only one, and the
    /// operands after it.  With `most` operands the first must name one.
    fn named_or_only<'o>(
        &mut self,
        operands: &'o [&'o str],
        most: usize,
    ) -> Outcome<(Arc<dyn Datapath>, &'o [&'o str])> {
        if let Some((name, rest)) = operands.split_first()
            && self.exists(name)
        {
            return Ok((self.open(name)?, rest));
        }
        if operands.len() >= most {
            return self.fail_with("datapath not found", INVALID);
        }
        let (datapath, _) = self.optional_datapath(&[], 0)?;
        Ok((datapath, operands))
    }
}

pub(crate) fn dump(call: &mut Call<'_>) -> Outcome {
    let (zone, operands) = last_zone(call.operands);
    let (datapath, _) = call.named_or_only(operands, 1)?;
    let format = ConnectionFormat {
        verbose: call.options.more,
        statistics: call.options.statistics,
    };
    let mut text = String::new();
    let outcome = with_tracker(&datapath, |tracker| {
        tracker.visit(zone, &mut |connection| {
            text += &format_connection(&connection, format);
            text.push('\n');
            true
        })
    });
    call.print(text);
    match outcome {
        Ok(()) => Ok(()),
        Err(why) => call.fail_with("starting conntrack dump", &why),
    }
}

pub(crate) fn dump_expectations(call: &mut Call<'_>) -> Outcome {
    let (_, operands) = last_zone(call.operands);
    call.named_or_only(operands, 1)?;
    call.fail_with("starting conntrack expectations dump", UNSUPPORTED)
}

pub(crate) fn flush(call: &mut Call<'_>) -> Outcome {
    let mut words = call.operands;
    if let Some((name, rest)) = words.split_first()
        && call.exists(name)
    {
        words = rest;
    }
    let (zone, of) = match CtMatch::parse(words) {
        Ok(found) => found,
        Err(why) => return call.fail_with(&why, INVALID),
    };
    let (datapath, _) = call.named_or_only(call.operands, 7)?;
    match with_tracker(&datapath, |tracker| tracker.flush(zone, &of)) {
        Ok(()) => Ok(()),
        Err(why) => call.fail_with("failed to flush conntrack", &why),
    }
}

/// How many connections there are of a kind.
#[derive(Debug)]
struct Tally {
    total: u32,
    by_proto: [u32; 256],
    by_state: [u32; TcpState::ALL.len()],
}

impl Tally {
    const fn new() -> Self {
        Self {
            total: 0,
            by_proto: [0; 256],
            by_state: [0; TcpState::ALL.len()],
        }
    }

    fn count(&mut self, connection: &Connection) {
        self.total += 1;
        self.by_proto[usize::from(connection.proto)] += 1;
        if let Some(state) = connection.tcp_state() {
            self.by_state[state as usize] += 1;
        }
    }

    fn text(&self, verbose: bool) -> String {
        let mut text = format!("Connections Stats:\n    Total: {}\n", self.total);
        let mut named = 0;
        for (name, proto) in [
            ("TCP", 6),
            ("UDP", 17),
            ("UDPLITE", 136),
            ("SCTP", 132),
            ("ICMP", 1),
            ("DCCP", 33),
            ("IGMP", 2),
        ] {
            let count = self.by_proto[proto];
            named += count;
            if count == 0 {
                continue;
            }
            let _ = writeln!(text, "  {name}: {count}");
            if proto == 6 && verbose {
                text += &self.states();
            }
        }
        // ICMPv6 has a count of its own that is not shown.
        let other = self.total - named - self.by_proto[58];
        if other != 0 {
            let _ = writeln!(text, "  Other: {other}");
        }
        text
    }

    fn states(&self) -> String {
        let mut text = String::from("    Conn per TCP states:\n");
        for state in TcpState::ALL {
            let count = self.by_state[state as usize];
            if count != 0 {
                let _ = writeln!(text, "\t  [{}]={count}", state.name());
            }
        }
        text
    }
}

pub(crate) fn stats(call: &mut Call<'_>) -> Outcome {
    let mut verbose = call.options.more;
    let mut zone = None;
    let mut operands = call.operands;
    while let Some((last, rest)) = operands.split_last() {
        if last.starts_with("verbose") {
            verbose = true;
        } else if let (Some(found), _) = last_zone(operands) {
            zone = Some(found);
        } else {
            break;
        }
        operands = rest;
    }
    let (datapath, _) = call.named_or_only(operands, 1)?;
    let mut tally = Tally::new();
    let outcome = with_tracker(&datapath, |tracker| {
        tracker.visit(zone, &mut |connection| {
            tally.count(&connection);
            true
        })
    });
    if let Err(why) = outcome {
        return call.fail_with("starting conntrack dump", &why);
    }
    call.print(tally.text(verbose));
    Ok(())
}

/// The kernel's tracker does not tell of its buckets.
pub(crate) fn buckets(call: &mut Call<'_>) -> Outcome {
    let mut operands = call.operands;
    if let Some((last, rest)) = operands.split_last()
        && last.strip_prefix("gt=").and_then(zone_prefix).is_some()
    {
        operands = rest;
    }
    let (datapath, _) = call.named_or_only(operands, 1)?;
    if datapath.conntrack().is_none() {
        return call.fail_with("starting conntrack dump", UNSUPPORTED);
    }
    call.print("Command is available for UserSpace ConnTracker only.\n");
    Ok(())
}

/// A limit: `zone=N,limit=L`.
fn parse_limit(text: &str) -> Result<CtLimit, String> {
    let (mut zone, mut limit) = (None, None);
    for item in KeyValues::new(text) {
        let (key, value) = (item.key, item.value);
        if value.is_empty() {
            return Err(format!("field {key} missing value"));
        }
        let failed = |_| format!("failed to parse field {key}");
        match key {
            "zone" => zone = Some(str_to_u16(value, key).map_err(failed)?),
            "limit" => limit = Some(str_to_u32(value).map_err(failed)?),
            _ => return Err(format!("invalid zone limit field: {key}")),
        }
    }
    match (zone, limit) {
        (Some(zone), Some(limit)) => Ok(CtLimit {
            zone: Some(zone),
            limit,
            count: 0,
        }),
        _ => Err("failed to parse zone limit".to_owned()),
    }
}

/// Zones: `zone=N1,N2`.
fn parse_zones(text: &str) -> Result<Vec<Option<u16>>, String> {
    let Some(list) = text.strip_prefix("zone=") else {
        return Err(format!("invalid argument {text}"));
    };
    let zones = list.split(',').filter(|zone| !zone.is_empty());
    let zones = zones.map(|zone| zone_prefix(zone).map(Some).ok_or("invalid zone".to_owned()));
    zones.collect()
}

fn parse_limits(operands: &[&str]) -> Result<Vec<CtLimit>, String> {
    let mut limits = Vec::new();
    let mut rest = operands;
    if let Some((first, others)) = operands.split_first()
        && let Some(text) = first.strip_prefix("default=")
    {
        let limit = whole_u64(text, 10).and_then(|n| u32::try_from(n).ok());
        limits.push(CtLimit {
            zone: None,
            limit: limit.ok_or("invalid default limit")?,
            count: 0,
        });
        rest = others;
    }
    for text in rest {
        limits.push(parse_limit(text)?);
    }
    Ok(limits)
}

pub(crate) fn set_limits(call: &mut Call<'_>) -> Outcome {
    let (datapath, operands) = call.named_or_only(call.operands, usize::MAX)?;
    if operands.is_empty() {
        return call.fail_with("too few arguments", INVALID);
    }
    let limits = match parse_limits(operands) {
        Ok(limits) => limits,
        Err(why) => return call.fail_with(&why, INVALID),
    };
    match with_tracker(&datapath, |tracker| tracker.set_limits(&limits)) {
        Ok(()) => Ok(()),
        Err(why) => call.fail_with("failed to set conntrack limit", &why),
    }
}

pub(crate) fn delete_limits(call: &mut Call<'_>) -> Outcome {
    let (datapath, operands) = call.named_or_only(call.operands, 3)?;
    if operands.is_empty() {
        return call.fail_with("too few arguments", INVALID);
    }
    let (mut zones, rest) = match operands.split_first() {
        Some((&"default", rest)) => (vec![None], rest),
        _ => (Vec::new(), operands),
    };
    if let Some(text) = rest.first() {
        match parse_zones(text) {
            Ok(named) => zones.extend(named),
            Err(why) => return call.fail_with(&why, INVALID),
        }
    }
    match with_tracker(&datapath, |tracker| tracker.delete_limits(&zones)) {
        Ok(()) => Ok(()),
        Err(why) => call.fail_with("failed to delete conntrack limit", &why),
    }
}

pub(crate) fn get_limits(call: &mut Call<'_>) -> Outcome {
    let (datapath, operands) = call.named_or_only(call.operands, 2)?;
    let mut zones = Vec::new();
    if let Some(text) = operands.first() {
        zones.push(None);
        match parse_zones(text) {
            Ok(named) => zones.extend(named),
            Err(why) => return call.fail_with(&why, INVALID),
        }
    }
    match with_tracker(&datapath, |tracker| tracker.limits(&zones)) {
        Ok(limits) => {
            call.print(format_limits(&limits) + "\n");
            Ok(())
        }
        Err(why) => {
            let what = format!("failed to get conntrack limit {why}");
            call.fail_with(&what, &why)
        }
    }
}

#[cfg(test)]
mod tests {
    use net_flow::CtTuple;
    use net_flow::connection::Family;

    use super::*;

    #[test]
    fn limits_are_read() {
        let limit = |zone, limit| CtLimit {
            zone,
            limit,
            count: 0,
        };
        assert_eq!(
            parse_limits(&["default=5", "zone=0,limit=3", "limit=4,zone=9"]),
            Ok(vec![limit(None, 5), limit(Some(0), 3), limit(Some(9), 4)])
        );
        for (text, want) in [
            ("default=-x", "invalid default limit"),
            ("zone=1", "failed to parse zone limit"),
            ("zone=70000,limit=1", "failed to parse field zone"),
            ("zone=1,limit=x", "failed to parse field limit"),
            ("foo=1", "invalid zone limit field: foo"),
            ("zone=", "field zone missing value"),
        ] {
            assert_eq!(parse_limits(&[text]).unwrap_err(), want, "{text}");
        }
        assert_eq!(parse_zones("zone=1,2"), Ok(vec![Some(1), Some(2)]));
        assert_eq!(parse_zones("zone=x").unwrap_err(), "invalid zone");
        assert_eq!(parse_zones("1").unwrap_err(), "invalid argument 1");
    }

    #[test]
    fn connections_are_counted_by_protocol() {
        let mut tally = Tally::new();
        let none = CtTuple::default();
        for proto in [6, 17, 58, 47, 6] {
            let mut one = Connection::new(Family::V4, proto, none, none);
            if proto == 6 {
                one.info = dp_lang::connection::ProtoInfo::Tcp(
                    dp_lang::connection::TcpSide::default(),
                    dp_lang::connection::TcpSide {
                        state: TcpState::Established,
                        ..Default::default()
                    },
                );
            }
            tally.count(&one);
        }
        assert_eq!(
            tally.text(true),
            "Connections Stats:\n    Total: 5\n  TCP: 2\n    Conn per TCP states:\n\
             \t  [ESTABLISHED]=2\n  UDP: 1\n  Other: 1\n"
        );
    }
}
