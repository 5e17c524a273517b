//! How many flow-mods a connection has sent, summed up in the log now and then.

use std::fmt::Write as _;
use std::time::Duration;

use base::Instant;
use of_wire::message::FlowModCommand;

/// From the first flow-mod to the line about it.
const DELAY: Duration = Duration::from_secs(10);
/// The least time between two lines.
const PAUSE: Duration = Duration::from_secs(60);

/// Flow-mods that the log has not told of yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    adds: u32,
    deletes: u32,
    modifications: u32,
    first: Instant,
    last: Instant,
    not_before: Instant,
}

impl Tally {
    pub(crate) const fn note(&mut self, command: FlowModCommand, now: Instant) {
        if self.total() == 0 {
            self.first = now;
        }
        self.last = now;
        let count = match command {
            FlowModCommand::Add => &mut self.adds,
            FlowModCommand::Modify | FlowModCommand::ModifyStrict => &mut self.modifications,
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => &mut self.deletes,
        };
        *count = count.saturating_add(1);
    }

    const fn total(&self) -> u32 {
        self.adds
            .saturating_add(self.deletes)
            .saturating_add(self.modifications)
    }

    /// When [`Tally::report`] has something to say.
    pub(crate) fn next_deadline(&self) -> Instant {
        match self.total() {
            0 => Instant::MAX,
            _ => (self.first + DELAY).max(self.not_before),
        }
    }

    /// The text that sums up what was noted, which is forgotten then; `None` if nothing was.
    pub(crate) fn report(&mut self, now: Instant) -> Option<String> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        let (first, last) = (
            now.since(self.first).as_secs(),
            now.since(self.last).as_secs(),
        );
        let when = if first == last && first > 0 {
            format!("{first} s ago")
        } else if last == 0 {
            format!("in the last {first} s")
        } else {
            format!("in the {} s starting {first} s ago", first - last)
        };
        let mut text = format!("{total} flow_mods {when} (");
        let kinds = [
            (self.adds, "adds"),
            (self.deletes, "deletes"),
            (self.modifications, "modifications"),
        ];
        let mut separator = "";
        for (count, name) in kinds.iter().filter(|(count, _)| *count > 0) {
            let _ = write!(text, "{separator}{count} {name}");
            separator = ", ";
        }
        text.push(')');
        *self = Self {
            not_before: now + PAUSE,
            ..Self::default()
        };
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_mods_are_summed_up_at_times() {
        let at = |secs: u64| Instant::from_millis(secs * 1000);
        let mut tally = Tally::default();
        assert_eq!(tally.report(at(1)), None);
        tally.note(FlowModCommand::Add, at(1));
        assert_eq!(
            tally.report(at(1)).unwrap(),
            "1 flow_mods in the last 0 s (1 adds)"
        );
        tally.note(FlowModCommand::Add, at(100));
        tally.note(FlowModCommand::Delete, at(103));
        assert_eq!(tally.next_deadline(), at(110));
        let text = "2 flow_mods in the 3 s starting 10 s ago (1 adds, 1 deletes)";
        assert_eq!(tally.report(at(110)).unwrap(), text);
        tally.note(FlowModCommand::ModifyStrict, at(111));
        assert_eq!(tally.next_deadline(), at(170));
        let text = "1 flow_mods 59 s ago (1 modifications)";
        assert_eq!(tally.report(at(170)).unwrap(), text);
    }
}
