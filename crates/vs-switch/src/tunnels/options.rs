//! `options` of tunnel interfaces: read, and written as `dpif/show` lists them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use net_flow::text::num::c_int;
use of_xlate::{
    DEFAULT_TTL, ErspanConfig, Local, PacketTypeMode, TunnelConfig, TunnelCsum, TunnelKey,
};

/// Types of tunnels that can be set up.
const KINDS: [&str; 6] = ["erspan", "geneve", "gre", "ip6erspan", "ip6gre", "vxlan"];

/// Types of tunnels that are known, but not there yet.
const LATER: [&str; 5] = ["bareudp", "gtpu", "lisp", "srv6", "stt"];

/// UDP ports of protocols (RFC 7348, RFC 8926).
const VXLAN_PORT: u16 = 4789;
const GENEVE_PORT: u16 = 6081;

const DSCP: u64 = 0xfc;

/// The largest index of ERSPAN version 1.
const ERSPAN_MAX_INDEX: u64 = 0xf_ffff;
/// The largest hardware id of ERSPAN version 2.
const ERSPAN_MAX_HARDWARE_ID: u64 = 0x3f;

/// Whether interfaces of this type are tunnels.
pub(crate) fn is_tunnel(kind: &str) -> bool {
    KINDS.contains(&kind)
}

/// Whether interfaces of this type are tunnels that cannot be set up.
pub(crate) fn is_later(kind: &str) -> bool {
    LATER.contains(&kind)
}

fn default_port(kind: &str) -> u16 {
    match kind {
        "vxlan" => VXLAN_PORT,
        "geneve" => GENEVE_PORT,
        _ => 0,
    }
}

/// Why options are no good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptionsError {
    /// All that is to be said, a line each.
    pub(crate) text: String,
    /// The same in the words of the system.
    pub(crate) why: &'static str,
}

pub(crate) const INVALID: &str = "Invalid argument";

/// A configuration in the making.
struct Reader<'a> {
    name: &'a str,
    options: &'a BTreeMap<String, String>,
    config: TunnelConfig,
    remote_is_flow: bool,
    packet_type: Option<&'a str>,
    lines: Vec<String>,
}

/// Reads the options of an interface.  Returns the configuration, and lines for the log on
/// options that were left out.
pub(crate) fn read(
    name: &str,
    kind: &str,
    options: &BTreeMap<String, String>,
) -> Result<(TunnelConfig, Vec<String>), OptionsError> {
    let mut reader = Reader {
        name,
        options,
        config: TunnelConfig {
            dst_port: default_port(kind),
            ..TunnelConfig::new(kind)
        },
        remote_is_flow: false,
        packet_type: None,
        lines: Vec::new(),
    };
    let done = reader.run();
    match done {
        Some(()) => Ok((reader.config, reader.lines)),
        None => Err(OptionsError {
            text: reader.lines.join("\n"),
            why: INVALID,
        }),
    }
}

impl<'a> Reader<'a> {
    fn say(&mut self, text: &str) {
        self.lines.push(format!("{}: {text}", self.name));
    }

    /// Reads all; none if the configuration is no good, for reasons that were said.
    fn run(&mut self) -> Option<()> {
        for (key, value) in self.options {
            self.option(key, value)?;
        }
        let has_csum = self.config.csum != TunnelCsum::ByProtocol;
        let is_udp = matches!(&*self.config.kind, "geneve" | "vxlan");
        if !is_udp && !has_csum {
            self.config.csum = TunnelCsum::Without;
        }
        self.mode()?;
        self.check_ends()?;
        self.config.in_key = self.key("in_key");
        self.config.out_key = self.key("out_key");
        Some(())
    }

