//! Scans of few states: their updates as one number per row.
//!
//! A scan whose states take few values (a flag, the stage of a handshake) is an automaton, and what
//! a row does to it does not depend on the rows before: it is a table from the state before to the
//! state after. So that table is made for all rows of a batch at once, column by column, sixteen
//! states of four bits in a word; what is left to do in order is one shift per row.
//!
//! Which values there are is found by trying: from the initial ones on, each update is simplified
//! with the values put in for the states; where that leaves choices between constants, these are
//! the values after.

use super::fold::{Folder, is_total};
use super::kernels::filter;
use super::{Class, Compiler, Cond, Ctx, Scope, Src, Val};
use weir_packet::bits::Bits;
use weir_packet::limits::BATCH;
use weir_plan::stage::ScanState;
use weir_plan::{BinaryOp, Expr, ExprKind, Func, Type, Value};

/// States of an automaton at most: as many as fit four bits.
pub(crate) const AUTOMATON_STATES: usize = 16;

/// The state that every automaton starts in.
pub(crate) const START: u8 = 0;

/// The states of a scan as the states of one automaton.
pub(crate) struct Automaton {
    /// The word of a row for which every choice falls to its last branch.
    base: u64,
    switches: Vec<Switch>,
    choices: Vec<Choice>,
    outputs: Vec<[Option<u128>; AUTOMATON_STATES]>,
}

/// Choices that only rows with one value in one column change. Most rows have none of the values,
/// so that one look at the column stands for all of them.
struct Switch {
    column: Src,
    /// Of each value the bit that its lowest six bits name.
    values: u64,
    choices: Vec<Choice>,
}

/// The number that a row adds to its word.
enum Choice {
    Add(u64),
    If(Box<(Cond, Choice, Choice)>),
}

impl Automaton {
    /// The automaton of a scan; `None` where its states take many values, or values that are not
    /// constants, or where an update may be undefined.
    pub(crate) fn of(
        states: &[ScanState],
        compiler: &mut Compiler<'_>,
        scope: &Scope,
    ) -> Option<Automaton> {
        let found = ExploredValues::explore(states, compiler)?;
        let (mut base, mut choices) = (0u64, Vec::new());
        for (n, updates) in found.updates.iter().enumerate() {
            for (e, from) in updates {
                let word = |v: &Value| found.word(n, v, from);
                let last = word(last_leaf(e));
                base = base.wrapping_add(last);
                let choice = Choice::new(e, compiler, scope, &|v| word(v).wrapping_sub(last));
                choices.extend(Some(choice).filter(|c| !matches!(c, Choice::Add(0))));
            }
        }
        let outputs = (0..states.len())
            .map(|n| {
                let raw: Vec<_> =
                    found.values[n].iter().map(|v| compiler.raw(v, &states[n].init.ty)).collect();
                std::array::from_fn(|state| raw[state / found.radix[n] % raw.len()])
            })
            .collect();
        let (switches, choices) = switches(choices);
        Some(Automaton { base, switches, choices, outputs })
    }

    /// The transitions of each row of `rows`: four bits for each state before, the state after.
    pub(crate) fn transitions(&self, ctx: &mut Ctx<'_>, rows: Bits, out: &mut [u64; BATCH]) {
        out.fill(self.base);
        for Switch { column, values, choices } in &self.switches {
            let src = ctx.value(&Val::Src(*column), rows);
            let (column, n) = (ctx.column(src), ctx.n);
            let words = column.word();
            let maybe = filter(rows.and(column.present), n, |i| values >> (words[i] & 63) & 1 == 1);
            choices.iter().for_each(|c| c.apply(ctx, maybe, out));
        }
        self.choices.iter().for_each(|c| c.apply(ctx, rows, out));
    }

    /// The value of state `n` of the scan in each state of the automaton, as a column stores it.
    pub(crate) fn output(&self, n: usize) -> &[Option<u128>; AUTOMATON_STATES] {
        &self.outputs[n]
    }
}

impl Choice {
    fn new(
        e: &Expr,
        compiler: &mut Compiler<'_>,
        scope: &Scope,
        word: &dyn Fn(&Value) -> u64,
    ) -> Choice {
        match &e.kind {
            ExprKind::Const(v) => Choice::Add(word(v)),
            ExprKind::If(c, a, b) => Choice::If(Box::new((
                compiler.condition(c, scope),
                Choice::new(a, compiler, scope, word),
                Choice::new(b, compiler, scope, word),
            ))),
            _ => unreachable!("choices() leaves nothing else"),
        }
    }

    /// The column and the value in it of the rows for which this is not nothing, if there is just
    /// one value.
    fn switch(&self) -> Option<(Src, u64)> {
        let Choice::If(parts) = self else { return None };
        match &**parts {
            (
                Cond::CmpConst { op: BinaryOp::Eq, class, a: Val::Src(src), ordered },
                _,
                Choice::Add(0),
            ) if matches!(class, Class::Signed | Class::Unsigned) => {
                Some((*src, class.unordered(*ordered)))
            }
            _ => None,
        }
    }

