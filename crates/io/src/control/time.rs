//! `time/stop` and `time/warp`: the clock as tests drive it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::{Commands, Responder};
use crate::event::Poll;

#[derive(Debug, Default)]
struct Pending {
    stop: bool,
    warps: Vec<(Duration, Duration, Responder)>,
}

/// The virtual clock's commands.  They are carried out by [`TimeControl::run`], which the main
/// loop calls in each turn.
#[derive(Clone, Debug, Default)]
pub struct TimeControl {
    pending: Rc<RefCell<Pending>>,
    current: Rc<RefCell<Option<Responder>>>,
}

impl TimeControl {
    /// Nothing asked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers `time/stop` and `time/warp [large_msecs] msecs`.
    pub fn register<C>(&self, commands: &mut Commands<C>) {
        let pending = self.pending.clone();
        commands.register("time/stop", "", 0, 0, move |_, call| {
            pending.borrow_mut().stop = true;
            call.responder.reply("");
        });
        let pending = self.pending.clone();
        commands.register("time/warp", "[large_msecs] msecs", 1, 2, move |_, call| {
            let number = |text: &String| text.trim().parse::<u64>().unwrap_or(0);
            let total = number(&call.args[0]);
            let step = call.args.last().map_or(0, number);
            if total == 0 || step == 0 {
                return call.responder.error("invalid MSECS");
            }
            let (total, step) = (Duration::from_millis(total), Duration::from_millis(step));
            let mut pending = pending.borrow_mut();
            pending.warps.push((total, step, call.responder));
        });
    }

    /// Does what was asked: stops the clock, starts a warp when the one before is over,
    /// answers when it is.
    pub fn run(&self, poll: &mut Poll) {
        let mut pending = self.pending.borrow_mut();
        if std::mem::take(&mut pending.stop) {
            poll.clock().stop();
        }
        if poll.is_warping() {
            return;
        }
        if let Some(done) = self.current.borrow_mut().take() {
            done.reply("warped");
        }
        if !pending.warps.is_empty() {
            let (total, step, responder) = pending.warps.remove(0);
            poll.warp(total, step);
            *self.current.borrow_mut() = Some(responder);
        }
    }
}
