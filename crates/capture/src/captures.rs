//! Captures on their way to being read: opened while a run still may, read once it may no more.

use crate::chain::Chain;
use crate::file::Resident;
use crate::limits::{CAPTURES_MERGED_MAX, CAPTURES_OPEN_MAX};
use crate::merge::MergedCaptures;
use crate::open::{filtered, map_plain, opened};
use crate::options::{Options, Order};
use crate::unread::{UnreadCapture, is_stream};
use weir_packet::source::{Source, SourceError};

/// Captures that are about to be read as one.
///
/// Files are open, so that a process which then gives up its permissions can read them all the
/// same; of what others made nothing was read but the header of the first file, where that is
/// neither compressed nor a stream. Standard input and named pipes, whose opening waits for a
/// writer, are opened by [`Captures::start`], as are files beyond [`CAPTURES_OPEN_MAX`].
pub struct Captures {
    first: Option<Box<dyn Source>>,
    waiting: Vec<UnreadCapture>,
    options: Options,
    /// The options of each of them.
    each: Options,
    /// Where they are merged: what stands in errors of the filter, which is over all of them.
    merged: Option<String>,
}

impl Captures {
    /// Opens the captures of these names, as far as that does not wait; `-` is standard input.
    ///
    /// # Errors
    /// Where one can't be opened, the first is no capture, or they are too many to be merged.
    pub fn new(names: Vec<String>, options: &Options) -> Result<Captures, SourceError> {
        let merged = match (&names[..], options.order) {
            ([first, rest @ ..], Order::Time) if !rest.is_empty() => {
                Some(format!("{first} and {} more", rest.len()))
            }
            _ => None,
        };
        if merged.is_some() && names.len() > CAPTURES_MERGED_MAX {
            let reason = format!(
                "at most {CAPTURES_MERGED_MAX} are merged by time; --append reads them one after \
                 the other"
            );
            return Err(SourceError::Format { name: format!("{} captures", names.len()), reason });
        }
        // A filter over merged captures means what it means for one that they were written to.
        let each = match merged {
            Some(_) => Options { filter: None, at_once: names.len(), ..options.clone() },
            None => options.clone(),
        };
        let (mut first, mut waiting) = (None, Vec::new());
        for (n, name) in names.into_iter().enumerate() {
            if is_stream(&name) {
                waiting.push(UnreadCapture::Named(name));
                continue;
            }
            let file = opened(&name)?;
            let map = if n == 0 { map_plain(&file) } else { None };
            if let Some(map) = map {
                let source = Resident::mapped(&name, map, &each)?;
                first = Some(filtered(source, &name, &each));
            } else if n < CAPTURES_OPEN_MAX {
                waiting.push(UnreadCapture::Open { name, file });
            } else {
                waiting.push(UnreadCapture::Named(name));
            }
        }
        Ok(Captures { first, waiting, options: options.clone(), each, merged })
    }

    /// Names of those that are still to be opened.
    pub fn unopened(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().filter_map(|waiting| match waiting {
            UnreadCapture::Named(name) => Some(name.as_str()).filter(|name| *name != "-"),
            UnreadCapture::Open { .. } => None,
        })
    }

    /// Begins to read. May wait for whoever writes them: for the first of them, or where they are
    /// merged, for each.
    ///
    /// # Errors
    /// As for [`crate::open`], of the first, or where they are merged, of any.
    pub fn start(self) -> Result<Box<dyn Source>, SourceError> {
        let Captures { first, waiting, options, each, merged } = self;
        let mut waiting = waiting.into_iter();
        if let Some(name) = merged {
            let source = MergedCaptures::new(first, waiting, each)?;
            return Ok(filtered(source, &name, &options));
        }
        let first = match first {
            Some(source) => Some(source),
            None => waiting.next().map(|next| next.open(&options)).transpose()?,
        };
        match (first, waiting.len()) {
            (Some(only), 0) => Ok(only),
            (first, _) => Ok(Box::new(Chain::new(first, waiting, options))),
        }
    }
}

/// Opens several captures as one, in the [order](Options::order) that is asked for, their packets
/// numbered through. Files are opened now, as far as they may be at the same time (see
/// [`Captures`]).
///
/// # Errors
/// As for [`open`](crate::open), of the first, or where they are merged, of any; and where another
/// is missing.
pub fn open_all(names: Vec<String>, options: &Options) -> Result<Box<dyn Source>, SourceError> {
    Captures::new(names, options)?.start()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::pcap::FileHeader;
    use weir_packet::source::{FrameBatch, LinkType};

    /// A capture of as many frames.
    fn capture(frames: u8) -> Vec<u8> {
        let header = FileHeader::new(LinkType::ETHERNET);
        let mut bytes = header.to_bytes().to_vec();
        (0..frames).for_each(|n| header.put_record(&mut bytes, n.into(), 20, &[n; 20]));
        bytes
    }

    fn count(mut source: Box<dyn Source>) -> u64 {
        let (mut batch, mut n) = (FrameBatch::new(), 0);
        while source.fill(&mut batch).expect("sound") {
            n += batch.len() as u64;
        }
        n
    }

    #[test]
    fn files_that_were_opened_are_read_whatever_becomes_of_their_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let name =
            |n: usize| folder.path().join(format!("{n}")).to_str().expect("plain").to_owned();
        let names: Vec<String> = (0..CAPTURES_OPEN_MAX + 2).map(name).collect();
        names.iter().for_each(|name| std::fs::write(name, capture(3)).expect("writes"));
        let captures = Captures::new(names.clone(), &Options::default()).expect("opens");
        let unopened: Vec<&str> = captures.unopened().collect();
        assert_eq!(unopened, [name(CAPTURES_OPEN_MAX), name(CAPTURES_OPEN_MAX + 1)]);
        names[..CAPTURES_OPEN_MAX].iter().for_each(|name| std::fs::remove_file(name).expect("is"));
        assert_eq!(count(captures.start().expect("starts")), 3 * names.len() as u64);
        assert!(Captures::new(names, &Options::default()).is_err(), "they are gone");
    }

    #[test]
    fn what_is_wrong_is_told_before_anything_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = |n: &str| folder.path().join(n).to_str().expect("plain").to_owned();
        std::fs::write(name("a"), capture(2)).expect("writes");
        std::fs::write(name("b"), "no capture").expect("writes");
        let opened = |names: &[&str]| {
            let names = names.iter().map(|n| name(n)).collect();
            Captures::new(names, &Options::default()).map(|c| c.start().map(count))
        };
        assert_eq!(opened(&["a", "a"]).expect("opens").expect("starts"), 4);
        let told = |names: &[&str]| opened(names).expect_err("refused").to_string();
        assert!(told(&["b", "a"]).starts_with(&name("b")), "{}", told(&["b", "a"]));
        assert!(told(&["a", "c"]).starts_with(&name("c")), "{}", told(&["a", "c"]));
        assert!(told(&["a", ""]).contains("is a directory"), "{}", told(&["a", ""]));
        assert_eq!(count(open_none()), 0);
    }

    fn open_none() -> Box<dyn Source> {
        Captures::new(Vec::new(), &Options::default()).and_then(Captures::start).expect("none")
    }
}
