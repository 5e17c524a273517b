//! The database server killed in the middle of its work.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use json::{Json, Parser};
use testkit::{Need, Running, need};

use crate::ours;

/// Rows that are there once enough transactions have been carried out.
const KEPT: u64 = 20;
/// Transactions that are on their way at once, at most.
const BATCH: u64 = 24;

/// A generator, so that failures repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

struct Client {
    stream: UnixStream,
    /// What was read and does not belong to an answer yet.
    rest: Vec<u8>,
}

impl Client {
    fn connect(running: &Running) -> Self {
        let stream = UnixStream::connect(running.folder.join("db.sock")).unwrap();
        let limit = Some(Duration::from_secs(20));
        stream.set_read_timeout(limit).unwrap();
        Self {
            stream,
            rest: Vec::new(),
        }
    }

    /// Answers to `count` requests, in the order of the requests.
    fn answers(&mut self, count: u64) -> Vec<Json> {
        let mut parser = Parser::new();
        let mut answers = Vec::new();
        while (answers.len() as u64) < count {
            if self.rest.is_empty() {
                let mut buffer = [0; 4096];
                let n = self.stream.read(&mut buffer).unwrap();
                assert!(n > 0, "the server hung up after {answers:?}");
                self.rest.extend(&buffer[..n]);
            }
            let used = parser.feed(&self.rest);
            self.rest.drain(..used);
            if parser.is_done() {
                answers.push(parser.take().unwrap());
                parser = Parser::new();
            }
        }
        answers
    }

    /// The marks of the rows, ascending.
    fn marks(&mut self) -> Vec<u64> {
        let select = r#"{"op":"select","table":"Queue","where":[],"columns":["external_ids"]}"#;
        let request =
            format!(r#"{{"id":0,"method":"transact","params":["Open_vSwitch",{select}]}}"#);
        self.stream.write_all(request.as_bytes()).unwrap();
        let answer = self.answers(1).remove(0);
        let rows = answer.get("result").and_then(Json::as_array).unwrap()[0].get("rows");
        let mark = |row: &Json| {
            let map = row.get("external_ids")?.as_array()?[1].as_array()?;
            map[0].as_array()?[1].as_str()?.parse().ok()
        };
        let marks = rows.and_then(Json::as_array).unwrap().iter().map(mark);
        let mut marks: Vec<u64> = marks.map(Option::unwrap).collect();
        marks.sort_unstable();
        marks
    }
}

/// Inserts row `n` and deletes the row of [`KEPT`] transactions before.
fn transaction(n: u64) -> String {
    let mark = |n: u64| format!(r#"["map",[["n","{n}"]]]"#);
    let gone = mark(n.wrapping_sub(KEPT));
    let new = mark(n);
    let durable = n.is_multiple_of(3);
    format!(
        r#"{{"id":{n},"method":"transact","params":["Open_vSwitch",
            {{"op":"delete","table":"Queue","where":[["external_ids","includes",{gone}]]}},
            {{"op":"insert","table":"Queue","row":{{"external_ids":{new}}}}},
            {{"op":"commit","durable":{durable}}}]}}"#
    )
}

/// Whatever the moment at which the server is killed: what it has answered is there
/// afterwards, transactions are there whole or not at all, and in their order.
#[test]
fn a_killed_server_has_lost_nothing_that_it_answered() {
    let test = "a_killed_server_has_lost_nothing_that_it_answered";
    if !need(test, &[Need::Root, Need::Netns, Need::Full]) {
        return;
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut running = ours().start_server().unwrap();
    // The number of the last transaction that is in the database.
    let mut last = 0;
    let mut in_flight_kept = 0;
    for round in 0..200 {
        let mut client = Client::connect(&running);
        let sent = 1 + random.below(BATCH);
        let answered = random.below(sent + 1);
        let requests: String = (1..=sent).map(|i| transaction(last + i)).collect();
        client.stream.write_all(requests.as_bytes()).unwrap();
        for (i, answer) in client.answers(answered).iter().enumerate() {
            let n = last + 1 + i as u64;
            let id = answer.get("id").and_then(Json::as_integer);
            assert_eq!(id, Some(n as i64), "{answer}");
            assert_eq!(answer.get("error"), Some(&Json::Null), "{answer}");
        }
        for _ in 0..random.below(200_000) {
            std::hint::spin_loop();
        }
        running.kill_server();
        running.start_server().unwrap();
        let marks = Client::connect(&running).marks();
        let newest = marks.last().copied().unwrap_or(0);
        let log = running.written("ovsdb-server");
        let bounds = last + answered..=last + sent;
        assert!(
            bounds.contains(&newest),
            "round {round}: {newest} not in {bounds:?}\n{log}"
        );
        let wanted: Vec<u64> = (newest.saturating_sub(KEPT) + 1..=newest).collect();
        assert_eq!(marks, wanted, "round {round}\n{log}");
        in_flight_kept += newest - last - answered;
        last = newest;
    }
    assert!(in_flight_kept > 0, "the server was never killed at work");
}
