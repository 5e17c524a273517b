//! Whether a server is one to work with: what its database `_Server` says of itself
//! (`ovsdb-server(5)`), which it tells whenever it changes.

use std::borrow::Cow;

use db_model::{Uuid, parse_uuid};
use json::{Json, Object};

/// The columns that matter.
const COLUMNS: [&str; 5] = ["model", "connected", "leader", "cid", "index"];

/// What is known of the server's part in serving the database.
#[derive(Clone, Debug, Default, PartialEq)]
struct Role {
    model: String,
    connected: bool,
    leader: bool,
    cluster: Option<Uuid>,
    /// How far a server of a cluster is in its log.
    index: i64,
}

/// A check of the server that one is connected to.
#[derive(Debug)]
pub(crate) struct ServerCheck {
    /// Only the leader of a cluster will do.
    pub(crate) leader_only: bool,
    /// Only servers of this cluster will do.
    pub(crate) cluster: Option<Uuid>,
    /// The request that was not answered yet.
    pub(crate) asked: Option<i64>,
    role: Option<Role>,
    /// The cluster that one worked with, and how far it was: a server of it that is less far would
    /// bring back what is over.
    seen: (Option<Uuid>, i64),
}

/// The identifier of the monitor.
pub(crate) fn monitor_id() -> Json {
    Json::Array(vec!["monid".into(), "_Server".into()])
}

/// The parameters of `monitor_cond` for what concerns `database`.
pub(crate) fn params(database: &str) -> Json {
    let columns: Vec<Json> = COLUMNS.map(Json::from).to_vec();
    let clause = Json::Array(vec!["name".into(), "==".into(), database.into()]);
    let request = Object::new()
        .with("columns", columns)
        .with("where", vec![clause]);
    let tables = Object::new().with("Database", vec![Json::Object(request)]);
    Json::Array(vec!["_Server".into(), monitor_id(), tables.into()])
}

impl ServerCheck {
    pub(crate) const fn new(leader_only: bool) -> Self {
        Self {
            leader_only,
            cluster: None,
            asked: None,
            role: None,
            seen: (None, 0),
        }
    }

    /// Nothing is known of the server any more, and it need not be asked.
    pub(crate) fn forget(&mut self) {
        self.asked = None;
        self.role = None;
    }

    /// Another server is asked, by request `id`.
    pub(crate) fn restart(&mut self, id: i64) {
        self.asked = Some(id);
        self.role = None;
    }

    /// Takes in a reply to the monitor request, or an update.  A server that keeps no such
    /// database is an old one, which stands alone.
    pub(crate) fn update(&mut self, updates: &Json) {
        let rows = updates.get("Database").and_then(Json::as_object);
        for (_, change) in rows.into_iter().flat_map(Object::iter) {
            let kinds = ["initial", "insert", "modify"];
            let row = kinds.iter().find_map(|kind| change.get(kind));
            let Some(row) = row else {
                self.role = None;
                continue;
            };
            let role = self.role.get_or_insert_default();
            if let Some(model) = row.get("model").and_then(Json::as_str) {
                model.clone_into(&mut role.model);
            }
            let flag = |name: &str| match row.get(name) {
                Some(Json::Boolean(on)) => Some(*on),
                _ => None,
            };
            // A column that is not told has its default, or has not changed.
            role.connected = flag("connected").unwrap_or(role.connected);
            role.leader = flag("leader").unwrap_or(role.leader);
            if let Some(id) = row.get("cid") {
                role.cluster = uuid(id);
            }
            if let Some(index) = row.get("index") {
                role.index = index.as_integer().unwrap_or(0);
            }
        }
        if let Some(role) = &self.role
            && role.model == "clustered"
            && self.verdict("").is_none()
        {
            self.seen = (role.cluster, role.index);
        }
    }

    /// Why the server will not do for `database`, if it will not.
    pub(crate) fn verdict(&self, database: &str) -> Option<Cow<'static, str>> {
        let role = self.role.as_ref()?;
        let (connected, is_leader) = (role.connected, role.leader || !self.leader_only);
        if self.cluster.is_some() && role.cluster != self.cluster {
            return Some(format!("server does not have {database} database").into());
        }
        Some(Cow::Borrowed(match &role.model[..] {
            "clustered" if !connected => {
                "clustered database server is disconnected from cluster; trying another server"
            }
            "clustered" if !is_leader => {
                "clustered database server is not cluster leader; trying another server"
            }
            "clustered" if role.cluster == self.seen.0 && role.index < self.seen.1 => {
                "clustered database server has stale data; trying another server"
            }
            "relay" if !connected => {
                "relay database server is disconnected from the relay source; trying another server"
            }
            "relay" if self.leader_only => {
                "relay database server cannot be a leader; trying another server"
            }
            _ => return None,
        }))
    }
}

