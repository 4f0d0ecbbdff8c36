//! `late()`: how many rows needed the lateness.
//!
//! | | |
//! |---|---|
//! | Syntax | `late()`, `late() where condition`; needs `every` |
//! | Counts | rows that were taken although the watermark had passed the end of their window, or of their pane where windows overlap |
//! | Type | int |
//! | Over nothing | 0, as always without `lateness` |
//! | State | 8 bytes a group |
//! | Merge | sum |
//! | Exact? | exact |
//!
//! It is a [`count`](super::count) of rows that [`summarize`](crate::ops::summarize) chooses, who
//! knows how far the watermark was when each row came.

#[cfg(test)]
mod tests {
    use crate::functions::Functions;
    use crate::ops::testing::{agg, summarize};
    use crate::tests::{Frames, check, program};
    use weir_packet::source::LinkType;
    use weir_plan::{AggFunc, Stage, Window};

    #[test]
    fn rows_behind_the_watermark_count() {
        let seconds = [0, 0, 0, 0, 5, 1, 5, 9, 1, 5, 0];
        let frames: Vec<_> = seconds.map(|s| (s * 1_000_000_000, vec![0; 60])).to_vec();
        let aggs = vec![agg(AggFunc::Count, None), agg(AggFunc::Late, None)];
        let Stage::Summarize(mut s) = summarize(&[], aggs, Window::Tumbling(2_000_000_000)) else {
            unreachable!()
        };
        s.lateness_ns = 5_000_000_000;
        let plan = program(vec![Stage::Summarize(s)]);
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        let rows = check(&plan, &Functions::default(), &frames);
        let shown: Vec<_> = rows.iter().map(|r| format!("{} {}", r.1[1], r.1[2])).collect();
        // At 5 the watermark is at 4, past the end of the first window; at 9 it is at 8, past that of
        // the window from 4 on and as far as the first is kept open.
        assert_eq!(shown, ["5 1", "3 1", "1 0"]);
    }
}
