//! Command lines that are right where the given one was wrong: the same words but for the mistake,
//! and what takes its place was checked. Nothing that was asked is left out.

use crate::args::Cli;
use crate::captures;
use crate::exit::usage_try;
use crate::library;
use crate::texts::{from_packets, is_text};
use clap::CommandFactory as _;
use std::borrow::Cow;
use std::io;
use std::path::Path;
use weir_capture::begins_as_capture;
use weir_capture::bpf::Filter;
use weir_lang::{Code, Diagnostic, Options, Query};
use weir_packet::fields::FIELDS;

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

/// Whether the name of a field has this in it.
pub(crate) fn is_in_a_field(pattern: &str) -> bool {
    FIELDS.iter().any(|field| field.name.contains(pattern))
}

/// The given command line with another value after an option.
pub(crate) fn with_value(old: &str, new: &str) -> Option<String> {
    let mut words = given();
    let is_value = |at: usize| at > 0 && words[at - 1].starts_with('-') && words[at] == old;
    let at = (0..words.len()).find(|at| is_value(*at))?;
    new.clone_into(&mut words[at]);
    Some(line(words.iter().map(String::as_str)))
}

/// The given command line without a word, or with another one in its place.
pub(crate) fn with_word(old: &str, new: &str) -> Option<String> {
    with(given(), |word| word == old, new)
}

/// The given command line with another word in the place of one that means this.
pub(crate) fn where_meant(is_meant: impl Fn(&str) -> bool, new: &str) -> Option<String> {
    with(given(), is_meant, new)
}

/// The given command line with a query in the place of a capture filter that can't be read, if that
/// is a condition of a query, or meant as one, and no query is given.
pub(crate) fn as_query(filter: &str) -> Option<String> {
    // A name alone is rather a query that is spelled wrongly.
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let mut words = given();
    let is_open = words.first().is_some_and(|word| word == "run" || !is_command(word));
    let has_query =
        words.iter().any(|word| ["-e", "--expression", "-w", "--write"].contains(&&**word));
    if !is_open || has_query {
        return None;
    }
    let text = format!("packets | where {filter}");
    let query = Query { name: "", text: &text };
    let is_protocol = |all: &[Diagnostic]| all.iter().any(|d| d.code == Code::Unsupported);
    let text = match weir_lang::compile(&query, &Options::default()) {
        Ok(_) => text,
        Err(all) if filter.chars().all(is_name) && !is_protocol(&all) => return None,
        Err(_) => weir_lang::mended(&query, &Options::default())?,
    };
    // The filter is one word, or as many as it has.
    let parts: Vec<&str> = filter.split_whitespace().collect();
    let at = words.windows(parts.len()).position(|run| run == parts);
    let (at, len) = match words.iter().position(|word| word == filter) {
        Some(at) => (at, 1),
        None => (at?, parts.len()),
    };
    let stages = text.trim_start_matches("packets | ").to_owned();
    words.splice(at..at + len, [stages]);
    Some(line(words.iter().map(String::as_str)))
}

/// Whether the given command takes queries among its words.
pub(crate) fn takes_queries() -> bool {
    let words = given();
    let takes = ["run", "watch", "serve"];
    words.first().is_some_and(|word| takes.contains(&word.as_str()) || !is_command(word))
}

