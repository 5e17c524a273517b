//! What must hold whatever happens (figure 3.2 of the dissertation), seen from outside: from
//! the records that servers write, the data they apply and the answers they give.

use std::collections::BTreeMap;

use db_model::Uuid;
use db_raft::message::Status;
use db_raft::record::{Header, Kind, Membership, Record};
use json::Json;

/// The database after one more piece of data.
pub(crate) fn fold(hash: u64, eid: Uuid) -> u64 {
    let word = (eid.as_u128() >> 64) as u64 ^ eid.as_u128() as u64;
    (hash ^ word)
        .wrapping_mul(0x0000_0100_0000_01b3)
        .rotate_left(17)
}

/// An entry as far as it matters: its term and what it holds.
type Seen = (u64, String);

/// A server's log as it has written it.
#[derive(Debug, Default)]
struct Mirror {
    sid: Uuid,
    snapshot: (u64, u64),
    entries: BTreeMap<u64, Seen>,
    commit: u64,
}

/// What was seen so far.
#[derive(Debug)]
pub(crate) struct Checks {
    seed: u64,
    mirrors: BTreeMap<usize, Mirror>,
    leaders: BTreeMap<u64, Uuid>,
    /// What is at an index in a term, and the term before it.
    entries: BTreeMap<(u64, u64), (u64, String)>,
    /// Committed entries: terms by index.
    committed: BTreeMap<u64, u64>,
    /// The database at an index, and the id of the data there.
    states: BTreeMap<u64, (Uuid, u64)>,
    prereqs: BTreeMap<Uuid, Uuid>,
    /// Where data were committed.
    places: BTreeMap<Uuid, u64>,
    /// Data of which it was said that they failed.
    refused: Vec<Uuid>,
    /// Data and places of which it was said just now that they are committed.
    promised: Vec<(Uuid, u64)>,
    /// Data of which it was said that they are committed.
    pub(crate) successes: u64,
}

