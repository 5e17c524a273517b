//! The file of `--config-file`: an object that says which databases are served and where, in
//! place of the command line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use db_model::{Kinds, Members};
use json::{Json, Object};

use crate::remotes::RemoteOptions;
use crate::sources::Source;

/// After how long an idle active server is probed.
pub(crate) const BACKUP_PROBE: Duration = Duration::from_secs(60);
/// After how long an idle source of a relay is probed.
pub(crate) const RELAY_PROBE: Duration = Duration::from_secs(5);

/// How a database is shared between servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    /// It is this server's alone.
    Standalone,
    /// It is a cluster's.
    Clustered,
    /// One server is active, and others follow it until they are told to take over.
    ActiveBackup,
    /// It is another server's.
    Relay,
}

impl Model {
    const ALL: [Self; 4] = [
        Self::Standalone,
        Self::Clustered,
        Self::ActiveBackup,
        Self::Relay,
    ];

    /// The name in configuration files.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Clustered => "clustered",
            Self::ActiveBackup => "active-backup",
            Self::Relay => "relay",
        }
    }

    /// After how long another server that a database of this model has is probed.
    const fn probe(self) -> Duration {
        match self {
            Self::ActiveBackup => BACKUP_PROBE,
            Self::Standalone | Self::Clustered | Self::Relay => RELAY_PROBE,
        }
    }

    /// The other server of a database of this model, with the options that it has if nothing
    /// is said of them.
    pub(crate) fn source(self, remotes: &str) -> Source {
        let mut options = RemoteOptions::default_for(remotes);
        options.probe_interval = self.probe();
        Source {
            remotes: remotes.to_owned(),
            options,
        }
    }
}

/// How one database is to be served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DbConfig {
    /// The model that it must have, if one was named.
    pub(crate) model: Option<Model>,
    /// The other server.
    pub(crate) source: Option<Source>,
    /// Tables that a backup leaves alone, between commas.
    pub(crate) excluded: Option<String>,
    /// Whether it follows the other server.
    pub(crate) backup: bool,
}

/// What a configuration file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    /// Remotes as `--remote` takes them.
    pub(crate) remotes: BTreeMap<String, RemoteOptions>,
    /// Database files, and names of relayed databases.
    pub(crate) databases: BTreeMap<String, DbConfig>,
}

impl Config {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The lines to log, the cause first.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Vec<String>> {
        let json = json::parse(text)
            .map_err(|error| vec![format!("config: reading JSON failed ({error})")])?;
        if json.as_object().is_none() {
            let text = "configuration in a file must be a JSON object";
            return Err(vec![text.to_owned()]);
        }
        let under = |member: &str, mut lines: Vec<String>| {
            lines.push(format!("config: failed to parse '{member}'"));
            lines
        };
        let remotes = remotes(&json).map_err(|lines| under("remotes", lines))?;
        let databases = databases(&json).map_err(|lines| under("databases", lines))?;
        Ok(Self { remotes, databases })
    }
}

/// The pairs of member `name`, none if it is null.
fn pairs<'a>(json: &'a Json, name: &str) -> Result<Vec<(&'a str, &'a Json)>, Vec<String>> {
    match json.get(name) {
        None => Err(vec![format!("config: there are no '{name}'")]),
        Some(Json::Null) => Ok(Vec::new()),
        Some(Json::Object(object)) => Ok(object
            .iter()
            .map(|(name, value)| (&**name, value))
            .collect()),
        Some(_) => Err(vec![format!("config: '{name}' is not a JSON object")]),
    }
}

fn remotes(json: &Json) -> Result<BTreeMap<String, RemoteOptions>, Vec<String>> {
    let mut remotes = BTreeMap::new();
    for (target, settings) in pairs(json, "remotes")? {
        let mut options = RemoteOptions::default_for(target);
        match settings {
            Json::Null => {}
            Json::Object(_) => apply(&mut options, target, settings)?,
            _ => {
                let text = "JSON-RPC options are not a JSON object or null";
                return Err(vec![format!("{target}: {text}")]);
            }
        }
        remotes.insert(target.to_owned(), options);
    }
    Ok(remotes)
}

/// Takes over a remote's options.  One that makes no sense is told of and left as it was, as
/// in a database.
fn apply(options: &mut RemoteOptions, target: &str, json: &Json) -> Result<(), Vec<String>> {
    let mut members = Members::new(json, "JSON-RPC options");
    apply_session(options, target, &mut members);
    let read_only = members.optional("read-only", Kinds::BOOLEAN);
    options.read_only = read_only
        .and_then(Json::as_bool)
        .unwrap_or(options.read_only);
    let role = members.optional("role", Kinds::STRING);
    let role = role.and_then(Json::as_str).filter(|role| !role.is_empty());
    options.role = role.map(Arc::from);
    finish(members);
    Ok(())
}

