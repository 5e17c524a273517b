//! What a device's driver says about itself and its link.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::{check, device_name};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const GET_DRIVER: u32 = 0x3;
const GET_LINK_SETTINGS: u32 = 0x4c;
const UNKNOWN_SPEED: u32 = u32::MAX;

/// The driver of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The firmware's version.
    pub firmware: String,
}

/// The link of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Speed in Mbit/s, if the driver knows it.
    pub speed: Option<u32>,
    /// Whether both directions work at once, if the driver knows it.
    pub full_duplex: Option<bool>,
    /// Kind of connector (`PORT_*` of ethtool): 0 is twisted pair, 3 is fibre.
    pub port: u8,
    /// Whether the link negotiates its mode.
    pub autoneg: bool,
    /// The first 32 link modes that the device can do (`ETHTOOL_LINK_MODE_*`).
    pub supported: u32,
    /// Those that it offers to its peer.
    pub advertising: u32,
    /// Those that its peer offers.
    pub peer: u32,
}

#[repr(C)]
struct DriverInfo {
    cmd: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    rest: [u8; 96],
}

/// Words of one link mode bitmap that there is room for.
const MASK_WORDS: usize = 16;

#[repr(C)]
struct LinkSettings {
    cmd: u32,
    speed: u32,
    duplex: u8,
    port: u8,
    phy_address: u8,
    autoneg: u8,
    mdio_and_mdix: [u8; 3],
    mask_words: i8,
    reserved1: [u8; 4],
    reserved: [u32; 7],
    masks: [u32; 3 * MASK_WORDS],
}

/// Asks the driver of a device who it is.
///
/// # Errors
/// As the kernel gives them: if there is no such device, or its driver does not say.
pub fn driver(name: &str) -> io::Result<Driver> {
    let mut info = DriverInfo {
        cmd: GET_DRIVER,
        driver: [0; 32],
        version: [0; 32],
        firmware: [0; 32],
        rest: [0; 96],
    };
    request(name, &mut info)?;
    let text = |bytes: &[u8]| {
        let text = CStr::from_bytes_until_nul(bytes);
        text.map_or_else(|_| String::new(), |t| t.to_string_lossy().into_owned())
    };
    Ok(Driver {
        name: text(&info.driver),
        version: text(&info.version),
        firmware: text(&info.firmware),
    })
}

/// Asks a device about its link.
///
/// # Errors
/// As the kernel gives them: if there is no such device, or its driver does not say.
pub fn link(name: &str) -> io::Result<Link> {
    let mut settings = LinkSettings {
        cmd: GET_LINK_SETTINGS,
        speed: 0,
        duplex: 0,
        port: 0,
        phy_address: 0,
        autoneg: 0,
        mdio_and_mdix: [0; 3],
        mask_words: 0,
        reserved1: [0; 4],
        reserved: [0; 7],
        masks: [0; 3 * MASK_WORDS],
    };
    // The first request answers with how many words a mask has, negative.
    request(name, &mut settings)?;
    let words = settings.mask_words.unsigned_abs();
    if usize::from(words) > MASK_WORDS {
        return Err(io::Error::other("too many link modes"));
    }
    settings.cmd = GET_LINK_SETTINGS;
    settings.mask_words = words.cast_signed();
    request(name, &mut settings)?;
    let words = usize::from(words);
    let speed = settings.speed;
    Ok(Link {
        speed: (speed != 0 && speed != UNKNOWN_SPEED).then_some(speed),
        full_duplex: match settings.duplex {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        port: settings.port,
        autoneg: settings.autoneg != 0,
        supported: settings.masks[0],
        advertising: settings.masks[words],
        peer: settings.masks[2 * words],
    })
}

fn request<T>(name: &str, data: &mut T) -> io::Result<()> {
    let socket: OwnedFd = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let request = libc::ifreq {
        ifr_name: device_name(name)?,
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_data: std::ptr::from_mut(data).cast(),
        },
    };
    // SAFETY: `request` is a whole `ifreq`; its data points to a structure that is as large as the command in it (its
    // first word) lets the kernel write.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw const request) })?;
    Ok(())
}
