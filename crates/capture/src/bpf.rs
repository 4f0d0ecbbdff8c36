//! Capture filters as tcpdump users type them: compiled by libpcap, run by [`crate::cbpf`].

use crate::cbpf::{ClassicProgram, Instruction, ProgramError};
use crate::sys::libpcap::{self, CompileError};
use std::fmt;
use weir_packet::pcap::{ByteOrder, FileHeader};
use weir_packet::source::{Account, FrameBatch, LinkType, Source, SourceError};

/// Link types an expression is tried on before any frame is seen. Most make sense on the first;
/// some (`inbound`) only on another.
const TRIED: [LinkType; 5] =
    [LinkType::ETHERNET, LinkType::LINUX_SLL, LinkType::LINUX_SLL2, LinkType::RAW, LinkType::NULL];

/// libpcap's words for an expression that no frame of the link type can match, such as `arp` where
/// there is nothing below IP.
const MATCHES_NOTHING: &str = "expression rejects all packets";

/// An expression, compiled once for each link type it meets.
#[derive(Clone, Debug)]
pub struct Filter {
    expression: String,
    /// `None` where it matches nothing.
    compiled: Vec<(LinkType, Option<Compiled>)>,
}

#[derive(Clone, Debug)]
struct Compiled {
    program: ClassicProgram,
    /// For frames of BSD loopback from a big-endian machine.
    big_endian: Option<ClassicProgram>,
}

/// Why an expression can't be used.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FilterError {
    /// libpcap is not installed, or lacks what we need; the loader's words.
    Library(String),
    /// libpcap refuses the expression.
    Expression {
        /// The expression.
        expression: String,
        /// libpcap's words.
        message: String,
    },
    /// The compiled program can't be run over files.
    Program(ProgramError),
    /// The operating system refused something; its words.
    System(String),
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Library(reason) => write!(
                f,
                "capture filters need libpcap, which could not be loaded ({reason}); \
                 install it: apt-get install libpcap0.8"
            ),
            FilterError::Expression { expression, message } => {
                write!(f, "capture filter '{expression}': {message}")
            }
            FilterError::Program(error) => write!(f, "capture filter: {error}"),
            FilterError::System(reason) => write!(f, "capture filter: {reason}"),
        }
    }
}

impl std::error::Error for FilterError {}

