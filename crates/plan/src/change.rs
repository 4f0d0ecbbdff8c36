//! Programs that come and go while others run: what of them goes on, and where it was before.
//!
//! A stage goes on with what it holds if it is the same stage, after the same stages, over the
//! same pipelines: then what it holds is what it would hold had the new program run from the
//! beginning.

use crate::program::{Pipeline, Program};
use crate::stage::Stage;

/// Where a pipeline goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Continued {
    /// The number of the pipeline that it was before.
    pub pipeline: usize,
    /// So many of its first stages are the same.
    pub stages: usize,
}

/// Programs that run together, by name, in the order of their pipelines.
pub type Named = [(String, Program)];

/// Of each pipeline of programs that run together from now on ([side by
/// side](crate::together::side_by_side)) where it goes on, if it does: in the program of its name
/// among those that ran together until now.
pub fn continued(before: &Named, now: &Named) -> Vec<Option<Continued>> {
    let mut first = 0;
    let firsts = before.iter().map(|(_, program)| {
        first += program.pipelines.len();
        first - program.pipelines.len()
    });
    let firsts: Vec<usize> = firsts.collect();
    let of = |(name, program): &(String, Program)| {
        let at = before.iter().position(|(other, _)| other == name);
        let Some(at) = at else { return vec![None; program.pipelines.len()] };
        let there = |c: Continued| Continued { pipeline: firsts[at] + c.pipeline, ..c };
        within(&before[at].1, program).into_iter().map(|c| c.map(there)).collect()
    };
    now.iter().flat_map(of).collect()
}

/// The same within one program, by its own numbers.
fn within(before: &Program, now: &Program) -> Vec<Option<Continued>> {
    let mut found: Vec<Option<Continued>> = vec![None; now.pipelines.len()];
    // Stages that stay what they are take what is theirs before others look for something alike.
    for whole_only in [true, false] {
        for (p, pipeline) in now.pipelines.iter().enumerate() {
            if found[p].is_some() {
                continue;
            }
            let taken = |q: usize| found.iter().flatten().any(|c| c.pipeline == q);
            let free = before.pipelines.iter().enumerate().filter(|(q, _)| !taken(*q));
            let alike = free.filter_map(|(q, other)| {
                let stages = same_stages(other, pipeline, before, now, &found)?;
                let whole = stages == other.stages.len() && stages == pipeline.stages.len();
                let names = other.name == pipeline.name;
                (whole || !whole_only && stages > 0).then_some((stages, names, q))
            });
            // Of equally good ones the first.
            let best = alike.max_by_key(|&(stages, names, q)| (stages, names, usize::MAX - q));
            found[p] = best.map(|(stages, _, pipeline)| Continued { pipeline, stages });
        }
    }
    found
}

