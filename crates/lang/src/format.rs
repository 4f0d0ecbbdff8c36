//! The canonical layout of a query.
//!
//! Formatting prints the tree; it changes blanks, line breaks, and the order of clauses, and
//! nothing else. Comments are put back beside what they stood beside: a comment at the end of a
//! line stays at the end of the line that now holds what was before it, one on a line of its own
//! stays on a line of its own.

mod alert;
mod doc;
mod ends;
mod join;
mod metric;
mod pieces;
#[cfg(test)]
#[path = "format/tests/roundtrip.rs"]
mod roundtrip;
mod rows;

use crate::lex::Comment;
use crate::tree::{LetBody, Pipeline, Set, Spanned, Statement, Tree};
use doc::{Doc, Line, lay_out, text};
use pieces::Pieces;

/// Lines are at most this wide where that is possible.
const WIDTH: usize = 100;

/// How far the stages of a `let` are indented.
const LET_STAGES: usize = 4;

/// A set on one line, without comments.
pub(crate) fn format_set(set: &Set) -> String {
    let lines = lay_out(&Pieces { comments: &[] }.set(set), 0, usize::MAX);
    lines.into_iter().map(|line| line.text).collect::<Vec<_>>().join(" ")
}

/// Lays out a query that was read without mistakes.
pub(crate) fn format(tree: &Tree, comments: &[Comment], source: &str) -> String {
    let line_ends = source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i);
    let mut out = Output {
        source,
        line_ends: line_ends.collect(),
        text: String::new(),
        last_line: None,
        last: Last::Nothing,
    };
    let mut rest = comments;
    for (i, statement) in tree.statements.iter().enumerate() {
        let next = tree.statements.get(i + 1).map_or(source.len(), |s| s.span.start);
        let before = rest.partition_point(|c| c.span.start < statement.span.start);
        rest[..before].iter().for_each(|c| out.comment(c));
        let own = rest[before..].partition_point(|c| {
            c.span.start < statement.span.end || !c.own_line && c.span.start < next
        });
        let (own, others) = rest[before..].split_at(own);
        out.statement(statement, own);
        rest = others;
    }
    rest.iter().for_each(|c| out.comment(c));
    out.text
}

/// The kind of text that was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Comment,
    Statement,
    Pipeline,
}

struct Output<'a> {
    source: &'a str,
    line_ends: Vec<usize>,
    text: String,
    /// The last line of the source that was written.
    last_line: Option<usize>,
    last: Last,
}

impl Output<'_> {
    /// The number of the source line that holds a byte.
    fn line_of(&self, at: usize) -> usize {
        self.line_ends.partition_point(|end| *end < at)
    }

    /// Writes a blank line before what starts at `start`, if the source has one there, or if one
    /// is due.
    fn separate(&mut self, start: usize, due: bool) {
        let line = self.line_of(start);
        let blank = self.last_line.is_some_and(|last| line > last + 1);
        if self.last != Last::Nothing && (blank || due) {
            self.text.push('\n');
        }
    }

    fn comment(&mut self, comment: &Comment) {
        self.separate(comment.span.start, self.last == Last::Pipeline);
        self.line(0, comment.span.of(self.source));
        self.last_line = Some(self.line_of(comment.span.start));
        self.last = Last::Comment;
    }

    fn statement(&mut self, statement: &Spanned<Statement>, comments: &[Comment]) {
        let pipeline = match &statement.node {
            Statement::Pipeline(_) => true,
            Statement::Let { body: LetBody::Pipeline(p), .. } => !p.stages.is_empty(),
            _ => false,
        };
        let due = match self.last {
            Last::Nothing | Last::Comment => false,
            Last::Statement => pipeline,
            Last::Pipeline => true,
        };
        self.separate(statement.span.start, due);
        let lines = Pieces { comments }.statement(statement);
        let after = self.lines(&lines, comments);
        self.last = if pipeline { Last::Pipeline } else { Last::Statement };
        for comment in after {
            self.last_line = None;
            self.comment(comment);
        }
        self.last_line = Some(self.line_of(statement.span.end));
    }

    /// Writes lines, with the comments that belong to them; gives those that come after the last
    /// line.
    fn lines<'c>(&mut self, lines: &[Line], comments: &'c [Comment]) -> &'c [Comment] {
        let mut rest = comments;
        for (i, line) in lines.iter().enumerate() {
            let mut next = lines[i + 1..].iter();
            let (end, indent) = match next.find_map(|l| Some((l.mark?, l.indent))) {
                Some(next) => next,
                None => (usize::MAX, line.indent),
            };
            // Comments of a line without a mark of its own go with the line before it.
            let marked = lines.get(i + 1).is_none_or(|l| l.mark.is_some());
            let own = if marked { rest.partition_point(|c| c.span.start < end) } else { 0 };
            let (mut own, others) = rest.split_at(own);
            rest = others;
            let mut text = line.text.clone();
            if let Some((first, below)) = own.split_first().filter(|(c, _)| !c.own_line) {
                text += "  ";
                text += first.span.of(self.source);
                own = below;
            }
            self.line(line.indent, &text);
            if i + 1 == lines.len() {
                return own;
            }
            own.iter().for_each(|c| self.line(indent, c.span.of(self.source)));
        }
        &[]
    }

    fn line(&mut self, indent: usize, text: &str) {
        self.text.extend(std::iter::repeat_n(' ', indent));
        self.text.push_str(text);
        self.text.push('\n');
    }
}

