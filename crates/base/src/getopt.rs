//! Command-line options as GNU `getopt_long` reads them: long names, unambiguous
//! abbreviations of them, clusters of letters, operands among options, and the very
//! texts of the C library's errors, because scripts meet them.

use std::ffi::OsString;
use std::fmt;

/// Whether an option takes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// It takes none.
    None,
    /// It must have one: `--name=ARG`, `--name ARG`, `-nARG`, `-n ARG`.
    Required,
    /// It may have one, attached only: `--name=ARG`, `-nARG`.
    Optional,
}

/// One option, with a long name, a letter, or both.
#[derive(Clone, Copy, Debug)]
pub struct Opt<T> {
    /// The long name without its dashes; empty if the option has only a letter.
    pub long: &'static str,
    /// The letter, if there is one.
    pub short: Option<char>,
    /// Whether it takes an argument.
    pub arg: ArgKind,
    /// What the parser reports.  Options with the same `id` and `arg` are the same
    /// option under several names: an abbreviation that fits them all is not ambiguous.
    pub id: T,
}

impl<T> Opt<T> {
    /// An option without argument.
    pub const fn flag(long: &'static str, short: Option<char>, id: T) -> Self {
        Self::new(long, short, ArgKind::None, id)
    }

    /// An option that must have an argument.
    pub const fn required(long: &'static str, short: Option<char>, id: T) -> Self {
        Self::new(long, short, ArgKind::Required, id)
    }

    /// An option that may have an argument.
    pub const fn optional(long: &'static str, short: Option<char>, id: T) -> Self {
        Self::new(long, short, ArgKind::Optional, id)
    }

    const fn new(long: &'static str, short: Option<char>, arg: ArgKind, id: T) -> Self {
        Self {
            long,
            short,
            arg,
            id,
        }
    }

    /// The same option reported as another value: how a program takes in the option
    /// table of a library.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Opt<U> {
        Opt {
            long: self.long,
            short: self.short,
            arg: self.arg,
            id: f(self.id),
        }
    }
}

/// Where operands may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Anywhere among the options (the C library's default).
    Permute,
    /// The first operand ends the options (`+` before the letters in C).
    StopAtOperand,
}

/// An option that cannot be taken.  The text has no program name in front;
/// [`Getopt::program`] is what the C library puts there, with `": "`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetoptError(String);

impl fmt::Display for GetoptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GetoptError {}

/// The arguments of the process as text.
///
/// # Errors
/// Names the first argument that is not UTF-8.
pub fn utf8_args(args: Vec<OsString>) -> Result<Vec<String>, String> {
    let to_text = |(i, arg): (usize, OsString)| {
        arg.into_string()
            .map_err(|arg| format!("argument {i} ({}) is not UTF-8", arg.display()))
    };
    args.into_iter().enumerate().map(to_text).collect()
}

/// A pass over the arguments of a command.
#[derive(Debug)]
pub struct Getopt<'a, T> {
    options: &'a [Opt<T>],
    args: &'a [String],
    order: Order,
    /// The next argument to look at.
    next: usize,
    /// What is left of a cluster of letters.
    cluster: &'a str,
    /// Operands met between options.
    operands: Vec<String>,
}

impl<'a, T: Copy + PartialEq> Getopt<'a, T> {
    /// Begins a pass over `args`, whose first is the program's name.
    pub fn new(args: &'a [String], options: &'a [Opt<T>], order: Order) -> Self {
        Self {
            options,
            args,
            order,
            next: 1,
            cluster: "",
            operands: Vec::new(),
        }
    }

