//! The queries of one run: which words name them, what their programs are called, which params go
//! to which, and all of them as one program.

use crate::captures;
use crate::exit::usage;
use crate::library;
use crate::query::{self, Source};
use crate::site::Site;
use crate::term::Term;
use crate::texts::is_text;
use std::path::Path;
use weir_engine::functions::Functions;
use weir_lang::{Options, ReadingRules};
use weir_plan::Program;
use weir_plan::together::join;

/// Values of params by name.
type Params = [(String, String)];

/// Queries that run together, each under a name of its own.
#[derive(Debug)]
pub(crate) struct Programs {
    sources: Vec<Source>,
    site: Site,
    rules: ReadingRules,
}

impl Programs {
    /// The queries given as texts, then those that `words` name.
    pub(crate) fn given(texts: &[String], words: &[String]) -> anyhow::Result<Programs> {
        let text = |(i, text): (usize, &String)| Source::from_text(text, i + 1, texts.len());
        let mut sources: Vec<Source> = texts.iter().enumerate().map(text).collect();
        if words.iter().filter(|word| *word == "-").count() > 1 {
            return Err(usage("standard input can be one query only"));
        }
        for word in words {
            sources.extend(Source::load_all(word)?);
        }
        Programs::new(sources)
    }

    /// These queries. Where two would have one name, the later one gets a number.
    pub(crate) fn new(mut sources: Vec<Source>) -> anyhow::Result<Programs> {
        if sources.is_empty() {
            return Err(usage("no query given: name a file or a query, or use -e TEXT"));
        }
        for i in 0..sources.len() {
            let (before, rest) = sources.split_at_mut(i);
            let taken = |name: &str| before.iter().any(|source| source.program == name);
            let name = &rest[0].program;
            if taken(name) {
                let numbered = (2..).map(|n| format!("{name}-{n}")).find(|name| !taken(name));
                rest[0].program = numbered.unwrap_or_default();
            }
        }
        Ok(Programs { sources, site: Site::default(), rules: ReadingRules::default() })
    }

    /// The same, where names mean this.
    pub(crate) fn with_rules(self, rules: ReadingRules) -> Programs {
        Programs { rules, ..self }
    }

    /// The meaning of names.
    pub(crate) fn rules(&self) -> ReadingRules {
        self.rules
    }

    /// The same, with the params of a site.
    pub(crate) fn with_site(self, site: Site) -> Programs {
        Programs { site, ..self }
    }

    /// The same without the programs of these names.
    pub(crate) fn without(self, names: &[&str]) -> anyhow::Result<Programs> {
        let left = self.without_any(names);
        if left.sources.is_empty() {
            return Err(usage("--without leaves nothing to run"));
        }
        Ok(left)
    }

    /// The same, where nothing may be left.
    pub(crate) fn without_any(mut self, names: &[&str]) -> Programs {
        self.sources.retain(|source| !names.contains(&source.program.as_str()));
        self
    }

    /// The params of a site.
    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// The queries, in order.
    pub(crate) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The params that are meant for the query of that number: `-p name=…` for all that have one
    /// of that name, `-p program.name=…` for one; that counts where both are given. A query that is
    /// alone is meant by all.
    pub(crate) fn params_of(&self, number: usize, given: &Params) -> Vec<(String, String)> {
        let source = &self.sources[number];
        let (alone, known) = (self.sources.len() == 1, names_of_params(source));
        let own = |(name, value): &(String, String)| {
            own_name(source, name).map(|own| (own.to_owned(), value.clone()))
        };
        let own: Vec<(String, String)> = given.iter().filter_map(own).collect();
        let meant = |(name, _): &&(String, String)| {
            let set = own.iter().any(|(other, _)| other == name);
            !set && own_name(source, name).is_none() && (alone || known.contains(name))
        };
        given.iter().filter(meant).cloned().chain(own.iter().cloned()).collect()
    }

    /// The same, and those of the site that are not given.
    pub(crate) fn all_params_of(
        &self,
        number: usize,
        given: &Params,
    ) -> anyhow::Result<Vec<(String, String)>> {
        let source = &self.sources[number];
        let mut params = self.params_of(number, given);
        let known = source.params();
        params.extend(self.site.values(&source.program, known, &params, &source.files())?);
        Ok(params)
    }

    /// No query.
    pub(crate) fn none() -> Programs {
        let (site, rules) = (Site::default(), ReadingRules::default());
        Programs { sources: Vec::new(), site, rules }
    }

    /// Compiles all queries into one program, with outputs named after their queries if there are
    /// several or `named` says so. Diagnostics go to standard error; `None`: there were errors
    /// among them.
    pub(crate) fn compile(
        &self,
        given: &Params,
        named: bool,
        functions: &Functions,
        quiet: bool,
        term: &Term,
    ) -> anyhow::Result<Option<Program>> {
        let Some(mut programs) = self.compile_each(given, functions, quiet, term)? else {
            return Ok(None);
        };
        if programs.len() == 1 && !named {
            return Ok(programs.pop().map(|(_, program)| program));
        }
        join(programs).map(Some).map_err(|e| usage(e.to_string()))
    }

    /// The same, each by its name.
    pub(crate) fn compile_each(
        &self,
        given: &Params,
        functions: &Functions,
        quiet: bool,
        term: &Term,
    ) -> anyhow::Result<Option<Vec<(String, Program)>>> {
        query::refuse_twice(given)?;
        let mut programs = Vec::new();
        for (number, source) in self.sources.iter().enumerate() {
            let params = self.all_params_of(number, given)?;
            let options =
                Options { params: &params, rules: self.rules, ..source.options(functions) };
            if let Some(program) = query::compile(source, &options, quiet, term)? {
                programs.push((source.program.clone(), program));
            }
        }
        if programs.len() < self.sources.len() {
            return Ok(None);
        }
        self.refuse_unused(given)?;
        if !quiet {
            self.site.warn_unknown(&self.sources, term);
        }
        Ok(Some(programs))
    }

