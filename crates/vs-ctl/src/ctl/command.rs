//! The grammar of tools that run several commands in one transaction:
//! `[options] command [args] -- [options] command [args] ...`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Whether an option of a command takes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No argument: `--may-exist`.
    Nothing,
    /// An argument: `--id=@name`.
    Argument,
}

/// One command of a tool: its name, arguments and options, and what runs it.
///
/// `R` is the tool's own way to run a command.
#[derive(Debug)]
pub struct Syntax<R: 'static> {
    /// The name on the command line.
    pub name: &'static str,
    /// The fewest arguments.
    pub min_args: usize,
    /// The most arguments.
    pub max_args: usize,
    /// The arguments as `--commands` prints them.
    pub arguments: &'static str,
    /// The options that may precede the name, with dashes.
    pub options: &'static [(&'static str, Takes)],
    /// What runs it.
    pub run: R,
}

/// A command from the command line.
#[derive(Debug)]
pub struct Command<R: 'static> {
    /// What the command is.
    pub syntax: &'static Syntax<R>,
    /// The command's name and its arguments.
    pub argv: Vec<String>,
    /// The options given, with dashes, and their arguments.
    pub options: BTreeMap<String, Option<String>>,
}

impl<R> Command<R> {
    /// Whether option `name` (with dashes) was given.
    pub fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// The argument of option `name`, if it was given with one.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name)?.as_deref()
    }

    /// The arguments after the command's name.
    pub fn args(&self) -> &[String] {
        &self.argv[1..]
    }

    /// Argument `i`, counted from 1; the grammar has checked that mandatory ones exist.
    pub fn arg(&self, i: usize) -> Option<&str> {
        self.argv.get(i).map(String::as_str)
    }

    /// The command as it was typed, for messages.
    pub fn typed(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.options {
            text.push_str(name);
            if let Some(value) = value {
                let _ = write!(text, "={value}");
            }
            text.push(' ');
        }
        text + &self.argv.join(" ")
    }
}

/// Splits `args` (what follows the global options) at each `--` and checks every
/// command against `commands`.  `first_options` are options of the first command that
/// stood among the global options.
///
/// # Errors
/// The message to print, without the program's name.
pub fn parse<R>(
    commands: &'static [Syntax<R>],
    args: &[String],
    first_options: Vec<(String, Option<String>)>,
) -> Result<Vec<Command<R>>, String> {
    let mut parsed = Vec::new();
    let mut options = BTreeMap::new();
    for (name, value) in first_options {
        add_option(&mut options, name, value)?;
    }
    for part in args.split(|arg| arg == "--") {
        if !part.is_empty() {
            let options = std::mem::take(&mut options);
            parsed.push(parse_one(commands, part, options)?);
        }
    }
    if !options.is_empty() || parsed.is_empty() {
        return Err("missing command name (use --help for help)".to_owned());
    }
    Ok(parsed)
}

fn parse_one<R>(
    commands: &'static [Syntax<R>],
    part: &[String],
    mut options: BTreeMap<String, Option<String>>,
) -> Result<Command<R>, String> {
    let name_at = part
        .iter()
        .position(|arg| !arg.starts_with('-'))
        .unwrap_or(part.len());
    for option in &part[..name_at] {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option.as_str(), None),
        };
        if options.contains_key(name) {
            return Err(format!("'{option}' option specified multiple times"));
        }
        options.insert(name.to_owned(), value);
    }
    let argv = &part[name_at..];
    let Some(name) = argv.first() else {
        return Err("missing command name (use --help for help)".to_owned());
    };
    let Some(syntax) = commands.iter().find(|c| c.name == name) else {
        return Err(format!("unknown command '{name}'; use --help for help"));
    };
    check_options(syntax, &options)?;
    check_args(syntax, &argv[1..])?;
    Ok(Command {
        syntax,
        argv: argv.to_vec(),
        options,
    })
}

fn add_option(
    options: &mut BTreeMap<String, Option<String>>,
    name: String,
    value: Option<String>,
) -> Result<(), String> {
    if options.contains_key(&name) {
        return Err(format!("'{name}' option specified multiple times"));
    }
    options.insert(name, value);
    Ok(())
}

