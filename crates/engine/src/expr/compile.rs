//! From typed expressions to evaluation trees.

use super::range::{fits, simpler};
use super::set::{Ranges, Strings};
use super::{Arith, Branch, Class, Cond, Convert, Regs, Src, Val};
use crate::functions::Functions;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_packet::limits::BATCH;
use weir_plan::{BinaryOp, Expr, ExprKind, Member, Type, UnaryOp, Value};

/// Where the names of an expression are found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// Where each column of the stage's input stands.
    pub columns: Vec<Src>,
    /// Where each state of a scan stands.
    pub states: Vec<Src>,
    /// In rows that came from elsewhere: where the packet fields that came along stand.
    pub carried: Vec<(FieldId, Src)>,
}

/// Builds evaluation trees for one chain: gives out its registers and collects the fields it
/// reads.
pub(crate) struct Compiler<'a> {
    functions: &'a Functions,
    /// The fields that the view must decode, shared by all chains of a worker.
    pub fields: &'a mut Vec<FieldId>,
    /// The registers given out so far.
    pub regs: Regs,
}

impl<'a> Compiler<'a> {
    /// A compiler for a new chain.
    pub(crate) fn new(functions: &'a Functions, fields: &'a mut Vec<FieldId>) -> Compiler<'a> {
        Compiler { functions, fields, regs: Regs::default() }
    }

    /// The registered functions.
    pub(crate) fn functions(&self) -> &'a Functions {
        self.functions
    }

    /// A new register for values of a type.
    pub(crate) fn slot(&mut self, ty: &Type) -> usize {
        self.regs.columns.push(Column::new(ty.repr()));
        self.regs.columns.len() - 1
    }

    /// Where a field will stand once it is asked for.
    pub(crate) fn field(&mut self, id: FieldId, scope: &Scope) -> Src {
        if let Some((_, src)) = scope.carried.iter().find(|(f, _)| *f == id) {
            return *src;
        }
        if id.info().ty.is_text() {
            return Src::Text(self.regs.text_field(id));
        }
        let at = self.fields.iter().position(|f| *f == id).unwrap_or_else(|| {
            self.fields.push(id);
            self.fields.len() - 1
        });
        Src::Field(at)
    }

    fn constant(&mut self, v: &Value, ty: &Type) -> usize {
        let slot = self.slot(ty);
        if let Some(raw) = self.raw(v, ty) {
            (0..BATCH).for_each(|i| self.regs.columns[slot].set_raw(i, raw));
        }
        slot
    }

    /// Compiles an expression whose value is wanted in a column.
    pub(crate) fn value(&mut self, e: &Expr, scope: &Scope) -> Val {
        match &e.kind {
            ExprKind::Const(v) => Val::Src(Src::Slot(self.constant(v, &e.ty))),
            ExprKind::Field(id) => Val::Src(self.field(*id, scope)),
            ExprKind::Column(i) => Val::Src(scope.columns[*i]),
            ExprKind::State(i) => Val::Src(scope.states[*i]),
            ExprKind::Unary(op, a) => self.unary(*op, a, e, scope),
            ExprKind::Binary(op, a, b) => match arith(*op, &a.ty, &e.ty) {
                Some(op) => self.arithmetic(op, a, b, e, scope),
                None => self.boolean(e, scope),
            },
            ExprKind::If(..) => self.cases(e, scope),
            ExprKind::In(..) => self.boolean(e, scope),
            ExprKind::Call(f, args) => self.call(f, args, e, scope),
            ExprKind::Tuple(_) => unreachable!("tuples stand only where they are taken apart"),
        }
    }

    pub(super) fn boolean(&mut self, e: &Expr, scope: &Scope) -> Val {
        Val::Bool { cond: Box::new(self.condition(e, scope)), out: self.slot(&Type::Bool) }
    }

    /// A chain of `if` in the last branch, as one node.
    fn cases(&mut self, e: &Expr, scope: &Scope) -> Val {
        let (mut cases, mut rest) = (Vec::new(), e);
        while let ExprKind::If(c, a, b) = &rest.kind {
            cases.push((self.condition(c, scope), self.branch(a, scope)));
            rest = b;
        }
        let other = Box::new(self.branch(rest, scope));
        Val::Cases { cases, other, out: self.slot(&e.ty) }
    }

    fn branch(&mut self, e: &Expr, scope: &Scope) -> Branch {
        match &e.kind {
            ExprKind::Const(v) => Branch::Const(self.raw(v, &e.ty)),
            _ => Branch::Val(self.value(e, scope)),
        }
    }

    /// A constant as columns store it; texts stay in the arena.
    pub(crate) fn raw(&mut self, v: &Value, ty: &Type) -> Option<u128> {
        self.regs.constant(v, ty)
    }

    /// Arithmetic, by the loop that knows most of the operands.
    fn arithmetic(&mut self, op: Arith, a: &Expr, b: &Expr, e: &Expr, scope: &Scope) -> Val {
        let op = match op {
            Arith::Add if fits(e) => Arith::AddFits,
            Arith::Sub if fits(e) => Arith::SubFits,
            Arith::Mul if fits(e) => Arith::MulFits,
            op => op,
        };
        let turns = matches!(op, Arith::Add | Arith::AddFits | Arith::Mul | Arith::MulFits);
        let (a, k) = match (constant_word(a), constant_word(b)) {
            (_, Some(k)) => (a, k),
            (Some(k), None) if turns => (b, k),
            _ => return self.binary(op, a, b, &e.ty, scope),
        };
        let (op, k) = match op {
            Arith::MulFits if k.is_power_of_two() => (Arith::ShlFits, k.trailing_zeros().into()),
            op => (op, k),
        };
        let a = Box::new(self.value(a, scope));
        Val::BinaryConst { op, a, k, out: self.slot(&e.ty) }
    }

    pub(super) fn binary(
        &mut self,
        op: Arith,
        a: &Expr,
        b: &Expr,
        ty: &Type,
        scope: &Scope,
    ) -> Val {
        Val::Binary {
            op,
            a: Box::new(self.value(a, scope)),
            b: Box::new(self.value(b, scope)),
            out: self.slot(ty),
        }
    }

    fn unary(&mut self, op: UnaryOp, a: &Expr, e: &Expr, scope: &Scope) -> Val {
        let op = match op {
            UnaryOp::Not => return self.boolean(e, scope),
            UnaryOp::Neg if e.ty == Type::Float => Convert::NegF,
            UnaryOp::Neg => Convert::Neg,
            UnaryOp::BitNot => Convert::BitNot,
            UnaryOp::ToFloat => Convert::IntToFloat,
        };
        self.convert(op, a, &e.ty, scope)
    }

    pub(super) fn convert(&mut self, op: Convert, a: &Expr, ty: &Type, scope: &Scope) -> Val {
        Val::Unary { op, a: Box::new(self.value(a, scope)), out: self.slot(ty) }
    }

    /// Compiles a boolean expression whose truth is wanted; absent counts as false.
    pub(crate) fn condition(&mut self, e: &Expr, scope: &Scope) -> Cond {
        match &e.kind {
            ExprKind::Const(Value::Bool(b)) => Cond::Const(*b),
            ExprKind::Const(Value::Absent) => Cond::Const(false),
            ExprKind::Unary(UnaryOp::Not, a) => Cond::Not(Box::new(self.condition(a, scope))),
            ExprKind::Binary(BinaryOp::And, ..) => Cond::And(self.chain(e, BinaryOp::And, scope)),
            ExprKind::Binary(BinaryOp::Or, ..) => Cond::Or(self.chain(e, BinaryOp::Or, scope)),
            ExprKind::Binary(op, a, b) => self.compare(*op, a, b, scope),
            ExprKind::In(a, members) => self.member(a, members, scope),
            ExprKind::If(c, a, b) => Cond::If(Box::new([
                self.condition(c, scope),
                self.condition(a, scope),
                self.condition(b, scope),
            ])),
            ExprKind::Call(f, args) => self.predicate(f, args, e, scope),
            _ => Cond::Truth(Box::new(self.value(e, scope))),
        }
    }

    /// `a and b and c` as one list, so that each narrows the rows for the next.
    fn chain(&mut self, e: &Expr, op: BinaryOp, scope: &Scope) -> Vec<Cond> {
        match &e.kind {
            ExprKind::Binary(o, a, b) if *o == op => {
                let mut all = self.chain(a, op, scope);
                all.extend(self.chain(b, op, scope));
                all
            }
            _ => vec![self.condition(e, scope)],
        }
    }

    fn compare(&mut self, op: BinaryOp, a: &Expr, b: &Expr, scope: &Scope) -> Cond {
        if let (ExprKind::Tuple(x), ExprKind::Tuple(y)) = (&a.kind, &b.kind) {
            let pairs: Vec<_> = flat(x).into_iter().zip(flat(y)).collect();
            let parts = pairs
                .into_iter()
                .map(|(x, y)| (Class::of(&x.ty), self.value(x, scope), self.value(y, scope)))
                .collect();
            return Cond::CmpTuple { op, parts };
        }
        let class = Class::of(&a.ty);
        match (constant_word(a), constant_word(b)) {
            (_, Some(word)) => self.compare_const(op, class, a, word, scope),
            (Some(word), None) => self.compare_const(op.mirrored(), class, b, word, scope),
            (None, None) => {
                Cond::Cmp { op, class, a: self.value(a, scope), b: self.value(b, scope) }
            }
        }
    }

    fn compare_const(
        &mut self,
        op: BinaryOp,
        class: Class,
        a: &Expr,
        word: u64,
        scope: &Scope,
    ) -> Cond {
        if class != Class::Signed {
            return Cond::CmpConst {
                op,
                class,
                a: self.value(a, scope),
                ordered: class.ordered(word),
            };
        }
        let (op, a, k) = simpler(op, a, word as i64);
        if let ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, x, y) = &a.kind
            && fits(a)
            && constant_word(x).is_none()
            && constant_word(y).is_none()
        {
            let arith = match &a.kind {
                ExprKind::Binary(BinaryOp::Add, ..) => Arith::AddFits,
                ExprKind::Binary(BinaryOp::Sub, ..) => Arith::SubFits,
                _ => Arith::MulFits,
            };
            return Cond::CmpArith {
                op,
                arith,
                a: self.value(x, scope),
                b: self.value(y, scope),
                k,
            };
        }
        let (a, ordered) = (self.value(a, scope), class.ordered(k as u64));
        Cond::CmpConst { op, class, a, ordered }
    }

    fn member(&mut self, a: &Expr, members: &[Member], scope: &Scope) -> Cond {
        if let ExprKind::Tuple(parts) = &a.kind {
            let members = members
                .iter()
                .map(|m| match m {
                    Member::Value(v) => flat_value(v),
                    other => unreachable!("{other:?} in a set of tuples"),
                })
                .collect();
            let parts = flat(parts).into_iter().map(|p| self.value(p, scope)).collect();
            return Cond::InTuples { parts, members };
        }
        let class = Class::of(&a.ty);
        let value = self.value(a, scope);
        match class {
            Class::Text => Cond::InStrings { a: value, set: Strings::new(members) },
            _ => Cond::InRanges { class, a: value, ranges: Ranges::new(class, members) },
        }
    }
}

