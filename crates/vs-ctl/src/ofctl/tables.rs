//! Settings of tables.

use of_wire::message::{Body, Part, TableFeatures, TableMod, Vacancy};
use of_wire::text::parse_table;
use of_wire::{Message, Version, VersionSet};

use super::conn::{Conn, has_more, xid_of};
use super::{Ctl, Outcome, fatal};

/// All tables.
const ALL: u8 = 255;
/// The last table that a rule may be in.
const LAST: u8 = 254;
/// Bytes of a table's name, of which the last is a zero.
const NAME_LEN: usize = 32;

/// What `mod-table` is to do.
#[derive(Debug, PartialEq)]
enum Change {
    /// What becomes of packets that match nothing: 0 the controller, 1 continue, 2 drop.
    Miss(u8),
    Evict(bool),
    Vacancy(Vacancy),
    Name(String),
}

impl Change {
    fn parse(text: &str, table: u8) -> Result<Self, String> {
        Ok(match text {
            "controller" => Self::Miss(0),
            "continue" if table == LAST => {
                return Err("last table's flow miss handling can not be continue".to_owned());
            }
            "continue" => Self::Miss(1),
            "drop" => Self::Miss(2),
            "evict" => Self::Evict(true),
            "noevict" => Self::Evict(false),
            "novacancy" => Self::Vacancy(Vacancy::Off),
            _ => match text.split_once(':') {
                Some(("vacancy", thresholds)) => Self::Vacancy(parse_vacancy(thresholds)?),
                Some(("name", name)) if table != ALL => Self::Name(name.to_owned()),
                _ if text == "vacancy" => return Err("Vacancy down value missing".to_owned()),
                _ => return Err(format!("invalid table_mod setting {text}")),
            },
        })
    }

    /// The versions in which it can be said, with their names.
    fn versions(&self) -> (VersionSet, &'static str) {
        let of = |versions: &[Version]| {
            let mut set = VersionSet::NONE;
            for version in versions {
                set.insert(*version);
            }
            set
        };
        match self {
            Self::Miss(_) => (of(&[Version::V11, Version::V12]), "OpenFlow11, OpenFlow12"),
            Self::Evict(_) | Self::Vacancy(_) => {
                (of(&[Version::V14, Version::V15]), "OpenFlow14, OpenFlow15")
            }
            Self::Name(_) => (
                of(&[Version::V13, Version::V14, Version::V15]),
                "OpenFlow13, OpenFlow14, OpenFlow15",
            ),
        }
    }
}

fn parse_vacancy(text: &str) -> Result<Vacancy, String> {
    let mut values = text.split(',').filter(|value| !value.is_empty());
    let mut value = |what: &str| {
        let given = values.next();
        let given = given.ok_or_else(|| format!("Vacancy {what} value missing"))?;
        let percent = given.parse().ok().filter(|percent| *percent <= 100u8);
        percent.ok_or_else(|| format!("Invalid vacancy {what} value \"{given}\""))
    };
    let (down, up) = (value("down")?, value("up")?);
    if down > up {
        return Err(
            "Invalid vacancy range, vacancy up should be greater than vacancy down \
             (OFPBPC_BAD_VALUE)"
                .to_owned(),
        );
    }
    Ok(Vacancy::On { down, up, now: 0 })
}

pub(super) fn desc(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let mut conn = ctl.open(&args[0])?;
    if conn.version < Version::V14 {
        return fatal("dump-table-desc needs OpenFlow 1.4 or later ('-O OpenFlow14')");
    }
    ctl.dump(&mut conn, Body::TableDescRequest)
}

pub(super) fn modify(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let table = if args[1].eq_ignore_ascii_case("all") {
        Some(ALL)
    } else {
        let names = ctl.names_to_accept(&args[0])?;
        parse_table(&args[1], &names)
    };
    let Some(table) = table else {
        return fatal(format!("unknown table \"{}\"", args[1]));
    };
    let change = Change::parse(&args[2], table).or_else(fatal)?;
    let (usable, names) = change.versions();
    let versions = ctl.settings.versions.intersection(usable);
    if versions.is_empty() {
        return fatal(format!(
            "table_mod '{}' requires one of the OpenFlow versions {names}",
            args[2]
        ));
    }
    ctl.settings.versions = versions;
    let mut conn = ctl.open(&args[0])?;
    match change {
        Change::Name(name) => ctl.name_table(&mut conn, table, &name),
        Change::Miss(miss) => {
            let settings = TableMod {
                miss: Some(miss),
                ..TableMod::of(table)
            };
            ctl.must_succeed(&mut conn, Body::TableMod(settings))
        }
        change => ctl.change_settings(&mut conn, table, &change),
    }
}

