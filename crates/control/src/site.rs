//! Values that a run gives to the params of all its programs.

use crate::message::QueryText;
use weir_lang::{Library, ReadingRules};

/// Values of params for programs that come later, and the files that they name.
#[derive(Default, Debug)]
pub struct SiteParams {
    /// Values by `name` or `program.name`, as text.
    pub values: Vec<(String, String)>,
    /// Files by the names that stand in the values.
    pub files: Vec<(String, Vec<u8>)>,
    /// The options of the run that change what the text of a query means.
    pub rules: ReadingRules,
    /// The queries of a library by name, which others may start from.
    pub library: Option<Library>,
}

impl SiteParams {
    /// The params of a query: those that came with it, and the others that it has and that a value
    /// is known for. A value for the program counts before one for all.
    pub(crate) fn params(&self, query: &QueryText) -> Vec<(String, String)> {
        let mut out = query.params.clone();
        let known = match self.library {
            Some(library) => weir_lang::all_params(&query.text, library),
            None => weir_lang::params(&query.text),
        };
        for param in known {
            let own = format!("{}.{}", query.name, param.name);
            let find = |name: &str| self.values.iter().find(|(known, _)| known == name);
            let taken = query.params.iter().any(|(name, _)| *name == param.name);
            if let Some((_, value)) = find(&own).or_else(|| find(&param.name)).filter(|_| !taken) {
                out.push((param.name, value.clone()));
            }
        }
        out
    }

    /// The bytes of a file that a value names.
    pub(crate) fn file(&self, path: &str) -> Option<&[u8]> {
        let known = self.files.iter().find(|(name, _)| name == path);
        known.map(|(_, bytes)| bytes.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_with_the_query_counts_first() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let values = vec![pair("n", "1"), pair("m", "2"), pair("a.m", "3"), pair("x", "4")];
        let site = SiteParams { values, ..SiteParams::default() };
        let params = |name: &str, given: Vec<(String, String)>| {
            let text = "param n: int = 7\nparam m: int = 8\npackets | limit n + m".to_owned();
            let query = QueryText {
                name: name.to_owned(),
                source: "-e".to_owned(),
                text,
                params: given,
                files: Vec::new(),
            };
            let all =
                site.params(&query).into_iter().map(|(name, value)| format!("{name}={value}"));
            all.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(params("a", vec![]), "n=1 m=3");
        assert_eq!(params("b", vec![]), "n=1 m=2");
        assert_eq!(params("b", vec![pair("n", "9")]), "n=9 m=2");
    }
}
