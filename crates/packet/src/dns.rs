//! DNS messages (RFC 1035; mDNS, RFC 6762; LLMNR, RFC 4795).
//!
//! ```text
//!  0               8               16              24            31
//! +-------------------------------+-+-------+-+-+-+-+-----+-------+
//! |               id              |Q| opcode|A|T|R|R|  Z  | rcode |
//! +-------------------------------+-+-------+-+-+-+-+-----+-------+
//! |           questions           |            answers            |
//! +-------------------------------+-------------------------------+
//! |       authority records       |       additional records      |
//! +-------------------------------+-------------------------------+
//! | questions, answers, authority records, additional records …
//! ```
//!
//! [`Dns::new`] is the one call that can fail: it asks for the header. Names and records are read
//! as far as they go. A name may point to another place of the message (compression, section
//! 4.1.4). That should be an earlier one, but senders exist that point ahead; resolvers and other
//! analysers follow, and so does this. A bound on pointers and the longest name end any loop.

mod data;

use crate::limits::NAME_POINTERS_MAX;
use crate::text::Text;
use weir_base::address::number;

/// The ports of DNS, mDNS and LLMNR.
pub const PORTS: [u16; 3] = [53, 5353, 5355];

/// Offset of the identifier.
pub const ID: usize = 0;
/// Offset of the flags, the operation and the response code.
pub const FLAGS: usize = 2;
/// Offset of the first of the four counts.
pub const COUNTS: usize = 4;
/// Bytes of the header.
pub const HEADER_LEN: usize = 12;
/// Bytes of the shortest question: the root's name, a type and a class.
const QUESTION_MIN: usize = 5;

/// The flag of responses.
pub const QR: u16 = 0x8000;
/// The answer is authoritative.
pub const AA: u16 = 0x0400;
/// The message is truncated.
pub const TC: u16 = 0x0200;
/// Recursion is desired.
pub const RD: u16 = 0x0100;
/// Recursion is available.
pub const RA: u16 = 0x0080;

/// The type of records that hold an IPv4 address.
pub const A: u16 = 1;
/// The type of records that hold an IPv6 address (RFC 3596).
pub const AAAA: u16 = 28;

/// Bytes of the longest name, with the lengths of its labels (section 3.1).
pub const NAME_MAX: usize = 255;
/// Bytes of the longest label.
const LABEL_MAX: u8 = 63;
/// The two bits that mark a pointer.
const POINTER: u8 = 0xc0;
/// The largest operation that is assigned (6, RFC 8490).
const OPCODE_MAX: u8 = 6;

/// A DNS message, as much of it as was captured.
#[derive(Clone, Copy, Debug)]
pub struct Dns<'a> {
    header: &'a [u8; HEADER_LEN],
    message: &'a [u8],
}

impl<'a> Dns<'a> {
    /// A view of `message`, the payload of a datagram; `None` if it is shorter than a header.
    pub fn new(message: &'a [u8]) -> Option<Dns<'a>> {
        Some(Dns { header: message.first_chunk()?, message })
    }

    /// A view of the message at the start of a TCP segment with `sent` bytes of payload on the
    /// wire: its length stands in two bytes before it (section 4.2.2). Segments are not put
    /// together: `None` unless the whole message is in this one, and looks like one.
    pub fn in_segment(payload: &'a [u8], sent: usize) -> Option<Dns<'a>> {
        let (&length, rest) = payload.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes(length));
        let dns = Dns::new(&rest[..length.min(rest.len())])?;
        // A payload that continues the message of another segment would be taken for a length and a
        // header.
        let likely = dns.opcode() <= OPCODE_MAX && dns.counts()[0] <= 1;
        (likely && 2 + length <= sent).then_some(dns)
    }

    /// Identifier: a response has that of its query.
    pub fn id(&self) -> u16 {
        self.word(ID)
    }

    /// All flags, with the operation and the response code: [`QR`] and so on.
    pub fn flags(&self) -> u16 {
        self.word(FLAGS)
    }

    /// Operation: 0 for a query.
    pub fn opcode(&self) -> u8 {
        (self.flags() >> 11 & 15) as u8
    }

    /// Response code; its upper bits in EDNS are not in it.
    pub fn rcode(&self) -> u8 {
        (self.flags() & 15) as u8
    }

    /// How many questions, answers, authority records and additional records there should be.
    pub fn counts(&self) -> [u16; 4] {
        [0, 2, 4, 6].map(|at| self.word(COUNTS + at))
    }

    /// The first question, if it is all there.
    pub fn question(&self) -> Option<Question<'a>> {
        (self.counts()[0] > 0).then(|| self.question_at(HEADER_LEN))?.map(|(question, _)| question)
    }

