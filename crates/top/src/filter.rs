//! Conditions that people type: whether they are sound, and how they go on.

use crate::limits::FILTER_MAX;
use std::sync::LazyLock;
use weir_lang::{Diagnostic, LanguageWord, Query, ReadingRules, WordKind, compile, words};
use weir_plan::Stage;

/// The text before a condition.
const BEFORE: &str = "packets\n| where ";

/// A mistake in a condition or in keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The characters that it is about, counted from the first of the text.
    pub from: usize,
    /// The one after the last of them.
    pub to: usize,
    /// One sentence.
    pub message: String,
    /// A hint that would help.
    pub help: Option<String>,
}

impl Fault {
    /// About all of a text.
    pub(crate) fn of_all(text: &str, message: String) -> Fault {
        Fault { from: 0, to: text.chars().count(), message, help: None }
    }
}

/// Checks a condition; an empty one is none.
///
/// # Errors
/// The first mistake.
pub fn check(condition: &str) -> Result<(), Fault> {
    condition_stages(condition, ReadingRules::default()).map(drop)
}

/// The stages of a condition on packets; an empty one has none.
///
/// # Errors
/// The first mistake.
pub(crate) fn condition_stages(condition: &str, rules: ReadingRules) -> Result<Vec<Stage>, Fault> {
    let whole = |message: String| Err(Fault::of_all(condition, message));
    if condition.trim().is_empty() {
        return Ok(Vec::new());
    }
    if condition.len() > FILTER_MAX {
        return whole(format!("a filter is at most {FILTER_MAX} bytes long"));
    }
    let mut stages = stages_by(BEFORE, condition, rules)?;
    if after_conditions(&stages) != nothing_after() {
        return whole("a filter is one condition, without further stages".to_owned());
    }
    stages.retain(|stage| matches!(stage, Stage::Where(_)));
    Ok(stages)
}

/// The stages of a query that begins so, and goes on as somebody typed; none if these are several
/// pipelines.
///
/// # Errors
/// The first mistake, by its place in what was typed.
pub(crate) fn stages(before: &str, typed: &str) -> Result<Vec<Stage>, Fault> {
    stages_by(before, typed, ReadingRules::default())
}

fn stages_by(before: &str, typed: &str, rules: ReadingRules) -> Result<Vec<Stage>, Fault> {
    let text = format!("{before}{typed}\n");
    let options = weir_lang::Options { rules, ..weir_lang::Options::default() };
    match compile(&Query { name: "typed", text: &text }, &options) {
        Err(diagnostics) => match diagnostics.iter().find(|d| d.is_error()) {
            Some(first) => Err(fault(first, before, typed)),
            None => Err(Fault::of_all(typed, "this can't be read".to_owned())),
        },
        Ok(compiled) => Ok(match <[_; 1]>::try_from(compiled.program.pipelines) {
            Ok([only]) => only.stages,
            Err(_) => Vec::new(),
        }),
    }
}

/// Stages but for the conditions among them; `None` if there are none at all.
fn after_conditions(stages: &[Stage]) -> Option<Vec<&Stage>> {
    let rest = stages.iter().filter(|stage| !matches!(stage, Stage::Where(_)));
    (!stages.is_empty()).then(|| rest.collect())
}

/// The stages that a query has that is no more than a condition: packets are shown by columns
/// that it does not name.
fn nothing_after() -> Option<Vec<&'static Stage>> {
    static PLAIN: LazyLock<Vec<Stage>> = LazyLock::new(|| stages(BEFORE, "ip").unwrap_or_default());
    after_conditions(&PLAIN)
}

/// A diagnostic, by its place in what was typed.
fn fault(diagnostic: &Diagnostic, before: &str, typed: &str) -> Fault {
    let at = |byte: usize| {
        let byte = byte.saturating_sub(before.len()).min(typed.len());
        typed.char_indices().take_while(|(i, _)| *i < byte).count()
    };
    let (from, to) = (at(diagnostic.span.start), at(diagnostic.span.end));
    let help = diagnostic.help.clone();
    Fault { from, to: to.max(from + 1), message: diagnostic.message.clone(), help }
}

/// Words of conditions that are no fields, keys or functions.
const OPERATORS: [&str; 6] = ["and", "false", "in", "not", "or", "true"];

/// The words of conditions and keys, in alphabetical order; functions with their bracket.
static EXPRESSION_WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let word = |word: LanguageWord| match word.kind {
        WordKind::Field | WordKind::Key => Some(word.name.to_owned()),
        WordKind::Function => Some(format!("{}(", word.name)),
        _ => None,
    };
    let mut all: Vec<String> = words().into_iter().filter_map(word).collect();
    all.extend(OPERATORS.map(str::to_owned));
    all.sort_unstable();
    all.dedup();
    all
});

