//! Messages of all streams, each read by a thread of its own, as they wait to be merged.

use crate::framing::StreamFault;
use crate::head::ProbeHead;
use crate::limits::{STREAM_AHEAD_BYTES, STREAMS_AHEAD_BYTES};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes of an arrival besides those of its message.
const ARRIVAL_BYTES: usize = 64;

/// Bytes of a head, whose texts are short.
const HEAD_BYTES: usize = 1024;

/// A stream hands these over, one after the other.
pub(crate) enum Arrival {
    /// A message, and when it came.
    Message(Vec<u8>, Instant),
    /// Another life of its probe begins.
    Life(Box<ProbeHead>),
    /// There is nothing further for now.
    Pause,
    /// It has ended, or can't be read on. Nothing comes after it.
    End(Option<StreamFault>),
}

/// Messages of all streams.
pub(crate) struct Inbox {
    queues: Mutex<Queues>,
    /// Something came.
    came: Condvar,
    /// Something was taken, or nothing will be.
    taken: Condvar,
}

struct Queues {
    streams: Vec<StreamQueue>,
    /// Bytes of what waits of all of them.
    bytes: usize,
    /// The stream after the last that something was taken from: all have their turn.
    turn: usize,
}

#[derive(Default)]
struct StreamQueue {
    waiting: VecDeque<Arrival>,
    /// Bytes of what waits.
    bytes: usize,
    /// Whether nothing is taken any more.
    is_over: bool,
}

impl Inbox {
    pub(crate) fn new(streams: usize) -> Inbox {
        let streams = (0..streams).map(|_| StreamQueue::default()).collect();
        let queues = Queues { streams, bytes: 0, turn: 0 };
        Inbox { queues: Mutex::new(queues), came: Condvar::new(), taken: Condvar::new() }
    }

    /// Adds what came of a stream, once there is room; `false` if nothing is taken any more.
    pub(crate) fn put(&self, stream: usize, arrival: Arrival) -> bool {
        let is_full = |queues: &mut Queues| {
            let StreamQueue { bytes, is_over, .. } = queues.streams[stream];
            let is_beyond = |waiting: usize, most| waiting.saturating_add(arrival.bytes()) > most;
            // The stream that all others wait for has nothing waiting, so it is never full.
            !is_over
                && bytes > 0
                && (is_beyond(bytes, STREAM_AHEAD_BYTES)
                    || is_beyond(queues.bytes, STREAMS_AHEAD_BYTES))
        };
        let mut queues = self.queues.lock();
        self.taken.wait_while(&mut queues, is_full);
        if queues.streams[stream].is_over {
            return false;
        }
        queues.bytes += arrival.bytes();
        let queue = &mut queues.streams[stream];
        queue.bytes += arrival.bytes();
        queue.waiting.push_back(arrival);
        drop(queues);
        self.came.notify_one();
        true
    }

    /// Takes what came of one of the wanted streams, waiting for it at most so long.
    pub(crate) fn take(&self, wanted: &[usize], patience: Duration) -> Option<(usize, Arrival)> {
        let is_there =
            |queues: &Queues, stream: &usize| !queues.streams[*stream].waiting.is_empty();
        let nothing = |queues: &mut Queues| !wanted.iter().any(|stream| is_there(queues, stream));
        let mut queues = self.queues.lock();
        self.came.wait_while_for(&mut queues, nothing, patience);
        let ready = || wanted.iter().copied().filter(|stream| is_there(&queues, stream));
        let next = ready().filter(|stream| *stream >= queues.turn).min();
        let stream = next.or_else(|| ready().min())?;
        queues.turn = stream + 1;
        let queue = &mut queues.streams[stream];
        let arrival = queue.waiting.pop_front()?;
        queue.bytes -= arrival.bytes();
        queues.bytes -= arrival.bytes();
        drop(queues);
        self.taken.notify_all();
        Some((stream, arrival))
    }

    /// Says that nothing of a stream is taken any more, and forgets what waits.
    pub(crate) fn end(&self, stream: usize) {
        let mut queues = self.queues.lock();
        let over = StreamQueue { is_over: true, ..StreamQueue::default() };
        let before = std::mem::replace(&mut queues.streams[stream], over);
        queues.bytes -= before.bytes;
        drop(queues);
        self.taken.notify_all();
    }
}

impl Arrival {
    /// Bytes of memory that it takes: even an empty message takes some.
    fn bytes(&self) -> usize {
        match self {
            Arrival::Message(message, _) => message.len() + ARRIVAL_BYTES,
            Arrival::Life(_) => HEAD_BYTES,
            Arrival::Pause | Arrival::End(_) => ARRIVAL_BYTES,
        }
    }
}

