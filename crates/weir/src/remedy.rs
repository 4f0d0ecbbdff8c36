//! Command lines that are right where the given one was wrong. Each is checked before it is shown:
//! what a person copies from here runs.

use crate::captures;
use std::borrow::Cow;
use std::path::Path;
use weir_capture::bpf::Filter;
use weir_lang::{Options, Query};

/// The words of the command line, without the name of the program.
fn given() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// A command line of these words, as a shell takes it.
pub(crate) fn line<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().fold("weir".to_owned(), |line, word| format!("{line} {}", quoted(word)))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', "'\\''"))),
    }
}

/// The given command line without a word, or with another one in its place.
pub(crate) fn with_word(old: &str, new: &str) -> Option<String> {
    with(given(), |word| word == old, new)
}

/// The given command line with another word in the place of one that means this.
pub(crate) fn where_meant(is_meant: impl Fn(&str) -> bool, new: &str) -> Option<String> {
    with(given(), is_meant, new)
}

/// A command line that asks what a capture filter can't, if it is a condition of a query, or meant
/// as one.
pub(crate) fn as_query(filter: &str) -> Option<String> {
    // A name alone is rather a query that is spelled wrongly.
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if filter.chars().all(is_name) {
        return None;
    }
    let text = format!("packets | where {filter}");
    let query = Query { name: "", text: &text };
    let text = match weir_lang::compile(&query, &Options::default()) {
        Ok(_) => text,
        Err(_) => weir_lang::mended(&query, &Options::default())
            .or_else(|| foreign(filter).map(str::to_owned))?,
    };
    let stages = text.trim_start_matches("packets | ");
    Some(line([stages].into_iter().chain(inputs(&given()).iter().map(String::as_str))))
}

/// The given command line with `-n N` said as Weir says it, where N was taken for a filter.
pub(crate) fn with_count(filter: &str) -> Option<String> {
    let mut words = given();
    let at = words.windows(2).position(|pair| pair[0] == "-n" && pair[1] == filter)?;
    let right = match words[0] == "top" {
        true => ["-p".to_owned(), format!("n={filter}")],
        false => ["-c".to_owned(), filter.to_owned()],
    };
    words.splice(at..at + 2, right);
    Some(line(words.iter().map(String::as_str)))
}

/// The given command line with the input that stands in the working folder: a capture, if one is
/// there; else the one that lists interfaces.
pub(crate) fn with_input() -> String {
    let captures = captures::expanded(vec![".".to_owned()]).unwrap_or_default();
    let Some(capture) = captures.first() else { return line(["interfaces"]) };
    let words = given();
    let capture = capture.trim_start_matches("./");
    line(words.iter().map(String::as_str).chain([capture]))
}

/// A command line that writes the packets of the given one into a file.
pub(crate) fn writing(to: &str) -> String {
    let inputs = inputs(&given());
    line(
        ["run", "packets | pass"]
            .into_iter()
            .chain(inputs.iter().map(String::as_str))
            .chain(["-w", to]),
    )
}

/// The line that opens the captures of the given command line.
pub(crate) fn opening() -> String {
    let captures: Vec<String> = given().into_iter().filter(|w| captures::is_meant(w)).collect();
    line(captures.iter().map(String::as_str))
}

/// A line that prints what the references say of the place of a mistake.
pub(crate) fn reading(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let stage = before.rsplit('|').next().unwrap_or_default().split_whitespace().next();
    let topic = stage.filter(|word| weir_lang::stages().contains(word)).unwrap_or("language");
    line(["help", topic])
}

/// A query that asks what a text of another language may mean, which has no meaning here.
fn foreign(text: &str) -> Option<&'static str> {
    match language(text)? {
        "SQL" => Some("limit 10"),
        _ => Some("summarize packets = count(), bytes = sum(len) by ip.src every 1m"),
    }
}

/// The other language that a text is of, if it is one that people know of such tools.
pub(crate) fn language(text: &str) -> Option<&'static str> {
    let lower = text.trim_start().to_ascii_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| lower.starts_with(word));
    match () {
        () if begins(&["select ", "with "]) => Some("SQL"),
        () if begins(&["sum(", "sum by", "rate(", "irate(", "topk(", "avg(", "count("]) => {
            Some("PromQL")
        }
        () => None,
    }
}

/// The captures and interfaces of a command line, with the options that name them.
fn inputs(words: &[String]) -> Vec<String> {
    let is_option = |word: &str| ["-r", "--read", "-i", "--interface"].contains(&word);
    let mut all = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match at.checked_sub(1).map(|before| &words[before]) {
            Some(option) if is_option(option) => all.extend([option.clone(), word.clone()]),
            // Another file, such as that of -w.
            Some(option) if option.starts_with('-') && option != "-" => {}
            _ if captures::is_meant(word) => all.push(word.clone()),
            _ => {}
        }
    }
    all
}

