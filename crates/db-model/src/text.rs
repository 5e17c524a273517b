//! The text forms of atoms and datums that command lines use.
//!
//! A set is `1, 2` or `[1, 2]`; a map is `{a=1, b=2}`, its braces optional; strings that are
//! not plain words stand in double quotes with JSON's escapes; `@name` stands for a row that
//! the same command creates; `1-5` is a range of integers.

use std::sync::Arc;

use json::{real_to_string, write_quoted};

use crate::atom::write_uuid;
use crate::{Atom, AtomType, BaseType, ColumnType, Datum, SymbolTable, parse_uuid};

/// Largest number of integers that a range may stand for.
const MAX_RANGE: i64 = 4096;

/// Whether a string must be quoted, lest it be read as something else.
fn needs_quotes(text: &str) -> bool {
    let mut bytes = text.bytes();
    let plain_start = bytes
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == b'_');
    let plain =
        plain_start && bytes.all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.'));
    !plain || text == "true" || text == "false" || parse_uuid(text).is_some()
}

/// An atom's text, quoted where need be.
pub fn format_atom(atom: &Atom) -> String {
    match atom {
        Atom::String(text) if needs_quotes(text) => {
            let mut out = String::with_capacity(text.len() + 2);
            write_quoted(text, &mut out);
            out
        }
        _ => format_atom_bare(atom),
    }
}

/// An atom's text without any quotes, as `--bare` prints it.
pub fn format_atom_bare(atom: &Atom) -> String {
    match atom {
        Atom::Integer(value) => value.to_string(),
        Atom::Real(value) => real_to_string(*value),
        Atom::Boolean(value) => value.to_string(),
        Atom::String(text) => text.to_string(),
        Atom::Uuid(uuid) => {
            let mut out = String::with_capacity(36);
            write_uuid(*uuid, &mut out);
            out
        }
    }
}

/// A datum's text: sets in brackets and maps in braces, unless the type allows one element
/// only.
pub fn format_datum(datum: &Datum, column_type: &ColumnType) -> String {
    let inner: Vec<String> = if column_type.is_map() {
        let pair = |(k, v): &(Atom, Atom)| format!("{}={}", format_atom(k), format_atom(v));
        datum.as_map().iter().map(pair).collect()
    } else {
        datum.as_set().iter().map(format_atom).collect()
    };
    let inner = inner.join(", ");
    if column_type.max <= 1 && !datum.is_empty() {
        inner
    } else if column_type.is_map() {
        format!("{{{inner}}}")
    } else {
        format!("[{inner}]")
    }
}

/// A datum's text as `--bare` prints it: elements apart by spaces, nothing quoted.
pub fn format_datum_bare(datum: &Datum) -> String {
    let keys = datum.as_set().iter().map(format_atom_bare);
    let pairs = datum
        .as_map()
        .iter()
        .map(|(k, v)| format!("{}={}", format_atom_bare(k), format_atom_bare(v)));
    keys.chain(pairs).collect::<Vec<_>>().join(" ")
}

/// Whether a character ends a token outside quotes.
pub const fn is_delimiter(c: char) -> bool {
    matches!(
        c,
        ':' | '=' | ',' | ' ' | '[' | ']' | '{' | '}' | '!' | '<' | '>'
    )
}

/// Takes a token off the beginning of `text`: up to a delimiter that is neither quoted nor
/// escaped by a backslash.  Returns the token (quotes kept, backslashes outside quotes
/// removed) and what follows.  The token is empty at a delimiter.
pub fn take_token(text: &str) -> Result<(String, &str), String> {
    let mut token = String::new();
    let mut quoted = false;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                let Some((_, next)) = chars.next() else {
                    return Err(format!("{text}: backslash at end of argument"));
                };
                if quoted {
                    token.push('\\');
                }
                token.push(next);
            }
            '"' => {
                quoted = !quoted;
                token.push('"');
            }
            _ if !quoted && is_delimiter(c) => return Ok((token, &text[at..])),
            _ => token.push(c),
        }
    }
    if quoted {
        Err(format!(
            "{text}: quoted string extends past end of argument"
        ))
    } else {
        Ok((token, ""))
    }
}

