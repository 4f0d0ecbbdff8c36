//! Variances of the naive model.
//!
//! Of integers, n times the sum of the squares less the square of the sum is worked out without
//! rounding, made a float, and divided by n and by n - 1. Of floats the recurrence that
//! `docs/operators.md` names is followed value by value, since it says how they round.

use super::paper::PaperNumber;

/// The variance of a sample of integers; none of a single one.
pub(super) fn of_integers(values: &[i64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as u128;
    let zero = PaperNumber::new(0);
    let squares = values.iter().fold(zero, |sum, v| {
        let size = PaperNumber::new(v.unsigned_abs().into());
        sum.plus(&size.times(&size))
    });
    let sum = values.iter().map(|&v| i128::from(v)).sum::<i128>();
    let sum = PaperNumber::new(sum.unsigned_abs());
    let apart = PaperNumber::new(n).times(&squares).minus(&sum.times(&sum));
    Some(apart.float() / n as f64 / (n - 1) as f64)
}

/// How many floats there are, their mean, and the sum of the squared distances from it.
struct Moments {
    n: f64,
    mean: f64,
    squares: f64,
}

/// Welford, "Note on a Method for Calculating Corrected Sums of Squares and Products", 1962.
fn moments(values: &[f64]) -> Moments {
    let mut all = Moments { n: 0.0, mean: 0.0, squares: 0.0 };
    for x in values {
        all.n += 1.0;
        let from_old = x - all.mean;
        all.mean += from_old / all.n;
        let from_new = x - all.mean;
        all.squares += from_old * from_new;
    }
    all
}

/// Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
/// Variances", 1979.
fn united(a: Moments, b: Moments) -> Moments {
    let n = a.n + b.n;
    let (weight, distance) = (b.n / n, b.mean - a.mean);
    Moments {
        n,
        mean: a.mean + distance * weight,
        squares: a.squares + (b.squares + distance * distance * weight * a.n),
    }
}

/// The variance of a sample of floats that came in several parts, of each part for itself and then
/// of one part after the other; none of a single one.
pub(super) fn of_floats(parts: &[Vec<f64>]) -> Option<f64> {
    let parts = parts.iter().filter(|part| !part.is_empty());
    let all = parts.map(|part| moments(part)).reduce(united)?;
    (all.n >= 2.0).then(|| all.squares / (all.n - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: the mean first, then the distances from it.
    fn defined(values: &[f64]) -> f64 {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)
    }

    #[test]
    fn of_few_values() {
        assert_eq!(of_integers(&[1]), None);
        assert_eq!(of_integers(&[1, 2, 3, 4]), Some(5.0 / 3.0));
        assert_eq!(of_integers(&[i64::MAX, i64::MAX - 2]), Some(2.0));
        assert_eq!(of_integers(&[i64::MIN, i64::MAX]), Some(2f64.powi(127)));
        assert_eq!(of_floats(&[vec![], vec![1.5]]), None);
        assert_eq!(of_floats(&[vec![0.5], vec![], vec![2.5]]), Some(2.0));
    }

    proptest! {
        #[test]
        fn what_the_definition_says(
            values in proptest::collection::vec(-1e6f64..1e6, 2..50), cut in 0usize..50,
        ) {
            let (a, b) = values.split_at(cut.min(values.len()));
            let got = of_floats(&[a.to_vec(), b.to_vec()]).expect("two values");
            let want = defined(&values);
            prop_assert!((got - want).abs() <= 1e-9 * want.max(1.0), "{got} for {want}");
            let whole: Vec<i64> = values.iter().map(|v| *v as i64).collect();
            let want = defined(&whole.iter().map(|v| *v as f64).collect::<Vec<_>>());
            let got = of_integers(&whole).expect("two values");
            prop_assert!((got - want).abs() <= 1e-9 * want.max(1.0), "{got} for {want}");
        }
    }
}
