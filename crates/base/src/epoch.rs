//! Waiting until a thread has put down what it had in its hands.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// After this many turns of others, a waiting thread sleeps.
const YIELDS: u32 = 100;
/// How long it sleeps.
const PAUSE: Duration = Duration::from_micros(50);

/// Says when one thread works, so that others can wait for the end of what it began.
///
/// One thread calls [`Epoch::enter`] and [`Epoch::leave`] in turn, which costs it two additions; any may wait.
#[derive(Debug, Default)]
pub struct Epoch {
    /// Odd while the thread works.
    count: AtomicU64,
}

impl Epoch {
    /// The thread begins to work.
    pub fn enter(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// The thread holds nothing any more.
    pub fn leave(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns when the thread has put down what it has in its hands now, at once if that is nothing.
    pub fn wait(&self) {
        let seen = self.count.load(Ordering::SeqCst);
        let mut tries = 0;
        while seen % 2 == 1 && self.count.load(Ordering::SeqCst) == seen {
            if tries < YIELDS {
                tries += 1;
                thread::yield_now();
            } else {
                thread::sleep(PAUSE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn nobody_waits_for_an_idle_thread() {
        let epoch = Epoch::default();
        epoch.wait();
        epoch.enter();
        epoch.leave();
        epoch.wait();
    }

    #[test]
    fn waiting_ends_when_the_work_does_and_not_before() {
        let (epoch, is_done) = (Arc::new(Epoch::default()), Arc::new(AtomicBool::new(false)));
        epoch.enter();
        let (started, starts) = channel();
        let waiter = {
            let (epoch, is_done) = (Arc::clone(&epoch), Arc::clone(&is_done));
            thread::spawn(move || {
                let _ = started.send(());
                epoch.wait();
                is_done.load(Ordering::SeqCst)
            })
        };
        assert!(starts.recv().is_ok());
        is_done.store(true, Ordering::SeqCst);
        epoch.leave();
        assert!(waiter.join().is_ok_and(|was_done| was_done));
    }
}