/// Where the word begins that ends before the character `cursor`, and what it may become: words of
/// conditions and keys that start with it, in alphabetical order. Aggregates are none of these.
pub(crate) fn completions(condition: &str, cursor: usize) -> (usize, Vec<&'static str>) {
    let before: Vec<char> = condition.chars().take(cursor).collect();
    let is_word = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let start = before.iter().rposition(|c| !is_word(c)).map_or(0, |at| at + 1);
    let word: String = before[start..].iter().collect();
    if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
        return (start, Vec::new());
    }
    let all = EXPRESSION_WORDS.iter().map(String::as_str);
    (start, all.filter(|name| name.starts_with(&word) && *name != word).collect())
}

/// The common prefix of all of these words.
pub(crate) fn common_prefix<'a>(words: &[&'a str]) -> &'a str {
    let Some((first, rest)) = words.split_first() else { return "" };
    let mut len = first.len();
    for word in rest {
        let same = first.bytes().zip(word.bytes()).take_while(|(a, b)| a == b).count();
        len = len.min(same);
    }
    first.get(..len).unwrap_or("")
}

/// Both conditions together.
pub(crate) fn both(first: &str, second: &str) -> String {
    // A comment would hide the bracket.
    match without_comment(first).trim() {
        "" => second.to_owned(),
        first if first == second => first.to_owned(),
        first => format!("({first}) and ({second})"),
    }
}

/// A condition up to its comment, if it ends in one.
fn without_comment(condition: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in condition.char_indices() {
        match c {
            '#' if !quoted => return &condition[..at],
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    condition
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn conditions_are_checked_at_their_place() {
        for good in ["", "  ", "tcp", "tcp.dport == 443 and ip.src in 10.0.0.0/8", "udp # c"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let fault = |text: &str| check(text).expect_err(text);
        let wrong = fault("tcp and dprt == 443");
        assert_eq!((wrong.from, wrong.to), (8, 12));
        assert_eq!(wrong.message, "no field or column is called `dprt`");
        assert_eq!(wrong.help.as_deref(), Some("did you mean `dport`?"));
        let open = fault("(tcp");
        assert!(open.from <= 4 && open.to > open.from, "{open:?}");
        for more in ["tcp | limit 1", "tcp\nlet a = packets", "tcp | summarize count()", "tcp |"] {
            let wrong = fault(more);
            assert!(!wrong.message.is_empty() && wrong.to > wrong.from, "{more}: {wrong:?}");
        }
        assert!(fault(&"x".repeat(FILTER_MAX + 1)).message.contains("2048"));
    }

    #[test]
    fn words_go_on_as_fields() {
        let (start, all) = completions("tcp and tcp.po", 14);
        assert_eq!((start, &all[..]), (8, &[][..]));
        let (start, all) = completions("not tcp.s", 9);
        assert_eq!(start, 4);
        assert!(all.contains(&"tcp.syn") && all.contains(&"tcp.sport"), "{all:?}");
        assert!(all.is_sorted() && all.iter().all(|name| name.starts_with("tcp.s")));
        assert_eq!(completions("exi", 3).1, ["exists("]);
        assert!(completions("tcp ", 4).1.is_empty() && completions("10.", 3).1.is_empty());
        assert_eq!(common_prefix(&["dns.qname", "dns.qtype", "dns.qr"]), "dns.q");
        assert_eq!((common_prefix(&["a", "b"]), common_prefix(&[])), ("", ""));
    }

    /// Keys and functions are offered where fields are, and nothing that is wrong there.
    #[test]
    fn words_go_on_as_keys_and_functions() {
        let all = |typed: &str| completions(typed, typed.len()).1;
        for (typed, whole) in [("hos", "hosts"), ("flo", "flow"), ("pref", "prefix(")] {
            assert!(all(typed).contains(&whole), "{typed}: {:?}", all(typed));
        }
        for not_here in ["summariz", "varianc", "stdde"] {
            assert!(all(not_here).is_empty(), "{not_here}: {:?}", all(not_here));
        }
        assert_eq!(completions("hosts == (10.0.0.1, ip.s", 24).1, ["ip.src"]);
        assert_eq!(check("hosts == (10.0.0.1, 10.0.0.2)"), Ok(()));
        assert_eq!(crate::typed_keys::check("hosts, n = prefix(ip.src, 24)"), Ok(()));
        assert!(crate::typed_keys::check("n = count()").is_err());
    }

    #[test]
    fn conditions_are_joined() {
        assert_eq!(both("", "tcp"), "tcp");
        assert_eq!(both("tcp", "tcp"), "tcp");
        assert_eq!(both("udp or tcp # both", "ip"), "(udp or tcp) and (ip)");
        let quoted = r##"http.uri == "a\"#b""##;
        assert_eq!(both(quoted, "ip"), format!("({quoted}) and (ip)"));
        assert_eq!(check(&both("udp or tcp # both", "ip.src == ::1")), Ok(()));
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "[ -~é\t\n]{0,40}", cursor in 0_usize..50) {
            if let Err(fault) = check(&text) {
                prop_assert!(fault.from < fault.to);
                prop_assert!(fault.from <= text.chars().count());
            }
            let (start, _) = completions(&text, cursor);
            prop_assert!(start <= text.chars().count());
        }
    }
}