impl Checks {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            mirrors: BTreeMap::new(),
            leaders: BTreeMap::new(),
            entries: BTreeMap::new(),
            committed: BTreeMap::new(),
            states: BTreeMap::new(),
            prereqs: BTreeMap::new(),
            places: BTreeMap::new(),
            refused: Vec::new(),
            promised: Vec::new(),
            successes: 0,
        }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// A server has written a record.
    pub(crate) fn wrote(&mut self, number: usize, record: &Json) {
        let record = json::parse(record.to_string().as_bytes()).expect("JSON");
        let record = Record::from_json(&record).expect("a record");
        let seed = self.seed;
        match record.kind {
            Kind::Entry { index, entry } => {
                let mirror = self.mirrors.entry(number).or_default();
                assert!(
                    index > mirror.commit,
                    "seed {seed}: {number} gives up {index}"
                );
                mirror.entries.split_off(&index);
                let before = if index == mirror.snapshot.0 + 1 {
                    mirror.snapshot.1
                } else {
                    let before = mirror.entries.get(&(index - 1));
                    before
                        .unwrap_or_else(|| {
                            panic!("seed {seed}: {number}: a gap before {index}: {mirror:?}")
                        })
                        .0
                };
                let term = entry.term;
                let text = entry.to_json().to_string();
                mirror.entries.insert(index, (term, text.clone()));
                // Log matching: the same index and term, the same entry and all before it.
                let seen = self.entries.entry((index, term));
                let seen = seen.or_insert_with(|| (before, text.clone()));
                assert_eq!(
                    *seen,
                    (before, text),
                    "seed {seed}: entry {index} of term {term}"
                );
            }
            Kind::CommitIndex(index) => {
                let mirror = self.mirrors.entry(number).or_default();
                assert!(
                    index >= mirror.commit,
                    "seed {seed}: commit index goes back"
                );
                for at in mirror.commit.max(mirror.snapshot.0) + 1..=index {
                    let term = mirror.entries[&at].0;
                    let known = *self.committed.entry(at).or_insert(term);
                    assert_eq!(known, term, "seed {seed}: entry {at} is committed twice");
                }
                mirror.commit = index;
            }
            Kind::Leader { term, sid } => {
                // Election safety.
                let known = *self.leaders.entry(term).or_insert(sid);
                assert_eq!(known, sid, "seed {seed}: two leaders of term {term}");
                self.leader_is_complete(number, term, sid);
            }
            Kind::Term(_) | Kind::Vote { .. } | Kind::Note(_) => {}
        }
    }

    /// A new leader has all that was committed in earlier terms.
    fn leader_is_complete(&self, number: usize, term: u64, sid: Uuid) {
        let Some(mirror) = self.mirrors.get(&number).filter(|m| m.sid == sid) else {
            return;
        };
        for (index, committed) in self.committed.range(mirror.snapshot.0 + 1..) {
            let own = mirror.entries.get(index).map(|seen| seen.0);
            let seed = self.seed;
            if *committed < term {
                assert_eq!(
                    own,
                    Some(*committed),
                    "seed {seed}: leader {number} lacks {index}"
                );
            }
        }
    }

    /// A server has written its file anew.
    pub(crate) fn replaced(&mut self, number: usize, records: &[Json]) {
        let records: Vec<String> = records.iter().map(Json::to_string).collect();
        self.rewound(number, &records);
    }

    /// A server's file is this, after a crash or since it was written anew.
    pub(crate) fn rewound(&mut self, number: usize, records: &[String]) {
        let parse = |text: &String| json::parse(text.as_bytes()).expect("JSON");
        let header = Header::from_json(&parse(&records[0])).expect("a header");
        let mut mirror = Mirror {
            sid: header.sid,
            ..Mirror::default()
        };
        if let Membership::Member { index, snapshot } = &header.membership {
            mirror.snapshot = (*index, snapshot.term);
            mirror.commit = *index;
            if let Some((_, hash)) = self.states.get(index)
                && let Some(data) = &snapshot.data
            {
                let saved = data.parse().expect("JSON");
                let saved = saved.as_array().and_then(|a| a[1].get("hash"));
                let saved = saved.and_then(Json::as_str).map(str::to_owned);
                assert_eq!(saved, Some(hash.to_string()), "seed {}", self.seed);
            }
        }
        self.mirrors.insert(number, mirror);
        for record in &records[1..] {
            self.wrote(number, &parse(record));
        }
    }

    /// A server has applied data.
    pub(crate) fn applied(&mut self, index: u64, eid: Uuid, hash: u64) {
        let seed = self.seed;
        // State machine safety.
        let before = self
            .states
            .range(..index)
            .next_back()
            .map(|(_, (eid, _))| *eid);
        let is_new = !self.states.contains_key(&index);
        let known = *self.states.entry(index).or_insert((eid, hash));
        // A snapshot's index may be that of an entry without data.
        assert_eq!(known.1, hash, "seed {seed}: the database at {index}");
        assert_eq!(known.0, eid, "seed {seed}: the data at {index}");
        if is_new && let (Some(prereq), Some(before)) = (self.prereqs.get(&eid), before) {
            assert_eq!(*prereq, before, "seed {seed}: data that follow other data");
        }
        self.places.entry(eid).or_insert(index);
        assert!(
            !self.refused.contains(&eid),
            "seed {seed}: {eid} is committed after all"
        );
    }

    /// Data were proposed.
    pub(crate) fn proposed(&mut self, eid: Uuid, prereq: Uuid) {
        self.prereqs.insert(eid, prereq);
    }

    /// It was said what became of data.
    pub(crate) fn finished(&mut self, eid: Uuid, status: Status, index: u64) {
        match status {
            Status::Success => {
                self.promised.push((eid, index));
                self.successes += 1;
            }
            Status::NotLeader | Status::BadPrereq => self.refused.push(eid),
            // It may still be committed, or may be already.
            _ => {}
        }
    }

    /// A server has done all that it had to do.
    pub(crate) fn settled(&mut self) {
        let seed = self.seed;
        for (eid, index) in self.promised.drain(..) {
            assert!(
                self.committed.contains_key(&index),
                "seed {seed}: {eid} is not committed"
            );
        }
    }
}