/// The parts of a tuple, tuples within taken apart.
pub(crate) fn flat(parts: &[Expr]) -> Vec<&Expr> {
    parts
        .iter()
        .flat_map(|p| match &p.kind {
            ExprKind::Tuple(inner) => flat(inner),
            _ => vec![p],
        })
        .collect()
}

fn flat_value(v: &Value) -> Vec<Value> {
    match v {
        Value::Tuple(parts) => parts.iter().flat_map(flat_value).collect(),
        v => vec![v.clone()],
    }
}

fn constant_word(e: &Expr) -> Option<u64> {
    match &e.kind {
        ExprKind::Const(Value::Int(n) | Value::Time(n) | Value::Duration(n)) => Some(*n as u64),
        ExprKind::Const(Value::Float(f)) => Some(Value::float_bits(*f)),
        ExprKind::Const(Value::Mac(m)) => Some(*m),
        _ => None,
    }
}

/// The kernel of an arithmetic operator; `None` for comparisons and logic.
fn arith(op: BinaryOp, left: &Type, result: &Type) -> Option<Arith> {
    let float = *left == Type::Float;
    Some(match op {
        BinaryOp::Add if float => Arith::AddF,
        BinaryOp::Sub if float => Arith::SubF,
        BinaryOp::Mul if float => Arith::MulF,
        BinaryOp::Div if float => Arith::DivF,
        BinaryOp::Div if *result == Type::Float => Arith::Ratio,
        BinaryOp::Add => Arith::Add,
        BinaryOp::Sub => Arith::Sub,
        BinaryOp::Mul => Arith::Mul,
        BinaryOp::Div => Arith::Div,
        BinaryOp::Rem => Arith::Rem,
        BinaryOp::BitAnd => Arith::And,
        BinaryOp::BitOr => Arith::Or,
        BinaryOp::BitXor => Arith::Xor,
        BinaryOp::Shl => Arith::Shl,
        BinaryOp::Shr => Arith::Shr,
        _ => return None,
    })
}
