//! The range that the result of an operation has, and which operations could fault: user space
//! counts faults, so the kernel must have none.

use crate::value::{NumOp, Range};

/// The range of `-a`; `None` where that could overflow.
pub(crate) fn of_neg(a: Range) -> Option<Range> {
    Range::checked(-i128::from(a.max), -i128::from(a.min))
}

/// The range of `a op b`, or what could happen: a clause without its subject.
pub(crate) fn of_op(op: NumOp, a: Range, b: Range) -> Result<Range, &'static str> {
    let overflow = "could overflow, which user space counts";
    let [a_min, a_max, b_min, b_max] = [a.min, a.max, b.min, b.max].map(i128::from);
    let natural = a.is_natural() && b.is_natural();
    match op {
        NumOp::Add => Range::checked(a_min + b_min, a_max + b_max).ok_or(overflow),
        NumOp::Sub => Range::checked(a_min - b_max, a_max - b_min).ok_or(overflow),
        NumOp::Mul => {
            let corners = [a_min * b_min, a_min * b_max, a_max * b_min, a_max * b_max];
            let min = corners.into_iter().min().unwrap_or(0);
            Range::checked(min, corners.into_iter().max().unwrap_or(0)).ok_or(overflow)
        }
        NumOp::Div | NumOp::Rem if b.min <= 0 && b.max >= 0 => {
            Err("could divide by zero, which user space counts")
        }
        NumOp::Div | NumOp::Rem if !natural => {
            Err("divides numbers that may be negative, which takes Linux 6.6")
        }
        NumOp::Div => Ok(Range { min: a.min / b.max, max: a.max / b.min }),
        NumOp::Rem => Ok(Range { min: 0, max: a.max.min(b.max - 1) }),
        NumOp::And if natural => Ok(Range { min: 0, max: a.max.min(b.max) }),
        NumOp::And if a.is_natural() => Ok(Range { min: 0, max: a.max }),
        NumOp::And if b.is_natural() => Ok(Range { min: 0, max: b.max }),
        NumOp::Or | NumOp::Xor if natural => Ok(Range { min: 0, max: ones(a.max | b.max) }),
        NumOp::And | NumOp::Or | NumOp::Xor => Ok(Range::ALL),
        NumOp::Shl | NumOp::Shr if b.min < 0 || b.max > 63 => {
            Err("could shift by less than 0 or more than 63, which user space counts")
        }
        NumOp::Shl => {
            let (less, more) = (1 << b_min, 1 << b_max);
            let min = a_min * if a_min < 0 { more } else { less };
            let max = a_max * if a_max < 0 { less } else { more };
            Range::checked(min, max).ok_or("could shift bits out, which user space counts")
        }
        NumOp::Shr => Ok(Range { min: a.min.min(0), max: a.max.max(0) }),
        NumOp::Min => Ok(Range { min: a.min.min(b.min), max: a.max.min(b.max) }),
        NumOp::Max => Ok(Range { min: a.min.max(b.min), max: a.max.max(b.max) }),
    }
}

/// All bits up to the highest of a number that is not negative.
fn ones(n: i64) -> i64 {
    match n.leading_zeros() {
        64 => 0,
        zeros => i64::MAX >> (zeros - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGES: [i64; 13] =
        [i64::MIN, i64::MIN + 1, -256, -2, -1, 0, 1, 2, 63, 64, 0xffff, i64::MAX - 1, i64::MAX];

    /// The result that the engine computes; `None` where it faults.
    fn computed(op: NumOp, a: i64, b: i64) -> Option<i64> {
        match op {
            NumOp::Add => a.checked_add(b),
            NumOp::Sub => a.checked_sub(b),
            NumOp::Mul => a.checked_mul(b),
            NumOp::Div => a.checked_div(b),
            NumOp::Rem => (b != 0).then(|| a.wrapping_rem(b)),
            NumOp::And => Some(a & b),
            NumOp::Or => Some(a | b),
            NumOp::Xor => Some(a ^ b),
            NumOp::Shl => match b {
                0..64 => i64::try_from(i128::from(a) << b).ok(),
                _ => None,
            },
            NumOp::Shr => u32::try_from(b).ok().filter(|&b| b < 64).map(|b| a >> b),
            NumOp::Min => Some(a.min(b)),
            NumOp::Max => Some(a.max(b)),
        }
    }

    #[test]
    fn results_lie_in_their_range_and_nothing_faults() {
        use NumOp::*;
        let ranges = || {
            EDGES
                .iter()
                .enumerate()
                .flat_map(|(i, &min)| EDGES[i..].iter().map(move |&max| Range { min, max }))
        };
        let inside = |r: Range| EDGES.iter().copied().filter(move |n| (r.min..=r.max).contains(n));
        let mut offloaded = 0;
        for op in [Add, Sub, Mul, Div, Rem, And, Or, Xor, Shl, Shr, Min, Max] {
            for (a, b) in ranges().flat_map(|a| ranges().map(move |b| (a, b))) {
                let Ok(range) = of_op(op, a, b) else { continue };
                offloaded += 1;
                for (x, y) in inside(a).flat_map(|x| inside(b).map(move |y| (x, y))) {
                    let got = computed(op, x, y);
                    let got = got.unwrap_or_else(|| panic!("{op:?} of {x} and {y} faults"));
                    let fits = (range.min..=range.max).contains(&got);
                    assert!(fits, "{x} {op:?} {y} = {got} is not in {range:?}");
                }
            }
        }
        assert!(offloaded > 1000, "{offloaded}");
    }
}
