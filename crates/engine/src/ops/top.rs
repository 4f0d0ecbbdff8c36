//! `top`: the first `N` rows in a given order.
//!
//! | | |
//! |---|---|
//! | Syntax | `top N by EXPR [asc], …`; largest first unless `asc` |
//! | Emits | of windowed rows when their window has closed; else at the end of the input |
//! | Order | as asked for; ties in the order that rows came; absent values last |
//! | State | at most `2 N + 1024` rows a window |
//! | Full | cannot be: worse rows make room |
//! | Late | its input has no late rows |
//! | Merge | runs after the rows of all workers are merged |
//! | Exact? | exact |

use super::Batch;
use crate::expr::{Src, Val};
use crate::limits::TOP_SLACK;
use crate::rows::{Rows, cell, set_cell};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use weir_packet::bits::Bits;
use weir_packet::limits::BATCH;
use weir_plan::{Order, Schema, Type, Value};

/// Holds the best rows of each open window back.
pub struct Top {
    n: usize,
    by: Vec<(Val, Type, Order)>,
    /// Where the columns to put out stand.
    columns: Vec<Src>,
    windowed: bool,
    /// Rows held, by window start; all under 0 without windows.
    held: BTreeMap<i64, Held>,
    schema: Schema,
    rows: Rows,
    emitted: u64,
}

#[derive(Default)]
struct Held {
    rows: Vec<Row>,
    /// Whether `rows[n - 1]` is the worst row worth holding.
    cut: bool,
}

struct Row {
    by: Vec<Value>,
    order: u64,
    time: Value,
    cells: Vec<Value>,
}

impl Top {
    /// The best `n` rows by `by`.
    pub fn new(
        n: u64,
        by: Vec<(Val, Type, Order)>,
        windowed: bool,
        columns: Vec<Src>,
        schema: Schema,
    ) -> Top {
        Top {
            n: usize::try_from(n).unwrap_or(usize::MAX),
            by,
            columns,
            windowed,
            held: BTreeMap::new(),
            rows: Rows::new(&schema),
            schema,
            emitted: 0,
        }
    }

    /// Whether each window is sorted by itself, so that rows leave before the end of the input.
    pub fn is_windowed(&self) -> bool {
        self.windowed
    }

    /// Takes rows in.
    pub fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        if self.n == 0 || rows.is_empty() {
            return;
        }
        let srcs: Vec<Src> = self.by.iter().map(|(v, ..)| batch.ctx.value(v, rows)).collect();
        for &src in &self.columns {
            batch.ctx.value(&Val::Src(src), rows);
        }
        let time = batch.ctx.value(&Val::Src(batch.time), rows);
        let directions: Vec<Order> = self.by.iter().map(|b| b.2).collect();
        let ctx = &batch.ctx;
        for i in rows.iter() {
            let time = cell(ctx.column(time), i, &Type::Time, &ctx.regs.arena);
            let window = match time {
                Value::Time(t) if self.windowed => t,
                _ => 0,
            };
            let held = self.held.entry(window).or_default();
            let by: Vec<Value> = srcs
                .iter()
                .zip(&self.by)
                .map(|(&s, (_, ty, _))| cell(ctx.column(s), i, ty, &ctx.regs.arena))
                .collect();
            let order = batch.order[i];
            if held.cut && better(&directions, &held.rows[self.n - 1], &by, order).is_le() {
                continue;
            }
            let cells = self.columns.iter().zip(&self.schema.columns);
            let cells =
                cells.map(|(&s, c)| cell(ctx.column(s), i, &c.ty, &ctx.regs.arena)).collect();
            held.rows.push(Row { by, order, time, cells });
            if held.rows.len() >= self.n.saturating_mul(2).saturating_add(TOP_SLACK) {
                held.cut_to(self.n, &directions);
            }
        }
    }

    /// Puts out the windows that no further row can fall into: those before `watermark`.
    pub fn watermark(&mut self, watermark: i64, out: &mut dyn FnMut(&Rows)) {
        if !self.windowed {
            return;
        }
        while let Some(entry) = self.held.first_entry() {
            if *entry.key() >= watermark {
                break;
            }
            let held = entry.remove();
            self.emit(held, out);
        }
    }

    /// Puts everything out.
    pub fn finish(&mut self, out: &mut dyn FnMut(&Rows)) {
        while let Some((_, held)) = self.held.pop_first() {
            self.emit(held, out);
        }
    }

    fn emit(&mut self, mut held: Held, out: &mut dyn FnMut(&Rows)) {
        let directions: Vec<Order> = self.by.iter().map(|b| b.2).collect();
        held.cut_to(self.n, &directions);
        for chunk in held.rows.chunks(BATCH) {
            let rows = &mut self.rows;
            rows.len = chunk.len();
            rows.arena.truncate(0);
            rows.order.clear();
            rows.order.extend((self.emitted..).take(chunk.len()));
            self.emitted += chunk.len() as u64;
            rows.clock.clear();
            rows.clock.extend(chunk.iter().map(|row| match row.time {
                Value::Time(t) => t,
                _ => 0,
            }));
            for (i, row) in chunk.iter().enumerate() {
                for (column, v) in rows.columns.iter_mut().zip(&row.cells) {
                    set_cell(column, i, v, &mut rows.arena);
                }
                set_cell(&mut rows.time, i, &row.time, &mut rows.arena);
            }
            out(rows);
        }
    }
}

