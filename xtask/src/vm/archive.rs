//! The archive that a kernel unpacks as its first file system: cpio in the "newc" format
//! (kernel documentation, `driver-api/early-userspace/buffer-format`).

/// An archive under construction.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

impl Archive {
    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), data: &[u8]) {
        self.entries += 1;
        let fields = [
            self.entries,
            mode,
            0, // Owner and group: root.
            0,
            1, // Links.
            0, // Time of change.
            u32::try_from(data.len()).unwrap_or(u32::MAX),
            0,
            0,
            device.0,
            device.1,
            name.len() as u32 + 1,
            0, // No checksum.
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(data);
        self.pad();
    }

    fn pad(&mut self) {
        let len = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(len, 0);
    }

    /// Adds a folder; those above it must be there.
    pub(crate) fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER | 0o755, (0, 0), &[]);
    }

    /// Adds a file that may be executed.
    pub(crate) fn program(&mut self, name: &str, data: &[u8]) {
        self.entry(name, FILE | 0o755, (0, 0), data);
    }

    /// Adds a character device.
    pub(crate) fn device(&mut self, name: &str, major: u32, minor: u32) {
        self.entry(name, CHARACTER_DEVICE | 0o600, (major, minor), &[]);
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and contents, read as the kernel does.
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut found = Vec::new();
        loop {
            assert_eq!(&bytes[..6], b"070701");
            let field = |n: usize| {
                let text = std::str::from_utf8(&bytes[6 + 8 * n..14 + 8 * n]).unwrap();
                u32::from_str_radix(text, 16).unwrap()
            };
            let (mode, size, name_len) = (field(1), field(6) as usize, field(11) as usize);
            let name = String::from_utf8(bytes[110..110 + name_len - 1].to_vec()).unwrap();
            let data_at = (110 + name_len).next_multiple_of(4);
            if name == "TRAILER!!!" {
                return found;
            }
            found.push((name, mode, bytes[data_at..data_at + size].to_vec()));
            bytes = &bytes[(data_at + size).next_multiple_of(4)..];
        }
    }

    #[test]
    fn what_goes_in_comes_out() {
        let mut archive = Archive::default();
        archive.folder("bin");
        archive.program("bin/a", b"12345");
        archive.device("dev/console", 5, 1);
        let found = read(&archive.finish());
        assert_eq!(found[0], ("bin".into(), 0o040_755, vec![]));
        assert_eq!(found[1], ("bin/a".into(), 0o100_755, b"12345".to_vec()));
        assert_eq!(found[2].1, 0o020_600);
    }
}
