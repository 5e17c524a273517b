//! Mutations: changes that depend on the old value (RFC 7047 section 5.1, `<mutation>`).

use json::Json;

use crate::{Atom, AtomType, ColumnType, Datum, Error, Result, Row, SymbolTable, TableSchema};

/// How a column is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutator {
    /// `+=`
    Add,
    /// `-=`
    Subtract,
    /// `*=`
    Multiply,
    /// `/=`
    Divide,
    /// `%=`
    Remainder,
    /// `insert`
    Insert,
    /// `delete`
    Delete,
}

impl Mutator {
    const ALL: [Self; 7] = [
        Self::Add,
        Self::Subtract,
        Self::Multiply,
        Self::Divide,
        Self::Remainder,
        Self::Insert,
        Self::Delete,
    ];

    /// The mutator's name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "+=",
            Self::Subtract => "-=",
            Self::Multiply => "*=",
            Self::Divide => "/=",
            Self::Remainder => "%=",
            Self::Insert => "insert",
            Self::Delete => "delete",
        }
    }

    /// The mutator called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| m.name() == name)
    }

    const fn is_arithmetic(self) -> bool {
        !matches!(self, Self::Insert | Self::Delete)
    }

    /// Whether the mutator may be applied to a column of the type.
    fn applies_to(self, column_type: &ColumnType) -> bool {
        match self {
            Self::Insert | Self::Delete => !column_type.is_scalar(),
            Self::Remainder => !column_type.is_map() && column_type.key.atom == AtomType::Integer,
            _ => {
                !column_type.is_map()
                    && matches!(column_type.key.atom, AtomType::Integer | AtomType::Real)
            }
        }
    }

    fn apply_integer(self, a: i64, b: i64) -> Result<i64> {
        let result = match self {
            Self::Add => a.checked_add(b),
            Self::Subtract => a.checked_sub(b),
            Self::Multiply => a.checked_mul(b),
            Self::Divide | Self::Remainder if b == 0 => {
                return Err(Error::new("domain error", "Division by zero."));
            }
            Self::Divide => a.checked_div(b),
            // The remainder of the smallest integer by -1 is 0.
            _ => Some(a.checked_rem(b).unwrap_or(0)),
        };
        result.ok_or_else(|| self.out_of_range())
    }

    fn apply_real(self, a: f64, b: f64) -> Result<f64> {
        let result = match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            _ if b == 0.0 => return Err(Error::new("domain error", "Division by zero.")),
            _ => a / b,
        };
        if result.is_finite() {
            Ok(result)
        } else {
            Err(self.out_of_range())
        }
    }

    fn out_of_range(self) -> Error {
        let details = format!("Result of \"{}\" operation is out of range.", self.name());
        Error::new("range error", details)
    }
}

/// One change of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    /// Index of the column.
    pub column: usize,
    /// What is done.
    pub mutator: Mutator,
    /// What it is done with.
    pub argument: Datum,
}

impl Mutation {
    /// Parses `[<column>, <mutator>, <value>]`.
    pub fn from_json(
        json: &Json,
        table: &TableSchema,
        symbols: Option<&mut SymbolTable>,
    ) -> Result<Self> {
        let Some([Json::String(name), Json::String(mutator), argument]) = json.as_array() else {
            return Err(Error::syntax(json, "Parse error in mutation."));
        };
        let column = table.require_column(name, json)?;
        let schema = &table.columns[column];
        if !schema.mutable {
            let details = format!(
                "Cannot mutate immutable column {name} in table {}.",
                table.name
            );
            return Err(Error::constraint(details).at(json));
        }
        let mutator = Mutator::from_name(mutator)
            .ok_or_else(|| Error::new("unknown mutator", format!("No mutator named {mutator}.")))?;
        if !mutator.applies_to(&schema.column_type) {
            let details = format!(
                "Type mismatch: \"{}\" operator may not be applied to column {name} of type {}.",
                mutator.name(),
                schema.column_type.to_english()
            );
            return Err(Error::syntax(json, details));
        }
        Ok(Self {
            column,
            mutator,
            argument: Datum::from_json(
                argument,
                &argument_type(mutator, &schema.column_type, argument),
                symbols,
            )?,
        })
    }

    /// Parses an array of mutations.
    pub fn list_from_json(
        json: &Json,
        table: &TableSchema,
        mut symbols: Option<&mut SymbolTable>,
    ) -> Result<Vec<Self>> {
        let array = json
            .as_array()
            .ok_or_else(|| Error::syntax(json, "array expected"))?;
        array
            .iter()
            .map(|mutation| Self::from_json(mutation, table, symbols.as_deref_mut()))
            .collect()
    }

    /// Changes the row.  The row is of no use after an error.
    pub fn apply(&self, table: &TableSchema, row: &mut Row) -> Result<()> {
        let schema = &table.columns[self.column];
        let old = row.get(self.column);
        let new = match self.mutator {
            Mutator::Insert => old.union(&self.argument),
            Mutator::Delete => old.subtract(&self.argument),
            arithmetic => mutate_numbers(arithmetic, old, &self.argument)?,
        };
        if new != *old {
            schema.check(&new)?;
            row.set(self.column, new);
        }
        Ok(())
    }
}

