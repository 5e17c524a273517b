//! Conditions: what `where` says (RFC 7047 section 5.1, `<condition>`).

use std::cmp::Ordering;

use json::Json;

use crate::{AtomType, Datum, Error, Result, Row, SymbolTable, TableSchema, UNLIMITED};

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `includes`
    Includes,
    /// `excludes`
    Excludes,
}

impl Function {
    const ALL: [Self; 8] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessOrEqual,
        Self::Greater,
        Self::GreaterOrEqual,
        Self::Includes,
        Self::Excludes,
    ];

    /// The function's name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Includes => "includes",
            Self::Excludes => "excludes",
        }
    }

    /// The function called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    const fn is_relational(self) -> bool {
        matches!(
            self,
            Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual
        )
    }
}

/// One test of a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Clause {
    /// `true` or `false`.
    Constant(bool),
    /// `[column, function, argument]`.
    Test {
        /// Index of the column.
        column: usize,
        /// How it is compared.
        function: Function,
        /// What it is compared with.
        argument: Datum,
    },
}

impl Clause {
    /// Parses `[<column>, <function>, <value>]`, `true` or `false`.
    pub fn from_json(
        json: &Json,
        table: &TableSchema,
        symbols: Option<&mut SymbolTable>,
    ) -> Result<Self> {
        if let Json::Boolean(value) = json {
            return Ok(Self::Constant(*value));
        }
        let Some([Json::String(name), Json::String(function), argument]) = json.as_array() else {
            return Err(Error::syntax(json, "Parse error in condition."));
        };
        let column = table.require_column(name, json)?;
        let function = Function::from_name(function).ok_or_else(|| {
            Error::new("unknown function", format!("No function named {function}."))
        })?;
        let mut argument_type = table.columns[column].column_type.clone();
        if function.is_relational() {
            let ordered = matches!(argument_type.key.atom, AtomType::Integer | AtomType::Real);
            let single = argument_type.is_scalar() || argument_type.is_optional_scalar();
            if !ordered || !single {
                let details = format!(
                    "Type mismatch: \"{}\" operator may not be applied to column {name} of type {}.",
                    function.name(),
                    argument_type.to_english()
                );
                return Err(Error::syntax(json, details));
            }
            argument_type.min = 1;
        } else if matches!(function, Function::Includes | Function::Excludes)
            && !argument_type.is_scalar()
        {
            argument_type.min = 0;
            if function == Function::Excludes {
                argument_type.max = UNLIMITED;
            }
        }
        Ok(Self::Test {
            column,
            function,
            argument: Datum::from_json(argument, &argument_type, symbols)?,
        })
    }

    /// The JSON form.
    pub fn to_json(&self, table: &TableSchema) -> Json {
        match self {
            Self::Constant(value) => Json::Boolean(*value),
            Self::Test {
                column,
                function,
                argument,
            } => {
                let column = &table.columns[*column];
                Json::Array(vec![
                    std::sync::Arc::clone(&column.name).into(),
                    function.name().into(),
                    argument.to_json_of(&column.column_type),
                ])
            }
        }
    }

    /// Whether the row passes.
    pub fn matches(&self, row: &Row) -> bool {
        let (column, function, argument) = match self {
            Self::Constant(value) => return *value,
            Self::Test {
                column,
                function,
                argument,
            } => (*column, *function, argument),
        };
        let field = row.get(column);
        let order = || match (field.as_atom(), argument.as_atom()) {
            (Some(field), Some(argument)) => Some(field.cmp(argument)),
            _ => None,
        };
        match function {
            Function::Equal => field == argument,
            Function::NotEqual => field != argument,
            Function::Less => order() == Some(Ordering::Less),
            Function::LessOrEqual => order().is_some_and(Ordering::is_le),
            Function::Greater => order() == Some(Ordering::Greater),
            Function::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
            Function::Includes => field.includes_all(argument),
            Function::Excludes => field.excludes_all(argument),
        }
    }
}

/// A list of clauses.  Operations join them with "and", monitors with "or".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// The clauses as they were given.
    pub clauses: Vec<Clause>,
}

