//! `dpif/show-dp-features` and `dpif/set-dp-features`.

use std::fmt::Write as _;

use base::Instant;
use dp_lang::Features;

use super::{Command, command};
use crate::switch::Switch;

pub(super) const COMMANDS: &[Command] = &[
    command("dpif/show-dp-features", "bridge", 1, 1, show),
    command(
        "dpif/set-dp-features",
        "[--force] bridge [feature [value]]",
        1,
        4,
        set,
    ),
];

/// Where a feature's value is.
enum Place {
    Flag(fn(&mut Features) -> &mut bool),
    Count(fn(&mut Features) -> &mut usize),
    /// A number that cannot be changed.
    Fixed(fn(&Features) -> u32),
}

use Place::{Count, Fixed, Flag};

/// A feature: the name by which it is set, the title under which it is shown.
struct Feature {
    name: &'static str,
    title: &'static str,
    place: Place,
}

const fn feature(name: &'static str, title: &'static str, place: Place) -> Feature {
    Feature { name, title, place }
}

/// All features, in the order in which they are shown.
const FEATURES: &[Feature] = &[
    feature(
        "masked_set_action",
        "Masked set action",
        Flag(|f| &mut f.masked_set),
    ),
    feature(
        "tnl_push_pop",
        "Tunnel push pop",
        Flag(|f| &mut f.tunnel_push_pop),
    ),
    feature("ufid", "Ufid", Flag(|f| &mut f.ufid)),
    feature("trunc", "Truncate action", Flag(|f| &mut f.trunc)),
    feature("clone", "Clone action", Flag(|f| &mut f.clone)),
    feature(
        "sample_nesting",
        "Sample nesting",
        Count(|f| &mut f.sample_nesting),
    ),
    feature(
        "ct_eventmask",
        "Conntrack eventmask",
        Flag(|f| &mut f.ct_eventmask),
    ),
    feature("ct_clear", "Conntrack clear", Flag(|f| &mut f.ct_clear)),
    feature(
        "max_hash_alg",
        "Max dp_hash algorithm",
        Fixed(|f| f.max_hash_algorithm),
    ),
    feature(
        "check_pkt_len",
        "Check pkt length action",
        Flag(|f| &mut f.check_pkt_len),
    ),
    feature(
        "ct_timeout",
        "Conntrack timeout policy",
        Flag(|f| &mut f.ct_timeout),
    ),
    feature(
        "explicit_drop_action",
        "Explicit Drop action",
        Flag(|f| &mut f.explicit_drop),
    ),
    feature(
        "lb_output_action",
        "Optimized Balance TCP mode",
        Flag(|f| &mut f.lb_output),
    ),
    feature(
        "ct_zero_snat",
        "Conntrack all-zero IP SNAT",
        Flag(|f| &mut f.ct_zero_snat),
    ),
    feature("add_mpls", "MPLS Label add", Flag(|f| &mut f.add_mpls)),
    feature("psample", "psample action", Flag(|f| &mut f.psample)),
    feature(
        "max_vlan_headers",
        "Max VLAN headers",
        Count(|f| &mut f.max_vlan_headers),
    ),
    feature(
        "max_mpls_depth",
        "Max MPLS depth",
        Count(|f| &mut f.max_mpls_depth),
    ),
    feature("recirc", "Recirc", Flag(|f| &mut f.recirc)),
    feature("ct_state", "CT state", Flag(|f| &mut f.ct_state)),
    feature("ct_zone", "CT zone", Flag(|f| &mut f.ct_zone)),
    feature("ct_mark", "CT mark", Flag(|f| &mut f.ct_mark)),
    feature("ct_label", "CT label", Flag(|f| &mut f.ct_label)),
    feature(
        "ct_state_nat",
        "CT state NAT",
        Flag(|f| &mut f.ct_state_nat),
    ),
    feature(
        "ct_orig_tuple",
        "CT orig tuple",
        Flag(|f| &mut f.ct_orig_tuple),
    ),
    feature(
        "ct_orig_tuple6",
        "CT orig tuple for IPv6",
        Flag(|f| &mut f.ct_orig_tuple6),
    ),
    feature(
        "nd_ext",
        "IPv6 ND Extension",
        Flag(|f| &mut f.nd_extensions),
    ),
];

impl Feature {
    /// Its value; flags in these words for "no" and "yes".
    fn value(&self, features: &Features, words: [&str; 2]) -> String {
        let mut features = *features;
        match self.place {
            Flag(place) => words[usize::from(*place(&mut features))].to_owned(),
            Count(place) => place(&mut features).to_string(),
            Fixed(place) => place(&features).to_string(),
        }
    }

