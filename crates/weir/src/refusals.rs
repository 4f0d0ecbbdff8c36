//! Command lines that clap refuses, with those that it would take.

use crate::exit::Status;
use crate::remedy;
use crate::term::{ColorWhen, Term};
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Prints clap's help, version or error.
pub(crate) fn from_clap(e: &clap::Error) -> Status {
    // There is no way to report that this can't be printed.
    let _ = e.print();
    if e.use_stderr() {
        let line = right_words(e).and_then(|(wrong, right)| match e.kind() {
            ErrorKind::InvalidValue => remedy::with_value(&wrong, &right),
            _ => remedy::with_word(&wrong, &right),
        });
        let line = line.unwrap_or_else(remedy::helping);
        Term::new(ColorWhen::Auto).remedy(&line);
    }
    if e.use_stderr() { Status::Usage } else { Status::Ok }
}

/// The word of the command line that is wrong, and the one that was meant, if one is near.
fn right_words(e: &clap::Error) -> Option<(String, String)> {
    let context = |kind| e.get(kind).map(ToString::to_string);
    match e.kind() {
        ErrorKind::UnknownArgument => {
            let wrong = context(ContextKind::InvalidArg)?;
            if let Some((_, right)) = OPTIONS.iter().find(|(theirs, _)| *theirs == wrong) {
                return Some((wrong, (*right).to_owned()));
            }
            // clap's are as far as `--memory` is from `--every`.
            let near = context(ContextKind::SuggestedArg)?;
            weir_lang::closest(&wrong, [near.as_str()])?;
            Some((wrong, near))
        }
        ErrorKind::InvalidValue => {
            let wrong = context(ContextKind::InvalidValue)?;
            let ContextValue::Strings(valid) = e.get(ContextKind::ValidValue)? else { return None };
            let near = weir_lang::closest(&wrong, valid.iter().map(String::as_str));
            // A format that there is not is rather a kind of text.
            let right = near.or_else(|| valid.iter().map(String::as_str).find(|v| *v == "json"))?;
            Some((wrong.clone(), right.to_owned()))
        }
        _ => None,
    }
}

/// Options of other tools, and the word that says the same here; empty where it is left out.
const OPTIONS: &[(&str, &str)] = &[("--search", ""), ("--filter", ""), ("--format", "-o")];
