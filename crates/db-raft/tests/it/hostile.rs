//! A server among others that say anything at all: it must not fall, and must be able to read
//! its file again.

use std::collections::BTreeSet;
use std::time::Duration;

use base::Instant;
use db_model::{Uuid, UuidSource};
use db_raft::message::{
    Append, AppendReply, AppendResult, Body, InstallSnapshot, Message, Status, Vote,
};
use db_raft::record::{Header, create_cluster};
use db_raft::{Data, Entry, Output, Raft, Servers};
use json::Json;

use crate::sim::Dice;

fn parse(json: &Json) -> Json {
    json::parse(json.to_string().as_bytes()).expect("JSON")
}

/// Somebody's random words.
struct Talker {
    dice: Dice,
    ids: Vec<Uuid>,
}

impl Talker {
    fn id(&mut self) -> Uuid {
        let at = self.dice.below(self.ids.len() as u64) as usize;
        self.ids[at]
    }

    /// Most often a number that may matter, sometimes an absurd one.
    fn number(&mut self, about: u64) -> u64 {
        match self.dice.below(20) {
            0 => (1 << 60) - 1 - self.dice.below(3),
            1 => 0,
            _ => (about + self.dice.below(6)).saturating_sub(3),
        }
    }

    fn address(&mut self) -> std::sync::Arc<str> {
        ["unix:x.raft", "tcp:1.2.3.4:5", "nonsense", ""][self.dice.below(4) as usize].into()
    }

    fn servers(&mut self) -> Servers {
        let count = 1 + self.dice.below(4);
        (0..count)
            .map(|n| (self.id(), format!("unix:s{n}").into()))
            .collect()
    }

    fn data(&mut self) -> Data {
        let number = self.dice.below(100);
        Data::from_text(format!(r#"[null,{{"n":{number}}}]"#))
    }

    fn entry(&mut self, term: u64) -> Entry {
        let mut entry = Entry {
            term: self.number(term),
            ..Entry::default()
        };
        match self.dice.below(4) {
            0 => entry.servers = Some(self.servers()),
            1 => entry.election_timer = self.number(1000),
            2 => {
                entry.data = Some(self.data());
                entry.eid = self.id();
            }
            _ => {}
        }
        entry
    }

    fn body(&mut self, term: u64, index: u64) -> Body {
        match self.dice.below(14) {
            0 => Body::Hello {
                address: self.address(),
            },
            1..=3 => Body::Append(Append {
                term: self.number(term),
                prev_log_index: self.number(index),
                prev_log_term: self.number(term),
                leader_commit: self.number(index),
                entries: (0..self.dice.below(4)).map(|_| self.entry(term)).collect(),
            }),
            4 => Body::AppendReply(AppendReply {
                term: self.number(term),
                log_end: self.number(index),
                prev_log_index: self.number(index),
                prev_log_term: self.number(term),
                n_entries: self.number(1),
                result: [
                    AppendResult::Ok,
                    AppendResult::Inconsistency,
                    AppendResult::IoError,
                ][self.dice.below(3) as usize],
            }),
            5 => Body::Vote(Vote {
                term: self.number(term),
                last_log_index: self.number(index),
                last_log_term: self.number(term),
                leadership_transfer: self.dice.one_in(2),
                is_prevote: self.dice.one_in(2),
            }),
            6 => Body::VoteReply {
                term: self.number(term),
                vote: self.id(),
                is_prevote: self.dice.one_in(2),
            },
            7 => Body::AddServer {
                address: self.address(),
            },
            8 => Body::AddServerReply {
                success: self.dice.one_in(2),
                remote_addresses: BTreeSet::from([self.address()]),
            },
            9 => Body::RemoveServer { sid: self.id() },
            10 => Body::InstallSnapshot(Box::new(InstallSnapshot {
                term: self.number(term),
                last_index: self.number(index),
                last_term: self.number(term),
                last_eid: self.id(),
                last_servers: self.servers(),
                election_timer: self.number(1000),
                data: self.data(),
            })),
            11 => Body::InstallSnapshotReply {
                term: self.number(term),
                last_index: self.number(index),
                last_term: self.number(term),
            },
            12 => Body::BecomeLeader {
                term: self.number(term),
            },
            _ if self.dice.one_in(2) => Body::Execute {
                data: self.data(),
                prereq: self.id(),
                result: self.id(),
            },
            _ => Body::ExecuteReply {
                result: self.id(),
                status: [Status::Success, Status::Incomplete, Status::NotLeader]
                    [self.dice.below(3) as usize],
                commit_index: self.number(index),
            },
        }
    }
}

fn read(records: &[Json], uuids: &mut UuidSource) -> Raft {
    let mut records = records.iter().map(parse);
    let header = Header::from_json(&records.next().expect("a header")).expect("a header");
    let mut raft = Raft::new(header, uuids.fork());
    for (number, record) in records.enumerate() {
        raft.replay(number as u64 + 1, &record)
            .expect("a good record");
    }
    raft
}

fn talk(seed: u64) {
    let mut uuids = UuidSource::new([seed as u8 ^ 0x5a; 32]);
    let contents = Data::from_text(r#"[{"name":"d"},{}]"#);
    let mut file = create_cluster("d", "unix:s0", contents, 0, &mut uuids).expect("good");
    let mut raft = read(&file, &mut uuids);
    let mut now = Instant::from_millis(1000);
    raft.start(now).expect("starts");
    let mut ids: Vec<Uuid> = (0..4).map(|_| uuids.next_uuid()).collect();
    ids.extend([raft.sid(), raft.current_eid(), Uuid::nil()]);
    let mut talker = Talker {
        dice: Dice::new(seed),
        ids,
    };
    for _ in 0..400 {
        now += Duration::from_millis(talker.dice.below(400));
        let (term, index) = (raft.term(), raft.applied_index() + 1);
        let peer = talker.id();
        if peer != raft.sid() && !peer.is_nil() {
            raft.link_up(now, peer);
            let body = talker.body(term.min(1 << 50), index.min(1 << 50));
            // What is not well-formed does not get so far.
            let params = Message::new(raft.sid(), body.clone()).to_params(raft.cid(), peer);
            let (mut cid, sid) = (raft.cid(), raft.sid());
            let params = parse(&Json::Array(params));
            if let Ok(message) = Message::from_params(body.method(), &params, &mut cid, sid) {
                raft.handle(now, message);
            }
        }
        raft.run(now);
        while let Some(output) = raft.next_output() {
            match output {
                Output::Write { ticket, record, .. } => {
                    file.push(record);
                    raft.written(now, ticket);
                }
                Output::Replace { ticket, records } => {
                    file = records;
                    raft.written(now, ticket);
                }
                _ => {}
            }
        }
        while raft.next_applied().is_some() {}
        raft.status(now, &[]);
        if raft.is_over() {
            return;
        }
    }
    read(&file, &mut uuids);
}

#[test]
fn whatever_others_say_a_server_stands() {
    for seed in 0..testkit::cases(300) {
        talk(u64::from(seed));
    }
}