    /// A line that shows what is used and what the datapath can do.
    fn line(&self, used: &Features, can: &Features) -> String {
        let value = |features| self.value(features, ["false", "true"]);
        let (name, title) = (self.name, self.title);
        let (used, can) = (value(used), value(can));
        format!("{name} ({title}) : [run time]:{used}, [boot time]:{can}\n")
    }

    /// Sets it in `used`, where that may not exceed `can` without force.  The text says why not.
    fn set(
        &self,
        used: &mut Features,
        can: &Features,
        value: &str,
        force: bool,
    ) -> Result<(), &'static str> {
        let mut can = *can;
        match self.place {
            Flag(place) => {
                let on = match value {
                    v if v.eq_ignore_ascii_case("true") => true,
                    v if v.eq_ignore_ascii_case("false") => false,
                    _ => return Err("Boolean value expected"),
                };
                if on && !*place(&mut can) && !force {
                    return Err("Can not enable features not supported by the datapath");
                }
                if on && force {
                    log::warn!(target: "ofproto_dpif",
                        "Enabling an unsupported feature is very dangerous");
                }
                *place(used) = on;
            }
            Count(place) => {
                let number: i64 = value.parse().map_err(|_| "Integer number expected")?;
                let number = usize::try_from(number).map_err(|_| "Negative number not expected")?;
                if number > *place(&mut can) {
                    return Err("Can not set value beyond the datapath capability");
                }
                *place(used) = number;
            }
            Fixed(_) => return Err("This feature cannot be set"),
        }
        Ok(())
    }
}

fn show(switch: &mut Switch, args: &[String], _now: Instant) -> Result<String, String> {
    let bridge = switch.bridge(&args[0])?;
    let features = &switch.backer_of(bridge)?.features;
    let mut text = String::new();
    for feature in FEATURES {
        let value = feature.value(features, ["No", "Yes"]);
        let _ = writeln!(text, "{}: {value}", feature.title);
    }
    Ok(text)
}

fn set(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    let force = args.iter().any(|arg| arg == "--force");
    let operands: Vec<&str> = args
        .iter()
        .map(|a| &a[..])
        .filter(|a| *a != "--force")
        .collect();
    let name = operands.first().ok_or("no such bridge")?;
    let kind = switch.bridge(name)?.kind.clone();
    let backer = switch.backers.get_mut(&kind).ok_or("no such bridge")?;
    let can = backer.datapath.features();
    let Some(wanted) = operands.get(1) else {
        let lines = FEATURES.iter().map(|f| f.line(&backer.features, &can));
        return Ok(lines.collect());
    };
    let Some(feature) = FEATURES.iter().find(|f| f.name == *wanted) else {
        return Ok("Unexpected support field".to_owned());
    };
    let Some(value) = operands.get(2) else {
        return Ok(feature.line(&backer.features, &can));
    };
    match feature.set(&mut backer.features, &can, value, force) {
        Ok(()) => {
            backer.changes.note_everything();
            backer.is_stale = true;
            switch.force_revalidation(now);
            Ok(String::new())
        }
        Err(why) => Ok(why.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_set_within_what_is_there() {
        let can = Features {
            clone: true,
            sample_nesting: 10,
            ..Features::default()
        };
        let mut used = can;
        let mut set = |name: &str, value: &str, force: bool| {
            let feature = FEATURES.iter().find(|f| f.name == name).unwrap();
            feature.set(&mut used, &can, value, force)
        };
        assert_eq!(set("clone", "false", false), Ok(()));
        assert_eq!(set("sample_nesting", "2", false), Ok(()));
        assert_eq!(set("psample", "TRUE", true), Ok(()));
        for (name, value, why) in [
            ("clone", "maybe", "Boolean value expected"),
            (
                "trunc",
                "true",
                "Can not enable features not supported by the datapath",
            ),
            (
                "sample_nesting",
                "11",
                "Can not set value beyond the datapath capability",
            ),
            ("sample_nesting", "-1", "Negative number not expected"),
            ("sample_nesting", "x", "Integer number expected"),
        ] {
            assert_eq!(set(name, value, false), Err(why));
        }
        let line = |name: &str| {
            let feature = FEATURES.iter().find(|f| f.name == name).unwrap();
            feature.line(&used, &can)
        };
        assert_eq!(
            line("clone"),
            "clone (Clone action) : [run time]:false, [boot time]:true\n"
        );
        assert_eq!(
            line("sample_nesting"),
            "sample_nesting (Sample nesting) : [run time]:2, [boot time]:10\n"
        );
        assert!(used.psample && !used.clone);
    }
}
