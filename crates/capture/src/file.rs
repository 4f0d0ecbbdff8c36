//! Captures that are in memory as a whole: mapped files, and bytes handed over.

use crate::decode::{Decoder, HEAD};
use crate::limits::{PAGES_SHARE_MIN, POPULATE, POPULATE_AHEAD, RELEASE_BEHIND};
use crate::options::Options;
use crate::sys::map::Mapping;
use std::sync::Arc;
use weir_packet::pcap::Step;
use weir_packet::source::{Account, Chunk, FrameBatch, Source, SourceError};

/// A capture whose every byte is at hand.
pub(crate) struct Resident {
    chunk: Chunk,
    /// The same as a mapping, if it is one.
    pages: Option<Pages>,
    /// Where the next record starts.
    at: usize,
    decoder: Decoder,
    done: bool,
}

/// The pages of a mapped file that are asked for and let go as the reader goes on.
struct Pages {
    map: Arc<Mapping>,
    /// Up to where they were asked for.
    until: usize,
    /// Bytes that are asked for at once, ...
    step: usize,
    /// ... how far ahead of the reader they are at least, ...
    ahead: usize,
    /// ... and how far after it they are let go.
    behind: usize,
}

impl Pages {
    /// Of one of so many files that are read at the same time, which share the memory.
    fn new(map: Arc<Mapping>, files: usize) -> Pages {
        let share = |n: usize| (n / files.max(1)).next_multiple_of(PAGES_SHARE_MIN);
        let (step, ahead) = (share(POPULATE), share(POPULATE_AHEAD));
        // A multiple of the step: what is let go is what was asked for.
        let behind = share(RELEASE_BEHIND).next_multiple_of(step);
        Pages { map, until: 0, step, ahead, behind }
    }

    /// Has those present that are read next from `at` on, and lets go of those read long ago.
    fn turn(&mut self, at: usize) {
        while self.until < at + self.ahead {
            self.map.populate(self.until..self.until + self.step);
            if let Some(old) = self.until.checked_sub(self.behind) {
                self.map.release(old..old + self.step);
            }
            self.until += self.step;
        }
    }
}

impl Resident {
    pub(crate) fn new(
        name: &str,
        chunk: Chunk,
        options: &Options,
    ) -> Result<Resident, SourceError> {
        let bytes = (*chunk).as_ref();
        let (decoder, at) = Decoder::new(name, &bytes[..HEAD.min(bytes.len())], options)?;
        Ok(Resident { chunk, pages: None, at, decoder, done: false })
    }

    /// Of a mapped file.
    pub(crate) fn mapped(
        name: &str,
        map: Mapping,
        options: &Options,
    ) -> Result<Resident, SourceError> {
        let map = Arc::new(map);
        if options.populate {
            map.populate(0..usize::MAX);
            return Resident::new(name, map, options);
        }
        let resident = Resident::new(name, Arc::clone(&map) as Chunk, options)?;
        Ok(Resident { pages: Some(Pages::new(map, options.at_once)), ..resident })
    }

    fn next(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        if let Some(pages) = &mut self.pages {
            pages.turn(self.at);
        }
        match self.decoder.fill(&self.chunk, &mut self.at, 0, batch)? {
            Step::Frames => Ok(true),
            Step::More(need) => match (*self.chunk).as_ref().len() - self.at {
                0 => Ok(false),
                have => Err(self.decoder.torn(self.at as u64, have, need)),
            },
        }
    }
}

impl Source for Resident {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let next = if self.done { Ok(false) } else { self.next(batch) };
        if !matches!(next, Ok(true)) {
            self.done = true;
            batch.clear();
        }
        next
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        let received = self.decoder.received();
        Account { received, bytes_read: self.at as u64, ..Account::default() }
    }
}

#[cfg(test)]
mod tests {
    use crate::Options;
    use crate::fuzz::{fuzz_file, fuzz_source};
    use proptest::prelude::*;
    use weir_packet::pcap::{ByteOrder, FileHeader};
    use weir_packet::pcapng::{Interface, Writer};
    use weir_packet::source::LinkType;

