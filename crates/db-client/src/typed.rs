//! Columns with their types in Rust.

use std::marker::PhantomData;

use db_model::{Atom, AtomType, ColumnType, Datum, Uuid};

use crate::{ColumnId, Interest, Layout, Replica, RowRef, TableId, Transaction};

/// What one atom of a column is in Rust.
pub trait Element {
    /// What reading yields.
    type Ref<'a>;
    /// The atoms' type.
    const ATOM: AtomType;

    /// Reads an atom of type [`Element::ATOM`].
    fn read(atom: &Atom) -> Self::Ref<'_>;
}

impl Element for i64 {
    type Ref<'a> = i64;
    const ATOM: AtomType = AtomType::Integer;

    fn read(atom: &Atom) -> i64 {
        atom.as_integer().unwrap_or_default()
    }
}

impl Element for f64 {
    type Ref<'a> = f64;
    const ATOM: AtomType = AtomType::Real;

    fn read(atom: &Atom) -> f64 {
        atom.as_real().unwrap_or_default()
    }
}

impl Element for bool {
    type Ref<'a> = bool;
    const ATOM: AtomType = AtomType::Boolean;

    fn read(atom: &Atom) -> bool {
        atom.as_bool().unwrap_or_default()
    }
}

impl Element for str {
    type Ref<'a> = &'a str;
    const ATOM: AtomType = AtomType::String;

    fn read(atom: &Atom) -> &str {
        atom.as_str().unwrap_or_default()
    }
}

impl Element for Uuid {
    type Ref<'a> = Uuid;
    const ATOM: AtomType = AtomType::Uuid;

    fn read(atom: &Atom) -> Uuid {
        atom.as_uuid().unwrap_or_default()
    }
}

/// What a column's value is in Rust.
pub trait Value {
    /// What reading yields.
    type Ref<'a>;

    /// Whether a column of this type can be read so.
    fn fits(column_type: &ColumnType) -> bool;

    /// Reads the value of a column that fits.
    fn read(datum: &Datum) -> Self::Ref<'_>;
}

/// Marks a column of exactly one element.
#[derive(Clone, Copy, Debug)]
pub struct One<E: ?Sized>(PhantomData<E>);

/// Marks a column of at most one element.
#[derive(Clone, Copy, Debug)]
pub struct Optional<E: ?Sized>(PhantomData<E>);

/// Marks a column that is a set.
#[derive(Clone, Copy, Debug)]
pub struct Set<E: ?Sized>(PhantomData<E>);

/// Marks a column that is a map.
#[derive(Clone, Copy, Debug)]
pub struct Map<K: ?Sized, V: ?Sized>(PhantomData<K>, PhantomData<V>);

/// The elements of a set, sorted.
#[derive(Clone, Copy, Debug)]
pub struct SetRef<'a, E: ?Sized>(&'a Datum, PhantomData<E>);

/// The pairs of a map, sorted by key.
#[derive(Clone, Copy, Debug)]
pub struct MapRef<'a, K: ?Sized, V: ?Sized>(&'a Datum, PhantomData<K>, PhantomData<V>);

impl<E: Element + ?Sized> Value for One<E> {
    type Ref<'a> = E::Ref<'a>;

    fn fits(t: &ColumnType) -> bool {
        t.key.atom == E::ATOM && t.is_scalar()
    }

    fn read(datum: &Datum) -> E::Ref<'_> {
        match datum.as_set().first() {
            Some(atom) => E::read(atom),
            // Only a broken server leaves such a column empty.
            None => E::read(default_atom(E::ATOM)),
        }
    }
}

/// A default atom that lives as long as the program.
fn default_atom(atom_type: AtomType) -> &'static Atom {
    use std::sync::LazyLock;
    static DEFAULTS: LazyLock<[Atom; 5]> = LazyLock::new(|| {
        [
            AtomType::Integer.default_atom(),
            AtomType::Real.default_atom(),
            AtomType::Boolean.default_atom(),
            AtomType::String.default_atom(),
            AtomType::Uuid.default_atom(),
        ]
    });
    let index = match atom_type {
        AtomType::Integer => 0,
        AtomType::Real => 1,
        AtomType::Boolean => 2,
        AtomType::String => 3,
        AtomType::Uuid => 4,
    };
    &DEFAULTS[index]
}

impl<E: Element + ?Sized> Value for Optional<E> {
    type Ref<'a> = Option<E::Ref<'a>>;

    fn fits(t: &ColumnType) -> bool {
        t.key.atom == E::ATOM && t.value.is_none() && t.max == 1
    }

    fn read(datum: &Datum) -> Option<E::Ref<'_>> {
        datum.as_set().first().map(E::read)
    }
}

impl<E: Element + ?Sized> Value for Set<E> {
    type Ref<'a> = SetRef<'a, E>;

    fn fits(t: &ColumnType) -> bool {
        t.key.atom == E::ATOM && t.value.is_none()
    }

    fn read(datum: &Datum) -> SetRef<'_, E> {
        SetRef(datum, PhantomData)
    }
}

impl<'a, E: Element + ?Sized> SetRef<'a, E> {
    /// The elements.
    pub fn iter(&self) -> impl Iterator<Item = E::Ref<'a>> + use<'a, E> {
        self.0.as_set().iter().map(E::read)
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The datum itself.
    pub fn datum(&self) -> &'a Datum {
        self.0
    }
}

