//! Names of columns as other tools have them.
//!
//! A profile renames the columns that it has a name for, by the table below, and leaves all others
//! as they are. Names change, values do not: what a query adds up as `bytes` is what it adds up.
//! Two columns that would get one name are refused before anything is written.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use weir_base::address::is_v4;
use weir_engine::rows::{Output, Rows, Sink};
use weir_packet::bits::Bits;
use weir_plan::{Column, Schema, Type};

/// The program whose names columns have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Names {
    /// Weir's own.
    #[default]
    Native,
    /// The names of Zeek's logs.
    Zeek,
    /// The names of Suricata's EVE records, nested ones with dots.
    Eve,
    /// The Elastic Common Schema.
    Ecs,
    /// The information elements of IPFIX (IANA). Addresses of both versions have a column each.
    Ipfix,
}

/// A column that has other names elsewhere.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its name here.
    pub native: &'static str,
    /// Only a column of this type is meant.
    pub ty: Type,
    /// Whether it is of one direction, and meant only beside `ip.src`.
    pub directed: bool,
    /// Its names in Zeek, EVE, ECS and IPFIX; empty for none.
    pub names: [&'static str; 4],
}

impl Known {
    /// Its name in a profile, if it has one.
    pub(crate) fn name_in(&self, names: Names) -> Option<&'static str> {
        let at = match names {
            Names::Native => return None,
            Names::Zeek => 0,
            Names::Eve => 1,
            Names::Ecs => 2,
            Names::Ipfix => 3,
        };
        Some(self.names[at]).filter(|name| !name.is_empty())
    }
}

const fn known(native: &'static str, ty: Type, names: [&'static str; 4]) -> Known {
    Known { native, ty, directed: false, names }
}

const fn directed(native: &'static str, names: [&'static str; 4]) -> Known {
    Known { native, ty: Type::Int, directed: true, names }
}

/// All columns that have other names elsewhere; of several lines for one name the first that fits
/// counts.
#[rustfmt::skip]
pub const KNOWN: &[Known] = &[
    known("ts", Type::Time, ["ts", "timestamp", "@timestamp", "observationTimeNanoseconds"]),
    known("first", Type::Time, ["ts", "flow.start", "event.start", "flowStartNanoseconds"]),
    known("last", Type::Time, ["", "flow.end", "event.end", "flowEndNanoseconds"]),
    known("duration", Type::Duration, ["duration", "flow.age", "", ""]),
    known("community_id", Type::Str, ["community_id", "community_id", "network.community_id", ""]),
    known("ip.src", Type::Ip, ["id.orig_h", "src_ip", "source.ip", "sourceIPv4Address"]),
    known("sport", Type::Int, ["id.orig_p", "src_port", "source.port", "sourceTransportPort"]),
    known("ip.dst", Type::Ip, ["id.resp_h", "dest_ip", "destination.ip", "destinationIPv4Address"]),
    known("dport", Type::Int,
        ["id.resp_p", "dest_port", "destination.port", "destinationTransportPort"]),
    known("ip.proto", Type::Int,
        ["ip_proto", "proto", "network.iana_number", "protocolIdentifier"]),
    directed("packets", ["orig_pkts", "flow.pkts_toserver", "source.packets", "packetDeltaCount"]),
    directed("bytes", ["orig_ip_bytes", "flow.bytes_toserver", "source.bytes", "octetDeltaCount"]),
    directed("reverse_packets", ["resp_pkts", "flow.pkts_toclient", "destination.packets", ""]),
    directed("reverse_bytes", ["resp_ip_bytes", "flow.bytes_toclient", "destination.bytes", ""]),
    known("service", Type::Str, ["service", "app_proto", "network.protocol", ""]),
    known("packets", Type::Int, ["", "", "network.packets", "packetDeltaCount"]),
    known("bytes", Type::Int, ["", "", "network.bytes", "octetDeltaCount"]),
    known("tcp.flags", Type::Int, ["", "", "", "tcpControlBits"]),
    known("flags", Type::Int, ["", "", "", "tcpControlBits"]),
    known("ip.ttl", Type::Int, ["", "", "", "ipTTL"]),
    known("ip.dscp", Type::Int, ["", "", "", "ipDiffServCodePoint"]),
    known("ip.version", Type::Int, ["", "ip_v", "", "ipVersion"]),
    known("ipv6.flow_label", Type::Int, ["", "", "", "flowLabelIPv6"]),
    known("eth.src", Type::Mac,
        ["orig_l2_addr", "ether.src_mac", "source.mac", "sourceMacAddress"]),
    known("eth.dst", Type::Mac,
        ["resp_l2_addr", "ether.dest_mac", "destination.mac", "destinationMacAddress"]),
    known("vlan.id", Type::Int, ["vlan", "vlan", "network.vlan.id", "dot1qVlanId"]),
    known("vlan.inner", Type::Int,
        ["inner_vlan", "", "network.inner.vlan.id", "dot1qCustomerVlanId"]),
    known("dns.id", Type::Int, ["trans_id", "dns.id", "dns.id", ""]),
    known("dns.qname", Type::Str, ["query", "dns.rrname", "dns.question.name", "dnsName"]),
    known("dns.qtype", Type::Int, ["qtype", "", "", "dnsQueryType"]),
    known("dns.qclass", Type::Int, ["qclass", "", "", "dnsClass"]),
    known("dns.rcode", Type::Int, ["rcode", "", "", ""]),
    known("tls.sni", Type::Str, ["server_name", "tls.sni", "tls.client.server_name", ""]),
    known("http.method", Type::Str,
        ["method", "http.http_method", "http.request.method", "httpRequestMethod"]),
    known("http.host", Type::Str, ["host", "http.hostname", "url.domain", "httpRequestHost"]),
    known("http.uri", Type::Str, ["uri", "http.url", "url.original", "httpRequestTarget"]),
    known("http.user_agent", Type::Str,
        ["user_agent", "http.http_user_agent", "user_agent.original", "httpUserAgent"]),
    known("http.status", Type::Int,
        ["status_code", "http.status", "http.response.status_code", "httpStatusCode"]),
];

