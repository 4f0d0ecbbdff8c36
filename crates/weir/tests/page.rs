//! The page of `weir serve`: in a browser, over files and over wires, and as bytes.

#![cfg(target_os = "linux")]

mod common;
#[cfg(feature = "serve")]
#[path = "common/over_http.rs"]
mod over_http;
#[cfg(feature = "serve")]
#[path = "common/over_wires.rs"]
mod over_wires;
#[cfg(feature = "serve")]
#[path = "page/mod.rs"]
mod page;
#[cfg(feature = "serve")]
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

/// Without the feature the command says how to get it.
#[cfg(not(feature = "serve"))]
#[test]
fn a_build_without_the_page_says_so() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
    let capture = common::root().join("fixtures/mixed.pcap");
    let output = command.arg("serve").arg("-r").arg(capture).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("cargo install --path crates/weir --features serve"), "{said}");
}
