//! What `vlog/set`, `vlog/list` and their like do; `--verbose` is the same as `vlog/set`.

use std::fmt::Write as _;

use super::pattern::SYSLOG_PREFIX;
use super::{Destination, Level, Logger, sink};

/// The number of a facility of RFC 5424, section 6.2.1.
fn facility(name: &str) -> Option<u8> {
    match name {
        "kern" => Some(0),
        "user" => Some(1),
        "mail" => Some(2),
        "daemon" => Some(3),
        "auth" => Some(4),
        "syslog" => Some(5),
        "lpr" => Some(6),
        "news" => Some(7),
        "uucp" => Some(8),
        "clock" => Some(9),
        "ftp" => Some(11),
        "ntp" => Some(12),
        "audit" => Some(13),
        "alert" => Some(14),
        "clock2" => Some(15),
        _ => {
            let n: u8 = name.strip_prefix("local")?.parse().ok()?;
            (n < 8).then_some(16 + n)
        }
    }
}

impl Logger {
    /// Applies `spec`: a level, a destination and a module, up to one each and in any order,
    /// or `PATTERN:destination:pattern`, or `FACILITY:facility`.
    ///
    /// # Errors
    /// The text that `vlog/set` answers.
    pub fn set(&self, spec: &str) -> Result<(), String> {
        let result = self.try_set(spec);
        sink::refresh();
        result
    }

    fn try_set(&self, spec: &str) -> Result<(), String> {
        let (mut module, mut level, mut destination) = (None, None, None);
        let is_separator = |c: char| matches!(c, ' ' | ',' | ':');
        let mut rest = spec;
        loop {
            rest = rest.trim_start_matches(is_separator);
            if rest.is_empty() {
                break;
            }
            let end = rest.find(is_separator).unwrap_or(rest.len());
            let word = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or("");
            let state = self.state();
            if let Some(found) = state.modules.keys().find(|m| m.eq_ignore_ascii_case(word)) {
                let found = found.clone();
                once(&mut module, found, "modules")?;
            } else if let Some(found) = Destination::from_name(word) {
                once(&mut destination, found, "destinations")?;
            } else if let Some(found) = Level::from_name(word) {
                once(&mut level, found, "levels")?;
            } else if word.eq_ignore_ascii_case("pattern") {
                drop(state);
                return self.set_pattern(rest);
            } else if word.eq_ignore_ascii_case("facility") {
                drop(state);
                return self.set_facility(rest);
            } else if !word.eq_ignore_ascii_case("any") {
                return Err(format!("no destination, level, or module \"{word}\""));
            }
        }
        let level = level.unwrap_or(Level::Dbg);
        self.state()
            .set_level(module.as_deref(), destination, level);
        Ok(())
    }

    fn set_pattern(&self, text: &str) -> Result<(), String> {
        let is_separator = |c: char| matches!(c, ' ' | ',' | ':');
        let text = text.trim_start_matches(is_separator);
        if text.is_empty() {
            return Err("missing destination".to_owned());
        }
        let (name, pattern) = text.split_once(is_separator).unwrap_or((text, ""));
        let any = name.eq_ignore_ascii_case("any");
        let destination = Destination::from_name(name);
        if destination.is_none() && !any {
            return Err(format!("unknown destination \"{name}\""));
        }
        let mut state = self.state();
        for each in Destination::ALL {
            if any || destination == Some(each) {
                pattern.clone_into(&mut state.patterns[each as usize]);
            }
        }
        Ok(())
    }

    fn set_facility(&self, name: &str) -> Result<(), String> {
        let number = facility(name).ok_or_else(|| "invalid facility".to_owned())?;
        self.state().facility = Some(number);
        Ok(())
    }

    /// The text of `vlog/list`.
    pub fn list(&self) -> String {
        let mut text = String::from("                 console    syslog    file\n");
        text += "                 -------    ------    ------\n";
        for (name, module) in &self.state().modules {
            let level = |d: Destination| module.levels[d as usize];
            let _ = write!(
                text,
                "{name:<16}  {:>4}       {:>4}       {:>4}",
                level(Destination::Console),
                level(Destination::Syslog),
                level(Destination::File)
            );
            let limits = if module.rate_limited {
                ""
            } else {
                "    (rate limiting disabled)"
            };
            text += limits;
            text.push('\n');
        }
        text
    }

    /// The text of `vlog/list-pattern`.
    pub fn list_pattern(&self) -> String {
        let mut text = String::from("         prefix                            format\n");
        text += "         ------                            ------\n";
        let state = self.state();
        for destination in Destination::ALL {
            let prefix = match destination {
                Destination::Syslog => SYSLOG_PREFIX,
                _ => "none",
            };
            let pattern = &state.patterns[destination as usize];
            let _ = writeln!(text, "{:<7}  {prefix:<32}  {pattern}", destination.name());
        }
        text
    }

    /// Switches rate limits of the named modules (none: of all) on or off.
    ///
    /// # Errors
    /// The text that `vlog/enable-rate-limit` answers; modules named before it were switched.
    pub fn set_rate_limits(&self, modules: &[String], on: bool) -> Result<(), String> {
        let mut state = self.state();
        if modules.is_empty() {
            state.modules.values_mut().for_each(|m| m.rate_limited = on);
        }
        for name in modules {
            if name.eq_ignore_ascii_case("any") {
                state.modules.values_mut().for_each(|m| m.rate_limited = on);
                continue;
            }
            let mut known = state.modules.iter_mut();
            match known.find(|(m, _)| m.eq_ignore_ascii_case(name)) {
                Some((_, module)) => module.rate_limited = on,
                None => return Err("unknown module".to_owned()),
            }
        }
        Ok(())
    }
}

fn once<T>(slot: &mut Option<T>, value: T, what: &str) -> Result<(), String> {
    if slot.is_some() {
        return Err(format!("cannot specify multiple {what}"));
    }
    *slot = Some(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    #[test]
    fn specifications() {
        let logger = Logger::new("t", &Clock::new(), &["bridge", "daemon"]);
        let fails = |spec, expected: &str| assert_eq!(logger.set(spec), Err(expected.to_owned()));
        fails(
            "nonexistent",
            "no destination, level, or module \"nonexistent\"",
        );
        fails("file:console", "cannot specify multiple destinations");
        fails("bridge daemon", "cannot specify multiple modules");
        fails("info,warn", "cannot specify multiple levels");
        fails("pattern", "missing destination");
        fails("PATTERN:nowhere:%m", "unknown destination \"nowhere\"");
        fails("FACILITY:invalid", "invalid facility");
        logger.set("Any:console:OFF").unwrap();
        logger.set("daemon:syslog:err").unwrap();
        logger.set("PATTERN:file:%p: %m").unwrap();
        logger
            .set_rate_limits(&["bridge".to_owned()], false)
            .unwrap();
        let list = logger.list();
        let lines: Vec<&str> = list.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "bridge             OFF       INFO       INFO    (rate limiting disabled)",
                "daemon             OFF        ERR       INFO",
            ]
        );
        assert!(
            logger
                .list_pattern()
                .ends_with("FILE     none                              %p: %m\n")
        );
    }

    #[test]
    fn facilities() {
        let number = |name| facility(name);
        assert_eq!(number("local7"), Some(23));
        assert_eq!(
            (number("daemon"), number("local8"), number("")),
            (Some(3), None, None)
        );
    }
}
