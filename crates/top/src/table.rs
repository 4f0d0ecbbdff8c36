//! The tables of the screen, and the columns that they have.

/// A table, chosen by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Table {
    /// Hosts by address, with what they sent and received.
    Hosts,
    /// Pairs of hosts, both directions together.
    Pairs,
    /// Flows: one direction of a connection.
    Flows,
    /// Services: a protocol and the smaller of its two ports.
    Ports,
    /// Protocols of IP, and other types of frames.
    Protocols,
    /// Hosts by the names that DNS answers and TLS or QUIC hellos gave them.
    Names,
    /// Packets by keys that somebody typed.
    Keys,
    /// The rows of a query of the library.
    Query,
}

/// The counts that are made for a table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Data {
    /// By address.
    Hosts,
    /// By pair of addresses.
    Pairs,
    /// By 5-tuple.
    Flows,
    /// By protocol and smaller port.
    Services,
    /// By protocol or type of frame.
    Protocols,
    /// By [`crate::Setup::keys`].
    Keys,
    /// As [`crate::Setup::query`] says.
    Query,
}

impl Table {
    /// All of them, in the order of their numbers.
    pub const ALL: [Table; 8] = [
        Table::Hosts,
        Table::Pairs,
        Table::Flows,
        Table::Ports,
        Table::Protocols,
        Table::Names,
        Table::Keys,
        Table::Query,
    ];

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Table::Hosts => "Hosts",
            Table::Pairs => "Pairs",
            Table::Flows => "Flows",
            Table::Ports => "Ports",
            Table::Protocols => "Protocols",
            Table::Names => "Names",
            Table::Keys => "Keys",
            Table::Query => "Query",
        }
    }

    /// The title of the column of its keys, where these are always the same.
    pub(crate) fn key_title(self) -> &'static str {
        match self {
            Table::Hosts => "HOST",
            Table::Pairs => "PAIR",
            Table::Flows => "FLOW",
            Table::Ports => "SERVICE",
            Table::Protocols => "PROTOCOL",
            Table::Names => "NAME",
            Table::Keys => "KEY",
            Table::Query => "ROW",
        }
    }

    /// The counts that have to be made for it.
    pub fn data(self) -> Data {
        match self {
            Table::Hosts | Table::Names => Data::Hosts,
            Table::Pairs => Data::Pairs,
            Table::Flows => Data::Flows,
            Table::Ports => Data::Services,
            Table::Protocols => Data::Protocols,
            Table::Keys => Data::Keys,
            Table::Query => Data::Query,
        }
    }

    /// The next one, or the one before; the last is followed by the first.
    pub(crate) fn next(self, back: bool) -> Table {
        let n = Table::ALL.len();
        let at = Table::ALL.iter().position(|table| *table == self).unwrap_or(0);
        Table::ALL[(at + if back { n - 1 } else { 1 }) % n]
    }

    /// Its columns after the key, the most important ones first.
    pub(crate) fn columns(self) -> &'static [Column] {
        use Column::{Bytes, BytesReceived, Packets, PacketsRate, Received, Sent, Share};
        match self.data() {
            Data::Hosts => &[Sent, Received, Bytes, BytesReceived, PacketsRate],
            Data::Query => &[],
            _ => &[Sent, Bytes, PacketsRate, Share, Packets],
        }
    }
}

impl Data {
    /// All that can be counted without being told more.
    pub const FIXED: [Data; 5] =
        [Data::Hosts, Data::Pairs, Data::Flows, Data::Services, Data::Protocols];

    /// Whether sent and received are counted apart.
    pub(crate) fn has_directions(self) -> bool {
        self == Data::Hosts
    }

    /// The word that names its programs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Data::Hosts => "hosts",
            Data::Pairs => "pairs",
            Data::Flows => "flows",
            Data::Services => "services",
            Data::Protocols => "protocols",
            Data::Keys => "keys",
            Data::Query => "query",
        }
    }

    /// The keys of its groups, in the query language, where these are always the same.
    pub(crate) fn keys(self, is_received: bool) -> &'static str {
        match self {
            Data::Hosts if is_received => "ip.dst",
            Data::Hosts => "ip.src",
            Data::Pairs => "hosts",
            Data::Flows => "flow",
            Data::Services => "ip.proto, port = min_of(sport, dport)",
            Data::Protocols => "ip.version, ip.proto, type = if(ip, 0, eth.type)",
            Data::Keys | Data::Query => "",
        }
    }
}

/// A column by which rows are sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// Bits by second; of hosts, those sent.
    Sent,
    /// Bits by second received.
    Received,
    /// Packets by second; of hosts, those sent.
    PacketsRate,
    /// The share of all bytes.
    Share,
    /// Bytes so far; of hosts, those sent.
    Bytes,
    /// Bytes received so far.
    BytesReceived,
    /// Packets so far.
    Packets,
}

impl Column {
    /// Its title.
    pub(crate) fn title(self, has_directions: bool) -> &'static str {
        match self {
            Column::Sent if has_directions => "OUT b/s",
            Column::Sent => "bit/s",
            Column::Received => "IN b/s",
            Column::PacketsRate if has_directions => "OUT p/s",
            Column::PacketsRate => "pkt/s",
            Column::Share => "%",
            Column::Bytes if has_directions => "OUT",
            Column::Bytes => "bytes",
            Column::BytesReceived => "IN",
            Column::Packets => "packets",
        }
    }

    /// Its width, with a blank before it.
    pub(crate) fn width(self) -> u16 {
        match self {
            Column::Share => 7,
            _ => 9,
        }
    }
}