fn check_options<R>(
    syntax: &Syntax<R>,
    options: &BTreeMap<String, Option<String>>,
) -> Result<(), String> {
    for (option, value) in options {
        let command = syntax.name;
        let Some((_, takes)) = syntax.options.iter().find(|(name, _)| name == option) else {
            return Err(format!("'{command}' command has no '{option}' option"));
        };
        match (takes, value) {
            (Takes::Argument, None) => {
                return Err(format!(
                    "missing argument to '{option}' option on '{command}' command"
                ));
            }
            (Takes::Nothing, Some(_)) => {
                return Err(format!(
                    "'{option}' option on '{command}' does not accept an argument"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_args<R>(syntax: &Syntax<R>, args: &[String]) -> Result<(), String> {
    let command = syntax.name;
    if args.len() < syntax.min_args {
        return Err(format!(
            "'{command}' command requires at least {} arguments",
            syntax.min_args
        ));
    }
    if args.len() > syntax.max_args {
        let note = if args.iter().any(|arg| arg.starts_with('-')) {
            " (note that options must precede command names and follow a \"--\" argument)"
        } else {
            ""
        };
        return Err(format!(
            "'{command}' command takes at most {} arguments{note}",
            syntax.max_args
        ));
    }
    Ok(())
}

/// What `--commands` prints: `[options] ,name,arguments`, one command a line.
pub fn list_commands<R>(commands: &[Syntax<R>]) -> String {
    let mut text = String::new();
    for command in commands {
        for (option, takes) in command.options {
            let equals = if *takes == Takes::Argument { "=" } else { "" };
            let _ = write!(text, "[{option}{equals}] ");
        }
        let _ = writeln!(text, ",{},{}", command.name, command.arguments);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    static COMMANDS: &[Syntax<()>] = &[
        Syntax {
            name: "add-br",
            min_args: 1,
            max_args: 3,
            arguments: "!NEW-BRIDGE ?PARENT ?NEW-VLAN",
            options: &[("--may-exist", Takes::Nothing)],
            run: (),
        },
        Syntax {
            name: "create",
            min_args: 2,
            max_args: usize::MAX,
            arguments: "!TABLE +COLUMN?:KEY=VALUE",
            options: &[("--id", Takes::Argument)],
            run: (),
        },
    ];

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn error(text: &str) -> String {
        parse(COMMANDS, &words(text), Vec::new()).unwrap_err()
    }

    #[test]
    fn commands_are_split_and_options_kept() {
        let first = vec![("--may-exist".to_owned(), None)];
        let parsed = parse(
            COMMANDS,
            &words("-- add-br a -- --id=@x create Bridge name=b --"),
            first,
        )
        .unwrap();
        assert_eq!(parsed.len(), 2);
        assert!(parsed[0].has("--may-exist"));
        assert_eq!(parsed[1].option("--id"), Some("@x"));
        assert_eq!(parsed[1].args(), ["Bridge", "name=b"]);
        assert_eq!(parsed[0].typed(), "--may-exist add-br a");
    }

    #[test]
    fn mistakes_get_the_original_texts() {
        let missing = "missing command name (use --help for help)";
        for (text, message) in [
            ("", missing),
            ("--", missing),
            ("-- --may-exist", missing),
            ("foo", "unknown command 'foo'; use --help for help"),
            ("add-br", "'add-br' command requires at least 1 arguments"),
            (
                "add-br a b c d",
                "'add-br' command takes at most 3 arguments",
            ),
            (
                "add-br a b c --x",
                "'add-br' command takes at most 3 arguments (note that options must precede \
                 command names and follow a \"--\" argument)",
            ),
            ("--foo add-br a", "'add-br' command has no '--foo' option"),
            (
                "--may-exist=3 add-br a",
                "'--may-exist' option on 'add-br' does not accept an argument",
            ),
            (
                "--id create Bridge",
                "missing argument to '--id' option on 'create' command",
            ),
            (
                "--id=@a --id=@a create Bridge",
                "'--id=@a' option specified multiple times",
            ),
        ] {
            assert_eq!(error(text), message, "{text}");
        }
    }

    #[test]
    fn the_command_list_has_options_and_arguments() {
        assert_eq!(
            list_commands(COMMANDS),
            "[--may-exist] ,add-br,!NEW-BRIDGE ?PARENT ?NEW-VLAN\n\
             [--id=] ,create,!TABLE +COLUMN?:KEY=VALUE\n"
        );
    }
}