    fn option(&mut self, key: &str, value: &'a str) -> Option<()> {
        let kind = self.config.kind.clone();
        match key {
            "remote_ip" if value == "flow" => self.remote_is_flow = true,
            "remote_ip" => match value.parse::<IpAddr>() {
                Ok(ip) if ip.is_multicast() => {
                    self.say(&format!("multicast remote_ip={value} not allowed"));
                    return None;
                }
                Ok(ip) => self.config.remote = Some(ip),
                Err(_) => self.say(&format!("bad {kind} 'remote_ip'")),
            },
            "local_ip" if value == "flow" => self.config.local = Local::Flow,
            "local_ip" => match value.parse::<IpAddr>() {
                Ok(ip) if ip.is_unspecified() => {}
                Ok(ip) => self.config.local = Local::Address(ip),
                Err(_) => self.say(&format!("bad {kind} 'local_ip'")),
            },
            "tos" => self.tos(value),
            "ttl" if value == "inherit" => self.config.ttl = None,
            "ttl" => {
                let ttl = leading_number(value) as u8;
                self.config.ttl = Some(if ttl == 0 { DEFAULT_TTL } else { ttl });
            }
            "dst_port" if default_port(&kind) != 0 => {
                self.config.dst_port = leading_number(value) as u16;
            }
            "csum" if !self.config.is_erspan() => {
                self.config.csum = match value {
                    "true" => TunnelCsum::Enabled,
                    "false" => TunnelCsum::Disabled,
                    _ => self.config.csum,
                };
            }
            "seq" if kind.ends_with("gre") => self.config.sequence = value == "true",
            "df_default" => self.config.dont_fragment = value != "false",
            "key" | "in_key" | "out_key" => {}
            "packet_type" => self.packet_type = Some(value),
            "exts" if &*kind == "vxlan" => self.extensions(value),
            "erspan_ver" | "erspan_idx" | "erspan_dir" | "erspan_hwid" => {
                self.erspan(key, value)?;
            }
            "egress_pkt_mark" => {
                self.config.egress_pkt_mark = Some(leading_number(value) as u32);
            }
            // Another daemon reads these.
            "remote_cert" | "remote_name" | "psk" => {}
            _ if key.starts_with("ipsec_") => {}
            _ => self.say(&format!("unknown {kind} argument '{key}'")),
        }
        Some(())
    }

    /// An option of ERSPAN; none if its value is no good.
    fn erspan(&mut self, key: &str, value: &str) -> Option<()> {
        let erspan = &mut self.config.erspan;
        let is_flow = value == "flow";
        let hex = || c_int(value, 16).map_or(0, |n| n.magnitude);
        let decimal = leading_number(value);
        let (what, good) = match key {
            "erspan_ver" if is_flow => {
                *erspan = ErspanConfig {
                    version: None,
                    index: None,
                    direction: None,
                    hardware_id: None,
                };
                return Some(());
            }
            "erspan_ver" => {
                erspan.version = Some(decimal as u8);
                ("version", matches!(decimal, 1 | 2))
            }
            "erspan_idx" => {
                erspan.index = (!is_flow).then(|| hex() as u32);
                ("index", is_flow || hex() <= ERSPAN_MAX_INDEX)
            }
            "erspan_dir" => {
                erspan.direction = (!is_flow).then_some(decimal as u8);
                ("direction", is_flow || matches!(decimal, 0 | 1))
            }
            _ => {
                erspan.hardware_id = (!is_flow).then(|| hex() as u8);
                ("hardware ID", is_flow || hex() <= ERSPAN_MAX_HARDWARE_ID)
            }
        };
        if !good {
            self.say(&format!("invalid erspan {what}: {value}"));
            return None;
        }
        Some(())
    }

    fn tos(&mut self, value: &str) {
        if value == "inherit" {
            self.config.tos = None;
            return;
        }
        let number = c_int(value, 0).filter(|n| n.rest.is_empty() && !n.negative);
        match number.map(|n| n.magnitude) {
            Some(tos) if tos & !DSCP == 0 => self.config.tos = Some(tos as u8),
            _ => self.say(&format!("invalid TOS {value}")),
        }
    }

    fn extensions(&mut self, value: &str) {
        for ext in value.split(',').filter(|ext| !ext.is_empty()) {
            match ext {
                "gbp" => self.config.gbp = true,
                "gpe" => self.config.gpe = true,
                _ => self.say(&format!("unknown extension '{ext}'")),
            }
        }
    }

    /// Which packets the port carries.
    fn mode(&mut self) -> Option<()> {
        let carries_l3 = carries_l3(&self.config);
        let kind = match (&*self.config.kind, self.config.gpe) {
            ("vxlan", true) => "VXLAN-GPE",
            ("vxlan", false) => "VXLAN (without GPE)",
            (kind, _) => kind,
        };
        self.config.mode = match self.packet_type {
            None | Some("legacy_l2") => PacketTypeMode::LegacyL2,
            Some("legacy_l3") if carries_l3 => PacketTypeMode::LegacyL3,
            Some("legacy_l3") => {
                let text =
                    format!("legacy_l3 configured on {kind} tunnel that cannot carry L3 traffic");
                self.say(&text);
                return None;
            }
            Some("ptap") => PacketTypeMode::Aware,
            Some(other) => {
                self.say(&format!("unknown packet_type '{other}'"));
                return None;
            }
        };
        Some(())
    }

    fn check_ends(&mut self) -> Option<()> {
        let kind = self.config.kind.clone();
        let remote = self.config.remote.filter(|ip| !ip.is_unspecified());
        self.config.remote = remote;
        let is_flow = self.remote_is_flow;
        let problem = match (remote, self.config.local) {
            (None, _) if !is_flow => format!("{kind} type requires valid 'remote_ip' argument"),
            (Some(_), Local::Flow) if !is_flow => {
                format!("{kind} type requires 'remote_ip=flow' with 'local_ip=flow'")
            }
            (Some(remote), Local::Address(local)) if remote.is_ipv4() != local.is_ipv4() => {
                "'remote_ip' and 'local_ip' has to be of the same address family".to_owned()
            }
            _ => return Some(()),
        };
        self.say(&problem);
        None
    }

