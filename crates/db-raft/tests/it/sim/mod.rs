//! A cluster in virtual time: messages that are lost, late, early or twice there, links that
//! break, servers that lose power between a write and its sync, disks that fail.  After every
//! step what Raft promises is checked.

mod check;
mod file;
mod node;
mod random;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::Instant;
use db_model::{Uuid, UuidSource};
use db_raft::message::{Body, Message, Status};
use db_raft::record::{create_cluster, join_cluster};
use db_raft::{Data, Output, Proposed};

use check::Checks;
use file::Trouble;
use node::Node;
pub(crate) use random::cluster;

/// A source of chance that repeats.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03)
    }

    /// A number below `range`.
    pub(crate) fn below(&mut self, range: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % range.max(1)
    }

    /// Whether one of `in_how_many` comes up.
    pub(crate) fn one_in(&mut self, in_how_many: u64) -> bool {
        self.below(in_how_many) == 0
    }

    fn uuids(&mut self) -> UuidSource {
        let mut seed = [0; 32];
        seed.fill_with(|| self.below(256) as u8);
        UuidSource::new(seed)
    }
}

/// How bad the network is, in one of so many messages; 0 means never.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weather {
    pub(crate) lost: u64,
    pub(crate) twice: u64,
    /// One that arrives much later than those sent after it.
    pub(crate) late: u64,
}

/// Something that happens later.
#[derive(Debug)]
enum Event {
    /// A message arrives: sender, receiver, method, parameters as text.
    Message(usize, usize, &'static str, String),
    /// A server's file is synced; the number tells whether it is still that process.
    Sync(usize, u64),
}

/// The servers of a cluster and the network between them.
pub(crate) struct World {
    pub(crate) dice: Dice,
    pub(crate) now: Instant,
    pub(crate) nodes: Vec<Node>,
    pub(crate) checks: Checks,
    pub(crate) weather: Weather,
    /// Pairs of servers that do not reach each other.
    pub(crate) cut: BTreeSet<(usize, usize)>,
    events: BTreeMap<(Instant, u64), Event>,
    sequence: u64,
    next_value: u64,
    /// Times that a server was told to go on waiting for a command.
    pub(crate) reassured: u64,
    pub(crate) seed: u64,
}

impl World {
    /// A cluster of one server, which runs.
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let contents = Data::from_text(r#"[{"name":"db"},{"hash":"0"}]"#);
        let mut uuids = dice.uuids();
        let records = create_cluster("db", "unix:s0.raft", contents, 0, &mut uuids);
        let node = Node::new(records.expect("good"), dice.uuids());
        let mut this = Self {
            dice,
            now: Instant::ZERO,
            nodes: vec![node],
            checks: Checks::new(seed),
            weather: Weather::default(),
            cut: BTreeSet::new(),
            events: BTreeMap::new(),
            sequence: 0,
            next_value: 0,
            reassured: 0,
            seed,
        };
        this.start(0);
        this
    }

    /// Makes the file of one more server that is to join, by way of server 0 and others, and
    /// starts it.
    pub(crate) fn join(&mut self) -> usize {
        let number = self.nodes.len();
        let remotes: Vec<String> = (0..number).map(|n| format!("unix:s{n}.raft")).collect();
        let mut uuids = self.dice.uuids();
        let address = format!("unix:s{number}.raft");
        let record = join_cluster("db", &address, &remotes, None, &mut uuids).expect("good");
        self.nodes.push(Node::new(vec![record], self.dice.uuids()));
        self.start(number);
        number
    }

    pub(crate) fn find(&self, sid: Uuid) -> Option<usize> {
        self.nodes.iter().position(|node| node.sid == sid)
    }

    /// Starts a server off its file.
    pub(crate) fn start(&mut self, number: usize) {
        let now = self.now;
        let node = &mut self.nodes[number];
        if node.raft.is_some() || node.gone {
            return;
        }
        self.checks.rewound(number, node.file.durable());
        node.start(now, &self.checks);
        if node.gone {
            return;
        }
        let sid = node.sid;
        for other in 0..self.nodes.len() {
            let peer = self.nodes[other].sid;
            if other == number || !self.nodes[other].is_up() {
                continue;
            }
            self.link(number, peer, true);
            self.link(other, sid, true);
        }
        self.settle(number);
    }

