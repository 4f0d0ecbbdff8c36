//! The packets of a row: a list of them, and the fields of one.

use crate::input::step_of;
use crate::queried::QueryRow;
use crossterm::event::KeyCode;
use std::sync::Arc;

/// Packets that were found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FoundPackets {
    /// In the order of the capture.
    pub packets: Vec<FoundPacket>,
    /// Why some may be missing, or some more be among them, a sentence each.
    pub notes: Vec<String>,
    /// The condition that they meet, where the question was another.
    pub condition: Option<String>,
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FoundPacket {
    /// When it was captured: nanoseconds since 1970, UTC.
    pub time: i64,
    /// Bytes on the wire.
    pub length: u64,
    /// The fields that it has, by their names in the catalogue, and their values as rows have them.
    pub fields: Vec<(String, String)>,
}

/// The packets that somebody wants to see.
#[derive(Clone, PartialEq, Debug)]
pub enum PacketsWanted {
    /// Packets that meet a condition.
    Condition(String),
    /// Packets that a row of the query of the library is made of.
    Row {
        /// The number of its output.
        output: usize,
        /// The row.
        row: Arc<QueryRow>,
    },
}

/// Fields whose names stand for the protocol of a packet, the innermost first.
const PROTOCOLS: [&str; 12] =
    ["dns", "tls", "quic", "http", "dhcp", "ntp", "tcp", "udp", "icmp", "icmp6", "arp", "mpls"];

/// Fields that say most about a packet, beside its flags.
const TELLING: [&str; 8] = [
    "dns.qname",
    "tls.sni",
    "quic.sni",
    "http.method",
    "http.uri",
    "http.status",
    "icmp.type",
    "icmp6.type",
];

/// The flags of TCP, as people write them.
const FLAGS: [(&str, &str); 8] = [
    ("tcp.syn", "SYN"),
    ("tcp.ack", "ACK"),
    ("tcp.psh", "PSH"),
    ("tcp.fin", "FIN"),
    ("tcp.rst", "RST"),
    ("tcp.urg", "URG"),
    ("tcp.ece", "ECE"),
    ("tcp.cwr", "CWR"),
];

impl FoundPacket {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Where it comes from, and where it goes.
    pub(crate) fn ends(&self) -> (String, String) {
        let end = |addresses: [&str; 4], port: &str| {
            let address = addresses.iter().find_map(|name| self.field(name)).unwrap_or("?");
            match (self.field(port), address.contains(':')) {
                (None, _) => address.to_owned(),
                (Some(port), true) => format!("[{address}]:{port}"),
                (Some(port), false) => format!("{address}:{port}"),
            }
        };
        (
            end(["ip.src", "arp.sender_ip", "eth.src", "wlan.ta"], "sport"),
            end(["ip.dst", "arp.target_ip", "eth.dst", "wlan.ra"], "dport"),
        )
    }

    /// The innermost protocol that is known.
    pub(crate) fn protocol(&self) -> String {
        let known = PROTOCOLS.iter().find(|name| self.field(name) == Some("true"));
        match (known, self.field("ip.proto"), self.field("eth.type")) {
            (Some(name), _, _) => (*name).to_owned(),
            (None, Some(proto), _) => format!("ip {proto}"),
            (None, None, Some(ethertype)) => format!("eth {ethertype}"),
            (None, None, None) => String::new(),
        }
    }

    /// Its flags and telling fields, in one line.
    pub(crate) fn info(&self) -> String {
        let set = FLAGS.iter().filter(|(name, _)| self.field(name) == Some("true"));
        let flags: Vec<&str> = set.map(|(_, flag)| *flag).collect();
        let telling = TELLING.iter().filter_map(|name| Some((name, self.field(name)?)));
        let telling = telling.map(|(name, value)| match name.ends_with(".type") {
            true => format!("type {value}"),
            false => value.to_owned(),
        });
        let flags = Some(flags.join(",")).filter(|flags| !flags.is_empty());
        flags.into_iter().chain(telling).collect::<Vec<_>>().join(" ")
    }

    /// The same, with texts that a terminal can show.
    fn cleaned(self) -> FoundPacket {
        let both = |(name, value): (String, String)| (crate::clean(&name), crate::clean(&value));
        FoundPacket { fields: self.fields.into_iter().map(both).collect(), ..self }
    }
}

/// How far a search for packets is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PacketsSearch {
    /// It goes on.
    Running,
    /// It could not be made; why.
    Failed(String),
    /// It has ended.
    Done(FoundPackets),
}

/// The effect of a key in the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ListKey {
    /// The list stays, perhaps with another packet chosen.
    Stays,
    /// The packets are written into a file, all of them.
    Saves,
    /// The tables come back.
    Closes,
    /// The screen ends.
    Quits,
}

/// The list of packets.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PacketList {
    /// The row that they are of, cleaned.
    pub(crate) title: String,
    /// Which they are.
    pub(crate) wanted: PacketsWanted,
    pub(crate) search: PacketsSearch,
    /// The result of writing the packets into a file, or that this goes on.
    pub(crate) saving: Option<String>,
    /// The number of the chosen packet.
    pub(crate) chosen: usize,
    /// The number of the first line that is seen, of the packets or of the fields.
    pub(crate) offset: usize,
    /// The number of the first field that is seen, where those of the chosen packet are shown.
    pub(crate) fields: Option<usize>,
}

impl PacketList {
    /// A list whose packets are being looked for.
    pub(crate) fn new(title: String, wanted: PacketsWanted) -> PacketList {
        let search = PacketsSearch::Running;
        PacketList { title, wanted, search, saving: None, chosen: 0, offset: 0, fields: None }
    }

