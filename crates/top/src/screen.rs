//! The screen: keys in, pictures out, until somebody ends it.

use crate::app::{App, Wish};
use crate::look::Look;
use crate::model::SharedModel;
use crate::packets::{FoundPackets, PacketsWanted};
use crate::queried::LibraryQuery;
use crate::query::Setup;
use crate::state::RunState;
use crate::terminal::Terminal;
use crate::view;
use crossterm::event::{self, Event, KeyEventKind};
use ratatui::backend::CrosstermBackend;
use std::io::{self, BufWriter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a picture lasts, unless a key changes it.
const PICTURE: Duration = Duration::from_millis(200);

/// The run that a screen shows. No call waits for packets.
pub trait ScreenRun {
    /// From now on this is to be counted. The outcome is asked for by [`ScreenRun::changed`].
    fn change(&mut self, setup: &Setup);

    /// How the last change ended, once: what runs now, if it was refused, and why.
    fn changed(&mut self) -> Option<(Setup, String)>;

    /// These packets are to be looked for, and those of an earlier search no more; `None`: none at
    /// all. The outcome is asked for by [`ScreenRun::found`].
    fn look_for_packets(&mut self, wanted: Option<&PacketsWanted>);

    /// How the last search for packets ended, once: packets, or why there are none.
    fn found(&mut self) -> Option<Result<FoundPackets, String>>;

    /// All these packets are to be written into a file. The outcome is asked for by
    /// [`ScreenRun::saved`].
    fn save_packets(&mut self, wanted: &PacketsWanted);

    /// How the last writing of packets ended, once: a sentence that names the file, or why there is
    /// none.
    fn saved(&mut self) -> Option<Result<String, String>>;

    /// The fate of packets so far, if something new is known; it also asks for news.
    fn state(&mut self) -> Option<RunState>;
}

/// A screen.
#[derive(Debug)]
pub struct Screen {
    /// The source of the packets, for the title.
    pub source: String,
    /// The abilities of the terminal.
    pub look: Look,
    /// The setup by which the run counts at first.
    pub setup: Setup,
    /// The queries that can be run for their rows.
    pub library: Vec<LibraryQuery>,
    /// The counts.
    pub model: SharedModel,
}

impl Screen {
    /// Shows a run until somebody ends the screen or `stop` is set, and gives the terminal back.
    ///
    /// # Errors
    /// If the terminal fails.
    pub fn show(
        self,
        terminal: &Terminal,
        run: &mut dyn ScreenRun,
        stop: &Arc<AtomicBool>,
    ) -> io::Result<()> {
        let Screen { source, look, setup, library, model } = self;
        let mut app = App::new(&source, look, setup, &model.lock());
        app.library = library;
        terminal.take(stop)?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, terminal.out()?));
        let mut cells = ratatui::Terminal::new(backend)?;
        let mut state = RunState::default();
        while !stop.load(Ordering::SeqCst) && terminal.is_taken() {
            state = run.state().unwrap_or(state);
            if let Some((runs, why)) = run.changed() {
                app.refused(&why, &runs);
            }
            if let Some(found) = run.found() {
                app.found(found);
            }
            if let Some(saved) = run.saved() {
                app.saved(saved);
            }
            app.refresh(&model.lock());
            cells.draw(|frame| {
                let area = frame.area();
                if let Some(cursor) = view::draw(&mut app, &state, area, frame.buffer_mut()) {
                    frame.set_cursor_position(cursor);
                }
            })?;
            if wait(terminal, &mut app, &model, run)? {
                break;
            }
        }
        terminal.give_back();
        Ok(())
    }
}

/// Waits for a key, or until the picture is old; then takes all keys that are there. Whether
/// somebody ends the screen, or the terminal has gone.
fn wait(
    terminal: &Terminal,
    app: &mut App,
    model: &SharedModel,
    run: &mut dyn ScreenRun,
) -> io::Result<bool> {
    let mut patience = PICTURE;
    loop {
        if !terminal.wait(patience)? {
            return Ok(true);
        }
        if !event::poll(Duration::ZERO)? {
            return Ok(false);
        }
        patience = Duration::ZERO;
        let wish = match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => app.key(key, &model.lock()),
            Event::Paste(text) => {
                app.paste(&text);
                Wish::Nothing
            }
            _ => Wish::Nothing,
        };
        match wish {
            Wish::Quit => return Ok(true),
            Wish::Change => run.change(app.setup()),
            Wish::LookForPackets => run.look_for_packets(app.wanted()),
            Wish::SavePackets => {
                if let Some(wanted) = app.wanted() {
                    run.save_packets(wanted);
                }
            }
            Wish::LookNoMore => run.look_for_packets(None),
            Wish::Nothing => {}
        }
    }
}
