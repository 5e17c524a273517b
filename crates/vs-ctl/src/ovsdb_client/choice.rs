//! Which of several servers to work with: the leader of a cluster, or any that is part of it.

use base::Instant;
use db_client::Servers;
use db_model::Uuid;
use io::{Net, Poll};
use json::{Json, Object};

use super::Stop;
use super::rpc::{Client, Failure};

/// What a server must be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted<'a> {
    /// It must have this database; without one, any server will do.
    pub(super) database: Option<&'a str>,
    /// Of a cluster, it must be the leader.
    pub(super) leader_only: bool,
}

/// The request of what a server says of `database` in its database `_Server`
/// (`ovsdb-server(5)`).
fn request(database: &str) -> Vec<Json> {
    let clause = Json::Array(vec!["name".into(), "==".into(), database.into()]);
    let select = Object::new()
        .with("op", "select")
        .with("table", "Database")
        .with("where", vec![clause]);
    vec!["_Server".into(), select.into()]
}

/// The rows of the reply to [`request`].
fn rows<'a>(result: &'a Json, server: &str, database: &str) -> &'a [Json] {
    let Some([first @ Json::Object(_)]) = result.as_array() else {
        log::warn!(target: "ovsdb_client",
            "{server}: unexpected reply to _Server request for {database}");
        return &[];
    };
    match first.get("rows").and_then(Json::as_array) {
        Some(rows) => {
            for _ in rows.iter().filter(|row| row.as_object().is_none()) {
                log::warn!(target: "ovsdb_client",
                    "{server}: bad row in  _Server reply for {database}");
            }
            rows
        }
        None => {
            log::warn!(target: "ovsdb_client",
                "{server}: missing \"rows\" member in  _Server reply for {database}");
            &[]
        }
    }
}

/// Whether a server with these rows will do.
fn suits(rows: &[Json], cluster: Option<Uuid>, leader_only: bool) -> bool {
    let is_of = |row: &&Json| match cluster {
        None => true,
        Some(cluster) => row.get("cid").is_some_and(|cid| *cid == uuid(cluster)),
    };
    let Some(row) = rows.iter().find(is_of) else {
        return false;
    };
    let is_true = |name| row.get(name).and_then(Json::as_bool) == Some(true);
    if row.get("model").and_then(Json::as_str) == Some("standalone") {
        return true;
    }
    is_true("connected") && (!leader_only || is_true("leader"))
}

fn uuid(uuid: Uuid) -> Json {
    Json::Array(vec!["uuid".into(), uuid.to_string().into()])
}

impl Client {
    /// Connects to the one server that `servers` names, whatever it is; of several, tries each
    /// once in random order, and takes the first that is as wanted.
    pub(super) fn choose(
        net: &Net,
        servers: &Servers,
        wanted: &Wanted<'_>,
        poll: &mut Poll,
        deadline: Instant,
    ) -> Result<Self, Stop> {
        if let [only] = servers.remotes.as_slice() {
            return Self::connect(net, only, poll, deadline);
        }
        let mut remotes: Vec<&String> = servers.remotes.iter().collect();
        let mut order = crate::ovsdb_tool::commands::uuids()?;
        remotes.sort_by_cached_key(|_| order.next_uuid());
        for remote in remotes {
            let mut client = match Self::connect(net, remote, poll, deadline) {
                Ok(client) => client,
                Err(Stop::TimedOut) => return Err(Stop::TimedOut),
                Err(Stop::Fatal(why)) => {
                    log::info!(target: "ovsdb_client", "{why}");
                    continue;
                }
            };
            let Some(database) = wanted.database else {
                return Ok(client);
            };
            match client.request(poll, deadline, "transact", request(database)) {
                Ok(result) => {
                    let rows = rows(&result, remote, database);
                    if suits(rows, servers.cluster, wanted.leader_only) {
                        return Ok(client);
                    }
                }
                Err(Failure::TimedOut) => return Err(Stop::TimedOut),
                Err(Failure::Lost(_) | Failure::Refused(_)) => {}
            }
        }
        Err("no servers were available".to_owned().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_will_do() {
        let id = "550e8400-e29b-41d4-a716-446655440000";
        let cluster = db_model::parse_uuid(id);
        let row = |model: &str, connected: bool, leader: bool| {
            let cid = format!(r#""cid":["uuid","{id}"]"#);
            let text = format!(
                r#"[{{"rows":[{{"model":"{model}","connected":{connected},"leader":{leader},{cid}}}]}}]"#
            );
            json::parse(text.as_bytes()).expect("valid JSON")
        };
        for (model, connected, leader, leader_only, any) in [
            ("standalone", false, false, true, true),
            ("clustered", true, true, true, true),
            ("clustered", true, false, false, true),
            ("clustered", false, true, false, false),
            ("relay", true, false, false, true),
            ("relay", false, false, false, false),
        ] {
            let reply = row(model, connected, leader);
            let rows = rows(&reply, "unix:a", "D");
            for cluster in [None, cluster] {
                assert_eq!(suits(rows, cluster, true), leader_only, "{model}");
                assert_eq!(suits(rows, cluster, false), any, "{model}");
            }
            assert!(!suits(rows, Some(Uuid::nil()), false), "{model}");
        }
    }

    #[test]
    fn replies_that_make_no_sense() {
        let bad_row = r#"[{"rows":[1]}]"#;
        for text in [
            "{}",
            "[]",
            "[1]",
            r#"[{"error":"x"}]"#,
            r#"[{"rows":1}]"#,
            bad_row,
        ] {
            let reply = json::parse(text.as_bytes()).expect("valid JSON");
            let rows = rows(&reply, "unix:a", "D");
            assert!(!suits(rows, None, false), "{text}");
        }
    }
}
