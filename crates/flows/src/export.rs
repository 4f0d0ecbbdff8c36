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
    /// Start and end of a flow by uptimes, as far as they are known. The end is near the export; a
    /// flow may have begun up to 49 days before it.
    pub(crate) fn start_and_end(
        &self,
        [first, last]: [Option<u32>; 2],
        started: Option<i64>,
    ) -> [Option<i64>; 2] {
        let at = |uptime: Option<u32>| uptime.and_then(|up| self.at_uptime(up, started));
        let end = at(last);
        let start = match (first, last, started) {
            (Some(first), Some(last), None) => {
                let length = i64::from(last.wrapping_sub(first)) * 1_000_000;
                end.and_then(|end| end.checked_sub(length))
            }
            _ => at(first),
        };
        [start, end]
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_weeks_start_before_they_end() {
        let (day, sent) = (86_400_000u32, 1_700_000_000_000_000_000);
        let days = |n: u32| i64::from(n * day) * 1_000_000;
        let export = |uptime| Export { received: sent, sent, uptime: Some(uptime) };
        let up = 40 * day;
        let times = export(up).start_and_end([Some(10 * day), Some(up)], None);
        assert_eq!(times, [Some(sent - days(30)), Some(sent)]);
        // The uptime has wrapped in between, and the flow goes on while its record is sent.
        let times = export(5).start_and_end([Some(u32::MAX - 9), Some(15)], None);
        assert_eq!(times, [Some(sent - 15_000_000), Some(sent + 10_000_000)]);
        let times = export(5).start_and_end([Some(3), None], Some(7));
        assert_eq!(times, [Some(3_000_007), None]);
    }
}