/// The UUID in `["uuid", TEXT]`.
fn uuid(json: &Json) -> Option<Uuid> {
    match json.as_array() {
        Some([tag, id]) if tag.as_str() == Some("uuid") => id.as_str().and_then(parse_uuid),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(check: &mut ServerCheck, row: &str) {
        let text = format!(r#"{{"Database":{{"5b1a":{row}}}}}"#);
        check.update(&json::parse(text.as_bytes()).expect("valid JSON"));
    }

    #[test]
    fn servers_of_every_model() {
        const FOLLOWS: &str = "clustered database server is not cluster leader";
        const APART: &str = "clustered database server is disconnected from cluster";
        const RELAYS: &str = "relay database server cannot be a leader";
        const STRAYS: &str = "relay database server is disconnected from the relay source";
        // Model, whether it is connected and leads, what is wrong for those who want the leader
        // and for those who take any.
        let cases = [
            ("standalone", true, true, "", ""),
            ("clustered", true, true, "", ""),
            ("clustered", true, false, FOLLOWS, ""),
            ("clustered", false, false, APART, APART),
            ("relay", true, false, RELAYS, ""),
            ("relay", false, false, STRAYS, STRAYS),
        ];
        for (model, connected, leader, leader_only, any) in cases {
            // Columns that have their defaults are not told.
            let mut row = Object::new().with("model", model);
            for (name, on) in [("connected", connected), ("leader", leader)] {
                if on {
                    row.insert(name, true);
                }
            }
            let row = Json::Object(Object::new().with("initial", row)).to_string();
            for (leaders, want) in [(true, leader_only), (false, any)] {
                let mut check = ServerCheck::new(leaders);
                update(&mut check, &row);
                let verdict = check.verdict("D").unwrap_or_default();
                let verdict = verdict.strip_suffix("; trying another server");
                assert_eq!(verdict.unwrap_or_default(), want, "{row} {leaders}");
            }
        }
    }

    #[test]
    fn only_one_cluster_will_do() {
        let ids = [1, 2].map(|n| format!("550e8400-e29b-41d4-a716-44665544000{n}"));
        let mut check = ServerCheck::new(false);
        check.cluster = parse_uuid(&ids[0]);
        let row =
            |cid: &str| format!(r#"{{"initial":{{"model":"clustered","connected":true{cid}}}}}"#);
        for (cid, suits) in [
            (format!(r#","cid":["uuid","{}"]"#, ids[0]), true),
            (format!(r#","cid":["uuid","{}"]"#, ids[1]), false),
            (r#","cid":["set",[]]"#.to_owned(), false),
            (String::new(), false),
        ] {
            check.forget();
            update(&mut check, &row(&cid));
            assert_eq!(check.verdict("D").is_none(), suits, "{cid}");
        }
    }

    #[test]
    fn nobody_goes_back_in_a_cluster() {
        let mut check = ServerCheck::new(false);
        let row = |index: i64| {
            format!(r#"{{"initial":{{"model":"clustered","connected":true,"index":{index}}}}}"#)
        };
        let stale = "clustered database server has stale data; trying another server";
        for (index, suits) in [(7, true), (9, true), (8, false), (9, true), (12, true)] {
            check.restart(1);
            update(&mut check, &row(index));
            let verdict = check.verdict("D");
            assert_eq!(verdict.as_deref(), (!suits).then_some(stale), "{index}");
        }
        // Another cluster counts anew.
        check.restart(2);
        update(
            &mut check,
            r#"{"initial":{"model":"clustered","connected":true,"index":1,"cid":["uuid","550e8400-e29b-41d4-a716-446655440000"]}}"#,
        );
        assert_eq!(check.verdict("D"), None);
        check.restart(2);
        update(&mut check, &row(12));
        check.restart(2);
        update(&mut check, &row(11));
        assert!(check.verdict("D").is_some());
        update(&mut check, r#"{"modify":{"index":13}}"#);
        assert_eq!(check.verdict("D"), None);
    }

    #[test]
    fn a_leader_may_lose_its_place() {
        let mut check = ServerCheck::new(true);
        check.update(&Json::Object(Object::new()));
        assert_eq!(check.verdict("D"), None, "nothing is known");
        update(
            &mut check,
            r#"{"insert":{"model":"clustered","connected":true,"leader":true}}"#,
        );
        assert_eq!(check.verdict("D"), None);
        update(&mut check, r#"{"modify":{"leader":false}}"#);
        assert!(check.verdict("D").is_some());
        update(&mut check, r#"{"modify":{"leader":true}}"#);
        assert_eq!(check.verdict("D"), None);
        update(&mut check, r#"{"delete":null}"#);
        assert_eq!(check.verdict("D"), None);
    }
}
