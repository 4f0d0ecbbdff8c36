//! `metric`.

use super::Parser;
use crate::lex::Kind;
use crate::tree::{Expr, ExprKind, Metric, Name, Stage};
use weir_plan::Value;

impl Parser<'_> {
    pub(super) fn metric(&mut self) -> Option<Stage> {
        self.bump();
        if self.token().kind != Kind::Name {
            let d = self.expected("which kind of metric it is");
            self.unexpected(d.help("one of `gauge`, `counter`, `histogram`"));
            return None;
        }
        let kind = self.name();
        let name = self.text_of_metric("the name of the metric, in quotes")?;
        let mut out = Metric { kind, name, of: None, keys: Vec::new(), max: None, help: None };
        loop {
            let again = match self.word() {
                "of" => out.of.is_some(),
                "by" => !out.keys.is_empty(),
                "max" => out.max.is_some(),
                "help" => out.help.is_some(),
                _ => break,
            };
            match self.clause(again).0 {
                "of" => out.of = Some(self.column_of_metric()?),
                "by" => out.keys = self.list(Parser::column_of_metric)?,
                "max" => out.max = Some(self.expr()?),
                _ => out.help = Some(self.text_of_metric("what the metric is, in quotes")?),
            }
        }
        Some(Stage::Metric(out))
    }

    fn text_of_metric(&mut self, what: &str) -> Option<Expr> {
        let token = self.token().clone();
        let Kind::Literal(value @ Value::Str(_)) = token.kind else {
            let d = self.expected(what);
            self.unexpected(d.help("as in `metric counter \"dns_questions\" of n by dns.qtype`"));
            return None;
        };
        let text = token.span.of(self.text).to_owned();
        self.bump();
        Some(Expr::new(ExprKind::Literal { value, text }, token.span))
    }

    /// A column of the value or of a label.
    fn column_of_metric(&mut self) -> Option<Name> {
        self.plain_column(
            "metrics are of columns: `of n by server, port`",
            "a metric is of columns, not of what is computed here",
        )
    }
}
