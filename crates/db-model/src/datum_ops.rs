//! What is done to datums: union, subtraction, comparison, difference.

use std::cmp::Ordering;

use crate::{Atom, ColumnType, Datum, Error, Result};

impl Datum {
    /// Adds the elements of `other`; a map's present keys keep their values.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        if self.is_map() || other.is_map() {
            let merged = merge(self.as_map(), other.as_map(), |a, b| a.0.cmp(&b.0));
            Self::from_sorted_pairs(merged)
        } else {
            Self::from_sorted_vec(merge(self.as_set(), other.as_set(), Atom::cmp))
        }
    }

    /// Takes out the elements of `other`; a map loses a pair if key and value are there, or
    /// if `other` is a set that holds the key.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        if self.is_map() {
            let gone = |key: &Atom, value: &Atom| {
                if other.is_map() {
                    other.get(key) == Some(value)
                } else {
                    other.contains_key(key)
                }
            };
            let pairs = self.as_map().iter().filter(|(k, v)| !gone(k, v));
            Self::from_sorted_pairs(pairs.cloned().collect())
        } else {
            let rest = self
                .as_set()
                .iter()
                .filter(|atom| !other.contains_key(atom));
            Self::from_sorted_vec(rest.cloned().collect())
        }
    }

    /// Whether all elements (pairs) of `other` are in this datum.
    pub fn includes_all(&self, other: &Self) -> bool {
        if other.is_map() {
            let pairs = other.as_map();
            pairs.len() <= self.len() && pairs.iter().all(|(k, v)| self.get(k) == Some(v))
        } else {
            let elements = other.as_set();
            elements.len() <= self.len() && elements.iter().all(|e| self.contains_key(e))
        }
    }

    /// Whether no element (pair) of `other` is in this datum.
    pub fn excludes_all(&self, other: &Self) -> bool {
        if other.is_map() {
            other.as_map().iter().all(|(k, v)| self.get(k) != Some(v))
        } else {
            other.as_set().iter().all(|e| !self.contains_key(e))
        }
    }

    /// Orders datums of one type: by size, then by keys, then by values.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.len()
            .cmp(&other.len())
            .then_with(|| self.keys().cmp(other.keys()))
            .then_with(|| self.values().cmp(other.values()))
    }

    /// What turns `self` into `new`, as monitors and the log say it: for a column of one
    /// element, the new value; for a set, the elements that come or go; for a map, the pairs
    /// that come, go (with their old values) or change (with their new ones).
    /// `None` if the two are equal.
    pub fn difference(&self, new: &Self, column_type: &ColumnType) -> Option<Self> {
        if self == new {
            return None;
        }
        if !column_type.is_composite() {
            return Some(new.clone());
        }
        Some(if column_type.is_map() {
            let (old, new) = (self.as_map(), new.as_map());
            let mut changed: Vec<(Atom, Atom)> = Vec::new();
            walk(
                old,
                new,
                |a, b| a.0.cmp(&b.0),
                |pair| match pair {
                    Pair::Left(gone) => changed.push(gone.clone()),
                    Pair::Right(come) => changed.push(come.clone()),
                    Pair::Both(before, after) => {
                        if before.1 != after.1 {
                            changed.push(after.clone());
                        }
                    }
                },
            );
            Self::from_sorted_pairs(changed)
        } else {
            let mut changed = Vec::new();
            walk(self.as_set(), new.as_set(), Atom::cmp, |pair| match pair {
                Pair::Left(one) | Pair::Right(one) => changed.push(one.clone()),
                Pair::Both(..) => {}
            });
            Self::from_sorted_vec(changed)
        })
    }

    /// Applies what [`Datum::difference`] yields.  An error if the result has not the size
    /// that the type asks for.
    pub fn apply_difference(&self, difference: &Self, column_type: &ColumnType) -> Result<Self> {
        if !column_type.is_composite() {
            return Ok(difference.clone());
        }
        let new = if column_type.is_map() {
            let mut result: Vec<(Atom, Atom)> = Vec::new();
            walk(
                self.as_map(),
                difference.as_map(),
                |a, b| a.0.cmp(&b.0),
                |pair| match pair {
                    Pair::Left(kept) => result.push(kept.clone()),
                    Pair::Right(come) => result.push(come.clone()),
                    Pair::Both(before, change) => {
                        if before.1 != change.1 {
                            result.push(change.clone());
                        }
                    }
                },
            );
            Self::from_sorted_pairs(result)
        } else {
            let mut result = Vec::new();
            walk(
                self.as_set(),
                difference.as_set(),
                Atom::cmp,
                |pair| match pair {
                    Pair::Left(one) | Pair::Right(one) => result.push(one.clone()),
                    Pair::Both(..) => {}
                },
            );
            Self::from_sorted_vec(result)
        };
        let size = new.len();
        if size < column_type.min as usize || size > column_type.max as usize {
            return Err(Error::general("Datum crated by diff has size error"));
        }
        Ok(new)
    }
}

