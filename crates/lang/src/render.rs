//! Draws diagnostics under the query text.

use crate::diagnostic::{Diagnostic, Severity, Span};
use crate::excerpt::Excerpt;
use crate::query::Query;
use ariadne::{Color, Config, IndexType, Label, Report, ReportKind, sources};
use std::ops::Range;
use weir_base::harmless::is_harmless;

/// Draws the diagnostics, each under the lines of the query it is about, in the order given.
///
/// The text ends with a line feed unless there is nothing to draw. With `color`, it carries ANSI
/// escapes.
pub fn render(diagnostics: &[Diagnostic], q: &Query<'_>, color: bool) -> String {
    let (name, text) = (visible(q.name), as_long(q.text));
    let q = &Query { name: &name, text: &text };
    let mut out = Vec::new();
    for d in &diagnostics.iter().map(safe).collect::<Vec<_>>() {
        if d.span == Span::NOWHERE {
            plain(d, &mut out);
        } else {
            draw(d, q, color, &mut out);
        }
    }
    // The drawing library pads lines; nobody wants the blanks.
    String::from_utf8_lossy(&out).lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Whether a terminal would do something else than show it.
fn is_command(c: char) -> bool {
    !is_harmless(c) && !matches!(c, '\n' | '\r' | '\t')
}

/// A text with such letters as their numbers.
fn visible(text: &str) -> String {
    let shown = |c: char| match is_command(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// The text of a query with others in place of such letters, so that each stands at its byte.
fn as_long(text: &str) -> String {
    let shown = |c: char| match (is_command(c), c.len_utf8()) {
        (false, _) => c,
        (true, 1) => '?',
        (true, 2) => '\u{bf}',
        (true, 3) => char::REPLACEMENT_CHARACTER,
        (true, _) => '\u{10102}',
    };
    text.chars().map(shown).collect()
}

/// The same diagnostic: what it says of a query may have letters of it.
fn safe(d: &Diagnostic) -> Diagnostic {
    let mut d = d.clone();
    d.notes.iter_mut().for_each(|note| note.text = visible(&note.text));
    (d.message, d.label) = (visible(&d.message), visible(&d.label));
    d.help = d.help.as_deref().map(visible);
    d
}

fn draw(d: &Diagnostic, q: &Query<'_>, color: bool, out: &mut Vec<u8>) {
    let (kind, paint) = match d.severity {
        Severity::Error => (ReportKind::Error, Color::Red),
        Severity::Warning => (ReportKind::Warning, Color::Yellow),
    };
    let spans = d.notes.iter().filter_map(|note| note.span).chain([d.span]);
    let places: Vec<Range<usize>> = spans.map(|span| clamp(span, q.text)).collect();
    let excerpt = Excerpt::new(q.text, &places);
    let place = |span: Span| {
        let range = clamp(span, q.text);
        (q.name.to_owned(), excerpt.at(range.start)..excerpt.at(range.end))
    };
    let config = Config::default().with_color(color).with_index_type(IndexType::Byte);
    // A label without words would not be drawn at all.
    let label = if d.label.is_empty() { "here" } else { &d.label };
    let primary = Label::new(place(d.span)).with_color(paint).with_priority(1).with_message(label);
    let mut report = Report::build(kind, place(d.span))
        .with_config(config)
        .with_code(d.code)
        .with_message(&d.message)
        .with_label(primary);
    for note in &d.notes {
        match note.span {
            Some(span) => {
                let label = Label::new(place(span)).with_color(Color::Blue);
                report.add_label(label.with_message(&note.text));
            }
            None => report.add_note(&note.text),
        }
    }
    if let Some(help) = &d.help {
        report.add_help(help);
    }
    let cache = sources([(q.name.to_owned(), &*excerpt.text)]);
    let mut drawn = Vec::new();
    report.finish().write(cache, &mut drawn).expect("writing to memory does not fail");
    let at = clamp(d.span, q.text).start;
    let shown = heading(q.name, &excerpt.text, excerpt.at(at));
    let real = heading(q.name, q.text, at);
    if shown == real {
        out.extend_from_slice(&drawn);
    } else {
        // The heading names the column of the query, not of the excerpt.
        let drawn = String::from_utf8_lossy(&drawn).replacen(&shown, &real, 1);
        out.extend_from_slice(drawn.as_bytes());
    }
}

/// A byte of the text by its line and column, both from 1, and a blank.
fn heading(name: &str, text: &str, at: usize) -> String {
    let before = &text[..at];
    let line = 1 + before.matches('\n').count();
    let column = 1 + before[before.rfind('\n').map_or(0, |n| n + 1)..].chars().count();
    format!("{name}:{line}:{column} ")
}

/// A diagnostic that has no place in the text is reported without a drawing.
fn plain(d: &Diagnostic, out: &mut Vec<u8>) {
    let kind = match d.severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
    };
    let mut text = format!("[{}] {kind}: {}\n", d.code, d.message);
    d.notes.iter().for_each(|n| text += &format!("  Note: {}\n", n.text));
    d.help.iter().for_each(|h| text += &format!("  Help: {h}\n"));
    out.extend_from_slice(text.as_bytes());
}

/// The span within the text; one that covers nothing is moved to the end of the text's last line,
/// where "something is missing" is drawn best.
fn clamp(span: Span, text: &str) -> Range<usize> {
    if span.start < span.end && !span.of(text).is_empty() {
        return span.start..span.end;
    }
    let at = span.start.min(text.trim_end().len());
    let at = (0..=at).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    at..at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Code;

    #[test]
    fn draws_label_note_and_help() {
        let q = Query { name: "a.weir", text: "packets\n| where ipsrc == 1\n" };
        let d = Diagnostic::new(Code::UnknownName, Span::new(16, 21), "no field is called `ipsrc`")
            .label("unknown")
            .help("did you mean `ip.src`?");
        insta::assert_snapshot!(render(&[d], &q, false), @r"
        [W016] Error: no field is called `ipsrc`
           ╭─[ a.weir:2:9 ]
           │
         2 │ | where ipsrc == 1
           │         ──┬──
           │           ╰──── unknown
           │
           │ Help: did you mean `ip.src`?
        ───╯
        ");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let evil = "\u{1b}[31m\u{9b}31m\u{7}\u{202e}\r\t";
        let text = format!("packets\n| where \"{evil}\" == lne\n");
        let at = text.find("lne").expect("it is there");
        let d = Diagnostic::new(Code::UnknownName, Span::new(at, at + 3), format!("a {evil} b"))
            .label(evil)
            .note_at(Span::new(10, 12), evil)
            .help(evil);
        let name = format!("{evil}.weir");
        let drawn = render(std::slice::from_ref(&d), &Query { name: &name, text: &text }, false);
        assert!(!drawn.chars().any(is_command), "{drawn:?}");
        assert!(drawn.contains("a \\u{1b}[31m\\u{9b}31m\\u{7}\\u{202e}"), "{drawn}");
        assert!(drawn.contains("\"?[31m\u{bf}31m?\u{fffd}"), "{drawn}");
        // The characters of colours are the library's own.
        let drawn = render(&[d], &Query { name: &name, text: &text }, true);
        assert!(!drawn.contains("\u{1b}[31m\u{9b}") && !drawn.contains('\u{7}'), "{drawn:?}");
    }

    #[test]
    fn long_lines_are_cut() {
        let ports: Vec<String> = (1..18_000).map(|n| n.to_string()).collect();
        let text = format!("packets\n| where dport in {{{}}} and lne > 5\n", ports.join(", "));
        let at = text.find("lne").expect("it is there");
        let d = Diagnostic::new(Code::UnknownName, Span::new(at, at + 3), "no `lne`")
            .note_at(Span::new(26, 27), "far away");
        let q = Query { name: "a.weir", text: &text };
        for color in [false, true] {
            let drawn = render(std::slice::from_ref(&d), &q, color);
            assert!(drawn.contains(&format!("a.weir:2:{}", at - 7)), "{drawn}");
        }
        let drawn = render(std::slice::from_ref(&d), &q, false);
        assert!(drawn.lines().all(|line| line.chars().count() < 320), "{drawn}");
        let d = Diagnostic { notes: Vec::new(), ..d };
        insta::assert_snapshot!(render(&[d], &q, false), @r"
        [W016] Error: no `lne`
           ╭─[ a.weir:2:114910 ]
           │
         2 │ …17992, 17993, 17994, 17995, 17996, 17997, 17998, 17999} and lne > 5
           │                                                              ─┬─
           │                                                               ╰─── here
        ───╯
        ");
    }

    #[test]
    fn draws_what_has_no_place() {
        let q = Query { name: "a.weir", text: "packets" };
        let d =
            Diagnostic::new(Code::UnknownParam, Span::NOWHERE, "the query has no parameter `x`")
                .help("it has `y`");
        assert_eq!(
            render(&[d], &q, false),
            "[W043] Error: the query has no parameter `x`\n  Help: it has `y`\n"
        );
    }

    #[test]
    fn only_color_has_escapes() {
        let q = Query { name: "a", text: "packets" };
        let d = Diagnostic::new(Code::Unexpected, Span::new(0, 7), "no");
        assert!(render(std::slice::from_ref(&d), &q, true).contains('\u{1b}'));
        assert!(!render(&[d], &q, false).contains('\u{1b}'));
    }

    #[test]
    fn any_span_can_be_drawn() {
        let q = Query { name: "a", text: "é\n\n" };
        for (start, end) in [(0, 1), (1, 2), (5, 5), (3, 900), (9, 3)] {
            let d = Diagnostic::new(Code::Unexpected, Span::new(start, end), "no");
            assert!(render(&[d], &q, false).contains("no"));
        }
    }
}
