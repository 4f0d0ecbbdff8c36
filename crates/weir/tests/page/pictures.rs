//! The pictures of the page and of a report in the README: they are made again, and show the same.
//! With `WEIR_UPDATE_DOCS` set they are written instead.

use super::Served;
use super::browser::{chromium, ready};
use crate::common::root;
use std::path::Path;
use std::process::Command;

const CAPTURES: [&str; 2] = ["fixtures/mixed.pcap", "fixtures/syn_flood.pcap"];

/// The texts of a picture without spaces. Where lines are broken and where a text stands depends on
/// the fonts of the machine.
fn letters(picture: &str) -> String {
    let texts = picture.split("<text ").skip(1).map(|rest| {
        let body = rest.split_once('>').expect("the end of a tag").1;
        body.split_once('<').expect("the end of a text").0
    });
    texts.flat_map(|text| text.chars().filter(|c| !c.is_whitespace())).collect()
}

/// Makes the picture of a page, and compares it with the one of this name.
fn check(scripts: &Path, face: &str, address: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().join("picture.svg");
    let mut node = Command::new("node");
    node.arg(scripts.join("tests/picture.mjs")).arg(face).arg(address).arg(&made);
    let output = node.env("CHROMIUM", chromium()).output().expect("node runs");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", said(&output.stdout), said(&output.stderr));
    let now = std::fs::read_to_string(made).expect("a picture");
    let path = root().join(format!("docs/pictures/{face}.svg"));
    if std::env::var_os("WEIR_UPDATE_DOCS").is_some() {
        return std::fs::write(path, now).expect("the picture");
    }
    let (then, now) =
        (letters(&std::fs::read_to_string(path).expect("the picture")), letters(&now));
    let same = then.chars().zip(now.chars()).take_while(|(a, b)| a == b).count();
    let from = |text: &str| text.chars().skip(same).take(60).collect::<String>();
    assert!(
        then == now,
        "docs/pictures/{face}.svg is not the {face}; docs/pictures/make.sh makes it anew\n\
         it shows  {}\nthere is  {}",
        from(&then),
        from(&now)
    );
}

#[test]
fn the_picture_of_the_readme_is_the_page() {
    let Some(scripts) = ready("the_picture_of_the_readme_is_the_page") else { return };
    let [mixed, flood] = CAPTURES.map(|name| root().join(name).display().to_string());
    let served = Served::start(&["serve", "--http", "0", "-r", &mixed, "-r", &flood]);
    check(scripts, "page", &served.page);
    served.end();
}

#[test]
fn the_picture_of_the_readme_is_the_report() {
    let Some(scripts) = ready("the_picture_of_the_readme_is_the_report") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("report.html");
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.arg("report").args(CAPTURES).arg("-o").arg(&page).current_dir(root());
    let made = weir.output().expect("the binary runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    check(scripts, "report", &format!("file://{}", page.display()));
}