    /// Refuses params that no query has, where there are several: one that is alone says so itself.
    fn refuse_unused(&self, given: &Params) -> anyhow::Result<()> {
        if self.sources.len() == 1 {
            return Ok(());
        }
        let known: Vec<String> = self.sources.iter().flat_map(names_of_params).collect();
        let own = |name: &str| self.sources.iter().any(|s| own_name(s, name).is_some());
        let unused = given.iter().find(|(name, _)| !known.contains(name) && !own(name));
        let Some((name, _)) = unused else { return Ok(()) };
        if let Some((program, _)) = name.rsplit_once('.') {
            let all: Vec<&str> = self.sources.iter().map(|s| s.program.as_str()).collect();
            let all = all.join(", ");
            let message = format!("-p {name}: no program is called `{program}`; there are {all}");
            return Err(usage(message));
        }
        let hint = match weir_lang::closest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`weir explain` shows what they have".to_owned(),
        };
        Err(usage(format!("-p {name}: none of the programs has such a param; {hint}")))
    }
}

/// The params that a query has.
fn names_of_params(source: &Source) -> Vec<String> {
    source.params().iter().map(|param| param.name.clone()).collect()
}

/// The name of the param in the query itself, if it is given as one of this query: `program.name`.
fn own_name<'p>(source: &Source, name: &'p str) -> Option<&'p str> {
    name.strip_prefix(&source.program)?.strip_prefix('.')
}

/// How many of the words name queries; the others are a capture filter. Words are queries up to the
/// first that looks like none; the very first is one in any case, unless texts were given.
pub(crate) fn leading(words: &[String], has_texts: bool) -> usize {
    let first = usize::from(!has_texts && !words.is_empty());
    first + words[first..].iter().take_while(|word| is_query(word)).count()
}

/// Whether a word can only be meant as a query: filters have no such words.
fn is_query(word: &str) -> bool {
    let folder = word.ends_with('/') && Path::new(word).is_dir();
    let in_library = || library::find(word).is_some() || library::detectors(word).is_some();
    word == "-" || word.ends_with(".weir") || is_text(word) || folder || in_library()
}

/// A query that the first word of a refused filter may have been meant to name.
pub(crate) fn meant_query(filter: &str) -> Option<&'static str> {
    let word = filter.split_whitespace().next()?;
    let is_of_filter = captures::FILTER_WORDS.contains(&word);
    weir_lang::closest(word, library::names()).filter(|_| !is_of_filter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captures;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn words_are_queries_up_to_the_first_that_is_none() {
        let check = |line: &str, has_texts, expected| {
            assert_eq!(leading(&words(line), has_texts), expected, "{line}");
        };
        check("", false, 0);
        check("anything", false, 1);
        check("my_query tcp port 80", false, 1);
        check("a.weir flows - b.weir tcp and host flows", false, 4);
        check("a.weir host flows c.weir", false, 1);
        check("tcp port 80", true, 0);
        check("flows tcp port 80", true, 1);
        check("detectors/ detectors/others plaintext-login tcp", true, 3);
    }

    /// Words that a capture filter may begin with (pcap-filter(7)).
    #[test]
    fn no_query_of_the_library_is_called_as_a_filter_begins() {
        for word in captures::FILTER_WORDS {
            assert!(!is_query(word), "{word}");
        }
    }

    fn programs(texts: &[(&str, &str)]) -> Programs {
        let source = |(name, text): &(&str, &str)| {
            let mut source = Source::from_text(text, 1, 1);
            (*name).clone_into(&mut source.program);
            source
        };
        Programs::new(texts.iter().map(source).collect()).expect("there are some")
    }

    #[test]
    fn programs_of_one_name_are_numbered() {
        let all = programs(&[("a", ""), ("a", ""), ("a-2", ""), ("a", "")]);
        let names: Vec<&str> = all.sources.iter().map(|s| s.program.as_str()).collect();
        assert_eq!(names, ["a", "a-2", "a-2-2", "a-3"]);
    }

    #[test]
    fn params_go_where_they_are_known() {
        let (n, m) = ("param n: int = 1", "param m: int = 1\nparam n: int = 1");
        let all = programs(&[("a", n), ("b", m), ("c", "packets")]);
        let check = |given: &str, expected: [&str; 3]| {
            let pair = |word: String| {
                let (name, value) = word.split_once('=').expect("a pair");
                (name.to_owned(), value.to_owned())
            };
            let given: Vec<_> = words(given).into_iter().map(pair).collect();
            let of = |number| {
                let mine = all.params_of(number, &given).into_iter();
                mine.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
            };
            assert_eq!([of(0), of(1), of(2)], expected, "{given:?}");
        };
        check("n=5", ["n=5", "n=5", ""]);
        check("m=5 a.n=6", ["n=6", "m=5", ""]);
        check("b.n=6 n=5", ["n=5", "n=6", ""]);
        check("n=5 b.n=6", ["n=5", "n=6", ""]);
        // That it has none is for the query itself to say.
        check("c.n=5", ["", "", "n=5"]);
    }

    #[test]
    fn a_query_that_is_alone_gets_all() {
        let all = programs(&[("a", "packets")]);
        let given = [("x".to_owned(), "1".to_owned()), ("a.y".to_owned(), "2".to_owned())];
        let expected = [("x".to_owned(), "1".to_owned()), ("y".to_owned(), "2".to_owned())];
        assert_eq!(all.params_of(0, &given), expected);
    }
}
