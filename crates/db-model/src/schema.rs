//! Schemas of columns, tables and databases (RFC 7047 section 3.2).

use std::collections::HashMap;
use std::sync::Arc;

use json::{Json, Object};

use crate::{
    Atom, AtomType, BaseType, ColumnType, Constraint, Datum, Error, Kinds, Members, RefTable,
    Result, UNLIMITED, is_id,
};

/// Index of the column `_uuid` in every table.
pub const UUID_COLUMN: usize = 0;
/// Index of the column `_version` in every table.
pub const VERSION_COLUMN: usize = 1;

/// A column's schema.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSchema {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub column_type: ColumnType,
    /// Whether the column may change after its row was inserted.
    pub mutable: bool,
    /// Whether the column's values are kept in the file.
    pub persistent: bool,
}

impl ColumnSchema {
    /// Parses `<column-schema>`.
    pub fn from_json(name: &str, json: &Json) -> Result<Self> {
        let mut members = Members::new(json, format!("schema for column {name}"));
        let mutable = members.optional("mutable", Kinds::BOOLEAN);
        let ephemeral = members.optional("ephemeral", Kinds::BOOLEAN);
        let column_type = members.required("type", Kinds::STRING.or(Kinds::OBJECT));
        members.finish()?;
        let column_type = match column_type {
            Some(json) => ColumnType::from_json(json)?,
            None => return Err(Error::syntax(json, "ovsdb type expected")),
        };
        Ok(Self {
            name: name.into(),
            column_type,
            mutable: mutable.and_then(Json::as_bool).unwrap_or(true),
            persistent: !ephemeral.and_then(Json::as_bool).unwrap_or(false),
        })
    }

    /// The JSON form.
    pub fn to_json(&self) -> Json {
        let mut object = Object::new().with("type", self.column_type.to_json());
        if !self.mutable {
            object.insert("mutable", false);
        }
        if !self.persistent {
            object.insert("ephemeral", true);
        }
        Json::Object(object)
    }

    /// The references that keys and values of this column make.
    pub fn references(&self) -> impl Iterator<Item = &RefTable> {
        let value = self.column_type.value.as_ref();
        self.column_type
            .key
            .reference()
            .into_iter()
            .chain(value.and_then(BaseType::reference))
    }

    fn has_reference(&self, strong: bool) -> bool {
        self.references().any(|r| r.strong == strong)
    }
}

/// A set of columns of one table, by index, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnSet(Vec<usize>);

impl ColumnSet {
    /// A set of these columns.
    pub fn new(columns: impl IntoIterator<Item = usize>) -> Self {
        let mut columns: Vec<usize> = columns.into_iter().collect();
        columns.sort_unstable();
        columns.dedup();
        Self(columns)
    }

    /// All columns of a table, `_uuid` and `_version` included.
    pub fn all(table: &TableSchema) -> Self {
        Self((0..table.columns.len()).collect())
    }

    /// Parses an array of column names.
    pub fn from_json(json: &Json, table: &TableSchema) -> Result<Self> {
        let distinct = || Error::syntax(json, "array of distinct column names expected");
        let names = json.as_array().ok_or_else(distinct)?;
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let name = name.as_str().ok_or_else(distinct)?;
            let column = table
                .column_index(name)
                .ok_or_else(|| Error::syntax(json, format!("{name} is not a valid column name")))?;
            if columns.contains(&column) {
                return Err(distinct());
            }
            columns.push(column);
        }
        Ok(Self::new(columns))
    }

    /// Whether the column is in the set.
    pub fn contains(&self, column: usize) -> bool {
        self.0.binary_search(&column).is_ok()
    }

    /// The columns in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied()
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A table's schema.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSchema {
    /// Its name.
    pub name: Arc<str>,
    /// `_uuid`, `_version`, then the schema's own columns sorted by name.
    pub columns: Vec<ColumnSchema>,
    /// Whether rows live without being referred to.
    pub is_root: bool,
    /// Most rows; [`UNLIMITED`] if there is no limit.
    pub max_rows: u32,
    /// Whether the table may be changed at all.
    pub mutable: bool,
    /// Sets of columns whose values must be unique together, as the schema lists them.
    pub indexes: Vec<Vec<usize>>,
}

impl TableSchema {
    /// The column of that name, `_uuid` and `_version` included.
    pub fn column(&self, name: &str) -> Option<&ColumnSchema> {
        self.column_index(name).map(|i| &self.columns[i])
    }