/// Takes over the options that another server's connection has as well.
fn apply_session(options: &mut RemoteOptions, target: &str, members: &mut Members<'_>) {
    let integer = |members: &mut Members<'_>, name| {
        members
            .optional(name, Kinds::INTEGER)
            .and_then(Json::as_integer)
    };
    let millis = |value: i64| Duration::from_millis(u64::try_from(value).unwrap_or(0));
    if let Some(value) = integer(members, "max-backoff") {
        options.max_backoff = millis(value);
    }
    if let Some(value) = integer(members, "inactivity-probe") {
        options.probe_interval = millis(value);
    }
    if let Some(value) = integer(members, "dscp") {
        match u8::try_from(value).ok().filter(|dscp| *dscp < 64) {
            Some(dscp) => options.dscp = dscp,
            None => log::warn!(target: "ovsdb_server", "{target}: bad dscp {value}"),
        }
    }
}

/// What does not belong among options is told of, and no more.
fn finish(members: Members<'_>) {
    if let Err(error) = members.finish() {
        log::warn!(target: "ovsdb_server", "{error}");
    }
}

fn databases(json: &Json) -> Result<BTreeMap<String, DbConfig>, Vec<String>> {
    let mut databases = BTreeMap::new();
    for (file, settings) in pairs(json, "databases")? {
        let config = match settings {
            Json::Null => DbConfig::default(),
            settings => DbConfig::from_json(file, settings)?,
        };
        databases.insert(file.to_owned(), config);
    }
    Ok(databases)
}

impl DbConfig {
    /// Reads what is said of the database in `file`.
    ///
    /// # Errors
    /// The lines to log, the cause first.
    pub(crate) fn from_json(file: &str, json: &Json) -> Result<Self, Vec<String>> {
        let mut lines = Vec::new();
        let mut members = Members::new(json, format!("database {file}"));
        let mut this = Self::default();
        let name = members.optional("service-model", Kinds::STRING);
        if let Some(name) = name.and_then(Json::as_str) {
            this.model = Model::ALL.into_iter().find(|model| model.name() == name);
            if this.model.is_none() {
                lines.push(format!("Unrecognized database service model: '{name}'"));
                members.fail(format!("'{name}' is not a valid service model"));
            }
        }
        if this.model == Some(Model::ActiveBackup) {
            let backup = members.required("backup", Kinds::BOOLEAN);
            this.backup = backup.and_then(Json::as_bool).unwrap_or(false);
            this.excluded = excluded(&mut members);
        }
        if let Some(model @ (Model::ActiveBackup | Model::Relay)) = this.model {
            let needed = model == Model::Relay || this.backup;
            this.source = source(&mut members, model, needed);
        }
        match members.finish() {
            Ok(()) => Ok(this),
            Err(error) => {
                lines.push(error.to_string());
                Err(lines)
            }
        }
    }

    /// The same as a file would say it.
    pub(crate) fn to_json(&self) -> Json {
        let mut object = Object::new();
        if let Some(model) = self.model {
            object.insert("service-model", model.name());
        }
        if let Some(source) = &self.source {
            let options = &source.options;
            let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
            let options = Object::new()
                .with("max-backoff", millis(options.max_backoff))
                .with("inactivity-probe", millis(options.probe_interval))
                .with("dscp", i64::from(options.dscp));
            object.insert("source", Object::new().with(&*source.remotes, options));
        }
        if self.model == Some(Model::ActiveBackup) {
            if let Some(excluded) = &self.excluded {
                let tables = excluded.split([',', ' ']).filter(|name| !name.is_empty());
                let tables: Vec<Json> = tables.map(Json::from).collect();
                object.insert("exclude-tables", tables);
            }
            object.insert("backup", self.backup);
        }
        object.into()
    }
}

/// The tables that are left alone.
fn excluded(members: &mut Members<'_>) -> Option<String> {
    let json = members.optional("exclude-tables", Kinds::ARRAY)?;
    let mut tables = Vec::new();
    for table in json.as_array().unwrap_or_default() {
        match table.as_str() {
            Some(table) => tables.push(table),
            None => {
                members.fail("'exclude-tables' must contain strings".to_owned());
                break;
            }
        }
    }
    tables.sort_unstable();
    tables.dedup();
    Some(tables.join(","))
}

