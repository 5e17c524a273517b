//! Tracked connections.

use net_flow::CtMatch;
use net_flow::text::num::str_to_u16;
use of_wire::message::{Body, CtFlush};

use super::{Ctl, Outcome, fatal};

pub(super) fn flush_zone(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let zone = match str_to_u16(&args[1], "zone_id") {
        Ok(zone) => zone,
        Err(text) => return fatal(text),
    };
    let mut conn = ctl.open(&args[0])?;
    ctl.must_succeed(&mut conn, Body::CtFlushZone(zone))
}

pub(super) fn flush(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let words: Vec<&str> = args[1..].iter().map(String::as_str).collect();
    let (zone, of) = match CtMatch::parse(&words) {
        Ok(found) => found,
        Err(text) => return fatal(format!("Failed to parse CT match: {text}")),
    };
    let mut conn = ctl.open(&args[0])?;
    let flush = CtFlush { zone, of };
    ctl.must_succeed(&mut conn, Body::CtFlush(Box::new(flush)))
}