    /// The index in [`TableSchema::columns`] of the column of that name.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        match name {
            "_uuid" => return Some(UUID_COLUMN),
            "_version" => return Some(VERSION_COLUMN),
            _ => {}
        }
        let own = &self.columns[VERSION_COLUMN + 1..];
        let at = own
            .binary_search_by(|column| (*column.name).cmp(name))
            .ok()?;
        Some(at + VERSION_COLUMN + 1)
    }

    /// [`TableSchema::column_index`] with the protocol's error about `json`.
    pub fn require_column(&self, name: &str, json: &Json) -> Result<usize> {
        self.column_index(name).ok_or_else(|| {
            let details = format!("No column {name} in table {}.", self.name);
            Error::new("unknown column", details).at(json)
        })
    }

    /// The schema's own columns with their indexes.
    pub fn own_columns(&self) -> impl Iterator<Item = (usize, &ColumnSchema)> {
        self.columns.iter().enumerate().skip(VERSION_COLUMN + 1)
    }

    /// Parses `<table-schema>`.
    pub fn from_json(name: &str, json: &Json) -> Result<Self> {
        let mut members = Members::new(json, format!("table schema for table {name}"));
        let columns = members.required("columns", Kinds::OBJECT);
        let mutable = members.optional("mutable", Kinds::BOOLEAN);
        let max_rows = members.optional("maxRows", Kinds::INTEGER);
        let is_root = members.optional("isRoot", Kinds::BOOLEAN);
        let indexes = members.optional("indexes", Kinds::ARRAY);
        members.finish()?;
        let max_rows = match max_rows.and_then(Json::as_integer) {
            None => UNLIMITED,
            Some(rows) if rows <= 0 => {
                return Err(Error::syntax(json, "maxRows must be at least 1"));
            }
            Some(rows) => u32::try_from(rows).unwrap_or(UNLIMITED),
        };
        let mut this = Self {
            name: name.into(),
            columns: implicit_columns(),
            is_root: is_root.and_then(Json::as_bool).unwrap_or(false),
            max_rows,
            mutable: mutable.and_then(Json::as_bool).unwrap_or(true),
            indexes: Vec::new(),
        };
        let columns = columns.and_then(Json::as_object).filter(|c| !c.is_empty());
        let Some(columns) = columns else {
            return Err(Error::syntax(json, "table must have at least one column"));
        };
        for (name, column) in columns.iter() {
            check_name(name, json)?;
            this.columns.push(ColumnSchema::from_json(name, column)?);
        }
        for index in indexes.and_then(Json::as_array).unwrap_or(&[]) {
            this.indexes.push(this.index_from_json(index)?);
        }
        Ok(this)
    }

    fn index_from_json(&self, json: &Json) -> Result<Vec<usize>> {
        let set = ColumnSet::from_json(json, self)?;
        if set.is_empty() {
            return Err(Error::syntax(json, "index must have at least one column"));
        }
        if let Some(column) = set.iter().find(|&c| !self.columns[c].persistent) {
            let name = &self.columns[column].name;
            let details = format!("ephemeral columns (such as {name}) may not be indexed");
            return Err(Error::syntax(json, details));
        }
        let names = json.as_array().unwrap_or(&[]);
        Ok(names
            .iter()
            .filter_map(|name| self.column_index(name.as_str()?))
            .collect())
    }

    /// The JSON form.  `default_is_root` is what `isRoot` means when it is left out.
    pub fn to_json(&self, default_is_root: bool) -> Json {
        let columns: Object = self
            .own_columns()
            .map(|(_, column)| (Arc::clone(&column.name), column.to_json()))
            .collect();
        let mut object = Object::new().with("columns", columns);
        if !self.mutable {
            object.insert("mutable", false);
        }
        if self.max_rows != UNLIMITED {
            object.insert("maxRows", i64::from(self.max_rows));
        }
        if self.is_root != default_is_root {
            object.insert("isRoot", self.is_root);
        }
        if !self.indexes.is_empty() {
            let names = |index: &Vec<usize>| {
                let names = index
                    .iter()
                    .map(|&c| Arc::clone(&self.columns[c].name).into());
                Json::Array(names.collect())
            };
            object.insert(
                "indexes",
                Json::Array(self.indexes.iter().map(names).collect()),
            );
        }
        Json::Object(object)
    }
}

fn implicit_columns() -> Vec<ColumnSchema> {
    let uuid = ColumnType::scalar(BaseType::plain(AtomType::Uuid));
    let column = |name: &str, persistent| ColumnSchema {
        name: name.into(),
        column_type: uuid.clone(),
        mutable: false,
        persistent,
    };
    vec![column("_uuid", true), column("_version", false)]
}

fn check_name(name: &str, json: &Json) -> Result<()> {
    if name.starts_with('_') {
        Err(Error::syntax(
            json,
            "names beginning with \"_\" are reserved",
        ))
    } else if !is_id(name) {
        Err(Error::syntax(json, "name must be a valid id"))
    } else {
        Ok(())
    }
}

