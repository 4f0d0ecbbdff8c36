//! Windows: how long they are, the panes they are made of, and whether empty ones come out.
//!
//! Windows that overlap are made of *panes*: the longest stretches of time that no window starts or
//! ends within. A row is put into its pane once, however many windows hold it; windows are
//! put together from panes when they come out.

use crate::limits::{FILL_ROWS_MAX, SESSION_TICK_MIN_NS, SESSION_TICK_NS};

/// Windows without rows come out too: from the first that had a row on, as far as the watermark has
/// come. Each key that had a row gets one in every window, of aggregates over nothing; without
/// keys, that is one row a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    /// A key is no longer filled in once a window starts so long after the end of the last one in
    /// which it had a row, in nanoseconds.
    pub idle_ns: Option<i64>,
    /// Whether a key gets rows for the windows before its first one, too. These come out right
    /// before that window, by window and then by key, so that rows have no event time.
    pub from_start: bool,
    /// Rows that are filled in when the watermark moves once, as far as it may. When there are as
    /// many, further windows without rows are left out, and others that lack a key come out without
    /// it; both are counted as unfilled.
    pub max_rows: u64,
}

impl Fill {
    /// The usual one, with an idle time or without.
    pub fn idle(idle_ns: Option<i64>) -> Fill {
        Fill { idle_ns, from_start: false, max_rows: FILL_ROWS_MAX }
    }

    /// That which gives every key a row in every window from the first on.
    pub fn from_start() -> Fill {
        Fill { from_start: true, ..Fill::idle(None) }
    }
}

/// Which rows a summarize takes together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    /// The whole input.
    All,
    /// Windows of this many nanoseconds, aligned to 1970, each row in one.
    Tumbling(i64),
    /// Windows of `over` nanoseconds, one from each multiple of `every` since 1970 on, each row in
    /// all that hold its time; `every` is at most `over`.
    Sliding {
        /// Length of a window.
        over: i64,
        /// From the start of one to the start of the next.
        every: i64,
    },
    /// Rows of a key that follow one another closely.
    Session(Session),
}

/// When the rows of a key are one session.
///
/// A session starts with a row that finds none of its key open. A row ends the open one before it
/// joins if its time is `gap_ns` or more after the greatest of the session's rows, or `active_ns`
/// or more after the least; then it starts the next. How long a session waits for its next row is
/// judged by when its latest came: the latest of the times of its rows and of the watermarks at
/// which they came, as in a [`crate::Scan`]; so a late row is not lost. A row closes the session
/// that it joined if `until` holds for it, or if it is number `rows`. A closed session has
/// `linger_ns`, if that is shorter, in the place of `gap_ns`, or nothing: it still takes rows of
/// times before its end, and others for so long; but a row for which `unless` holds, or that comes
/// after number `rows`, starts the next. A session also ends when a tick of the watermark finds it
/// idle for `gap_ns` or more, when the input ends, and, as the one whose latest row came before
/// those of all others, when a row needs its place among `max_groups`: that one is counted as
/// evicted, and put out like all others.
///
/// Sessions that have ended come out when the watermark passes a multiple of [`Session::tick_ns`],
/// by the time they started, then by key, then in the order they ended. The first column, `ts`, is
/// the least time of its rows, its event time when the latest came; after them the watermark is the
/// tick less the gap, and no event time that comes out later is earlier than that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Session {
    /// How long a key may be without a row.
    pub gap_ns: i64,
    /// How long a session may be.
    pub active_ns: Option<i64>,
    /// How many rows it may have.
    pub rows: Option<u64>,
    /// How long it takes further rows after `until` has closed it; none if that is not said.
    pub linger_ns: Option<i64>,
}

impl Session {
    /// How long a closed session takes further rows.
    pub fn lingers_ns(&self) -> i64 {
        self.linger_ns.map_or(0, |ns| ns.min(self.gap_ns))
    }

    /// How often sessions that have ended come out.
    pub fn tick_ns(&self) -> i64 {
        self.gap_ns.clamp(SESSION_TICK_MIN_NS, SESSION_TICK_NS)
    }

    /// The watermark of what comes out at a watermark of this.
    pub fn downstream(&self, watermark: i64) -> i64 {
        self.tick(watermark).saturating_sub(self.gap_ns)
    }

    /// The latest tick that is not after `t`; the least time where there is none.
    pub fn tick(&self, t: i64) -> i64 {
        t.checked_sub(t.rem_euclid(self.tick_ns())).unwrap_or(i64::MIN)
    }

    /// The first tick after `t`; the largest time where there is none.
    pub fn tick_after(&self, t: i64) -> i64 {
        t.checked_add(self.tick_ns() - t.rem_euclid(self.tick_ns())).unwrap_or(i64::MAX)
    }

    /// The first tick that finds a session idle whose latest row came at this time.
    pub fn idle_tick(&self, last: i64) -> i64 {
        self.tick_after(last.saturating_add(self.gap_ns).saturating_sub(1))
    }

    /// The first tick that finds that a closed session has lingered whose latest row came at this
    /// time.
    pub fn lingered_tick(&self, last: i64) -> i64 {
        self.tick_after(last.saturating_add(self.lingers_ns()).saturating_sub(1))
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

/// The greatest number that divides both.
fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::stage;
    use crate::stage::{Schema, Stage, Summarize};

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
            (
                Window::Tumbling(S),
                0,
                Some(Fill::from_start()),
                "summarize  every 1s fill from start",
            ),
        ] {
            let (keys, aggs) = (Vec::new(), Vec::new());
            let max_groups = crate::limits::GROUPS_MAX;
            let until = None;
            let s = Summarize {
                keys,
                aggs,
                window,
                lateness_ns,
                fill,
                until,
                unless: None,
                zone: None,
                max_groups,
            };
            assert_eq!(stage(&Stage::Summarize(s), &Schema::default()), expected);
        }
    }
}
