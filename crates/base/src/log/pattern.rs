//! Patterns: how a message becomes a line.

use std::fmt::Write as _;

use super::Level;
use super::date::{self, Zone};
use crate::WallTime;

pub(super) const SYSLOG_PREFIX: &str = "<%B> %D{%h %e %T} %E %A: ";

/// The form of messages to a remote system log (RFC 5424, section 6).
pub(super) const RFC_5424: &str = "<%B>1 %D{%Y-%m-%dT%H:%M:%S.###Z} %E %A %P %c - \u{feff}%m";

/// What a pattern can show.
pub(super) struct Record<'a> {
    pub program: &'a str,
    pub facility: u8,
    pub module: &'a str,
    pub level: Level,
    pub wall: WallTime,
    pub zone: &'a Zone,
    pub host: &'a str,
    /// Of the thread's messages, this is which.
    pub number: u32,
    /// Milliseconds since the program's start.
    pub running: u64,
    /// Empty for the main thread.
    pub subprogram: &'a str,
    pub message: &'a str,
}

/// The line that `pattern` makes of `record`.
pub(super) fn format(pattern: &str, record: &Record<'_>) -> String {
    let mut line = String::with_capacity(record.message.len() + 64);
    let mut rest = pattern;
    while let Some(percent) = rest.find('%') {
        line.push_str(&rest[..percent]);
        rest = &rest[percent + 1..];
        let (left, after) = flag(rest, '-');
        let (zero, after) = flag(after, '0');
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let width: usize = after[..digits].parse().unwrap_or(0).min(1024);
        rest = &after[digits..];
        let Some(conversion) = rest.chars().next() else {
            break;
        };
        rest = &rest[conversion.len_utf8()..];
        let mut field = String::new();
        rest = expand(conversion, rest, record, &mut field);
        let padding = width.saturating_sub(field.len());
        let fill = if zero { "0" } else { " " }.repeat(padding);
        if left {
            line.push_str(&field);
            line.push_str(&fill);
        } else {
            line.push_str(&fill);
            line.push_str(&field);
        }
    }
    line.push_str(rest);
    line
}

fn flag(text: &str, c: char) -> (bool, &str) {
    match text.strip_prefix(c) {
        Some(rest) => (true, rest),
        None => (false, text),
    }
}

/// Appends what `conversion` stands for; returns what follows its braces in `rest`.
fn expand<'p>(conversion: char, rest: &'p str, record: &Record<'_>, field: &mut String) -> &'p str {
    let priority = (record.facility << 3) + record.level.severity();
    let (braces, after) = match rest.strip_prefix('{').and_then(|r| r.split_once('}')) {
        Some((inner, after)) => (Some(inner), after),
        None => (None, rest),
    };
    let _ = match conversion {
        'A' => write!(field, "{}", record.program),
        'B' => write!(field, "{priority}"),
        'c' => write!(field, "{}", record.module),
        'd' | 'D' => {
            let offset = match conversion {
                'd' => record.zone.offset_at(record.wall),
                _ => 0,
            };
            let template = braces.unwrap_or("%Y-%m-%d %H:%M:%S");
            field.push_str(&date::format(template, record.wall, offset));
            return after;
        }
        'E' => write!(field, "{}", record.host),
        'm' => write!(field, "{}", record.message),
        'N' => write!(field, "{}", record.number),
        'n' => writeln!(field),
        'p' => write!(field, "{}", record.level.name()),
        'P' => write!(field, "{}", std::process::id()),
        'r' => write!(field, "{}", record.running),
        't' => {
            let main = record.subprogram.is_empty();
            write!(field, "{}", if main { "main" } else { record.subprogram })
        }
        'T' if record.subprogram.is_empty() => Ok(()),
        'T' => write!(field, "({})", record.subprogram),
        other => write!(field, "{other}"),
    };
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let zone = Zone::default();
        let record = Record {
            program: "ovs-vswitchd",
            facility: 16,
            module: "bridge",
            level: Level::Info,
            wall: WallTime(1_500),
            zone: &zone,
            host: "h1",
            number: 7,
            running: 42,
            subprogram: "monitor",
            message: "50% full",
        };
        let check = |pattern, expected: &str| assert_eq!(format(pattern, &record), expected);
        check(
            "%D{%Y-%m-%dT%H:%M:%S.###Z}|%05N|%c%T|%p|%m",
            "1970-01-01T00:00:01.500Z|00007|bridge(monitor)|INFO|50% full",
        );
        check(
            "<%B>1 %A %E %r%n%%%t",
            "<133>1 ovs-vswitchd h1 42\n%monitor",
        );
        check("%-6p|%6p|%06r|%2c", "INFO  |  INFO|000042|bridge");
        check("%D|%", "1970-01-01 00:00:01|");
    }
}