impl Ctl<'_, '_> {
    /// Changes eviction or vacancy events, and leaves the other as it is.
    fn change_settings(&mut self, conn: &mut Conn, table: u8, change: &Change) -> Outcome {
        let mut found = Vec::new();
        for reply in self.collect(conn, Body::TableDescRequest)? {
            if let Body::TableDescReply(part) = reply.body {
                found.extend(part.entries);
            }
        }
        found.retain(|settings| table == ALL || settings.table == table);
        if found.is_empty() {
            return fatal(format!("switch does not have table {table}"));
        }
        for mut settings in found {
            match *change {
                Change::Evict(evict) => {
                    settings.eviction = Some(evict);
                    // Of what the switch decides by nothing was asked.
                    settings.eviction_flags = None;
                    if let Some(Vacancy::On { now, .. }) = &mut settings.vacancy {
                        *now = 0;
                    }
                }
                Change::Vacancy(vacancy) => settings.vacancy = Some(vacancy),
                Change::Miss(_) | Change::Name(_) => {}
            }
            self.must_succeed(conn, Body::TableMod(settings))?;
        }
        Ok(())
    }

    /// Names a table: features are set for all tables at once.
    fn name_table(&mut self, conn: &mut Conn, table: u8, name: &str) -> Outcome {
        let asked = Body::TableFeaturesRequest(Part::last(Vec::new()));
        let mut features: Vec<TableFeatures> = Vec::new();
        for reply in self.collect(conn, asked)? {
            if let Body::TableFeaturesReply(part) = reply.body {
                features.extend(part.entries);
            }
        }
        let Some(named) = features.iter_mut().find(|f| f.table == table) else {
            return fatal(format!("switch does not have table {table}"));
        };
        let end = name.floor_char_boundary(NAME_LEN - 1);
        named.name = name[..end].to_owned();
        let request = self.request(conn, Body::TableFeaturesRequest(Part::last(features)));
        let bytes = request.encode(conn.dialect);
        self.send(conn, &bytes)?;
        // The reply repeats what all tables are like then.
        loop {
            let reply = self.recv(conn)?;
            if xid_of(&reply) != request.xid {
                continue;
            }
            let decoded = Message::decode(&reply, conn.dialect);
            let message = decoded.or_else(|code| fatal(format!("decode error: {code}")))?;
            if matches!(message.body, Body::Error(_)) {
                return self.end_on_reply(conn, Some(reply));
            }
            if !has_more(&reply) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed() {
        let on = |down, up| Change::Vacancy(Vacancy::On { down, up, now: 0 });
        for (text, table, change) in [
            ("controller", 254, Ok(Change::Miss(0))),
            ("continue", 0, Ok(Change::Miss(1))),
            ("drop", ALL, Ok(Change::Miss(2))),
            ("noevict", 1, Ok(Change::Evict(false))),
            ("vacancy:20,80", 1, Ok(on(20, 80))),
            ("novacancy", 1, Ok(Change::Vacancy(Vacancy::Off))),
            ("name:a:b", 1, Ok(Change::Name("a:b".to_owned()))),
            ("name:x", ALL, Err("invalid table_mod setting name:x")),
            (
                "continue",
                254,
                Err("last table's flow miss handling can not be continue"),
            ),
            ("vacancy:", 0, Err("Vacancy down value missing")),
            ("vacancy:20", 0, Err("Vacancy up value missing")),
            ("vacancy:x,1", 0, Err("Invalid vacancy down value \"x\"")),
            ("vacancy:1,101", 0, Err("Invalid vacancy up value \"101\"")),
            ("", 0, Err("invalid table_mod setting ")),
        ] {
            let parsed = Change::parse(text, table);
            assert_eq!(parsed, change.map_err(str::to_owned), "{text}");
        }
        assert!(Change::parse("vacancy:2,1", 0).is_err());
    }
}
