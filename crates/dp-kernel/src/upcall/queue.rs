//! Queues of upcalls, one per port, that are served in turn, so that a port that floods loses its
//! own packets and delays nobody else's.  No sockets and no clock here.

use std::collections::{HashMap, VecDeque};

use dp_lang::PortNo;

/// Something that waits in a queue.
pub(crate) trait Waiting {
    /// Whether it belongs to the same flow as another: nothing tells the two apart but their
    /// payload.
    fn same_flow(&self, other: &Self) -> bool;
}

/// How much may wait and how it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Items that wait for one port at most.
    pub(crate) per_port: usize,
    /// Items that one round takes at most, the rest of a flow apart.
    pub(crate) round: usize,
    /// With so many left for a port it is congested.
    pub(crate) congested: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            per_port: 256,
            round: 16,
            congested: 24,
        }
    }
}

#[derive(Debug)]
struct Queue<T> {
    items: VecDeque<T>,
    /// Items that were served beyond the port's share, for which it waits.
    debt: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            items: VecDeque::new(),
            debt: 0,
        }
    }
}

/// The queues of one handler.
#[derive(Debug)]
pub(crate) struct Queues<T> {
    limits: Limits,
    ports: HashMap<PortNo, Queue<T>>,
    /// Ports with items, in the order in which they are served.
    turn: VecDeque<PortNo>,
    /// Ports that had none until now and go first: who sends little does not wait behind who
    /// sends much.
    fresh: VecDeque<PortNo>,
    /// The last round ended with those.
    was_short: bool,
    waiting: usize,
}

/// Items of one flow.
#[derive(Debug)]
pub(crate) struct Group<T> {
    /// Where they came in.
    pub(crate) port: PortNo,
    /// All that waited, in the order in which they came.
    pub(crate) items: Vec<T>,
    /// It is one item, and many others of its port wait.
    pub(crate) congested: bool,
}

impl<T> IntoIterator for Group<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<T: Waiting> Queues<T> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            ports: HashMap::new(),
            turn: VecDeque::new(),
            fresh: VecDeque::new(),
            was_short: false,
            waiting: 0,
        }
    }

    /// Items that wait.
    pub(crate) const fn len(&self) -> usize {
        self.waiting
    }

    /// Items of `port` that wait.
    pub(crate) fn waiting(&self, port: PortNo) -> usize {
        self.ports.get(&port).map_or(0, |q| q.items.len())
    }

    /// Whether there is room for another item of `port`.
    pub(crate) fn has_room(&self, port: PortNo) -> bool {
        let queue = self.ports.get(&port);
        queue.is_none_or(|q| q.items.len() < self.limits.per_port)
    }

    /// Puts an item to the end of its port's queue; false if that is full, and the item lost.
    pub(crate) fn push(&mut self, port: PortNo, item: T) -> bool {
        let queue = self.ports.entry(port).or_default();
        if queue.items.len() >= self.limits.per_port {
            return false;
        }
        if queue.items.is_empty() {
            self.fresh.push_back(port);
        }
        queue.items.push_back(item);
        self.waiting += 1;
        true
    }

    /// Takes the next items: one flow of each port in turn, until a round is full or nothing
    /// waits.  Ports that had nothing waiting come first, and end every other round, so that
    /// their packets go back before others are looked at.
    ///
    /// With an item go all others of its flow that wait, in the order in which they came: the flow
    /// can be installed behind them and they are not overtaken.  What that takes beyond the
    /// port's share is set against its next turns.
    pub(crate) fn round(&mut self) -> Vec<Group<T>> {
        let mut groups = Vec::new();
        let (mut taken, mut first) = (0, 0);
        let may_be_short = !std::mem::take(&mut self.was_short);
        while taken < self.limits.round {
            // Not more than half of a round, lest many of them leave nothing to the others.
            let may = self.turn.is_empty() || first < self.limits.round.div_ceil(2);
            let fresh = may.then(|| self.fresh.pop_front()).flatten();
            first += usize::from(fresh.is_some());
            let Some(port) = fresh.or_else(|| self.turn.pop_front()) else {
                break;
            };
            let Some(queue) = self.ports.get_mut(&port) else {
                continue;
            };
            // A port alone waits for nobody.
            let is_alone = self.turn.is_empty() && self.fresh.is_empty();
            if queue.debt > 0 && !is_alone {
                queue.debt -= 1;
                self.turn.push_back(port);
                continue;
            }
            let items = queue.take_flow();
            let count = items.len();
            taken += count;
            self.waiting -= count;
            queue.debt = count.saturating_sub(1);
            let congested = count == 1 && queue.items.len() >= self.limits.congested;
            if queue.items.is_empty() {
                self.ports.remove(&port);
            } else {
                self.turn.push_back(port);
            }
            groups.push(Group {
                port,
                items,
                congested,
            });
            let is_last = fresh.is_some() && self.fresh.is_empty() && !self.turn.is_empty();
            if is_last && may_be_short {
                self.was_short = true;
                break;
            }
        }
        groups
    }
}