/// A database's schema.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseSchema {
    /// Its name.
    pub name: Arc<str>,
    /// Its version, `x.y.z`; empty in old schemas.
    pub version: String,
    /// The checksum that the schema file states; may be empty.
    pub cksum: String,
    /// The tables, sorted by name.
    pub tables: Vec<Arc<TableSchema>>,
}

impl DatabaseSchema {
    /// The table of that name.
    pub fn table(&self, name: &str) -> Option<&Arc<TableSchema>> {
        self.table_index(name).map(|i| &self.tables[i])
    }

    /// The index in [`DatabaseSchema::tables`] of the table of that name.
    pub fn table_index(&self, name: &str) -> Option<usize> {
        self.tables
            .binary_search_by(|table| (*table.name).cmp(name))
            .ok()
    }

    /// Parses a schema's text, as a schema file holds it.
    pub fn from_text(text: &str) -> Result<Self> {
        let json = json::parse(text.as_bytes()).map_err(|e| Error::general(e.to_string()))?;
        Self::from_json(&json)
    }

    /// Parses `<database-schema>`.
    pub fn from_json(json: &Json) -> Result<Self> {
        let mut members = Members::new(json, "database schema");
        let name = members.required("name", Kinds::ID);
        let version = members.optional("version", Kinds::STRING);
        let cksum = members.optional("cksum", Kinds::STRING);
        let tables = members.required("tables", Kinds::OBJECT);
        members.finish()?;
        let text = |json: Option<&Json>| json.and_then(Json::as_str).unwrap_or("").to_owned();
        if let Some(version) = version.and_then(Json::as_str)
            && !is_version(version)
        {
            let details = format!("schema version \"{version}\" not in format x.y.z");
            return Err(Error::syntax(json, details));
        }
        let mut this = Self {
            name: text(name).into(),
            version: text(version),
            cksum: text(cksum),
            tables: Vec::new(),
        };
        let mut parsed = Vec::new();
        for (name, table) in tables
            .and_then(Json::as_object)
            .into_iter()
            .flat_map(Object::iter)
        {
            check_name(name, json)?;
            parsed.push(TableSchema::from_json(name, table)?);
        }
        resolve_references(&mut parsed)?;
        this.tables = parsed.into_iter().map(Arc::new).collect();
        Ok(this)
    }

    /// Whether a table without `isRoot` is in the root set, as the JSON form has it: if no
    /// table says that it is, all are.
    fn default_is_root(&self) -> bool {
        self.tables.iter().all(|table| table.is_root)
    }

    /// The JSON form.
    pub fn to_json(&self) -> Json {
        let default_is_root = self.default_is_root();
        let tables: Object = self
            .tables
            .iter()
            .map(|table| (Arc::clone(&table.name), table.to_json(default_is_root)))
            .collect();
        let mut object = Object::new()
            .with("name", Arc::clone(&self.name))
            .with("tables", tables);
        if !self.version.is_empty() {
            object.insert("version", self.version.as_str());
        }
        if !self.cksum.is_empty() {
            object.insert("cksum", self.cksum.as_str());
        }
        Json::Object(object)
    }
}

/// Whether `text` begins as `x.y.z`.
fn is_version(text: &str) -> bool {
    let mut parts = text.split('.');
    let number = |part: Option<&str>| {
        part.is_some_and(|p| !p.is_empty() && p.bytes().all(|c| c.is_ascii_digit()))
    };
    number(parts.next()) && number(parts.next()) && number(parts.next()) && parts.next().is_none()
}

/// Checks that references point to tables, and settles what they imply: whether tables are
/// roots, and which columns must be persistent or mutable.
fn resolve_references(tables: &mut [TableSchema]) -> Result<()> {
    let all_roots = tables.iter().all(|table| !table.is_root);
    let roots: HashMap<Arc<str>, bool> = tables
        .iter_mut()
        .map(|table| {
            table.is_root |= all_roots;
            (Arc::clone(&table.name), table.is_root)
        })
        .collect();
    for column in tables.iter_mut().flat_map(|table| &mut table.columns) {
        let parts = [
            ("key", Some(&column.column_type.key)),
            ("value", column.column_type.value.as_ref()),
        ];
        for (part, base) in parts {
            let Some(reference) = base.and_then(BaseType::reference) else {
                continue;
            };
            let Some(&is_root) = roots.get(&reference.table) else {
                let (column, table) = (&column.name, &reference.table);
                let details = format!("column {column} {part} refers to undefined table {table}");
                return Err(Error::new("syntax error", details));
            };
            // A reference that alone keeps a row must survive a restart.
            if reference.strong && !is_root {
                column.persistent = true;
            }
        }
        // Deleting a row changes the columns that refer to it weakly.
        if column.has_reference(false) {
            column.mutable = true;
        }
    }
    Ok(())
}