    /// How many questions may follow the first, if that is all there: as many as the header tells,
    /// but no more than there is room for in what was captured.
    pub(crate) fn further_questions(&self) -> usize {
        let told = usize::from(self.counts()[0]).saturating_sub(1);
        let first = self.question_at(HEADER_LEN);
        first.map_or(0, |(_, end)| told.min((self.message.len() - end) / QUESTION_MIN))
    }

    /// Whether all questions and records that the header tells are there; bytes may follow them.
    pub(crate) fn is_whole(&self) -> bool {
        let [_, records @ ..] = self.counts();
        let told: u32 = records.into_iter().map(u32::from).sum();
        let start = self.questions_end();
        let records = Records { message: self.message, at: start, left: told };
        start.is_some() && records.count() == told as usize
    }

    /// The answers, as far as they go.
    pub fn answers(&self) -> Records<'a> {
        let answers = self.counts()[1].into();
        Records { message: self.message, at: self.questions_end(), left: answers }
    }

    /// Where the last question ends, if all are there.
    fn questions_end(&self) -> Option<usize> {
        let questions = self.counts()[0];
        (0..questions).try_fold(HEADER_LEN, |at, _| Some(self.question_at(at)?.1))
    }

    /// The question at a place, and where it ends.
    fn question_at(&self, at: usize) -> Option<(Question<'a>, usize)> {
        let name = Name { message: self.message, at };
        let end = name.end()?;
        let &[a, b, c, d] = self.message.get(end..)?.first_chunk()?;
        let (kind, class) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Some((Question { name, kind, class }, end + 4))
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.header[at], self.header[at + 1]])
    }
}

/// A question of a message.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The name.
    pub name: Name<'a>,
    /// The type of records.
    pub kind: u16,
    /// Their class, as sent.
    pub class: u16,
}

/// Records, one after the other; they end where the message does, or where one is no good.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    message: &'a [u8],
    at: Option<usize>,
    left: u32,
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The owner.
    pub name: Name<'a>,
    /// Its type.
    pub kind: u16,
    /// Its class, as sent.
    pub class: u16,
    /// How long it may be kept, in seconds.
    pub ttl: u32,
    /// Its data; names in it may point into the message.
    pub data: &'a [u8],
    /// Where the data stands in the message.
    at: usize,
}

impl Record<'_> {
    /// The number of the address that it holds, as in [`weir_base::address`].
    pub fn address(&self) -> Option<u128> {
        match self.kind {
            A => <[u8; 4]>::try_from(self.data).ok().map(|four| number(four.into())),
            AAAA => <[u8; 16]>::try_from(self.data).ok().map(|six| number(six.into())),
            _ => None,
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        self.left = self.left.checked_sub(1)?;
        let name = Name { message: self.message, at: self.at.take()? };
        let start = name.end()?;
        let &[a, b, c, d, e, f, g, h, i, j] = self.message.get(start..)?.first_chunk()?;
        let (from, length) = (start + 10, usize::from(u16::from_be_bytes([i, j])));
        let data = self.message.get(from..from + length)?;
        self.at = Some(from + length);
        Some(Record {
            name,
            kind: u16::from_be_bytes([a, b]),
            class: u16::from_be_bytes([c, d]),
            ttl: u32::from_be_bytes([e, f, g, h]),
            data,
            at: from,
        })
    }
}

/// A name somewhere in a message.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Name<'a> {
    /// Where it ends in its place: behind its last label, or behind a pointer.
    fn end(&self) -> Option<usize> {
        let mut at = self.at;
        loop {
            match *self.message.get(at)? {
                0 => return Some(at + 1),
                length @ 1..=LABEL_MAX => at += 1 + usize::from(length),
                length if length & POINTER == POINTER => {
                    return (at + 2 <= self.message.len()).then_some(at + 2);
                }
                _ => return None,
            }
            if at - self.at >= NAME_MAX {
                return None;
            }
        }
    }

    /// Its labels, from the first to the last before the root.
    pub fn labels(&self) -> Labels<'a> {
        let (message, at) = (self.message, self.at);
        Labels { message, at, pointers_left: NAME_POINTERS_MAX, left: NAME_MAX }
    }

    /// Writes it out: in lower case, as names are the same in either, without a dot at the end,
    /// the root as `.`. A dot or backslash in a label stands behind a backslash, other bytes than
    /// printable ASCII as `\DDD` (section 5.1). Returns whether it was whole.
    pub fn write(&self, text: &mut Text) -> bool {
        let start = text.bytes().len();
        for label in self.labels() {
            let Ok(label) = label else { return false };
            if text.bytes().len() > start && !text.push(b".") {
                return false;
            }
            if !label.iter().all(|&byte| push(byte, text)) {
                return false;
            }
        }
        text.lower_from(start);
        text.bytes().len() > start || text.push(b".")
    }
}

