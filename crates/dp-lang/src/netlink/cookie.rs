//! What the switch writes into a `userspace` action: 48 bytes laid out as Open vSwitch 3.x does, so
//! that its tools show our flows and a switch of either make understands the other's.
//!
//! | offset | what |
//! |---|---|
//! | 0 | type, 16 bits |
//! | 4 | OpenFlow input port; not used here |
//! | 8 | id of the bridge; not used here |
//! | 24 | for a controller: two flags of a byte each, reason, 16 bits |
//! | 28 | for a controller: recirculation id; for the slow path: reasons; 32 bits |
//! | 32 | for a controller: the rule's cookie, 64 bits in network order |
//! | 40 | for a controller: its id and the longest packet, 16 bits each |
//!
//! Numbers are in this machine's order but for the rule's cookie.

use crate::action::{Controller, SlowPath, UserCookie};

const LEN: usize = 48;
const SLOW_PATH: u16 = 2;
const CONTROLLER: u16 = 5;

/// The bits of slow-path reasons.  Packets for controllers are no reason of their own any more.
const fn reasons(slow: SlowPath) -> u32 {
    slow.cfm as u32
        | (slow.bfd as u32) << 1
        | (slow.lacp as u32) << 2
        | (slow.stp as u32) << 3
        | (slow.lldp as u32) << 4
        | (slow.action as u32) << 5
        | (slow.match_ as u32) << 6
}

const fn slow_path(bits: u32) -> SlowPath {
    SlowPath {
        cfm: bits & 1 != 0,
        bfd: bits & 1 << 1 != 0,
        lacp: bits & 1 << 2 != 0,
        stp: bits & 1 << 3 != 0,
        lldp: bits & 1 << 4 != 0,
        controller: false,
        action: bits & 1 << 5 != 0,
        match_: bits & 1 << 6 != 0,
    }
}

/// The bytes of a cookie.
pub fn encode_cookie(cookie: &UserCookie) -> Vec<u8> {
    let mut bytes = vec![0; LEN];
    match cookie {
        UserCookie::Opaque(opaque) => return opaque.to_vec(),
        UserCookie::SlowPath(slow) => {
            bytes[..2].copy_from_slice(&SLOW_PATH.to_ne_bytes());
            bytes[28..32].copy_from_slice(&reasons(*slow).to_ne_bytes());
        }
        UserCookie::Controller(to) => {
            bytes[..2].copy_from_slice(&CONTROLLER.to_ne_bytes());
            bytes[24] = u8::from(to.dont_send);
            bytes[25] = u8::from(to.continuation);
            bytes[26..28].copy_from_slice(&u16::from(to.reason).to_ne_bytes());
            bytes[28..32].copy_from_slice(&to.recirc_id.to_ne_bytes());
            bytes[32..40].copy_from_slice(&to.rule_cookie.to_be_bytes());
            bytes[40..42].copy_from_slice(&to.controller_id.to_ne_bytes());
            bytes[42..44].copy_from_slice(&to.max_len.to_ne_bytes());
        }
    }
    bytes
}

fn at<const N: usize>(bytes: &[u8; LEN], offset: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[offset..offset + N]);
    part
}

/// What the bytes of a cookie say; opaque ones if it is nothing that the switch writes.
pub fn decode_cookie(bytes: &[u8]) -> UserCookie {
    let opaque = || UserCookie::Opaque(bytes.into());
    let Ok(bytes) = <&[u8; LEN]>::try_from(bytes) else {
        return opaque();
    };
    match u16::from_ne_bytes(at(bytes, 0)) {
        SLOW_PATH => UserCookie::SlowPath(slow_path(u32::from_ne_bytes(at(bytes, 28)))),
        CONTROLLER => {
            let Ok(reason) = u8::try_from(u16::from_ne_bytes(at(bytes, 26))) else {
                return opaque();
            };
            UserCookie::Controller(Controller {
                reason,
                dont_send: bytes[24] != 0,
                continuation: bytes[25] != 0,
                recirc_id: u32::from_ne_bytes(at(bytes, 28)),
                rule_cookie: u64::from_be_bytes(at(bytes, 32)),
                controller_id: u16::from_ne_bytes(at(bytes, 40)),
                max_len: u16::from_ne_bytes(at(bytes, 42)),
            })
        }
        _ => opaque(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_go_there_and_back() {
        let controller = Controller {
            reason: 1,
            dont_send: false,
            continuation: true,
            recirc_id: 0x1122_3344,
            rule_cookie: 0x0102_0304_0506_0708,
            controller_id: 9,
            max_len: 65535,
        };
        let slow = SlowPath {
            bfd: true,
            action: true,
            ..SlowPath::default()
        };
        for cookie in [
            UserCookie::Controller(controller),
            UserCookie::SlowPath(slow),
            UserCookie::Opaque([1, 2, 3].into()),
        ] {
            assert_eq!(decode_cookie(&encode_cookie(&cookie)), cookie);
        }
        let bytes = encode_cookie(&UserCookie::SlowPath(slow));
        assert_eq!(bytes[28..32], 0x22_u32.to_ne_bytes());
        let mut other = bytes;
        other[0] = 77;
        assert_eq!(
            decode_cookie(&other),
            UserCookie::Opaque(other.as_slice().into())
        );
    }
}
