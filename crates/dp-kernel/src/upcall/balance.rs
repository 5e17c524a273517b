//! Which handler serves which port: as few ports as possible each, and a port moves when its
//! handler has much more to do than another.  No threads here.

use std::collections::HashMap;

use dp_lang::PortNo;

/// How many times the work of the least busy handler the busiest must have had before a port moves.
const FACTOR: u64 = 4;

/// Upcalls of a handler in a period below which nothing is worth a move.
const LITTLE: u64 = 1000;

/// Who serves which port.
#[derive(Debug)]
pub(crate) struct Balance {
    handlers: Vec<usize>,
    ports: HashMap<PortNo, usize>,
}

/// A port that is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) port: PortNo,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Balance {
    pub(crate) fn new(handlers: usize) -> Self {
        Self {
            handlers: vec![0; handlers.max(1)],
            ports: HashMap::new(),
        }
    }

    /// The handler of a port: that with the fewest ports for one that is new.
    pub(crate) fn assign(&mut self, port: PortNo) -> usize {
        if let Some(handler) = self.ports.get(&port) {
            return *handler;
        }
        let fewest = self
            .handlers
            .iter()
            .enumerate()
            .min_by_key(|(_, count)| **count);
        let handler = fewest.map_or(0, |(index, _)| index);
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
    }

    /// What is to be moved after a period in which each port had so many upcalls: from a handler
    /// with far more work than another the port that makes them most alike.
    pub(crate) fn rebalance(&mut self, upcalls: &HashMap<PortNo, u64>) -> Option<Move> {
        let mut work = vec![0u64; self.handlers.len()];
        for (port, handler) in &self.ports {
            work[*handler] += upcalls.get(port).copied().unwrap_or(0);
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
            .map(|(port, _)| (*port, upcalls.get(port).copied().unwrap_or(0)))
            .filter(|(_, count)| *count > 0 && *count < gap);
        let (port, _) = movable.min_by_key(|(port, count)| (count.abs_diff(gap / 2), *port))?;
        self.ports.insert(port, to);
        self.handlers[from] -= 1;
        self.handlers[to] += 1;
        Some(Move { port, from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Ports 0 and 2 are one handler's, and both flood.
        let upcalls = HashMap::from([(PortNo(0), 9000), (PortNo(2), 8000), (PortNo(1), 10)]);
        let moved = balance.rebalance(&upcalls).unwrap();
        assert_eq!((moved.from, moved.to), (0, 1));
        assert_eq!(balance.rebalance(&upcalls), None);
        // A single flood is nowhere better.
        let upcalls = HashMap::from([(PortNo(0), 100_000)]);
        assert_eq!(balance.rebalance(&upcalls), None);
        assert_eq!(balance.rebalance(&HashMap::new()), None);
    }
}
