//! The alerts that wait for a target.

use crate::alert::Alert;
use crate::clock;
use crate::journal::Journal;
use crate::limits::{QUEUE_ALERTS_MAX, QUEUE_BYTES_MAX};
use crate::receiver::Batching;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A bounded queue between the pipe and the thread of a target.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    alerts: VecDeque<Arc<Alert>>,
    bytes: usize,
    /// Where alerts are kept meanwhile, if they are.
    journal: Option<Journal>,
    /// Nothing more will come.
    ending: bool,
}

impl QueueState {
    fn remove_first(&mut self) {
        let Some(alert) = self.alerts.pop_front() else { return };
        self.bytes -= alert.bytes();
        if let Some(journal) = &mut self.journal {
            journal.remove_first();
        }
    }
}

/// The next step of the thread of a target.
#[derive(PartialEq, Debug)]
pub(crate) enum Next {
    /// Deliver these, which stay in the queue until they are removed.
    Deliver(Vec<Arc<Alert>>),
    /// Repeat what goes on.
    Repeat,
    /// Nothing more comes, and nothing waits.
    End,
}

impl Queue {
    /// Keeps alerts in files, and waits for those that an earlier run has left there.
    pub(crate) fn keep(&self, journal: Journal, left: Vec<Arc<Alert>>) {
        let mut state = self.state.lock();
        state.bytes += left.iter().map(|alert| alert.bytes()).sum::<usize>();
        state.alerts.extend(left);
        state.journal = Some(journal);
    }

    /// Whether alerts that wait are kept in files.
    pub(crate) fn keeps(&self) -> bool {
        self.state.lock().journal.as_ref().is_some_and(|journal| journal.failed().is_none())
    }

    /// Why they are not, if they should be.
    pub(crate) fn keeps_no_more(&self) -> Option<String> {
        self.state.lock().journal.as_ref().and_then(Journal::failed).map(str::to_owned)
    }

    /// Adds an alert; whether there was room.
    pub(crate) fn push(&self, alert: Arc<Alert>) -> bool {
        let mut state = self.state.lock();
        let bytes = state.bytes + alert.bytes();
        if state.alerts.len() >= QUEUE_ALERTS_MAX || bytes > QUEUE_BYTES_MAX {
            return false;
        }
        state.bytes = bytes;
        if let Some(journal) = &mut state.journal {
            journal.add(&alert);
        }
        state.alerts.push_back(alert);
        self.changed.notify_all();
        true
    }

    /// Nothing more will come.
    pub(crate) fn end(&self) {
        self.state.lock().ending = true;
        self.changed.notify_all();
    }

    /// How many alerts wait.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().alerts.len()
    }

    /// Waits for what to do next. The next message may not go out before `not_before`, unless the
    /// run ends.
    pub(crate) fn next(
        &self,
        batching: Batching,
        not_before: Instant,
        repeat_at: Option<Instant>,
    ) -> Next {
        let mut state = self.state.lock();
        loop {
            let now = clock::now();
            // First, since a receiver may take what is not repeated for over.
            if !state.ending && repeat_at.is_some_and(|at| at <= now) {
                return Next::Repeat;
            }
            let ready = state.alerts.front().map(|first| match state.ending {
                true => now,
                false if state.alerts.len() >= batching.alerts_max => not_before,
                false => not_before.max(first.came + batching.gather),
            });
            if ready.is_some_and(|ready| ready <= now) {
                let some = state.alerts.iter().take(batching.alerts_max);
                return Next::Deliver(some.cloned().collect());
            }
            if state.ending && state.alerts.is_empty() {
                return Next::End;
            }
            let until = ready.into_iter().chain(repeat_at).min();
            match until {
                Some(until) => drop(self.changed.wait_for(&mut state, until - now)),
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Removes the first alerts.
    pub(crate) fn remove(&self, n: usize) {
        let mut state = self.state.lock();
        (0..n).for_each(|_| state.remove_first());
    }

    /// Removes the first alerts that have waited for so long; says how many.
    pub(crate) fn remove_older(&self, age: Duration) -> usize {
        let mut state = self.state.lock();
        let now = clock::now();
        let mut n = 0;
        while state.alerts.front().is_some_and(|a| now.saturating_duration_since(a.came) > age) {
            state.remove_first();
            n += 1;
        }
        n
    }

    /// Waits so long, or only for `ending` where the run ends (meanwhile).
    pub(crate) fn pause(&self, pause: Duration, ending: Duration) {
        let mut state = self.state.lock();
        let until = clock::now() + pause;
        while !state.ending {
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() {
                return;
            }
            self.changed.wait_for(&mut state, left);
        }
        // Nothing more wakes it.
        let left = until.saturating_duration_since(clock::now()).min(ending);
        self.changed.wait_while_for(&mut state, |_| true, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::tests::alert;

    const ONE: Batching = Batching { alerts_max: 1, gather: Duration::ZERO, apart: Duration::ZERO };

    #[test]
    fn it_holds_so_many_alerts_and_no_more() {
        let queue = Queue::default();
        let one = Arc::new(alert("start", "high", "x"));
        let room = (0..QUEUE_ALERTS_MAX + 5).filter(|_| queue.push(Arc::clone(&one))).count();
        assert_eq!((room, queue.len()), (QUEUE_ALERTS_MAX, QUEUE_ALERTS_MAX));
        queue.remove(QUEUE_ALERTS_MAX + 1);
        assert_eq!((queue.len(), queue.state.lock().bytes), (0, 0));
        let big = Alert { json: "x".repeat(QUEUE_BYTES_MAX / 3), ..alert("start", "high", "x") };
        let big = Arc::new(big);
        assert_eq!((0..5).filter(|_| queue.push(Arc::clone(&big))).count(), 2);
    }

    #[test]
    fn messages_gather_alerts_until_they_are_full_or_the_run_ends() {
        let long = Duration::from_secs(3600);
        let mail = Batching { alerts_max: 2, gather: long, apart: long };
        let queue = Queue::default();
        let now = clock::now();
        let push = || assert!(queue.push(Arc::new(alert("start", "high", "x"))));
        let taken = |next: Next| match next {
            Next::Deliver(alerts) => alerts.len(),
            _ => 0,
        };
        push();
        assert_eq!(queue.next(mail, now, Some(now)), Next::Repeat);
        push();
        push();
        assert_eq!(taken(queue.next(mail, now, None)), 2);
        queue.remove(2);
        queue.end();
        assert_eq!(taken(queue.next(mail, now + long, None)), 1);
        queue.remove(1);
        assert_eq!(queue.next(ONE, now, None), Next::End);
        queue.pause(long, Duration::ZERO);
    }

    #[test]
    fn what_has_waited_too_long_is_removed() {
        let queue = Queue::default();
        assert!(queue.push(Arc::new(alert("start", "high", "x"))));
        assert_eq!(queue.remove_older(Duration::from_secs(3600)), 0);
        while queue.remove_older(Duration::ZERO) == 0 {}
        assert_eq!(queue.len(), 0);
    }
}
