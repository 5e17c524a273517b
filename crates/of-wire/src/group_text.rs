//! Groups in text, as `ovs-ofctl` reads them.

use net_flow::text::num::{str_to_u16, str_to_u32, str_to_u64};
use net_flow::text::value::{self, parse_port};
use net_flow::text::{KeyValues, apply_key};
use net_flow::{Field, Formats, Match, Names, PortNo};

use crate::action::Parser;
use crate::message::{
    BUCKET_ALL, BUCKET_FIRST, BUCKET_LAST, BUCKET_MAX, Bucket, GROUP_ALL, GROUP_ANY, GROUP_MAX,
    Group, GroupCommand, GroupMod, GroupType, Selection,
};

/// Bytes of the name of a selection method, with the zero behind it.
const MAX_METHOD: usize = 16;

/// The formats in which ids of buckets and properties of groups can be written.
fn with_ids() -> Formats {
    Formats::OF10_ANY | Formats::OF15_OXM
}

/// Which command a text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupTextCommand {
    /// This one.
    Fixed(GroupCommand),
    /// The text's first word may say: `add`, `delete`, `modify`, `add_or_mod`, `insert_bucket`,
    /// `remove_bucket`; else add.
    FirstWord,
}

/// What a command takes.
struct Allowed {
    settings: bool,
    buckets: bool,
    place: bool,
    all_buckets: bool,
}

impl Allowed {
    const fn of(command: GroupCommand) -> Self {
        let sets = matches!(
            command,
            GroupCommand::Add | GroupCommand::Modify | GroupCommand::AddOrModify
        );
        Self {
            settings: sets,
            buckets: sets || matches!(command, GroupCommand::InsertBucket),
            place: matches!(
                command,
                GroupCommand::InsertBucket | GroupCommand::RemoveBucket
            ),
            all_buckets: matches!(command, GroupCommand::RemoveBucket),
        }
    }
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

fn first_word(text: &str) -> (GroupCommand, &str) {
    let text = text.trim_start_matches(SPACE);
    let end = text
        .find(|c| c == ',' || SPACE.contains(&c))
        .unwrap_or(text.len());
    let word = &text[..end];
    let commands = [
        ("add", GroupCommand::Add),
        ("delete", GroupCommand::Delete),
        ("modify", GroupCommand::Modify),
        ("add_or_mod", GroupCommand::AddOrModify),
        ("insert_bucket", GroupCommand::InsertBucket),
        ("remove_bucket", GroupCommand::RemoveBucket),
    ];
    // Any beginning of a command's name stands for it, in this order.
    let found = commands.iter().find(|(name, _)| name.starts_with(word));
    found.map_or((GroupCommand::Add, text), |(_, c)| (*c, &text[end..]))
}

/// Reads a request to change groups, and tells the formats in which it can be written.
///
/// # Errors
/// What is wrong, in the original's words.
pub fn parse_group_mod(
    text: &str,
    command: GroupTextCommand,
    names: &Names,
) -> Result<(GroupMod, Formats), String> {
    let (command, text) = match command {
        GroupTextCommand::Fixed(command) => (command, text),
        GroupTextCommand::FirstWord => first_word(text),
    };
    let allowed = Allowed::of(command);
    let mut reader = Reader {
        request: GroupMod {
            command,
            command_bucket: BUCKET_ALL,
            group: Group {
                id: GROUP_ANY,
                kind: GroupType::All,
                selection: Selection::default(),
                buckets: Vec::new(),
            },
        },
        formats: if allowed.place {
            Formats::ANY & with_ids()
        } else {
            Formats::ANY
        },
        names,
        has_type: false,
        has_place: false,
    };
    if command == GroupCommand::Delete && text.is_empty() {
        reader.request.group.id = GROUP_ALL;
        return Ok((reader.request, reader.formats));
    }
    // The type decides on defaults of buckets, so they are read last.
    let (head, buckets) = match text.find("bucket=") {
        Some(at) => (&text[..at], Some(&text[at..])),
        None => (text, None),
    };
    if buckets.is_some() && !allowed.buckets {
        return Err("bucket is not needed".to_owned());
    }
    for kv in KeyValues::new(head) {
        reader.setting(kv.key, kv.value, &allowed)?;
    }
    reader.check(&allowed)?;
    if buckets.is_some() {
        // As ever, the actions alone decide: a version that has no words for how a group chooses
        // leaves that to the switch.
        reader.formats = Formats::ANY;
    }
    reader.buckets(buckets)?;
    Ok((reader.request, reader.formats))
}

struct Reader<'a> {
    request: GroupMod,
    formats: Formats,
    names: &'a Names,
    has_type: bool,
    has_place: bool,
}

