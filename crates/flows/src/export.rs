//! When a datagram was sent and came.

/// When a datagram was sent and came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Export {
    /// When it came: nanoseconds since 1970.
    pub(crate) received: i64,
    /// When it was sent, by the clock of the exporter: nanoseconds since 1970.
    pub(crate) sent: i64,
    /// For how many milliseconds the exporter had been up then, if it says so; the number wraps.
    pub(crate) uptime: Option<u32>,
}

impl Export {
    /// The time at which the exporter had been up for so many milliseconds; `started` is when it
    /// was started, if a record says so.
    pub(crate) fn at_uptime(&self, uptime: u32, started: Option<i64>) -> Option<i64> {
        match (started, self.uptime) {
            (Some(started), _) => started.checked_add(i64::from(uptime) * 1_000_000),
            (None, Some(now)) => {
                // Both may have wrapped: what is between them has not.
                let ago = i64::from(now.wrapping_sub(uptime) as i32);
                self.sent.checked_sub(ago * 1_000_000)
            }
            (None, None) => None,
        }
    }
}
