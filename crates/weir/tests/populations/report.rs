//! Shares that the page of `weir report` makes of its counts.

use super::{dns, recipes, tcp};
use crate::Packet;
use std::process::Command;

/// A fact of the report about these packets.
fn fact(packets: &[Packet], name: &str) -> String {
    let capture = recipes::made(packets);
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["report", "-o", "-", "-q"])
        .arg(&capture.path)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8(output.stdout).expect("text");
    let after = page.split_once(&format!("<dt>{name}</dt><dd>"));
    let after = after.unwrap_or_else(|| panic!("no fact {name}")).1;
    after.split_once("</dd>").expect("its end").0.to_owned()
}

#[test]
fn what_was_sent_again_is_a_share_of_data() {
    let packets = tcp::packets();
    let data = packets.iter().filter(|p| p.data > 0);
    let again = data.clone().filter(|p| p.again).count();
    let share = 100.0 * again as f64 / data.count() as f64;
    assert_eq!(fact(&packets, "Data retransmitted"), format!("{again} ({share:.1} % of it)"));
    let others = packets.iter().filter(|p| p.again && p.data == 0).count();
    assert_eq!(fact(&packets, "SYN and FIN retransmitted"), others.to_string());
}

#[test]
fn a_question_is_counted_once_however_many_answers_come() {
    let packets = dns::packets();
    let (lost, all) = dns::unanswered(10);
    let share = 100.0 * lost as f64 / all as f64;
    let expected = format!("{lost} ({share:.1} %)");
    assert_eq!(fact(&packets, "Unanswered (UDP, 10 s)"), expected);
}
