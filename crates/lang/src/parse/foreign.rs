//! Operators and subscripts as other languages write them: reported, and taken for ours where ours
//! is plain.

use super::Parser;
use super::expr::{AND, Infix, OPERAND, OR};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::excerpt::one_line;
use crate::lex::Kind;
use crate::tree::{Expr, ExprKind, Spanned, Stage};
use weir_packet::fields::{self, FieldType};
use weir_plan::{BinaryOp, Value};

impl Parser<'_> {
    /// An operator as other languages write it.
    pub(super) fn foreign(&mut self, theirs: &str) -> Infix {
        let (ours, op) = match theirs {
            "=" => ("==", Infix::Compare(BinaryOp::Eq)),
            "<>" => ("!=", Infix::Compare(BinaryOp::Ne)),
            "&&" | "AND" => ("and", Infix::Op(BinaryOp::And, AND)),
            "IN" => ("in", Infix::In { negated: false }),
            _ => ("or", Infix::Op(BinaryOp::Or, OR)),
        };
        let span = self.span();
        // The operator is looked at more than once while the levels are climbed.
        if self.diagnostics.last().is_none_or(|d| d.span != span) {
            let message = match theirs {
                "=" => "`=` names a value; it does not compare".to_owned(),
                _ => format!("`{theirs}` is not an operator here"),
            };
            let d = Diagnostic::new(Code::ForeignWord, span, message);
            self.report(d.help(format!("write `{ours}`")));
        }
        op
    }

    /// Whether a choice of SQL is next: `case when …`.
    pub(super) fn at_case_when(&self) -> bool {
        let words = [(self.word(), "case"), (self.word_ahead(1), "when")];
        words.iter().all(|(found, theirs)| found.eq_ignore_ascii_case(theirs))
    }

    /// Reports such a choice.
    pub(super) fn case_when(&mut self) -> Option<Expr> {
        let span = self.span().to(self.ahead(1).span);
        let d = Diagnostic::new(Code::ForeignWord, span, "`case when` is not a choice here");
        self.report(d.help(
            "write `if(condition, then, else)`; of several cases, `match dport { 22 => \"ssh\", \
             _ => \"other\" }`",
        ));
        None
    }

    /// Whether a text begins with a condition rather than with rows.
    pub(super) fn at_bare_condition(&self) -> bool {
        let operators = ["==", "!=", "<", "<=", ">", ">=", "=", "<>", "&", "&&", "||", "["];
        let next = self.ahead(1);
        let word = matches!(self.word_ahead(1), "and" | "or" | "in" | "not") && !next.first;
        let sign = matches!(&next.kind, Kind::Sign(s) if operators.contains(s));
        let named = fields::by_name(self.word()).is_some();
        // Further down, it rather goes on with the line above.
        self.at == 0 && (self.word() == "not" || named && (word || sign || next.kind == Kind::End))
    }

    /// Reports a text that begins with a condition, and takes it for a `where`.
    pub(super) fn bare_condition(&mut self) -> Option<Spanned<Stage>> {
        let (start, reported) = (self.span(), self.diagnostics.len());
        let condition = self.expr();
        if condition.is_none() {
            self.skip_stage();
        }
        let span = start.to(self.last_span());
        let message = "a pipeline starts with the rows it reads";
        let d = Diagnostic::new(Code::Unexpected, span, message);
        let shown = one_line(span.of(self.text));
        self.report(d.help(format!("write `packets | where {shown}`")));
        // It stands before the mistakes within the condition.
        if self.diagnostics.len() > reported {
            self.diagnostics[reported..].rotate_right(1);
        }
        Some(Spanned::new(Stage::Where(condition?), span))
    }

    /// Whether a query of SQL is next.
    pub(super) fn at_select(&self) -> bool {
        let more = !matches!(self.ahead(1).kind, Kind::Sign("|"));
        more && self.word().eq_ignore_ascii_case("select")
    }

    /// Reports a query of SQL.
    pub(super) fn select(&mut self) {
        let message = "a query is not SQL: it starts with the rows it reads";
        let d = Diagnostic::new(Code::ForeignWord, self.span(), message);
        let help = "write `packets | where … | project …`, or `packets | summarize … by …`";
        self.report(d.help(help));
        self.bump();
        while self.token().kind != Kind::End {
            self.bump();
        }
    }

    /// Reports a set in the brackets of other languages.
    pub(super) fn set_in_brackets<T>(&mut self) -> Option<T> {
        let start = self.bump();
        while !self.is_sign("]") && self.token().kind != Kind::End {
            self.bump();
        }
        let inside = one_line(Span::new(start.end, self.span().start).of(self.text));
        let span = start.to(self.span());
        let d = Diagnostic::new(Code::BadSet, span, "a set stands in braces");
        self.report(d.help(format!("write `{{{}}}`", inside.trim())));
        self.bump();
        None
    }

    /// Whether a range of SQL or Kusto is next: `between 1 and 9`, `between (1 .. 9)`.
    pub(super) fn at_between(&self) -> bool {
        self.token().kind == Kind::Name
            && !self.token().first
            && self.word().eq_ignore_ascii_case("between")
    }

    /// Reports such a range.
    pub(super) fn between(&mut self, left: &Expr) -> Option<Expr> {
        let start = self.bump();
        let in_brackets = self.eat("(");
        let low = self.expr_from(OPERAND)?;
        let _ = self.eat("..") || self.eat_word("and") || self.eat("AND") || self.eat(",");
        let high = self.expr_from(OPERAND)?;
        if in_brackets {
            self.eat(")");
        }
        let span = start.to(self.last_span());
        let shown = |e: &Expr| one_line(e.span.of(self.text));
        let help = format!("write `in {}..{}`", shown(&low), shown(&high));
        let d = Diagnostic::new(Code::ForeignWord, span, "`between` is not an operator here");
        self.report(d.help(help));
        Some(self.error_expr(left.span.to(span)))
    }

    /// A word or sign that other languages put between a text and what it is searched for.
    pub(super) fn text_operator(&self) -> Option<&'static str> {
        let words = ["like", "ilike", "contains", "has", "matches", "rlike", "regexp"];
        let words = words.into_iter().chain(["startswith", "starts_with", "endswith", "ends_with"]);
        let token = self.token();
        if matches!(token.kind, Kind::Sign("=~" | "~")) {
            return Some("=~");
        }
        let operand = matches!(self.ahead(1).kind, Kind::Literal(_) | Kind::Name);
        let here = token.kind == Kind::Name && !token.first && operand;
        words.into_iter().find(|w| here && w.eq_ignore_ascii_case(self.word()))
    }

    /// Reports such an operator, with the function or the network that asks it here.
    pub(super) fn text_comparison(&mut self, left: Expr, theirs: &str) -> Option<Expr> {
        let op = self.bump();
        let right = self.expr_from(OPERAND)?;
        let shown = |e: &Expr| one_line(e.span.of(self.text));
        let field = match &left.node {
            ExprKind::Name(name) => fields::by_name(name).map(|id| id.info().ty),
            _ => None,
        };
        let whole = match field {
            Some(FieldType::Int | FieldType::Mac | FieldType::Time) => {
                format!("string({})", shown(&left))
            }
            _ => shown(&left),
        };
        let help = match (field, &right.node) {
            (Some(FieldType::Ip), _) => {
                format!("an address is asked for its network: `{} in 10.0.0.0/8`", shown(&left))
            }
            (_, ExprKind::Literal { value: Value::Str(pattern), .. }) => {
                let question = Question::of(theirs, pattern, whole);
                format!("write `{}`", question.shown(field == Some(FieldType::Bytes)))
            }
            _ => format!("write `{}({whole}, {})`", function(theirs), shown(&right)),
        };
        let message = format!("`{}` is not an operator here", op.of(self.text));
        self.report(Diagnostic::new(Code::ForeignWord, op, message).help(help));
        Some(self.error_expr(left.span.to(right.span)))
    }
}

