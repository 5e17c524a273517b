//! Which handler serves which port: as few ports as possible each, and a port moves when its
//! handler has much more to do than another.  A port that floods takes all of its handler's time,
//! so the others of that handler go to one that serves only such as do not.  No threads here.

use std::collections::HashMap;

use dp_lang::PortNo;

/// How many times the work of the least busy handler the busiest must have had before a port moves.
const FACTOR: u64 = 4;

/// Upcalls of a handler in a period below which nothing is worth a move.
const LITTLE: u64 = 1000;

/// Upcalls of a port in a period, served while many others of it waited, from which on it floods.
const FLOOD: u64 = 100;

/// Periods without a flood after which ports go back to where they were before one.
const CALM: u32 = 10;

/// Upcalls of a port in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// All.
    pub(crate) count: u64,
    /// Those that were served while many others waited.
    pub(crate) congested: u64,
}

impl Served {
    /// Adds what another part of the period brought.
    pub(crate) const fn add(&mut self, other: Self) {
        self.count += other.count;
        self.congested += other.congested;
    }

    const fn is_flood(self) -> bool {
        self.congested >= FLOOD && self.congested * 2 > self.count
    }
}

/// Who serves which port.
#[derive(Debug)]
pub(crate) struct Balance {
    /// Ports of each handler; the last has those that are kept apart from a flood.
    handlers: Vec<usize>,
    ports: HashMap<PortNo, usize>,
    /// Periods since the last flood.
    calm: u32,
}

