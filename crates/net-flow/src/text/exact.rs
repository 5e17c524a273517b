//! Flows of which every field that is named has one value.

use super::{KeyValues, PROTOCOLS, apply_field, apply_key, value};
use crate::field::Field;
use crate::formats::Formats;
use crate::matching::Match;
use crate::names::Names;
use crate::slot;

/// Reads the flow of one packet, such as `tcp,nw_src=10.0.0.1`: the fields that are named,
/// each with one value and only once, after the fields that they presuppose.
///
/// # Errors
/// What is wrong with which field.
pub fn exact_flow(text: &str, names: &Names) -> Result<Match, String> {
    let mut flow = Match::any();
    for item in KeyValues::new(text) {
        let (key, value) = (item.key, item.value);
        if let Some((_, _, proto)) = PROTOCOLS.iter().find(|(name, ..)| *name == key) {
            if flow.key().get(slot::ETH_TYPE) != 0 {
                return Err("Ethernet type set multiple times".to_owned());
            }
            if *proto != 0 && flow.key().get(slot::NW_PROTO) != 0 {
                return Err("network protocol set multiple times".to_owned());
            }
            let known = apply_key(&mut flow, key, value, names, &mut Formats::all());
            known.unwrap_or(Ok(()))?;
            continue;
        }
        let field = Field::by_name(key).ok_or_else(|| format!("unknown field {key}"))?;
        if !flow.meets_prerequisites(field) {
            return Err(format!("prerequisites not met for setting {key}"));
        }
        if flow.field(field).is_some_and(|(value, _)| value != 0) {
            return Err(format!("field {key} set multiple times"));
        }
        let parsed = value::parse_exact(field, value, names);
        parsed.map_err(|e| format!("bad value for {key} ({e})"))?;
        apply_field(&mut flow, field, value, names, &mut Formats::all())?;
    }
    Ok(flow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_one_value() {
        let flow = exact_flow("tcp,nw_src=10.0.0.1,in_port=3", &Names::default()).unwrap();
        assert_eq!(flow.key().get(slot::ETH_TYPE), 0x800);
        assert_eq!(flow.key().get(slot::NW_PROTO), 6);
        assert_eq!(flow.key().get(slot::NW_SRC), 0x0a00_0001);
        assert_eq!(flow.mask().get(slot::NW_SRC), 0xffff_ffff);
        assert_eq!(flow.mask().get(slot::NW_DST), 0);
    }

    #[test]
    fn faults_are_named() {
        let cases = [
            ("foo", "unknown field foo"),
            ("foo=3", "unknown field foo"),
            ("nw_src=1.2.3.4", "prerequisites not met for setting nw_src"),
            ("ip,arp", "Ethernet type set multiple times"),
            ("tcp,tp_src=1,tp_src=2", "field tp_src set multiple times"),
            (
                "ip,nw_dst=10.0.0.0/8",
                "bad value for nw_dst (10.0.0.0/8: wildcards not allowed here)",
            ),
            (
                "in_port=p9",
                "bad value for in_port (p9: invalid or unknown port for in_port)",
            ),
        ];
        for (text, fault) in cases {
            let error = exact_flow(text, &Names::default()).unwrap_err();
            assert_eq!(error, fault, "{text}");
        }
    }
}
