//! Stages that choose rows and take them apart (`top`, `distinct`, `sample`,
//! `each`), and `analyze`.

use super::Parser;
use super::expr::{OPERAND, PREFIX};
use crate::diagnostic::{Code, Diagnostic};
use crate::excerpt::one_line;
use crate::tree::{
    Capture, Deduplicate, Distinct, Expr, ExprKind, KeyBounds, Sample, SortKey, Stage, Top,
};

impl Parser<'_> {
    pub(super) fn top(&mut self) -> Option<Stage> {
        self.bump();
        if self.word() == "by" {
            let d = self.expected("how many rows");
            self.unexpected(d.help("as in `top 10 by bytes`"));
            return None;
        }
        let n = self.expr()?;
        if !self.eat_word("by") {
            let d = self.expected("`by` and what to sort by");
            self.unexpected(d.help("as in `top 10 by bytes`"));
            return None;
        }
        let by = self.list(|p| {
            let expr: Expr = p.expr()?;
            let ascending = match p.word() {
                "asc" => Some(true),
                "desc" => Some(false),
                _ => None,
            };
            if ascending.is_some() {
                p.bump();
            }
            Some(SortKey { expr, ascending })
        })?;
        let per = if self.eat_word("per") { self.list(Parser::expr)? } else { Vec::new() };
        let max = if self.word() == "max" { self.top_max(per.is_empty())? } else { None };
        Some(Stage::Top(Top { n, by, per, max }))
    }

    /// `max N`, which counts keys.
    fn top_max(&mut self, without_keys: bool) -> Option<Option<Expr>> {
        let word = self.bump();
        let max = self.expr()?;
        if without_keys {
            let d =
                Diagnostic::new(Code::Unexpected, word, "`max` counts keys, and there are none");
            self.report(d.help("the number of rows follows `top`"));
        }
        Some(Some(max))
    }

    pub(super) fn distinct(&mut self) -> Option<Stage> {
        let word = self.bump();
        if self.word() == "by" || self.at_boundary() {
            let message = "`distinct` needs to know by what rows differ";
            let d = Diagnostic::new(Code::Unexpected, word, message);
            self.report(d.help("name the keys: `distinct ip.src, ip.dst`"));
            return None;
        }
        let keys = self.list(Parser::expr)?;
        let KeyBounds { idle, max } = self.key_bounds()?;
        Some(Stage::Distinct(Distinct { keys, idle, max }))
    }

    pub(super) fn deduplicate(&mut self) -> Option<Stage> {
        let word = self.bump();
        if !self.eat_word("within") {
            let message = "`deduplicate` needs to know within which time copies come";
            let d = Diagnostic::new(Code::Unexpected, word, message);
            self.report(d.help("say it: `deduplicate within 50ms`"));
            return None;
        }
        let within = self.expr()?;
        let max = if self.eat_word("max") { Some(self.expr()?) } else { None };
        Some(Stage::Deduplicate(Deduplicate { within, max }))
    }

    pub(super) fn hello(&mut self) -> Option<Stage> {
        self.bump();
        self.key_bounds().map(Stage::Hello)
    }

    /// `idle D` and `max N`, in either order, if they are there.
    fn key_bounds(&mut self) -> Option<KeyBounds> {
        let (mut idle, mut max) = (None, None);
        loop {
            if self.eat_word("idle") {
                idle = Some(self.expr()?);
            } else if self.eat_word("max") {
                max = Some(self.expr()?);
            } else {
                return Some(KeyBounds { idle, max });
            }
        }
    }

    pub(super) fn analyze(&mut self) -> Option<Stage> {
        let word = self.bump();
        if !self.eat_word("tcp") {
            let span = if self.at_boundary() { word } else { self.span() };
            let d = Diagnostic::new(Code::Unexpected, span, "`analyze` is followed by `tcp`");
            self.report(d.help("as in `analyze tcp`, or `analyze tcp idle 5m`"));
            return None;
        }
        self.key_bounds().map(Stage::AnalyzeTcp)
    }

    pub(super) fn sample(&mut self) -> Option<Stage> {
        self.bump();
        let take = self.expr_from(PREFIX)?;
        let of = if self.eat("%") {
            None
        } else if self.eat_word("in") {
            Some(self.expr_from(OPERAND)?)
        } else {
            let d = self.expected("`in` and of how many rows, or `%`");
            self.unexpected(d.help("as in `sample 1 in 100`, or `sample 1% by flow`"));
            return None;
        };
        let keys = if self.eat_word("by") { self.list(Parser::expr)? } else { Vec::new() };
        Some(Stage::Sample(Sample { take, of, keys }))
    }

    pub(super) fn capture(&mut self) -> Option<Stage> {
        let word = self.bump();
        let clause = |p: &Self| ["before", "after", "by"].contains(&p.word());
        let around = if self.at_boundary() || clause(self) { None } else { Some(self.expr()?) };
        let mut out = Capture { around, before: None, after: None, keys: Vec::new() };
        loop {
            let again = match self.word() {
                "before" => out.before.is_some(),
                "after" => out.after.is_some(),
                "by" => !out.keys.is_empty(),
                _ => break,
            };
            match self.clause(again).0 {
                "before" => out.before = Some(self.expr()?),
                "after" => out.after = Some(self.expr()?),
                _ => out.keys = self.list(Parser::item)?,
            }
        }
        if out.around.is_none() && out.before.is_none() && out.after.is_none() {
            let message = "`capture` needs to know how long before and after";
            let d = Diagnostic::new(Code::Unexpected, word, message);
            self.report(d.help("as in `capture 30s by ip.src`, or `capture before 30s after 5s`"));
            return None;
        }
        Some(Stage::Capture(out))
    }

    pub(super) fn each(&mut self) -> Option<Stage> {
        let word = self.bump();
        if self.at_boundary() {
            let d = Diagnostic::new(Code::Unexpected, word, "`each` needs something to take apart");
            self.report(d.help("as in `each dns.answer`, or `each word = split(x, \" \")`"));
            return None;
        }
        let item = self.item()?;
        if item.name.is_none() && matches!(item.expr.node, ExprKind::Call { .. }) {
            let text = one_line(item.expr.span.of(self.text));
            let message = "`each` needs a name for the parts";
            let d = Diagnostic::new(Code::NeedsName, item.expr.span, message);
            self.report(d.help(format!("write `each NAME = {text}`")));
        }
        if self.eat(",") {
            let d = self.expected("one thing to take apart");
            self.unexpected(d.help("take the other apart in a stage of its own: `| each …`"));
            return None;
        }
        Some(Stage::Each(item))
    }
}
