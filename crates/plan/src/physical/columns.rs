//! Which columns are read after a node.

use super::plan::{Node, Work};
use crate::expr::{Expr, ExprKind};
use crate::stage::Stage;
use std::collections::BTreeSet;

/// The columns of the rows that come to the first of these nodes which they read at most, by
/// position; `None` where rows may go on with all of their columns.
pub fn columns_read(nodes: &[Node]) -> Option<BTreeSet<usize>> {
    let mut read = BTreeSet::new();
    let mut note = |e: &Expr| {
        e.visit(&mut |e| {
            if let ExprKind::Column(at) = e.kind {
                read.insert(at);
            }
        });
    };
    for node in nodes {
        match &node.work {
            Work::Partial(s) | Work::Stage(Stage::Summarize(s)) => {
                s.for_each_expr(&mut note);
                return Some(read);
            }
            Work::Stage(stage @ (Stage::Project { .. } | Stage::Reshape { .. })) => {
                stage.for_each_expr(&mut note);
                return Some(read);
            }
            // Each column keeps its position.
            Work::Stage(
                stage @ (Stage::Where(_)
                | Stage::Extend { .. }
                | Stage::Scan(_)
                | Stage::Distinct(_)
                | Stage::Deduplicate(_)
                | Stage::AnalyzeTcp(_)),
            ) => stage.for_each_expr(&mut note),
            Work::Stage(_) | Work::Final(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physical::{LevelKind, Physical};
    use crate::program::{Input, Pipeline, Program};
    use crate::schema::Schema;
    use crate::types::Type;
    use weir_packet::fields::by_name;

    fn column(at: usize) -> Expr {
        Expr::column(at, Type::Int)
    }

    /// Checks which columns are read of the `a`, `b` and `c` that the first stage makes.
    fn check(later: Vec<Stage>, expected: Option<&[usize]>) {
        let len = || Expr::field(by_name("len").expect("a field"));
        let made = ["a", "b", "c"].iter().enumerate();
        let columns = made.map(|(at, name)| ((*name).to_owned(), at, len())).collect();
        let stages: Vec<Stage> = [Stage::Extend { columns }].into_iter().chain(later).collect();
        let schema = stages.iter().fold(Schema::default(), |s, stage| stage.output(&s));
        let pipeline =
            Pipeline { name: None, input: Input::Packets, stages, schema, printed: true };
        let plan = Physical::new(&Program { pipelines: vec![pipeline], ..Program::default() }, &[]);
        let level = plan.level(LevelKind::Worker).expect("packets are taken there");
        let read = columns_read(&level.fragments[0].nodes[1..]);
        assert_eq!(read, expected.map(|at| at.iter().copied().collect()));
    }

    fn project(at: &[usize]) -> Stage {
        let one = |&at: &usize| (format!("c{at}"), column(at));
        Stage::Project { columns: at.iter().map(one).collect() }
    }

    #[test]
    fn what_a_project_keeps_is_read() {
        check(vec![project(&[2])], Some(&[2]));
        let replaced = vec![("a".to_owned(), 0, column(1))];
        check(vec![Stage::Extend { columns: replaced }, project(&[0])], Some(&[0, 1]));
        // The stages after it have other columns.
        check(vec![project(&[1]), project(&[0])], Some(&[1]));
    }

    #[test]
    fn rows_that_leave_have_all_columns() {
        check(vec![], None);
        let same = Expr { ty: Type::Bool, ..column(0) };
        check(vec![Stage::Where(same)], None);
        check(vec![Stage::Limit(1), project(&[1])], None);
    }
}
