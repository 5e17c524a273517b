//! The difference between what is and what is desired, as steps.  Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vs_switch::config::{PortConfig, Step};

use crate::desired::{Desired, DesiredBridge};

/// Where the desired state may differ from the present one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Whether the settings of the switch as a whole may.
    pub settings: bool,
    /// Bridges whose settings may, with the names of the ports that may.
    pub bridges: BTreeMap<String, BTreeSet<String>>,
}

impl Dirty {
    /// Everything of either state.
    pub fn all(current: &Desired, desired: &Desired) -> Self {
        let mut dirty = Self {
            settings: true,
            ..Self::default()
        };
        for (name, bridge) in current.bridges.iter().chain(&desired.bridges) {
            let ports = dirty.bridges.entry(name.clone()).or_default();
            ports.extend(bridge.ports.keys().cloned());
        }
        dirty
    }

    /// Notes a port.
    pub fn port(&mut self, bridge: &str, port: &str) {
        let ports = self.bridges.entry(bridge.to_string()).or_default();
        ports.insert(port.to_string());
    }

    /// Notes all that `other` has.
    pub fn join(&mut self, other: Self) {
        self.settings |= other.settings;
        for (bridge, ports) in other.bridges {
            self.bridges.entry(bridge).or_default().extend(ports);
        }
    }
}

/// The steps that turn `current` into `desired` where `dirty` says that they may differ.
/// Removals come first, so that a device can move from one bridge to another; what stays
/// the same is not touched.
pub fn plan(current: &Desired, desired: &Desired, dirty: &Dirty) -> Vec<Step> {
    let mut steps = Vec::new();
    if dirty.settings && current.settings != desired.settings {
        steps.push(Step::Settings(desired.settings.clone()));
    }
    let (mut changes, mut additions) = (Vec::new(), Vec::new());
    for (name, ports) in &dirty.bridges {
        match (current.bridges.get(name), desired.bridges.get(name)) {
            (None, None) => {}
            (Some(_), None) => steps.push(Step::DelBridge(name.clone())),
            (Some(old), Some(new)) if is_same_bridge(old, new) => {
                remove_ports(name, ports, &old.ports, &new.ports, &mut steps);
                if old.config != new.config {
                    changes.push(Step::SetBridge((*new.config).clone()));
                }
                add_ports(name, ports.iter(), &old.ports, &new.ports, &mut additions);
            }
            (old, Some(new)) => {
                if old.is_some() {
                    steps.push(Step::DelBridge(name.clone()));
                }
                changes.push(Step::AddBridge((*new.config).clone()));
                add_ports(
                    name,
                    new.ports.keys(),
                    &Ports::new(),
                    &new.ports,
                    &mut additions,
                );
            }
        }
    }
    // Ports that ask for a number, or had one, have it before another is given it by chance.
    additions.sort_by_key(claim_on_number);
    steps.append(&mut changes);
    steps.append(&mut additions);
    steps
}

/// 0 if the step is about a port that asks for its number, 1 if about one that had one.
fn claim_on_number(step: &Step) -> u8 {
    let (Step::AddPort { port, .. } | Step::SetPort { port, .. }) = step else {
        return 2;
    };
    let claims = port
        .interfaces
        .values()
        .map(|i| match (i.ofport_request, i.former_number.0) {
            (Some(_), _) => 0,
            (None, Some(_)) => 1,
            (None, None) => 2,
        });
    claims.min().unwrap_or(2)
}

/// A bridge keeps its identity as long as its datapath type stays.
fn is_same_bridge(current: &DesiredBridge, wanted: &DesiredBridge) -> bool {
    current.config.datapath_type == wanted.config.datapath_type
}

type Ports = BTreeMap<String, Arc<PortConfig>>;

fn remove_ports(
    bridge: &str,
    dirty: &BTreeSet<String>,
    current: &Ports,
    wanted: &Ports,
    steps: &mut Vec<Step>,
) {
    for port in dirty
        .iter()
        .filter(|p| current.contains_key(*p) && !wanted.contains_key(*p))
    {
        steps.push(Step::DelPort {
            bridge: bridge.to_string(),
            port: port.clone(),
        });
    }
}

fn add_ports<'a>(
    bridge: &str,
    dirty: impl Iterator<Item = &'a String>,
    current: &Ports,
    wanted: &Ports,
    steps: &mut Vec<Step>,
) {
    for (name, port) in dirty.filter_map(|p| wanted.get_key_value(p)) {
        let (bridge, config) = (bridge.to_string(), || (**port).clone());
        match current.get(name) {
            None => steps.push(Step::AddPort {
                bridge,
                port: config(),
            }),
            Some(old) if !Arc::ptr_eq(old, port) && old != port => {
                steps.push(Step::SetPort {
                    bridge,
                    port: config(),
                });
            }
            Some(_) => {}
        }
    }
}

