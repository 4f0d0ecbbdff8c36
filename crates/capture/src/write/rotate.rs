//! Captures that go on in a further file once one is full, as tcpdump's `-C` and `-W` have it.

use super::{Id, refused};
use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU32;

/// When a capture goes on in a further file, and in which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// A file that has more bytes than this takes no further frame.
    pub bytes: u64,
    /// Files, after which the first is written over; without end if there is no such number.
    pub files: Option<NonZeroU32>,
}

impl Rotation {
    /// The name of the `n`th file: the first bears the name itself and the others a number, or all
    /// bear numbers of as many digits as the last needs.
    fn name(self, base: &str, n: u64) -> String {
        match self.files.map(NonZeroU32::get) {
            None if n == 0 => base.to_owned(),
            None => format!("{base}{n}"),
            Some(files) => {
                let digits = (files - 1).to_string().len();
                format!("{base}{:0digits$}", n % u64::from(files))
            }
        }
    }
}

/// The files of one capture.
pub(super) struct Further {
    rotation: Rotation,
    base: String,
    /// The number of the next.
    n: u64,
    /// Files that must not be written over.
    taken: Vec<Id>,
}

impl Further {
    /// Files named after `base`, of which the first is still to be made.
    pub(super) fn new(rotation: Rotation, base: &str) -> io::Result<Further> {
        if base == "-" {
            return Err(refused("standard output can't be cut into files: -w needs a name for -C"));
        }
        Ok(Further { rotation, base: base.to_owned(), n: 0, taken: Vec::new() })
    }

    /// The name of the next file.
    pub(super) fn name(&self) -> String {
        self.rotation.name(&self.base, self.n)
    }

    /// The first file was made, which is among those of the run.
    pub(super) fn begun(mut self, taken: &[Id]) -> Further {
        (self.n, self.taken) = (1, taken.to_vec());
        // The first itself comes round again.
        let own = std::fs::metadata(self.rotation.name(&self.base, 0)).ok();
        let own = own.and_then(|meta| Id::of(&meta));
        self.taken.retain(|id| Some(*id) != own);
        self
    }

    /// Whether a file of so many bytes takes no further frame.
    pub(super) fn is_full(&self, bytes: u64) -> bool {
        bytes > self.rotation.bytes
    }

    /// Makes the next file, and empties it.
    pub(super) fn next(&mut self) -> io::Result<(String, File)> {
        let name = self.name();
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{name}: {e}"));
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&name);
        let file = file.map_err(named)?;
        let meta = file.metadata().map_err(named)?;
        if Id::of(&meta).is_some_and(|id| self.taken.contains(&id)) {
            return Err(refused(&format!("{name}: is read or written otherwise by this run")));
        }
        file.set_len(0).map_err(named)?;
        self.n += 1;
        Ok((name, file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name =
            |files, n| Rotation { bytes: 0, files: NonZeroU32::new(files) }.name("x.pcap", n);
        assert_eq!([0, 1, 12].map(|n| name(0, n)), ["x.pcap", "x.pcap1", "x.pcap12"]);
        assert_eq!([0, 1, 3].map(|n| name(3, n)), ["x.pcap0", "x.pcap1", "x.pcap0"]);
        assert_eq!([0, 9, 10].map(|n| name(11, n)), ["x.pcap00", "x.pcap09", "x.pcap10"]);
        assert_eq!([0, 9, 10].map(|n| name(10, n)), ["x.pcap0", "x.pcap9", "x.pcap0"]);
    }
}