/// One step of a walk along two sorted sequences.
enum Pair<'a, T> {
    Left(&'a T),
    Right(&'a T),
    Both(&'a T, &'a T),
}

fn walk<'a, T>(
    left: &'a [T],
    right: &'a [T],
    compare: impl Fn(&T, &T) -> Ordering,
    mut step: impl FnMut(Pair<'a, T>),
) {
    let (mut left, mut right) = (left, right);
    while let ([l, left_rest @ ..], [r, right_rest @ ..]) = (left, right) {
        match compare(l, r) {
            Ordering::Less => {
                step(Pair::Left(l));
                left = left_rest;
            }
            Ordering::Greater => {
                step(Pair::Right(r));
                right = right_rest;
            }
            Ordering::Equal => {
                step(Pair::Both(l, r));
                left = left_rest;
                right = right_rest;
            }
        }
    }
    left.iter().for_each(|l| step(Pair::Left(l)));
    right.iter().for_each(|r| step(Pair::Right(r)));
}

fn merge<T: Clone>(left: &[T], right: &[T], compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    walk(left, right, compare, |pair| {
        let (Pair::Left(one) | Pair::Right(one) | Pair::Both(one, _)) = pair;
        merged.push(one.clone());
    });
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AtomType, BaseType};

    fn set(values: &[i64]) -> Datum {
        Datum::from_set(values.iter().map(|v| Atom::Integer(*v)).collect()).expect("distinct")
    }

    fn map(pairs: &[(i64, i64)]) -> Datum {
        let pairs = pairs
            .iter()
            .map(|(k, v)| (Atom::Integer(*k), Atom::Integer(*v)));
        Datum::from_map(pairs.collect()).expect("distinct")
    }

    fn types() -> (ColumnType, ColumnType) {
        let integer = BaseType::plain(AtomType::Integer);
        let set = ColumnType {
            key: integer.clone(),
            value: None,
            min: 0,
            max: 3,
        };
        let map = ColumnType {
            value: Some(integer),
            ..set.clone()
        };
        (set, map)
    }

    #[test]
    fn differences_are_made_and_applied() {
        let (set_type, map_type) = types();
        for (t, old, new, difference) in [
            (&set_type, set(&[0, 1]), set(&[1, 2]), set(&[0, 2])),
            (&set_type, set(&[]), set(&[0, 1]), set(&[0, 1])),
            (&set_type, set(&[0, 1]), set(&[]), set(&[0, 1])),
            (
                &map_type,
                map(&[(1, 1)]),
                map(&[(2, 2)]),
                map(&[(1, 1), (2, 2)]),
            ),
            (&map_type, map(&[(1, 1)]), map(&[(1, 5)]), map(&[(1, 5)])),
            (&map_type, map(&[(1, 1)]), map(&[]), map(&[(1, 1)])),
        ] {
            assert_eq!(old.difference(&new, t).as_ref(), Some(&difference));
            assert_eq!(old.apply_difference(&difference, t).as_ref(), Ok(&new));
        }
        assert_eq!(set(&[1]).difference(&set(&[1]), &set_type), None);
        assert!(
            set(&[0, 1])
                .apply_difference(&set(&[2, 3]), &set_type)
                .is_err()
        );
    }

    #[test]
    fn unions_and_subtractions() {
        assert_eq!(set(&[1, 3]).union(&set(&[2, 3])), set(&[1, 2, 3]));
        assert_eq!(
            map(&[(1, 1)]).union(&map(&[(1, 2), (3, 3)])),
            map(&[(1, 1), (3, 3)])
        );
        assert_eq!(set(&[1, 2, 3]).subtract(&set(&[2, 9])), set(&[1, 3]));
        assert_eq!(
            map(&[(1, 1), (2, 2)]).subtract(&map(&[(1, 9), (2, 2)])),
            map(&[(1, 1)])
        );
        assert_eq!(map(&[(1, 1), (2, 2)]).subtract(&set(&[1])), map(&[(2, 2)]));
        assert!(set(&[1, 2]).includes_all(&set(&[])));
        assert!(!set(&[1, 2]).excludes_all(&set(&[2, 3])));
    }
}
