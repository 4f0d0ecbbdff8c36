//! Why a message was not delivered, and what follows from that.

use std::fmt;
use std::io;
use std::time::Duration;

/// Why a receiver did not take a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// It can't be reached, or does not answer: messages wait for it.
    Away(String),
    /// It answers that it can't now: the message is sent again some times, after this pause if it
    /// names one.
    Busy(String, Option<Duration>),
    /// It will never take this message.
    Refused(String),
    /// It wants no more messages.
    Gone(String),
}

impl Failure {
    /// An error of a connection.
    pub(crate) fn away(doing: &str, e: &io::Error) -> Failure {
        let why = match e.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "it takes too long".to_owned(),
            io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
            _ => e.to_string(),
        };
        Failure::Away(format!("{doing}: {why}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Away(why)
            | Failure::Busy(why, _)
            | Failure::Refused(why)
            | Failure::Gone(why) => f.write_str(why),
        }
    }
}