impl Reader<'_> {
    fn setting(&mut self, key: &str, value: &str, allowed: &Allowed) -> Result<(), String> {
        let needs = |what: &str| match allowed.settings {
            true => Ok(()),
            false => Err(what.to_owned()),
        };
        match key {
            "command_bucket_id" => return self.place(value, allowed),
            "group_id" => self.request.group.id = group_id(value)?,
            "type" => {
                needs("type is not needed")?;
                self.request.group.kind = match value {
                    "all" => GroupType::All,
                    "select" => GroupType::Select,
                    "indirect" => GroupType::Indirect,
                    "ff" | "fast_failover" => GroupType::FastFailover,
                    _ => return Err(format!("invalid group type {value}")),
                };
                self.has_type = true;
            }
            "selection_method" => {
                needs("selection method is not needed")?;
                if value.len() >= MAX_METHOD {
                    let most = MAX_METHOD - 1;
                    return Err(format!("selection method is longer than {most} bytes long"));
                }
                value.clone_into(&mut self.request.group.selection.method);
                self.formats &= with_ids();
            }
            "selection_method_param" => {
                needs("selection method param is not needed")?;
                self.request.group.selection.param = str_to_u64(value)?;
                self.formats &= with_ids();
            }
            "fields" => {
                needs("fields are not needed")?;
                self.fields(value)?;
                self.formats &= with_ids();
            }
            _ => return Err(format!("unknown keyword {key}")),
        }
        Ok(())
    }

    fn place(&mut self, value: &str, allowed: &Allowed) -> Result<(), String> {
        if !allowed.place {
            return Err("command bucket id is not needed".to_owned());
        }
        let place = match value {
            "all" => BUCKET_ALL,
            "first" => BUCKET_FIRST,
            "last" => BUCKET_LAST,
            number => str_to_u32(number)?,
        };
        let special = [BUCKET_ALL, BUCKET_FIRST, BUCKET_LAST];
        if place > BUCKET_MAX && !special.contains(&place) {
            return Err(format!("invalid command bucket id {place}"));
        }
        if place == BUCKET_ALL && !allowed.all_buckets {
            return Err("command_bucket_id=all is not permitted".to_owned());
        }
        self.request.command_bucket = place;
        self.has_place = true;
        Ok(())
    }

    fn fields(&mut self, text: &str) -> Result<(), String> {
        for kv in KeyValues::new(text) {
            let field = Field::by_name(kv.key);
            let field = field.ok_or_else(|| format!("{}: unknown field {}", kv.value, kv.key))?;
            let known = &self.request.group.selection.fields;
            if known.iter().any(|(f, _)| *f == field) {
                return Err(format!("{}: duplicate field", kv.key));
            }
            let full = field.full_mask();
            let mask = if kv.value.is_empty() {
                full
            } else {
                value::parse(field, kv.value, self.names)?.0
            };
            if mask == 0 {
                return Err(format!(
                    "{}: values are wildcards here and must not be all-zeros",
                    kv.value
                ));
            }
            if mask != full && field.info().maskable == net_flow::field::Maskable::No {
                return Err(format!("{}: invalid mask for field {}", kv.value, kv.key));
            }
            // Which formats can say so is the same as for a match.
            let mut usable = Formats::all();
            let mut probe = Match::any();
            let name = field.info().name;
            if let Some(Ok(())) = apply_key(&mut probe, name, kv.value, self.names, &mut usable) {
                self.formats &= usable;
            }
            self.request.group.selection.fields.push((field, mask));
        }
        Ok(())
    }

    fn check(&self, allowed: &Allowed) -> Result<(), String> {
        let group = &self.request.group;
        let selection = &group.selection;
        let problem = if group.id == GROUP_ANY {
            "must specify a group_id"
        } else if allowed.settings && !self.has_type {
            "must specify a type"
        } else if selection.method != "hash" && !selection.fields.is_empty() {
            "fields may only be specified with \"selection_method=hash\""
        } else if selection.method.is_empty() && selection.param != 0 {
            "selection_method_param is only allowed with \"selection_method\""
        } else if allowed.place && !allowed.all_buckets && !self.has_place {
            "must specify a command bucket id"
        } else {
            return Ok(());
        };
        Err(problem.to_owned())
    }

    fn buckets(&mut self, text: Option<&str>) -> Result<(), String> {
        let mut rest = text;
        while let Some(text) = rest {
            let body = &text["bucket=".len()..];
            let end = body.find("bucket=");
            rest = end.map(|at| &body[at..]);
            let bucket = self.bucket(&body[..end.unwrap_or(body.len())])?;
            let kind = self.request.group.kind;
            let may_weigh =
                kind == GroupType::Select || self.request.command == GroupCommand::InsertBucket;
            if bucket.weight != 0 && !may_weigh {
                return Err("Only select groups can have bucket weights.".to_owned());
            }
            self.request.group.buckets.push(bucket);
        }
        let group = &self.request.group;
        if group.kind == GroupType::Indirect && group.buckets.len() > 1 {
            return Err("Indirect groups can have at most one bucket.".to_owned());
        }
        Ok(())
    }

    fn bucket(&mut self, text: &str) -> Result<Bucket, String> {
        let kind = self.request.group.kind;
        let mut bucket = Bucket {
            id: BUCKET_ALL,
            weight: u16::from(kind == GroupType::Select),
            watch_port: PortNo::NONE,
            watch_group: GROUP_ANY,
            actions: Vec::new(),
        };
        let mut actions = Vec::new();
        for kv in KeyValues::new(text) {
            let value = kv.value;
            match kv.key.to_ascii_lowercase().as_str() {
                "weight" => bucket.weight = str_to_u16(value, "weight")?,
                "watch_port" => {
                    let port = parse_port(value, self.names);
                    let may_be = |p: &PortNo| {
                        p.0 < PortNo::MAX.0 || [PortNo::NONE, PortNo::CONTROLLER].contains(p)
                    };
                    let port = port.filter(may_be);
                    bucket.watch_port =
                        port.ok_or_else(|| format!("{value}: invalid watch_port"))?;
                }
                "watch_group" => {
                    bucket.watch_group = str_to_u32(value)?;
                    if bucket.watch_group > GROUP_MAX {
                        return Err(format!("invalid watch_group id {}", bucket.watch_group));
                    }
                }
                "bucket_id" => {
                    bucket.id = str_to_u32(value)?;
                    if bucket.id > BUCKET_MAX {
                        return Err(format!("invalid bucket_id id {}", bucket.id));
                    }
                }
                "action" | "actions" => actions.push(value.to_owned()),
                _ => actions.push(format!("{}({value})", kv.key)),
            }
        }
        if actions.is_empty() {
            return Err("bucket must specify actions".to_owned());
        }
        if kind == GroupType::FastFailover && !bucket.watches() {
            let problem = "fast failover bucket requires watch_port or watch_group";
            return Err(problem.to_owned());
        }
        let mut parser = Parser::new(self.names);
        let list = parser.actions(&actions.join(","));
        bucket.actions = list.map_err(|error| error.message)?;
        self.formats &= parser.formats;
        Ok(bucket)
    }
}

fn group_id(value: &str) -> Result<u32, String> {
    if value == "all" {
        return Ok(GROUP_ALL);
    }
    let id = str_to_u32(value)?;
    if id != GROUP_ALL && id > GROUP_MAX {
        return Err(format!("invalid group id {id}"));
    }
    Ok(id)
}