    fn apply(&self, ctx: &mut Ctx<'_>, rows: Bits, out: &mut [u64; BATCH]) {
        match self {
            Choice::Add(0) => {}
            Choice::Add(word) => rows.each(|i| out[i] = out[i].wrapping_add(*word)),
            Choice::If(parts) => {
                let (cond, then, other) = &**parts;
                let yes = ctx.condition(cond, rows);
                if !yes.is_empty() {
                    then.apply(ctx, yes, out);
                }
                other.apply(ctx, rows.minus(yes), out);
            }
        }
    }
}

/// Takes together the choices by values of one column, and gives back the others.
fn switches(all: Vec<Choice>) -> (Vec<Switch>, Vec<Choice>) {
    let (mut found, mut others): (Vec<Switch>, _) = (Vec::new(), Vec::new());
    for choice in all {
        let Some((column, value)) = choice.switch() else {
            others.push(choice);
            continue;
        };
        let at = found.iter().position(|s| s.column == column).unwrap_or_else(|| {
            found.push(Switch { column, values: 0, choices: Vec::new() });
            found.len() - 1
        });
        found[at].values |= 1 << (value & 63);
        found[at].choices.push(choice);
    }
    // One choice alone looks at the column itself.
    let (found, alone): (Vec<_>, Vec<_>) = found.into_iter().partition(|s| s.choices.len() > 1);
    others.extend(alone.into_iter().flat_map(|s| s.choices));
    (found, others)
}

/// The result of exploring the values of a scan.
struct ExploredValues {
    /// The values that each state takes, the initial one first.
    values: Vec<Vec<Value>>,
    /// The number that a step of each state's value adds to the number of the automaton's state.
    radix: Vec<usize>,
    /// Of each state its updates, as choices between constants, with the states of the automaton in
    /// which each is the one to take.
    updates: Vec<Vec<(Expr, Vec<usize>)>>,
}

impl ExploredValues {
    fn explore(states: &[ScanState], compiler: &Compiler<'_>) -> Option<ExploredValues> {
        let fold =
            |e: &Expr, states: &[Value]| Folder { functions: compiler.functions(), states }.fold(e);
        let start: Option<Vec<Value>> = states
            .iter()
            .map(|s| match fold(&s.init, &[]).kind {
                ExprKind::Const(v) => Some(v),
                _ => None,
            })
            .collect();
        let mut known = vec![start?];
        let mut updates = Vec::new();
        while let Some(before) = known.get(updates.len()) {
            let after: Vec<Expr> =
                states.iter().map(|s| choices(fold(&s.update, before))).collect::<Option<_>>()?;
            for next in products(&after)? {
                if !known.contains(&next) {
                    known.push(next);
                }
            }
            if known.len() > AUTOMATON_STATES {
                return None;
            }
            updates.push(after);
        }
        ExploredValues::number(&known, &updates)
    }

    /// Numbers the states of the automaton.
    fn number(known: &[Vec<Value>], after: &[Vec<Expr>]) -> Option<ExploredValues> {
        let states = known[0].len();
        let mut values: Vec<Vec<Value>> = vec![Vec::new(); states];
        for k in known {
            for (values, v) in values.iter_mut().zip(k) {
                if !values.contains(v) {
                    values.push(v.clone());
                }
            }
        }
        let mut total = 1;
        let radix: Vec<usize> = values
            .iter()
            .map(|v| {
                let radix = total;
                total *= v.len();
                radix
            })
            .collect();
        if total > AUTOMATON_STATES {
            return None;
        }
        let mut found = ExploredValues { values, radix, updates: vec![Vec::new(); states] };
        for (k, after) in known.iter().zip(after) {
            let state: usize = (0..states).map(|n| found.step(n, &k[n])).sum();
            for (n, e) in after.iter().enumerate() {
                let same = found.updates[n].iter_mut().find(|(other, _)| other == e);
                match same {
                    Some((_, from)) => from.push(state),
                    None => found.updates[n].push((e.clone(), vec![state])),
                }
            }
        }
        Some(found)
    }

    /// The number that the value of state `n` adds to the number of the automaton's state.
    fn step(&self, n: usize, v: &Value) -> usize {
        let at = self.values[n].iter().position(|x| x == v).expect("explored");
        at * self.radix[n]
    }

    /// The part of a row's word that says: from these states, state `n` becomes `v`.
    fn word(&self, n: usize, v: &Value, from: &[usize]) -> u64 {
        let step = self.step(n, v) as u64;
        from.iter().map(|state| step << (4 * state)).fold(0, u64::wrapping_add)
    }
}

