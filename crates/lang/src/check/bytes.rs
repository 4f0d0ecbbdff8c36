//! Bytes of a header by their place: `tcp[13]`, `payload[0:4]`.

use super::Checker;
use super::words::a;
use crate::diagnostic::{Code, Diagnostic};
use crate::names::Scope;
use crate::suggest;
use crate::tree::{Expr as TreeExpr, Name};
use weir_packet::fields::{FieldId, Header, HeaderBytes};
use weir_packet::limits::HEADER_BYTES_MAX;
use weir_plan::{Expr, Value};

/// The names of headers in capture filters, and in queries.
const FOREIGN: &[(&str, &str)] = &[
    ("ether", "eth"),
    ("link", "frame"),
    ("ip6", "ip"),
    ("ipv4", "ip"),
    ("ipv6", "ip"),
    ("rarp", "arp"),
    ("sctp", "transport"),
    ("igmp", "transport"),
    ("proto", "transport"),
    ("data", "payload"),
    ("tcp.payload", "payload"),
    ("udp.payload", "payload"),
];

impl Checker<'_> {
    /// The bytes `header[offset:size]`.
    pub(super) fn bytes(
        &mut self,
        scope: &Scope,
        header: &Name,
        offset: &TreeExpr,
        size: Option<&TreeExpr>,
    ) -> Option<Expr> {
        let known = self.header(scope, header);
        let most = i64::from(u16::MAX);
        let at = self.place(scope, offset, "the first byte", 0..=most);
        let n = match size {
            Some(size) => {
                let most = i64::from(HEADER_BYTES_MAX);
                self.place(scope, size, "the number of bytes", 1..=most)
            }
            None => Some(1),
        };
        let bytes = HeaderBytes::new(known?, at? as u16, n? as usize)?;
        self.field(scope, FieldId::of_bytes(bytes), header.span)
    }

    fn header(&mut self, scope: &Scope, name: &Name) -> Option<Header> {
        let word = name.node.as_str();
        if scope.position(word).is_some() {
            let message = format!("`{word}` is a column, which has no bytes at places");
            let d = Diagnostic::new(Code::TypeMismatch, name.span, message);
            self.report(d.help(format!("part of a string or of bytes is `slice({word}, 0, 4)`")));
            return None;
        }
        if scope.of_records() {
            self.only_packets(&format!("{word}[…]"), name.span);
            return None;
        }
        let Some(header) = Header::by_name(word) else {
            let message = format!("`{word}` is no header");
            let d = Diagnostic::new(Code::UnknownName, name.span, message);
            let ours = FOREIGN.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| *ours);
            let names = Header::ALL.map(|(name, _)| name);
            let near = ours.or_else(|| suggest::closest(word, names));
            let d = match near {
                Some(near) => d.help(format!("did you mean `{near}[…]`?")),
                None => d,
            };
            self.report(d.note(format!("bytes are taken of {}", names.join(" "))));
            return None;
        };
        if !scope.packets && !scope.lenient {
            let message = "these rows are no packets any more, and have no bytes";
            let d = Diagnostic::new(Code::UnknownName, name.span, message);
            let d = match scope.dropped {
                Some((stage, span)) => d.note_at(span, format!("`{stage}` keeps only its columns")),
                None => d,
            };
            self.report(d.help("give the bytes a name before: `extend NAME = …`"));
            return None;
        }
        scope.packets.then_some(header)
    }

    /// A constant within a range.
    fn place(
        &mut self,
        scope: &Scope,
        e: &TreeExpr,
        whose: &str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Option<i64> {
        let message = match self.checked_constant(scope, e, whose)? {
            Value::Int(n) if range.contains(&n) => return Some(n),
            Value::Int(_) => format!("{whose} is {} to {}", range.start(), range.end()),
            v => {
                let found = v.ty().map_or_else(String::new, |ty| a(&ty));
                format!("{whose} is a whole number, and this is {found}")
            }
        };
        self.report(Diagnostic::new(Code::BadConstant, e.span, message));
        None
    }

    /// The value of a constant within a larger expression.
    fn checked_constant(&mut self, scope: &Scope, e: &TreeExpr, whose: &str) -> Option<Value> {
        let out = self.expr(scope, e)?;
        self.constant_value(&out, e.span, whose)
    }
}