impl ColumnSchema {
    /// Whether the datum fits the column: atom types, constraints and size.  What has come
    /// from a trusted place needs no such check.
    pub fn check(&self, datum: &Datum) -> Result<()> {
        let t = &self.column_type;
        let size = datum.len();
        if size < t.min as usize || size > t.max as usize {
            let details = format!("Attempted to store {size} elements in {}.", t.to_english());
            return Err(Error::constraint(details));
        }
        if !matches!(
            t.key.constraint,
            Constraint::None | Constraint::Reference(_)
        ) {
            datum.keys().try_for_each(|key| t.key.check(key))?;
        }
        match &t.value {
            Some(value) => datum.values().try_for_each(|atom: &Atom| value.check(atom)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str) -> String {
        DatabaseSchema::from_text(text).map_or_else(|e| e.to_string(), |s| s.to_json().to_string())
    }

    fn table(text: &str) -> String {
        round(&format!(r#"{{"name":"d","tables":{{"t":{text}}}}}"#))
    }

    #[test]
    fn schemas_are_read_and_written() {
        for (text, printed) in [
            (
                r#"{"columns":{"name":{"type":"string"}},"isRoot":true,"maxRows":2}"#,
                r#"{"name":"d","tables":{"t":{"columns":{"name":{"type":"string"}},"maxRows":2}}}"#,
            ),
            (
                r#"{"columns":{"a":{"type":"integer"},"b":{"type":"string"}},"indexes":[["b","a"]]}"#,
                r#"{"name":"d","tables":{"t":{"columns":{"a":{"type":"integer"},"b":{"type":"string"}},"indexes":[["b","a"]]}}}"#,
            ),
        ] {
            assert_eq!(table(text), printed);
        }
    }

    #[test]
    fn ephemeral_strong_references_are_kept() {
        let text = r#"{"name":"mydb","version":"4.2.1","tables":{
            "a":{"columns":{
                "x":{"type":{"key":{"type":"uuid","refTable":"b"}},"ephemeral":true},
                "y":{"type":{"key":{"type":"uuid","refTable":"a"}},"ephemeral":true},
                "w":{"type":{"key":{"type":"uuid","refTable":"a","refType":"weak"}},"mutable":false}}},
            "b":{"columns":{"i":{"type":"integer"}},"isRoot":true}}}"#;
        let schema = DatabaseSchema::from_text(text).expect("valid");
        let a = schema.table("a").expect("table");
        assert!(!a.is_root);
        assert!(!a.column("x").expect("x").persistent);
        assert!(a.column("y").expect("y").persistent);
        assert!(a.column("w").expect("w").mutable);
    }

    #[test]
    fn bad_schemas_say_why() {
        for (text, said) in [
            (r#"{"columns":{}}"#, "table must have at least one column"),
            (
                r#"{"columns":{"_c":{"type":"integer"}}}"#,
                "names beginning with \"_\" are reserved",
            ),
            (
                r#"{"columns":{"c-d":{"type":"integer"}}}"#,
                "name must be a valid id",
            ),
            (
                r#"{"columns":{"c":{"type":"integer"}},"maxRows":0}"#,
                "maxRows must be at least 1",
            ),
            (
                r#"{"columns":{"c":{"type":"integer"}},"indexes":[["c","c"]]}"#,
                r#"syntax "["c","c"]": syntax error: array of distinct column names expected"#,
            ),
            (
                r#"{"columns":{"c":{"type":"integer"}},"indexes":[[]]}"#,
                "index must have at least one column",
            ),
            (
                r#"{"columns":{"c":{"type":"integer"}},"indexes":[["d"]]}"#,
                "d is not a valid column name",
            ),
            (
                r#"{"columns":{"c":{"type":"integer","ephemeral":true}},"indexes":[["c"]]}"#,
                "ephemeral columns (such as c) may not be indexed",
            ),
            (
                r#"{"columns":{"c":{"type":{"key":{"type":"uuid","refTable":"zz"}}}}}"#,
                "syntax error: column c key refers to undefined table zz",
            ),
            (
                "[]",
                "syntax error: Parsing table schema for table t failed: Object expected.",
            ),
        ] {
            let printed = table(text);
            assert!(printed.ends_with(said), "{printed}");
        }
        let printed = round(r#"{"name":"a","tables":{},"version":"1.2"}"#);
        assert!(printed.ends_with("schema version \"1.2\" not in format x.y.z"));
    }
}
