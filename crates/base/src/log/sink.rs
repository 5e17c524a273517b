//! The one value of the process that the `log` facade needs: it finds each thread's logger.

use std::cell::{Cell, RefCell};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Level, Limit, Logger};

struct Sink {
    /// All loggers of the process; the first takes what unbound threads log.
    loggers: Mutex<Vec<Logger>>,
}

static SINK: Sink = Sink {
    loggers: Mutex::new(Vec::new()),
};

thread_local! {
    static BOUND: RefCell<Option<Logger>> = const { RefCell::new(None) };
    static SUBPROGRAM: RefCell<String> = const { RefCell::new(String::new()) };
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

fn loggers() -> MutexGuard<'static, Vec<Logger>> {
    SINK.loggers.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn add(logger: &Logger) {
    loggers().push(logger.clone());
    // An error means that a logger of ours is installed already.
    let _ = log::set_logger(&SINK);
    refresh();
}

/// Lets the facade stop what no logger wants.
pub(super) fn refresh() {
    let loggers = loggers().clone();
    let widest = loggers.iter().map(Logger::widest).max();
    log::set_max_level(widest.map_or(log::LevelFilter::Off, Level::filter));
}

pub(super) fn bind(logger: Logger, subprogram: &str) {
    BOUND.set(Some(logger));
    SUBPROGRAM.set(subprogram.to_owned());
}

/// The logger of this thread, if the process has any.
pub fn current() -> Option<Logger> {
    let bound = BOUND.try_with(|bound| bound.borrow().clone());
    bound.ok().flatten().or_else(|| loggers().first().cloned())
}

/// Calls `f` with the number of this thread's next message and the thread's subprogram name.
pub(super) fn with_thread(f: impl FnOnce(u32, &str)) {
    let number = NUMBER.get() + 1;
    NUMBER.set(number);
    let subprogram = SUBPROGRAM.with_borrow(String::clone);
    f(number, &subprogram);
}

/// Whether a message of the place that `limit` names may be logged; what
/// [`log_limited!`](crate::log_limited) asks.
pub fn admit(module: &str, level: log::Level, limit: &Limit) -> bool {
    current().is_none_or(|logger| logger.admit(module, level.into(), limit))
}

impl log::Log for Sink {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        current().is_some_and(|l| l.enabled(metadata.target(), metadata.level().into()))
    }

    fn log(&self, record: &log::Record<'_>) {
        if let Some(logger) = current() {
            let level = record.level().into();
            if logger.enabled(record.target(), level) {
                logger.log(level, record.target(), &record.args().to_string());
            }
        }
    }

    fn flush(&self) {}
}
