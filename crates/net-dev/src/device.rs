//! The seam: what a datapath and a switch ask of a device.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use net_packet::{Batch, EthAddr, Pool};

/// What a device is at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceState {
    /// Whether it exists; one that vanished may come back.
    pub present: bool,
    /// Its number in the system, if it has one.
    pub ifindex: Option<u32>,
    /// Its Ethernet address.
    pub mac: EthAddr,
    /// Its MTU in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it has a carrier.
    pub carrier: bool,
    /// How often the carrier came or went.
    pub carrier_resets: u64,
}

/// What a device has counted; none of what it does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the names are those of the Interface table's statistics"
)]
pub struct DeviceStats {
    pub rx_packets: Option<u64>,
    pub tx_packets: Option<u64>,
    pub rx_bytes: Option<u64>,
    pub tx_bytes: Option<u64>,
    pub rx_errors: Option<u64>,
    pub tx_errors: Option<u64>,
    pub rx_dropped: Option<u64>,
    pub tx_dropped: Option<u64>,
    pub multicast: Option<u64>,
    pub collisions: Option<u64>,
    pub rx_length_errors: Option<u64>,
    pub rx_over_errors: Option<u64>,
    pub rx_crc_errors: Option<u64>,
    pub rx_frame_errors: Option<u64>,
    pub rx_fifo_errors: Option<u64>,
    pub rx_missed_errors: Option<u64>,
    pub tx_aborted_errors: Option<u64>,
    pub tx_carrier_errors: Option<u64>,
    pub tx_fifo_errors: Option<u64>,
    pub tx_heartbeat_errors: Option<u64>,
    pub tx_window_errors: Option<u64>,
    pub upcall_packets: Option<u64>,
    pub upcall_errors: Option<u64>,
}

/// Link modes: each bit that of OpenFlow 1.3's `ofp_port_features` (section 7.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes(pub u32);

impl Modes {
    /// Copper.
    pub const COPPER: u32 = 1 << 11;
    /// Fibre.
    pub const FIBER: u32 = 1 << 12;
    /// Negotiates.
    pub const AUTONEG: u32 = 1 << 13;
    /// A speed for which there is no bit.
    pub const OTHER: u32 = 1 << 10;
    /// 10 Gbit/s, both ways at once.
    pub const FULL_10G: u32 = 1 << 6;
}

/// What a device's link can do and does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Modes in use.
    pub current: Modes,
    /// Modes offered to the peer.
    pub advertised: Modes,
    /// Modes that the device can do.
    pub supported: Modes,
    /// Modes that the peer offers.
    pub peer: Modes,
    /// Speed in Mbit/s, if it is known.
    pub speed: Option<u32>,
    /// Whether both directions work at once, if it is known.
    pub full_duplex: Option<bool>,
}

/// What a device completes in packets that it sends, so that nobody else has to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxOffloads {
    /// Checksums of TCP and UDP.
    pub l4_checksum: bool,
    /// Segments of TCP.
    pub tcp_segments: bool,
}

/// What became of a batch that was to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets sent.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets dropped: the queue was full, the device is down or gone, or they are too long.
    pub dropped: u64,
}

impl Sent {
    /// Counts one packet of `len` bytes.
    pub const fn add(&mut self, len: usize) {
        self.packets += 1;
        self.bytes += len as u64;
    }
}

/// The receiving half of a device, which belongs to one thread.
pub trait Receiver: Send {
    /// Moves packets that are there to the end of `batch`, at most [`net_packet::BATCH`]; never blocks.
    /// Buffers come from `pool`.
    ///
    /// # Errors
    /// As the system gives them.  The receiver remains usable: a device that vanished and came back delivers again.
    fn receive(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()>;

    /// What becomes readable when a packet is there.  Without one the datapath asks in each of its main thread's
    /// rounds.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
}

/// A device.
pub trait Device: Send + Sync + Debug + Any {
    /// Its name.
    fn name(&self) -> &str;

    /// Its kind, such as `system`, `tap`, `dummy`.
    fn kind(&self) -> &str;

    /// What it is at the moment; costs no system call.
    fn state(&self) -> DeviceState;

    /// A number that grows with every change of [`Device::state`].
    fn changes(&self) -> u64;

    /// Sets it up or down.
    ///
    /// # Errors
    /// As the system gives them.
    fn set_up(&self, up: bool) -> io::Result<()>;

    /// Sets its Ethernet address.
    ///
    /// # Errors
    /// As the system gives them.
    fn set_mac(&self, mac: EthAddr) -> io::Result<()>;

    /// Sets its MTU.
    ///
    /// # Errors
    /// As the system gives them: `InvalidInput` outside its range.
    fn set_mtu(&self, mtu: u32) -> io::Result<()>;

    /// What it has counted.
    ///
    /// # Errors
    /// As the system gives them.
    fn stats(&self) -> io::Result<DeviceStats>;

    /// Counters of its own, by name.
    fn custom_stats(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// What its link can do and does.
    fn features(&self) -> Features {
        Features::default()
    }

    /// What it completes in packets that it sends.
    fn tx_offloads(&self) -> TxOffloads {
        TxOffloads::default()
    }

    /// What its driver says of itself: the `status` column.
    fn status(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Its IP addresses, with the length of the prefix.
    fn addresses(&self) -> Vec<(IpAddr, u8)> {
        Vec::new()
    }

    /// Applies the options of its interface.
    ///
    /// # Errors
    /// What is wrong with which option.
    fn set_options(&self, _options: &[(String, String)]) -> Result<(), String> {
        Ok(())
    }

    /// The options that are in force, as `dpctl/show` and `dpif/show` list them.
    fn options(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Opens its receiving half.
    ///
    /// # Errors
    /// As the system gives them.
    fn open_receiver(&self) -> io::Result<Box<dyn Receiver>>;

    /// Sends a batch and leaves it empty; never blocks: what cannot be sent is dropped.  Buffers go to `pool`.
    fn send(&self, batch: &mut Batch, pool: &mut Pool) -> Sent;
}

impl dyn Device {
    /// The device as what it really is.
    pub fn downcast<T: Device>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}