/// Two columns that would have one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clash {
    /// The name.
    pub name: String,
    /// Their names here.
    pub columns: [String; 2],
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = &self.columns;
        write!(f, "`{a}` and `{b}` would both be called `{}`", self.name)
    }
}

impl std::error::Error for Clash {}

/// A column as a profile has it.
#[derive(Debug)]
struct Renamed {
    name: String,
    /// The column that it is.
    from: usize,
    /// Only its addresses of IPv6, or only others.
    six: Option<bool>,
}

impl Names {
    /// The name of a column in this profile, if it has one.
    pub(crate) fn of(self, column: &Column, beside_source: bool) -> Option<&'static str> {
        let fits = |k: &&Known| {
            k.native == column.name && k.ty == column.ty && (beside_source || !k.directed)
        };
        KNOWN.iter().find(fits)?.name_in(self)
    }

    fn renamed(self, schema: &Schema) -> Vec<Renamed> {
        let beside_source = schema.position("ip.src").is_some();
        let mut out = Vec::new();
        for (from, column) in schema.columns.iter().enumerate() {
            let name = self.of(column, beside_source);
            let renamed = |name: &str, six| Renamed { name: name.to_owned(), from, six };
            match name {
                Some(name) if self == Names::Ipfix && column.ty == Type::Ip => {
                    out.push(renamed(name, Some(false)));
                    out.push(renamed(&name.replace("IPv4", "IPv6"), Some(true)));
                }
                name => out.push(renamed(name.unwrap_or(&column.name), None)),
            }
        }
        out
    }

    /// Sees whether the columns of all outputs keep names of their own.
    ///
    /// # Errors
    /// The first two columns that do not.
    pub fn check(self, outputs: &[Output]) -> Result<(), Clash> {
        for output in outputs {
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            for column in self.renamed(&output.schema) {
                if let Some(other) = seen.insert(column.name.clone(), column.from) {
                    let native = |i: usize| output.schema.columns[i].name.clone();
                    let columns = [native(other), native(column.from)];
                    return Err(Clash { name: column.name, columns });
                }
            }
        }
        Ok(())
    }
}

