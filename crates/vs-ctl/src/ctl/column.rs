//! Arguments of the form `column[:key][OP value]`.

use db_client::{ColumnId, TableLayout};
use db_model::text::take_token;

use super::names::{Named, find_column, find_column_or_uuid};

/// `column` or `column:key` with what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnArg<'a, C> {
    pub(crate) column: C,
    /// The key as it was typed.
    pub(crate) key: Option<String>,
    rest: &'a str,
}

fn parse<'a, C>(
    arg: &'a str,
    find: impl FnOnce(&str) -> Result<C, String>,
) -> Result<ColumnArg<'a, C>, String> {
    let (name, mut rest) = take_token(arg)?;
    if name.is_empty() {
        return Err(format!("{arg}: missing column name"));
    }
    let column = find(&name)?;
    let mut key = None;
    if let Some(after) = rest.strip_prefix(':') {
        let (token, after) = take_token(after)?;
        key = Some(token);
        rest = after;
    }
    Ok(ColumnArg { column, key, rest })
}

/// Parses `column[:key]` with nothing after it, `_uuid` included.
pub(crate) fn parse_column_key<'a>(
    table: &TableLayout,
    arg: &'a str,
) -> Result<ColumnArg<'a, Named>, String> {
    let parsed = parse(arg, |name| {
        // `_uuid` has no keys, so with one it is not found.
        if arg.contains(':') {
            find_column(table, name).map(Named::Column)
        } else {
            find_column_or_uuid(table, name)
        }
    })?;
    if parsed.rest.is_empty() {
        Ok(parsed)
    } else {
        Err(format!(
            "{arg}: trailing garbage \"{}\" in argument",
            parsed.rest
        ))
    }
}

/// Parses `column[:key]=value`; also yields the value.
pub(crate) fn parse_assignment<'a>(
    table: &TableLayout,
    arg: &'a str,
) -> Result<(ColumnArg<'a, ColumnId>, &'a str), String> {
    let parsed = parse(arg, |name| find_column(table, name))?;
    match parsed.rest.strip_prefix('=') {
        Some(value) if !value.is_empty() => Ok((parsed, value)),
        _ => Err(format!(
            "{arg}: argument does not end in \"=\" followed by a value."
        )),
    }
}

/// How a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    SetEqual,
    SetNotEqual,
    ProperSubset,
    ProperSuperset,
    Subset,
    Superset,
    In,
    NotIn,
}

/// The operators in the order in which messages list them.
const OPERATORS: [(&str, Operator); 14] = [
    ("=", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("{=}", Operator::SetEqual),
    ("{!=}", Operator::SetNotEqual),
    ("{<}", Operator::ProperSubset),
    ("{>}", Operator::ProperSuperset),
    ("{<=}", Operator::Subset),
    ("{>=}", Operator::Superset),
    ("{in}", Operator::In),
    ("{not-in}", Operator::NotIn),
];

/// Parses `column[:key]OPvalue`; also yields the operator and the value.
pub(crate) fn parse_condition<'a>(
    table: &TableLayout,
    arg: &'a str,
) -> Result<(ColumnArg<'a, ColumnId>, Operator, &'a str), String> {
    let parsed = parse(arg, |name| find_column(table, name))?;
    let longest = OPERATORS
        .iter()
        .filter(|(text, _)| parsed.rest.starts_with(text))
        .max_by_key(|(text, _)| text.len());
    if let Some((text, operator)) = longest {
        let value = &parsed.rest[text.len()..];
        if !value.is_empty() {
            return Ok((parsed, *operator, value));
        }
    }
    let mut all: Vec<String> = OPERATORS.iter().map(|(t, _)| format!("\"{t}\"")).collect();
    let last = all.pop().unwrap_or_default();
    Err(format!(
        "{arg}: argument does not end in {}, or {last} followed by a value.",
        all.join(", ")
    ))
}
