//! Files that a daemon was told to read.

use std::io::{Error, Result};
use std::path::Path;

/// What is there is no regular file: to open or read it may wait for ever, or do things.
///
/// # Errors
/// It is a folder (`EISDIR`), a FIFO, a socket or a device, or it cannot be looked at.
pub fn check_regular(path: &Path) -> Result<()> {
    const EISDIR: i32 = 21;
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(Error::from_raw_os_error(EISDIR))
    } else {
        Err(Error::other("Not a regular file"))
    }
}

/// Reads a whole file, without ever waiting for somebody who writes it.
///
/// # Errors
/// It is no regular file, or cannot be read.
pub fn read_regular(path: &Path) -> Result<Vec<u8>> {
    check_regular(path)?;
    std::fs::read(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno_text;

    #[test]
    fn only_regular_files_are_read() {
        let dir = std::env::temp_dir().join(format!("base.file.{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read_regular(&file).unwrap(), b"text");
        let socket = dir.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, text) in [
            (dir.as_path(), "Is a directory"),
            (socket.as_path(), "Not a regular file"),
            (Path::new("/dev/zero"), "Not a regular file"),
            (&dir.join("none"), "No such file or directory"),
        ] {
            let error = read_regular(path).unwrap_err();
            assert_eq!(errno_text(&error), text, "{}", path.display());
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