/// The time at which a message arrives.
#[expect(clippy::disallowed_methods, reason = "rows do not depend on when messages come")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    fn message(len: usize) -> Arrival {
        Arrival::Message(vec![0; len], now())
    }

    fn taken(inbox: &Inbox, wanted: &[usize]) -> Option<usize> {
        inbox.take(wanted, Duration::ZERO).map(|(stream, _)| stream)
    }

    #[test]
    fn wanted_streams_have_their_turn() {
        let inbox = Inbox::new(3);
        for stream in [0, 0, 1, 1, 2] {
            assert!(inbox.put(stream, message(1)));
        }
        assert_eq!(taken(&inbox, &[0, 1]), Some(0));
        assert_eq!(taken(&inbox, &[0, 1]), Some(1));
        assert_eq!(taken(&inbox, &[0, 1]), Some(0));
        assert_eq!(taken(&inbox, &[0]), None);
        assert_eq!(taken(&inbox, &[0, 1, 2]), Some(1));
        assert_eq!(taken(&inbox, &[2]), Some(2));
    }

    #[test]
    fn who_is_far_ahead_waits_for_room() {
        let inbox = Arc::new(Inbox::new(2));
        assert!(inbox.put(0, message(STREAM_AHEAD_BYTES)));
        let theirs = Arc::clone(&inbox);
        let ahead = thread::spawn(move || theirs.put(0, message(1)));
        assert!(inbox.put(1, message(STREAM_AHEAD_BYTES)), "each stream has room of its own");
        assert_eq!(taken(&inbox, &[0]), Some(0));
        assert!(ahead.join().expect("it returns"), "there is room now");
        assert_eq!(taken(&inbox, &[0]), Some(0));
        assert_eq!(taken(&inbox, &[1]), Some(1));
    }

    #[test]
    fn all_together_have_a_bound_and_the_slowest_has_room() {
        let streams = STREAMS_AHEAD_BYTES / STREAM_AHEAD_BYTES + 2;
        let inbox = Arc::new(Inbox::new(streams));
        // Memory that nobody touches is not there.
        let whole = STREAM_AHEAD_BYTES - ARRIVAL_BYTES;
        (2..streams).for_each(|stream| assert!(inbox.put(stream, message(whole))));
        assert!(inbox.put(0, message(100)) && inbox.put(1, message(100)), "they had none");
        let theirs = Arc::clone(&inbox);
        let ahead = thread::spawn(move || theirs.put(0, message(1)));
        assert_eq!(taken(&inbox, &[1]), Some(1));
        assert!(inbox.put(1, message(100)), "it has none again");
        assert!(!ahead.is_finished());
        inbox.end(2);
        assert!(ahead.join().expect("it returns"), "there is room now");
        let waiting: usize = inbox.queues.lock().streams.iter().map(|queue| queue.bytes).sum();
        assert_eq!(inbox.queues.lock().bytes, waiting);
    }

    #[test]
    fn a_message_that_is_larger_than_all_room_is_taken_alone() {
        let inbox = Inbox::new(1);
        assert!(inbox.put(0, message(STREAM_AHEAD_BYTES + 1)));
        assert_eq!(taken(&inbox, &[0]), Some(0));
    }

    #[test]
    fn empty_messages_take_room_too() {
        let inbox = Arc::new(Inbox::new(1));
        let theirs = Arc::clone(&inbox);
        let flood = thread::spawn(move || {
            (0..STREAM_AHEAD_BYTES).take_while(|_| theirs.put(0, message(0))).count()
        });
        while inbox.queues.lock().streams[0].bytes + ARRIVAL_BYTES <= STREAM_AHEAD_BYTES {
            thread::yield_now();
        }
        inbox.end(0);
        assert_eq!(flood.join().expect("it returns"), STREAM_AHEAD_BYTES / ARRIVAL_BYTES);
        assert_eq!(inbox.queues.lock().streams[0].waiting.len(), 0, "what waited is forgotten");
    }

    #[test]
    fn nobody_waits_after_the_end() {
        let inbox = Arc::new(Inbox::new(1));
        assert!(inbox.put(0, message(STREAM_AHEAD_BYTES)));
        let theirs = Arc::clone(&inbox);
        let ahead = thread::spawn(move || theirs.put(0, message(1)));
        inbox.end(0);
        assert!(!ahead.join().expect("it returns"));
    }
}