fn push(byte: u8, text: &mut Text) -> bool {
    match byte {
        b'.' | b'\\' => text.push(&[b'\\', byte]),
        b'!'..=b'~' => text.push(&[byte]),
        _ => {
            let [a, b, c] = [byte / 100, byte / 10 % 10, byte % 10].map(|digit| b'0' + digit);
            text.push(&[b'\\', a, b, c])
        }
    }
}

/// A name that is cut, too long, or follows too many pointers, as one that points in a circle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadName;

/// The labels of a name. An error is the last item.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    message: &'a [u8],
    at: usize,
    /// Pointers that the name may still follow.
    pointers_left: usize,
    /// Bytes that the name may still take; 0 once it has ended.
    left: usize,
}

impl<'a> Labels<'a> {
    /// The next label, if there is one and it is good.
    fn step(&mut self) -> Result<Option<&'a [u8]>, BadName> {
        loop {
            match *self.message.get(self.at).ok_or(BadName)? {
                0 => return Ok(None),
                length @ 1..=LABEL_MAX => {
                    let (start, taken) = (self.at + 1, 1 + usize::from(length));
                    self.at += taken;
                    // The root takes a byte too.
                    self.left = self.left.checked_sub(taken).filter(|&n| n > 0).ok_or(BadName)?;
                    return self.message.get(start..self.at).map(Some).ok_or(BadName);
                }
                high if high & POINTER == POINTER => {
                    let low = *self.message.get(self.at + 1).ok_or(BadName)?;
                    self.at = usize::from(u16::from_be_bytes([high & !POINTER, low]));
                    self.pointers_left = self.pointers_left.checked_sub(1).ok_or(BadName)?;
                }
                _ => return Err(BadName),
            }
        }
    }
}

impl<'a> Iterator for Labels<'a> {
    type Item = Result<&'a [u8], BadName>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let next = self.step().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.left = 0;
        }
        next
    }
}