impl<K: Element + ?Sized, V: Element + ?Sized> Value for Map<K, V> {
    type Ref<'a> = MapRef<'a, K, V>;

    fn fits(t: &ColumnType) -> bool {
        t.key.atom == K::ATOM && t.value.as_ref().is_some_and(|v| v.atom == V::ATOM)
    }

    fn read(datum: &Datum) -> MapRef<'_, K, V> {
        MapRef(datum, PhantomData, PhantomData)
    }
}

impl<'a, K: Element + ?Sized, V: Element + ?Sized> MapRef<'a, K, V> {
    /// The pairs.
    pub fn iter(&self) -> impl Iterator<Item = (K::Ref<'a>, V::Ref<'a>)> + use<'a, K, V> {
        let pairs = self.0.as_map().iter();
        pairs.map(|(key, value)| (K::read(key), V::read(value)))
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The datum itself.
    pub fn datum(&self) -> &'a Datum {
        self.0
    }
}

impl<'a, V: Element + ?Sized> MapRef<'a, str, V> {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<V::Ref<'a>> {
        let pairs = self.0.as_map();
        let at = pairs
            .binary_search_by(|(k, _)| k.as_str().unwrap_or_default().cmp(key))
            .ok()?;
        Some(V::read(&pairs[at].1))
    }
}

/// A column whose value is a `T` in Rust.
#[derive(Debug)]
pub struct Column<T> {
    table: TableId,
    id: ColumnId,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Column<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Column<T> {}

impl<T: Value> Column<T> {
    /// Finds the column in a layout.
    ///
    /// # Panics
    /// The layout has no such column or its type does not fit: program and schema differ,
    /// which no input can bring about.
    pub fn find(layout: &Layout, table: &str, column: &str) -> Self {
        let found = layout.table(table).and_then(|t| {
            let id = layout[t].column(column)?;
            T::fits(&layout[t][id].column_type).then_some((t, id))
        });
        let Some((table, id)) = found else {
            panic!("the schema has no column {table}.{column} of this type");
        };
        Self {
            table,
            id,
            value: PhantomData,
        }
    }

    /// The column's number.
    pub fn id(self) -> ColumnId {
        self.id
    }

    /// The number of its table.
    pub fn table(self) -> TableId {
        self.table
    }

    /// The value as a transaction would leave it.
    pub fn get<'a>(
        self,
        transaction: &'a Transaction,
        replica: &'a Replica,
        row: Uuid,
    ) -> T::Ref<'a> {
        T::read(transaction.get(replica, self.table, row, self.id))
    }

    /// Writes the whole value.
    pub fn set(
        self,
        transaction: &mut Transaction,
        replica: &Replica,
        row: Uuid,
        value: impl Into<Datum>,
    ) {
        transaction.set(replica, self.table, row, self.id, value.into());
    }

    /// See [`Transaction::verify`].
    pub fn verify(self, transaction: &mut Transaction, replica: &Replica, row: Uuid) {
        transaction.verify(replica, self.table, row, self.id);
    }
}

impl<'a> RowRef<'a> {
    /// The value of a typed column, which must be of this row's table.
    pub fn read<T: Value>(&self, column: Column<T>) -> T::Ref<'a> {
        T::read(self.get(column.id))
    }
}

/// The columns of a table that a program uses, as [`table!`](crate::table) declares them.
pub trait TableColumns {
    /// Finds the table and its columns in a layout, which must have them.
    fn find(layout: &Layout) -> Self;

    /// Wants all these columns.
    fn want(&self, interest: &mut Interest);
}

/// Declares a table's columns as a struct of [`Column`]s with the table's number, a
/// [`TableColumns`](crate::TableColumns):
///
/// ```
/// use db_client::{One, Set, table};
/// use db_model::Uuid;
///
/// table! {
///     /// Bridges.
///     pub struct Bridge = "Bridge" {
///         name: One<str>,
///         ports: Set<Uuid>,
///     }
/// }
///
/// table! {
///     /// A column whose name is no field name gets one.
///     pub struct Remote = "Ucast_Macs_Remote" {
///         mac = "MAC": One<str>,
///     }
/// }
/// ```
#[macro_export]
macro_rules! table {
    (@name $column:ident) => { stringify!($column).trim_start_matches("r#") };
    (@name $column:ident $column_name:literal) => { $column_name };
    ($(#[$meta:meta])* $visibility:vis struct $name:ident = $table:literal {
        $($column:ident $(= $column_name:literal)?: $value:ty),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        $visibility struct $name {
            /// The table's number.
            $visibility table: $crate::TableId,
            $(
                #[doc = concat!("Column `", stringify!($column), "`.")]
                $visibility $column: $crate::Column<$value>,
            )*
        }

        impl $crate::TableColumns for $name {
            fn find(layout: &$crate::Layout) -> Self {
                Self {
                    table: layout.table($table).expect("the schema has the table"),
                    $($column: $crate::Column::find(
                        layout,
                        $table,
                        $crate::table!(@name $column $($column_name)?),
                    ),)*
                }
            }

            fn want(&self, interest: &mut $crate::Interest) {
                interest.add_table(self.table);
                $(interest.add_column(self.table, self.$column.id());)*
            }
        }
    };
}
