//! The figures, what must hold of them, and how they are printed.

use std::collections::BTreeMap;

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mark {
    /// The figure is shown.
    None,
    /// Ours is at most so many times the original's.
    Ratio(f64),
    /// Ours is at least so many times the original's.
    AtLeast(f64),
    /// Ours is at most this.
    AtMost(f64),
}

/// A figure.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) mark: Mark,
}

const fn figure(name: &'static str, unit: &'static str, mark: Mark) -> Figure {
    Figure { name, unit, mark }
}

/// All figures, in the order in which they are printed.
pub(super) const FIGURES: &[Figure] = &[
    figure("enqueue-one-port", "us", Mark::None),
    figure("enqueue-all-ports", "us", Mark::None),
    figure("enqueue-deviation", "%", Mark::Ratio(0.5)),
    figure("enqueue-flooded-loss", "%", Mark::None),
    figure("enqueue-idle-loss", "%", Mark::None),
    figure("enqueue-idle-mean", "us", Mark::None),
    figure("enqueue-cpu-after", "CPU %", Mark::AtMost(1.0)),
    figure("lone-handler-wakeups", "per upcall", Mark::AtMost(1.05)),
    figure("lone-all-switches", "per upcall", Mark::None),
    figure("round-trip-mean", "us", Mark::Ratio(0.5)),
    figure("round-trip-p99", "us", Mark::Ratio(0.5)),
    figure("round-trip-loss", "%", Mark::None),
    figure("round-trip-deviation", "%", Mark::Ratio(0.5)),
    figure("flood-served", "per s", Mark::AtLeast(2.0)),
    figure("flood-sent", "per s", Mark::None),
    figure("flood-handler-wakeups", "per upcall", Mark::AtMost(0.2)),
    figure("flood-cpu", "s per 10,000", Mark::Ratio(0.5)),
    figure("flood-cpu-after", "CPU %", Mark::AtMost(1.0)),
    figure("flood-idle-loss", "%", Mark::Ratio(1.0)),
    figure("flood-idle-mean", "us", Mark::Ratio(1.0)),
    figure("flood-idle-p99", "us", Mark::Ratio(1.0)),
    figure("same-cpu-unloaded-p99", "us", Mark::None),
    figure("same-cpu-idle-loss", "%", Mark::AtMost(0.1)),
    figure("same-cpu-idle-p99", "us", Mark::None),
    figure("same-cpu-idle-slower", "times", Mark::AtMost(10.0)),
    figure("flooded-port-served", "per s", Mark::AtLeast(2.0)),
    figure("flooded-port-cpu", "s per 10,000", Mark::Ratio(0.5)),
    figure("sockets", "", Mark::None),
    figure("sockets-per-port", "", Mark::None),
    figure("ports-first-ten", "ms", Mark::None),
    figure("ports-ten-more", "ms", Mark::None),
    figure("ports-ten-ratio", "times", Mark::AtMost(1.2)),
    figure("ports-one-more", "ms", Mark::Ratio(0.1)),
    figure("ports-idle-cpu", "CPU %", Mark::Ratio(0.1)),
    figure("ports-sockets", "", Mark::None),
    figure("ports-sockets-per-port", "", Mark::None),
];

/// Values of one side, by figure, one for each round.
pub(super) type Values = BTreeMap<&'static str, Vec<f64>>;

/// The middle value.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    // Of two in the middle neither is better.
    Some((sorted[last / 2] + sorted[last.div_ceil(2)]) / 2.0)
}

/// Whether a mark holds: `None` if the figures to tell are not there.
fn holds(mark: Mark, ours: Option<f64>, other: Option<f64>) -> Option<bool> {
    match mark {
        Mark::None => None,
        Mark::AtMost(limit) => Some(ours? <= limit),
        Mark::Ratio(limit) => Some(ours? <= other? * limit),
        Mark::AtLeast(limit) => Some(ours? >= other? * limit),
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.pad("-"),
            Self::Ratio(limit) => f.pad(&format!("<= {limit} x")),
            Self::AtLeast(limit) => f.pad(&format!(">= {limit} x")),
            Self::AtMost(limit) => f.pad(&format!("<= {limit}")),
        }
    }
}

/// The table as text, and the figures whose marks are missed.
pub(super) fn table(ours: &Values, other: &Values) -> (String, Vec<&'static str>) {
    let (mut text, mut missed) = (String::new(), Vec::new());
    text.push_str(&format!(
        "{:24} {:>12} {:>12} {:>8} {:>10}\n",
        "figure", "Sluice", "original", "ratio", "mark"
    ));
    for figure in FIGURES {
        let middle = |values: &Values| values.get(figure.name).and_then(|v| median(v));
        let (own, theirs) = (middle(ours), middle(other));
        if own.is_none() && theirs.is_none() {
            continue;
        }
        let ratio = own.zip(theirs).filter(|(_, t)| *t != 0.0);
        let number = |n: Option<f64>| n.map_or_else(|| "-".to_owned(), digits);
        let verdict = match holds(figure.mark, own, theirs) {
            Some(false) => {
                missed.push(figure.name);
                "  MISSED"
            }
            _ => "",
        };
        text.push_str(&format!(
            "{:24} {:>12} {:>12} {:>8} {:>10} {}{verdict}\n",
            figure.name,
            number(own),
            number(theirs),
            number(ratio.map(|(o, t)| o / t)),
            figure.mark,
            figure.unit
        ));
    }
    (text, missed)
}

/// A number with as many digits as mean something.
pub(super) fn digits(number: f64) -> String {
    match number.abs() {
        n if n >= 1000.0 => format!("{number:.0}"),
        n if n >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    }

    #[test]
    fn marks() {
        let hold = |mark, ours| holds(mark, Some(ours), Some(10.0));
        assert_eq!(hold(Mark::Ratio(0.5), 5.0), Some(true));
        assert_eq!(hold(Mark::Ratio(0.5), 5.1), Some(false));
        assert_eq!(hold(Mark::AtLeast(2.0), 19.0), Some(false));
        assert_eq!(holds(Mark::AtMost(1.0), Some(1.0), None), Some(true));
        assert_eq!(holds(Mark::Ratio(0.5), Some(1.0), None), None);
        assert_eq!(hold(Mark::None, 1.0), None);
    }

    #[test]
    fn the_table_names_what_is_missed() {
        let ours = Values::from([("flood-served", vec![10.0]), ("flood-cpu", vec![1.0])]);
        let other = Values::from([("flood-served", vec![8.0]), ("flood-cpu", vec![4.0])]);
        let (text, missed) = table(&ours, &other);
        assert_eq!(missed, ["flood-served"]);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.contains("1.250") && text.contains("0.250"), "{text}");
    }
}
