//! Files of settings: values of params that all queries of a site take.

use crate::check::fault;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::format::format_set;
use crate::limits::TEXT_MAX;
use crate::parse::{SettingLine, parse_settings};
use crate::query::Options;
use crate::tree::{Expr, ExprKind, Member, Set};
use std::collections::BTreeMap;
use std::path::Path;
use weir_plan::Value;

/// A line of a file of settings: `name = value`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The name of a param, or `program.name`.
    pub name: String,
    /// Its value as text, as [`Options::params`] takes it.
    pub value: String,
    /// Where the name stands in the file.
    pub span: Span,
    /// The number of its line, from 1.
    pub line: usize,
    /// The files that the value names, with the folder before them.
    pub files: Vec<String>,
}

/// Reads a file of settings: lines `name = VALUE`, with values as the language writes constants,
/// and comments after `#`. A set in braces may go on over several lines. Names of files in it
/// (`file("x.txt")`) are relative to `folder`.
///
/// # Errors
/// All mistakes found, in the order of the text.
pub fn settings(text: &str, folder: &Path) -> Result<Vec<Setting>, Vec<Diagnostic>> {
    if text.len() > TEXT_MAX {
        let message = format!("a file of settings is at most {TEXT_MAX} bytes long");
        return Err(vec![Diagnostic::new(Code::TooLarge, Span::NOWHERE, message)]);
    }
    let (read, mut diagnostics) = parse_settings(text);
    diagnostics.extend(twice(&read));
    if !diagnostics.is_empty() {
        diagnostics.sort_by_key(|d| d.span);
        return Err(diagnostics);
    }
    let (mut out, mut line, mut at) = (Vec::new(), 1, 0);
    for setting in read {
        let (name, span) = (setting.name.node, setting.name.span);
        line += text[at..span.start].matches('\n').count();
        at = span.start;
        let mut set = setting.value.node;
        let files = with_folder(&mut set, folder);
        let value = format_set(&set);
        out.push(Setting { name, value, span, line, files });
    }
    Ok(out)
}

/// The mistakes where a name is set a second time.
fn twice(settings: &[SettingLine]) -> Vec<Diagnostic> {
    let (mut firsts, mut found) = (BTreeMap::new(), Vec::new());
    for setting in settings {
        let (name, span) = (setting.name.node.as_str(), setting.name.span);
        let first: Span = *firsts.entry(name).or_insert(span);
        if first != span {
            let d = Diagnostic::new(Code::TakenName, span, format!("`{name}` is set twice"));
            found.push(d.note_at(first, "first here"));
        }
    }
    found
}

/// Puts the folder before the names of files in a set (`file("name")`), and gives these names.
fn with_folder(set: &mut Set, folder: &Path) -> Vec<String> {
    let members = match set {
        Set::Braces(members) => members.as_mut_slice(),
        Set::One(member) => std::slice::from_mut(&mut **member),
    };
    let mut files = Vec::new();
    for member in members {
        let Member::Value(Expr { node: ExprKind::Call { func, args }, .. }) = member else {
            continue;
        };
        let [Expr { node: ExprKind::Literal { value, text }, .. }] = &mut args[..] else {
            continue;
        };
        if let (Value::Str(name), "file") = (&*value, func.node.as_str()) {
            let path = folder.join(&**name).to_string_lossy().into_owned();
            *value = Value::Str(path.as_str().into());
            *text = value.to_string();
            files.push(path);
        }
    }
    files
}

/// The mistake in a value for a param called `name` of the type that is called `ty`: `None` if it
/// fits, or if there is no such type.
pub fn param_fault(name: &str, ty: &str, value: &str, options: &Options<'_>) -> Option<Diagnostic> {
    fault(name, ty, value, options)
}

