//! Which controllers the database may name.  Who writes the database may sit on another machine;
//! a Unix socket that he names must not let him reach the sockets of other programs here, nor have
//! a file of theirs replaced by a socket.

use std::path::{Component, Path};

/// Why a bridge called `bridge` must not have the controller `target`, if so.  `run` is the
/// directory in which its Unix sockets may lie: to connect to a socket there, or by a name without
/// a folder; to listen on `BRIDGE.` and more there.
pub(crate) fn refusal(bridge: &str, target: &str, run: &Path) -> Option<String> {
    let always = run.join(format!("{bridge}.mgmt"));
    let always = always.display();
    if let Some(path) = target.strip_prefix("punix:") {
        let prefix = format!("{bridge}.");
        let permitted = below(path, run).is_some_and(|rest| {
            rest.parent() == Some(Path::new("")) && rest.to_string_lossy().starts_with(&prefix)
        });
        return (!permitted).then(|| {
            format!(
                "bridge {bridge}: Not adding Unix domain socket controller \"{target}\" due to \
                 possibility of overwriting local files. Instead, specify path in permitted \
                 format \"punix:{}*\" or connect to \"unix:{always}\" (which is always available \
                 without special configuration).",
                run.join(prefix).display()
            )
        });
    }
    let path = target.strip_prefix("unix:")?;
    let permitted = !path.contains('/') || below(path, run).is_some();
    (!permitted).then(|| {
        format!(
            "bridge {bridge}: Not connecting to socket controller \"{target}\" due to possibility \
             for remote exploit.  Instead, specify socket in permitted directory \"unix:{}/\" or \
             connect to \"unix:{always}\" (which is always available without special \
             configuration).",
            run.display()
        )
    })
}

/// What of `path` lies below `run`, if all of it does.
fn below<'a>(path: &'a str, run: &Path) -> Option<&'a Path> {
    let rest = Path::new(path).strip_prefix(run).ok()?;
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    (rest.components().next().is_some() && rest.components().all(plain)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_sockets_lie_in_the_run_directory() {
        let run = Path::new("/run/ovs");
        let is_refused = |target| refusal("br0", target, run).is_some();
        for target in [
            "tcp:1.2.3.4:6653",
            "ptcp:6653",
            "ssl:[::1]",
            "pssl:",
            "none",
            "unix:x.sock",
            "unix:/run/ovs/x.sock",
            "unix:/run//ovs//x.sock",
            "unix:/run/ovs/folder/x.sock",
            "punix:/run/ovs/br0.controller",
            "punix:/run//ovs/br0.controller",
        ] {
            assert!(!is_refused(target), "{target}");
        }
        for target in [
            "unix:/etc/x.sock",
            "unix:/run/ovsx/x.sock",
            "unix:/run/ovs/",
            "unix:/run/ovs/../docker.sock",
            "unix:../docker.sock",
            "punix:",
            "punix:x",
            "punix:br0.controller",
            "punix:/etc/passwd",
            "punix:/run/ovs/br1.controller",
            "punix:/run/ovs/br0",
            "punix:/run/ovs/br0./x",
            "punix:/run/ovs/br0.x/../../../etc/passwd",
            "punix:/run/ovs/../br0.x",
            "punix:/run/ovsx/br0.x",
            "punix:/run/ovs/conf.db",
        ] {
            assert!(is_refused(target), "{target}");
        }
    }
}