impl Condition {
    /// Parses an array of clauses.
    pub fn from_json(
        json: &Json,
        table: &TableSchema,
        mut symbols: Option<&mut SymbolTable>,
    ) -> Result<Self> {
        let array = json
            .as_array()
            .ok_or_else(|| Error::syntax(json, "array expected"))?;
        let clauses = array
            .iter()
            .map(|clause| Clause::from_json(clause, table, symbols.as_deref_mut()))
            .collect::<Result<_>>()?;
        Ok(Self { clauses })
    }

    /// The JSON form.
    pub fn to_json(&self, table: &TableSchema) -> Json {
        Json::Array(self.clauses.iter().map(|c| c.to_json(table)).collect())
    }

    /// Whether the row passes every clause.
    pub fn matches_all(&self, row: &Row) -> bool {
        self.clauses.iter().all(|clause| clause.matches(row))
    }

    /// Whether the row passes some clause.
    pub fn matches_any(&self, row: &Row) -> bool {
        self.clauses.iter().any(|clause| clause.matches(row))
    }

    /// The UUID of the only row that can match, if a clause names it.
    pub fn exact_uuid(&self) -> Option<uuid::Uuid> {
        self.clauses.iter().find_map(|clause| match clause {
            Clause::Test {
                column: crate::UUID_COLUMN,
                function: Function::Equal | Function::Includes,
                argument,
            } => argument.as_uuid(),
            _ => None,
        })
    }

    /// Whether every row matches when the clauses are joined with "or".
    pub fn is_always_any(&self) -> bool {
        self.clauses
            .iter()
            .any(|c| matches!(c, Clause::Constant(true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(column_type: &str) -> TableSchema {
        let text = format!(r#"{{"columns":{{"c":{{"type":{column_type}}}}}}}"#);
        TableSchema::from_json("mytable", &json::parse(text.as_bytes()).expect("valid"))
            .expect("valid")
    }

    fn parse(column_type: &str, text: &str) -> std::result::Result<Condition, String> {
        let json = json::parse(text.as_bytes()).expect("valid");
        Condition::from_json(&json, &table(column_type), None).map_err(|e| e.to_string())
    }

    #[test]
    fn bad_conditions_say_why() {
        let optional = r#"{"key":"integer","min":0}"#;
        for (column_type, text, said) in [
            (
                r#""boolean""#,
                r#"[["c",">",true]]"#,
                r#"syntax "["c",">",true]": syntax error: Type mismatch: ">" operator may not be applied to column c of type boolean."#,
            ),
            (
                r#""integer""#,
                r#"[["c","foo",1]]"#,
                "unknown function: No function named foo.",
            ),
            (
                r#""integer""#,
                r#"[["d","<",1]]"#,
                r#"syntax "["d","<",1]": unknown column: No column d in table mytable."#,
            ),
            (
                r#""integer""#,
                "[1]",
                r#"syntax "1": syntax error: Parse error in condition."#,
            ),
            (
                optional,
                r#"[["c","<",["set",[]]]]"#,
                r#"syntax "["set",[]]": syntax error: set must have exactly one member but 0 are present"#,
            ),
            (
                optional,
                r#"[["c","includes",["set",[1,2]]]]"#,
                r#"syntax "["set",[1,2]]": syntax error: set must have 0 to 1 members but 2 are present"#,
            ),
        ] {
            assert_eq!(parse(column_type, text), Err(said.to_owned()));
        }
        assert!(parse(optional, r#"[["c","excludes",["set",[1,2,3]]]]"#).is_ok());
    }

    #[test]
    fn conditions_are_evaluated() {
        let column_type = r#"{"key":"integer","min":0}"#;
        let table = table(column_type);
        let mut row = Row::new(&table, uuid::Uuid::nil());
        let check =
            |row: &Row, text: &str| parse(column_type, text).expect("valid").matches_all(row);
        assert!(!check(&row, r#"[["c","<",5]]"#));
        assert!(check(&row, r#"[["c","includes",["set",[]]]]"#));
        row.set(2, crate::Atom::Integer(4).into());
        assert!(check(&row, r#"[["c","<",5],["c","!=",3],true]"#));
        assert!(!check(&row, r#"[["c","<",5],["c","excludes",4]]"#));
    }
}
