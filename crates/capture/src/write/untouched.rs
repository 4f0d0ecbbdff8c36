//! A file that stays as it is until a run begins: one that is refused before that changes nothing.

use std::fs::File;
use std::io;

/// A file that is open for writing and keeps what is in it until it [begins](Untouched::begin).
#[derive(Debug)]
pub struct Untouched(File);

impl Untouched {
    /// A file that is open for writing.
    pub fn new(file: File) -> Untouched {
        Untouched(file)
    }

    /// Empties it, and gives it away. Pipes and devices, which have no length, stay as they are.
    ///
    /// # Errors
    /// Those of the system.
    pub fn begin(self) -> io::Result<File> {
        if self.0.metadata()?.is_file() {
            self.0.set_len(0)?;
        }
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::fd::OwnedFd;

    #[test]
    fn a_file_is_emptied_when_it_begins_and_a_pipe_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        std::fs::write(&path, "of yesterday").expect("writes");
        let open = || File::options().write(true).open(&path).expect("opens");
        drop(Untouched::new(open()));
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), "of yesterday");
        let mut file = Untouched::new(open()).begin().expect("empties");
        file.write_all(b"new").expect("writes");
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), "new");

        let (mut reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"first ").expect("writes");
        let writer = File::from(OwnedFd::from(writer));
        let mut pipe = Untouched::new(writer).begin().expect("begins");
        pipe.write_all(b"second").expect("writes");
        drop(pipe);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("text");
        assert_eq!(text, "first second");
    }
}
