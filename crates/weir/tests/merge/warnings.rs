//! Warnings of `weir merge`: streams that may not be meant as they are.

use crate::{Folder, SHARES, edit_head, fixture, publish, rows, run, text};
use std::fs;

/// The second is taken for a later life of the first, whose windows are out by then.
#[test]
fn two_probes_of_one_name_are_warned_of() {
    let folder = Folder::new();
    let files = ["a.wps", "b.wps"].map(|name| folder.path(name));
    let (query, capture) = ("source_counts", &fixture("mixed.pcap"));
    for (file, share) in files.iter().zip(SHARES) {
        let args = ["run", query, "-r", capture, "--publish", file, "--probe", "x", "--", share];
        assert_eq!(rows(&args), "");
    }
    let output = run(&["merge", query, "--from", &files[0], "--from", &files[1], "-o", "json"]);
    let told = text(&output.stderr);
    assert!(told.contains("b.wps are streams of one probe, x, and are read one after"), "{told}");
    assert!(told.contains(" groups left out, whose windows were out"), "{told}");
    assert_eq!(output.status.code(), Some(1), "{told}");
}

/// A stream may be hostile from its first byte on, so permissions are given up before it is read.
#[test]
fn probes_of_another_version_are_warned_of() {
    let folder = Folder::new();
    let (query, capture) = ("source_counts", &fixture("mixed.pcap"));
    let files = ["a.wps", "b.wps"].map(|name| folder.path(name));
    for (file, share) in files.iter().zip(SHARES) {
        publish(query, capture, file, share);
    }
    let merge = ["merge", query, "--from", &files[0], "--from", &files[1], "-o", "json"];
    assert!(!text(&run(&merge).stderr).contains("written by Weir"));
    let (own, other) =
        (concat!("\"weir\":\"", env!("CARGO_PKG_VERSION"), "\""), "\"weir\":\"x.y.z\"");
    let bytes = fs::read(&files[1]).expect("the stream");
    fs::write(&files[1], edit_head(bytes, own, other)).expect("writes");
    let output = run(&merge);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("b.wps were written by Weir x.y.z, and this is "), "{told}");
    assert!(!told.contains("a.wps were"), "{told}");
    assert!(!text(&run(&[&merge[..], &["-q"]].concat()).stderr).contains("written by Weir"));
}
