//! Files of settings: values of params on lines of their own, for all queries of a site.

use super::Parser;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lex::Kind;
use crate::tree::{Name, Set, Spanned};

/// `name = value`, or `program.name = value`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct SettingLine {
    pub(crate) name: Name,
    pub(crate) value: Spanned<Set>,
}

impl Parser<'_> {
    pub(super) fn settings(&mut self) -> Vec<SettingLine> {
        let mut settings = Vec::new();
        while self.token().kind != Kind::End {
            let setting = self.setting();
            let ends = self.token().first || self.token().kind == Kind::End;
            if setting.is_some() && !ends {
                let d = self.expected("the end of the line");
                self.unexpected(d.help("a line sets one param: `name = value`"));
            }
            if setting.is_none() || !ends {
                self.skip_line();
            }
            settings.extend(setting);
        }
        settings
    }

    fn setting(&mut self) -> Option<SettingLine> {
        let name = self.set_name()?;
        if !self.is_sign("=") || self.token().first {
            let d = self.expected("`=` and a value");
            self.unexpected(d.help("a line sets one param: `name = value`"));
            return None;
        }
        self.bump();
        if self.token().first {
            let place = Span::new(self.last_span().end, self.last_span().end);
            let message = format!("`{}` is set to nothing", name.node);
            let d = Diagnostic::new(Code::Unexpected, place, message);
            self.report(d.help("the value stands on the same line; an empty set is `{}`"));
            return None;
        }
        Some(SettingLine { name, value: self.value_or_set()? })
    }

    /// The name of a param, with that of its program before it, which may have a `-` in it.
    fn set_name(&mut self) -> Option<Name> {
        let start = self.span();
        let mut end = start;
        loop {
            if self.token().kind != Kind::Name {
                let d = self.expected("the name of a param");
                self.unexpected(d.help("a line sets one param: `name = value`"));
                self.bump();
                return None;
            }
            end = end.to(self.bump());
            // Only what touches is one name.
            if !self.is_sign("-") || self.span().start != end.end {
                break;
            }
            end = end.to(self.bump());
        }
        let span = Span::new(start.start, end.end);
        Some(Name::new(span.of(self.text).to_owned(), span))
    }

    /// Skips to the first token of a line.
    fn skip_line(&mut self) {
        self.brackets = 0;
        self.nesting = 0;
        while self.token().kind != Kind::End && !self.token().first {
            self.bump();
        }
    }
}