/// A sink whose columns have the names of a profile.
pub struct Named<'a> {
    names: Names,
    sink: Box<dyn Sink + 'a>,
    /// Of each output how its rows are made anew, where columns are taken apart.
    outputs: Vec<Option<Apart>>,
}

/// Rows with addresses of both versions in a column each.
#[derive(Debug)]
struct Apart {
    columns: Vec<Renamed>,
    rows: Rows,
}

impl<'a> Named<'a> {
    /// Hands rows on to `sink`.
    pub fn new(names: Names, sink: Box<dyn Sink + 'a>) -> Named<'a> {
        Named { names, sink, outputs: Vec::new() }
    }
}

impl Sink for Named<'_> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let refused = |clash| io::Error::new(io::ErrorKind::InvalidInput, clash);
        self.names.check(outputs).map_err(refused)?;
        self.outputs.clear();
        let mut named = Vec::new();
        for output in outputs {
            let columns = self.names.renamed(&output.schema);
            let ty = |c: &Renamed| output.schema.columns[c.from].ty.clone();
            let column = |c: &Renamed| Column { name: c.name.clone(), ty: ty(c) };
            let schema = Schema { columns: columns.iter().map(column).collect() };
            let is_key = |(_, c): &(usize, &Renamed)| output.keys.contains(&c.from);
            let keys = columns.iter().enumerate().filter(is_key).map(|(at, _)| at).collect();
            let rows = Rows::new(&schema);
            let apart = columns.iter().any(|c| c.six.is_some());
            self.outputs.push(apart.then_some(Apart { columns, rows }));
            // The columns that the output has before say what it asks for.
            named.push(Output {
                name: output.name.clone(),
                schema,
                keys,
                capture: None,
                metrics: Vec::new(),
            });
        }
        self.sink.open(&named)
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        match &mut self.outputs[output] {
            None => self.sink.rows(output, rows),
            Some(apart) => {
                apart.take(rows);
                self.sink.rows(output, &apart.rows)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.sink.finish()
    }

    fn refused(&self) -> u64 {
        self.sink.refused()
    }

    fn unwritten(&self) -> u64 {
        self.sink.unwritten()
    }
}

impl Apart {
    fn take(&mut self, from: &Rows) {
        let Apart { columns, rows } = self;
        rows.len = from.len;
        rows.order.clone_from(&from.order);
        rows.clock.clone_from(&from.clock);
        rows.arena.truncate(0);
        for (column, to) in columns.iter().zip(&mut rows.columns) {
            let values = &from.columns[column.from];
            to.copy_first(values, from.len);
            if let Some(six) = column.six {
                let (hi, lo) = values.pair();
                to.present =
                    to.present.and(Bits::from_fn(from.len, |i| is_v4(hi[i], lo[i]) != six));
            }
        }
        for &c in &rows.texts {
            let present = rows.columns[c].present;
            let handles = rows.columns[c].word_mut();
            present.each(|i| handles[i] = rows.arena.put(from.arena.get(handles[i])));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{output, rows};
    use crate::{JsonLines, TimeFormat};
    use weir_packet::fields;
    use weir_plan::Value;

    const FLOW: &[(&str, Type)] = &[
        ("ip.src", Type::Ip),
        ("sport", Type::Int),
        ("ip.dst", Type::Ip),
        ("note", Type::Str),
        ("packets", Type::Int),
        ("bytes", Type::Bytes),
    ];

    fn names(names: Names, columns: &[(&str, Type)]) -> String {
        let renamed = names.renamed(&output(None, columns).schema);
        renamed.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn columns_get_the_names_of_the_profile() {
        assert_eq!(names(Names::Native, FLOW), "ip.src sport ip.dst note packets bytes");
        assert_eq!(names(Names::Zeek, FLOW), "id.orig_h id.orig_p id.resp_h note orig_pkts bytes");
        assert_eq!(
            names(Names::Eve, FLOW),
            "src_ip src_port dest_ip note flow.pkts_toserver bytes"
        );
        assert_eq!(
            names(Names::Ecs, FLOW),
            "source.ip source.port destination.ip note source.packets bytes"
        );
        assert_eq!(
            names(Names::Ipfix, FLOW),
            "sourceIPv4Address sourceIPv6Address sourceTransportPort destinationIPv4Address \
             destinationIPv6Address note packetDeltaCount bytes"
        );
    }

    #[test]
    fn without_a_source_there_is_no_direction() {
        let total = &[("packets", Type::Int), ("bytes", Type::Int)];
        assert_eq!(names(Names::Zeek, total), "packets bytes");
        assert_eq!(names(Names::Ecs, total), "network.packets network.bytes");
    }

    #[test]
    fn two_columns_of_one_name_are_refused() {
        let both = output(None, &[("ts", Type::Time), ("first", Type::Time)]);
        let clash = Names::Zeek.check(std::slice::from_ref(&both)).expect_err("a clash");
        assert_eq!(clash.to_string(), "`ts` and `first` would both be called `ts`");
        assert!(Names::Eve.check(std::slice::from_ref(&both)).is_ok());
        let taken = output(None, &[("ip.src", Type::Ip), ("src_ip", Type::Str)]);
        assert!(Names::Eve.check(std::slice::from_ref(&taken)).is_err());
        let json = JsonLines::new(Vec::new(), TimeFormat::Epoch);
        let mut sink = Named::new(Names::Eve, Box::new(json));
        assert_eq!(sink.open(&[taken]).expect_err("a clash").kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn ipfix_has_a_column_for_each_version() {
        let output = output(None, FLOW);
        let ip = |s: &str| Value::ip(s.parse().expect("an address"));
        let row = |a, b, note: &str| {
            let note = Value::Str(note.into());
            vec![ip(a), Value::Int(1), ip(b), note, Value::Int(i64::MAX), Value::Absent]
        };
        let batch = rows(&output, &[row("10.0.0.1", "::1", "one"), row("::2", "10.0.0.2", "two")]);
        let mut text = Vec::new();
        let json = JsonLines::new(&mut text, TimeFormat::Epoch);
        let mut sink = Named::new(Names::Ipfix, Box::new(json));
        sink.open(std::slice::from_ref(&output)).expect("opens");
        sink.rows(0, &batch).expect("writes");
        sink.rows(0, &batch).expect("writes again");
        sink.finish().expect("finishes");
        drop(sink);
        let text = String::from_utf8(text).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], lines[2]);
        assert_eq!(
            lines[0],
            "{\"sourceIPv4Address\":\"10.0.0.1\",\"sourceIPv6Address\":null,\
             \"sourceTransportPort\":1,\"destinationIPv4Address\":null,\
             \"destinationIPv6Address\":\"::1\",\"note\":\"one\",\
             \"packetDeltaCount\":9223372036854775807,\"bytes\":null}"
        );
        assert!(lines[1].contains("\"sourceIPv6Address\":\"::2\"") && lines[1].contains("two"));
    }

    /// A sink that notes the times of rows, as IPFIX takes its time of export from them.
    #[derive(Clone, Default)]
    struct Clocks(std::rc::Rc<std::cell::RefCell<Vec<i64>>>);

    impl Sink for Clocks {
        fn open(&mut self, _outputs: &[Output]) -> io::Result<()> {
            Ok(())
        }

        fn rows(&mut self, _output: usize, rows: &Rows) -> io::Result<()> {
            self.0.borrow_mut().extend(&rows.clock);
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn finish(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn rows_keep_their_times() {
        let output = output(None, &[("ip.src", Type::Ip)]);
        let mut batch = rows(&output, &[vec![Value::Absent], vec![Value::Absent]]);
        let clocks = Clocks::default();
        let mut sink = Named::new(Names::Ipfix, Box::new(clocks.clone()));
        sink.open(std::slice::from_ref(&output)).expect("opens");
        for clock in [[5, i64::MAX], [i64::MIN, 0]] {
            batch.clock = clock.to_vec();
            sink.rows(0, &batch).expect("takes them");
        }
        assert_eq!(*clocks.0.borrow(), [5, i64::MAX, i64::MIN, 0]);
    }

    #[test]
    fn fields_in_the_table_have_their_types() {
        for known in KNOWN {
            if let Some(id) = fields::by_name(known.native) {
                assert_eq!(Type::from(id.info().ty), known.ty, "{}", known.native);
            }
        }
    }
}
