//! Axes: round numbers and round times, and where they stand.

use weir_packet::time;
use weir_plan::TimeZone;

const S: i128 = 1_000_000_000;
const D: i128 = 86_400 * S;

/// Distances between marks of time beyond a second.
const TIMES: [i128; 26] = [
    S,
    2 * S,
    5 * S,
    10 * S,
    15 * S,
    30 * S,
    60 * S,
    120 * S,
    300 * S,
    600 * S,
    900 * S,
    1_800 * S,
    3_600 * S,
    7_200 * S,
    3 * 3_600 * S,
    6 * 3_600 * S,
    12 * 3_600 * S,
    D,
    2 * D,
    7 * D,
    14 * D,
    30 * D,
    90 * D,
    365 * D,
    3_650 * D,
    36_500 * D,
];

/// Marks of time on an axis, at most.
const TIME_MARKS: i128 = 6;

/// Times from left to right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeAxis {
    from: i64,
    to: i64,
    zone: Option<TimeZone>,
}

impl TimeAxis {
    /// From one time to a later one, with marks at round times of a zone.
    pub(crate) fn new(from: i64, to: i64, zone: Option<TimeZone>) -> TimeAxis {
        TimeAxis { from, to: to.max(from.saturating_add(1)), zone }
    }

    /// Where a time is: 0 at the left end, 1 at the right.
    pub(crate) fn share(self, ts: i64) -> f64 {
        let whole = i128::from(self.to) - i128::from(self.from);
        ((i128::from(ts) - i128::from(self.from)) as f64 / whole as f64).clamp(0.0, 1.0)
    }

    /// Round times, and how they are written.
    pub(crate) fn marks(self) -> Vec<(i64, String)> {
        let clock = |t: i64| i128::from(self.zone.map_or(t, |zone| zone.clock(t)));
        let when = |at: i64| self.zone.map_or(at, |zone| zone.when(at));
        let (from, to) = (clock(self.from), clock(self.to));
        let step = distance(to - from);
        let first = from.div_euclid(step) * step;
        let first = if first < from { first + step } else { first };
        let times = (0..=TIME_MARKS).map(|i| first + i * step).take_while(|at| *at <= to);
        times
            .filter_map(|at| i64::try_from(at).ok())
            .map(|at| (when(at), label(at, step)))
            .collect()
    }
}

/// A round distance of which at most [`TIME_MARKS`] fit into a time.
fn distance(whole: i128) -> i128 {
    let fine = (0..9).flat_map(|power| [1, 2, 5].map(|n| n * 10_i128.pow(power)));
    let all = fine.chain(TIMES);
    all.into_iter().find(|step| whole / step <= TIME_MARKS).unwrap_or(TIMES[TIMES.len() - 1])
}

/// A time on an axis with marks at this distance.
fn label(at: i64, step: i128) -> String {
    let text = time::rfc3339(at.div_euclid(1_000_000_000).saturating_mul(1_000_000_000));
    let (date, clock) = text.trim_end_matches('Z').split_once('T').unwrap_or((&text, ""));
    match step {
        step if step >= D => date.to_owned(),
        step if step % (60 * S) == 0 => clock.chars().take(5).collect(),
        step if step >= S => clock.to_owned(),
        step => {
            let digits = (1..9).find(|d| step % 10_i128.pow(9 - d) == 0).unwrap_or(9) as usize;
            let fraction = format!("{:09}", at.rem_euclid(1_000_000_000));
            format!("{clock}.{}", &fraction[..digits])
        }
    }
}

/// Numbers from the bottom to the top.
#[derive(Clone, Debug)]
pub(crate) struct ValueAxis {
    from: f64,
    to: f64,
    step: f64,
}

impl ValueAxis {
    /// An axis that holds these numbers, and zero.
    pub(crate) fn new(least: f64, most: f64) -> ValueAxis {
        let (least, most) = (least.min(0.0), most.max(0.0));
        let whole = if most > least { most - least } else { 1.0 };
        let step = round_step(whole / 4.0);
        let to = (most / step).ceil() * step;
        let to = if to > least { to } else { least + step };
        ValueAxis { from: (least / step).floor() * step, to, step }
    }

    /// Where a number is: 0 at the bottom, 1 at the top.
    pub(crate) fn share(&self, n: f64) -> f64 {
        ((n - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    /// Round numbers.
    pub(crate) fn marks(&self) -> Vec<f64> {
        let n = ((self.to - self.from) / self.step).round().clamp(0.0, 12.0) as usize;
        (0..=n).map(|i| self.from + i as f64 * self.step).collect()
    }
}

/// One, two, two and a half, or five times a power of ten, that is no smaller.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let round = steps.into_iter().map(|n| n * power).find(|step| *step >= least * 0.999_999);
    round.filter(|step| step.is_normal()).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_round() {
        let marks = |from, to| -> Vec<String> {
            TimeAxis::new(from, to, None).marks().into_iter().map(|(_, text)| text).collect()
        };
        let ms = 1_000_000;
        assert_eq!(
            marks(3 * ms, 42 * ms),
            ["00:00:00.01", "00:00:00.02", "00:00:00.03", "00:00:00.04"]
        );
        assert_eq!(marks(0, 4_999 * ms)[..2], ["00:00:00", "00:00:01"]);
        assert_eq!(marks(0, 3_600_000 * ms)[..2], ["00:00", "00:10"]);
        assert_eq!(marks(0, 86_400_000 * ms * 5)[..2], ["1970-01-01", "1970-01-02"]);
        assert_eq!(marks(5, 5), ["00:00:00.000000005", "00:00:00.000000006"]);
    }

    #[test]
    fn days_begin_at_midnight_of_the_zone() {
        const H: i64 = 3_600_000_000_000;
        // Clocks are set forward in the second day.
        let zone = TimeZone::new("t", H, &[(30 * H, 2 * H)]);
        let marks = TimeAxis::new(0, 100 * H, zone).marks();
        let want = [(23, "1970-01-02"), (46, "1970-01-03"), (70, "1970-01-04"), (94, "1970-01-05")];
        assert_eq!(marks, want.map(|(at, text)| (at * H, text.to_owned())));
    }

    #[test]
    fn numbers_are_round() {
        assert_eq!(ValueAxis::new(0.0, 97.0).marks(), [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(
            ValueAxis::new(0.0, 0.0).marks(),
            [0.0, 0.25, 0.5, 0.75, 1.0][..1].to_vec().into_iter().chain([0.25]).collect::<Vec<_>>()
        );
        assert_eq!(ValueAxis::new(-30.0, 10.0).marks(), [-30.0, -20.0, -10.0, 0.0, 10.0]);
    }

    proptest! {
        #[test]
        fn any_times_and_numbers_have_axes(
            from in any::<i64>(), to in any::<i64>(), a in any::<f64>(), b in any::<f64>(),
        ) {
            let axis = TimeAxis::new(from, to, None);
            let marks = axis.marks();
            prop_assert!(marks.len() <= 7);
            prop_assert!(marks.iter().all(|(at, _)| (0.0..=1.0).contains(&axis.share(*at))));
            let (a, b) = (if a.is_finite() { a } else { 0.0 }, if b.is_finite() { b } else { 0.0 });
            let axis = ValueAxis::new(a.min(b), a.max(b));
            prop_assert!(axis.marks().len() <= 13);
        }
    }
}