/// A port that is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) port: PortNo,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Balance {
    /// For so many handlers, and one besides for ports that are kept apart.
    pub(crate) fn new(handlers: usize) -> Self {
        Self {
            handlers: vec![0; handlers.max(1) + 1],
            ports: HashMap::new(),
            calm: 0,
        }
    }

    const fn apart(&self) -> usize {
        self.handlers.len() - 1
    }

    /// The handler with the fewest ports.
    fn emptiest(&self) -> usize {
        let usual = self.handlers[..self.apart()].iter().enumerate();
        let fewest = usual.min_by_key(|(_, count)| **count);
        fewest.map_or(0, |(index, _)| index)
    }

    /// The handler of a port: that with the fewest ports for one that is new.
    pub(crate) fn assign(&mut self, port: PortNo) -> usize {
        if let Some(handler) = self.ports.get(&port) {
            return *handler;
        }
        let handler = self.emptiest();
        self.handlers[handler] += 1;
        self.ports.insert(port, handler);
        handler
    }

    /// A port is gone.
    pub(crate) fn remove(&mut self, port: PortNo) -> Option<usize> {
        let handler = self.ports.remove(&port)?;
        self.handlers[handler] -= 1;
        Some(handler)
    }

    /// Forgets all ports.
    pub(crate) fn clear(&mut self) {
        self.ports.clear();
        self.handlers.fill(0);
        self.calm = 0;
    }

    /// What is to be moved after a period in which each port had so many upcalls.
    pub(crate) fn rebalance(&mut self, upcalls: &HashMap<PortNo, Served>) -> Vec<Move> {
        let floods = |port: &PortNo| upcalls.get(port).is_some_and(|s| s.is_flood());
        let mut is_flooded = vec![false; self.handlers.len()];
        for (port, handler) in &self.ports {
            is_flooded[*handler] |= floods(port);
        }
        let is_any = is_flooded.contains(&true);
        self.calm = if is_any { 0 } else { self.calm + 1 };
        let (apart, is_calm) = (self.apart(), self.calm >= CALM);
        let misplaced = self.ports.iter().filter(|(port, handler)| {
            if **handler == apart {
                is_calm || floods(port)
            } else {
                is_flooded[**handler] && !floods(port)
            }
        });
        let mut misplaced: Vec<(PortNo, usize)> = misplaced.map(|(p, h)| (*p, *h)).collect();
        misplaced.sort_unstable();
        let mut moves: Vec<Move> = Vec::with_capacity(misplaced.len());
        for (port, from) in misplaced {
            let to = if from == apart {
                self.emptiest()
            } else {
                apart
            };
            moves.push(self.carry_out(port, from, to));
        }
        if moves.is_empty() {
            moves.extend(self.level(upcalls));
        }
        moves
    }

    fn carry_out(&mut self, port: PortNo, from: usize, to: usize) -> Move {
        self.ports.insert(port, to);
        self.handlers[from] -= 1;
        self.handlers[to] += 1;
        Move { port, from, to }
    }

    /// From a handler with far more work than another the port that makes them most alike.
    fn level(&mut self, upcalls: &HashMap<PortNo, Served>) -> Option<Move> {
        let count = |port: &PortNo| upcalls.get(port).map_or(0, |s| s.count);
        let mut work = vec![0u64; self.apart()];
        for (port, handler) in &self.ports {
            if let Some(work) = work.get_mut(*handler) {
                *work += count(port);
            }
        }
        let from = (0..work.len()).max_by_key(|h| work[*h])?;
        let to = (0..work.len()).min_by_key(|h| work[*h])?;
        if work[from] < LITTLE || work[from] < work[to].saturating_mul(FACTOR) {
            return None;
        }
        let gap = work[from] - work[to];
        let own = self.ports.iter().filter(|(_, handler)| **handler == from);
        // A port as busy as the gap would only change the handlers' places.
        let movable = own
            .map(|(port, _)| (*port, count(port)))
            .filter(|(_, count)| *count > 0 && *count < gap);
        let (port, _) = movable.min_by_key(|(port, count)| (count.abs_diff(gap / 2), *port))?;
        Some(self.carry_out(port, from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(counts: &[(u32, u64, u64)]) -> HashMap<PortNo, Served> {
        let ports = counts.iter().map(|(port, count, congested)| {
            let served = Served {
                count: *count,
                congested: *congested,
            };
            (PortNo(*port), served)
        });
        ports.collect()
    }

    #[test]
    fn ports_are_spread_evenly() {
        let mut balance = Balance::new(3);
        let handlers: Vec<usize> = (0..6).map(|n| balance.assign(PortNo(n))).collect();
        assert_eq!(handlers, [0, 1, 2, 0, 1, 2]);
        assert_eq!(balance.remove(PortNo(1)), Some(1));
        assert_eq!(balance.assign(PortNo(9)), 1);
        assert_eq!(balance.assign(PortNo(2)), 2);
    }

    #[test]
    fn the_neighbours_of_a_busy_port_move_away() {
        let mut balance = Balance::new(2);
        for n in 0..4 {
            balance.assign(PortNo(n));
        }
        // Ports 0 and 2 are one handler's, and both are busy.
        let upcalls = served(&[(0, 9000, 0), (2, 8000, 0), (1, 10, 0)]);
        let moved = balance.rebalance(&upcalls);
        assert_eq!((moved.len(), moved[0].from, moved[0].to), (1, 0, 1));
        assert_eq!(balance.rebalance(&upcalls), []);
        // A single busy port is nowhere better.
        assert_eq!(balance.rebalance(&served(&[(0, 100_000, 0)])), []);
        assert_eq!(balance.rebalance(&HashMap::new()), []);
    }

    #[test]
    fn who_does_not_flood_is_kept_apart_until_it_is_calm() {
        let mut balance = Balance::new(2);
        for n in 0..6 {
            balance.assign(PortNo(n));
        }
        let step = |port, from, to| Move {
            port: PortNo(port),
            from,
            to,
        };
        let flood = served(&[(0, 3000, 2900), (1, 50, 0), (2, 400, 99)]);
        assert_eq!(balance.rebalance(&flood), [step(2, 0, 2), step(4, 0, 2)]);
        assert_eq!(balance.rebalance(&flood), []);
        // One of them begins to flood, and goes where few are.
        let second = served(&[(0, 3000, 2900), (2, 3000, 2900)]);
        assert_eq!(balance.rebalance(&second), [step(2, 2, 0)]);
        // A pause does not bring them back.
        assert_eq!(balance.rebalance(&HashMap::new()), []);
        assert_eq!(balance.rebalance(&flood), [step(2, 0, 2)]);
        for _ in 1..CALM {
            assert_eq!(balance.rebalance(&HashMap::new()), []);
        }
        let back = balance.rebalance(&HashMap::new());
        assert_eq!(back, [step(2, 2, 0), step(4, 2, 0)]);
        assert_eq!(balance.handlers, [3, 3, 0]);
    }
}