/// The function that asks a text as an operator of another language does.
fn function(theirs: &str) -> &'static str {
    match theirs {
        "matches" | "rlike" | "regexp" | "=~" => "matches",
        "startswith" | "starts_with" => "starts_with",
        "endswith" | "ends_with" => "ends_with",
        _ => "contains",
    }
}

/// A question about a text.
struct Question {
    /// The function that asks it; `==` where the whole text is given.
    function: &'static str,
    whole: String,
    part: String,
}

impl Question {
    /// The question that an operator of another language asks. In the patterns of SQL, `%` stands
    /// for any characters and `_` for one; `ilike` takes capitals for small letters.
    fn of(theirs: &str, pattern: &str, whole: String) -> Question {
        let (whole, pattern) = match theirs {
            "ilike" => (format!("lower({whole})"), pattern.to_lowercase()),
            "like" => (whole, pattern.to_owned()),
            _ => return Question { function: function(theirs), whole, part: pattern.to_owned() },
        };
        let part = pattern.trim_matches('%');
        let (open_start, open_end) = (pattern.starts_with('%'), pattern.ends_with('%'));
        let function = match (open_start, open_end) {
            _ if part.contains(['%', '_']) => "matches",
            (true, true) => "contains",
            (false, true) => "starts_with",
            (true, false) => "ends_with",
            (false, false) => "==",
        };
        let part = match function {
            "matches" => {
                let (start, end) =
                    (if open_start { "" } else { "^" }, if open_end { "" } else { "$" });
                let part = regex::escape(part).replace('%', ".*").replace('_', ".");
                format!("{start}{part}{end}")
            }
            _ => part.to_owned(),
        };
        Question { function, whole, part }
    }

    /// The question as it is asked here; of bytes, where the part is bytes as well.
    fn shown(&self, bytes: bool) -> String {
        // A pattern is a text, of bytes as well.
        let b = if bytes && self.function != "matches" { "b" } else { "" };
        match self.function {
            "==" => format!("{} == {b}{:?}", self.whole, self.part),
            function => format!("{function}({}, {b}{:?})", self.whole, self.part),
        }
    }
}
