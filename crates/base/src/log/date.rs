//! Dates of log lines: the templates of `strftime`, with `#` for fractions of a second.

use std::fmt::Write as _;

use crate::WallTime;

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A moment split into the fields of the calendar.
struct Fields {
    year: i64,
    /// 0 to 11.
    month: usize,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    millis: u32,
    weekday: usize,
    /// 0 to 365.
    yearday: u32,
    epoch: i64,
    /// Seconds east of UTC.
    offset: i32,
}

fn split(wall: WallTime, offset: i32) -> Fields {
    let epoch = wall.0.div_euclid(1000);
    let local = epoch + i64::from(offset);
    let (days, second_of_day) = (local.div_euclid(86400), local.rem_euclid(86400) as u32);
    // Years are counted from March, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let from_march = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * from_march + 2) / 153;
    let day = (from_march - (153 * march_month + 2) / 5 + 1) as u32;
    let month = ((march_month + 2) % 12) as usize;
    let year = year_of_era + era * 400 + i64::from(month < 2);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month];
    Fields {
        year,
        month,
        day,
        hour: second_of_day / 3600,
        minute: second_of_day / 60 % 60,
        second: second_of_day % 60,
        millis: wall.0.rem_euclid(1000) as u32,
        weekday: (days + 4).rem_euclid(7) as usize,
        yearday: before + day - 1 + u32::from(leap && month > 1),
        epoch,
        offset,
    }
}

/// `wall` in the form of `template`, `offset` seconds east of UTC.
pub fn format(template: &str, wall: WallTime, offset: i32) -> String {
    let fields = split(wall, offset);
    let mut text = String::new();
    let mut chars = template.chars();
    let mut digits = 0;
    while let Some(c) = chars.next() {
        if c == '#' {
            let fraction = [
                fields.millis / 100,
                fields.millis / 10 % 10,
                fields.millis % 10,
            ];
            let digit = fraction.get(digits).copied().unwrap_or(0);
            let _ = write!(text, "{digit}");
            digits += 1;
            continue;
        }
        digits = 0;
        match c {
            '%' => match chars.next() {
                Some(conversion) => convert(conversion, &fields, &mut text),
                None => text.push('%'),
            },
            _ => text.push(c),
        }
    }
    text
}

/// `wall` in local time, in the form of `template`.
pub fn format_local(template: &str, wall: WallTime) -> String {
    format(template, wall, Zone::local().offset_at(wall))
}

fn convert(conversion: char, f: &Fields, text: &mut String) {
    let hour12 = if f.hour.is_multiple_of(12) {
        12
    } else {
        f.hour % 12
    };
    let mut nested = |conversions: &[&str]| {
        for part in conversions {
            match part.strip_prefix('%').and_then(|p| p.chars().next()) {
                Some(c) => convert(c, f, text),
                None => text.push_str(part),
            }
        }
    };
    let _ = match conversion {
        'a' => write!(text, "{}", &DAYS[f.weekday][..3]),
        'A' => write!(text, "{}", DAYS[f.weekday]),
        'b' | 'h' => write!(text, "{}", &MONTHS[f.month][..3]),
        'B' => write!(text, "{}", MONTHS[f.month]),
        'C' => write!(text, "{:02}", f.year / 100),
        'd' => write!(text, "{:02}", f.day),
        'e' => write!(text, "{:2}", f.day),
        'H' => write!(text, "{:02}", f.hour),
        'I' => write!(text, "{hour12:02}"),
        'j' => write!(text, "{:03}", f.yearday + 1),
        'k' => write!(text, "{:2}", f.hour),
        'l' => write!(text, "{hour12:2}"),
        'm' => write!(text, "{:02}", f.month + 1),
        'M' => write!(text, "{:02}", f.minute),
        'n' => writeln!(text),
        'p' => write!(text, "{}", if f.hour < 12 { "AM" } else { "PM" }),
        's' => write!(text, "{}", f.epoch),
        'S' => write!(text, "{:02}", f.second),
        't' => write!(text, "\t"),
        'u' => write!(text, "{}", if f.weekday == 0 { 7 } else { f.weekday }),
        'w' => write!(text, "{}", f.weekday),
        'y' => write!(text, "{:02}", f.year.rem_euclid(100)),
        'Y' => write!(text, "{}", f.year),
        'z' => {
            let minutes = f.offset.abs() / 60;
            let sign = if f.offset < 0 { '-' } else { '+' };
            write!(text, "{sign}{:02}{:02}", minutes / 60, minutes % 60)
        }
        '%' => write!(text, "%"),
        'c' => {
            nested(&["%a", " ", "%b", " ", "%e", " ", "%T", " ", "%Y"]);
            Ok(())
        }
        'D' | 'x' => {
            nested(&["%m", "/", "%d", "/", "%y"]);
            Ok(())
        }
        'F' => {
            nested(&["%Y", "-", "%m", "-", "%d"]);
            Ok(())
        }
        'r' => {
            nested(&["%I", ":", "%M", ":", "%S", " ", "%p"]);
            Ok(())
        }
        'R' => {
            nested(&["%H", ":", "%M"]);
            Ok(())
        }
        'T' | 'X' => {
            nested(&["%H", ":", "%M", ":", "%S"]);
            Ok(())
        }
        other => write!(text, "%{other}"),
    };
}

