//! The parts of the queries of the library that the kernel runs, as docs/offload.md says.

use crate::common;
use std::path::Path;
use weir_offload::{FrameCount, Hook, KernelOutlet, OffloadOptions, OutletPlace, compile};

/// The most instructions that the verifier may follow for a query of the library: some 13,000 for
/// one that counts two sorts of packets, 17,000 for ICMP by connection and direction. The kernel
/// gives up at a million.
const VERIFIED_MAX: u32 = 20_000;

/// The first line of the table.
const HEAD: &str = "| query | in the kernel | workers go on because |\n|---|---|---|\n";

/// With `WEIR_UPDATE_DOCS` set, the table is written instead.
#[test]
fn the_documentation_says_what_the_kernel_runs_of_each_query() {
    let path = format!("{}/docs/offload.md", common::ROOT);
    let page = std::fs::read_to_string(&path).expect("docs/offload.md");
    let start = page.find(HEAD).expect("the table of queries") + HEAD.len();
    let end = start + page[start..].find("\n\n").expect("its end") + 1;
    let rows: String = common::queries().iter().map(|(path, text)| row(path, text)).collect();
    if std::env::var_os("WEIR_UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{}{rows}{}", &page[..start], &page[end..])).expect("writes");
    } else {
        assert_eq!(&page[start..end], rows, "docs/offload.md: WEIR_UPDATE_DOCS=1 corrects it");
    }
}

fn row(path: &str, text: &str) -> String {
    let name = Path::new(path).file_stem().expect("a name").to_string_lossy();
    // As if all outputs were interfaces.
    let outlet = |outlet| KernelOutlet { outlet, place: OutletPlace::Interface };
    let outlets: Vec<KernelOutlet> =
        common::program_of(text).outlets().into_iter().map(outlet).collect();
    let options = OffloadOptions {
        groups: Some([0; 2]),
        outlets: Ok(&outlets),
        ..OffloadOptions::new(Hook::Xdp, 1)
    };
    let (what, why) = match compile(&common::plan_of(text), &options) {
        Err(why) => ("nothing".to_owned(), why.to_string()),
        Ok(program) => {
            let all = &program.prefixes;
            let counting = all.iter().filter(|prefix| prefix.counts).count();
            let what = match counting {
                0 if all.iter().any(|prefix| prefix.acts) => "hands packets out".to_owned(),
                0 => "filters".to_owned(),
                n if n == all.len() => "counts".to_owned(),
                n => format!("filters, and counts for {n} of {} pipelines", all.len()),
            };
            let mut reasons: Vec<&str> =
                all.iter().filter_map(|prefix| prefix.stopped_by.as_deref()).collect();
            reasons.dedup();
            (what, reasons.join("; "))
        }
    };
    let why = if why.is_empty() { "–".to_owned() } else { why.replace('|', "\\|") };
    format!("| `{name}` | {what} | {why} |\n")
}

/// Of so many frames, one does for a query.
const STEP: usize = 31;

/// While programs come and go, workers see every frame, and whole.
#[test]
fn all_frames_go_up_while_the_process_says_so() {
    if !common::may("all_frames_go_up_while_the_process_says_so") {
        return;
    }
    let frames: Vec<Vec<u8>> = common::crafted().into_iter().chain(common::fixtures()).collect();
    let outlets = |text: &str| -> Vec<KernelOutlet> {
        let outlet = |outlet| KernelOutlet { outlet, place: OutletPlace::Nowhere };
        common::program_of(text).outlets().into_iter().map(outlet).collect()
    };
    let mut finished = 0;
    for hook in [Hook::Socket, Hook::Tcx, Hook::Xdp] {
        for (n, (path, text)) in common::queries().into_iter().enumerate() {
            let kernel = match hook {
                Hook::Xdp => common::acting_kernel(&text, &outlets(&text)),
                Hook::Socket | Hook::Tcx => common::counting_kernel(&text, hook),
            };
            let Ok(kernel) = kernel else { continue };
            // Each query meets others.
            for frame in frames.iter().skip(n % STEP).step_by(STEP) {
                kernel.hand_up(true);
                let Some((count, returned)) = kernel.decide(frame) else { continue };
                let up = [FrameCount::Wanted, FrameCount::Unclear, FrameCount::Full];
                assert!(up.contains(&count), "{path} at {hook}: {count:?}, {frame:02x?}");
                assert!(returned as usize >= frame.len(), "{path} at {hook}: {returned}");
                kernel.hand_up(false);
                let (count, _) = kernel.decide(frame).expect("it could be tried");
                finished += u32::from(!up.contains(&count));
            }
        }
    }
    assert!(finished > 1000, "{finished}");
}

/// The verifier's time goes with the instructions that it follows. It follows the ways through a
/// program once for each kind of headers that the program tells apart.
#[test]
fn the_verifier_follows_few_ways_through_the_program_of_a_query() {
    if !common::may("the_verifier_follows_few_ways_through_the_program_of_a_query") {
        return;
    }
    let mut most = (0, String::new());
    for hook in [Hook::Socket, Hook::Tcx, Hook::Xdp] {
        for (path, text) in common::queries() {
            let Ok(kernel) = common::counting_kernel(&text, hook) else { continue };
            let verified = kernel.loaded.verified().expect("it was loaded");
            most = most.max((verified, format!("{path} at {hook}")));
        }
    }
    assert!(most.0 > 0 && most.0 <= VERIFIED_MAX, "{most:?}");
}
