//! The locks of RFC 7047 section 4.1.8: named, advisory, one owner, a queue behind it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::server::ClientId;

/// All locks: for each name the owner, then those who wait, in order.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    queues: BTreeMap<Arc<str>, VecDeque<ClientId>>,
}

impl Locks {
    /// Whether the client owns the lock.
    pub(crate) fn owns(&self, name: &str, client: ClientId) -> bool {
        self.queues
            .get(name)
            .is_some_and(|queue| queue.front() == Some(&client))
    }

    /// Whether the client owns the lock or waits for it.
    pub(crate) fn has(&self, name: &str, client: ClientId) -> bool {
        self.queues
            .get(name)
            .is_some_and(|queue| queue.contains(&client))
    }

    /// Asks for a lock.  True if the client owns it now.
    pub(crate) fn lock(&mut self, name: &Arc<str>, client: ClientId) -> bool {
        let queue = self.queues.entry(Arc::clone(name)).or_default();
        queue.push_back(client);
        queue.len() == 1
    }

    /// Takes a lock whoever owns it; that one is returned and waits first.
    pub(crate) fn steal(&mut self, name: &Arc<str>, client: ClientId) -> Option<ClientId> {
        let queue = self.queues.entry(Arc::clone(name)).or_default();
        let victim = queue.front().copied();
        queue.push_front(client);
        victim
    }

    /// Gives a lock back or waits no more.  Returns who owns it by this.
    pub(crate) fn unlock(&mut self, name: &str, client: ClientId) -> Option<ClientId> {
        let queue = self.queues.get_mut(name)?;
        let at = queue.iter().position(|c| *c == client)?;
        queue.remove(at);
        let next = queue.front().copied().filter(|_| at == 0);
        if queue.is_empty() {
            self.queues.remove(name);
        }
        next
    }

    /// Forgets a client.  Returns the locks that have a new owner, and whom.
    pub(crate) fn forget(&mut self, client: ClientId) -> Vec<(Arc<str>, ClientId)> {
        let names: Vec<Arc<str>> = self
            .queues
            .iter()
            .filter(|(_, queue)| queue.contains(&client))
            .map(|(name, _)| Arc::clone(name))
            .collect();
        names
            .into_iter()
            .filter_map(|name| {
                let owner = self.unlock(&name, client)?;
                Some((name, owner))
            })
            .collect()
    }

    /// The names of the locks that the client owns, and of those that it waits for.
    pub(crate) fn of(&self, client: ClientId) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let mine = self.queues.iter().filter(|(_, q)| q.contains(&client));
        let (owned, waiting): (Vec<_>, Vec<_>) =
            mine.partition(|(_, queue)| queue.front() == Some(&client));
        let names = |locks: Vec<(&Arc<str>, _)>| {
            let names = locks.into_iter().map(|(name, _)| Arc::clone(name));
            names.collect()
        };
        (names(owned), names(waiting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_queued_stolen_and_given_back() {
        let mut locks = Locks::default();
        let name: Arc<str> = "x".into();
        let [a, b, c] = [1, 2, 3].map(ClientId);
        assert!(locks.lock(&name, a));
        assert!(!locks.lock(&name, b));
        assert_eq!(locks.steal(&name, c), Some(a));
        assert!(locks.owns("x", c) && locks.has("x", a));
        assert_eq!(locks.of(a), (vec![], vec![Arc::clone(&name)]));
        assert_eq!(locks.of(c), (vec![Arc::clone(&name)], vec![]));
        assert_eq!(locks.unlock("x", c), Some(a));
        assert_eq!(locks.unlock("x", b), None);
        assert_eq!(locks.forget(a), []);
        assert!(!locks.has("x", a));
    }
}
