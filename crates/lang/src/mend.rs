//! A query as its author meant it: what a remedy says, written in the place of a mistake.

use crate::compile::compile;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lex;
use crate::limits::{MENDED_MAX, MENDED_TOKENS, MISTAKES_MENDED};
use crate::query::{Options, Query};
use std::cmp::Reverse;

/// The query with its mistakes mended as their remedies say, if it compiles so. It has no other
/// words than the query and the remedies, and none of the query's own is left out but those at the
/// places of mistakes.
pub fn mended(query: &Query<'_>, options: &Options<'_>) -> Option<String> {
    let mut text = query.text.to_owned();
    for _ in 0..MENDED_MAX {
        match compile(&Query { text: &text, ..*query }, options) {
            Ok(_) => return (text != query.text).then_some(text),
            Err(all) => text = one_fewer(query, options, &text, &all)?,
        }
    }
    None
}

/// The text with one mistake fewer.
fn one_fewer(
    query: &Query<'_>,
    options: &Options<'_>,
    text: &str,
    all: &[Diagnostic],
) -> Option<String> {
    let errors = |all: &[Diagnostic]| all.iter().filter(|d| d.is_error()).count();
    // A mistake that is mended may show another one at its place.
    let has = |left: &[Diagnostic], mended: &Diagnostic| {
        left.iter().any(|d| d.code == mended.code && d.message == mended.message)
    };
    let left = |mended: &Diagnostic, text: &str| match compile(&Query { text, ..*query }, options) {
        Ok(_) => Some((0, Reverse(0))),
        Err(left) => (errors(&left) <= errors(all) && !has(&left, mended)).then(|| {
            let first = left.iter().find(|d| d.is_error()).map_or(0, |d| d.span.start);
            (errors(&left), Reverse(first))
        }),
    };
    let mistakes = all.iter().filter(|d| d.is_error()).take(MISTAKES_MENDED);
    let tried = mistakes.flat_map(|d| candidates(text, d).into_iter().map(move |text| (d, text)));
    let tried = tried.filter_map(|(d, text)| Some((left(d, &text)?, text)));
    tried.min_by_key(|(left, _)| *left).map(|(_, text)| text)
}

/// Texts with a piece of code of the remedy in the place of the mistake, or of that and the words
/// around it which the piece has, too: the fewest words first.
fn candidates(text: &str, found: &Diagnostic) -> Vec<String> {
    let help = found.help.as_deref().unwrap_or_default();
    let is_code = |piece: &&str| !piece.is_empty() && !["|", ",", ";"].contains(piece);
    let pieces = help.split('`').skip(1).step_by(2).map(bare).filter(is_code);
    let pieces: Vec<&str> = match found.code {
        // A value alone is no condition: which one was meant is not known.
        Code::NotBool => Vec::new(),
        // The network stands first, the address after it.
        Code::BadNetwork => pieces.take(1).collect(),
        _ => pieces.collect(),
    };
    let spans: Vec<Span> = lex::lex(text).tokens.iter().map(|token| token.span).collect();
    let spans: Vec<Span> = spans.into_iter().filter(|span| span.start < span.end).collect();
    // Examples say how something would be written, but where nothing is there.
    let is_example = help.contains("as in") && found.span.start < found.span.end;
    let mut all = Vec::new();
    for (from, to) in widened(&spans, found.span) {
        let place = spans[from].to(spans[to]);
        let around = |span: &&Span| {
            let is_beside = span.start < found.span.start || span.end > found.span.end;
            is_beside || ["not", "!="].contains(&span.of(text))
        };
        for piece in pieces.iter().filter(|piece| !piece.contains(OF_VALUE) && !is_example) {
            if spans[from..=to].iter().filter(around).all(|span| says(piece, span.of(text))) {
                all.push(replaced(text, place, piece));
            }
        }
    }
    for piece in pieces.iter().filter(|_| !is_example) {
        all.extend(of_value(text, &spans, found.span, piece));
        all.extend(of_call(text, &spans, found.span, piece));
        all.extend(of_stage(text, &spans, found.span, piece));
        all.extend(of_comparison(text, &spans, found.span, piece));
    }
    all
}

/// Whether a piece says what a word beside the mistake does: it has the word, or the operator for
/// it. One that negates stays.
fn says(piece: &str, word: &str) -> bool {
    let negates = piece.contains("!=") || piece.split_whitespace().any(|word| word == "not");
    match word {
        "in" | "==" => true,
        "not" | "!=" => negates,
        word => piece.contains(word.trim_matches(['"', '%'])),
    }
}