/// Any bytes as a message: everything in it comes to an end, and names are of bounded length.
/// Panics where that is not so.
#[cfg(any(test, fuzzing))]
pub fn fuzz_dns(bytes: &[u8]) {
    let Some(dns) = Dns::new(bytes) else {
        assert!(bytes.len() < HEADER_LEN);
        return;
    };
    let mut text = Text::new();
    let mut check = |name: Name<'_>| {
        let taken: usize = name.labels().flatten().map(|label| 1 + label.len()).sum();
        assert!(taken < NAME_MAX && name.labels().count() <= NAME_MAX / 2 + 1);
        text.clear();
        assert_eq!(name.write(&mut text), name.labels().all(|label| label.is_ok()));
        assert!(text.bytes().iter().all(|byte| matches!(byte, b'!'..=b'~')));
    };
    if let Some(question) = dns.question() {
        check(question.name);
    }
    let mut held = 0;
    for record in dns.answers() {
        check(record.name);
        let mut data = Text::new();
        record.write_data(&mut data);
        assert!(data.bytes().iter().all(|byte| matches!(byte, b' '..=b'~')));
        held += 11 + record.data.len();
        assert!(record.address().is_none() || matches!(record.data.len(), 4 | 16));
    }
    assert!(held + HEADER_LEN <= bytes.len());
    assert!(dns.answers().count() <= usize::from(dns.counts()[1]));
    let questions = usize::from(dns.question().is_some()) + dns.further_questions();
    assert!(questions * QUESTION_MIN + HEADER_LEN <= bytes.len());
    assert!(questions <= usize::from(dns.counts()[0]));
    let there = |n: u16, counted: usize| !dns.is_whole() || usize::from(n) == counted;
    assert!(there(dns.counts()[1], dns.answers().count()));
    // Labels from any place, which only pointers lead to.
    for at in 0..bytes.len().min(64) {
        let _ = Name { message: bytes, at }.labels().count();
    }
    if let Some(dns) = Dns::in_segment(bytes, bytes.len()) {
        assert!(dns.message.len() + 2 <= bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::messages::{dns_query, dns_response};
    use proptest::prelude::*;

    fn name(message: &[u8], at: usize) -> Option<String> {
        let mut text = Text::new();
        let whole = Name { message, at }.write(&mut text);
        whole.then(|| String::from_utf8(text.bytes().to_vec()).unwrap())
    }

    #[test]
    fn reads_a_query() {
        let message = dns_query(7, "www.Example.ORG", AAAA);
        let dns = Dns::new(&message).unwrap();
        assert_eq!((dns.id(), dns.flags(), dns.opcode(), dns.rcode()), (7, RD, 0, 0));
        assert_eq!(dns.counts(), [1, 0, 0, 0]);
        let question = dns.question().unwrap();
        assert_eq!((question.kind, question.class), (AAAA, 1));
        assert_eq!(name(&message, HEADER_LEN).unwrap(), "www.example.org");
        assert_eq!(dns.answers().count(), 0);
    }

    #[test]
    fn reads_answers_behind_compressed_names() {
        let message = dns_response(7, "a.example", A, 0, &[&[192, 0, 2, 9], &[192, 0, 2, 8]]);
        let dns = Dns::new(&message).unwrap();
        assert_eq!(dns.flags() & (QR | RA), QR | RA);
        let answers: Vec<_> = dns.answers().collect();
        assert_eq!(answers.len(), 2);
        assert_eq!(answers[0].address(), Some(0xffff_c000_0209));
        assert_eq!((answers[1].ttl, answers[1].kind, answers[1].class), (300, A, 1));
        let mut text = Text::new();
        assert!(answers[1].name.write(&mut text));
        assert_eq!(text.bytes(), b"a.example");
    }

    #[test]
    fn odd_names_are_escaped() {
        assert_eq!(name(b"\x04a.\\b\x02\x00\xff\x00", 0).unwrap(), r"a\.\\b.\000\255");
        assert_eq!(name(b"\x03a b\x00", 0).unwrap(), r"a\032b");
        assert_eq!(name(b"\x00", 0).unwrap(), ".");
    }

    #[test]
    fn a_name_behind_a_pointer_forward_is_read() {
        assert_eq!(name(b"\x01a\x00\x01b\xc0\x00", 3).unwrap(), "b.a");
        assert_eq!(name(b"\xc0\x02\x01a\x00", 0).unwrap(), "a");
        let query = [&dns_query(7, "", A)[..HEADER_LEN], b"\xc0\x12\x00\x01\x00\x01\x01x\x00"];
        let query = query.concat();
        let question = Dns::new(&query).unwrap().question().unwrap();
        let mut text = Text::new();
        assert!(question.name.write(&mut text));
        assert_eq!((text.bytes(), question.kind), (&b"x"[..], A));
    }

    #[test]
    fn pointers_that_never_end_make_no_name() {
        // To itself, to its own label, and round and round.
        assert_eq!(name(b"\xc0\x00", 0), None);
        assert_eq!(name(b"\x01a\xc0\x00", 0), None);
        assert_eq!(name(b"\x01a\xc0\x04\x01b\xc0\x00", 4), None);
        assert_eq!(name(b"\xc0\x02\xc0\x00", 0), None);
        // As many pointers as there may be, and one more.
        let chain = |n: usize| {
            let pointers = (1..=n).flat_map(|i| [0xc0 | ((i * 2) >> 8) as u8, (i * 2) as u8]);
            name(&pointers.chain(*b"\x01a\x00").collect::<Vec<_>>(), 0)
        };
        assert_eq!(chain(NAME_POINTERS_MAX).unwrap(), "a");
        assert_eq!(chain(NAME_POINTERS_MAX + 1), None);
        // Cut, and bits that are not assigned.
        assert_eq!(name(b"\x03ab", 0), None);
        assert_eq!(name(b"\xc0", 0), None);
        assert_eq!(name(b"\x41a\x00", 0), None);
    }

    #[test]
    fn the_longest_name_and_one_more() {
        let label = |n: u8| [&[n][..], &vec![b'x'; n.into()]].concat();
        let of = |last: u8| [label(63), label(63), label(63), label(last), vec![0]].concat();
        assert_eq!(of(61).len(), NAME_MAX);
        assert_eq!(name(&of(61), 0).unwrap().len(), 253);
        assert_eq!(name(&of(62), 0), None);
        // All of it escaped has room too.
        let wild = [&[63][..], &[0; 63]].concat();
        let longest = [&wild[..], &wild, &wild, &[61], &[0; 61], &[0]].concat();
        assert_eq!(name(&longest, 0).unwrap().len(), 250 * 4 + 3);
    }

    #[test]
    fn a_cut_question_is_none() {
        let message = dns_query(7, "example.org", A);
        for n in 0..message.len() {
            let question = Dns::new(&message[..n]).and_then(|dns| dns.question());
            assert!(question.is_none(), "{n}");
        }
    }

    #[test]
    fn a_message_is_whole_by_its_own_counts() {
        let message = dns_response(7, "a.example", A, 0, &[&[192, 0, 2, 9], &[192, 0, 2, 8]]);
        let is_whole = |message: &[u8]| Dns::new(message).is_some_and(|dns| dns.is_whole());
        for n in 0..message.len() {
            assert!(!is_whole(&message[..n]), "{n}");
        }
        assert!(is_whole(&message) && is_whole(&[&message[..], b"more"].concat()));
        // A record of each further section, which is not there.
        for section in [2, 3] {
            let mut more = message.clone();
            more[COUNTS + 2 * section + 1] = 1;
            assert!(!is_whole(&more));
            let root = [&more[..], &[0, 0, 41, 2, 0, 0, 0, 0, 0, 0, 0]].concat();
            assert!(is_whole(&root));
        }
        assert!(is_whole(&[0; HEADER_LEN]), "it tells of nothing");
        assert!(!is_whole(&[0xff; 99]));
    }

    /// A query of 33 bytes that told of 65535 questions was believed.
    #[test]
    fn questions_take_room() {
        let further = |questions: u16, more: usize| {
            let mut message = dns_query(7, "www.example", A);
            message[COUNTS..COUNTS + 2].copy_from_slice(&questions.to_be_bytes());
            message.extend(vec![0; more]);
            Dns::new(&message).unwrap().further_questions()
        };
        assert_eq!([0, 1].map(|questions| further(questions, 99)), [0, 0]);
        assert_eq!([0, 4, 5, 14, 15, 16].map(|more| further(3, more)), [0, 0, 1, 2, 2, 2]);
        assert_eq!([0, 4, 50].map(|more| further(u16::MAX, more)), [0, 0, 10]);
        let cut = &dns_query(7, "www.example", A)[..20];
        assert_eq!(Dns::new(cut).unwrap().further_questions(), 0);
    }

    #[test]
    fn in_tcp_the_length_comes_first() {
        let message = dns_query(7, "example.org", A);
        let n = message.len();
        let segment = [&(n as u16).to_be_bytes()[..], &message, b"more"].concat();
        assert_eq!(Dns::in_segment(&segment, segment.len()).unwrap().message, message);
        assert!(Dns::in_segment(&segment[..n], n).is_none(), "it goes on in another segment");
        let cut = Dns::in_segment(&segment[..n], n + 2).unwrap();
        assert_eq!((cut.id(), cut.question().is_none()), (7, true));
        assert!(Dns::in_segment(&segment[..10], 10).is_none());
    }

    /// A name as RFC 1035 says it, by the longest way: a pointer met twice never ends.
    fn reference(message: &[u8], mut at: usize) -> Option<String> {
        let (mut labels, mut met, mut taken) = (Vec::new(), Vec::new(), 1);
        loop {
            match usize::from(*message.get(at)?) {
                0 => break,
                length @ 1..=63 => {
                    let label = message.get(at + 1..at + 1 + length)?;
                    let shown = |&byte: &u8| match byte {
                        b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_lowercase().to_string(),
                        _ => format!("\\{byte:03}"),
                    };
                    labels.push(label.iter().map(shown).collect::<String>());
                    taken += 1 + length;
                    at += 1 + length;
                }
                high @ 0xc0.. => {
                    let to = (high & 0x3f) << 8 | usize::from(*message.get(at + 1)?);
                    if met.contains(&at) {
                        return None;
                    }
                    met.push(at);
                    at = to;
                }
                _ => return None,
            }
            if taken > NAME_MAX {
                return None;
            }
        }
        Some(if labels.is_empty() { ".".to_owned() } else { labels.join(".") })
    }

    /// Labels of letters, ends, and pointers to anywhere in a short message.
    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let label = "[a-cX-Z]{1,3}".prop_map(|s| [&[s.len() as u8][..], s.as_bytes()].concat());
        let piece = prop_oneof![
            4 => label,
            1 => Just(vec![0]),
            3 => (0u8..33).prop_map(|to| vec![0xc0, to]),
        ];
        proptest::collection::vec(piece, 1..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn names_are_those_of_the_reference(message in pieces()) {
            for at in 0..message.len() {
                prop_assert_eq!(name(&message, at), reference(&message, at), "at {}", at);
            }
        }

        #[test]
        fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            fuzz_dns(&bytes);
        }

        #[test]
        fn mutated_messages_hold(
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let answers: &[&[u8]] = &[&[192, 0, 2, 1], &[192, 0, 2, 2]];
            let mut bytes = dns_response(7, "www.example.org", A, 3, answers);
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            fuzz_dns(&bytes[..cut.index(bytes.len() + 1)]);
        }
    }
}
