//! Texts of queries as words of a command line.

use crate::captures::FILTER_WORDS;
use crate::library;
use std::borrow::Cow;

/// Whether a word of a command line is the text of a query: it begins with a source, with a
/// statement, or with a stage, as no capture filter does, or has stages.
pub(crate) fn is_text(word: &str) -> bool {
    let (first, rest) = first_word(word);
    let goes_on = rest.trim_start().starts_with('|') || rest.starts_with(char::is_whitespace);
    match first {
        "packets" | "flows" if rest.is_empty() => first == "packets",
        "packets" | "flows" | "let" | "param" => goes_on,
        _ if is_stage(first) => goes_on,
        // A query of the library, whose rows go on.
        _ if library::find(first).is_some() => {
            // Of one of its lets: `flow_meter.totals`.
            let named = |c: char| c == '.' || c == '_' || c.is_ascii_alphanumeric();
            rest.trim_start_matches(named).trim_start().starts_with('|')
        }
        // A stage that is spelled wrongly, or that other languages have.
        _ if is_near_stage(first) && rest.starts_with(char::is_whitespace) => true,
        // Filters have `|` between numbers, in brackets, and `||`.
        _ => word.contains(" | ") && !word.contains('['),
    }
}

/// The text of a query. One that begins with a stage is asked of packets.
pub(crate) fn from_packets(text: &str) -> Cow<'_, str> {
    let (first, _) = first_word(text);
    match is_stage(first) || is_text(text) && is_near_stage(first) {
        true => Cow::Owned(format!("packets | {}", text.trim_start())),
        false => Cow::Borrowed(text),
    }
}

/// The first word, and what follows.
fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
    text.split_at(end.unwrap_or(text.len()))
}

/// Whether a stage may be meant by a word, which begins neither a query nor a filter.
fn is_near_stage(word: &str) -> bool {
    let begins = ["packets", "flows", "let", "param"].contains(&word);
    !begins && !FILTER_WORDS.contains(&word) && weir_lang::is_near_stage(word)
}

fn is_stage(word: &str) -> bool {
    weir_lang::stages().contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_from_names_and_filters() {
        for text in [
            "packets",
            "packets | where tcp",
            "packets|limit 1",
            "  where tcp",
            "top 3 by len",
            "summarize n = count() by ip.src",
            "let a = packets",
            "flows | limit 1",
            "ip.src | top 10",
            "# a comment | packets\npackets | limit 1",
            "limit 1",
            "summarise n = count()",
            "select ip.src",
            "sort len asc",
            "hosts|limit 1",
            "flow_meter.totals | limit 1",
        ] {
            assert!(is_text(text), "{text}");
        }
        for word in [
            "",
            "flows",
            "top",
            "hello",
            "my.weir",
            "tcp port 80",
            "tcp[13] & (2|16) != 0",
            "tcp || udp",
            "tcp[13] | 1 == 3",
            "host a.b",
            "packets.weir",
            "top-talkers",
            "-",
            "dns.rcode == 3",
        ] {
            assert!(!is_text(word), "{word}");
        }
    }

    #[test]
    fn stages_alone_are_asked_of_packets() {
        assert_eq!(from_packets(" where tcp"), "packets | where tcp");
        assert_eq!(from_packets("project-away len"), "packets | project-away len");
        for text in ["packets | where tcp", "let x = 1", "", "tcp"] {
            assert_eq!(from_packets(text), text);
        }
    }
}