    fn key(&self, name: &str) -> TunnelKey {
        let value = self.options.get(name).or_else(|| self.options.get("key"));
        match value.map(String::as_str) {
            None => TunnelKey::Absent,
            Some("flow") => TunnelKey::Flow,
            Some(text) => TunnelKey::Value(c_int(text, 0).map_or(0, |n| n.magnitude)),
        }
    }
}

/// The number at the beginning of a text, as C's `atoi` reads it.
fn leading_number(text: &str) -> i64 {
    c_int(text, 10).map_or(0, |n| {
        let value = i64::try_from(n.magnitude).unwrap_or(i64::MAX);
        if n.negative { -value } else { value }
    })
}

/// Whether a tunnel can carry packets without an Ethernet header.
fn carries_l3(config: &TunnelConfig) -> bool {
    &*config.kind == "gre" || config.gpe
}

/// The options that differ from what they are when nothing is said.
pub(crate) fn shown(config: &TunnelConfig) -> BTreeMap<&'static str, String> {
    let mut options = BTreeMap::new();
    let remote = config.remote.map_or("flow".to_owned(), |ip| ip.to_string());
    options.insert("remote_ip", remote);
    match config.local {
        Local::Any => None,
        Local::Flow => options.insert("local_ip", "flow".to_owned()),
        Local::Address(ip) => options.insert("local_ip", ip.to_string()),
    };
    let key = |key: TunnelKey| match key {
        TunnelKey::Absent => None,
        TunnelKey::Flow => Some("flow".to_owned()),
        TunnelKey::Value(value) => Some(value.to_string()),
    };
    let (in_key, out_key) = (key(config.in_key), key(config.out_key));
    if in_key == out_key {
        options.extend(in_key.map(|k| ("key", k)));
    } else {
        options.extend(in_key.map(|k| ("in_key", k)));
        options.extend(out_key.map(|k| ("out_key", k)));
    }
    match config.ttl {
        None => options.insert("ttl", "inherit".to_owned()),
        Some(DEFAULT_TTL) => None,
        Some(ttl) => options.insert("ttl", ttl.to_string()),
    };
    match config.tos {
        None => options.insert("tos", "inherit".to_owned()),
        Some(0) => None,
        Some(tos) => options.insert("tos", format!("{tos:#x}")),
    };
    if config.dst_port != default_port(&config.kind) {
        options.insert("dst_port", config.dst_port.to_string());
    }
    match config.csum {
        TunnelCsum::Enabled => options.insert("csum", "true".to_owned()),
        TunnelCsum::Disabled => options.insert("csum", "false".to_owned()),
        TunnelCsum::ByProtocol | TunnelCsum::Without => None,
    };
    if config.sequence {
        options.insert("seq", "true".to_owned());
    }
    match config.mode {
        PacketTypeMode::LegacyL2 => None,
        PacketTypeMode::LegacyL3 => options.insert("packet_type", "legacy_l3".to_owned()),
        PacketTypeMode::Aware => options.insert("packet_type", "ptap".to_owned()),
    };
    if config.is_erspan() {
        options.extend(shown_erspan(&config.erspan));
    }
    if !config.dont_fragment {
        options.insert("df_default", "false".to_owned());
    }
    if let Some(mark) = config.egress_pkt_mark {
        options.insert("egress_pkt_mark", mark.to_string());
    }
    options
}

