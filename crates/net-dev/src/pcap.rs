//! Packet capture files (the classic format of tcpdump).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

const MAGIC: u32 = 0xa1b2_c3d4;
const SNAPLEN: u32 = 0xffff;
const ETHERNET: u32 = 1;

/// Writes packets to a capture file.
#[derive(Debug)]
pub struct PcapWriter {
    file: File,
}

impl PcapWriter {
    /// Opens a file to add packets to; a new or empty file gets its header.
    ///
    /// # Errors
    /// As the system gives them.
    pub fn append(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let mut writer = Self { file };
        if writer.file.metadata()?.len() == 0 {
            let mut header = Vec::with_capacity(24);
            header.extend(MAGIC.to_ne_bytes());
            header.extend(2u16.to_ne_bytes());
            header.extend(4u16.to_ne_bytes());
            header.extend([0; 8]);
            header.extend(SNAPLEN.to_ne_bytes());
            header.extend(ETHERNET.to_ne_bytes());
            writer.file.write_all(&header)?;
        }
        Ok(writer)
    }

    /// Adds a packet, at time zero: devices read no clock.
    ///
    /// # Errors
    /// As the system gives them.
    pub fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX).to_ne_bytes();
        let mut record = Vec::with_capacity(16 + frame.len());
        record.extend([0; 8]);
        record.extend(len);
        record.extend(len);
        record.extend(frame);
        self.file.write_all(&record)
    }
}