/// The text with a piece in the place of a span.
fn replaced(text: &str, place: Span, piece: &str) -> String {
    let (before, after) = (&text[..place.start], &text[place.end..]);
    // `by` stands there already, and names are made up.
    let is_by = before.trim_end().ends_with(" by") || before.trim_end().ends_with(',');
    let piece = if is_by { piece.trim_start_matches("by ") } else { piece };
    let piece = match piece.strip_prefix("NAME =") {
        Some(rest) => format!("key ={rest}"),
        None => piece.to_owned(),
    };
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let gap = |a, b| if is_word(a) && is_word(b) { " " } else { "" };
    let first = gap(before.chars().last(), piece.chars().next());
    let last = gap(piece.chars().last(), after.chars().next());
    format!("{before}{first}{piece}{last}{after}")
}

/// The text with another function in the place of one: its name, or its whole call, of which the
/// arguments are `x` in the remedy.
fn of_call(text: &str, spans: &[Span], place: Span, piece: &str) -> Option<String> {
    let at = spans.iter().position(|span| span.start == place.start)?;
    let (name, open) = (*spans.get(at)?, spans.get(at + 1).filter(|span| span.of(text) == "(")?);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if piece.chars().all(is_name) {
        return Some(replaced(text, name, piece));
    }
    let close = spans[at + 1..].iter().find(|span| span.of(text) == ")")?;
    let arguments = Span::new(open.end, close.start).of(text);
    let called = piece.replacen("(x", &format!("({arguments}"), 1);
    (called != piece).then(|| replaced(text, name.to(*close), &called))
}

/// The text with another stage in the place of one, which says by what. Other languages put the
/// smallest first unless told otherwise.
fn of_stage(text: &str, spans: &[Span], place: Span, piece: &str) -> Option<String> {
    let (stage, _) = piece.split_once(" by x")?;
    let at = spans.iter().position(|span| *span == place)?;
    let rest = spans[at + 1..].iter().take_while(|span| span.of(text) != "|");
    let end = rest.clone().last()?;
    let rest = Span::new(place.end, end.end).of(text).trim();
    let rest = rest.strip_prefix("by ").unwrap_or(rest);
    let keys = rest.split(',').map(|key| {
        let key = key.trim();
        match key.strip_suffix(" desc") {
            Some(key) => key.to_owned(),
            None => format!("{} asc", key.strip_suffix(" asc").unwrap_or(key)),
        }
    });
    let keys: Vec<String> = keys.collect();
    Some(replaced(text, place.to(*end), &format!("{stage} by {}", keys.join(", "))))
}

/// The text with a remedy in the place of a whole comparison of which one side is the mistake, if
/// it asks the same protocol, or asks for a protocol.
fn of_comparison(text: &str, spans: &[Span], place: Span, piece: &str) -> Option<String> {
    let at = spans.iter().position(|span| span.start >= place.start && span.end <= place.end)?;
    let sides = [at.checked_sub(2), at.checked_sub(1), Some(at)];
    sides.into_iter().flatten().find_map(|first| {
        let [left, operator, right] = spans.get(first..first + 3)? else { return None };
        let family = left.of(text).split('.').next()?;
        let value = right.of(text).trim_matches('"');
        let asks = piece.starts_with(&format!("{family}."))
            || left.of(text) == "ip.proto" && value == piece;
        let is_negated = match (operator.of(text), value) {
            ("==" | "=", "0" | "false") => true,
            ("!=", "0" | "false") => false,
            ("==" | "=", _) => false,
            ("!=", _) => true,
            _ => return None,
        };
        let piece = match is_negated {
            true => format!("not ({piece})"),
            false if piece.contains(' ') => format!("({piece})"),
            false => piece.to_owned(),
        };
        asks.then(|| replaced(text, left.to(*right), &piece))
    })
}

/// How advice on a name that means several fields says what each is compared with.
const OF_VALUE: &str = "== x";

/// The text with such advice in the place of a comparison with a value.
fn of_value(text: &str, spans: &[Span], place: Span, piece: &str) -> Option<String> {
    let at = spans.iter().position(|span| *span == place)?;
    let (operator, value) = (spans.get(at + 1)?.of(text), spans.get(at + 2)?);
    let filled = piece.replace(OF_VALUE, &format!("== {}", value.of(text)));
    let filled = match operator {
        "==" => format!("({filled})"),
        "!=" => format!("not ({filled})"),
        _ => return None,
    };
    (piece.contains(OF_VALUE))
        .then(|| format!("{}{filled}{}", &text[..place.start], &text[value.end..]))
}

/// A piece of code without the `|` that a stage follows.
fn bare(piece: &str) -> &str {
    piece.trim().trim_start_matches('|').trim_start()
}

