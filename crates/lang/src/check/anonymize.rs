//! `anonymize`: addresses of packets under other names, in frames that leave and in fields that
//! later stages read.

use super::Checker;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::names::Scope;
use crate::suggest;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree};
use std::collections::BTreeMap;
use weir_packet::fields::{FieldId, FieldType};
use weir_packet::rewrite::{Address, Addresses};
use weir_plan::ends::{Anonymize, Edit};
use weir_plan::{Expr, ExprKind, Func, Type};

/// Fields that hold an address which is rewritten under the name of another field.
const SAME: &[(&str, Address)] = &[
    ("ip.src", Address::IpSrc),
    ("tunnel.src", Address::IpSrc),
    ("arp.sender_ip", Address::IpSrc),
    ("ip.dst", Address::IpDst),
    ("tunnel.dst", Address::IpDst),
    ("arp.target_ip", Address::IpDst),
];

/// Fields that the names of IP addresses change in another way: an order, a checksum.
const OF_IP: &[&str] = &[
    "hosts.a",
    "hosts.b",
    "conn.a_ip",
    "conn.a_port",
    "conn.b_ip",
    "conn.b_port",
    "conn.forward",
    "igmp.group",
    "tcp.checksum",
    "udp.checksum",
];

impl<'t> Checker<'t> {
    /// The addresses that `anonymize FIELDS with KEY` rewrites, and the key.
    pub(super) fn anonymization(
        &mut self,
        scope: &Scope,
        fields: &[TreeExpr],
        key: &TreeExpr,
    ) -> Option<Anonymize> {
        let found: Vec<Option<Address>> = fields.iter().map(|f| self.address(f)).collect();
        let is_once = self.each_once(fields, &found);
        let value = self.root(scope, key)?;
        let key = self.key_of_anonymize(&value, key)?;
        let ports = self.rules.tunnel_ports;
        let addresses: Addresses =
            found.into_iter().collect::<Option<Vec<_>>>()?.into_iter().collect();
        is_once.then_some(Anonymize { addresses, key, ports })
    }

    /// Whether each field is named once; reports one that is named again.
    fn each_once(&mut self, fields: &[TreeExpr], found: &[Option<Address>]) -> bool {
        let mut seen: BTreeMap<Address, Span> = BTreeMap::new();
        let mut is_once = true;
        for (field, address) in fields.iter().zip(found) {
            let Some(address) = *address else { continue };
            if let Some(first) = seen.insert(address, field.span) {
                let message = format!("`{}` is named twice", address.name());
                let d = Diagnostic::new(Code::WrongArgument, field.span, message);
                self.report(d.note_at(first, "the first time"));
                is_once = false;
            }
        }
        is_once
    }

    /// The address that a field names.
    fn address(&mut self, field: &TreeExpr) -> Option<Address> {
        let all = || Address::ALL.into_iter().map(Address::name);
        let text = crate::excerpt::one_line(field.span.of(self.text));
        if let Tree::Name(name) = field.node.unbracketed()
            && let Some(address) = Address::ALL.into_iter().find(|a| a.name() == name)
        {
            return Some(address);
        }
        let message = format!("`anonymize` rewrites no `{text}` in packets");
        let d = Diagnostic::new(Code::WrongArgument, field.span, message);
        let near = match text.as_str() {
            "hosts" | "flow" | "conn" => Some("ip.src, ip.dst"),
            "link" => Some("eth.src, eth.dst"),
            text => {
                let known = suggest::field(text).filter(|field| all().any(|a| a == *field));
                known.or(suggest::closest(text, all()))
            }
        };
        self.report(match near {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.note(format!("what it rewrites: {}", all().collect::<Vec<_>>().join(", "))),
        });
        None
    }

    /// Lets the stages after an `anonymize` see what it did.
    pub(super) fn anonymize_fields(&mut self, scope: &mut Scope, span: Span) {
        self.anonymizes.get_or_insert(span);
        let done = scope.anonymized.len();
        let all = scope.edits.iter().filter_map(|edit| match edit {
            Edit::Anonymize(how) => Some((*how, span)),
            _ => None,
        });
        scope.anonymized.extend(all.skip(done).collect::<Vec<_>>());
    }

    /// A field of packets as it is here.
    pub(super) fn field(&mut self, scope: &Scope, id: FieldId, span: Span) -> Option<Expr> {
        let name = id.name();
        for (how, at) in &scope.anonymized {
            if changes(how.addresses, &name, id.info().ty) {
                let message = format!("`{name}` is not what the rewritten packets have");
                let d = Diagnostic::new(Code::FieldGone, span, message)
                    .label("read from packets as they were captured")
                    .note_at(*at, "from here on, addresses have other names");
                self.report(d.help("read it before `anonymize`, or use `ip.src` and `ip.dst`"));
                return None;
            }
        }
        Some(field_here(scope, id))
    }
}

/// A field that has its own value or another name.
pub(super) fn field_here(scope: &Scope, id: FieldId) -> Expr {
    let name = id.name();
    let same = SAME.iter().find(|(field, _)| *field == name);
    let names = scope
        .anonymized
        .iter()
        .filter(|(how, _)| same.is_some_and(|(_, address)| how.addresses.has(*address)));
    names.fold(Expr::field(id), |e, (how, _)| {
        let kind = ExprKind::Call(Func::Anonymize(how.key), vec![e]);
        Expr { ty: Type::Ip, kind }
    })
}

/// Whether other names of addresses may change a field that is not one of them. Bytes may hold any
/// address.
fn changes(which: Addresses, name: &str, ty: FieldType) -> bool {
    let ip = which.has(Address::IpSrc) || which.has(Address::IpDst);
    let mac = which.has(Address::EthSrc) || which.has(Address::EthDst);
    let bytes = ty == FieldType::Bytes || name.contains('[');
    let wlan = ty == FieldType::Mac && !name.starts_with("dhcp.");
    bytes || ip && OF_IP.contains(&name) || mac && wlan
}
