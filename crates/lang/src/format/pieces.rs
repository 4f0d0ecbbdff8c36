//! Stages and expressions as layouts.

use super::doc::{Doc, align, group, indent, text};
use crate::diagnostic::Span;
use crate::lex::Comment;
use crate::tree::{
    AggItem, Arm, Expr, ExprKind, Item, Member, Pattern, PatternKind, Scan, Sessions, Set, SortKey,
    Stage, Summarize,
};
use weir_plan::{BinaryOp, UnaryOp, Value};

/// How far what belongs to a line is indented below it.
pub(super) const STEP: usize = 4;

/// The width of the pipe before a stage.
const PIPE: usize = 2;

/// Makes layouts. A comment between two parts of a list breaks the list there, so that the comment
/// can stay.
pub(super) struct Pieces<'a> {
    pub(super) comments: &'a [Comment],
}

impl Pieces<'_> {
    /// Whether a comment stands in these bytes.
    fn comment_in(&self, start: usize, end: usize) -> bool {
        let first = self.comments.partition_point(|c| c.span.start < start);
        self.comments.get(first).is_some_and(|c| c.span.start < end)
    }

    /// Whether a comment stands between two neighbours.
    pub(super) fn comment_between(&self, spans: &[Span]) -> bool {
        spans.windows(2).any(|pair| self.comment_in(pair[0].end, pair[1].start))
    }

    pub(super) fn stage(&self, stage: &Stage) -> Doc {
        match stage {
            Stage::Where(e) => Doc::All(vec![text("where "), align(self.expr(e))]),
            Stage::Extend(items) => self.items("extend ", items),
            Stage::Project(items) => self.items("project ", items),
            Stage::ProjectAway(items) => self.items("project-away ", items),
            Stage::Rename(items) => self.items("rename ", items),
            Stage::Summarize(s) => self.summarize(s),
            Stage::Scan(s) => self.scan(s),
            Stage::AnalyzeTcp(a) => self.bounded("analyze tcp", a),
            Stage::Top(top) => self.top(top),
            Stage::Distinct(d) => self.distinct(d),
            Stage::Deduplicate(d) => self.deduplicate(d),
            Stage::Hello(h) => self.bounded("hello", h),
            Stage::Sample(s) => self.sample(s),
            Stage::Each(item) => self.items("each ", std::slice::from_ref(item)),
            Stage::Capture(c) => self.capture(c),
            Stage::Alert(alert) => self.alert(alert),
            Stage::Metric(metric) => self.metric(metric),
            Stage::Limit(n) => Doc::All(vec![text("limit "), self.expr(n)]),
            Stage::Join(join) => self.join(join),
            Stage::Union(names) => self.union(names),
            Stage::Act(act) => self.act(act),
            Stage::Branch(arms) => self.branch(arms),
            Stage::Print => text("print"),
            Stage::Unsupported(_) | Stage::Broken { .. } => {
                unreachable!("a query with mistakes is not formatted")
            }
        }
    }

    pub(super) fn sort_key(&self, key: &SortKey) -> Doc {
        let order = match key.ascending {
            Some(true) => " asc",
            Some(false) => " desc",
            None => "",
        };
        Doc::All(vec![self.expr(&key.expr), text(order)])
    }

    /// Items one below the other if they do not fit beside each other.
    fn items(&self, word: &str, items: &[Item]) -> Doc {
        if let [Item { name: Some(name), expr }] = items
            && matches!(expr.node, ExprKind::Match { .. })
        {
            // The cases are indented from the stage, not from where the `match` starts.
            let head = text(format!("{word}{} = ", name.node));
            return indent(PIPE, Doc::All(vec![head, self.expr(expr)]));
        }
        let width = name_width(items.iter().map(|i| i.name.as_ref().map(|n| n.node.as_str())));
        let spans: Vec<Span> = items.iter().map(Item::span).collect();
        let parts = items.iter().map(|i| (i.span(), self.item(i, width))).collect();
        let list = Doc::All(vec![text(word), align(stacked(parts))]);
        group(list, self.comment_between(&spans))
    }

    /// `name = expr`, with the name as wide as its neighbours' if they stand below each other.
    pub(super) fn item(&self, item: &Item, width: usize) -> Doc {
        let Some(name) = &item.name else { return align(self.expr(&item.expr)) };
        let pad = width.saturating_sub(name.node.chars().count());
        Doc::All(vec![
            text(name.node.clone()),
            Doc::IfBroken(" ".repeat(pad)),
            text(" = "),
            align(self.expr(&item.expr)),
        ])
    }

    fn summarize(&self, s: &Summarize) -> Doc {
        let names = s.aggs.iter().map(|a| a.item.name.as_ref().map(|n| n.node.as_str()));
        let width = name_width(names);
        let mut spans: Vec<Span> = s.aggs.iter().map(agg_span).collect();
        let aggs: Vec<_> = s.aggs.iter().map(|a| (agg_span(a), self.agg(a, width))).collect();
        let mut parts = vec![text("summarize")];
        if !aggs.is_empty() {
            parts.extend([text(" "), align(stacked(aggs))]);
        }
        let mut clauses = Vec::new();
        if !s.keys.is_empty() {
            let keys = s.keys.iter().map(|k| (k.span(), self.item(k, 0))).collect();
            clauses.push(Doc::All(vec![text("by "), self.filled(keys)]));
        }
        let clause = |word: &str, e| Doc::All(vec![text(word), self.expr(e)]);
        clauses.extend(s.over.iter().map(|e| clause("over ", e)));
        clauses.extend(s.every.iter().map(|e| match s.sessions.rows {
            true => Doc::All(vec![clause("every ", e), text(" rows")]),
            false => clause("every ", e),
        }));
        for (word, own) in Sessions::WORDS.into_iter().zip(s.sessions.clauses()) {
            let own = own.iter().map(|e| vec![text(format!("{word} ")), align(self.expr(e))]);
            clauses.extend(own.map(Doc::All));
        }
        clauses.extend(s.lateness.iter().map(|e| clause("lateness ", e)));
        clauses.extend(s.fill.iter().map(|fill| match (&fill.idle, fill.from_start) {
            (Some(idle), false) => clause("fill idle ", idle),
            (Some(idle), true) => clause("fill from start idle ", idle),
            (None, false) => text("fill"),
            (None, true) => text("fill from start"),
        }));
        clauses.extend(s.max.iter().map(|e| clause("max ", e)));
        let others = [&s.over, &s.every, &s.lateness, &s.max].into_iter();
        let others = others.chain(s.sessions.clauses()).flatten().map(|e| e.span);
        let fill = s.fill.iter().map(|fill| fill.word.span);
        let start = s.keys.iter().map(Item::span).chain(others).chain(fill).min();
        if let Some(start) = start {
            let mut line = vec![
                if s.aggs.is_empty() { text(" ") } else { Doc::Break(" ") },
                Doc::Mark(start.start),
            ];
            line.extend(joined(clauses, " "));
            parts.push(indent(STEP, Doc::All(line)));
            spans.push(start);
        }
        group(Doc::All(parts), self.comment_between(&spans))
    }

    fn agg(&self, a: &AggItem, width: usize) -> Doc {
        let mut parts = vec![self.item(&a.item, width)];
        if let Some(cond) = &a.cond {
            parts.extend([text(" where "), align(self.expr(cond))]);
        }
        Doc::All(parts)
    }

    fn scan(&self, s: &Scan) -> Doc {
        let states = s.states.iter().map(|i| (i.span(), self.item(i, 0))).collect();
        let mut head = vec![text("scan "), self.filled(states)];
        if !s.keys.is_empty() {
            let keys = s.keys.iter().map(|k| (k.span, self.expr(k))).collect();
            head.extend([text(" by "), self.filled(keys)]);
        }
        for (word, clause) in [(" idle ", &s.idle), (" max ", &s.max)] {
            if let Some(e) = clause {
                head.extend([text(word), self.expr(e)]);
            }
        }
        head.push(text(" =>"));
        let update = vec![Doc::Break(" "), Doc::Mark(s.update.span.start), self.expr(&s.update)];
        head.push(indent(STEP, Doc::All(update)));
        group(Doc::All(head), false)
    }

    /// Parts separated by commas, as many on a line as fit.
    pub(super) fn filled(&self, parts: Vec<(Span, Doc)>) -> Doc {
        let mut out = Vec::new();
        let mut last: Option<Span> = None;
        for (span, part) in parts {
            if let Some(last) = last {
                let forced = self.comment_between(&[last, span]);
                out.extend([text(","), group(Doc::Break(" "), forced)]);
            }
            out.extend([Doc::Mark(span.start), part]);
            last = Some(span);
        }
        align(Doc::All(out))
    }

    pub(super) fn expr(&self, e: &Expr) -> Doc {
        match &e.node {
            ExprKind::Literal { text: written, .. } => text(written.clone()),
            ExprKind::Name(name) => text(name.clone()),
            ExprKind::Unary(op, operand) => {
                let sign = match op {
                    UnaryOp::Not => "not ",
                    UnaryOp::BitNot => "~",
                    UnaryOp::Neg | UnaryOp::ToFloat => "-",
                };
                Doc::All(vec![text(sign), align(self.expr(operand))])
            }
            ExprKind::Chain { first, rest } => self.chain(first, rest),
            ExprKind::Compare(a, op, b) => {
                let op = text(format!(" {} ", op.node.symbol()));
                Doc::All(vec![self.expr(a), op, align(self.expr(b))])
            }
            ExprKind::In { value, negated, set } => {
                let word = if *negated { " not in " } else { " in " };
                Doc::All(vec![self.expr(value), text(word), self.set(&set.node)])
            }
            ExprKind::Call { func, args } => {
                let args = args.iter().map(|a| (a.span, self.expr(a))).collect();
                Doc::All(vec![text(func.node.clone()), text("("), self.filled(args), text(")")])
            }
            ExprKind::Bytes { header, offset, size } => {
                let mut parts = vec![text(format!("{}[", header.node)), align(self.expr(offset))];
                if let Some(size) = size {
                    // Of an address before it, the colon would be taken for a part.
                    let plain = |e: &Expr| match &e.node {
                        ExprKind::Literal { value, .. } => matches!(value, Value::Int(_)),
                        kind => matches!(kind, ExprKind::Name(_)),
                    };
                    let colon = if plain(offset) && plain(size) { ":" } else { " : " };
                    parts.extend([text(colon), align(self.expr(size))]);
                }
                parts.push(text("]"));
                Doc::All(parts)
            }
            ExprKind::Match { value, arms } => self.match_expr(value, arms, e.span),
            ExprKind::Paren(inner) => Doc::All(vec![text("("), align(self.expr(inner)), text(")")]),
            ExprKind::Tuple(parts) => {
                let parts = parts.iter().map(|p| (p.span, self.expr(p))).collect();
                Doc::All(vec![text("("), self.filled(parts), text(")")])
            }
            ExprKind::Error => unreachable!("a query with mistakes is not formatted"),
        }
    }

    fn chain(&self, first: &Expr, rest: &[(crate::tree::Spanned<BinaryOp>, Expr)]) -> Doc {
        let mut parts = vec![self.expr(first)];
        let mut forced = false;
        let mut last = first.span;
        for (op, operand) in rest {
            let symbol = op.node.symbol();
            let operand_doc = align(self.expr(operand));
            if op.node == BinaryOp::BitOr {
                // At the start of a line it would be the pipe.
                parts.extend([text(format!(" {symbol}")), Doc::Break(" ")]);
                parts.extend([Doc::Mark(operand.span.start), operand_doc]);
                forced |= self.comment_between(&[last, operand.span]);
            } else {
                parts.extend([Doc::Break(" "), Doc::Mark(op.span.start)]);
                parts.extend([text(format!("{symbol} ")), operand_doc]);
                forced |= self.comment_between(&[last, op.span]);
            }
            last = operand.span;
        }
        group(align(Doc::All(parts)), forced)
    }

    fn match_expr(&self, value: &Expr, arms: &[Arm], span: Span) -> Doc {
        let spans: Vec<Span> = arms.iter().map(|a| a.pattern.span.to(a.body.span)).collect();
        let arm = |a: &Arm| {
            Doc::All(vec![self.pattern(&a.pattern), text(" => "), align(self.expr(&a.body))])
        };
        let list = stacked(spans.iter().copied().zip(arms.iter().map(arm)).collect());
        let inner = Doc::All(vec![Doc::Break(" "), list, Doc::IfBroken(",".to_owned())]);
        let doc = Doc::All(vec![
            text("match "),
            self.expr(value),
            text(" {"),
            indent(STEP, inner),
            Doc::Break(" "),
            Doc::Mark(span.end.saturating_sub(1)),
            text("}"),
        ]);
        group(doc, self.comment_between(&spans))
    }

    fn pattern(&self, p: &Pattern) -> Doc {
        match &p.node {
            PatternKind::Any => text("_"),
            PatternKind::Member(member) => self.member(member),
            PatternKind::Braces(members) => self.braces(members),
            PatternKind::Or(all) => {
                let all = all.iter().map(|p| self.pattern(p)).collect();
                Doc::All(joined(all, " or "))
            }
            PatternKind::Tuple(parts) => {
                let parts = parts.iter().map(|p| (p.span, self.pattern(p))).collect();
                Doc::All(vec![text("("), self.filled(parts), text(")")])
            }
            PatternKind::Error => unreachable!("a query with mistakes is not formatted"),
        }
    }

    pub(super) fn set(&self, set: &Set) -> Doc {
        match set {
            Set::Braces(members) => self.braces(members),
            Set::One(member) => self.member(member),
        }
    }

    fn braces(&self, members: &[Member]) -> Doc {
        let members = members.iter().map(|m| (m.span(), self.member(m))).collect();
        Doc::All(vec![text("{"), self.filled(members), text("}")])
    }

    pub(super) fn member(&self, member: &Member) -> Doc {
        match member {
            Member::Value(e) => self.expr(e),
            Member::Range(a, b) => Doc::All(vec![self.expr(a), text(".."), self.expr(b)]),
        }
    }
}

fn agg_span(a: &AggItem) -> Span {
    a.cond.as_ref().map_or(a.item.span(), |cond| a.item.span().to(cond.span))
}

/// The width of the widest name, if all have one.
fn name_width<'a>(names: impl Iterator<Item = Option<&'a str>> + Clone) -> usize {
    if names.clone().any(|n| n.is_none()) {
        return 0;
    }
    names.flatten().map(|n| n.chars().count()).max().unwrap_or(0)
}

/// Parts separated by commas, each on its own line where the group is broken.
fn stacked(parts: Vec<(Span, Doc)>) -> Doc {
    let parts = parts.into_iter().map(|(s, p)| Doc::All(vec![Doc::Mark(s.start), p]));
    let mut out = Vec::new();
    for part in parts {
        if !out.is_empty() {
            out.extend([text(","), Doc::Break(" ")]);
        }
        out.push(part);
    }
    Doc::All(out)
}

pub(super) fn joined(parts: Vec<Doc>, separator: &str) -> Vec<Doc> {
    let mut out = Vec::new();
    for part in parts {
        if !out.is_empty() {
            out.push(text(separator));
        }
        out.push(part);
    }
    out
}