    /// Takes what a search has come to.
    pub(crate) fn found(&mut self, found: Result<FoundPackets, String>) {
        self.search = match found {
            Err(why) => PacketsSearch::Failed(crate::clean(&why)),
            Ok(FoundPackets { packets, notes, condition }) => PacketsSearch::Done(FoundPackets {
                packets: packets.into_iter().map(FoundPacket::cleaned).collect(),
                notes: notes.iter().map(|note| crate::clean(note)).collect(),
                condition: condition.map(|text| crate::clean(&text)),
            }),
        };
    }

    /// The condition that the packets meet, as far as it is known.
    pub(crate) fn condition(&self) -> &str {
        match (&self.wanted, &self.search) {
            (PacketsWanted::Condition(text), _) => text,
            (_, PacketsSearch::Done(found)) => found.condition.as_deref().unwrap_or_default(),
            _ => "",
        }
    }

    /// The packets that are there.
    pub(crate) fn packets(&self) -> &[FoundPacket] {
        match &self.search {
            PacketsSearch::Done(found) => &found.packets,
            _ => &[],
        }
    }

    /// The packet whose fields are shown.
    pub(crate) fn opened(&self) -> Option<&FoundPacket> {
        self.fields.and_then(|_| self.packets().get(self.chosen))
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, code: KeyCode) -> ListKey {
        let by = match code {
            KeyCode::Char('q') => return ListKey::Quits,
            KeyCode::Char('w') => {
                self.saving = Some("saving the packets".to_owned());
                return ListKey::Saves;
            }
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => return self.back(),
            KeyCode::Enter | KeyCode::Right => {
                if self.fields.is_none() && !self.packets().is_empty() {
                    self.fields = Some(0);
                }
                return ListKey::Stays;
            }
            KeyCode::Char('j') => 1,
            KeyCode::Char('k') => -1,
            code => match step_of(code) {
                Some(by) => by,
                None => return ListKey::Stays,
            },
        };
        let packets = self.packets();
        let fields = packets.get(self.chosen).map_or(0, |packet| packet.fields.len());
        let (packets, moved) =
            (packets.len(), |at: usize, n: usize| at.saturating_add_signed(by).min(n.max(1) - 1));
        match &mut self.fields {
            Some(first) => *first = moved(*first, fields),
            None => self.chosen = moved(self.chosen, packets),
        }
        ListKey::Stays
    }

    /// From the fields to the packets, and from there to the tables.
    fn back(&mut self) -> ListKey {
        match self.fields.take() {
            Some(_) => ListKey::Stays,
            None => ListKey::Closes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(fields: &[(&str, &str)]) -> FoundPacket {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        FoundPacket { time: 1_795_240_270_000_001_999, length: 60, fields: fields.collect() }
    }

    #[test]
    fn a_line_says_most() {
        let syn = packet(&[
            ("ip.src", "2001:db8::1"),
            ("ip.dst", "192.0.2.1"),
            ("ip.proto", "6"),
            ("sport", "1025"),
            ("dport", "443"),
            ("tcp", "true"),
            ("tcp.syn", "true"),
            ("tcp.ack", "false"),
            ("tcp.ece", "true"),
        ]);
        assert_eq!(syn.ends(), ("[2001:db8::1]:1025".to_owned(), "192.0.2.1:443".to_owned()));
        assert_eq!((syn.protocol().as_str(), syn.info().as_str()), ("tcp", "SYN,ECE"));
        let ping = packet(&[("icmp", "true"), ("icmp.type", "8"), ("ip.proto", "1")]);
        assert_eq!((ping.protocol().as_str(), ping.info().as_str()), ("icmp", "type 8"));
        assert_eq!(ping.ends(), ("?".to_owned(), "?".to_owned()));
        assert_eq!(packet(&[("ip.proto", "47")]).protocol(), "ip 47");
        assert_eq!(packet(&[("eth.type", "35020")]).protocol(), "eth 35020");
        assert_eq!(packet(&[]).protocol(), "");
    }

    #[test]
    fn keys_go_through_packets_and_fields() {
        let mut list = PacketList::new("a".to_owned(), PacketsWanted::Condition("tcp".to_owned()));
        for code in [KeyCode::Down, KeyCode::End, KeyCode::Enter, KeyCode::Home] {
            assert_eq!(list.key(code), ListKey::Stays);
        }
        assert_eq!((list.chosen, list.fields), (0, None));
        let packets = vec![packet(&[("a", "1\x1b[2J"), ("b", "2"), ("c", "3")]), packet(&[])];
        list.found(Ok(FoundPackets { packets, notes: vec!["x\ny".to_owned()], condition: None }));
        list.key(KeyCode::End);
        assert_eq!(list.chosen, 1);
        list.key(KeyCode::PageUp);
        list.key(KeyCode::Enter);
        assert_eq!(list.opened().map(|p| p.fields[0].1.as_str()), Some("1\u{fffd}[2J"));
        list.key(KeyCode::PageDown);
        assert_eq!((list.chosen, list.fields), (0, Some(2)));
        assert_eq!(list.key(KeyCode::Esc), ListKey::Stays);
        assert_eq!(list.key(KeyCode::Char('q')), ListKey::Quits);
        assert_eq!(list.key(KeyCode::Esc), ListKey::Closes);
        assert_eq!((list.key(KeyCode::Char('w')), list.saving.is_some()), (ListKey::Saves, true));
        list.found(Err("no\tway".to_owned()));
        assert_eq!(list.search, PacketsSearch::Failed("no\u{fffd}way".to_owned()));
    }
}
