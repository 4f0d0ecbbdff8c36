//! Which columns of rows tell what a row is about, and which say something of it.

use crate::alert::Alert;
use crate::expr::ExprKind;
use crate::program::{Input, Program};
use crate::schema::Schema;
use crate::stage::Stage;

/// Columns of an alert that tell it from others.
const OF_ALERTS: [&str; 4] = ["alert.rule", "alert.state", "alert.severity", "alert.key"];

impl Program {
    /// The positions of the columns of a pipeline that are keys: those of its last `summarize`, as
    /// far as they are still columns, also under another name; of alerts also the rule, the state,
    /// the severity and the key.
    pub fn row_keys(&self, pipeline: usize) -> Vec<usize> {
        let names = self.key_names(pipeline);
        let Some(pipeline) = self.pipelines.get(pipeline) else { return Vec::new() };
        let columns = pipeline.schema.columns.iter().enumerate();
        columns.filter(|(_, column)| names.contains(&column.name)).map(|(at, _)| at).collect()
    }

    fn key_names(&self, number: usize) -> Vec<String> {
        let Some(pipeline) = self.pipelines.get(number) else { return Vec::new() };
        let (mut keys, mut schema) = match pipeline.input {
            // A pipeline reads earlier ones only.
            Input::Pipeline(n) if n < number => {
                (self.key_names(n), self.pipelines[n].schema.clone())
            }
            _ => (Vec::new(), Schema::default()),
        };
        for stage in &pipeline.stages {
            keys = after(stage, keys, &schema);
            schema = stage.output(&schema);
        }
        keys
    }
}

/// The names of keys after a stage.
fn after(stage: &Stage, mut keys: Vec<String>, input: &Schema) -> Vec<String> {
    match stage {
        Stage::Summarize(s) => s.keys.iter().map(|(name, _)| name.clone()).collect(),
        Stage::Project { columns } | Stage::Reshape { columns, .. } => {
            let is_key = |kind: &ExprKind| match kind {
                ExprKind::Column(at) => {
                    input.columns.get(*at).is_some_and(|column| keys.contains(&column.name))
                }
                _ => false,
            };
            let kept = columns.iter().filter(|(_, e)| is_key(&e.kind));
            kept.map(|(name, _)| name.clone()).collect()
        }
        Stage::Extend { columns } => {
            keys.retain(|key| columns.iter().all(|(name, ..)| name != key));
            keys
        }
        Stage::Alert(_) => {
            debug_assert!(OF_ALERTS.iter().all(|name| Alert::makes(name)));
            OF_ALERTS.iter().map(|name| (*name).to_owned()).chain(keys).collect()
        }
        _ => keys,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Expr;
    use crate::program::Pipeline;
    use crate::stage::{Summarize, Window};
    use crate::types::Type;
    use weir_packet::fields::by_name;

    fn pipeline(input: Input, stages: Vec<Stage>, before: &Schema) -> Pipeline {
        let schema = stages.iter().fold(before.clone(), |schema, stage| stage.output(&schema));
        Pipeline { name: None, input, stages, schema, printed: true }
    }

    #[test]
    fn keys_keep_their_meaning_under_other_names() {
        let field = |name: &str| Expr::field(by_name(name).expect("a field"));
        let keys = ["ip.src", "dport"].map(|name| (name.to_owned(), field(name))).to_vec();
        let groups = pipeline(
            Input::Packets,
            vec![Stage::Summarize(Summarize {
                keys,
                aggs: Vec::new(),
                window: Window::Tumbling(1_000_000_000),
                lateness_ns: 0,
                fill: None,
                until: None,
                unless: None,
                zone: None,
                max_groups: 1,
            })],
            &Schema::default(),
        );
        let column = |name: &str, at, ty| (name.to_owned(), Expr::column(at, ty));
        let columns = vec![
            column("when", 0, Type::Time),
            column("port", 2, Type::Int),
            ("one".to_owned(), Expr::constant(crate::Value::Int(1))),
        ];
        let named = pipeline(Input::Pipeline(0), vec![Stage::Project { columns }], &groups.schema);
        let replaced = vec![("port".to_owned(), 1, Expr::constant(crate::Value::Int(2)))];
        let none =
            pipeline(Input::Pipeline(1), vec![Stage::Extend { columns: replaced }], &named.schema);
        let program = Program::of(vec![groups, named, none]);
        assert_eq!(program.row_keys(0), [1, 2]);
        assert_eq!(program.row_keys(1), [1]);
        assert_eq!(program.row_keys(2), Vec::<usize>::new());
        assert_eq!(program.row_keys(9), Vec::<usize>::new());
    }
}
