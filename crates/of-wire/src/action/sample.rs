//! `sample(...)`.

use net_flow::PortNo;

use net_flow::Subfield;

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