    /// Tells a server that it has, or has no more, a connection to another.
    fn link(&mut self, number: usize, peer: Uuid, up: bool) {
        let now = self.now;
        let Some(raft) = &mut self.nodes[number].raft else {
            return;
        };
        if up {
            raft.link_up(now, peer);
            let greeting = raft.greeting(peer);
            let greeting = Message { peer, ..greeting };
            self.transmit(number, greeting);
        } else {
            raft.link_down(now, peer);
            raft.link_closed(now, peer);
        }
    }

    /// Ends a server's process: by `kill`, or with the machine's power.
    pub(crate) fn crash(&mut self, number: usize, power: bool) {
        let node = &mut self.nodes[number];
        if node.raft.take().is_none() {
            return;
        }
        node.epoch += 1;
        let keep = if power {
            self.dice.below(node.file.waiting() as u64 + 1) as usize
        } else {
            usize::MAX
        };
        node.file.crash(keep);
        node.forget();
        let sid = node.sid;
        for other in 0..self.nodes.len() {
            if other != number {
                self.link(other, sid, false);
                self.settle(other);
            }
        }
        self.checks
            .rewound(number, self.nodes[number].file.durable());
    }

    /// Breaks the link between two servers for a moment: what is on its way is lost.
    pub(crate) fn flap(&mut self, a: usize, b: usize) {
        let on_way = |event: &Event| {
            matches!(event, Event::Message(from, to, ..)
                if (*from, *to) == (a, b) || (*from, *to) == (b, a))
        };
        self.events.retain(|_, event| !on_way(event));
        for (one, other) in [(a, b), (b, a)] {
            let peer = self.nodes[other].sid;
            if self.nodes[one].raft.is_some() && self.nodes[other].raft.is_some() {
                self.link(one, peer, false);
                self.link(one, peer, true);
                self.settle(one);
            }
        }
    }

    /// All servers reach each other again, over new links.
    pub(crate) fn mend(&mut self) {
        for (a, b) in std::mem::take(&mut self.cut) {
            self.flap(a, b);
        }
    }

    fn schedule(&mut self, after_micros: u64, event: Event) {
        self.sequence += 1;
        let at = self.now + Duration::from_micros(after_micros);
        self.events.insert((at, self.sequence), event);
    }

    fn transmit(&mut self, from: usize, message: Message) {
        let Some(to) = self.find(message.peer) else {
            return;
        };
        let Some(raft) = &self.nodes[from].raft else {
            return;
        };
        if let Body::ExecuteReply { status, .. } = &message.body {
            self.reassured += u64::from(*status == Status::Incomplete);
        }
        let method = message.body.method();
        let params = message.to_params(raft.cid(), raft.sid());
        let text = json::Json::Array(params).to_string();
        let happens = |dice: &mut Dice, rate: u64| rate != 0 && dice.one_in(rate);
        // A snapshot is lost only along with its link, which a server hears of.
        let snapshot = matches!(
            message.body,
            Body::InstallSnapshot(_) | Body::InstallSnapshotReply { .. }
        );
        if !snapshot && happens(&mut self.dice, self.weather.lost) {
            return;
        }
        // Who passes data on does it once, and hears of it once.
        let is_command = matches!(message.body, Body::Execute { .. });
        let mut copies = 1;
        if !is_command && happens(&mut self.dice, self.weather.twice) {
            copies = 2;
        }
        for _ in 0..copies {
            let mut delay = 100 + self.dice.below(1000);
            if happens(&mut self.dice, self.weather.late) {
                delay += self.dice.below(2_000_000);
            }
            self.schedule(delay, Event::Message(from, to, method, text.clone()));
        }
    }