/// The tokens at a place, and with more and more of those around it: numbers of the first and the
/// last.
fn widened(spans: &[Span], place: Span) -> Vec<(usize, usize)> {
    let touched = |span: &Span| span.start < place.end && span.end > place.start;
    // A missing word is told after the word before it.
    let before = |span: &Span| span.end <= place.start;
    let first = spans.iter().position(touched).or_else(|| spans.iter().rposition(before));
    let Some(first) = first else { return Vec::new() };
    let last = spans.iter().rposition(touched).unwrap_or(first);
    let mut all: Vec<(usize, usize)> = (0..=MENDED_TOKENS.min(first))
        .flat_map(|before| (0..=MENDED_TOKENS).map(move |after| (first - before, last + after)))
        .filter(|(_, to)| *to < spans.len())
        .collect();
    all.sort_by_key(|(from, to)| to - from);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wrong: &str, right: Option<&str>) {
        let query = Query { name: "q", text: wrong };
        assert_eq!(mended(&query, &Options::default()).as_deref(), right, "{wrong}");
    }

    #[test]
    fn remedies_are_written_in_the_place_of_mistakes() {
        check("packets | summarise n = count()", Some("packets | summarize n = count()"));
        check("packets | where dport = 80", Some("packets | where dport == 80"));
        check("packets | where dport in 80 and tcp", Some("packets | where dport == 80 and tcp"));
        check(
            "packets | where dns.qry.name == \"a\" | summarise n = cuont()",
            Some("packets | where dns.qname == \"a\" | summarize n = count()"),
        );
        check(
            "packets | where tcp.port == 80 and ip.addr != 10.0.0.1",
            Some(
                "packets | where (tcp.sport == 80 or tcp.dport == 80) and \
                 not (ip.src == 10.0.0.1 or ip.dst == 10.0.0.1)",
            ),
        );
        check(
            "packets | where http.uri like \"%a%\" and tcp",
            Some("packets | where contains(http.uri, \"a\") and tcp"),
        );
    }

    #[test]
    fn calls_stages_and_comparisons_are_written_anew() {
        for (wrong, right) in [
            ("summarize x = mean(len)", "summarize x = avg(len)"),
            ("summarize x = p95(len) by ip.src", "summarize x = percentile(len, 95) by ip.src"),
            ("sort len | limit 3", "top 1000 by len asc | limit 3"),
            ("order by len desc, ts", "top 1000 by len, ts asc"),
            ("where tcp.flags == SYN", "where tcp.syn"),
            ("where tcp.flags.syn == 1", "where tcp.syn"),
            ("where tcp.flags.syn == 0", "where not (tcp.syn)"),
            ("where tcp.flags.syn == 1 and tcp.flags.ack == 0", "where tcp.syn and not (tcp.ack)"),
            ("where dns.flags.response != 0", "where dns.qr"),
            ("where not tcp.flags == \"SA\"", "where not (tcp.syn and tcp.ack)"),
            ("where isnull(dns.qname) and udp", "where not exists(dns.qname) and udp"),
            ("where ip.src == 192.0.2.1/24", "where ip.src in 192.0.2.0/24"),
            ("where tcp | count", "where tcp | summarize n = count()"),
            ("count by ip.src", "summarize n = count() by ip.src"),
            ("where ip.proto == \"tcp\"", "where tcp"),
            ("where !tcp", "where not tcp"),
            ("where dport in [80, 443]", "where dport in {80, 443}"),
            ("where len between (100 .. 200)", "where len in 100..200"),
            ("where payload ~ \"x\"", "where matches(payload, \"x\")"),
            (
                "summarize n = count() by ip.src, every 1min",
                "summarize n = count() by ip.src every 1m",
            ),
            ("summarize n = count() by bin(ts, 1m)", "summarize n = count() by key = bin(ts, 1m)"),
            ("top 10", "top 10 by len"),
            ("where tcp.seq xor 1 == 2", "where tcp.seq ^ 1 == 2"),
        ] {
            check(&format!("packets | {wrong}"), Some(&format!("packets | {right}")));
        }
        check(
            "flow | top 10",
            Some(
                "packets | summarize packets = count(), bytes = sum(len) by flow | top 10 by bytes",
            ),
        );
    }

    #[test]
    fn nothing_is_made_up_or_left_out() {
        check("packets | where tcp", None);
        check("", None);
        check("packets | where nothing_like_it == 1", None);
        check("packets | where", None);
        check("packets | where protocol != tcp", None);
        check("packets | where service != \"http\"", None);
        check("packets | where dns.qname not == \"a\"", None);
        check("packets | project ip.src as a", None);
        check("packets | summarize n = count() every 5m timezone \"Europe/Rome\"", None);
    }
}