/// Reads any bytes as a file of settings, and its values for params of each type: nothing may
/// panic, and every value lies in the text.
#[cfg(any(test, fuzzing))]
pub fn fuzz_settings(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(all) = settings(&text, Path::new("")) else { return };
    for Setting { name, value, span, line, .. } in all {
        assert_eq!(span.of(&text), name);
        assert!(text.lines().nth(line - 1).is_some_and(|l| l.contains(&name)), "{name}");
        for ty in ["int", "string", "net", "duration", "nets", "ints", "macs", "strings"] {
            let _ = param_fault(&name, ty, &value, &Options::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> String {
        match settings(text, Path::new("/etc/weir")) {
            Ok(all) => {
                let line = |s: Setting| format!("{} {}={}", s.line, s.name, s.value);
                all.into_iter().map(line).collect::<Vec<_>>().join("\n")
            }
            Err(all) => {
                let line = |d: Diagnostic| format!("{}: {}", d.span.of(text), d.message);
                all.into_iter().map(line).collect::<Vec<_>>().join("\n")
            }
        }
    }

    #[test]
    fn a_line_sets_a_param() {
        let text = "# ours\nlocal = {10.0.0.0/8, # one\n   192.0.2.1}\n\nn = -5\nsyn_flood.d=10s\n\
                    unanswered-syn.patience = 1s # so long\nnone = {}";
        let expected = "2 local={10.0.0.0/8, 192.0.2.1}\n5 n=-5\n6 syn_flood.d=10s\n\
                        7 unanswered-syn.patience=1s\n8 none={}";
        assert_eq!(read(text), expected);
        assert_eq!(read(""), "");
    }

    #[test]
    fn files_are_relative_to_its_folder() {
        let text = "a={ file( \"x.txt\" ),10.0.0.1, file(\"/y\") }\nb = file(\"d/z\")";
        let expected = "1 a={file(\"/etc/weir/x.txt\"), 10.0.0.1, file(\"/y\")}\n\
                        2 b=file(\"/etc/weir/d/z\")";
        assert_eq!(read(text), expected);
    }

    #[test]
    fn what_is_wrong_is_told_once() {
        assert_eq!(read("local"), ": expected `=` and a value, found the end of the text");
        assert_eq!(read("local =\nn = 1"), ": `local` is set to nothing");
        assert_eq!(read("n = 1 m = 2"), "m: expected the end of the line, found `m`");
        assert_eq!(read("n = 1\nn = 2"), "n: `n` is set twice");
        assert_eq!(read("= 1"), "=: expected the name of a param, found `=`");
        assert!(read("local = {10.0.0.0/8").starts_with("{: this `{` is never closed"));
        assert!(read("a = 10.1.2.3/8\nb = {{}").contains("bits set"));
    }

    #[test]
    fn values_are_checked_for_a_type() {
        let fault = |ty: &str, value: &str| {
            param_fault("x", ty, value, &Options::default()).map(|d| d.message)
        };
        assert_eq!(fault("nets", "{10.0.0.0/8, 192.0.2.1, 192.0.2.7..192.0.2.9}"), None);
        assert_eq!(fault("nets", "{}"), None);
        assert_eq!(fault("ints", "22..23"), None);
        assert_eq!(fault("int", "{}").as_deref(), Some("`{}` is not a value for the param `x`"));
        let wrong = "the param `x` is a set of networks, and `80` is an int";
        assert_eq!(fault("nets", "{80}").as_deref(), Some(wrong));
        assert_eq!(fault("no such type", "{80}"), None);
    }

    proptest! {
        #[test]
        fn any_file_is_read_or_refused(
            text in "((a|n|b-c\\.d) ?=? ?(\\{[0-9a-f.:/, ]{0,12}\\}|[0-9a-z\"]{0,6})( #[a-z]{0,3})?\n?){0,5}",
            at in 0usize..40, byte: u8,
        ) {
            fuzz_settings(text.as_bytes());
            let mut bytes = text.into_bytes();
            if let Some(b) = bytes.get_mut(at) {
                *b = byte;
            }
            fuzz_settings(&bytes);
        }
    }
}
