//! A value that one owner replaces as a whole and any thread reads without waiting.

use std::sync::Arc;

use arc_swap::ArcSwap;

/// The newest version of a value; readers keep the version they loaded.
#[derive(Debug)]
pub struct Published<T> {
    current: ArcSwap<T>,
}

impl<T> Published<T> {
    /// Publishes `value` as the first version.
    pub fn new(value: T) -> Self {
        Self {
            current: ArcSwap::from_pointee(value),
        }
    }

    /// The newest version.  Never blocks.
    pub fn load(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Replaces the value; readers that loaded before keep what they have.
    /// Returns the retired version, so that the owner decides where it is freed.
    pub fn publish(&self, value: Arc<T>) -> Arc<T> {
        self.current.swap(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_keeps_the_version_that_it_loaded() {
        let published = Published::new(1);
        let old = published.load();
        let retired = published.publish(Arc::new(2));
        assert_eq!((*old, *retired, *published.load()), (1, 1, 2));
    }
}
