//! Tests of the page where it is built.

mod browser;
mod bytes;
mod pictures;

use crate::over_wires::{Run, lines};
use std::process::{Command, Stdio};

/// A run of `weir serve`, or of `weir run --http`, that has said where its page is.
pub(crate) struct Served {
    pub(crate) run: Run,
    /// The address of the page, with the token if the run has one of its own.
    pub(crate) page: String,
}

impl Served {
    pub(crate) fn start(args: &[&str]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let errors = lines(child.stderr.take().expect("piped"));
        let mut run = Run { child, errors, said: Vec::new() };
        run.until("page: ");
        let page = run.said[run.said.len() - 1].trim_start_matches("page: ").to_owned();
        Served { run, page }
    }

    /// Its address and port.
    pub(crate) fn address(&self) -> &str {
        let rest = self.page.trim_start_matches("http://");
        rest.split('/').next().expect("an address")
    }

    /// The header with its token.
    pub(crate) fn token(&self) -> String {
        let token = self.page.split("#token=").nth(1).expect("a token");
        format!("Authorization: Bearer {token}\r\n")
    }

    /// Ends it as Ctrl-C does; gives what it said.
    pub(crate) fn end(self) -> String {
        self.run.signal("-INT");
        self.run.ended()
    }
}