impl Filter {
    /// Compiles `expression`, in the language of pcap-filter(7). It is refused only if no link type
    /// can be found on which it makes sense.
    ///
    /// # Errors
    /// When libpcap can't be loaded, or refuses the expression.
    pub fn new(expression: &str) -> Result<Filter, FilterError> {
        let mut filter = Filter { expression: expression.to_owned(), compiled: Vec::new() };
        let mut first = None;
        for link in TRIED {
            match filter.compile(link) {
                Ok(compiled) => {
                    filter.compiled.push((link, Some(compiled)));
                    return Ok(filter);
                }
                Err(error @ FilterError::Expression { .. }) => first = first.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        Err(first.expect("a link type was tried"))
    }

    /// The expression as it was given.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Keeps the matching frames of a batch; none, where the expression can match no frame of the
    /// batch's link type.
    ///
    /// # Errors
    /// When the expression makes no sense on the batch's link type.
    pub fn keep(&mut self, batch: &mut FrameBatch) -> Result<(), FilterError> {
        let compiled = match self.compiled.iter().position(|(link, _)| *link == batch.link) {
            Some(i) => &self.compiled[i].1,
            None => {
                let compiled = match self.compile(batch.link) {
                    Err(FilterError::Expression { message, .. }) if message == MATCHES_NOTHING => {
                        None
                    }
                    other => Some(other?),
                };
                self.compiled.push((batch.link, compiled));
                &self.compiled[self.compiled.len() - 1].1
            }
        };
        let Some(compiled) = compiled else {
            batch.clear();
            return Ok(());
        };
        batch.retain(|batch, i| {
            let frame = batch.frame(i);
            compiled.program(frame).run(frame, batch.lens()[i]) != 0
        });
        Ok(())
    }

    /// The program for frames of a link type, for those who run it elsewhere; one that refuses
    /// everything, where no frame of that type can match.
    pub(crate) fn instructions(&self, link: LinkType) -> Result<Vec<Instruction>, FilterError> {
        match self.code(link, ByteOrder::Little) {
            Err(FilterError::Expression { message, .. }) if message == MATCHES_NOTHING => {
                Ok(vec![Instruction::REFUSE])
            }
            other => other,
        }
    }

    fn code(&self, link: LinkType, order: ByteOrder) -> Result<Vec<Instruction>, FilterError> {
        let header = FileHeader { order, ..FileHeader::new(link) };
        libpcap::compile(&header, &self.expression).map_err(|e| match e {
            CompileError::Missing(reason) => FilterError::Library(reason),
            CompileError::System(reason) => FilterError::System(reason),
            CompileError::Expression(message) => {
                FilterError::Expression { expression: self.expression.clone(), message }
            }
        })
    }

    fn compile(&self, link: LinkType) -> Result<Compiled, FilterError> {
        let program =
            |order| ClassicProgram::new(&self.code(link, order)?).map_err(FilterError::Program);
        Ok(Compiled {
            program: program(ByteOrder::Little)?,
            big_endian: match link {
                LinkType::NULL => Some(program(ByteOrder::Big)?),
                _ => None,
            },
        })
    }
}

impl Compiled {
    /// BSD loopback begins with a small number in the byte order of the machine that captured: two
    /// leading zeros tell which.
    fn program(&self, frame: &[u8]) -> &ClassicProgram {
        match &self.big_endian {
            Some(big_endian) if frame.starts_with(&[0, 0]) => big_endian,
            _ => &self.program,
        }
    }
}

/// A source whose frames match a filter; the others are counted.
pub struct Filtered<S> {
    source: S,
    name: String,
    filter: Filter,
    delivered: u64,
    filtered: u64,
    failed: bool,
}

impl<S: Source> Filtered<S> {
    /// Filters `source`; `name` stands in errors.
    pub fn new(source: S, name: &str, filter: Filter) -> Filtered<S> {
        let name = name.to_owned();
        Filtered { source, name, filter, delivered: 0, filtered: 0, failed: false }
    }
}

impl<S: Source> Source for Filtered<S> {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        while !self.failed && self.source.fill(batch)? {
            let received = batch.len();
            if let Err(error) = self.filter.keep(batch) {
                self.failed = true;
                batch.clear();
                let (name, reason) = (self.name.clone(), error.to_string());
                return Err(SourceError::Filter { name, reason });
            }
            self.delivered += batch.len() as u64;
            self.filtered += (received - batch.len()) as u64;
            if !batch.is_empty() || batch.reached().is_some() || batch.gap().is_some() {
                return Ok(true);
            }
        }
        batch.clear();
        Ok(false)
    }

    fn is_ready(&mut self) -> bool {
        self.source.is_ready()
    }

    fn account(&self) -> Account {
        let received = self.delivered + self.filtered;
        let account = self.source.account();
        let received = received + account.kernel.finished();
        Account { received, filtered: self.filtered, ..account }
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        self.source.interfaces()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemorySource;
    use weir_packet::limits::BATCH;

    /// The filter, or nothing where libpcap is not installed.
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn filter(expression: &str) -> Option<Filter> {
        match Filter::new(expression) {
            Err(FilterError::Library(why)) => {
                eprintln!("SKIPPED a test of capture filters: {why}");
                None
            }
            other => Some(other.unwrap()),
        }
    }

    /// The numbers of the frames that are kept.
    fn kept(link: LinkType, frames: &[&[u8]], filter: Filter) -> Result<Vec<u64>, SourceError> {
        let frames = frames.iter().map(|f| (0, f.len() as u32, f.to_vec()));
        let frames: Vec<_> = frames.collect();
        let n = frames.len() as u64;
        let mut source = Filtered::new(MemorySource::new(link, frames), "x", filter);
        let (mut batch, mut out) = (FrameBatch::new(), Vec::new());
        while source.fill(&mut batch)? {
            assert!(!batch.is_empty());
            out.extend_from_slice(batch.seq());
        }
        let account = source.account();
        assert_eq!((account.received, account.filtered), (n, n - out.len() as u64));
        Ok(out)
    }

    #[test]
    fn batches_without_a_match_are_passed_over() {
        let Some(filter) = filter("ether[0] = 7") else { return };
        let mut frames = vec![&[1u8; 14][..]; 3 * BATCH];
        frames[2 * BATCH + 5] = &[7; 14];
        let found = kept(LinkType::ETHERNET, &frames, filter.clone()).unwrap();
        assert_eq!(found, [2 * BATCH as u64 + 5]);
        assert_eq!(kept(LinkType::ETHERNET, &[], filter).unwrap(), []);
    }

    #[test]
    fn bsd_loopback_of_either_byte_order() {
        let Some(filter) = filter("ip6") else { return };
        // 24, 28 and 30 are IPv6 on one BSD or another, 2 is IPv4.
        let frames: Vec<[u8; 44]> = [[24, 0, 0, 0], [0, 0, 0, 28], [30, 0, 0, 0], [0, 0, 0, 2]]
            .map(|family| std::array::from_fn(|i| *family.get(i).unwrap_or(&0x60)))
            .to_vec();
        let frames: Vec<&[u8]> = frames.iter().map(|f| &f[..]).collect();
        assert_eq!(kept(LinkType::NULL, &frames, filter).unwrap(), [0, 1, 2]);
    }

    #[test]
    fn an_expression_that_makes_no_sense_on_a_link_type_ends_the_source() {
        // Good on some link type, so it is accepted; only Ethernet frames tell that it is not.
        let Some(filter) = filter("inbound") else { return };
        let source = MemorySource::new(LinkType::ETHERNET, [(0, 60, vec![0; 60])]);
        let mut source = Filtered::new(source, "x.pcap", filter);
        let mut batch = FrameBatch::new();
        let error = source.fill(&mut batch).unwrap_err();
        assert!(error.to_string().starts_with("x.pcap: capture filter 'inbound': "), "{error}");
        assert!(batch.is_empty() && !source.fill(&mut batch).unwrap());
        assert_eq!(source.account().received, 0);
    }

    #[test]
    fn a_link_type_on_which_nothing_can_match_is_passed_over() {
        let Some(filter) = filter("arp") else { return };
        let ip: &[u8] = &[0x45; 20];
        assert_eq!(kept(LinkType::RAW, &[ip, ip], filter.clone()).unwrap(), []);
        let arp: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 6, 0, 1];
        assert_eq!(kept(LinkType::ETHERNET, &[ip, arp], filter).unwrap(), [1]);
    }

    #[test]
    fn a_missing_libpcap_says_what_to_install() {
        let error = FilterError::Library("libpcap.so: cannot open".to_owned());
        assert_eq!(
            error.to_string(),
            "capture filters need libpcap, which could not be loaded (libpcap.so: cannot open); \
             install it: apt-get install libpcap0.8"
        );
    }
}
