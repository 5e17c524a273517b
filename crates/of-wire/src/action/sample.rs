//! `sample(...)`.

use std::fmt::Write;

use net_flow::text::num::{str_to_u16, str_to_u32};
use net_flow::text::value::{parse_port, put_port};
use net_flow::text::{KeyValues, subfield};
use net_flow::{Names, PortNo, Subfield};

use super::{Action, Parser};

/// An observation id: a constant, or what a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleId {
    /// A constant.
    Constant(u32),
    /// From the packet.
    Field(Subfield),
}

/// On which side of the port samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleDirection {
    /// Unspecified.
    Default,
    /// As the packet comes in.
    Ingress,
    /// As the packet goes out.
    Egress,
}

/// `sample(...)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sample {
    /// Probability out of 65535.
    pub probability: u16,
    /// Which collectors.
    pub collector_set_id: u32,
    /// Observation domain.
    pub obs_domain: SampleId,
    /// Observation point.
    pub obs_point: SampleId,
    /// Port whose traffic is sampled; `PortNo::NONE` if unspecified.
    pub sampling_port: PortNo,
    /// Side of that port.
    pub direction: SampleDirection,
}

fn id(text: &str, what: &str) -> Result<SampleId, String> {
    if let Ok(id) = str_to_u32(text) {
        return Ok(SampleId::Constant(id));
    }
    let part = subfield::parse(text)?;
    if part.bits > 32 {
        return Err(format!(
            "size of {what} field ({}) exceeds maximum (32)",
            part.bits
        ));
    }
    Ok(SampleId::Field(part))
}

pub(super) fn parse(arg: &str, p: &Parser<'_>) -> Result<Action, String> {
    let mut a = Sample {
        probability: 0,
        collector_set_id: 0,
        obs_domain: SampleId::Constant(0),
        obs_point: SampleId::Constant(0),
        sampling_port: PortNo::NONE,
        direction: SampleDirection::Default,
    };
    for kv in KeyValues::new(arg) {
        match kv.key {
            "probability" => {
                a.probability = str_to_u16(kv.value, kv.key)?;
                if a.probability == 0 {
                    return Err(format!("invalid probability value \"{}\"", kv.value));
                }
            }
            "collector_set_id" => a.collector_set_id = str_to_u32(kv.value)?,
            "obs_domain_id" => a.obs_domain = id(kv.value, kv.key)?,
            "obs_point_id" => a.obs_point = id(kv.value, kv.key)?,
            "sampling_port" => {
                a.sampling_port = parse_port(kv.value, p.names)
                    .ok_or_else(|| format!("{}: unknown port", kv.value))?;
            }
            "ingress" => a.direction = SampleDirection::Ingress,
            "egress" => a.direction = SampleDirection::Egress,
            key => return Err(format!("invalid key \"{key}\" in \"sample\" argument")),
        }
    }
    if a.probability == 0 {
        return Err("non-zero \"probability\" must be specified on sample".to_owned());
    }
    Ok(Action::Sample(Box::new(a)))
}

pub(super) fn put(out: &mut String, a: &Sample, names: &Names) {
    let _ = write!(
        out,
        "sample(probability={},collector_set_id={}",
        a.probability, a.collector_set_id
    );
    for (name, id) in [("domain", a.obs_domain), ("point", a.obs_point)] {
        let _ = write!(out, ",obs_{name}_id=");
        match id {
            SampleId::Constant(n) => {
                let _ = write!(out, "{n}");
            }
            SampleId::Field(part) => subfield::put(out, part),
        }
    }
    if a.sampling_port != PortNo::NONE {
        out.push_str(",sampling_port=");
        put_port(out, a.sampling_port, names);
    }
    out.push_str(match a.direction {
        SampleDirection::Default => ")",
        SampleDirection::Ingress => ",ingress)",
        SampleDirection::Egress => ",egress)",
    });
}
