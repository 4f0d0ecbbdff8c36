//! Conditions that people type: whether they are sound, and how they go on.

use crate::limits::FILTER_MAX;
use std::sync::LazyLock;
use weir_lang::{Diagnostic, Query, compile};
use weir_packet::fields::FIELDS;
use weir_plan::{Program, Stage};

/// What stands before a condition.
const BEFORE: &str = "packets\n| where ";

/// What is wrong with a condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The characters that it is about, counted from the first of the condition.
    pub from: usize,
    /// The one after the last of them.
    pub to: usize,
    /// One sentence.
    pub message: String,
    /// What would help.
    pub help: Option<String>,
}

/// Checks a condition; an empty one is none.
///
/// # Errors
/// The first mistake.
pub fn check(condition: &str) -> Result<(), Fault> {
    let whole = |message: String| {
        Err(Fault { from: 0, to: condition.chars().count(), message, help: None })
    };
    if condition.trim().is_empty() {
        return Ok(());
    }
    if condition.len() > FILTER_MAX {
        return whole(format!("a filter is at most {FILTER_MAX} bytes long"));
    }
    let text = format!("{BEFORE}{condition}\n");
    match compile(&Query { name: "filter", text: &text }, &weir_lang::Options::default()) {
        Err(diagnostics) => {
            let first = diagnostics.iter().find(|d| d.is_error());
            first.map_or_else(
                || whole("this is no condition".to_owned()),
                |d| Err(fault(d, condition)),
            )
        }
        Ok(compiled) if after_conditions(&compiled.program) == nothing_after() => Ok(()),
        Ok(_) => whole("a filter is one condition, without further stages".to_owned()),
    }
}

/// The stages of a program of one pipeline but for its conditions.
fn after_conditions(program: &Program) -> Option<Vec<&Stage>> {
    let [one] = &program.pipelines[..] else { return None };
    Some(one.stages.iter().filter(|stage| !matches!(stage, Stage::Where(_))).collect())
}

/// The stages that a program has that is no more than a condition: packets are shown by columns
/// that it does not name.
fn nothing_after() -> Option<Vec<&'static Stage>> {
    static PLAIN: LazyLock<Option<Program>> = LazyLock::new(|| {
        let text = format!("{BEFORE}ip\n");
        let query = Query { name: "filter", text: &text };
        compile(&query, &weir_lang::Options::default()).ok().map(|compiled| compiled.program)
    });
    PLAIN.as_ref().and_then(after_conditions)
}

/// A diagnostic, by its place in the condition.
fn fault(diagnostic: &Diagnostic, condition: &str) -> Fault {
    let at = |byte: usize| {
        let byte = byte.saturating_sub(BEFORE.len()).min(condition.len());
        condition.char_indices().take_while(|(i, _)| *i < byte).count()
    };
    let (from, to) = (at(diagnostic.span.start), at(diagnostic.span.end));
    let help = diagnostic.help.clone();
    Fault { from, to: to.max(from + 1), message: diagnostic.message.clone(), help }
}

/// Words of conditions besides the fields.
const WORDS: [&str; 6] = ["and", "exists(", "false", "in", "not", "or"];

/// Where the word begins that ends before the character `cursor`, and what it may become: fields
/// and words that start with it, in alphabetical order.
pub(crate) fn completions(condition: &str, cursor: usize) -> (usize, Vec<&'static str>) {
    let before: Vec<char> = condition.chars().take(cursor).collect();
    let is_word = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let start = before.iter().rposition(|c| !is_word(c)).map_or(0, |at| at + 1);
    let word: String = before[start..].iter().collect();
    if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
        return (start, Vec::new());
    }
    let fields = FIELDS.iter().map(|field| field.name);
    let mut all: Vec<&'static str> =
        fields.chain(WORDS).filter(|name| name.starts_with(&word) && *name != word).collect();
    all.sort_unstable();
    (start, all)
}

/// What all of these words begin with.
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
        assert_eq!(completions("ex", 2).1, ["exists("]);
        assert!(completions("tcp ", 4).1.is_empty() && completions("10.", 3).1.is_empty());
        assert_eq!(common_prefix(&["dns.qname", "dns.qtype", "dns.qr"]), "dns.q");
        assert_eq!((common_prefix(&["a", "b"]), common_prefix(&[])), ("", ""));
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