/// The capture of a folder whose name is near to one that is not there.
pub(crate) fn near_capture(word: &str) -> Option<String> {
    let folder = Path::new(word).parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let all = captures::expanded(vec![folder.to_str()?.to_owned()]).ok()?;
    let all: Vec<&str> = all.iter().map(|name| name.trim_start_matches("./")).collect();
    weir_lang::closest(word, all).map(str::to_owned)
}

/// The given command line with the command in the place of one that other tools have.
pub(crate) fn of_command(word: &str) -> Option<String> {
    let words = given();
    let mut rest = words.get(1..).unwrap_or_default().iter().map(String::as_str);
    match word {
        "docs" | "doc" | "man" | "manual" | "guide" | "tutorial" => {
            Some(line(["help"].into_iter().chain([rest.next().unwrap_or("language")])))
        }
        "search" | "field" => Some(line(["fields"].into_iter().chain(rest))),
        "version" => Some(line(["--version"])),
        "queries" | "library" | "rules" => Some(line(["list"])),
        "devices" | "ifaces" | "interface" => Some(line(["interfaces"])),
        _ => None,
    }
}

/// The line that prints the help of the command that was given.
pub(crate) fn helping(is_command: impl Fn(&str) -> bool) -> String {
    let words = given();
    let command = words.first().map(String::as_str).filter(|word| is_command(word));
    line(command.into_iter().chain(["--help"]))
}

fn with(mut words: Vec<String>, is_meant: impl Fn(&str) -> bool, new: &str) -> Option<String> {
    let place = words.iter().position(|word| is_meant(word))?;
    if new.is_empty() {
        words.remove(place);
    } else {
        new.clone_into(&mut words[place]);
    }
    Some(line(words.iter().map(String::as_str)))
}

/// The given command line with a capture filter that can be read, where one word of it was spelled
/// wrongly.
pub(crate) fn with_filter(filter: &str) -> Option<String> {
    let (old, new) = respelled(filter)?;
    let has = |word: &str| word.split_whitespace().any(|part| part == old);
    let words = given();
    let place = words.iter().rposition(|word| has(word))?;
    let parts = words[place].split_whitespace().map(|part| if part == old { new } else { part });
    let mended = parts.collect::<Vec<_>>().join(" ");
    with(words.clone(), |word| word == words[place], &mended)
}

/// The word of a filter that is spelled wrongly, and how it would be right.
fn respelled(filter: &str) -> Option<(&str, &'static str)> {
    let words: Vec<&str> = filter.split_whitespace().collect();
    (0..words.len()).find_map(|at| {
        let near = weir_lang::closest(words[at], captures::FILTER_WORDS.iter().copied())?;
        let mut mended = words.clone();
        mended[at] = near;
        Filter::new(&mended.join(" ")).ok().map(|_| (words[at], near))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_more_in_them() {
        let all = ["run", "-e", "packets | limit 1", "it's", "", "x.pcap", "a=b", "$x", "tcp[1]"];
        assert_eq!(
            line(all),
            r"weir run -e 'packets | limit 1' 'it'\''s' '' x.pcap a=b '$x' 'tcp[1]'"
        );
    }

    #[test]
    fn one_word_takes_the_place_of_another() {
        let words = || ["flws", "x.pcap", "flws"].map(str::to_owned).to_vec();
        let line = with(words(), |word| word == "flws", "flows");
        assert_eq!(line.as_deref(), Some("weir flows x.pcap flws"));
        assert_eq!(with(words(), |word| word == "no", "flows"), None);
    }

    #[test]
    fn inputs_are_kept() {
        let words = "flows -r a b.pcap -i lo tcp --read c d.pcap -w e.pcap".split(' ');
        let words: Vec<String> = words.map(str::to_owned).collect();
        assert_eq!(inputs(&words).join(" "), "-r a b.pcap -i lo --read c d.pcap");
    }

    #[test]
    fn filters_are_spelled_right() {
        assert_eq!(respelled("tcp prot 80"), Some(("prot", "port")));
        assert_eq!(respelled("tpc port 80 and hsot 10.0.0.1"), None, "two words");
        assert_eq!(respelled("hots 10.0.0.1"), Some(("hots", "host")));
        assert_eq!(respelled("something else"), None);
        assert_eq!(respelled(""), None);
    }
}