impl<T: Waiting> Queue<T> {
    /// Takes the first item and all others of its flow.
    fn take_flow(&mut self) -> Vec<T> {
        let Some(first) = self.items.pop_front() else {
            return Vec::new();
        };
        let mut group = vec![first];
        if !self.items.iter().any(|item| item.same_flow(&group[0])) {
            return group;
        }
        let others = std::mem::take(&mut self.items);
        for item in others {
            if item.same_flow(&group[0]) {
                group.push(item);
            } else {
                self.items.push_back(item);
            }
        }
        group
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use base::Instant;
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Item {
        port: u32,
        flow: u32,
        number: u32,
        at: Instant,
    }

    impl Waiting for Item {
        fn same_flow(&self, other: &Self) -> bool {
            (self.port, self.flow) == (other.port, other.flow)
        }
    }

    fn item(port: u32, flow: u32, number: u32) -> Item {
        Item {
            port,
            flow,
            number,
            at: Instant::ZERO,
        }
    }

    const LIMITS: Limits = Limits {
        per_port: 4,
        round: 6,
        congested: 2,
    };

    #[test]
    fn a_full_queue_loses_the_newest_of_its_port_alone() {
        let mut queues = Queues::new(LIMITS);
        let kept: Vec<bool> = (0..6)
            .map(|n| queues.push(PortNo(1), item(1, n, n)))
            .collect();
        assert_eq!(kept, [true, true, true, true, false, false]);
        assert!(!queues.has_room(PortNo(1)) && queues.has_room(PortNo(2)));
        assert!(queues.push(PortNo(2), item(2, 0, 9)));
        assert_eq!(queues.len(), 5);
        let mut round = || -> Vec<u32> {
            let items = queues.round().into_iter().flatten();
            items.map(|i| i.number).collect()
        };
        assert_eq!((round(), round()), (vec![0, 9], vec![1, 2, 3]));
        assert_eq!(queues.len(), 0);
    }

    #[test]
    fn a_flow_goes_as_a_whole_and_its_port_waits_for_that() {
        let mut queues = Queues::new(Limits {
            per_port: 10,
            round: 1,
            congested: 10,
        });
        for n in 0..3 {
            queues.push(PortNo(1), item(1, 7, n));
            queues.push(PortNo(1), item(1, 8 + n, 10 + n));
            queues.push(PortNo(2), item(2, n, 20 + n));
        }
        let order: Vec<Vec<u32>> = std::iter::from_fn(|| {
            let round = queues.round();
            (!round.is_empty()).then(|| round.into_iter().flatten().map(|i| i.number).collect())
        })
        .collect();
        // Three packets of one flow cost the first port two turns.
        assert_eq!(
            order,
            [
                vec![0, 1, 2],
                vec![20],
                vec![21],
                vec![22],
                vec![10],
                vec![11],
                vec![12]
            ]
        );
    }

    #[test]
    fn a_port_of_which_many_wait_is_congested() {
        let mut queues = Queues::new(Limits { round: 1, ..LIMITS });
        for n in 0..4 {
            queues.push(PortNo(1), item(1, n, n));
        }
        queues.push(PortNo(2), item(2, 0, 0));
        let mut rounds = std::iter::from_fn(|| {
            let group = queues.round().pop()?;
            Some((group.items[0].port, group.congested))
        });
        let expected = [(1, true), (2, false), (1, true), (1, false), (1, false)];
        assert!(rounds.by_ref().eq(expected));
        // Packets of one flow are not many flows.
        for n in 0..4 {
            queues.push(PortNo(1), item(1, n % 2, n));
        }
        let group = queues.round().pop().unwrap();
        assert_eq!((group.items.len(), group.congested), (2, false));
    }

    /// One port floods, another sends a packet now and then: how long its packets wait.
    fn worst_wait(flood_per_ms: u32, service: Duration) -> (Duration, usize) {
        let mut queues = Queues::new(Limits::default());
        let (mut now, mut next_flood, mut next_lone) = (Instant::ZERO, Instant::ZERO, 5);
        let (mut number, mut worst, mut lost) = (0, Duration::ZERO, 0);
        let gap = Duration::from_micros(u64::from(1000 / flood_per_ms));
        while now < Instant::from_millis(1000) {
            while next_flood <= now {
                number += 1;
                let at = next_flood;
                let flood = Item {
                    at,
                    ..item(1, number, number)
                };
                queues.push(PortNo(1), flood);
                next_flood += gap;
            }
            while Instant::from_millis(next_lone) <= now {
                number += 1;
                let at = Instant::from_millis(next_lone);
                if !queues.push(
                    PortNo(2),
                    Item {
                        at,
                        ..item(2, number, number)
                    },
                ) {
                    lost += 1;
                }
                next_lone += 5;
            }
            let round = queues.round();
            let count: usize = round.iter().map(|g| g.items.len()).sum();
            now += service * count.max(1) as u32;
            for item in round.into_iter().flatten().filter(|i| i.port == 2) {
                worst = worst.max(now.since(item.at));
            }
        }
        (worst, lost)
    }

    #[test]
    fn a_flood_does_not_delay_a_lone_packet_of_another_port() {
        let service = Duration::from_micros(100);
        let (quiet, _) = worst_wait(1, service);
        let (flooded, lost) = worst_wait(100, service);
        assert_eq!(lost, 0);
        // The round that is being served, and the next.
        let bound = service * 2 * Limits::default().round as u32;
        assert!(flooded <= bound, "{quiet:?} {flooded:?}");
    }

    #[test]
    fn who_had_nothing_waiting_comes_first_and_leaves_room() {
        let mut queues = Queues::new(LIMITS);
        let push = |queues: &mut Queues<Item>, port, number| {
            assert!(queues.push(PortNo(port), item(port, number, number)));
        };
        let ports = |queues: &mut Queues<Item>| -> Vec<u32> {
            let items = queues.round().into_iter().flatten();
            items.map(|i| i.port).collect()
        };
        for port in [1, 2] {
            (0..4).for_each(|n| push(&mut queues, port, n));
        }
        assert_eq!(ports(&mut queues), [1, 2]);
        push(&mut queues, 8, 0);
        // Two short rounds do not follow each other.
        assert_eq!(ports(&mut queues), [8, 1, 2, 1, 2, 1]);
        push(&mut queues, 9, 0);
        assert_eq!(ports(&mut queues), [9]);
        assert_eq!(ports(&mut queues), [2]);
        for port in [1, 2] {
            (0..4).for_each(|n| push(&mut queues, port, n));
        }
        assert_eq!(ports(&mut queues), [1, 2]);
        assert_eq!(ports(&mut queues), [1, 2, 1, 2, 1, 2]);
        for port in [1, 2] {
            (0..4).for_each(|n| push(&mut queues, port, n));
        }
        assert_eq!(ports(&mut queues), [1, 2]);
        // Many of them take half of a round.
        (10..16).for_each(|port| push(&mut queues, port, 0));
        assert_eq!(ports(&mut queues), [10, 11, 12, 1, 2, 1]);
        assert_eq!(ports(&mut queues), [13, 14, 15]);
        assert_eq!(ports(&mut queues), [2, 1, 2]);
        assert_eq!(queues.len(), 0);
    }

    proptest! {
        /// Nothing is lost but what found its queue full, nothing is served twice, the packets of
        /// a flow keep their order, and each port gets its share.
        #[test]
        fn whatever_comes_is_served_once_and_in_order(
            steps in proptest::collection::vec((0u32..5, 0u32..4, any::<bool>()), 0..300),
        ) {
            let mut queues = Queues::new(LIMITS);
            let (mut waiting, mut served) = (0usize, Vec::new());
            let mut accepted: Vec<Item> = Vec::new();
            for (number, (port, flow, serve)) in steps.into_iter().enumerate() {
                let new = item(port, flow, number as u32);
                let had_room = queues.has_room(PortNo(port));
                prop_assert_eq!(queues.push(PortNo(port), new.clone()), had_room);
                if had_room {
                    accepted.push(new);
                    waiting += 1;
                }
                if serve {
                    let round = queues.round();
                    waiting -= round.iter().map(|g| g.items.len()).sum::<usize>();
                    for group in &round {
                        let items = &group.items;
                        prop_assert!(items.iter().all(|i| i.same_flow(&items[0])));
                        prop_assert!(!group.congested || items.len() == 1);
                    }
                    served.extend(round.into_iter().flatten());
                }
                prop_assert_eq!(queues.len(), waiting);
            }
            while queues.len() > 0 {
                served.extend(queues.round().into_iter().flatten());
            }
            let by_flow = |items: &[Item]| {
                let mut flows: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
                for i in items {
                    flows.entry((i.port, i.flow)).or_default().push(i.number);
                }
                flows
            };
            prop_assert_eq!(by_flow(&served), by_flow(&accepted));
        }
    }
}
