//! Windows: how long they are, the panes they are made of, and whether empty ones come out.
//!
//! Windows that overlap are made of *panes*: the longest stretches of time that no window starts or
//! ends within. A row is put into its pane once, however many windows hold it; windows are
//! put together from panes when they come out.

use crate::limits::FILL_ROWS_MAX;
use crate::stage::{Summarize, Window};

/// Windows without rows come out too: from the first that had a row on, as far as the watermark has
/// come. Each key that had a row gets one in every window, of aggregates over nothing; without
/// keys, that is one row a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    /// A key is no longer filled in once a window starts so long after the end of the last one in
    /// which it had a row, in nanoseconds.
    pub idle_ns: Option<i64>,
    /// Rows that are filled in when the watermark moves once, as far as it may. When there are as
    /// many, further windows without rows are left out, and others that lack a key come out without
    /// it; both are counted as unfilled.
    pub max_rows: u64,
}

impl Fill {
    /// The usual one, with an idle time or without.
    pub fn idle(idle_ns: Option<i64>) -> Fill {
        Fill { idle_ns, max_rows: FILL_ROWS_MAX }
    }
}

impl Window {
    /// Length of a window of time, in nanoseconds.
    pub fn over(self) -> Option<i64> {
        match self {
            Window::Tumbling(d) => Some(d),
            Window::Sliding { over, .. } => Some(over),
            _ => None,
        }
    }

    /// From the start of a window of time to the start of the next, in nanoseconds.
    pub fn every(self) -> Option<i64> {
        match self {
            Window::Tumbling(d) => Some(d),
            Window::Sliding { every, .. } => Some(every),
            _ => None,
        }
    }

    /// Length of a pane: of the window itself, unless windows slide.
    pub fn pane(self) -> Option<i64> {
        match self {
            Window::Tumbling(d) => Some(d),
            Window::Sliding { over, every } => Some(common_divisor(over, every)),
            _ => None,
        }
    }
}

impl Summarize {
    /// Whether windows come out as they are, rather than put together from panes or filled in.
    pub fn is_plain(&self) -> bool {
        self.fill.is_none() && !matches!(self.window, Window::Sliding { .. })
    }
}

/// The greatest number that divides both.
fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::stage;
    use crate::stage::{Schema, Stage};

    #[test]
    fn a_pane_divides_length_and_distance() {
        for (over, every, pane) in [(60, 10, 10), (60, 25, 5), (7, 3, 1), (10, 10, 10)] {
            assert_eq!(Window::Sliding { over, every }.pane(), Some(pane), "{over} every {every}");
        }
        assert_eq!(Window::Tumbling(30).pane(), Some(30));
        assert_eq!(Window::All.pane(), None);
    }

    #[test]
    fn clauses_read_as_typed() {
        const S: i64 = 1_000_000_000;
        let sliding = Window::Sliding { over: 60 * S, every: 10 * S };
        for (window, lateness_ns, fill, expected) in [
            (sliding, 0, None, "summarize  over 1m every 10s"),
            (Window::Tumbling(S), 5 * S, None, "summarize  every 1s lateness 5s"),
            (
                sliding,
                S,
                Some(Fill::idle(Some(60 * S))),
                "summarize  over 1m every 10s lateness 1s fill idle 1m",
            ),
            (Window::Tumbling(S), 0, Some(Fill::idle(None)), "summarize  every 1s fill"),
        ] {
            let (keys, aggs) = (Vec::new(), Vec::new());
            let max_groups = crate::limits::GROUPS_MAX;
            let until = None;
            let s = Summarize { keys, aggs, window, lateness_ns, fill, until, max_groups };
            assert_eq!(stage(&Stage::Summarize(s), &Schema::default()), expected);
        }
    }
}
