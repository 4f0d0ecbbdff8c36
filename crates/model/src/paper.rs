//! Numbers of any size and their quotients, as one works them out on paper. A result is read as a
//! decimal number, so that the float is the nearest one.

/// Digits are three decimal places each.
const BASE: i128 = 1000;

/// A number that is not negative: its digits, the lowest first, none of them wasted on zeros.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PaperNumber(Vec<i128>);

impl PaperNumber {
    pub(super) fn new(n: u128) -> PaperNumber {
        let mut rest = n;
        let mut digits = Vec::new();
        while rest > 0 {
            digits.push((rest % BASE as u128) as i128);
            rest /= BASE as u128;
        }
        PaperNumber(digits)
    }

    /// Makes digits of the sums that stand in each column.
    fn carried(columns: Vec<i128>) -> PaperNumber {
        let (mut digits, mut carry) = (Vec::new(), 0);
        for column in columns {
            digits.push((column + carry).rem_euclid(BASE));
            carry = (column + carry).div_euclid(BASE);
        }
        assert!(carry >= 0, "no number here is negative");
        while carry > 0 {
            digits.push(carry % BASE);
            carry /= BASE;
        }
        while digits.last() == Some(&0) {
            digits.pop();
        }
        PaperNumber(digits)
    }

    /// The digit in a column; 0 left of the first.
    fn digit(&self, column: usize) -> i128 {
        self.0.get(column).copied().unwrap_or(0)
    }

    pub(super) fn plus(&self, other: &PaperNumber) -> PaperNumber {
        let columns = self.0.len().max(other.0.len());
        PaperNumber::carried((0..columns).map(|c| self.digit(c) + other.digit(c)).collect())
    }

    /// Less a number that is not larger.
    pub(super) fn minus(&self, other: &PaperNumber) -> PaperNumber {
        let columns = self.0.len().max(other.0.len());
        PaperNumber::carried((0..columns).map(|c| self.digit(c) - other.digit(c)).collect())
    }

    pub(super) fn times(&self, other: &PaperNumber) -> PaperNumber {
        let mut columns = vec![0; self.0.len() + other.0.len()];
        for (i, a) in self.0.iter().enumerate() {
            for (j, b) in other.0.iter().enumerate() {
                columns[i + j] += a * b;
            }
        }
        PaperNumber::carried(columns)
    }

    /// The nearest float.
    pub(super) fn float(&self) -> f64 {
        let digits = self.0.iter().rev().map(|digit| format!("{digit:03}"));
        format!("0{}", digits.collect::<String>()).parse().expect("a decimal number")
    }
}

/// Decimal places after which a quotient is told from the middle of two floats: such a middle has
/// fewer, or is further away.
const PLACES: usize = 150;

/// The float nearest to `a / b`.
pub(super) fn quotient(a: u128, b: u64) -> f64 {
    let b = u128::from(b);
    let mut text = format!("{}.", a / b);
    let mut rest = a % b;
    for _ in 0..PLACES {
        rest *= 10;
        text += &(rest / b).to_string();
        rest %= b;
    }
    text.parse().expect("a decimal number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_paper() {
        for (a, b) in [(0, 0), (1, 0), (999, 1), (1000, 999), (u64::MAX.into(), u64::MAX.into())] {
            let (x, y) = (PaperNumber::new(a), PaperNumber::new(b));
            assert_eq!(x.plus(&y), PaperNumber::new(a + b));
            assert_eq!(x.times(&y), PaperNumber::new(a * b));
            assert_eq!(x.minus(&y), PaperNumber::new(a - b));
            assert_eq!(x.times(&y).float(), (a * b) as f64);
        }
        let most = PaperNumber::new(u128::MAX);
        assert_eq!(most.times(&most).float(), 2f64.powi(256));
    }

    #[test]
    fn quotients_are_the_nearest_floats() {
        for (a, b, want) in [
            (0, 7, 0.0),
            (1, 3, 1.0 / 3.0),
            (65_022_366_840_000_000_000, 1_000_000_000, 65_022_366_840.0),
            ((1 << 54) + 2, 2, (1u64 << 53) as f64),
            ((1 << 54) + 3, 2, ((1u64 << 53) + 2) as f64),
            (u128::MAX, 1, 2f64.powi(128)),
            (1, u64::MAX, 2f64.powi(-64)),
        ] {
            assert_eq!(quotient(a, b), want, "{a} / {b}");
        }
    }
}
