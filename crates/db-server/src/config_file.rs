//! The file of `--config-file`: an object that says which databases are served and where, in
//! place of the command line.

use std::collections::BTreeMap;
use std::time::Duration;

use db_model::{Kinds, Members};
use json::Json;

use crate::remotes::RemoteOptions;

/// How a database is shared between servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    /// It is this server's alone.
    Standalone,
    /// It is a cluster's.
    Clustered,
}

/// What a configuration file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    /// Remotes as `--remote` takes them.
    pub(crate) remotes: BTreeMap<String, RemoteOptions>,
    /// Database files, with the model that each must have, if one was named.
    pub(crate) databases: BTreeMap<String, Option<Model>>,
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
    let integer = |members: &mut Members<'_>, name| {
        members
            .optional(name, Kinds::INTEGER)
            .and_then(Json::as_integer)
    };
    let millis = |value: i64| Duration::from_millis(u64::try_from(value).unwrap_or(0));
    if let Some(value) = integer(&mut members, "max-backoff") {
        options.max_backoff = millis(value);
    }
    if let Some(value) = integer(&mut members, "inactivity-probe") {
        options.probe_interval = millis(value);
    }
    if let Some(value) = integer(&mut members, "dscp") {
        match u8::try_from(value).ok().filter(|dscp| *dscp < 64) {
            Some(dscp) => options.dscp = dscp,
            None => log::warn!(target: "ovsdb_server", "{target}: bad dscp {value}"),
        }
    }
    let read_only = members.optional("read-only", Kinds::BOOLEAN);
    options.read_only = read_only
        .and_then(Json::as_bool)
        .unwrap_or(options.read_only);
    if members.optional("role", Kinds::STRING).is_some() {
        // Without it clients could do more than they should.
        return Err(vec![format!("{target}: roles are not supported yet")]);
    }
    if let Err(error) = members.finish() {
        log::warn!(target: "ovsdb_server", "{error}");
    }
    Ok(())
}

fn databases(json: &Json) -> Result<BTreeMap<String, Option<Model>>, Vec<String>> {
    let mut databases = BTreeMap::new();
    for (file, settings) in pairs(json, "databases")? {
        let model = match settings {
            Json::Null => None,
            settings => model(file, settings)?,
        };
        databases.insert(file.to_owned(), model);
    }
    Ok(databases)
}

fn model(file: &str, json: &Json) -> Result<Option<Model>, Vec<String>> {
    let mut lines = Vec::new();
    let mut members = Members::new(json, format!("database {file}"));
    let name = members.optional("service-model", Kinds::STRING);
    let model = match name.and_then(Json::as_str) {
        None => None,
        Some("standalone") => Some(Model::Standalone),
        Some("clustered") => Some(Model::Clustered),
        Some(later @ ("relay" | "active-backup")) => {
            let text = format!("{file}: service model {later} is not supported yet");
            return Err(vec![text]);
        }
        Some(unknown) => {
            lines.push(format!("Unrecognized database service model: '{unknown}'"));
            members.fail(format!("'{unknown}' is not a valid service model"));
            None
        }
    };
    match members.finish() {
        Ok(()) => Ok(model),
        Err(error) => {
            lines.push(error.to_string());
            Err(lines)
        }
    }
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
        };
        assert_eq!(config.remotes["ptcp:1"], options);
        assert_eq!(
            config.remotes["db:a,b,c"],
            RemoteOptions::default_for("db:a,b,c")
        );
        let models: Vec<_> = config.databases.into_iter().collect();
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
                r#"{"remotes":{"punix:a":{"role":"x"}}}"#,
                "punix:a: roles are not supported yet",
            ),
            (
                r#"{"remotes":{},"databases":{"d":{"service-model":"relay"}}}"#,
                "d: service model relay is not supported yet",
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