/// The type of a mutation's argument.
fn argument_type(mutator: Mutator, column_type: &ColumnType, argument: &Json) -> ColumnType {
    if mutator.is_arithmetic() {
        return ColumnType::scalar(column_type.key.unconstrained());
    }
    let mut argument_type = column_type.clone();
    argument_type.min = 0;
    let is_map = matches!(argument.as_array(), Some([tag, _]) if tag.as_str() == Some("map"));
    if mutator == Mutator::Delete && argument_type.is_map() && !is_map {
        // Keys alone, whatever their values are.
        argument_type.value = None;
    }
    argument_type
}

fn mutate_numbers(mutator: Mutator, old: &Datum, argument: &Datum) -> Result<Datum> {
    let mut atoms = Vec::with_capacity(old.len());
    for atom in old.as_set() {
        atoms.push(match (atom, argument.as_atom()) {
            (Atom::Integer(a), Some(Atom::Integer(b))) => {
                Atom::Integer(mutator.apply_integer(*a, *b)?)
            }
            (Atom::Real(a), Some(Atom::Real(b))) => Atom::Real(mutator.apply_real(*a, *b)?),
            _ => atom.clone(),
        });
    }
    Datum::from_set(atoms).ok_or_else(|| {
        Error::constraint(format!(
            "Result of \"{}\" operation contains duplicates.",
            mutator.name()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(column_type: &str, value: &str, mutation: &str) -> String {
        let parse = |text: &str| json::parse(text.as_bytes()).expect("valid");
        let table = parse(&format!(
            r#"{{"columns":{{"c":{{"type":{column_type}}}}}}}"#
        ));
        let table = TableSchema::from_json("mytable", &table).expect("valid");
        let mut row = Row::new(&table, uuid::Uuid::nil());
        let column_type = &table.columns[2].column_type;
        let value = &parse(&format!("[{value}]")).as_array().expect("array")[0].clone();
        row.set(
            2,
            Datum::from_json(value, column_type, None).expect("valid"),
        );
        let run = Mutation::from_json(&parse(mutation), &table, None)
            .and_then(|mutation| mutation.apply(&table, &mut row));
        match run {
            Ok(()) => row.get(2).to_json_of(column_type).to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn mutations_are_applied() {
        let set = r#"{"key":"integer","min":1,"max":2}"#;
        let map = r#"{"key":"string","value":"integer","min":0,"max":3}"#;
        let bounded = r#"{"key":{"type":"integer","minInteger":0,"maxInteger":2}}"#;
        for (column_type, value, mutation, said) in [
            (r#""integer""#, "7", r#"["c","%=",4]"#, "3"),
            (
                r#""integer""#,
                "-9223372036854775808",
                r#"["c","%=",-1]"#,
                "0",
            ),
            (
                r#""integer""#,
                "-9223372036854775808",
                r#"["c","/=",-1]"#,
                "range error: Result of \"/=\" operation is out of range.",
            ),
            (
                r#""integer""#,
                "1",
                r#"["c","/=",0]"#,
                "domain error: Division by zero.",
            ),
            (
                r#""real""#,
                "1e308",
                r#"["c","*=",1e10]"#,
                "range error: Result of \"*=\" operation is out of range.",
            ),
            (
                set,
                r#"["set",[1,2]]"#,
                r#"["c","+=",1]"#,
                r#"["set",[2,3]]"#,
            ),
            (
                set,
                r#"["set",[1,2]]"#,
                r#"["c","*=",0]"#,
                "constraint violation: Result of \"*=\" operation contains duplicates.",
            ),
            (
                set,
                r#"["set",[1,2]]"#,
                r#"["c","insert",["set",[3]]]"#,
                "constraint violation: Attempted to store 3 elements in set of 1 to 2 integers.",
            ),
            (
                set,
                "1",
                r#"["c","delete",1]"#,
                "constraint violation: Attempted to store 0 elements in set of 1 to 2 integers.",
            ),
            (
                bounded,
                "1",
                r#"["c","+=",2]"#,
                "constraint violation: 3 is not in the valid range 0 to 2 (inclusive)",
            ),
            (
                map,
                r#"["map",[["a",1]]]"#,
                r#"["c","insert",["map",[["a",2],["b",3]]]]"#,
                r#"["map",[["a",1],["b",3]]]"#,
            ),
            (
                map,
                r#"["map",[["a",1],["b",2]]]"#,
                r#"["c","delete","a"]"#,
                r#"["map",[["b",2]]]"#,
            ),
            (
                map,
                r#"["map",[["a",1],["b",2]]]"#,
                r#"["c","delete",["map",[["a",2],["b",2]]]]"#,
                r#"["map",[["a",1]]]"#,
            ),
            (
                r#""string""#,
                r#""x""#,
                r#"["c","+=","a"]"#,
                r#"syntax "["c","+=","a"]": syntax error: Type mismatch: "+=" operator may not be applied to column c of type string."#,
            ),
            (
                r#""integer""#,
                "1",
                r#"["c","foo",1]"#,
                "unknown mutator: No mutator named foo.",
            ),
            (
                r#""integer""#,
                "1",
                r#"["_uuid","+=",1]"#,
                r#"syntax "["_uuid","+=",1]": constraint violation: Cannot mutate immutable column _uuid in table mytable."#,
            ),
        ] {
            assert_eq!(run(column_type, value, mutation), said, "{mutation}");
        }
    }
}