/// Whether a word is a command, or a query of the library.
pub(crate) fn is_command(word: &str) -> bool {
    Cli::command().find_subcommand(word).is_some() || library::find(word).is_some()
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
    let (words, plain) = (given(), |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let captures = captures::expanded(vec![".".to_owned()]).unwrap_or_default();
    let names = captures.iter().map(|name| name.trim_start_matches("./"));
    let fits = |name: &&str| {
        !name.starts_with('-')
            && name.chars().all(plain)
            && begins_as_capture(Path::new(name))
            && !words.iter().any(|word| word == name || word == "--")
    };
    match names.clone().find(fits) {
        Some(name) => line(words.iter().map(String::as_str).chain([name])),
        None => line(["interfaces"]),
    }
}

/// The given command line with its query ended by `pass`, if it has a text that can be; else the
/// line that says how packets pass.
pub(crate) fn passing() -> String {
    let passes = |word: &str| {
        let text = format!("{} | pass", from_packets(word));
        let query = Query { name: "", text: &text };
        weir_lang::compile(&query, &Options::default()).is_ok()
    };
    let words = given();
    let text = words.iter().find(|word| is_text(word) && passes(word));
    let mended = text.and_then(|text| with_word(text, &format!("{text} | pass")));
    mended.unwrap_or_else(|| line(["help", "pass"]))
}

/// The given command line without its interfaces.
pub(crate) fn without_interfaces() -> String {
    let mut words = given();
    while let Some(at) = words.iter().position(|word| word == "-i" || word == "--interface") {
        words.drain(at..(at + 2).min(words.len()));
    }
    line(words.iter().map(String::as_str))
}

/// A name for a report that no file has.
pub(crate) fn report_name() -> String {
    let names = (1..100).map(|n| match n {
        1 => "report.html".to_owned(),
        n => format!("report-{n}.html"),
    });
    let mut names = names.filter(|name| !Path::new(name).exists());
    names.next().unwrap_or_else(|| "-".to_owned())
}

/// A line that prints what the references say of the place of a mistake.
pub(crate) fn reading(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let stage = before.rsplit('|').next().unwrap_or_default().split_whitespace().next();
    let topic = stage.filter(|word| weir_lang::stages().contains(word)).unwrap_or("language");
    line(["help", topic])
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

/// The capture of a folder whose name is near to one that is not there.
pub(crate) fn near_capture(word: &str) -> Option<String> {
    let folder = Path::new(word).parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let all = captures::expanded(vec![folder.to_str()?.to_owned()]).ok()?;
    let all: Vec<&str> = all.iter().map(|name| name.trim_start_matches("./")).collect();
    weir_lang::closest(word, all).map(str::to_owned)
}

/// Refuses the names of captures that are not there where others are called nearly so.
pub(crate) fn refuse_misspelled(captures: &[String]) -> anyhow::Result<()> {
    let is_missing = |name: &&String| {
        let found = std::fs::metadata(name);
        found.is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
    };
    let missing = captures.iter().filter(is_missing);
    let Some((name, near)) = missing.filter_map(|name| Some((name, near_capture(name)?))).next()
    else {
        return Ok(());
    };
    let line = with_value(name, &near).or_else(|| with_word(name, &near));
    Err(usage_try(format!("{name}: there is no such file; did you mean `{near}`?"), line))
}

/// The given command line with the command in the place of one that other tools have.
pub(crate) fn of_command(word: &str) -> Option<String> {
    let words = given();
    let mut rest = words.get(1..).unwrap_or_default().iter().map(String::as_str);
    match word {
        "docs" | "doc" | "man" | "manual" | "guide" | "tutorial" => {
            Some(line(["help", "language"]))
        }
        "search" | "field" => {
            let found = rest.next().filter(|pattern| is_in_a_field(pattern));
            Some(line(["fields"].into_iter().chain(found)))
        }
        "count" | "stats" | "stat" | "summary" | "info" => Some(line(rest)),
        "version" => Some(line(["--version"])),
        "queries" | "library" | "rules" => Some(line(["list"])),
        "devices" | "ifaces" | "interface" => Some(line(["interfaces"])),
        _ => None,
    }
}

/// The line that prints the help of the command that was given.
pub(crate) fn helping() -> String {
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
        // Shorter ones are as near to names of protocols.
        let known = captures::FILTER_WORDS.iter().copied().filter(|word| word.len() > 3);
        let near = weir_lang::closest(words[at], known).filter(|_| words[at].len() > 3)?;
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
    fn filters_are_spelled_right() {
        assert_eq!(respelled("tcp prot 80"), Some(("prot", "port")));
        assert_eq!(respelled("prot 80 and hsot 10.0.0.1"), None, "two words");
        assert_eq!(respelled("ftp"), None, "a protocol that filters have no word for");
        assert_eq!(respelled("hots 10.0.0.1"), Some(("hots", "host")));
        assert_eq!(respelled("something else"), None);
        assert_eq!(respelled(""), None);
    }
}
