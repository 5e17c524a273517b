//! Whether and how fast a switch answers.

use net_flow::text::num::c_int;
use of_wire::Message;
use of_wire::message::Body;

use super::conn::xid_of;
use super::{Ctl, Outcome, fatal};

/// Bytes that an echo carries at most.
const MAX_PAYLOAD: usize = 65535 - 8;

fn number(text: &str) -> usize {
    c_int(text, 10).map_or(0, |n| n.magnitude as usize)
}

fn payload_size(text: Option<&String>, default: usize) -> Outcome<usize> {
    let size = text.map_or(default, |text| number(text));
    if size > MAX_PAYLOAD {
        return fatal(format!("payload must be between 0 and {MAX_PAYLOAD} bytes"));
    }
    Ok(size)
}

pub(super) fn probe(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let mut conn = ctl.open(&args[0])?;
    let reply = ctl.transact(&mut conn, Body::EchoRequest(Vec::new()))?;
    if reply.len() != 8 {
        return fatal("reply does not match request");
    }
    Ok(())
}

pub(super) fn ping(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let size = payload_size(args.get(1), 64)?;
    let mut conn = ctl.open(&args[0])?;
    // What the bytes are does not matter, as long as they differ.
    let payload: Vec<u8> = (0..size).map(|i| (i * 31 + 7) as u8).collect();
    for _ in 0..10 {
        let start = ctl.clock.now();
        let reply = ctl.transact(&mut conn, Body::EchoRequest(payload.clone()))?;
        let elapsed = ctl.clock.now().since(start);
        let back = Message::decode(&reply, conn.dialect).map(|m| m.body);
        if back != Ok(Body::EchoReply(payload.clone())) {
            let text = ctl.show(&args[0], &reply, 2)?;
            ctl.env.print(format_args!(
                "Reply does not match request.  Reply:\n{text}"
            ));
        }
        ctl.env.print(format_args!(
            "{} bytes from {}: xid={:08x} time={:.1} ms\n",
            reply.len() - 8,
            args[0],
            xid_of(&reply),
            elapsed.as_secs_f64() * 1000.0
        ));
    }
    Ok(())
}

pub(super) fn benchmark(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let size = payload_size(args.get(1), 0)?;
    let count = number(&args[2]);
    let message = size + 8;
    ctl.env.print(format_args!(
        "Sending {count} packets * {message} bytes (with header) = {} bytes total\n",
        count * message
    ));
    let mut conn = ctl.open(&args[0])?;
    let start = ctl.clock.now();
    for _ in 0..count {
        ctl.transact(&mut conn, Body::EchoRequest(vec![0; size]))?;
    }
    let seconds = ctl.clock.now().since(start).as_secs_f64();
    ctl.env.print(format_args!(
        "Finished in {:.1} ms ({:.0} packets/s) ({:.0} bytes/s)\n",
        seconds * 1000.0,
        count as f64 / seconds,
        (count * message) as f64 / seconds
    ));
    Ok(())
}