/// Parses one atom and checks its constraint.
pub fn parse_atom(
    base: &BaseType,
    text: &str,
    symbols: Option<&mut SymbolTable>,
) -> Result<Atom, String> {
    let atom = match base.atom {
        AtomType::Integer => text
            .parse()
            .map(Atom::Integer)
            .map_err(|_| format!("\"{text}\" is not a valid integer or range"))?,
        AtomType::Real => parse_real(text)?,
        AtomType::Boolean => match text {
            "true" | "yes" | "on" | "1" => Atom::Boolean(true),
            "false" | "no" | "off" | "0" => Atom::Boolean(false),
            _ => {
                return Err(format!(
                    "\"{text}\" is not a valid boolean (use \"true\" or \"false\")"
                ));
            }
        },
        AtomType::String => Atom::String(parse_string(text)?.into()),
        AtomType::Uuid => match (text.strip_prefix('@'), symbols) {
            (Some(_), Some(symbols)) => Atom::Uuid(symbols.refer(&Arc::from(text))),
            _ => parse_uuid(text)
                .map(Atom::Uuid)
                .ok_or_else(|| format!("\"{text}\" is not a valid UUID"))?,
        },
    };
    base.check(&atom).map_err(|error| error.to_string())?;
    Ok(atom)
}

fn parse_real(text: &str) -> Result<Atom, String> {
    let word = text.trim_start_matches(['+', '-']);
    let numeric = word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    match text.parse::<f64>() {
        Ok(value) if numeric && value.is_finite() => Ok(Atom::Real(value)),
        _ => Err(format!("\"{text}\" is not a valid real number")),
    }
}

fn parse_string(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err(
            "An empty string is not valid as input; use \"\" to represent the empty string"
                .to_owned(),
        );
    }
    let Some(rest) = text.strip_prefix('"') else {
        return Ok(text.to_owned());
    };
    match rest.strip_suffix('"') {
        Some(inner) => json::unescape(inner).map_err(|error| format!("{text}: {error}")),
        None => Err(format!("{text}: missing quote at end of quoted string")),
    }
}

/// Splits `-5-10` at the dash between two integers.
fn split_range(text: &str) -> Option<(i64, i64)> {
    let dash = 1 + text.get(1..)?.find('-')?;
    Some((text[..dash].parse().ok()?, text[dash + 1..].parse().ok()?))
}

/// Parses what stands for one or (a range of integers) more elements.
fn parse_elements(
    base: &BaseType,
    text: &str,
    symbols: Option<&mut SymbolTable>,
    atoms: &mut Vec<Atom>,
) -> Result<(), String> {
    if base.atom == AtomType::Integer
        && let Some((start, end)) = split_range(text)
    {
        if end < start {
            return Err(format!(
                "\"{text}\" is not a valid range. Range end cannot be before start."
            ));
        }
        for bound in [start, end] {
            base.check(&Atom::Integer(bound))
                .map_err(|error| error.to_string())?;
        }
        if end.checked_sub(start).is_none_or(|n| n >= MAX_RANGE) {
            return Err(format!(
                "constraint violation: Range \"{start}-{end}\" is too big. Maximum allowed size \
                 is {MAX_RANGE}."
            ));
        }
        for value in start..=end {
            let atom = Atom::Integer(value);
            base.check(&atom).map_err(|error| error.to_string())?;
            atoms.push(atom);
        }
        return Ok(());
    }
    atoms.push(parse_atom(base, text, symbols)?);
    Ok(())
}

