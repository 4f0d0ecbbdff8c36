//! The page of a report: one HTML file that needs nothing else, and runs nothing.

mod cells;
mod findings;
mod health;
mod losses;
mod summary;
mod tops;
mod traffic;
mod whole;

use crate::collector::Collector;
use crate::markup::Markup;
use crate::plot;
use crate::programs::QUERIES;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use sha2::{Digest as _, Sha256};
use whole::Whole;

pub use whole::{About, Ended, RuleTitle};

/// How the page looks.
const STYLE: &str = include_str!("page/style.css");

/// A section: its anchor, its title, and its content. One without content is left out.
struct Section {
    anchor: &'static str,
    title: &'static str,
    content: Markup,
}

impl Section {
    fn new(anchor: &'static str, title: &'static str, content: Markup) -> Section {
        Section { anchor, title, content }
    }
}

/// Writes the page. The same rows give the same bytes.
pub fn page(rows: &Collector, about: &About, ended: &Ended) -> String {
    let whole = Whole { rows, about, ended };
    let sections = [
        Section::new("summary", "Summary", summary::section(&whole)),
        Section::new("time", "Over time", traffic::time_lines(&whole)),
        Section::new("findings", "Findings", findings::section(&whole)),
        Section::new("hosts", "Hosts", tops::hosts(&whole)),
        Section::new("pairs", "Pairs of hosts", tops::pairs(&whole)),
        Section::new("flows", "Connections", tops::flows(&whole)),
        Section::new("services", "Services", tops::services(&whole)),
        Section::new("protocols", "Protocols", tops::protocols(&whole)),
        Section::new("names", "Names", tops::names(&whole)),
        Section::new("sizes", "Packet sizes", traffic::sizes(&whole)),
        Section::new("tcp", "TCP", health::tcp(&whole)),
        Section::new("dns", "DNS", health::dns(&whole)),
        Section::new("losses", "What was counted", losses::section(&whole)),
        Section::new("queries", "How it was made", queries()),
    ];
    let mut m = Markup::default();
    head(&mut m, about);
    m.raw("<nav aria-label=\"Sections\"><ul>");
    for section in sections.iter().filter(|section| !section.content.is_empty()) {
        m.raw("<li><a href=\"#").raw(section.anchor).raw("\">").raw(section.title);
        m.raw("</a></li>");
    }
    m.raw("</ul></nav>\n<main>\n");
    for section in sections.iter().filter(|section| !section.content.is_empty()) {
        m.raw("<section id=\"").raw(section.anchor).raw("\">\n<h2>").raw(section.title);
        m.raw("</h2>\n").piece(&section.content).raw("</section>\n");
    }
    m.raw("</main>\n<footer>Weir ").text(&about.version).raw("</footer>\n</body>\n</html>\n");
    m.finish()
}

/// The head of the page, before the sections. The policy allows just the style sheet of the page
/// itself.
fn head(m: &mut Markup, about: &About) {
    let names = about.captures.join(", ");
    // The browser hashes the content of the element: both sheets, one after the other.
    let hash = Sha256::new().chain_update(STYLE).chain_update(plot::STYLE).finalize();
    m.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    m.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ");
    m.raw("img-src data:; style-src 'sha256-").text(&BASE64_STANDARD.encode(hash));
    m.raw("'; base-uri 'none'; form-action 'none'\">\n");
    m.raw("<meta name=\"referrer\" content=\"no-referrer\">\n");
    m.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    m.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
    m.raw("<link rel=\"icon\" href=\"data:,\">\n");
    m.raw("<title>").text(&names).raw(" – Weir report</title>\n<style>").raw(STYLE);
    m.raw(plot::STYLE).raw("</style>\n</head>\n<body>\n<header>\n<h1>Capture report</h1>\n<p>");
    m.text(&names);
    if !about.filter.is_empty() {
        m.raw(", filtered by <code>").text(&about.filter).raw("</code>");
    }
    m.raw("</p>\n</header>\n");
}

/// The queries that the page is made of.
fn queries() -> Markup {
    let mut m = Markup::default();
    m.raw(
        "<p>All numbers are rows of these queries, which ran in one pass over the packets, beside ",
    );
    m.raw("the detectors that come with Weir.</p>\n");
    for query in QUERIES {
        m.raw("<details><summary>")
            .raw(query.name)
            .raw(".weir</summary><pre tabindex=\"0\"><code>");
        m.lines(query.text).raw("</code></pre></details>\n");
    }
    m
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Step;
    use weir_engine::counters::Ledger;

    fn empty() -> (About, Ended) {
        let about = About {
            captures: vec!["<a>.pcap".to_owned()],
            filter: "tcp & \"x\"".to_owned(),
            version: "1".to_owned(),
            zone: None,
            rules: Vec::new(),
        };
        let ended = Ended {
            ledger: Ledger::default(),
            text: "received 0 packets\n".to_owned(),
            interfaces: Vec::new(),
            cut_short: Some("it is <torn>".to_owned()),
        };
        (about, ended)
    }

    #[test]
    fn a_page_about_nothing_is_a_page() {
        let (about, ended) = empty();
        let page = page(&Collector::new(Step::Millisecond), &about, &ended);
        assert!(page.contains("&lt;a&gt;.pcap") && page.contains("tcp &amp; &quot;x&quot;"));
        assert!(page.contains("it is &lt;torn&gt;") && !page.contains("<torn>"));
        assert!(page.ends_with("</html>\n"));
        for word in ["<script", "javascript:", "src=", " style=", "url("] {
            assert!(!page.contains(word), "{word}");
        }
    }

    #[test]
    fn the_policy_allows_the_style_sheet_of_the_page() {
        let (about, ended) = empty();
        let page = page(&Collector::new(Step::Millisecond), &about, &ended);
        let style = page.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>"));
        let style = style.expect("a style sheet").0;
        let hash = BASE64_STANDARD.encode(Sha256::digest(style));
        assert!(page.contains(&format!("style-src 'sha256-{hash}'")));
    }
}