/// The other server, which must be named if it is `needed`.
fn source(members: &mut Members<'_>, model: Model, needed: bool) -> Option<Source> {
    let json = if needed {
        members.required("source", Kinds::OBJECT)
    } else {
        members.optional("source", Kinds::OBJECT)
    };
    let mut named = json?.as_object()?.iter();
    let (Some((remotes, options)), None) = (named.next(), named.next()) else {
        let text = "'source' should be an object with exactly one element";
        members.fail(text.to_owned());
        return None;
    };
    let mut source = model.source(remotes);
    match options {
        Json::Null => {}
        Json::Object(_) => {
            let mut members = Members::new(options, "JSON-RPC options");
            apply_session(&mut source.options, remotes, &mut members);
            finish(members);
        }
        _ => members.fail("JSON-RPC options is not a JSON object or null".to_owned()),
    }
    Some(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str) -> Vec<String> {
        Config::parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn remotes_and_databases_are_read() {
        let text = r#"{"remotes":{"punix:a":null,"ptcp:1":{"max-backoff":2000,
            "inactivity-probe":0,"dscp":10,"read-only":true},"db:a,b,c":{"dscp":64,"more":1}},
            "databases":{"one":null,"two":{},"three":{"service-model":"standalone"}}}"#;
        let config = Config::parse(text.as_bytes()).unwrap();
        assert_eq!(
            config.remotes["punix:a"],
            RemoteOptions::default_for("punix:a")
        );
        let options = RemoteOptions {
            max_backoff: Duration::from_secs(2),
            probe_interval: Duration::ZERO,
            dscp: 10,
            read_only: true,
            role: None,
        };
        assert_eq!(config.remotes["ptcp:1"], options);
        assert_eq!(
            config.remotes["db:a,b,c"],
            RemoteOptions::default_for("db:a,b,c")
        );
        let models = config.databases.into_iter();
        let models: Vec<_> = models.map(|(file, config)| (file, config.model)).collect();
        let wanted = [
            ("one".to_owned(), None),
            ("three".to_owned(), Some(Model::Standalone)),
            ("two".to_owned(), None),
        ];
        assert_eq!(models, wanted);
        let nothing = r#"{"remotes":null,"databases":{}}"#;
        assert_eq!(Config::parse(nothing.as_bytes()), Ok(Config::default()));
    }

    #[test]
    fn databases_of_other_servers() {
        let text = r#"{"remotes":{"pssl:1":{"role":"ovn-controller"}},"databases":{
            "r":{"service-model":"relay","source":{"unix:a,tcp:b:1":{"max-backoff":3000,"dscp":7}}},
            "b":{"service-model":"active-backup","backup":true,"source":{"unix:a":null},
                 "exclude-tables":["y","x"]},
            "a":{"service-model":"active-backup","backup":false}}}"#;
        let config = Config::parse(text.as_bytes()).unwrap();
        let role = config.remotes["pssl:1"].role.as_deref();
        assert_eq!(role, Some("ovn-controller"));
        let relay = &config.databases["r"];
        let source = relay.source.as_ref().unwrap();
        assert_eq!(source.remotes, "unix:a,tcp:b:1");
        assert_eq!(source.options.max_backoff, Duration::from_secs(3));
        assert_eq!(source.options.probe_interval, RELAY_PROBE);
        assert_eq!(source.options.dscp, 7);
        let backup = &config.databases["b"];
        assert!(backup.backup && backup.excluded.as_deref() == Some("x,y"));
        let source = backup.source.as_ref().unwrap();
        assert_eq!(source.options.probe_interval, BACKUP_PROBE);
        assert!(!config.databases["a"].backup);
        for (name, config) in &config.databases {
            assert_eq!(
                DbConfig::from_json(name, &config.to_json()).as_ref(),
                Ok(config)
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let unknown = r#"{"remotes":{},"databases":{"db":{"service-model":"odd"}}}"#;
        assert_eq!(
            fails(unknown),
            [
                "Unrecognized database service model: 'odd'",
                "syntax \"{\"service-model\":\"odd\"}\": syntax error: Parsing database db \
                 failed: 'odd' is not a valid service model",
                "config: failed to parse 'databases'",
            ]
        );
        for (text, first) in [
            ("[]", "configuration in a file must be a JSON object"),
            ("{", "config: reading JSON failed"),
            (r#"{"remotes":{}}"#, "config: there are no 'databases'"),
            (r#"{"databases":{}}"#, "config: there are no 'remotes'"),
            (r#"{"remotes":1}"#, "config: 'remotes' is not a JSON object"),
            (
                r#"{"remotes":{"punix:a":3}}"#,
                "punix:a: JSON-RPC options are not",
            ),
            (
                r#"{"remotes":{},"databases":{"d":{"service-model":"relay"}}}"#,
                "syntax \"{\"service-model\":\"relay\"}\": syntax error: Parsing database d failed: Required 'source' member is missing.",
            ),
            (
                r#"{"remotes":{},"databases":{"d":{"service-model":"relay","source":{"a":1,"b":2}}}}"#,
                "syntax \"{\"service-model\":\"relay\",\"source\":{\"a\":1,\"b\":2}}\": syntax error: Parsing database d failed: 'source' should be an object with exactly one element",
            ),
            (
                r#"{"remotes":{},"databases":{"d":{"service-model":"active-backup","backup":true}}}"#,
                "syntax \"{\"backup\":true,\"service-model\":\"active-backup\"}\": syntax error: Parsing database d failed: Required 'source' member is missing.",
            ),
            (
                r#"{"remotes":{},"databases":{"d":{"backup":true}}}"#,
                "syntax \"{\"backup\":true}\": syntax error: Parsing database d failed",
            ),
        ] {
            assert!(fails(text)[0].starts_with(first), "{:?}", fails(text));
        }
    }
}