/// Parses a datum and checks constraints and size.
pub fn parse_datum(
    column_type: &ColumnType,
    text: &str,
    symbols: Option<&mut SymbolTable>,
) -> Result<Datum, String> {
    let datum = parse_datum_any_size(column_type, text, symbols)?;
    let unit = if column_type.is_map() {
        "pair(s)"
    } else {
        "value(s)"
    };
    let (size, min, max) = (datum.len(), column_type.min, column_type.max);
    if size < min as usize {
        Err(format!(
            "{text}: {size} {unit} specified but the minimum number is {min}"
        ))
    } else if size > max as usize {
        Err(format!(
            "{text}: {size} {unit} specified but the maximum number is {max}"
        ))
    } else {
        Ok(datum)
    }
}

/// Parses a datum without regard to the size that the type asks for.
pub fn parse_datum_any_size(
    column_type: &ColumnType,
    text: &str,
    symbols: Option<&mut SymbolTable>,
) -> Result<Datum, String> {
    let mut reader = Reader {
        text,
        rest: text.trim_start(),
        column_type,
        symbols,
    };
    match &column_type.value {
        Some(value) => reader.map(value),
        None => reader.set(),
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    column_type: &'a ColumnType,
    symbols: Option<&'a mut SymbolTable>,
}

impl Reader<'_> {
    /// Reads a whole datum: `element` is called at each element, between brackets or not.
    fn read(
        &mut self,
        open: char,
        close: char,
        mut element: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        if self.rest.is_empty() {
            let kind = if open == '{' { "map" } else { "set" };
            return Err(format!("use \"{open}{close}\" to specify the empty {kind}"));
        }
        let bracketed = self.take(open);
        loop {
            self.rest = self.rest.trim_start();
            if bracketed && self.take(close) {
                return match self.rest.trim_start() {
                    "" => Ok(()),
                    _ => Err(format!("{}: trailing garbage after \"{close}\"", self.text)),
                };
            }
            if self.rest.is_empty() {
                return if bracketed {
                    Err(format!("{}: missing \"{close}\" at end of data", self.text))
                } else {
                    Ok(())
                };
            }
            element(self)?;
            self.rest = self.rest.trim_start();
            self.take(',');
        }
    }

    fn take(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn token(&mut self) -> Result<String, String> {
        let (token, rest) = take_token(self.rest)?;
        if token.is_empty() {
            let c = self.rest.chars().next().unwrap_or('\0');
            return Err(format!(
                "{}: unexpected \"{c}\" parsing {}",
                self.text,
                self.column_type.to_english()
            ));
        }
        self.rest = rest;
        Ok(token)
    }

    fn set(&mut self) -> Result<Datum, String> {
        let mut atoms = Vec::new();
        self.read('[', ']', |this| {
            let token = this.token()?;
            let base = &this.column_type.key;
            parse_elements(base, &token, this.symbols.as_deref_mut(), &mut atoms)
        })?;
        Datum::from_set(atoms).ok_or_else(|| format!("{}: set contains duplicate value", self.text))
    }

    fn map(&mut self, value_type: &BaseType) -> Result<Datum, String> {
        let mut pairs = Vec::new();
        self.read('{', '}', |this| {
            let pair = this.rest;
            let key = this.token()?;
            let key = parse_atom(&this.column_type.key, &key, this.symbols.as_deref_mut())?;
            this.rest = this.rest.trim_start();
            if !this.take('=') {
                // The message ends where the argument does.
                return Err(match this.rest.chars().next() {
                    Some(c) => format!("{pair}: syntax error at \"{c}\" expecting \"=\""),
                    None => format!("{pair}: syntax error at \""),
                });
            }
            this.rest = this.rest.trim_start();
            let (token, rest) = take_token(this.rest)?;
            this.rest = rest;
            let value = parse_atom(value_type, &token, this.symbols.as_deref_mut())?;
            pairs.push((key, value));
            Ok(())
        })?;
        Datum::from_map(pairs).ok_or_else(|| format!("{}: map contains duplicate key", self.text))
    }
}

#[cfg(test)]
mod tests;
