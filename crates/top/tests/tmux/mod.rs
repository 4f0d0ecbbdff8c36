//! A real terminal for tests: one of tmux.

#![allow(dead_code, unreachable_pub)]

use std::cell::Cell;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// How often a picture is looked at, until it shows what is waited for.
const LOOKS: usize = 1200;
const BETWEEN: Duration = Duration::from_millis(50);

/// A terminal with a shell. It ends with the test.
pub struct Tmux {
    /// The socket of its server.
    socket: PathBuf,
    /// How many commands were run between looks at the modes.
    commands: Cell<u32>,
}

impl Tmux {
    /// Opens a terminal of this size; `None`, with a word about it, where there is no tmux.
    pub fn open(test: &str, width: u16, height: u16) -> Option<Tmux> {
        let name = format!("weir-test-{test}-{}", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let tmux = Tmux { socket, commands: Cell::new(0) };
        let (x, y) = (width.to_string(), height.to_string());
        let new = ["-f", "/dev/null", "new-session", "-d", "-x", &x, "-y", &y];
        let shell = "env LC_ALL=C.UTF-8 PS1='$ ' sh";
        if Command::new("tmux").arg("-V").output().is_err() {
            // There is no other place to say it.
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("SKIPPED {test}: there is no tmux (Debian: apt-get install tmux)\n")
                    .as_bytes(),
            );
            return None;
        }
        tmux.call(&[&new[..], &[shell]].concat());
        tmux.call(&["set-option", "-g", "status", "off"]);
        tmux.until("the shell", |text| text.contains('$'));
        Some(tmux)
    }

    /// The answer of tmux.
    pub fn call(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").arg("-S").arg(&self.socket).args(args).output();
        let output = output.expect("tmux runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {args:?}: {errors}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Types a line of a command.
    pub fn command(&self, line: &str) {
        self.call(&["send-keys", "-l", line]);
        self.keys(&["Enter"]);
    }

    /// Presses keys, by tmux's names of them.
    pub fn keys(&self, keys: &[&str]) {
        self.call(&[&["send-keys"][..], keys].concat());
    }

    /// Types a text.
    pub fn type_text(&self, text: &str) {
        self.call(&["send-keys", "-l", text]);
    }

    /// The text that is seen.
    pub fn text(&self) -> String {
        self.call(&["capture-pane", "-p"])
    }

    /// The text that is seen, with its colours as escapes.
    pub fn styled(&self) -> String {
        self.call(&["capture-pane", "-p", "-e"])
    }

    /// Waits until a picture meets the condition; gives it.
    pub fn until(&self, what: &str, met: impl Fn(&str) -> bool) -> String {
        for _ in 0..LOOKS {
            let text = self.text();
            if met(&text) {
                return text;
            }
            std::thread::park_timeout(BETWEEN);
        }
        panic!("{what} did not come:\n{}", self.text());
    }

    /// Waits until this is seen.
    pub fn until_seen(&self, text: &str) -> String {
        self.until(text, |seen| seen.contains(text))
    }

    /// Runs a command between two looks at the modes of the terminal; whether they are the same is
    /// shown after it.
    pub fn command_between_modes(&self, command: &str) {
        self.commands.set(self.commands.get() + 1);
        let n = self.commands.get();
        self.command(&format!(
            "clear; m=$(stty -g); {command}; echo status $?; [ \"$m\" = \"$(stty -g)\" ] && echo \
             modes are as before {n} || echo modes differ {n}"
        ));
    }

    /// Waits until the command has ended and the terminal is as it was.
    pub fn until_given_back(&self) -> String {
        let n = self.commands.get();
        let (same, other) = (format!("modes are as before {n}"), format!("modes differ {n}"));
        let text =
            self.until("the end", |seen| seen.lines().any(|line| line == same || line == other));
        assert!(text.lines().any(|line| line == same), "{text}");
        assert_eq!(self.call(&["display-message", "-p", "#{alternate_on}"]).trim(), "0", "{text}");
        assert_eq!(self.call(&["display-message", "-p", "#{cursor_flag}"]).trim(), "1", "{text}");
        text
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
        let _ = std::fs::remove_file(&self.socket);
    }
}
