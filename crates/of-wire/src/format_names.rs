//! Names of flow formats, as `ovs-ofctl --flow-format` has them.

use net_flow::Formats;

const SINGLE: [(&str, Formats); 9] = [
    ("OpenFlow10-table_id", Formats::OF10_STD),
    ("OpenFlow10+table_id", Formats::OF10_STD_TID),
    ("NXM-table_id", Formats::OF10_NXM),
    ("NXM+table_id", Formats::OF10_NXM_TID),
    ("OpenFlow11", Formats::OF11_STD),
    ("OXM-OpenFlow12", Formats::OF12_OXM),
    ("OXM-OpenFlow13", Formats::OF13_OXM),
    ("OXM-OpenFlow14", Formats::OF14_OXM),
    ("OXM-OpenFlow15", Formats::OF15_OXM),
];

const SETS: [(&str, Formats); 4] = [
    ("any", Formats::ANY),
    ("OpenFlow10", Formats::OF10_STD_ANY),
    ("NXM", Formats::OF10_NXM_ANY),
    ("OXM", Formats::OXM_ANY),
];

/// The name of a single format, or of a set that has one.
pub fn format_name(format: Formats) -> Option<&'static str> {
    let mut all = SINGLE.iter().chain(&SETS);
    all.find(|(_, f)| *f == format).map(|(name, _)| *name)
}

/// The names that make up a set of formats, with commas between; `none` if it is empty.
pub fn formats_names(formats: Formats) -> String {
    if formats.is_empty() {
        return "none".to_owned();
    }
    let mut rest = formats;
    let mut names = Vec::new();
    for (name, format) in SETS.iter().chain(&SINGLE) {
        if rest.contains(*format) {
            names.push(*name);
            rest -= *format;
        }
    }
    names.join(",")
}

/// The formats that a list of names with commas between means; the error is a text.
pub fn formats_from_names(names: &str) -> Result<Formats, String> {
    let mut formats = Formats::empty();
    for name in names.split(',').filter(|s| !s.is_empty()) {
        let mut all = SINGLE.iter().chain(&SETS);
        let found = all.find(|(n, _)| n.eq_ignore_ascii_case(name));
        let (_, format) = found.ok_or_else(|| format!("{name}: unknown flow protocol"))?;
        formats |= *format;
    }
    if formats.is_empty() {
        return Err(format!("{names}: no flow protocol specified"));
    }
    Ok(formats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_named_by_their_largest_parts() {
        assert_eq!(formats_names(Formats::ANY), "any");
        assert_eq!(formats_names(Formats::NXM_OXM_ANY), "NXM,OXM");
        let some = Formats::OF10_ANY | Formats::OF13_OXM;
        assert_eq!(formats_names(some), "OpenFlow10,NXM,OXM-OpenFlow13");
        assert_eq!(formats_from_names("nxm,openflow10"), Ok(Formats::OF10_ANY));
        assert_eq!(
            formats_from_names("x").unwrap_err(),
            "x: unknown flow protocol"
        );
    }
}