    /// Does what a server wants done, and checks what it did.
    pub(crate) fn settle(&mut self, number: usize) {
        loop {
            let Some(raft) = &mut self.nodes[number].raft else {
                return;
            };
            let Some(output) = raft.next_output() else {
                break;
            };
            match output {
                Output::Send(message) => self.transmit(number, message),
                Output::Write { ticket, record, .. } => {
                    self.checks.wrote(number, &record);
                    self.nodes[number].file.append(ticket, record);
                    self.schedule_sync(number);
                }
                Output::Replace { ticket, records } => {
                    self.checks.replaced(number, &records);
                    self.nodes[number].file.replace(ticket, records);
                    self.schedule_sync(number);
                }
                Output::AskToJoin => {
                    let greeting = raft.greeting(Uuid::nil());
                    let peers: Vec<Uuid> = self.nodes.iter().map(|node| node.sid).collect();
                    for peer in peers {
                        let greeting = greeting.clone();
                        self.transmit(number, Message { peer, ..greeting });
                    }
                }
                Output::Finished {
                    command,
                    status,
                    index,
                } => {
                    let eid = self.nodes[number].commands.remove(&command);
                    let eid = eid.expect("a command of this server");
                    self.checks.finished(eid, status, index);
                }
                Output::Crash(words) => panic!("{words}"),
            }
        }
        self.checks.settled();
        let node = &mut self.nodes[number];
        node.apply(&mut self.checks);
        if let Some(raft) = &node.raft
            && raft.has_left()
        {
            node.gone = true;
            self.crash(number, false);
        }
    }

    fn schedule_sync(&mut self, number: usize) {
        let epoch = self.nodes[number].epoch;
        let delay = 50 + self.dice.below(5000);
        self.schedule(delay, Event::Sync(number, epoch));
    }

    /// The next thing that happens, before `until`.  False if there is none.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        let event = self.events.first_key_value().map(|((at, _), _)| *at);
        let timers = self.nodes.iter().enumerate();
        let timers = timers.filter_map(|(n, node)| Some((node.raft.as_ref()?.next_deadline(), n)));
        let timer = timers.min().unwrap_or((Instant::MAX, 0));
        let at = event.unwrap_or(Instant::MAX).min(timer.0);
        if at > until {
            self.now = until;
            return false;
        }
        self.now = self.now.max(at);
        if event == Some(at) {
            if let Some((_, event)) = self.events.pop_first() {
                self.happen(event);
            }
        } else {
            let now = self.now;
            if let Some(raft) = &mut self.nodes[timer.1].raft {
                raft.run(now);
                let next = raft.next_deadline();
                assert!(
                    next > now,
                    "seed {}: nothing becomes of a deadline",
                    self.seed
                );
            }
            self.settle(timer.1);
        }
        true
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Message(from, to, method, text) => {
                if self.cut.contains(&(from.min(to), from.max(to))) {
                    return;
                }
                let sid = self.nodes[to].sid;
                let Some(raft) = &mut self.nodes[to].raft else {
                    return;
                };
                let params = json::parse(text.as_bytes()).expect("JSON");
                match Message::from_params(method, &params, raft.cid_mut(), sid) {
                    Ok(message) => raft.handle(now, message),
                    // Who joins as well does not know the cluster either.
                    Err(error) => assert!(error.to_string().contains("'cluster'"), "{error}"),
                }
                self.settle(to);
            }
            Event::Sync(number, epoch) => {
                let node = &mut self.nodes[number];
                if node.epoch != epoch {
                    return;
                }
                let Some(raft) = &mut node.raft else {
                    return;
                };
                match node.file.sync() {
                    Ok(Some(ticket)) => raft.written(now, ticket),
                    Ok(None) => {}
                    Err(Trouble::Append(ticket)) => {
                        let error = std::io::Error::from_raw_os_error(28);
                        raft.write_failed(now, ticket, &error);
                    }
                    Err(Trouble::Replace(ticket, before)) => {
                        let error = std::io::Error::from_raw_os_error(28);
                        if let Some(before) = before {
                            raft.written(now, before);
                        }
                        raft.replace_failed(now, ticket, &error);
                        self.schedule_sync(number);
                    }
                }
                self.settle(number);
                let over = |node: &Node| node.raft.as_ref().is_some_and(|r| r.has_failed());
                if over(&self.nodes[number]) {
                    self.nodes[number].file.heal();
                    self.crash(number, true);
                }
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while self.step(until) {}
    }

