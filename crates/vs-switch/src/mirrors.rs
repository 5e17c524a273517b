//! The mirrors of a bridge, as configured and as translation sees them.

use std::collections::BTreeSet;
use std::sync::Arc;

use net_flow::text::{KeyValues, apply_key};
use net_flow::{Formats, Match, Names, slot};
use of_xlate::{MAX_MIRRORS, Mirror, MirrorCounters, MirrorOutput, VlanSet};

use crate::bridge::Bridge;
use crate::config::MirrorConfig;

/// A mirror that can work.
#[derive(Debug)]
pub(crate) struct BridgeMirror {
    config: MirrorConfig,
    filter: Option<Match>,
    counters: Arc<MirrorCounters>,
}

/// Reads a filter: a flow without input port.
fn read_filter(text: &str, names: &Names) -> Result<Match, String> {
    let mut fields = Match::any();
    for item in KeyValues::new(text) {
        let key = item.key;
        match apply_key(&mut fields, key, item.value, names, &mut Formats::all()) {
            None => return Err(format!(": {text}: unknown field {key}")),
            Some(Err(error)) => return Err(format!(": {text}: {error}")),
            Some(Ok(())) => {}
        }
    }
    if fields.mask().get(slot::IN_PORT) != 0 {
        return Err(" due to in_port field.".to_owned());
    }
    Ok(fields)
}

impl Bridge {
    /// Takes over the configured mirrors; what one that stays has counted stays.
    pub(crate) fn set_mirrors(&mut self) {
        let mut old = std::mem::take(&mut self.mirrors);
        let mut names = Names::default();
        for (number, name) in &self.by_number {
            names.ports.insert(number.0, name);
        }
        let mut mirrors = Vec::new();
        for config in self.config.mirrors.iter().take(MAX_MIRRORS) {
            let same = old.iter().position(|m| m.config == *config);
            if let Some(same) = same {
                mirrors.push(old.swap_remove(same));
                continue;
            }
            let filter = config.filter.as_deref().map(|f| read_filter(f, &names));
            let filter = match filter.transpose() {
                Ok(filter) => filter,
                Err(why) => {
                    log::warn!(target: "ofproto_dpif_mirror", "filter is invalid{why}");
                    log::error!(target: "bridge",
                        "bridge {}: mirror {} configuration is invalid",
                        self.config.name, config.name);
                    continue;
                }
            };
            if config.output_port.is_none() && config.output_vlan.is_none() {
                log::error!(target: "bridge",
                    "bridge {}: mirror {} does not specify output; ignoring",
                    self.config.name, config.name);
                continue;
            }
            let known = old.iter().find(|m| m.config.name == config.name);
            let counters = known.map(|m| Arc::clone(&m.counters)).unwrap_or_default();
            mirrors.push(BridgeMirror {
                config: config.clone(),
                filter,
                counters,
            });
        }
        self.mirrors = mirrors;
    }

    pub(crate) fn has_mirrors(&self) -> bool {
        !self.mirrors.is_empty()
    }

    /// What each mirror has copied: name, packets, bytes.
    pub(crate) fn mirror_statistics(&self) -> Vec<(String, u64, u64)> {
        let counted = self.mirrors.iter().map(|mirror| {
            let [packets, bytes] = mirror.counters.read();
            (mirror.config.name.clone(), packets, bytes)
        });
        counted.collect()
    }

    pub(crate) fn view_mirrors(&self) -> Arc<[Mirror]> {
        let all = self.mirrors.iter();
        all.filter_map(|mirror| self.view_mirror(mirror)).collect()
    }

    fn view_mirror(&self, mirror: &BridgeMirror) -> Option<Mirror> {
        let config = &mirror.config;
        let bundle = |name: &String| self.ports.get(name).map(|p| p.bundle);
        let output = match (&config.output_port, config.output_vlan) {
            (Some(port), _) => MirrorOutput::Bundle(bundle(port)?),
            (None, vlan) => MirrorOutput::Vlan(vlan?),
        };
        let chosen = |names: &[String]| -> BTreeSet<u32> {
            if config.select_all {
                self.ports.values().map(|p| p.bundle).collect()
            } else {
                names.iter().filter_map(bundle).collect()
            }
        };
        let vlans = &config.select_vlans;
        Some(Mirror {
            name: config.name.as_str().into(),
            sources: chosen(&config.select_src_ports),
            destinations: chosen(&config.select_dst_ports),
            vlans: (!vlans.is_empty()).then(|| VlanSet::new(vlans.iter().copied())),
            filter: mirror.filter.clone(),
            output,
            snaplen: config.snaplen.unwrap_or(0),
            counters: Arc::clone(&mirror.counters),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_flow_without_input_port() {
        let names = Names::default();
        let icmp = read_filter("icmp", &names).expect("a filter");
        assert_eq!(icmp.key().get(slot::NW_PROTO), 1);
        let error = read_filter("invalid", &names).expect_err("no field");
        assert_eq!(error, ": invalid: unknown field invalid");
        let error = read_filter("in_port=1", &names).expect_err("an input port");
        assert_eq!(error, " due to in_port field.");
    }
}