/// How many first stages two pipelines have in common, if their rows come from the same place.
fn same_stages(
    old: &Pipeline,
    new: &Pipeline,
    before: &Program,
    now: &Program,
    found: &[Option<Continued>],
) -> Option<usize> {
    // The number that a source had before; `usize::MAX` where it is not the same any more.
    let was = |p: usize| {
        let whole = |c: &Continued| {
            let all = before.pipelines[c.pipeline].stages.len();
            c.stages == all && now.pipelines[p].stages.len() == all
        };
        found[p].filter(whole).map_or(usize::MAX, |c| c.pipeline)
    };
    let mut new = new.clone();
    new.renumber(was);
    let alike = |(a, b): &(&Stage, &Stage)| a == b;
    let common = old.stages.iter().zip(&new.stages).take_while(alike).count();
    (old.input == new.input).then_some(common)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Input;
    use crate::stage::Schema;
    use crate::{Union, UnionColumn};
    use std::slice::from_ref;

    fn pipeline(name: Option<&str>, input: Input, limits: &[u64]) -> Pipeline {
        let stages = limits.iter().map(|&n| Stage::Limit(n)).collect();
        let name = name.map(str::to_owned);
        Pipeline { name, input, stages, schema: Schema::default(), printed: true }
    }

    fn check(before: &[Pipeline], now: &[Pipeline], expected: &[Option<(usize, usize)>]) {
        let [before, now] = [before, now].map(|all| Program::of(all.to_vec()));
        let found = within(&before, &now);
        let found: Vec<_> = found.iter().map(|c| c.map(|c| (c.pipeline, c.stages))).collect();
        assert_eq!(found, expected);
    }

    use Input::{Packets, Pipeline as From};

    #[test]
    fn stages_go_on_up_to_the_first_that_changed() {
        let old = pipeline(None, Packets, &[1, 2, 3]);
        check(from_ref(&old), from_ref(&old), &[Some((0, 3))]);
        check(from_ref(&old), &[pipeline(None, Packets, &[1, 2, 4])], &[Some((0, 2))]);
        check(from_ref(&old), &[pipeline(None, Packets, &[1])], &[Some((0, 1))]);
        check(from_ref(&old), &[pipeline(None, Packets, &[2, 2, 3])], &[None]);
        check(from_ref(&old), &[pipeline(None, From(0), &[1, 2, 3])], &[None]);
    }

    #[test]
    fn pipelines_are_found_where_others_came_or_went() {
        let (a, b) = (pipeline(None, Packets, &[1, 2]), pipeline(Some("b"), Packets, &[1, 3]));
        check(&[a.clone(), b.clone()], &[b.clone(), a.clone()], &[Some((1, 2)), Some((0, 2))]);
        check(&[a.clone(), b.clone()], from_ref(&b), &[Some((1, 2))]);
        // Not the first, which another one still is; of those left the one of its name.
        let near = pipeline(Some("b"), Packets, &[1, 4]);
        check(&[a.clone(), b.clone()], &[near.clone(), a.clone()], &[Some((1, 1)), Some((0, 2))]);
        check(&[a, b], &[near], &[Some((1, 1))]);
    }

    #[test]
    fn what_changed_is_not_gone_on_with_behind_it() {
        let old = [pipeline(None, Packets, &[1]), pipeline(None, From(0), &[2])];
        let more = [old[0].clone(), pipeline(None, Packets, &[9]), pipeline(None, From(0), &[2])];
        check(&old, &more, &[Some((0, 1)), None, Some((1, 1))]);
        let other = [pipeline(None, Packets, &[1, 1]), pipeline(None, From(0), &[2])];
        check(&old, &other, &[Some((0, 1)), None]);
    }

    #[test]
    fn both_sides_of_a_union_must_go_on() {
        let union = |other| {
            let column = UnionColumn { name: "n".into(), ty: crate::Type::Int, from: Vec::new() };
            let union = Union { others: vec![other], columns: vec![column], timed: false };
            let mut pipeline = pipeline(None, From(0), &[]);
            pipeline.stages.push(Stage::Union(union));
            pipeline
        };
        let [a, b, c] = [1, 2, 3].map(|n| pipeline(None, Packets, &[n]));
        let old = [a.clone(), b.clone(), union(1)];
        check(
            &old,
            &[a.clone(), c.clone(), b.clone(), union(2)],
            &[Some((0, 1)), None, Some((1, 1)), Some((2, 1))],
        );
        check(&old, &[a, c, union(1)], &[Some((0, 1)), None, None]);
    }

    #[test]
    fn programs_are_known_by_their_names() {
        let program = |n: u64| {
            Program::of(vec![pipeline(None, Packets, &[n]), pipeline(None, From(0), &[7])])
        };
        let named = |all: &[(&str, u64)]| -> Vec<(String, Program)> {
            all.iter().map(|(name, n)| ((*name).to_owned(), program(*n))).collect()
        };
        let before = named(&[("a", 1), ("b", 1), ("c", 2)]);
        let now = named(&[("c", 2), ("d", 1), ("a", 3)]);
        let at = |pipeline| Some(Continued { pipeline, stages: 1 });
        assert_eq!(continued(&before, &now), [at(4), at(5), None, None, None, None]);
    }
}
