//! The patterns of a `match`.

use super::Parser;
use crate::diagnostic::{Code, Diagnostic};
use crate::limits::NESTING_MAX;
use crate::tree::{Pattern, PatternKind};

impl Parser<'_> {
    /// A pattern, or several joined by `or`.
    pub(super) fn pattern(&mut self) -> Option<Pattern> {
        let first = self.one_pattern()?;
        if self.word() != "or" {
            return Some(first);
        }
        let start = first.span;
        let mut all = vec![first];
        while self.eat_word("or") {
            all.push(self.one_pattern()?);
        }
        Some(Pattern::new(PatternKind::Or(all), start.to(self.last_span())))
    }

    fn one_pattern(&mut self) -> Option<Pattern> {
        let start = self.span();
        if self.eat_word("_") {
            return Some(Pattern::new(PatternKind::Any, start));
        }
        if self.is_sign("(") {
            return self.tuple_pattern();
        }
        if self.is_sign("{") {
            let open = self.open();
            let members = self.braced(Parser::member);
            let end = self.close(open, "}", members.is_some())?;
            return Some(Pattern::new(PatternKind::Braces(members?), open.to(end)));
        }
        if matches!(self.word(), "else" | "default") {
            let message = format!("`{}` is not a pattern", self.word());
            self.report(Diagnostic::new(Code::BadPattern, start, message).help("write `_`"));
            self.bump();
            return Some(Pattern::new(PatternKind::Any, start));
        }
        let member = self.member()?;
        let span = member.span();
        Some(Pattern::new(PatternKind::Member(member), span))
    }

    fn tuple_pattern(&mut self) -> Option<Pattern> {
        if self.nesting >= NESTING_MAX {
            let message = format!("this is nested more than {NESTING_MAX} levels deep");
            self.report(Diagnostic::new(Code::TooLarge, self.span(), message));
            return None;
        }
        self.nesting += 1;
        let open = self.open();
        let parts = self.list(Parser::pattern);
        let end = self.close(open, ")", parts.is_some());
        self.nesting = self.nesting.saturating_sub(1);
        let span = open.to(end?);
        Some(Pattern::new(parts.map_or(PatternKind::Error, PatternKind::Tuple), span))
    }
}
