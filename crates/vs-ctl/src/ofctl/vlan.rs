//! `check-vlan`: what becomes of a match on a VLAN in each form that it can be written in.

use net_flow::{Match, Names, slot};
use of_wire::message::FlowModCommand;
use of_wire::oxm::{MatchRules, match_text, put_match, read_match};
use of_wire::text::{FlowCommand, parse_flow};
use of_wire::{ErrorCode, Version, of10_match, of11_match};

use super::{Ctl, Outcome};

/// The VLAN id and the bit that says that there is one.
const VID_AND_PRESENT: u16 = 0x1fff;

/// Where a match of OpenFlow 1.0 or 1.1 has its parts.
struct Layout {
    wildcards: usize,
    /// The wildcard bits of id and priority.
    bits: [u32; 2],
    /// The id, two bytes; the priority follows.
    vid: usize,
}

const OF10: Layout = Layout {
    wildcards: 0,
    bits: [1 << 1, 1 << 20],
    vid: 18,
};
const OF11: Layout = Layout {
    wildcards: 8,
    bits: [1 << 1, 1 << 2],
    vid: 36,
};

/// The hexadecimal number that `text` begins with, as C's `strtoul` reads it.
fn leading_hex(text: &str) -> u16 {
    let text = text.trim_start();
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let value = digits.chars().map_while(|c| c.to_digit(16));
    value.fold(0u64, |n, digit| n.wrapping_mul(16) + u64::from(digit)) as u16
}

/// Value and mask of the VLAN tag.
fn tag(m: &Match) -> (u16, u16) {
    let (value, mask) = (m.key().get(slot::VLAN_TCI), m.mask().get(slot::VLAN_TCI));
    (value as u16, mask as u16)
}

fn tag_text(m: &Match) -> String {
    let (value, mask) = tag(m);
    format!("{value:04x}/{mask:04x}")
}

pub(super) fn check(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let (value, mask) = (leading_hex(&args[0]), leading_hex(&args[1]));
    let mut m = Match::any();
    m.set_masked(slot::VLAN_TCI, u128::from(value), u128::from(mask));

    let mut text = String::new();
    let names = Names::default();
    net_flow::text::put_match(&mut text, &m, 32768, &names);
    ctl.env.print(format_args!("{text} -> "));
    let command = FlowCommand::Fixed(FlowModCommand::Delete);
    let parsed = parse_flow(&text, command, &names);
    let parsed = parsed.map_err(|error| ctl.explain("", &error, &text))?;
    ctl.env
        .print(format_args!("{}\n", tag_text(&parsed.flow.matching)));

    let (nxm, read) = through_oxm(&m, 0);
    let read = read.map_or_else(|code| code.to_string(), |m| tag_text(&m));
    ctl.env.print(format_args!("NXM: {nxm} -> {read}\n"));
    let (oxm, read) = through_oxm(&m, Version::V12 as u8);
    let read = read.map_or_else(|code| code.to_string(), |m| id_and_priority(&m));
    ctl.env.print(format_args!("OXM: {oxm} -> {read}\n"));

    let mut bytes = Vec::new();
    of10_match::put(&mut bytes, &m);
    let line = through_fixed(&bytes, &OF10, of10_match::read(&bytes));
    ctl.env.print(format_args!("OF1.0: {line}\n"));
    bytes.clear();
    of11_match::put(&mut bytes, &m);
    let line = through_fixed(&bytes, &OF11, of11_match::read(&bytes));
    ctl.env.print(format_args!("OF1.1: {line}\n"));
    Ok(())
}

/// The text of a match as OXM of OpenFlow `version`, or NXM for 0, and what is read back.
fn through_oxm(m: &Match, version: u8) -> (String, Result<Match, ErrorCode>) {
    let mut bytes = Vec::new();
    put_match(&mut bytes, m, version, 0, 0);
    let rules = MatchRules {
        strict: true,
        cookie: version == 0,
        pipeline_only: false,
    };
    let read = read_match(&bytes, rules).map(|(m, ..)| m);
    (match_text(&bytes), read)
}

fn id_and_priority(m: &Match) -> String {
    let (value, mask) = tag(m);
    let (vid, vid_mask) = (value & VID_AND_PRESENT, mask & VID_AND_PRESENT);
    let priority = if vid != 0 && mask >> 13 != 0 {
        format!("{:02}", value >> 13)
    } else {
        "--".to_owned()
    };
    format!("{vid:04x}/{vid_mask:04x},{priority}")
}

/// Id and priority in a match of fixed form, each with whether it is any, and what is read back.
fn through_fixed(bytes: &[u8], layout: &Layout, read: Result<Match, ErrorCode>) -> String {
    let word = |at: usize| {
        bytes[at..]
            .first_chunk()
            .map_or(0, |b| u32::from_be_bytes(*b))
    };
    let wild = layout
        .bits
        .map(|bit| u8::from(word(layout.wildcards) & bit != 0));
    let vid_and_priority = word(layout.vid);
    let (vid, priority) = (vid_and_priority >> 16, vid_and_priority >> 8 & 0xff);
    let read = read.map_or_else(|code| code.to_string(), |m| tag_text(&m));
    format!("{vid:04x}/{},{priority:02x}/{} -> {read}", wild[0], wild[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Open vSwitch 3.7.1: value, mask, and id, priority and tag in OpenFlow 1.0 and 1.1.
    #[test]
    fn forms_of_fixed_length_are_as_recorded() {
        for (value, mask, of10, of11) in [
            (0, 0, "0000/1,00/1 -> 0000/0000", "0000/1,00/1 -> 0000/0000"),
            (
                0,
                0xffff,
                "ffff/0,00/0 -> 0000/ffff",
                "ffff/0,00/1 -> 0000/ffff",
            ),
            (
                0xb000,
                0xf000,
                "0000/1,05/0 -> b000/f000",
                "fffe/0,05/0 -> b000/f000",
            ),
            (
                0xbabc,
                0xffff,
                "0abc/0,05/0 -> babc/ffff",
                "0abc/0,05/0 -> babc/ffff",
            ),
            (
                0,
                0x0fff,
                "0000/0,00/1 -> 1000/1fff",
                "0000/0,00/1 -> 1000/1fff",
            ),
        ] {
            let mut m = Match::any();
            m.set_masked(slot::VLAN_TCI, value, mask);
            let mut bytes = Vec::new();
            of10_match::put(&mut bytes, &m);
            let line = through_fixed(&bytes, &OF10, of10_match::read(&bytes));
            assert_eq!(line, of10, "{value:04x}/{mask:04x}");
            bytes.clear();
            of11_match::put(&mut bytes, &m);
            let line = through_fixed(&bytes, &OF11, of11_match::read(&bytes));
            assert_eq!(line, of11, "{value:04x}/{mask:04x}");
        }
    }

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        for (text, number) in [
            ("1abc", 0x1abc),
            ("0xF000", 0xf000),
            ("g", 0),
            ("12 3", 0x12),
        ] {
            assert_eq!(leading_hex(text), number, "{text}");
        }
    }
}
