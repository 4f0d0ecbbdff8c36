//! In which mode a capture runs, and why not in a better one.

use super::Attach;
use std::fmt;

/// In which mode an interface is captured. Its text is one line for the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mode {
    /// The interface.
    pub interface: String,
    /// How many of its queues are received, each by a socket.
    pub queues: u32,
    /// Where the program is.
    pub attach: Attach,
    /// Why it is not in the driver.
    pub not_native: Option<WhyNot>,
    /// How many queues the driver fills itself; the kernel copies the frames of the others.
    pub zero_copy: u32,
    /// Why the kernel copies frames.
    pub not_zero_copy: Option<WhyNot>,
    /// Why the memory is not of huge pages.
    pub not_huge: Option<WhyNot>,
    /// Whether the queues are polled when the source asks.
    pub busy_poll: bool,
    /// Why they are not, though it was wanted.
    pub not_busy_poll: Option<WhyNot>,
    /// Whether the interface sends interrupts all the same, so that polling saves none.
    pub interrupts: bool,
    /// Whether the driver told the kernel whom to poll. Before Linux 6.13 it is known only when
    /// frames have come.
    pub pollable: bool,
    /// Frames that each queue has memory for.
    pub frames: usize,
    /// Bytes of memory for each frame.
    pub frame_bytes: usize,
}

/// Why something better was not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhyNot {
    /// It was not asked for.
    Unwanted,
    /// Something else rules it out.
    Needs(&'static str),
    /// It was refused, in these words.
    Refused(String),
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyNot::Unwanted => f.write_str("not asked for"),
            WhyNot::Needs(what) => write!(f, "needs {what}"),
            WhyNot::Refused(error) => f.write_str(error),
        }
    }
}

/// ` (no zero-copy: the reason)`, if there is one.
struct Better<'a>(&'a str, &'a Option<WhyNot>);

impl fmt::Display for Better<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(why) => write!(f, " (no {}: {why})", self.0),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.queues == 1 { "" } else { "s" };
        write!(f, "{}: AF_XDP on {} queue{plural}, ", self.interface, self.queues)?;
        match self.attach {
            Attach::Native => f.write_str("native")?,
            Attach::Generic => f.write_str("generic")?,
            Attach::Card => f.write_str("on the card")?,
        }
        write!(f, "{}, ", Better("native", &self.not_native))?;
        match self.zero_copy {
            0 => f.write_str("copy")?,
            n if n == self.queues => f.write_str("zero-copy")?,
            n => write!(f, "zero-copy on {n}, copy on the others")?,
        }
        write!(f, "{}, ", Better("zero-copy", &self.not_zero_copy))?;
        let pages = if self.not_huge.is_none() { "huge" } else { "normal" };
        write!(f, "{pages} pages{}, ", Better("huge pages", &self.not_huge))?;
        if self.busy_poll {
            f.write_str("busy-poll")?;
            if !self.pollable {
                f.write_str(" (if the driver takes part: it did not say so)")?;
            } else if self.interrupts {
                let at = format_args!("/sys/class/net/{}", self.interface);
                write!(
                    f,
                    " (of less use while there are interrupts: echo 2 > {at}/napi_defer_hard_irqs; \
                     echo 200000 > {at}/gro_flush_timeout)"
                )?;
            }
            f.write_str(", ")?;
        } else if self.not_busy_poll.is_some() {
            write!(f, "interrupts{}, ", Better("busy-poll", &self.not_busy_poll))?;
        }
        write!(f, "{} frames of {} bytes a queue", self.frames, self.frame_bytes)
    }
}
