//! Areas on top of one another: how much there was of each kind, and together.

use super::axis::{TimeAxis, ValueAxis};
use super::color::color;
use super::frame::{Axes, Caption, HEIGHT, Unit};
use crate::markup::Markup;

/// The stack of values that is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Stack<'a> {
    pub(crate) caption: Caption<'a>,
    /// The start of the first step.
    pub(crate) from: i64,
    pub(crate) step_ns: i64,
    /// For each kind, from the lowest, its value in each step: all have the same number of steps.
    pub(crate) values: Vec<Vec<f64>>,
}

/// Draws areas.
pub(crate) fn stacked(stack: &Stack<'_>) -> Markup {
    let steps = stack.values.iter().map(Vec::len).max().unwrap_or(0);
    let mut sums = vec![0.0; steps];
    let mut tops: Vec<Vec<f64>> = Vec::new();
    for values in &stack.values {
        sums.iter_mut().zip(values).for_each(|(sum, n)| *sum += n);
        tops.push(sums.clone());
    }
    let end = |i: usize| stack.from.saturating_add(stack.step_ns.saturating_mul(i as i64));
    let axes = Axes {
        times: TimeAxis::new(stack.from, end(steps), stack.caption.zone),
        values: ValueAxis::new(0.0, sums.iter().copied().fold(0.0, f64::max)),
        unit: Unit::Plain,
        top: 10.0,
    };
    let mut m = Markup::default();
    stack.caption.open(&mut m, axes.top + HEIGHT + 26.0);
    axes.draw(&mut m);
    let zeros = vec![0.0; steps];
    for (kind, top) in tops.iter().enumerate() {
        let bottom = kind.checked_sub(1).map_or(&zeros, |below| &tops[below]);
        if top == bottom {
            continue;
        }
        m.raw("<path class=\"area ").raw(color(kind)).raw("\" d=\"");
        edge(&mut m, &axes, (0..steps).map(|i| (end(i), end(i + 1), top[i])), "M");
        edge(&mut m, &axes, (0..steps).rev().map(|i| (end(i + 1), end(i), bottom[i])), "L");
        m.raw("Z\"/>\n");
    }
    m.raw("</svg>\n");
    m
}

/// Draws one edge of an area: a level from one time to another, for each step.
fn edge(
    m: &mut Markup,
    axes: &Axes,
    steps: impl Iterator<Item = (i64, i64, f64)>,
    begin: &'static str,
) {
    let tenths = |n: f64| (n * 10.0).round();
    let mut last: Option<(f64, f64)> = None;
    for (from, to, level) in steps {
        let (x, y, end) = (axes.x(from), axes.y(level), axes.x(to));
        match last {
            None => drop(m.raw(begin).number(x).raw(" ").number(y)),
            Some((_, at)) if tenths(at) == tenths(y) => {}
            Some((before, _)) => drop(m.raw("H").number(before).raw("V").number(y)),
        }
        last = Some((end, y));
    }
    if let Some((end, _)) = last {
        m.raw("H").number(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_lie_on_one_another() {
        let stack = Stack {
            caption: Caption { title: "a < b", about: "two kinds", number: 1, zone: None },
            from: 0,
            step_ns: 1_000_000_000,
            values: vec![vec![1.0, 1.0, 3.0], vec![3.0, 0.0, 1.0], vec![0.0; 3]],
        };
        let svg = stacked(&stack).finish();
        // From 68 to 786 in three steps; 0 is at 200, 4 at 10.
        assert!(svg.contains("d=\"M68 152.5H546.7V57.5H786L786 200H68Z\""), "{svg}");
        assert!(svg.contains("d=\"M68 10H307.3V152.5H546.7V10H786L786 57.5H546.7V152.5H68Z\""));
        assert_eq!(svg.matches("class=\"area").count(), 2);
        assert!(svg.contains("<title id=\"title1\">a &lt; b</title>"));
        let none = Stack { values: Vec::new(), ..stack };
        assert!(stacked(&none).finish().ends_with("</svg>\n"));
    }
}
