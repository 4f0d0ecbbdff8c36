//! The references, by word: the sections of docs/language.md, and the lists of fields, functions
//! and stages that the language itself has.

use std::fmt::Write as _;
use weir_lang::{Code, LanguageWord, WordKind};

/// The reference of the language.
const LANGUAGE: &str = include_str!("../../../docs/language.md");

/// The word for all of it.
const WHOLE: &str = "language";

/// The section of what becomes of packets, which have no section each.
const ENDS: &str = "Ends for packets";

/// The text about a word of the language: a field, a key, a function, an aggregate, a stage, or
/// the code of a message.
pub(crate) fn of_word(word: &str) -> Option<String> {
    let mut out = String::new();
    if let Some((code, about)) = Code::ALL.iter().find(|(code, _)| code.to_string() == word) {
        let _ = writeln!(out, "{code}: {}", about.trim());
    }
    for known in weir_lang::words().iter().filter(|known| known.name == word) {
        match known.kind {
            WordKind::Stage => out += &stage(word)?,
            _ => out += &one_word(known),
        }
    }
    (!out.is_empty()).then_some(out)
}

/// The section of this title, such as `functions`; the whole reference by `language`.
pub(crate) fn section(word: &str) -> Option<String> {
    if word.eq_ignore_ascii_case(WHOLE) {
        return Some(plain(LANGUAGE));
    }
    let known = sections().find(|section| section.title.eq_ignore_ascii_case(word))?;
    Some(plain(known.text))
}

/// All words that have a text here.
pub(crate) fn topics() -> impl Iterator<Item = String> {
    let words = weir_lang::words().into_iter().map(|word| word.name.to_owned());
    let titles = sections().map(|section| section.title.to_ascii_lowercase());
    words.chain(titles.filter(|title| !title.contains(' '))).chain([WHOLE.to_owned()])
}

/// A field, a key or a function, in a few lines.
fn one_word(known: &LanguageWord) -> String {
    let LanguageWord { name, kind, ty, doc } = known;
    let doc = unmarked(doc);
    match kind {
        WordKind::Function | WordKind::Aggregate => format!("{ty}  ({})\n  {doc}\n", kind.name()),
        WordKind::Key | WordKind::Part => format!("{name}  ({})\n  {doc}\n", kind.name()),
        _ => format!("{name}: {ty}  ({})\n  {doc}\n", kind.name()),
    }
}

/// The section of a stage: the one whose title has its name.
fn stage(word: &str) -> Option<String> {
    let has = |title: &str| title.split([' ', ',']).any(|part| part == word);
    let own = sections().find(|section| section.level == 3 && has(section.title));
    let found = own.or_else(|| sections().find(|section| section.title == ENDS))?;
    Some(plain(found.text))
}

/// A section of the reference, with those below it.
struct Section {
    level: usize,
    title: &'static str,
    text: &'static str,
}

/// All sections, in order.
fn sections() -> impl Iterator<Item = Section> {
    let heads: Vec<(usize, usize)> = heads().collect();
    let end = |at: usize, level: usize| {
        let next = heads[at + 1..].iter().find(|(_, other)| *other <= level);
        next.map_or(LANGUAGE.len(), |(start, _)| *start)
    };
    let all: Vec<Section> = heads
        .iter()
        .enumerate()
        .map(|(at, (start, level))| {
            let text = &LANGUAGE[*start..end(at, *level)];
            let title = text.lines().next().unwrap_or_default().trim_start_matches('#').trim();
            Section { level: *level, title, text }
        })
        .collect();
    all.into_iter()
}

/// Where each heading begins, and its level. Comments of queries begin as headings do.
fn heads() -> impl Iterator<Item = (usize, usize)> {
    let (mut at, mut in_code) = (0, false);
    LANGUAGE.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        in_code ^= line.starts_with("```");
        let level = line.bytes().take_while(|b| *b == b'#').count();
        (level > 0 && !in_code).then_some((start, level))
    })
}

/// Markdown as a terminal shows it: code is indented, and links and marks are left out.
fn plain(markdown: &str) -> String {
    let (mut out, mut in_code) = (String::with_capacity(markdown.len()), false);
    for line in markdown.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        } else if in_code {
            let _ = writeln!(out, "    {line}");
        } else if line.starts_with('#') {
            let _ = writeln!(out, "{}", line.trim_start_matches('#').trim());
        } else if !line.starts_with("|---") {
            let _ = writeln!(out, "{}", unmarked(line));
        }
    }
    format!("{}\n", out.trim_end())
}

/// A line without the addresses of links and without marks.
fn unmarked(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, link)) = rest.split_once("](") {
        let Some((_, after)) = link.split_once(')') else { break };
        match before.rfind('[') {
            Some(at) => {
                out += &before[..at];
                out += &before[at + 1..];
            }
            None => out += before,
        }
        rest = after;
    }
    out += rest;
    out.replace("**", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_word_has_a_text() {
        for word in weir_lang::words() {
            let text = of_word(word.name).unwrap_or_default();
            assert!(text.lines().count() >= 2, "{}: {text}", word.name);
        }
        for (code, _) in Code::ALL {
            assert!(of_word(&code.to_string()).is_some(), "{code}");
        }
        let titles: BTreeSet<&str> = sections().map(|section| section.title).collect();
        for title in ["Stages", "Functions", "Keys", "Limits", ENDS] {
            assert!(titles.contains(title), "{title}");
        }
        assert!(topics().all(|topic| of_word(&topic).or_else(|| section(&topic)).is_some()));
        assert_eq!(of_word("nothing"), None);
        assert!(section("LANGUAGE").is_some() && section("nothing").is_none());
    }

    #[test]
    fn a_section_ends_where_the_next_one_begins() {
        let text = of_word("where").expect("a stage");
        assert!(text.starts_with("where\n") && !text.contains("\nextend\n"), "{text}");
        assert!(of_word("forward").expect("a stage").starts_with(ENDS));
        assert!(of_word("limit").expect("a stage").starts_with("top, limit, print"));
        let stages = section("stages").expect("a section");
        assert!(stages.contains("\nextend\n") && !stages.contains("\nFunctions\n"));
    }

    #[test]
    fn marks_are_left_out() {
        assert_eq!(unmarked("a **b** [c](d.md#e) f [g](h)."), "a b c f g.");
        assert_eq!(unmarked("x[0](1"), "x[0](1");
        assert_eq!(plain("## A\n\n```weir\n# b\n```\n| a |\n|---|\n"), "A\n\n    # b\n| a |\n");
    }
}
