//! Random joins and unions.

use crate::choices::Choices;
use crate::plan::{Rows, SPANS_NS};
use weir_plan::{
    Column, Join, JoinColumn, JoinKind, Schema, Stage, Type, Union, UnionColumn, Value, Within,
};

/// Perhaps a stage that lets these rows meet those of other pipelines, which end as `ends` say.
pub(crate) fn stage(c: &mut Choices, rows: &mut Rows, ends: &[Rows]) -> Option<Stage> {
    match c.below(3) {
        0 => None,
        1 => join(c, rows, ends),
        _ => Some(union(c, rows, ends)),
    }
}

/// A join, if one of two pipelines makes sense.
fn join(c: &mut Choices, rows: &mut Rows, ends: &[Rows]) -> Option<Stage> {
    let right = c.below(ends.len());
    let other = &ends[right];
    let same_time = rows.windowed == other.windowed && (rows.windowed || !rows.timed);
    let within = match (rows.timed && other.timed, same_time) {
        (true, same) if !same || c.below(2) == 0 => {
            let spans = [0, 1, -1].map(|sign| *c.pick(&SPANS_NS) * sign);
            let (a, b) = (*c.pick(&spans), *c.pick(&spans));
            Some(Within { from_ns: a.min(b), to_ns: a.max(b) })
        }
        (_, true) if rows.timed == other.timed => None,
        _ => return None,
    };
    let mut keys = Vec::new();
    for _ in 0..c.below(3) {
        let left = c.below(rows.schema.columns.len());
        let ty = &rows.schema.columns[left].ty;
        let same = (0..other.schema.columns.len()).filter(|&r| other.schema.columns[r].ty == *ty);
        let same: Vec<usize> = same.collect();
        if !same.is_empty() {
            keys.push((left, *c.pick(&same)));
        }
    }
    let kind = *c.pick(&[JoinKind::Inner, JoinKind::Left, JoinKind::Anti]);
    let mut columns = Vec::new();
    let mut schema = other.schema.clone();
    for (from, column) in schema.columns.iter_mut().enumerate() {
        column.name = format!("{}r", rows.fresh());
        if kind != JoinKind::Anti && c.below(4) > 0 {
            let default = (kind == JoinKind::Left && c.once_in(3)).then(|| default(&column.ty));
            rows.schema.columns.push(column.clone());
            columns.push(JoinColumn { from, default: default.flatten() });
        }
    }
    // Pairs are many where keys are few.
    let max_rows = *c.pick(&[60, 20, 3]);
    Some(Stage::Join(Join { kind, right, schema, keys, columns, within, max_rows }))
}

fn default(ty: &Type) -> Option<Value> {
    Some(match ty {
        Type::Bool => Value::Bool(true),
        Type::Int => Value::Int(-7),
        Type::Float => Value::Float(0.5),
        Type::Str => Value::Str("none".into()),
        Type::Time => Value::Time(17),
        Type::Duration => Value::Duration(0),
        _ => return None,
    })
}

fn union(c: &mut Choices, rows: &mut Rows, ends: &[Rows]) -> Stage {
    let others: Vec<usize> = (0..1 + c.below(2)).map(|_| c.below(ends.len())).collect();
    let sides = 1 + others.len();
    let mut columns: Vec<UnionColumn> = Vec::new();
    let own = rows.clone();
    for (side, schema) in
        std::iter::once(&own).chain(others.iter().map(|&n| &ends[n])).map(|r| &r.schema).enumerate()
    {
        for (i, Column { ty, .. }) in schema.columns.iter().enumerate() {
            let free = |u: &UnionColumn| u.ty == *ty && u.from[side].is_none();
            let known = columns.iter_mut().find(|u| free(u)).filter(|_| c.below(4) > 0);
            match known {
                Some(column) => column.from[side] = Some(i),
                None => {
                    let mut from = vec![None; sides];
                    from[side] = Some(i);
                    columns.push(UnionColumn { name: rows.fresh(), ty: ty.clone(), from });
                }
            }
        }
    }
    let all = |f: fn(&Rows) -> bool| f(&own) && others.iter().all(|&n| f(&ends[n]));
    (rows.timed, rows.windowed) = (all(|r| r.timed), all(|r| r.windowed));
    let column = |u: &UnionColumn| Column::new(&u.name, &u.ty);
    rows.schema = Schema { columns: columns.iter().map(column).collect() };
    Stage::Union(Union { others, columns, timed: rows.timed })
}
