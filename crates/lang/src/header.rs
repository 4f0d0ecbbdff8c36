//! The description of a query in its own file, for lists of queries: its first comment and its
//! params.

use crate::import::imports;
use crate::parse::{Parsed, parse};
use crate::query::{Library, Options};
use crate::tree::Statement;

/// The comment that a query file opens with.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Header {
    /// Its first line, without `NAME.weir:` before it; empty if the file has no such comment.
    pub title: String,
    /// The further lines.
    pub lines: Vec<String>,
}

/// A param of a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamInfo {
    /// Its name.
    pub name: String,
    /// The name of its type.
    pub ty: String,
    /// Its default, as written.
    pub default: String,
    /// The comment after it on its line, without the `#`.
    pub doc: Option<String>,
}

/// The comment that `text` opens with: all lines up to the first that is no comment.
pub fn header(text: &str) -> Header {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let mut lines = lines.skip_while(|l| l.is_empty()).map_while(|l| l.strip_prefix('#'));
    let line = |l: &str| l.trim_start_matches('#').trim().to_owned();
    let first = lines.next().map(line).unwrap_or_default();
    let title = match first.split_once(".weir:") {
        Some((name, title)) if !name.contains(char::is_whitespace) => title.trim().to_owned(),
        _ => first,
    };
    Header { title, lines: lines.map(line).collect() }
}

/// The params of a query, in the order of the text. A text with mistakes gives those that can be
/// read.
pub fn params(text: &str) -> Vec<ParamInfo> {
    if text.len() > crate::limits::TEXT_MAX {
        return Vec::new();
    }
    params_of(text, &parse(text))
}

/// The params of a query that was read.
fn params_of(text: &str, Parsed { tree, comments, .. }: &Parsed) -> Vec<ParamInfo> {
    let params = tree.statements.iter().filter_map(|s| match &s.node {
        Statement::Param { name, ty, default } => Some((s.span, name, ty, default)),
        _ => None,
    });
    params
        .map(|(span, name, ty, default)| {
            let line_end = text[span.end..].find(['\n', '\r']).map_or(text.len(), |n| span.end + n);
            let on_line = |start: usize| (span.end..line_end).contains(&start);
            let doc = comments.iter().find(|c| on_line(c.span.start));
            let doc = doc.map(|c| c.span.of(text).trim_start_matches('#').trim().to_owned());
            ParamInfo {
                name: name.node.clone(),
                ty: ty.node.clone(),
                default: default.span.of(text).to_owned(),
                doc: doc.filter(|d| !d.is_empty()),
            }
        })
        .collect()
}

/// The params of a query, and of those of a library that it starts from, each name once.
pub fn all_params(text: &str, library: Library) -> Vec<ParamInfo> {
    if text.len() > crate::limits::TEXT_MAX {
        return Vec::new();
    }
    let parsed = parse(text);
    let mut all = params_of(text, &parsed);
    let options = Options { library: Some(library), ..Options::default() };
    for import in imports(&parsed.tree, &options) {
        for param in params(import.text) {
            if all.iter().all(|known| known.name != param.name) {
                all.push(param);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let check = |text: &str, title: &str, lines: &[&str]| {
            let lines = lines.iter().map(|l| (*l).to_owned()).collect();
            assert_eq!(header(text), Header { title: title.to_owned(), lines }, "{text}");
        };
        check(
            "# syn_flood.weir: half-open handshakes\n#\n# More.\n\n# not\npackets",
            "half-open handshakes",
            &["", "More."],
        );
        check("\n# Top talkers\npackets # no", "Top talkers", &[]);
        check("packets", "", &[]);
        check("", "", &[]);
    }

    #[test]
    fn params_with_their_comments() {
        let text = "param limit: int = 1_000  # rows\nparam net: net = 10.0.0.0/8\npackets # x";
        let found = params(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].name.as_str(), found[0].default.as_str()), ("limit", "1_000"));
        assert_eq!(found[0].doc.as_deref(), Some("rows"));
        assert_eq!((found[1].ty.as_str(), found[1].doc.as_deref()), ("net", None));
        assert!(params("param x").is_empty());
    }
}
