//! The fate of every packet.

use super::cells::{Cell, TableView};
use super::whole::Whole;
use crate::markup::Markup;

pub(super) fn section(whole: &Whole<'_>) -> Markup {
    let mut m = Markup::default();
    let ledger = &whole.ended.ledger;
    m.raw("<p>Every packet of the input is in one of these lines; received is filtered plus ");
    m.raw("processed.</p>\n<pre tabindex=\"0\">").lines(&whole.ended.text).raw("</pre>\n");
    let mut table = TableView::new("Malformed packets by reason", &["Reason", "Packets", "Share"]);
    let all = ledger.malformed_total() as i64;
    for (reason, n) in ledger.reasons() {
        let n = n as i64;
        table.row(vec![Cell::Text(reason.name().to_owned()), Cell::Count(n), Cell::Share(n, all)]);
    }
    if !table.rows.is_empty() {
        table.write(&mut m);
    }
    m
}
