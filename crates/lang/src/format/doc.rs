//! A small layout language: text with places where a line may break, in groups that break as one.
//!
//! After Oppen ("Prettyprinting", 1980) and Lindig ("Strictly Pretty", 2000): a group stays on one
//! line if it fits, together with what must follow it on the line; else all its own breaks are
//! taken, and the groups within it are asked again.

/// A piece of a layout.
#[derive(Clone, Debug)]
pub(super) enum Doc {
    Text(String),
    /// Where a line may break; else this text.
    Break(&'static str),
    /// This text where the group is broken, else nothing.
    IfBroken(String),
    /// Lines that break within it are indented by so much more.
    Indent(usize, Box<Doc>),
    /// Lines that break within it start at the column where it starts.
    Align(Box<Doc>),
    /// Breaks as one; `forced` breaks in any case.
    Group {
        doc: Box<Doc>,
        forced: bool,
    },
    All(Vec<Doc>),
    /// The piece that follows stood at this byte of the source.
    Mark(usize),
}

/// A line of a finished layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Line {
    pub(super) indent: usize,
    pub(super) text: String,
    /// The first mark on it.
    pub(super) mark: Option<usize>,
}

pub(super) fn text(s: impl Into<String>) -> Doc {
    Doc::Text(s.into())
}

pub(super) fn group(doc: Doc, forced: bool) -> Doc {
    Doc::Group { doc: Box::new(doc), forced }
}

pub(super) fn align(doc: Doc) -> Doc {
    Doc::Align(Box::new(doc))
}

pub(super) fn indent(by: usize, doc: Doc) -> Doc {
    Doc::Indent(by, Box::new(doc))
}

/// A piece, how far lines within it are indented, and whether its group is broken.
type Piece<'d> = (usize, bool, &'d Doc);

/// Lays `doc` out in lines of at most `width` columns where that is possible. The first line is
/// indented by `margin`, and so are those that nothing indents further.
pub(super) fn lay_out(doc: &Doc, margin: usize, width: usize) -> Vec<Line> {
    let fresh = |indent| Line { indent, text: String::new(), mark: None };
    let mut lines = vec![fresh(margin)];
    let mut column = margin;
    let mut stack: Vec<Piece<'_>> = vec![(margin, true, doc)];
    while let Some((indent, broken, doc)) = stack.pop() {
        let line = lines.last_mut().expect("there is a first line");
        match doc {
            Doc::Text(s) => {
                line.text.push_str(s);
                column += s.chars().count();
            }
            Doc::Break(_) if broken => {
                line.text.truncate(line.text.trim_end().len());
                lines.push(fresh(indent));
                column = indent;
            }
            Doc::Break(flat) => {
                line.text.push_str(flat);
                column += flat.len();
            }
            Doc::IfBroken(s) if broken => {
                line.text.push_str(s);
                column += s.chars().count();
            }
            Doc::IfBroken(_) => {}
            Doc::Indent(by, inner) => stack.push((indent + by, broken, inner)),
            Doc::Align(inner) => stack.push((column, broken, inner)),
            Doc::Group { doc: inner, forced } => {
                let flat = !forced && fits(inner, &stack, width.saturating_sub(column));
                stack.push((indent, !flat, inner));
            }
            Doc::All(parts) => stack.extend(parts.iter().rev().map(|p| (indent, broken, p))),
            Doc::Mark(at) => line.mark = line.mark.or(Some(*at)),
        }
    }
    lines
}

/// Whether `doc`, without breaks, and what follows it up to the next possible break take at most
/// `room` columns.
fn fits(doc: &Doc, rest: &[Piece<'_>], room: usize) -> bool {
    let mut room = room;
    let mut rest = rest.iter().rev();
    let mut stack: Vec<(bool, &Doc)> = vec![(false, doc)];
    // The piece that is asked about may not break; groups after it may.
    let mut after = false;
    loop {
        let (broken, doc) = match stack.pop() {
            Some(piece) => piece,
            None => match rest.next() {
                Some((_, broken, doc)) => {
                    after = true;
                    (*broken, *doc)
                }
                None => return true,
            },
        };
        let width = match doc {
            Doc::Text(s) => s.chars().count(),
            Doc::Break(_) if broken => return true,
            Doc::Break(flat) => flat.len(),
            Doc::IfBroken(_) | Doc::Mark(_) => 0,
            Doc::Indent(_, inner) | Doc::Align(inner) => {
                stack.push((broken, inner));
                0
            }
            Doc::Group { forced: true, .. } if !after => return false,
            Doc::Group { doc: inner, .. } => {
                stack.push((after, inner));
                0
            }
            Doc::All(parts) => {
                stack.extend(parts.iter().rev().map(|p| (broken, p)));
                0
            }
        };
        match room.checked_sub(width) {
            Some(left) => room = left,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[&str]) -> Doc {
        let mut parts = vec![text("f(")];
        let mut inner = Vec::new();
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                inner.extend([text(","), Doc::Break(" ")]);
            }
            inner.push(text(*item));
        }
        parts.push(align(Doc::All(inner)));
        parts.push(text(")"));
        group(Doc::All(parts), false)
    }

    fn shown(doc: &Doc, width: usize) -> String {
        let lines = lay_out(doc, 0, width);
        let line = |l: &Line| format!("{}{}", " ".repeat(l.indent), l.text);
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn breaks_only_what_does_not_fit() {
        assert_eq!(shown(&list(&["aa", "bb"]), 9), "f(aa, bb)");
        assert_eq!(shown(&list(&["aa", "bb"]), 8), "f(aa,\n  bb)");
    }

    #[test]
    fn what_follows_counts() {
        let doc = Doc::All(vec![list(&["aa", "bb"]), text(" =>")]);
        assert_eq!(shown(&doc, 12), "f(aa, bb) =>");
        assert_eq!(shown(&doc, 11), "f(aa,\n  bb) =>");
    }

    #[test]
    fn a_forced_group_breaks_those_around_it() {
        let inner = group(Doc::All(vec![text("a"), Doc::Break(" "), text("b")]), true);
        let outer = Doc::All(vec![text("("), Doc::Break(""), inner, text(")")]);
        assert_eq!(shown(&group(outer, false), 80), "(\na\nb)");
    }
}