/// The offset of local time from UTC at a moment, in seconds east.
#[derive(Debug, Default)]
pub(super) struct Zone {
    /// From each second since 1970 on, the offset.
    transitions: Vec<(i64, i32)>,
    first: i32,
}

impl Zone {
    /// The zone that `TZ` or `/etc/localtime` names; UTC if there is none.
    pub(super) fn local() -> Self {
        let file = match std::env::var("TZ") {
            Ok(tz) if tz.trim_start_matches(':').starts_with('/') => {
                tz.trim_start_matches(':').into()
            }
            Ok(tz) => format!("/usr/share/zoneinfo/{}", tz.trim_start_matches(':')),
            Err(_) => "/etc/localtime".to_owned(),
        };
        let data = std::fs::read(file).unwrap_or_default();
        Self::parse(&data).unwrap_or_default()
    }

    /// Reads RFC 8536 data (version 2 or later).
    fn parse(data: &[u8]) -> Option<Self> {
        let count = |header: &[u8], i: usize| -> Option<usize> {
            let bytes = header.get(20 + 4 * i..24 + 4 * i)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize)
        };
        if data.get(..4)? != b"TZif" || *data.get(4)? < b'2' {
            return None;
        }
        // Counts: UT indicators, standard indicators, leaps, times, types, characters.
        let c: Vec<usize> = (0..6).map_while(|i| count(data, i)).collect();
        let first_block = c[3] * 5 + c[4] * 6 + c[5] + c[2] * 8 + c[1] + c[0];
        let data = data.get(44 + first_block..)?;
        let (times, types) = (count(data, 3)?, count(data, 4)?);
        let body = data.get(44..)?;
        let kinds = body.get(times * 9..times * 9 + types * 6)?;
        let offset = |kind: usize| -> Option<i32> {
            let bytes = kinds.get(kind * 6..kind * 6 + 4)?;
            Some(i32::from_be_bytes(bytes.try_into().ok()?))
        };
        let transition = |i: usize| -> Option<(i64, i32)> {
            let at = body.get(i * 8..i * 8 + 8)?;
            let kind = *body.get(times * 8 + i)?;
            Some((
                i64::from_be_bytes(at.try_into().ok()?),
                offset(kind.into())?,
            ))
        };
        Some(Self {
            transitions: (0..times).map(transition).collect::<Option<_>>()?,
            first: offset(0)?,
        })
    }

    pub(super) fn offset_at(&self, wall: WallTime) -> i32 {
        let seconds = wall.0.div_euclid(1000);
        let after = self.transitions.partition_point(|t| t.0 <= seconds);
        match after.checked_sub(1) {
            Some(i) => self.transitions[i].1,
            None => self.first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates() {
        let check = |template, millis, expected: &str| {
            assert_eq!(format(template, WallTime(millis), 0), expected);
        };
        check("%Y-%m-%dT%H:%M:%S.###Z", 0, "1970-01-01T00:00:00.000Z");
        check("%F %T.#####", 951_827_696_789, "2000-02-29 12:34:56.78900");
        check(
            "%h %e %T|%a %j",
            1_767_225_599_000,
            "Dec 31 23:59:59|Wed 365",
        );
        check("%I%p %D %y%%%Q", 1_700_000_000_000, "10PM 11/14/23 23%%Q");
        check("%Y-%m-%d", -1, "1969-12-31");
    }

    #[test]
    fn zones() {
        assert!(Zone::parse(b"TZif1").is_none());
        let zone = Zone {
            transitions: vec![(100, 3600), (200, 7200)],
            first: 0,
        };
        let at = |s: i64| zone.offset_at(WallTime(s * 1000));
        assert_eq!((at(99), at(100), at(250)), (0, 3600, 7200));
        assert_eq!(format("%H %z", WallTime(0), -5400), "22 -0130");
    }
}