impl Held {
    /// Keeps the best `n` rows, sorted.
    fn cut_to(&mut self, n: usize, directions: &[Order]) {
        self.rows.sort_by(|a, b| better(directions, a, &b.by, b.order));
        self.rows.truncate(n);
        self.cut = self.rows.len() == n;
    }
}

/// `Less` if `a` comes before the row with keys `by` and number `order`.
fn better(directions: &[Order], a: &Row, by: &[Value], order: u64) -> Ordering {
    for ((x, y), direction) in a.by.iter().zip(by).zip(directions) {
        let ordering = match (x.exists(), y.exists(), direction) {
            (true, true, Order::Ascending) => x.cmp(y),
            (true, true, Order::Descending) => y.cmp(x),
            (x, y, _) => y.cmp(&x),
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    a.order.cmp(&order)
}

#[cfg(test)]
mod tests {
    use crate::conform::check_stages;
    use crate::ops::testing::{agg, field, project, summarize};
    use weir_plan::{AggFunc, Expr, Order, SortKey, Stage, Type, Window};

    fn top(n: u64, by: Expr, order: Order, windowed: bool) -> Stage {
        Stage::Top { n, by: vec![SortKey { expr: by, order }], windowed }
    }

    #[test]
    fn the_best_rows_of_all() {
        let rows = |order| {
            check_stages(vec![top(2, field("dport"), order, false), project(&["number", "dport"])])
        };
        assert_eq!(rows(Order::Descending), ["3 40000", "6 40000"]);
        assert_eq!(rows(Order::Ascending), ["1 80", "2 80"]);
    }

    #[test]
    fn absent_values_come_last() {
        for order in [Order::Ascending, Order::Descending] {
            let rows =
                check_stages(vec![top(100, field("dport"), order, false), project(&["number"])]);
            assert_eq!(rows[40], "41");
        }
    }

    #[test]
    fn the_best_rows_of_each_window() {
        let rows = check_stages(vec![
            summarize(&["dport"], vec![agg(AggFunc::Count, None)], Window::Tumbling(2_000_000_000)),
            top(1, Expr::column(2, Type::Int), Order::Descending, true),
        ]);
        assert_eq!(
            rows,
            [
                "1970-01-01T00:00:00Z 80 14",
                "1970-01-01T00:00:02Z 80 13",
                "1970-01-01T00:00:04Z absent 1",
            ]
        );
    }
}