/// Carries a step out on the model of what is: what a switch that succeeded is like.
pub fn carry_out(state: &mut Desired, step: &Step) {
    match step {
        Step::Settings(settings) => state.settings = settings.clone(),
        Step::AddBridge(config) => {
            let bridge = DesiredBridge {
                config: Arc::new(config.clone()),
                ports: BTreeMap::new(),
            };
            state.bridges.insert(config.name.clone(), bridge);
        }
        Step::SetBridge(config) => {
            if let Some(bridge) = state.bridges.get_mut(&config.name) {
                bridge.config = Arc::new(config.clone());
            }
        }
        Step::DelBridge(name) => {
            state.bridges.remove(name);
        }
        Step::AddPort { bridge, port } | Step::SetPort { bridge, port } => {
            if let Some(bridge) = state.bridges.get_mut(bridge) {
                bridge
                    .ports
                    .insert(port.name.clone(), Arc::new(port.clone()));
            }
        }
        Step::DelPort { bridge, port } => {
            if let Some(bridge) = state.bridges.get_mut(bridge) {
                bridge.ports.remove(port);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use vs_switch::config::{BridgeConfig, SwitchConfig};

    use super::*;

    /// Carries steps out, after checking that each makes sense where it comes.
    fn carry_out_all(state: &mut Desired, steps: &[Step]) {
        for step in steps {
            let bridge = |name: &String| state.bridges.get(name);
            let port = |b: &String, p: &String| bridge(b).unwrap().ports.contains_key(p);
            match step {
                Step::Settings(_) => {}
                Step::AddBridge(config) => assert!(bridge(&config.name).is_none()),
                Step::SetBridge(config) => assert!(bridge(&config.name).is_some()),
                Step::DelBridge(name) => assert!(bridge(name).is_some()),
                Step::AddPort { bridge, port: p } => assert!(!port(bridge, &p.name)),
                Step::SetPort { bridge, port: p } => assert!(port(bridge, &p.name)),
                Step::DelPort { bridge, port: p } => assert!(port(bridge, p)),
            }
            carry_out(state, step);
        }
    }

    fn full_plan(current: &Desired, desired: &Desired) -> Vec<Step> {
        plan(current, desired, &Dirty::all(current, desired))
    }

    /// A state that is a function of a number: every small number gives another one.
    fn state(mut n: u32) -> Desired {
        let mut take = |k: u32| {
            let digit = n % k;
            n /= k;
            digit
        };
        let mut state = Desired::default();
        if take(2) == 1 {
            state.settings = SwitchConfig {
                flow_limit: 7,
                ..SwitchConfig::default()
            };
        }
        for name in ["a", "b"] {
            let kind = take(3);
            if kind == 0 {
                continue;
            }
            let mut config = BridgeConfig::new(name);
            config.datapath_type = if kind == 1 {
                String::new()
            } else {
                "netdev".into()
            };
            config.forward_bpdu = take(2) == 1;
            let mut ports = BTreeMap::new();
            for port in ["p", "q"] {
                let tag = take(3);
                if tag > 0 {
                    let mut config = PortConfig::new(port, "system");
                    config.tag = Some(tag as u16);
                    ports.insert(port.to_string(), Arc::new(config));
                }
            }
            state.bridges.insert(
                name.into(),
                DesiredBridge {
                    config: Arc::new(config),
                    ports,
                },
            );
        }
        state
    }

    #[test]
    fn the_steps_lead_from_any_state_to_any_other() {
        for from in (0..400).step_by(7) {
            for to in (0..3000).step_by(17) {
                let (mut current, desired) = (state(from), state(to));
                let steps = full_plan(&current, &desired);
                carry_out_all(&mut current, &steps);
                assert_eq!(current, desired);
            }
        }
    }

    #[test]
    fn nothing_is_done_where_nothing_changed() {
        for n in 0..3000 {
            assert_eq!(full_plan(&state(n), &state(n)), []);
        }
    }

    #[test]
    fn who_asks_for_a_number_comes_first_and_who_had_one_next() {
        let mut desired = Desired::default();
        let mut ports = BTreeMap::new();
        for (name, request, former) in [
            ("a", None, None),
            ("b", None, Some(1)),
            ("c", Some(1), None),
        ] {
            let mut port = PortConfig::new(name, "system");
            let interface = port.interfaces.get_mut(name).unwrap();
            interface.ofport_request = request;
            interface.former_number = vs_switch::config::FormerNumber(former);
            ports.insert(name.to_owned(), Arc::new(port));
        }
        let config = Arc::new(BridgeConfig::new("br"));
        desired
            .bridges
            .insert("br".into(), DesiredBridge { config, ports });
        let steps = full_plan(&Desired::default(), &desired);
        let names = steps.iter().filter_map(|step| match step {
            Step::AddPort { port, .. } => Some(port.name.as_str()),
            _ => None,
        });
        assert_eq!(names.collect::<Vec<_>>(), ["c", "b", "a"]);
    }

    #[test]
    fn one_changed_port_is_one_step() {
        let mut desired = state(0);
        let mut ports = BTreeMap::new();
        for n in 0..100 {
            let name = format!("p{n}");
            ports.insert(name.clone(), Arc::new(PortConfig::new(&name, "system")));
        }
        let config = Arc::new(BridgeConfig::new("a"));
        desired
            .bridges
            .insert("a".into(), DesiredBridge { config, ports });
        let current = desired.clone();
        let ports = &mut desired.bridges.get_mut("a").unwrap().ports;
        Arc::make_mut(ports.get_mut("p50").unwrap()).tag = Some(5);
        assert_eq!(full_plan(&current, &desired).len(), 1);
        let mut dirty = Dirty::default();
        dirty.port("a", "p50");
        assert_eq!(
            plan(&current, &desired, &dirty),
            full_plan(&current, &desired)
        );
    }
}