    /// Lets time pass until `done`; at most `millis`.
    pub(crate) fn pass_until(&mut self, millis: u64, done: impl Fn(&Self) -> bool) -> bool {
        let until = self.now + Duration::from_millis(millis);
        while !done(self) {
            if !self.step(until) {
                return done(self);
            }
        }
        true
    }

    /// A client of a server wants something in the database.  Returns its id, if it goes on.
    pub(crate) fn propose(&mut self, number: usize) -> Option<Uuid> {
        let node = &self.nodes[number];
        let prereq = node.last_eid;
        if !node.raft.as_ref()?.may_follow(prereq) {
            return None;
        }
        self.propose_after(number, prereq)
    }

    /// Clients of a server want things in the database, each following the one before.
    pub(crate) fn propose_in_row(&mut self, number: usize, count: u64) {
        let mut last = self.propose(number);
        for _ in 1..count {
            last = last.and_then(|last| self.propose_after(number, last));
        }
    }

    /// The same as [`World::propose`], following the data `prereq`.
    pub(crate) fn propose_after(&mut self, number: usize, prereq: Uuid) -> Option<Uuid> {
        let now = self.now;
        let value = self.next_value;
        self.next_value += 1;
        let node = &mut self.nodes[number];
        let raft = node.raft.as_mut()?;
        let data = Data::from_text(format!(r#"[null,{{"value":{value}}}]"#));
        let proposed = raft.propose(now, data, prereq);
        let mut eid = None;
        if let Proposed::Pending { command, eid: id } = proposed {
            node.commands.insert(command, id);
            self.checks.proposed(id, prereq);
            eid = Some(id);
        }
        self.settle(number);
        eid
    }

    /// Those who lead, or think that they do.
    pub(crate) fn leaders(&self) -> Vec<usize> {
        let numbered = self.nodes.iter().enumerate();
        let leads = |node: &Node| node.raft.as_ref().is_some_and(|raft| raft.is_leader());
        numbered.filter(|(_, n)| leads(n)).map(|(n, _)| n).collect()
    }

    /// The servers that the only leader knows; none if there is not exactly one.  Others were
    /// removed, and have perhaps not heard of it.
    pub(crate) fn members(&self) -> Vec<&Node> {
        let [leader] = self.leaders()[..] else {
            return Vec::new();
        };
        let leader = &self.nodes[leader];
        let links = leader.raft.as_ref().map(|raft| raft.wanted_links());
        let others: Vec<Uuid> = links.iter().flatten().filter_map(|link| link.1).collect();
        let is_member = |node: &&Node| node.sid == leader.sid || others.contains(&node.sid);
        self.nodes.iter().filter(is_member).collect()
    }

    /// Whether all servers of the cluster run, are connected, and have applied the same.
    pub(crate) fn agrees(&self) -> bool {
        let members = self.members();
        let first = members.first().map(|node| (node.applied, node.hash));
        let same = |node: &&Node| Some((node.applied, node.hash)) == first;
        let joins = |node: &Node| node.raft.as_ref().is_some_and(|raft| raft.is_joining());
        first.is_some()
            && members.iter().all(same)
            && members
                .iter()
                .all(|n| n.raft.as_ref().is_some_and(|raft| raft.is_connected()))
            && !self.nodes.iter().any(joins)
    }

    /// What all servers say of themselves.
    pub(crate) fn describe(&self) -> String {
        let status = |(number, node): (usize, &Node)| {
            let status = node.raft.as_ref().map(|raft| raft.status(self.now, &[]));
            let (applied, gone) = (node.applied, node.gone);
            let status = status.unwrap_or_else(|| "down\n".to_owned());
            format!("{number}: applied {applied}, gone: {gone}\n{status}")
        };
        self.nodes.iter().enumerate().map(status).collect()
    }
}
