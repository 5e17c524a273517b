//! `show-log` of a clustered database.

use std::path::Path;

use db_engine::store;
use db_model::DatabaseSchema;
use db_raft::record::{Header, Kind, Membership, Record};
use db_raft::{Data, Servers, short_id};
use json::Json;

use super::Call;
use super::commands::text;
use super::log::{Names, describe_record};
use crate::{Env, Exit};

/// What is known of the database as the log goes on.
struct Shown {
    schema: Option<DatabaseSchema>,
    names: Names,
    more: u32,
    out: String,
}

pub(super) fn show(
    env: &mut Env<'_>,
    call: &Call<'_>,
    path: &Path,
    shown: &str,
) -> Result<Exit, String> {
    let mut reader = store::clustered_records(path, shown).map_err(text)?;
    let mut state = Shown {
        schema: None,
        names: Names::new(),
        more: call.settings.more,
        out: String::new(),
    };
    let mut number = 0;
    while let Some(json) = reader.next_record().map_err(text)? {
        env.print(format!("record {number}:\n"));
        let outcome = if number == 0 {
            Header::from_json(&json).and_then(|header| state.header(&header))
        } else {
            Record::from_json(&json).and_then(|record| state.record(&record))
        };
        env.print(std::mem::take(&mut state.out));
        if let Err(error) = outcome {
            env.print(format!("{error}\n"));
        }
        env.print("\n");
        number += 1;
    }
    Ok(Exit::SUCCESS)
}

impl Shown {
    fn line(&mut self, text: String) {
        self.out.push_str(&text);
        self.out.push('\n');
    }

    fn header(&mut self, header: &Header) -> db_model::Result<()> {
        // The quotes are those that scripts find in the original's output.
        self.line(format!(" name: \"{}'", header.name));
        self.line(format!(" local address: \"{}\"", header.local_address));
        self.line(format!(" server_id: {}", short_id(header.sid)));
        if !header.cid.is_nil() {
            self.line(format!(" cluster_id: {}", short_id(header.cid)));
        }
        match &header.membership {
            Membership::Joining(remotes) => {
                let remotes: String = remotes.iter().map(|remote| format!(" {remote}")).collect();
                self.line(format!(" remote_addresses:{remotes}"));
            }
            Membership::Member { index: 0, .. } => {}
            Membership::Member { index, snapshot } => {
                self.line(format!(" prev_index: {index}"));
                self.line(format!(" prev_term: {}", snapshot.term));
                self.servers("prev_servers", snapshot.servers.as_ref());
                if !snapshot.eid.is_nil() {
                    self.line(format!(" prev_eid: {}", short_id(snapshot.eid)));
                }
                self.data("prev_", snapshot.data.as_ref())?;
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &Record) -> db_model::Result<()> {
        if let Some(comment) = &record.comment {
            self.line(format!(" comment: \"{comment}\""));
        }
        let term = record.kind.term();
        if term != 0 {
            self.line(format!(" term: {term}"));
        }
        match &record.kind {
            Kind::Entry { index, entry } => {
                self.line(format!(" index: {index}"));
                self.servers("servers", entry.servers.as_ref());
                if !entry.eid.is_nil() {
                    self.line(format!(" eid: {}", short_id(entry.eid)));
                }
                self.data("", entry.data.as_ref())?;
            }
            Kind::Term(_) => {}
            Kind::Vote { sid, .. } => self.line(format!(" vote: {}", short_id(*sid))),
            Kind::Note(note) => self.line(format!(" note: \"{note}\"")),
            Kind::CommitIndex(index) => self.line(format!(" commit_index: {index}")),
            Kind::Leader { sid, .. } => self.line(format!(" leader: {}", short_id(*sid))),
        }
        Ok(())
    }

    fn servers(&mut self, title: &str, servers: Option<&Servers>) {
        let Some(servers) = servers else {
            return;
        };
        let servers = servers.iter();
        let servers = servers.map(|(sid, address)| format!("{}(\"{address}\")", short_id(sid)));
        let servers: Vec<String> = servers.collect();
        self.line(format!(" {title}: {}", servers.join(", ")));
    }

    fn data(&mut self, prefix: &str, data: Option<&Data>) -> db_model::Result<()> {
        let Some(data) = data else {
            return Ok(());
        };
        let data = data.parse()?;
        let Some([schema, transaction]) = data.as_array() else {
            self.line(" ***invalid data***".to_owned());
            return Ok(());
        };
        if *schema != Json::Null {
            let schema = DatabaseSchema::from_json(schema)?;
            self.line(format!(
                " {prefix}schema: \"{}\", version=\"{}\", cksum=\"{}\"",
                schema.name, schema.version, schema.cksum
            ));
            self.schema = Some(schema);
        }
        if let Some(schema) = self.schema.as_ref().filter(|_| *transaction != Json::Null) {
            self.out += &describe_record(transaction, schema, &mut self.names, self.more)?;
        }
        Ok(())
    }
}
