//! The terminal is given back as it was, also after a panic.

#[path = "tmux/mod.rs"]
mod tmux;

use std::sync::Arc;
use tmux::Tmux;
use weir_top::{
    FoundPackets, Glyphs, Look, Pace, PacketsWanted, RunState, Screen, ScreenRun, Setup,
    SharedModel, Terminal,
};

/// Panics when it is asked for news for the third time.
struct Fragile(u32);

impl ScreenRun for Fragile {
    fn change(&mut self, _: &Setup) {}

    fn changed(&mut self) -> Option<(Setup, String)> {
        None
    }

    fn look_for_packets(&mut self, _: Option<&PacketsWanted>) {}

    fn save_packets(&mut self, _: &PacketsWanted) {}

    fn saved(&mut self) -> Option<Result<String, String>> {
        None
    }

    fn found(&mut self) -> Option<Result<FoundPackets, String>> {
        None
    }

    fn state(&mut self) -> Option<RunState> {
        self.0 += 1;
        assert!(self.0 < 3, "out of luck");
        None
    }
}

/// Run by the other test, in a terminal.
#[test]
#[ignore = "needs a terminal"]
fn a_screen_that_panics() {
    let terminal = Terminal::open().expect("a terminal");
    let screen = Screen {
        source: "nothing".to_owned(),
        look: Look { color: false, glyphs: Glyphs::Ascii, zone: None },
        setup: Setup::first(Pace::Live, 1),
        library: Vec::new(),
        model: SharedModel::new(Pace::Live),
    };
    let shown = screen.show(&terminal, &mut Fragile(0), &Arc::default());
    panic!("it ended otherwise: {shown:?}");
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let Some(tmux) = Tmux::open("panic", 100, 40) else { return };
    let own = std::env::current_exe().expect("has a name");
    let own = own.display();
    tmux.command_between_modes(&format!(
        "RUST_BACKTRACE=0 {own} --exact a_screen_that_panics --ignored --nocapture"
    ));
    let text = tmux.until_given_back();
    assert!(text.contains("out of luck") && !text.contains("it ended otherwise"), "{text}");
}
