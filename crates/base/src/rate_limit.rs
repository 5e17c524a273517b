//! Token buckets: how often something may happen, with bursts.

use std::time::Duration;

use crate::Instant;

/// One token costs this much credit, so that credit grows by the rate each millisecond.
const TOKEN: u64 = 60_000;

/// A bucket that is full at first, holds at most `burst` tokens and gains `rate` tokens
/// a minute.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    rate: u64,
    capacity: u64,
    credit: u64,
    filled_at: Instant,
}

impl RateLimiter {
    /// `rate` in tokens a minute (0: none comes after the burst); `burst` of 0 counts as 1.
    pub const fn new(rate: u32, burst: u32) -> Self {
        let burst = if burst == 0 { 1 } else { burst };
        let capacity = TOKEN * burst as u64;
        Self {
            rate: rate as u64,
            capacity,
            credit: capacity,
            filled_at: Instant::ZERO,
        }
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.as_millis().saturating_sub(self.filled_at.as_millis());
        if passed > 0 {
            self.credit = passed
                .saturating_mul(self.rate)
                .saturating_add(self.credit)
                .min(self.capacity);
            self.filled_at = now;
        }
    }

    /// Takes a token, if there is one.
    pub fn allow(&mut self, now: Instant) -> bool {
        self.fill(now);
        let has_token = self.credit >= TOKEN;
        if has_token {
            self.credit -= TOKEN;
        }
        has_token
    }

    /// When the next token will be there: `now` if one is, [`Instant::MAX`] if none will come.
    pub fn ready_at(&self, now: Instant) -> Instant {
        let mut then = self.clone();
        then.fill(now);
        if then.credit >= TOKEN {
            now
        } else if then.rate == 0 {
            Instant::MAX
        } else {
            now + Duration::from_millis((TOKEN - then.credit).div_ceil(then.rate))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let mut limiter = RateLimiter::new(60, 3);
        let mut now = Instant::from_millis(10);
        let burst = (0..5).filter(|_| limiter.allow(now)).count();
        assert_eq!(burst, 3);
        assert_eq!(limiter.ready_at(now), Instant::from_millis(1010));
        now = limiter.ready_at(now);
        assert!(limiter.allow(now) && !limiter.allow(now));
        now += Duration::from_secs(100);
        assert_eq!((0..9).filter(|_| limiter.allow(now)).count(), 3);
    }

    #[test]
    fn no_rate_means_only_the_burst() {
        let mut limiter = RateLimiter::new(0, 1);
        assert!(limiter.allow(Instant::ZERO));
        assert_eq!(limiter.ready_at(Instant::from_millis(9)), Instant::MAX);
    }
}
