//! The difference between what is and what is desired, as steps.  Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use vs_switch::config::{PortConfig, Step};

use crate::desired::{Desired, DesiredBridge};

/// The steps that turn `current` into `desired`.  Removals come first, so that a device
/// can move from one bridge to another; what stays the same is not touched.
pub fn plan(current: &Desired, desired: &Desired) -> Vec<Step> {
    let mut steps = Vec::new();
    if current.settings != desired.settings {
        steps.push(Step::Settings(desired.settings.clone()));
    }
    for (name, bridge) in &current.bridges {
        match desired.bridges.get(name) {
            Some(wanted) if is_same_bridge(bridge, wanted) => {
                remove_ports(name, &bridge.ports, &wanted.ports, &mut steps);
            }
            _ => steps.push(Step::DelBridge(name.clone())),
        }
    }
    let kept = |name: &String, wanted: &DesiredBridge| {
        current
            .bridges
            .get(name)
            .filter(|b| is_same_bridge(b, wanted))
    };
    for (name, wanted) in &desired.bridges {
        match kept(name, wanted) {
            None => steps.push(Step::AddBridge((*wanted.config).clone())),
            Some(bridge) if bridge.config != wanted.config => {
                steps.push(Step::SetBridge((*wanted.config).clone()));
            }
            Some(_) => {}
        }
    }
    let none = BTreeMap::new();
    for (name, wanted) in &desired.bridges {
        let ports = kept(name, wanted).map_or(&none, |b| &b.ports);
        add_ports(name, ports, &wanted.ports, &mut steps);
    }
    steps
}

/// A bridge keeps its identity as long as its datapath type stays.
fn is_same_bridge(current: &DesiredBridge, wanted: &DesiredBridge) -> bool {
    current.config.datapath_type == wanted.config.datapath_type
}

type Ports = BTreeMap<String, Arc<PortConfig>>;

fn remove_ports(bridge: &str, current: &Ports, wanted: &Ports, steps: &mut Vec<Step>) {
    for port in current.keys().filter(|p| !wanted.contains_key(*p)) {
        steps.push(Step::DelPort {
            bridge: bridge.to_string(),
            port: port.clone(),
        });
    }
}

fn add_ports(bridge: &str, current: &Ports, wanted: &Ports, steps: &mut Vec<Step>) {
    let bridge = bridge.to_string();
    for (name, port) in wanted {
        let (bridge, port_config) = (bridge.clone(), || (**port).clone());
        match current.get(name) {
            None => steps.push(Step::AddPort {
                bridge,
                port: port_config(),
            }),
            Some(old) if !Arc::ptr_eq(old, port) && old != port => {
                steps.push(Step::SetPort {
                    bridge,
                    port: port_config(),
                });
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use vs_switch::config::{BridgeConfig, SwitchConfig};

    use super::*;

    /// Carries steps out on a model: the slow and obvious twin of a switch.
    fn carry_out(state: &mut Desired, steps: &[Step]) {
        for step in steps {
            match step.clone() {
                Step::Settings(settings) => state.settings = settings,
                Step::AddBridge(config) => {
                    let name = config.name.clone();
                    let bridge = DesiredBridge {
                        config: Arc::new(config),
                        ports: BTreeMap::new(),
                    };
                    assert!(state.bridges.insert(name, bridge).is_none());
                }
                Step::SetBridge(config) => {
                    let bridge = state.bridges.get_mut(&config.name).unwrap();
                    bridge.config = Arc::new(config);
                }
                Step::DelBridge(name) => assert!(state.bridges.remove(&name).is_some()),
                Step::AddPort { bridge, port } => {
                    let ports = &mut state.bridges.get_mut(&bridge).unwrap().ports;
                    assert!(ports.insert(port.name.clone(), Arc::new(port)).is_none());
                }
                Step::SetPort { bridge, port } => {
                    let ports = &mut state.bridges.get_mut(&bridge).unwrap().ports;
                    assert!(ports.insert(port.name.clone(), Arc::new(port)).is_some());
                }
                Step::DelPort { bridge, port } => {
                    let ports = &mut state.bridges.get_mut(&bridge).unwrap().ports;
                    assert!(ports.remove(&port).is_some());
                }
            }
        }
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
                let steps = plan(&current, &desired);
                carry_out(&mut current, &steps);
                assert_eq!(current, desired);
            }
        }
    }

    #[test]
    fn nothing_is_done_where_nothing_changed() {
        for n in 0..3000 {
            assert_eq!(plan(&state(n), &state(n)), []);
        }
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
        assert_eq!(plan(&current, &desired).len(), 1);
    }
}
