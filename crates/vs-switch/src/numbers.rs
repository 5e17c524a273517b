//! OpenFlow port numbers of a bridge: who has which, and which comes next.

use std::collections::{BTreeSet, HashMap};

use base::Instant;

/// One more than the highest number that is given out.
const END: u16 = 0xff00;

/// Numbers in use and those used before.  A number that was free for longest is given
/// out last of all, so that a controller does not take a new port for an old one.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    in_use: BTreeSet<u16>,
    by_name: HashMap<String, u16>,
    /// When numbers that were in use before became free.
    freed: HashMap<u16, Instant>,
    last: u16,
}

impl Numbers {
    /// A number for the interface `name`: the one that it asks for if that is free.
    pub(crate) fn allot(&mut self, name: &str, request: Option<u16>) -> Option<u16> {
        if let Some(number) = self.by_name.get(name) {
            return Some(*number);
        }
        let wanted = request.filter(|n| (1..END).contains(n) && !self.in_use.contains(n));
        let number = wanted.or_else(|| self.next())?;
        self.freed.remove(&number);
        self.in_use.insert(number);
        self.by_name.insert(name.to_owned(), number);
        Some(number)
    }

    fn next(&mut self) -> Option<u16> {
        let start = self.last;
        let after = |n: u16| if n + 1 >= END { 1 } else { n + 1 };
        let mut number = after(start);
        let mut oldest: Option<(Instant, u16)> = None;
        loop {
            if !self.in_use.contains(&number) {
                match self.freed.get(&number) {
                    None => {
                        self.last = number;
                        return Some(number);
                    }
                    Some(at) => {
                        let candidate = (*at, number);
                        oldest = Some(oldest.map_or(candidate, |o| o.min(candidate)));
                    }
                }
            }
            if number == start || (start == 0 && number == END - 1) {
                return oldest.map(|(_, n)| n);
            }
            number = after(number);
        }
    }

    /// Takes the number of `name` back.
    pub(crate) fn free(&mut self, name: &str, now: Instant) {
        if let Some(number) = self.by_name.remove(name) {
            self.in_use.remove(&number);
            self.freed.insert(number, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_honoured_and_the_rest_counts_up() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.allot("p1", Some(1)), Some(1));
        assert_eq!(numbers.allot("p2", Some(99)), Some(99));
        assert_eq!(numbers.allot("p3", None), Some(2));
        assert_eq!(numbers.allot("p3", Some(7)), Some(2));
        assert_eq!(numbers.allot("p4", Some(99)), Some(3));
        assert_eq!(numbers.allot("p5", Some(0xff00)), Some(4));
    }

    #[test]
    fn a_number_that_was_in_use_comes_last() {
        let mut numbers = Numbers::default();
        for name in ["a", "b", "c"] {
            numbers.allot(name, None);
        }
        numbers.free("b", Instant::from_millis(5));
        assert_eq!(numbers.allot("d", None), Some(4));
        assert_eq!(numbers.allot("b", Some(2)), Some(2));
        numbers.last = END - 2;
        assert_eq!(numbers.allot("e", None), Some(END - 1));
        assert_eq!(numbers.allot("f", None), Some(5));
    }

    #[test]
    fn when_all_were_in_use_the_one_free_for_longest_is_taken() {
        let mut numbers = Numbers::default();
        for n in 1..END {
            assert_eq!(numbers.allot(&n.to_string(), None), Some(n));
        }
        assert_eq!(numbers.allot("none", None), None);
        numbers.free("700", Instant::from_millis(9));
        numbers.free("800", Instant::from_millis(5));
        assert_eq!(numbers.allot("x", None), Some(800));
        assert_eq!(numbers.allot("y", None), Some(700));
    }
}
