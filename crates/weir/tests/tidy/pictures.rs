//! Pictures of the documentation are small texts that load nothing.

use crate::common::{root, text};

/// Bytes of a picture.
const BYTES_MAX: usize = 60_000;

/// Parts of a picture that would run or load something.
const FOREIGN: &[&str] = &["<script", "<image", "<style", "<foreignObject", "href=", "data:"];

const NAMESPACE: &str = "xmlns=\"http://www.w3.org/2000/svg\"";

/// The pictures that the README shows.
fn pictures() -> Vec<String> {
    let readme = text("README.md");
    let ends = readme.split(".svg)").map(|before| before.rsplit('(').next().unwrap_or(""));
    let mut all: Vec<String> = ends.map(|name| format!("{name}.svg")).collect();
    // After the last one.
    all.pop();
    all
}

/// The first part that is not well-formed in the XML that pictures use: elements, attributes,
/// texts, comments.
fn mistake(xml: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml;
    while let Some(at) = rest.find('<') {
        if !is_text(&rest[..at]) || (open.is_empty() && !rest[..at].trim().is_empty()) {
            return Some(format!("the text {:?}", &rest[..at]));
        }
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            let Some((said, after)) = comment.split_once("--") else {
                return Some("a comment without an end".to_owned());
            };
            let Some(after) = after.strip_prefix('>') else {
                return Some(format!("-- in the comment {said}"));
            };
            rest = after;
            continue;
        }
        let Some((tag, after)) = rest.split_once('>') else {
            return Some(format!("a tag without an end: {rest:.60}"));
        };
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Some(format!("</{name}> ends nothing"));
            }
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if !are_attributes(attributes) {
            return Some(format!("<{tag}>"));
        }
        if !is_empty {
            open.push(name);
        }
    }
    let is_over = open.is_empty() && rest.trim().is_empty();
    (!is_over).then(|| format!("the end, within {open:?}"))
}

/// Whether names and quoted values stand one after another, each name once.
fn are_attributes(text: &str) -> bool {
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let Some((name, after)) = rest.split_once("=\"") else { return false };
        let Some((value, after)) = after.split_once('"') else { return false };
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if !is_name || names.contains(&name) || !is_text(value) {
            return false;
        }
        names.push(name);
        let is_apart = after.is_empty() || after.starts_with(' ');
        if !is_apart {
            return false;
        }
        rest = after.trim_start();
    }
    true
}

/// Whether each `&` begins an entity that XML knows, and no control character is among the text.
fn is_text(text: &str) -> bool {
    let entities = text.split('&').skip(1).all(|rest| {
        let name = rest.split(';').next().unwrap_or("");
        let is_number = |digits: &str| digits.parse::<u32>().is_ok();
        rest.contains(';')
            && (["amp", "lt", "gt", "quot"].contains(&name)
                || name.strip_prefix('#').is_some_and(is_number))
    });
    entities && !text.chars().any(|c| c.is_control() && c != '\n')
}

#[test]
fn pictures_are_small_and_load_nothing() {
    let all = pictures();
    assert!(all.len() >= 3, "{all:?}");
    for name in all {
        let picture = text(&name);
        assert!(picture.len() <= BYTES_MAX, "{name} has {} bytes", picture.len());
        assert_eq!(mistake(&picture), None, "{name}");
        assert!(picture.starts_with(&format!("<svg {NAMESPACE}")), "{name}");
        let rest = picture.replacen(NAMESPACE, "", 1);
        for foreign in FOREIGN.iter().chain(&["http", "url("]) {
            assert!(!rest.contains(foreign), "{name} has {foreign}");
        }
    }
    // No other file lies there unseen.
    let shown = pictures();
    for entry in std::fs::read_dir(root().join("docs/pictures")).expect("lists") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let is_shown = shown.contains(&format!("docs/pictures/{name}"));
        assert!(
            is_shown || name == "make.sh",
            "docs/pictures/{name} is in no picture of the README"
        );
    }
}

#[test]
fn what_is_not_well_formed_is_found() {
    for good in ["<a/>", "<a b=\"1\" c=\"&lt;\">x&amp;y<!-- z --><b/></a>\n"] {
        assert_eq!(mistake(good), None, "{good}");
    }
    for bad in [
        "<a>",
        "<a></b>",
        "</a>",
        "<a b=1/>",
        "<a b=\"1\" b=\"2\"/>",
        "<a b=\"1\"c=\"2\"/>",
        "<a>&</a>",
        "<a>&nbsp;</a>",
        "<a><!-- -- --></a>",
        "<a/>x",
        "<a b=\"\u{1}\"/>",
        "<a",
    ] {
        assert!(mistake(bad).is_some(), "{bad}");
    }
}
