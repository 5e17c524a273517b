//! Where a database is served: the text that names one server, or several of a cluster.

use db_model::{Uuid, parse_uuid};

/// The servers that a `--db` option or a `SERVER` argument names (`ovsdb(7)`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Servers {
    /// Connection names, in the order in which they stand.
    pub remotes: Vec<String>,
    /// The only cluster whose servers will do, if `cid:UUID` stands among them.
    pub cluster: Option<Uuid>,
}

impl Servers {
    /// Reads names apart by commas.  A comma that no method (letters and a colon) follows
    /// belongs to a name, as in `unix:a,b`.
    pub fn parse(text: &str) -> Self {
        let mut servers = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let commas = rest.match_indices(',').map(|(at, _)| at);
            let end = commas
                .into_iter()
                .find(|at| begins_with_method(&rest[at + 1..]));
            let (name, after) = match end {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None => (rest, ""),
            };
            servers.add(name.trim_end());
            rest = after.trim_start();
        }
        servers
    }

    fn add(&mut self, name: &str) {
        let cluster = name.strip_prefix("cid:").and_then(parse_uuid);
        if self.cluster.is_none() && cluster.is_some() {
            self.cluster = cluster;
        } else {
            self.remotes.push(name.to_owned());
        }
    }
}

fn begins_with_method(text: &str) -> bool {
    let text = text.trim_start();
    let rest = text.trim_start_matches(|c: char| c.is_ascii_lowercase());
    rest.len() < text.len() && rest.starts_with(':')
}

#[cfg(test)]
mod tests {
    use super::Servers;

    #[test]
    fn names_are_told_apart() {
        for (text, names) in [
            ("", &[][..]),
            ("  ", &[]),
            ("unix:db.sock", &["unix:db.sock"]),
            ("unix:a,b", &["unix:a,b"]),
            (
                " tcp:1.2.3.4:1, tcp:[::1]:2 ,ssl:h:3",
                &["tcp:1.2.3.4:1", "tcp:[::1]:2", "ssl:h:3"],
            ),
            ("tcp:a:1,", &["tcp:a:1,"]),
            ("cid:what,tcp:a:1", &["cid:what", "tcp:a:1"]),
            ("bad, name", &["bad, name"]),
        ] {
            let servers = Servers::parse(text);
            assert_eq!(servers.remotes, names, "{text:?}");
            assert_eq!(servers.cluster, None, "{text:?}");
        }
    }

    #[test]
    fn a_cluster_is_no_server() {
        let id = "550e8400-e29b-41d4-a716-446655440000";
        for text in [
            format!("cid:{id},unix:a,unix:b"),
            format!("unix:a,cid:{id}, unix:b"),
            format!("unix:a,unix:b,cid:{id}"),
        ] {
            let servers = Servers::parse(&text);
            assert_eq!(servers.remotes, ["unix:a", "unix:b"], "{text}");
            assert_eq!(
                servers.cluster.map(|id| id.to_string()).as_deref(),
                Some(id)
            );
        }
    }
}
