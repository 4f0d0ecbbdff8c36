//! `alert`.

use super::Parser;
use crate::diagnostic::{Code, Diagnostic};
use crate::lex::Kind;
use crate::tree::{Alert, Expr, ExprKind, Name, Stage};
use weir_plan::Value;

impl Parser<'_> {
    pub(super) fn alert(&mut self) -> Option<Stage> {
        self.bump();
        let text = self.alert_text(
            "what the alert says, in quotes",
            "as in `alert \"{ip.src} scans ports\" severity high`",
        )?;
        let (severity, category, technique, next) = (None, None, None, None);
        let (keys, hold, repeat, storm, max) = (Vec::new(), None, None, None, None);
        let mut out =
            Alert { text, severity, category, technique, next, keys, hold, repeat, storm, max };
        loop {
            let again = match self.word() {
                "severity" => out.severity.is_some(),
                "category" => out.category.is_some(),
                "technique" => out.technique.is_some(),
                "next" => out.next.is_some(),
                "key" => !out.keys.is_empty(),
                "hold" => out.hold.is_some(),
                "repeat" => out.repeat.is_some(),
                "storm" => out.storm.is_some(),
                "max" => out.max.is_some(),
                _ => break,
            };
            match self.clause(again).0 {
                "severity" => out.severity = Some(self.severity()?),
                "category" => {
                    let example = "as in `category \"Detection of a Network Scan\"`";
                    out.category =
                        Some(self.alert_text("what sort of thing it is, in quotes", example)?);
                }
                "technique" => {
                    let example = "a technique of MITRE ATT&CK: `technique \"T1046\"`";
                    out.technique = Some(self.alert_text("its number, in quotes", example)?);
                }
                "next" => {
                    let example = "as in `next \"whether {server} still answers\"`";
                    out.next = Some(self.alert_text("what to look at next, in quotes", example)?);
                }
                "key" => out.keys = self.list(Parser::alert_key)?,
                "hold" => out.hold = Some(self.expr()?),
                "repeat" => out.repeat = Some(self.expr()?),
                "storm" => out.storm = Some(self.expr()?),
                _ => out.max = Some(self.expr()?),
            }
        }
        Some(Stage::Alert(Box::new(out)))
    }

    /// A string, such as the one that says what is wrong.
    fn alert_text(&mut self, wanted: &str, example: &str) -> Option<Expr> {
        let token = self.token().clone();
        let Kind::Literal(value @ Value::Str(_)) = token.kind else {
            let d = self.expected(wanted);
            self.unexpected(d.help(example));
            return None;
        };
        let text = token.span.of(self.text).to_owned();
        self.bump();
        Some(Expr::new(ExprKind::Literal { value, text }, token.span))
    }

    fn severity(&mut self) -> Option<Name> {
        if self.token().kind == Kind::Name {
            return Some(self.name());
        }
        let d = self.expected("how bad it is");
        self.unexpected(d.help("one of `info`, `low`, `medium`, `high`, `critical`"));
        None
    }

    /// A column of the key.
    fn alert_key(&mut self) -> Option<Name> {
        self.plain_column(
            "columns tell one alert from another: `key server, port`",
            "the key of an alert is columns, not what is computed here",
        )
    }

    /// The name of a column. `example` helps where none stands, `computed` is the message where an
    /// expression does.
    pub(super) fn plain_column(&mut self, example: &str, computed: &str) -> Option<Name> {
        if self.token().kind != Kind::Name {
            let d = self.expected("a column");
            self.unexpected(d.help(example));
            return None;
        }
        let name = self.name();
        let is_computed = match &self.token().kind {
            Kind::Sign(sign) => !matches!(*sign, "," | "|" | ";"),
            _ => false,
        };
        if is_computed {
            let d = Diagnostic::new(Code::Unexpected, self.span(), computed);
            self.report(d.help("make it a column before: `| extend NAME = …`"));
            return None;
        }
        Some(name)
    }
}