    fn pcap(header: &FileHeader, frames: u32) -> Vec<u8> {
        let mut out = header.to_bytes().to_vec();
        for i in 0..frames {
            header.put_record(&mut out, i64::from(i) * 1000, i + 9, &vec![i as u8; i as usize % 9]);
        }
        out
    }

    fn pcapng(order: ByteOrder, packets: u32) -> Vec<u8> {
        let (w, mut out) = (Writer { order }, Vec::new());
        w.section(&mut out);
        w.interface(&mut out, &Interface::new(LinkType::ETHERNET));
        w.interface(&mut out, &Interface { resolution: 9, ..Interface::new(LinkType::RAW) });
        w.interface(&mut out, &Interface::new(LinkType(147)));
        for i in 0..packets {
            // Mostly one of the link types that are decoded, now and then another.
            let id = if i % 40 == 39 { 2 } else { i / 3 % 2 };
            w.packet(&mut out, id, u64::from(i), 60, &vec![i as u8; i as usize % 9]);
            if i % 7 == 0 {
                w.simple_packet(&mut out, 2, &[1, 2]);
                w.block(&mut out, 5, &[&[0; 11]]);
            }
        }
        out
    }

    fn corpus() -> Vec<Vec<u8>> {
        let ether = FileHeader::new(LinkType::ETHERNET);
        vec![
            pcap(&ether, 600),
            pcap(&FileHeader { order: ByteOrder::Big, nanos: false, ..ether }, 20),
            pcap(&FileHeader { modified: true, ..ether }, 20),
            pcap(&FileHeader { version: (2, 3), ..ether }, 20),
            pcap(&FileHeader { link: LinkType(147), ..ether }, 3),
            pcapng(ByteOrder::Little, 600),
            [pcapng(ByteOrder::Big, 30), pcapng(ByteOrder::Little, 30)].concat(),
        ]
    }

    fn read(bytes: Vec<u8>) -> (usize, Option<String>) {
        let (records, error) =
            fuzz_source(crate::open_bytes("x", bytes, &Options::default()), usize::MAX);
        (records.len(), error)
    }

    #[test]
    fn whole_files() {
        corpus().iter().for_each(|file| fuzz_file(file));
        assert_eq!(read(corpus()[0].clone()), (600, None));
    }

    #[test]
    fn a_torn_last_record_is_reported_after_the_others() {
        let mut file = corpus()[1].clone();
        file.pop();
        let (records, error) = read(file);
        assert_eq!(records, 19);
        assert_eq!(
            error.unwrap(),
            "x: the capture breaks off 16 bytes into a record of 17, at byte 400 after 19 whole \
             records; everything before it was processed"
        );
    }

    #[test]
    fn frames_before_an_unsupported_link_type_are_delivered() {
        let (records, error) = read(pcapng(ByteOrder::Little, 600));
        assert_eq!(records, 39 + 6);
        assert!(error.unwrap().starts_with("x: link type 147"));
        // A file with no frame of such a type is fine.
        let mut file = Vec::new();
        Writer { order: ByteOrder::Big }.section(&mut file);
        Writer { order: ByteOrder::Big }.interface(&mut file, &Interface::new(LinkType(147)));
        assert_eq!(read(file), (0, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn damaged_files(
            which in 0usize..7,
            damage in proptest::collection::vec(
                (any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..6),
            cut in proptest::option::of(any::<prop::sample::Index>()),
        ) {
            let mut file = corpus().swap_remove(which);
            for (at, value, early) in damage {
                // Headers stand at the start, and damage to them does most.
                let at = at.index(if early { file.len().min(80) } else { file.len() });
                file[at] = value;
            }
            if let Some(cut) = cut {
                file.truncate(cut.index(file.len()));
            }
            fuzz_file(&file);
        }

        #[test]
        fn any_bytes_at_all(
            data in proptest::collection::vec(any::<u8>(), 0..300),
            magic in proptest::sample::select(vec![
                &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0xa1, 0xb2, 0xcd, 0x34, 0, 2, 0, 3],
                &[0x0a, 0x0d, 0x0d, 0x0a], &[],
            ]),
        ) {
            fuzz_file(&[magic, &data].concat());
        }
    }
}
