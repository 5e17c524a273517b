//! Running as another user: `--user`.

use base::log::Logger;
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use sys::user;

/// Whom a daemon is to run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    name: String,
    uid: u32,
    gid: u32,
}

/// What every daemon keeps of root's powers: to lock memory and to listen on low ports.
const ALWAYS: CapabilitySet = CapabilitySet::IPC_LOCK.union(CapabilitySet::NET_BIND_SERVICE);
/// What a daemon keeps that works on a datapath.
const DATAPATH: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::NET_BROADCAST);

impl NewUser {
    /// Reads `USER`, `USER:GROUP` or `:GROUP`.
    ///
    /// # Errors
    /// The text that `program` ends with, without its name: there is no such user or group, the
    /// user is not in the group, or we are not root.
    pub fn parse(text: &str, program: &str) -> Result<Self, String> {
        let ours = rustix::process::getuid();
        if !ours.is_root() || !rustix::process::geteuid().is_root() {
            return Err(format!("{program}: only root can use --user option"));
        }
        Self::look_up(text, ours.as_raw()).map_err(|why| format!("{program}: {why}, aborting."))
    }

    fn look_up(text: &str, ours: u32) -> Result<Self, String> {
        let text = text.trim_start();
        let (name, group) = text.split_once(':').unwrap_or((text, ""));
        let found = if name.is_empty() {
            let found = user::by_number(ours);
            found.map_err(|e| format!("Failed to retrieve current user's name ({})", errno(&e)))?
        } else {
            let found = user::by_name(name);
            found.map_err(|e| format!("Failed to retrieve user {name}'s uid ({})", errno(&e)))?
        };
        let found = found.ok_or_else(|| format!("user {name} not found"))?;
        let mut new = Self {
            name: found.name,
            uid: found.uid,
            gid: found.gid,
        };
        let group = group.trim_start();
        if !group.is_empty() {
            new.gid = new.group(group, text)?;
        }
        Ok(new)
    }

    /// The number of a group that the user is in.
    fn group(&self, name: &str, text: &str) -> Result<u32, String> {
        let found = user::group(name);
        let found = found
            .map_err(|e| format!("Failed to get group entry for {name}, ({})", errno(&e)))?
            .ok_or_else(|| format!("group {name} not found"))?;
        if found.gid != self.gid && !found.members.contains(&self.name) {
            let user = &self.name;
            return Err(format!(
                "Invalid --user option {text} (user {user} is not in group {name})"
            ));
        }
        Ok(found.gid)
    }

    /// Becomes that user for good, with few of root's powers, and hands the log file over.
    /// To be called before any thread is started: other threads would stay root.
    pub(super) fn switch(&self, on_datapath: bool, logger: &Logger) -> Result<(), String> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        if let Some(file) = logger.file_handle() {
            // That it cannot be opened again later shows then.
            let _ = rustix::fs::fchown(&file, Some(uid), Some(gid));
        }
        let kept = if on_datapath {
            ALWAYS.union(DATAPATH)
        } else {
            ALWAYS
        };
        let switch = || {
            for capability in CapabilitySet::all().iter() {
                // A capability that this kernel does not know is in no set.
                let _ = remove_capability_from_bounding_set(capability);
            }
            set_keep_capabilities(true)?;
            set_thread_res_gid(gid, gid, gid)?;
            set_thread_groups(&[])?;
            set_thread_res_uid(uid, uid, uid)?;
            set_keep_capabilities(false)?;
            set_capabilities(
                None,
                CapabilitySets {
                    effective: kept,
                    permitted: kept,
                    inheritable: CapabilitySet::empty(),
                },
            )
        };
        let (name, uid_number, gid_number) = (&self.name, self.uid, self.gid);
        switch().map_err(|error: rustix::io::Errno| {
            let text = errno(&error.into());
            format!("fail to switch to user {name} ({uid_number}:{gid_number}): {text}, aborting")
        })?;
        // What a system call says it has done is looked at once more: running on as root would go
        // unnoticed.
        if rustix::process::getuid() != uid || rustix::process::getegid() != gid {
            return Err(format!("fail to switch user to {name}, aborting"));
        }
        Ok(())
    }
}

fn errno(error: &std::io::Error) -> String {
    base::errno_text(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_their_groups() {
        let root = NewUser {
            name: "root".to_owned(),
            uid: 0,
            gid: 0,
        };
        for text in ["root", "root:root", ":root", ":", "", " root"] {
            assert_eq!(NewUser::look_up(text, 0), Ok(root.clone()), "{text}");
        }
        for (text, why) in [
            ("nosuchuser", "user nosuchuser not found"),
            ("root:nosuchgroup", "group nosuchgroup not found"),
            (
                "nobody:root",
                "Invalid --user option nobody:root (user nobody is not in group root)",
            ),
        ] {
            assert_eq!(NewUser::look_up(text, 0), Err(why.to_owned()));
        }
    }
}