    /// The program's name as it was called, which the C library puts before errors.
    pub fn program(&self) -> &'a str {
        self.args.first().map_or("", |arg| arg)
    }

    /// What is not an option, in order, once the pass has come to its end.
    pub fn into_operands(mut self) -> Vec<String> {
        self.operands
            .extend(self.args.iter().skip(self.next).cloned());
        self.operands
    }

    /// The next option and its argument; `None` at the end of the options.
    ///
    /// # Errors
    /// An unknown or ambiguous option, a missing or an unwanted argument.  The pass may
    /// go on after an error.
    #[expect(clippy::should_implement_trait, reason = "the error is not an item")]
    pub fn next(&mut self) -> Result<Option<(T, Option<&'a str>)>, GetoptError> {
        if !self.cluster.is_empty() {
            return self.letter().map(Some);
        }
        while let Some(arg) = self.args.get(self.next) {
            if arg == "--" {
                self.next += 1;
                return Ok(None);
            }
            if !arg.starts_with('-') || arg == "-" {
                if self.order == Order::StopAtOperand {
                    return Ok(None);
                }
                self.operands.push(arg.clone());
                self.next += 1;
                continue;
            }
            self.next += 1;
            if let Some(long) = arg.strip_prefix("--") {
                return self.long(long).map(Some);
            }
            self.cluster = &arg[1..];
            return self.letter().map(Some);
        }
        Ok(None)
    }

    fn argument(&mut self) -> Option<&'a str> {
        let arg = self.args.get(self.next)?;
        self.next += 1;
        Some(arg)
    }

    fn long(&mut self, text: &'a str) -> Result<(T, Option<&'a str>), GetoptError> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let option = self.find_long(name, text)?;
        let long = option.long;
        match (option.arg, value) {
            (ArgKind::None, Some(_)) => Err(GetoptError(format!(
                "option '--{long}' doesn't allow an argument"
            ))),
            (ArgKind::Required, None) => match self.argument() {
                Some(value) => Ok((option.id, Some(value))),
                None => Err(GetoptError(format!(
                    "option '--{long}' requires an argument"
                ))),
            },
            _ => Ok((option.id, value)),
        }
    }

    fn find_long(&self, name: &str, text: &str) -> Result<Opt<T>, GetoptError> {
        let named = || self.options.iter().filter(|o| !o.long.is_empty());
        if let Some(exact) = named().find(|o| o.long == name) {
            return Ok(*exact);
        }
        let mut fitting = named().filter(|o| o.long.starts_with(name));
        let Some(first) = fitting.next() else {
            return Err(GetoptError(format!("unrecognized option '--{text}'")));
        };
        let differs = |o: &Opt<T>| o.id != first.id || o.arg != first.arg;
        if !fitting.any(differs) {
            return Ok(*first);
        }
        let mut error = format!("option '--{text}' is ambiguous; possibilities:");
        for option in named().filter(|o| o.long.starts_with(name)) {
            error += &format!(" '--{}'", option.long);
        }
        Err(GetoptError(error))
    }

    fn letter(&mut self) -> Result<(T, Option<&'a str>), GetoptError> {
        let letter = self.cluster.chars().next().unwrap_or('?');
        self.cluster = &self.cluster[letter.len_utf8().min(self.cluster.len())..];
        let Some(option) = self.options.iter().find(|o| o.short == Some(letter)) else {
            return Err(GetoptError(format!("invalid option -- '{letter}'")));
        };
        if option.arg == ArgKind::None {
            return Ok((option.id, None));
        }
        let attached = std::mem::take(&mut self.cluster);
        if !attached.is_empty() {
            return Ok((option.id, Some(attached)));
        }
        if option.arg == ArgKind::Optional {
            return Ok((option.id, None));
        }
        match self.argument() {
            Some(value) => Ok((option.id, Some(value))),
            None => Err(GetoptError(format!(
                "option requires an argument -- '{letter}'"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Opt<u8>] = &[
        Opt::flag("help", Some('h'), 1),
        Opt::required("timeout", Some('t'), 2),
        Opt::optional("verbose", Some('v'), 3),
        Opt::flag("version", Some('V'), 4),
        Opt::flag("no-wait", None, 5),
        Opt::flag("no-headings", None, 6),
        Opt::flag("color", None, 7),
        Opt::flag("colour", None, 7),
    ];

    /// What a command line yields: options, errors and operands.
    fn check(order: Order, line: &str, expected: &str) {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut pass = Getopt::new(&args, TABLE, order);
        let mut seen = Vec::new();
        loop {
            match pass.next() {
                Ok(None) => break,
                Ok(Some((id, None))) => seen.push(format!("{id}")),
                Ok(Some((id, Some(value)))) => seen.push(format!("{id}={value}")),
                Err(error) => seen.push(format!("({error})")),
            }
        }
        let operands = pass.into_operands().join(" ");
        assert_eq!(format!("{} | {operands}", seen.join(" ")), expected);
    }

    #[test]
    fn options_and_operands() {
        let permute = |line, expected| check(Order::Permute, line, expected);
        permute("p a --help b -t 5 c", "1 2=5 | a b c");
        permute("p a -- --help b", " | a --help b");
        permute("p --time=5 --timeout 6 -t7", "2=5 2=6 2=7 | ");
        permute(
            "p -hvx -hv x - -t",
            "1 3=x 1 3 (option requires an argument -- 't') | x -",
        );
        permute("p --verbose --verbose=x --verb x", "3 3=x 3 | x");
        permute("p --col", "7 | ");
        check(Order::StopAtOperand, "p -h a -h", "1 | a -h");
    }

    #[test]
    fn errors() {
        let error = |line, expected| check(Order::Permute, line, expected);
        error(
            "p --foo=1 -x",
            "(unrecognized option '--foo=1') (invalid option -- 'x') | ",
        );
        error(
            "p --ver=1",
            "(option '--ver=1' is ambiguous; possibilities: '--verbose' '--version') | ",
        );
        error(
            "p --help=1",
            "(option '--help' doesn't allow an argument) | ",
        );
        error(
            "p --timeout",
            "(option '--timeout' requires an argument) | ",
        );
    }
}
