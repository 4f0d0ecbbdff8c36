//! Events of interfaces while frames are captured from them.

use std::fmt;

/// Is called with each event, by the thread that reads.
pub type ReportEvent = Box<dyn Fn(&Event) + Send>;

/// An event of an interface while it was captured from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// It was switched off, or was off when the capture began.
    Down(String),
    /// It was switched on again.
    Up(String),
    /// It was removed; nothing will come from it any more.
    Gone(String),
    /// No part of the query runs in the kernel.
    NotOffloaded {
        /// The interface.
        interface: String,
        /// Why: one clause.
        reason: String,
    },
    /// The kernel does not take the capture filter; it is applied to the frames from the ring.
    FilterBehind {
        /// The interface.
        interface: String,
        /// The kernel's words.
        reason: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Down(name) => write!(f, "{name} is down; frames come once it is up again"),
            Event::Up(name) => write!(f, "{name} is up again"),
            Event::Gone(name) => write!(f, "{name} was removed"),
            Event::NotOffloaded { interface, reason } => {
                write!(f, "{interface}: the kernel runs no part of the query: {reason}")
            }
            Event::FilterBehind { interface, reason } => write!(
                f,
                "{interface}: the kernel does not take the capture filter ({reason}); it is \
                 applied to what the ring holds, which takes more time"
            ),
        }
    }
}

/// How an interface is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// It is switched on, or its link is up.
    Up,
    /// It is there, and nothing comes by it.
    Down,
    /// It was removed.
    Gone,
}

impl LinkState {
    /// The event that is reported when an interface comes to be so.
    pub(super) fn event(self, name: String) -> Event {
        match self {
            LinkState::Up => Event::Up(name),
            LinkState::Down => Event::Down(name),
            LinkState::Gone => Event::Gone(name),
        }
    }
}