/// The options of ERSPAN that its version has.
fn shown_erspan(erspan: &ErspanConfig) -> Vec<(&'static str, String)> {
    let flow = || "flow".to_owned();
    let hex = |value: Option<u32>| value.map_or_else(flow, |v| format!("{v:#x}"));
    let Some(version) = erspan.version else {
        let names = ["erspan_ver", "erspan_idx", "erspan_dir", "erspan_hwid"];
        return names.map(|name| (name, flow())).into();
    };
    let mut options = vec![("erspan_ver", version.to_string())];
    match version {
        1 => options.push(("erspan_idx", hex(erspan.index))),
        2 => {
            let direction = erspan.direction.map_or_else(flow, |d| d.to_string());
            options.push(("erspan_dir", direction));
            options.push(("erspan_hwid", hex(erspan.hardware_id.map(u32::from))));
        }
        _ => {}
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> BTreeMap<String, String> {
        let pair = |item: &str| {
            let (key, value) = item.split_once('=').expect("a value");
            (key.to_owned(), value.to_owned())
        };
        text.split_whitespace().map(pair).collect()
    }

    fn read_text(kind: &str, text: &str) -> Result<(TunnelConfig, Vec<String>), OptionsError> {
        read("p1", kind, &options(text))
    }

    #[test]
    fn options_are_shown_as_they_were_read() {
        for (kind, text) in [
            ("gre", "remote_ip=1.1.1.1"),
            (
                "gre",
                "csum=true df_default=false local_ip=2.2.2.3 remote_ip=1.1.1.1 ttl=1",
            ),
            ("gre", "packet_type=legacy_l3 remote_ip=1.1.1.1 seq=true"),
            (
                "vxlan",
                "dst_port=4341 key=flow local_ip=flow remote_ip=flow",
            ),
            (
                "vxlan",
                "in_key=1 out_key=flow remote_ip=fc00::1 tos=0x4 ttl=inherit",
            ),
            (
                "erspan",
                "erspan_idx=0x7 erspan_ver=1 key=1 remote_ip=1.1.1.1",
            ),
            (
                "ip6erspan",
                "erspan_dir=1 erspan_hwid=0x3f erspan_ver=2 remote_ip=fc00::1",
            ),
            (
                "erspan",
                "erspan_dir=flow erspan_hwid=flow erspan_idx=flow erspan_ver=flow remote_ip=flow",
            ),
            ("ip6gre", "remote_ip=fc00::1 seq=true"),
            (
                "geneve",
                "egress_pkt_mark=5 key=123 remote_ip=1.1.1.1 tos=inherit",
            ),
        ] {
            let (config, lines) = read_text(kind, text).expect("a configuration");
            assert!(lines.is_empty(), "{lines:?}");
            let shown = shown(&config);
            let again: Vec<_> = shown.iter().map(|(k, v)| format!("{k}={v}")).collect();
            assert_eq!(again.join(" "), text);
        }
    }

    #[test]
    fn extensions_and_defaults() {
        let (vxlan, _) = read_text("vxlan", "remote_ip=1.1.1.1 exts=gbp,gpe ttl=0").expect("one");
        assert!(vxlan.gbp && vxlan.gpe);
        assert_eq!((vxlan.dst_port, vxlan.ttl), (4789, Some(64)));
        assert_eq!(vxlan.csum, TunnelCsum::ByProtocol);
        let (gre, _) = read_text("gre", "remote_ip=1.1.1.1").expect("one");
        assert_eq!((gre.dst_port, gre.csum), (0, TunnelCsum::Without));
    }

    #[test]
    fn bad_options_are_named() {
        for (kind, text, lines) in [
            (
                "erspan",
                "erspan_ver=3 remote_ip=1.1.1.1",
                "p1: invalid erspan version: 3",
            ),
            (
                "erspan",
                "erspan_idx=100000 remote_ip=1.1.1.1",
                "p1: invalid erspan index: 100000",
            ),
            (
                "erspan",
                "erspan_dir=2 remote_ip=1.1.1.1",
                "p1: invalid erspan direction: 2",
            ),
            (
                "erspan",
                "erspan_hwid=40 remote_ip=1.1.1.1",
                "p1: invalid erspan hardware ID: 40",
            ),
            (
                "gre",
                "",
                "p1: gre type requires valid 'remote_ip' argument",
            ),
            (
                "gre",
                "remote_ip=x",
                "p1: bad gre 'remote_ip'\np1: gre type requires valid 'remote_ip' argument",
            ),
            (
                "gre",
                "remote_ip=224.0.0.1",
                "p1: multicast remote_ip=224.0.0.1 not allowed",
            ),
            (
                "vxlan",
                "remote_ip=1.1.1.1 local_ip=flow",
                "p1: vxlan type requires 'remote_ip=flow' with 'local_ip=flow'",
            ),
            (
                "vxlan",
                "remote_ip=1.1.1.1 local_ip=fc00::1",
                "p1: 'remote_ip' and 'local_ip' has to be of the same address family",
            ),
            (
                "vxlan",
                "remote_ip=1.1.1.1 packet_type=legacy_l3",
                "p1: legacy_l3 configured on VXLAN (without GPE) tunnel that cannot carry L3 traffic",
            ),
            (
                "vxlan",
                "remote_ip=1.1.1.1 packet_type=x",
                "p1: unknown packet_type 'x'",
            ),
        ] {
            let error = read_text(kind, text).expect_err("no configuration");
            assert_eq!((error.text.as_str(), error.why), (lines, INVALID));
        }
        let text = "remote_ip=1.1.1.1 tos=3 what=5 exts=new";
        let (_, lines) = read_text("vxlan", text).expect("a configuration");
        let said = [
            "p1: unknown extension 'new'",
            "p1: invalid TOS 3",
            "p1: unknown vxlan argument 'what'",
        ];
        assert_eq!(lines, said);
    }
}
