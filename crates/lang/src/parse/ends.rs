//! The acts on packets: ends, and the arms of `branch`.

use super::Parser;
use super::words::{ACTS, STAGES};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::suggest;
use crate::tree::{Act, BranchArm, Expr, Spanned, Stage};

impl Parser<'_> {
    /// An act on a packet, at its word.
    pub(super) fn act(&mut self) -> Option<Act> {
        let word = self.word();
        self.bump();
        Some(match word {
            "pass" => Act::Pass,
            "drop" => Act::Drop,
            "forward" => Act::Forward(self.output("forward", "as in `forward \"dns.pcap\"`")?),
            "mirror" => Act::Mirror(self.output("mirror", "as in `mirror \"copy.pcap\"`")?),
            "broadcast" => {
                let example = "as in `broadcast to (\"a.pcap\", \"b.pcap\")`";
                self.to(example)?;
                Act::Broadcast(self.operand("the outputs", example)?)
            }
            "steer" => {
                let example = "as in `steer by hosts to (\"a.pcap\", \"b.pcap\")`";
                if !self.eat_word("by") {
                    let d = self.expected("`by` and a key");
                    self.unexpected(d.help(example));
                    return None;
                }
                let keys = self.list(Parser::expr)?;
                self.to(example)?;
                Act::Steer { keys, to: self.operand("the outputs", example)? }
            }
            "trim" => Act::Trim(self.operand("a number of bytes", "as in `trim 96`")?),
            "tag" => Act::Tag(self.operand("a VLAN id", "as in `tag 7`")?),
            "anonymize" => self.anonymize()?,
            _ => Act::Next,
        })
    }

    /// Fields, and a key.
    fn anonymize(&mut self) -> Option<Act> {
        let example = "as in `anonymize ip.src, ip.dst with key`";
        let fields = self.list(Parser::expr)?;
        if !self.eat_word("with") {
            let d = self.expected("`with` and a key");
            self.unexpected(d.help(example));
            return None;
        }
        Some(Act::Anonymize { fields, key: self.operand("a key", example)? })
    }

    /// The one output that a frame goes to.
    fn output(&mut self, word: &str, example: &str) -> Option<Expr> {
        if self.word() == "to" {
            let span = self.span();
            let message = format!("`{word}` is followed by its output at once");
            self.report(Diagnostic::new(Code::Unexpected, span, message).help(example));
            return None;
        }
        self.operand("an output", example)
    }

    fn to(&mut self, example: &str) -> Option<()> {
        if self.eat_word("to") {
            return Some(());
        }
        let d = self.expected("`to` and the outputs");
        self.unexpected(d.help(example));
        None
    }

    /// An expression that must be here.
    fn operand(&mut self, what: &str, example: &str) -> Option<Expr> {
        if self.at_statement_end() || self.at_pipe() || matches!(self.word(), "when" | "else") {
            let d = self.expected(what);
            self.unexpected(d.help(example));
            return None;
        }
        self.expr()
    }

    /// `when COND -> ARM … else -> ARM`
    pub(super) fn branch(&mut self) -> Option<Stage> {
        const EXAMPLE: &str = "as in `branch when dns -> forward \"dns.pcap\" else -> pass`";
        self.bump();
        if self.word() != "when" {
            let d = self.expected("`when` and a condition");
            self.unexpected(d.help(EXAMPLE));
            return None;
        }
        let mut arms = Vec::new();
        while matches!(self.word(), "when" | "else") {
            let (start, is_else) = (self.span(), self.word() == "else");
            self.bump();
            let when = if is_else { None } else { Some(self.operand("a condition", EXAMPLE)?) };
            if !self.is_sign("->") {
                let d = self.expected("`->` and what to do with the packet");
                self.unexpected(d.help(EXAMPLE));
                return None;
            }
            self.bump();
            let Some(acts) = self.arm() else {
                self.skip_arms();
                return None;
            };
            arms.push(Spanned::new(BranchArm { when, acts }, start.to(self.last_span())));
            if is_else && matches!(self.word(), "when" | "else") {
                let message = "`else` takes all packets that are left: nothing follows it";
                let d = Diagnostic::new(Code::Unexpected, self.span(), message);
                self.report(d.note_at(start, "here").help("put it last"));
                return None;
            }
        }
        Some(Stage::Branch(arms))
    }

    /// The chain of an arm: up to its end, or to `next`.
    fn arm(&mut self) -> Option<Vec<Spanned<Act>>> {
        let mut acts = Vec::new();
        loop {
            let start = self.span();
            if !ACTS.contains(&self.word()) && self.word() != "next" {
                self.not_in_an_arm();
                return None;
            }
            let act = self.act()?;
            let span = start.to(self.last_span());
            let open = act.is_open();
            let over = act == Act::Next;
            acts.push(Spanned::new(act, span));
            let next = self.is_sign("|") && self.word_ahead(1) == "next";
            if over || !(open || next) {
                return Some(acts);
            }
            if !self.is_sign("|") {
                self.open_arm(span);
                return None;
            }
            self.bump();
        }
    }

    /// Skips to where the arms are over, for one who lost the thread in them.
    fn skip_arms(&mut self) {
        let goes_on = |word| ACTS.contains(&word) || word == "next" || !STAGES.contains(&word);
        while !self.at_statement() && (!self.at_pipe() || goes_on(self.word_ahead(1))) {
            self.bump();
        }
    }

    fn open_arm(&mut self, act: Span) {
        let text = crate::excerpt::one_line(act.of(self.text));
        let message = "this arm does not say where its packets go";
        let d = Diagnostic::new(Code::Unexpected, act, message);
        self.report(d.help(format!(
            "end it: `{text} | pass`; or let rows go on after the branch: `{text} | next`"
        )));
    }

    fn not_in_an_arm(&mut self) {
        let (word, span) = (self.word(), self.span());
        let acts = format!("what can stand here: {}, next", ACTS.join(", "));
        if !STAGES.contains(&word) {
            let d = self.expected("what to do with the packet");
            let meant = suggest::stage(word).filter(|ours| ACTS.contains(ours));
            return self.unexpected(match meant {
                Some(ours) => d.help(format!("did you mean `{ours}`?")),
                None => d.help(acts),
            });
        }
        let message = format!("`{word}` cannot stand in an arm");
        let d = Diagnostic::new(Code::Unexpected, span, message);
        self.report(match word {
            "branch" => d.help("join the conditions by `and`: the first arm that holds counts"),
            _ => d.help(format!("end the arm with `next`, and put `| {word} …` after the branch")),
        });
    }
}
