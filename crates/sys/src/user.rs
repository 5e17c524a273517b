//! Users and groups, as the system's databases have them.

use std::ffi::{CStr, CString};
use std::io;

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: String,
    /// Number.
    pub uid: u32,
    /// Number of the group that the user belongs to first.
    pub gid: u32,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Number.
    pub gid: u32,
    /// Names of users that belong to it besides those who belong to it first.
    pub members: Vec<String>,
}

/// Bytes for an entry's texts at first, and at most.
const FIRST_SIZE: usize = 1024;
const MAX_SIZE: usize = 1 << 24;

/// Calls `look` with a buffer, and with larger ones while it says that it is too small.
fn with_buffer<T>(
    mut look: impl FnMut(&mut [libc::c_char]) -> Result<Option<T>, libc::c_int>,
) -> io::Result<Option<T>> {
    let mut size = FIRST_SIZE;
    loop {
        let mut buffer = vec![0; size];
        match look(&mut buffer) {
            Err(libc::ERANGE) if size < MAX_SIZE => size *= 2,
            Err(error) => return Err(io::Error::from_raw_os_error(error)),
            Ok(found) => return Ok(found),
        }
    }
}

/// The text at `pointer`; none for null.
///
/// # Safety
/// `pointer` is null or points to a text with a zero byte at its end.
unsafe fn text(pointer: *const libc::c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_string_lossy().into_owned()
}

fn user(
    mut look: impl FnMut(
        *mut libc::passwd,
        *mut libc::c_char,
        usize,
        *mut *mut libc::passwd,
    ) -> libc::c_int,
) -> io::Result<Option<User>> {
    with_buffer(|buffer| {
        // SAFETY: a passwd of zeros is a valid value: numbers and null pointers.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        let (start, size) = (buffer.as_mut_ptr(), buffer.len());
        match look(&raw mut entry, start, size, &raw mut found) {
            0 if found.is_null() => Ok(None),
            0 => Ok(Some(User {
                // SAFETY: the entry was found, so its name is a text in `buffer`.
                name: unsafe { text(entry.pw_name) },
                uid: entry.pw_uid,
                gid: entry.pw_gid,
            })),
            error => Err(error),
        }
    })
}

/// The user called `name`.
///
/// # Errors
/// The databases cannot be read.
pub fn by_name(name: &str) -> io::Result<Option<User>> {
    let name = CString::new(name)?;
    user(|entry, buffer, size, found| {
        // SAFETY: the name ends with a zero byte, and the buffer has `size` bytes.
        unsafe { libc::getpwnam_r(name.as_ptr(), entry, buffer, size, found) }
    })
}

/// The user with number `uid`.
///
/// # Errors
/// The databases cannot be read.
pub fn by_number(uid: u32) -> io::Result<Option<User>> {
    user(|entry, buffer, size, found| {
        // SAFETY: the buffer has `size` bytes.
        unsafe { libc::getpwuid_r(uid, entry, buffer, size, found) }
    })
}

/// The group called `name`.
///
/// # Errors
/// The databases cannot be read.
pub fn group(name: &str) -> io::Result<Option<Group>> {
    let name = CString::new(name)?;
    with_buffer(|buffer| {
        // SAFETY: a group of zeros is a valid value: a number and null pointers.
        let mut entry: libc::group = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        let (start, size) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: the name ends with a zero byte, and the buffer has `size` bytes.
        let error =
            unsafe { libc::getgrnam_r(name.as_ptr(), &raw mut entry, start, size, &raw mut found) };
        if error != 0 {
            return Err(error);
        }
        if found.is_null() {
            return Ok(None);
        }
        let mut members = Vec::new();
        let mut next = entry.gr_mem;
        // SAFETY: the entry was found, so its members are texts in `buffer` behind a list of
        // pointers there that ends with a null one.
        unsafe {
            while !next.is_null() && !(*next).is_null() {
                members.push(text(*next));
                next = next.add(1);
            }
        }
        Ok(Some(Group {
            gid: entry.gr_gid,
            members,
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups() {
        let root = by_number(0).unwrap().unwrap();
        assert_eq!((&root.name[..], root.uid, root.gid), ("root", 0, 0));
        assert_eq!(by_name("root").unwrap(), Some(root));
        assert_eq!(by_name("no such user").unwrap(), None);
        assert_eq!(group("root").unwrap().map(|g| g.gid), Some(0));
        assert_eq!(group("no such group").unwrap(), None);
        assert!(by_name("a\0b").is_err());
    }
}
