//! Conditions on rows, as `find` and `wait-until` take them.

use std::cmp::Ordering;

use db_client::TableId;
use db_model::{ColumnType, Datum, UNLIMITED, Uuid, text};

use super::column::{Operator, parse_condition};
use super::context::{Context, Failure};

impl<T> Context<'_, T> {
    /// Whether `row` satisfies the condition `arg`.
    ///
    /// # Errors
    /// The value does not fit the column.
    pub(crate) fn satisfies(
        &mut self,
        table: TableId,
        row: Uuid,
        arg: &str,
    ) -> Result<bool, Failure> {
        let layout = self.layout.clone();
        let (parsed, operator, value) = parse_condition(&layout[table], arg)?;
        let column = &layout[table][parsed.column];
        let datum = self.get(table, row, parsed.column).clone();
        let Some(key) = parsed.key else {
            let symbols = Some(self.symbols.table());
            let value = text::parse_datum(&column.column_type, value, symbols)?;
            return Ok(compare(operator, &datum, &value));
        };
        let Some(value_type) = &column.column_type.value else {
            let name = &column.name;
            return Err(format!("cannot specify key to check for non-map column {name}").into());
        };
        let key_type = &column.column_type.key;
        let key = text::parse_atom(key_type, &key, Some(self.symbols.table()))?;
        let set = ColumnType {
            key: value_type.clone(),
            value: None,
            min: 0,
            max: UNLIMITED,
        };
        let wanted = text::parse_datum(&set, value, Some(self.symbols.table()))?;
        match datum.get(&key) {
            Some(atom) => Ok(compare(operator, &Datum::from(atom.clone()), &wanted)),
            None if is_set_operator(operator) => Ok(compare(operator, &Datum::EMPTY, &wanted)),
            None => Ok(false),
        }
    }
}

/// Whether the operator treats a missing key as an empty set.
fn is_set_operator(operator: Operator) -> bool {
    !matches!(
        operator,
        Operator::Equal
            | Operator::NotEqual
            | Operator::Less
            | Operator::Greater
            | Operator::LessOrEqual
            | Operator::GreaterOrEqual
    )
}

fn compare(operator: Operator, a: &Datum, b: &Datum) -> bool {
    let order = a.compare(b);
    match operator {
        Operator::Equal | Operator::SetEqual => order == Ordering::Equal,
        Operator::NotEqual | Operator::SetNotEqual => order != Ordering::Equal,
        Operator::Less => order == Ordering::Less,
        Operator::Greater => order == Ordering::Greater,
        Operator::LessOrEqual => order != Ordering::Greater,
        Operator::GreaterOrEqual => order != Ordering::Less,
        Operator::ProperSubset => order != Ordering::Equal && b.includes_all(a),
        Operator::ProperSuperset => order != Ordering::Equal && a.includes_all(b),
        Operator::Subset | Operator::In => b.includes_all(a),
        Operator::Superset => a.includes_all(b),
        Operator::NotIn => a.excludes_all(b),
    }
}