impl Pieces<'_> {
    fn statement(&self, statement: &Spanned<Statement>) -> Vec<Line> {
        let start = Doc::Mark(statement.span.start);
        match &statement.node {
            Statement::Param { name, ty, default } => {
                let head = text(format!("param {}: {} = ", name.node, ty.node));
                lay_out(&Doc::All(vec![start, head, self.set(&default.node)]), 0, WIDTH)
            }
            Statement::Let { name, body: LetBody::Expr(e) } => {
                let head = text(format!("let {} = ", name.node));
                lay_out(&Doc::All(vec![start, head, self.expr(e)]), 0, WIDTH)
            }
            Statement::Let { name, body: LetBody::Pipeline(pipeline) } => {
                let head = format!("let {} = {}", name.node, pipeline.source.node);
                self.pipeline(Doc::All(vec![start, text(head)]), pipeline, LET_STAGES)
            }
            Statement::Broken(_) => unreachable!("a query with mistakes is not formatted"),
            Statement::Pipeline(pipeline) => {
                let head = text(pipeline.source.node.clone());
                self.pipeline(Doc::All(vec![start, head]), pipeline, 0)
            }
        }
    }

    fn pipeline(&self, head: Doc, pipeline: &Pipeline, margin: usize) -> Vec<Line> {
        let mut lines = lay_out(&head, 0, WIDTH);
        for stage in &pipeline.stages {
            let parts = vec![Doc::Mark(stage.span.start), text("| "), self.stage(&stage.node)];
            lines.extend(lay_out(&Doc::All(parts), margin, WIDTH));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    fn check(text: &str, expected: &str) {
        let once = crate::format(text).unwrap_or_else(|d| panic!("{text}: {d:?}"));
        assert_eq!(once, expected, "{text}");
        assert_eq!(crate::format(&once).expect("formatted text can be read"), once);
    }

    #[test]
    fn one_stage_a_line() {
        check("packets|where tcp|limit 5", "packets\n| where tcp\n| limit 5\n");
        check(
            "let a=packets|where tcp\na|limit 5",
            "let a = packets\n    | where tcp\n\na\n| limit 5\n",
        );
        check("packets", "packets\n");
        check(
            "packets | where not(tcp)and-1<len*2",
            "packets\n| where not (tcp) and -1 < len * 2\n",
        );
        check("packets|top 5 by len desc,ts asc", "packets\n| top 5 by len desc, ts asc\n");
        check(
            "packets | summarize n=count() max 5 every 1s by flow",
            "packets\n| summarize n = count() by flow every 1s max 5\n",
        );
        check(
            "packets|summarize n=count() max 5 until tcp.rst   active 60s session 15s by flow",
            "packets\n| summarize n = count() by flow session 15s active 60s until tcp.rst max 5\n",
        );
        check(
            "packets|summarize n=count() idle 5s every 100 rows",
            "packets\n| summarize n = count() every 100 rows idle 5s\n",
        );
        check("packets|where dport in{22,80,}", "packets\n| where dport in {22, 80}\n");
        check(
            "packets|extend x=match len{1..9=>1,_=>2,}",
            "packets\n| extend x = match len { 1..9 => 1, _ => 2 }\n",
        );
    }

    #[test]
    fn long_stages_are_broken_and_aligned() {
        check(
            "packets | summarize server = first(ip.src) where tcp.syn and tcp.ack, \
             completed = any(tcp.ack and not tcp.syn) by conn every 10s",
            "packets\n\
             | summarize server    = first(ip.src) where tcp.syn and tcp.ack,\n\
             \x20           completed = any(tcp.ack and not tcp.syn)\n\
             \x20   by conn every 10s\n",
        );
        check(
            "packets | where ip.src == 10.0.0.1 and ip.dst == 10.0.0.2 and tcp.dport == 80 \
             and tcp.syn and not tcp.ack or dns_like",
            "packets\n\
             | where ip.src == 10.0.0.1 and ip.dst == 10.0.0.2 and tcp.dport == 80 and tcp.syn \
             and not tcp.ack\n\
             \x20       or dns_like\n",
        );
        check(
            "packets | scan stage = 0 by ip.src idle 60s => \
             match (stage, tcp.dport) { (0, 5123) => 1, (1, 6234) => 2, _ => 0 }",
            "packets\n\
             | scan stage = 0 by ip.src idle 60s =>\n\
             \x20   match (stage, tcp.dport) { (0, 5123) => 1, (1, 6234) => 2, _ => 0 }\n",
        );
    }

    #[test]
    fn comments_and_blank_lines_stay() {
        let same = "\
            # title\n\
            #\n\
            # more\n\n\
            param a: int = 1  # what it is\n\
            param b: int = 2\n\n\
            # about this\n\
            packets\n\
            | where tcp  # only these\n\
            # in between\n\
            | summarize packets = count(),  # all\n\
            \x20           # of the wire\n\
            \x20           bytes   = sum(len)\n\
            \x20   by ip.src  # end\n\
            # last\n";
        let expected = same.replace("# end\n# last", "# end\n\n# last");
        check(same, &expected);
        check("\n\n# a\n\n\n\npackets", "# a\n\npackets\n");
        check(
            "packets # a\n| # b\nwhere tcp # c\nand udp # d",
            "packets  # a\n# b\n| where tcp  # c\n        and udp  # d\n",
        );
    }

    #[test]
    fn a_comment_never_hides_code() {
        check("packets | where ( # one\n tcp # two\n)", "packets\n| where (tcp)  # one\n\n# two\n");
        check(
            "packets | extend x = match len { # one\n 1 => 2, # two\n _ => 3 # three\n }",
            "packets\n\
             | extend x = match len {  # one\n      1 => 2,  # two\n      _ => 3,  # three\n  }\n",
        );
    }
}