/// An expression as choices between constants, if it is that and can be evaluated for any row.
fn choices(e: Expr) -> Option<Expr> {
    if !is_total(&e) {
        return None;
    }
    let choose = |c: Expr, a: Expr, b: Expr| Expr {
        ty: a.ty.clone(),
        kind: ExprKind::If(Box::new(c), Box::new(a), Box::new(b)),
    };
    let truth = |b: bool| Expr::constant(Value::Bool(b));
    match e.kind {
        ExprKind::Const(_) => Some(e),
        ExprKind::If(c, a, b) => Some(choose(*c, choices(*a)?, choices(*b)?)),
        _ if e.ty == Type::Bool && e.always_present() => Some(choose(e, truth(true), truth(false))),
        _ if e.ty == Type::Bool => {
            let exists =
                Expr { ty: Type::Bool, kind: ExprKind::Call(Func::Exists, vec![e.clone()]) };
            let absent = Expr { ty: Type::Bool, kind: ExprKind::Const(Value::Absent) };
            Some(choose(exists, choose(e, truth(true), truth(false)), absent))
        }
        _ => None,
    }
}

/// The constants that choices end in.
fn leaves<'e>(e: &'e Expr, out: &mut Vec<&'e Value>) {
    match &e.kind {
        ExprKind::Const(v) if !out.contains(&v) => out.push(v),
        ExprKind::If(_, a, b) => {
            leaves(a, out);
            leaves(b, out);
        }
        _ => {}
    }
}

/// The constant after the last branch.
fn last_leaf(e: &Expr) -> &Value {
    match &e.kind {
        ExprKind::If(_, _, b) => last_leaf(b),
        ExprKind::Const(v) => v,
        _ => unreachable!("choices() leaves nothing else"),
    }
}

/// Every combination of the constants that some choices end in; `None` if there are too many.
fn products(after: &[Expr]) -> Option<Vec<Vec<Value>>> {
    let mut all = vec![Vec::new()];
    for e in after {
        let mut ends = Vec::new();
        leaves(e, &mut ends);
        if all.len() * ends.len() > AUTOMATON_STATES {
            return None;
        }
        all = all
            .iter()
            .flat_map(|start: &Vec<Value>| {
                ends.iter().map(|&v| start.iter().cloned().chain([v.clone()]).collect())
            })
            .collect();
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::Functions;
    use crate::ops::testing::{binary, compare, field, int, state};

    fn states_of(init: Expr, update: Expr) -> Option<usize> {
        let (functions, mut fields) = (Functions::default(), Vec::new());
        let mut compiler = Compiler::new(&functions, &mut fields);
        let states = [ScanState { name: "s".into(), output: 0, init, update }];
        ExploredValues::explore(&states, &compiler).map(|found| found.values[0].len()).inspect(
            |_| {
                let made = Automaton::of(&states, &mut compiler, &Scope::default());
                assert!(made.is_some());
            },
        )
    }

    fn next_below(n: i64) -> Expr {
        let below = compare(BinaryOp::Lt, state(0, Type::Int), int(n));
        let next = binary(BinaryOp::Add, state(0, Type::Int), int(1));
        let kind = ExprKind::If(Box::new(below), Box::new(next), Box::new(int(0)));
        Expr { ty: Type::Int, kind }
    }

    #[test]
    fn few_values_are_found() {
        assert_eq!(states_of(int(0), next_below(4)), Some(5));
        assert_eq!(states_of(int(0), next_below(15)), Some(16));
        assert_eq!(states_of(int(0), next_below(16)), None);
        assert_eq!(states_of(Expr::constant(Value::Bool(false)), field("tcp.syn")), Some(3));
    }

    #[test]
    fn choices_by_one_column_are_one_look() {
        // Forward from 0 to 3 by a port each, back to 0 by any other.
        let both = |a, b| compare(BinaryOp::And, a, b);
        let update = (0..3).fold(int(0), |other, n| {
            let here = compare(BinaryOp::Eq, state(0, Type::Int), int(n));
            let knock = compare(BinaryOp::Eq, field("dport"), int(1000 + n));
            let next = (both(here, knock), int(n + 1), other);
            let kind = ExprKind::If(Box::new(next.0), Box::new(next.1), Box::new(next.2));
            Expr { ty: Type::Int, kind }
        });
        let (functions, mut fields) = (Functions::default(), Vec::new());
        let mut compiler = Compiler::new(&functions, &mut fields);
        let states = [ScanState { name: "s".into(), output: 0, init: int(0), update }];
        let made = Automaton::of(&states, &mut compiler, &Scope::default()).expect("four states");
        assert_eq!((made.switches.len(), made.choices.len()), (1, 0));
        assert_eq!((made.switches[0].values.count_ones(), made.switches[0].choices.len()), (3, 3));
    }

    #[test]
    fn others_are_not_automata() {
        let counter = binary(BinaryOp::Add, state(0, Type::Int), int(1));
        assert_eq!(states_of(int(0), counter), None);
        assert_eq!(states_of(int(0), field("len")), None);
        assert_eq!(states_of(field("len"), int(0)), None);
        let ratio = binary(BinaryOp::Div, int(7), field("ip.ttl"));
        let update = compare(BinaryOp::Gt, ratio, int(1));
        assert_eq!(states_of(Expr::constant(Value::Bool(false)), update), None);
    }
}
