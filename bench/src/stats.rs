//! The middle of several measurements, and how far they lie apart.

/// Median and quartiles.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Spread {
    /// A quarter of the values lie below.
    pub(crate) low: f64,
    /// The middle.
    pub(crate) median: f64,
    /// A quarter of the values lie above.
    pub(crate) high: f64,
}

impl Spread {
    /// Of these values; all NaN of none.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share| quantile(&sorted, share);
        Spread { low: at(0.25), median: at(0.5), high: at(0.75) }
    }
}

/// The middle value; of an even number, the mean of the two in the middle. NaN of nothing.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    Spread::of(values).median
}

/// The value below which `share` of them lie, between two of them in proportion.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = share * last as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    below + (above - below) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_its_quarters() {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        let expected = Spread { low: 2.0, median: 3.0, high: 4.0 };
        assert_eq!(spread(&[5.0, 1.0, 3.0, 2.0, 4.0]), expected);
        assert_eq!(spread(&[1.0, 2.0]), Spread { low: 1.25, median: 1.5, high: 1.75 });
        assert_eq!(spread(&[7.0]), Spread { low: 7.0, median: 7.0, high: 7.0 });
        assert!(median([].into_iter()).is_nan());
    }
}
