//! Actions that send the packet out.

use net_flow::PortNo;

use net_flow::Subfield;

/// `output:PORT` and the bare names of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// Where to.
    pub port: PortNo,
    /// For the controller port: at most so many bytes of the packet.
    pub max_len: u16,
}

/// `controller(...)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Controller {
    /// At most so many bytes of the packet.
    pub max_len: u16,
    /// To controllers with this id.
    pub controller_id: u16,
    /// `OFPR_*` reason in the message.
    pub reason: u8,
    /// Passed along in the message.
    pub userdata: Box<[u8]>,
    /// Stop here until the controller resumes.
    pub pause: bool,
    /// Meter for these messages; `None` for the default.
    pub meter_id: Option<u32>,
}

impl Default for Controller {
    /// The whole packet, to controller 0, as an action's.
    fn default() -> Self {
        Self {
            max_len: u16::MAX,
            controller_id: 0,
            reason: 1,
            userdata: Box::default(),
            pause: false,
            meter_id: None,
        }
    }
}

/// `enqueue(PORT,QUEUE)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Enqueue {
    /// Where to.
    pub port: PortNo,
    /// Through this queue.
    pub queue: u32,
}

/// `output:FIELD[START..END]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputReg {
    /// Holds the port number.
    pub src: Subfield,
    /// For the controller port: at most so many bytes of the packet.
    pub max_len: u16,
}

/// `output(port=PORT,max_len=N)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputTrunc {
    /// Where to.
    pub port: PortNo,
    /// Cut to so many bytes.
    pub max_len: u32,
}

/// `check_pkt_larger(LENGTH)->BIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CheckPktLarger {
    /// One bit that takes the answer.
    pub dst: Subfield,
    /// Compared with the packet's length in bytes, Ethernet header included.
    pub pkt_len: u16,
}
