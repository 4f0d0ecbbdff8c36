//! Calls of functions of addresses whose other arguments are constants, and of connections.

use super::Checker;
use super::words::a;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lower;
use crate::names::Scope;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree};
use weir_plan::functions::Secret;
use weir_plan::{Expr, ExprKind, Func, Type, Value};

/// The fields of a packet that say whose it is, in the order of [`Func::CommunityId`].
const ENDS: [&str; 5] = ["ip.src", "sport", "ip.dst", "dport", "ip.proto"];

impl<'t> Checker<'t> {
    /// `prefix(a, n)`, or `prefix(a, n4, n6)`.
    pub(super) fn prefix(&mut self, args: Vec<Expr>, trees: &[TreeExpr]) -> Option<Expr> {
        let mut lengths = Vec::new();
        for (i, (arg, tree)) in args.iter().zip(trees).enumerate().skip(1) {
            let value = self.constant_value(arg, tree.span, "the length of a prefix")?;
            let Value::Int(n) = value else { unreachable!("checked to be an int") };
            let most = if args.len() == 3 && i == 1 { 32 } else { 128 };
            let Some(n) = u8::try_from(n).ok().filter(|n| *n <= most) else {
                let of = if most == 32 { "an IPv4 address" } else { "an address" };
                let message = format!("a prefix of {of} has 0 to {most} bits");
                self.report(Diagnostic::new(Code::BadConstant, tree.span, message));
                return None;
            };
            lengths.push(n);
        }
        let (v4, v6) = (lengths[0], lengths[lengths.len() - 1]);
        let address = args.into_iter().take(1).collect();
        Some(Expr { ty: Type::Ip, kind: ExprKind::Call(Func::Prefix { v4, v6 }, address) })
    }

    /// `anonymize(a, key)`.
    pub(super) fn anonymize(&mut self, args: Vec<Expr>, tree: &TreeExpr) -> Option<Expr> {
        let key = self.key_of_anonymize(&args[1], tree)?;
        let address = args.into_iter().take(1).collect();
        Some(Expr { ty: Type::Ip, kind: ExprKind::Call(Func::Anonymize(key), address) })
    }

    /// The key of the function or the stage `anonymize`.
    pub(super) fn key_of_anonymize(&mut self, key: &Expr, tree: &TreeExpr) -> Option<Secret> {
        let key = match self.constant_value(key, tree.span, "the key of `anonymize`")? {
            Value::Str(text) => secret(&text),
            Value::Bytes(bytes) => bytes.as_ref().try_into().ok(),
            _ => None,
        };
        let Some(key) = key else {
            let message = "a key has 32 bytes, or 64 hexadecimal digits";
            let d = Diagnostic::new(Code::BadConstant, tree.span, message);
            self.report(d.help(
                "`openssl rand -hex 32` makes one; keep it in a param, and give it \
                                with `-p`",
            ));
            return None;
        };
        Some(Secret(key))
    }

    /// `community_id(conn)`, or `community_id(conn, seed)`.
    pub(super) fn community_id(
        &mut self,
        scope: &Scope,
        args: &[TreeExpr],
        span: Span,
    ) -> Option<Expr> {
        if !matches!(args.len(), 1 | 2) {
            self.wrong_arity("community_id", 1, args.len(), span);
            return None;
        }
        let parts = self.ends(scope, &args[0])?;
        let seed = match args.get(1) {
            None => 0,
            Some(tree) => {
                let e = self.expr(scope, tree)?;
                let value = self.constant_value(&e, tree.span, "the seed of `community_id`")?;
                let seed = match value {
                    Value::Int(n) => u16::try_from(n).ok(),
                    _ => None,
                };
                let Some(seed) = seed else {
                    let message = "a seed is an int from 0 to 65535";
                    self.report(Diagnostic::new(Code::BadConstant, tree.span, message));
                    return None;
                };
                seed
            }
        };
        Some(Expr { ty: Type::Str, kind: ExprKind::Call(Func::CommunityId { seed }, parts) })
    }

    /// Both ends of a connection and its protocol. Of packets their fields, which way they went:
    /// ICMP needs that, and its type.
    fn ends(&mut self, scope: &Scope, tree: &TreeExpr) -> Option<Vec<Expr>> {
        let key = match tree.node.unbracketed() {
            Tree::Name(name) => matches!(name.as_str(), "conn" | "flow"),
            _ => false,
        };
        if key && scope.packets && !scope.lenient {
            let mut parts: Vec<Expr> =
                ENDS.iter().map(|name| self.name(scope, name, tree.span)).collect::<Option<_>>()?;
            for part in ["type", "code"] {
                let four = self.name(scope, &format!("icmp.{part}"), tree.span)?;
                let six = self.name(scope, &format!("icmp6.{part}"), tree.span)?;
                let kind = ExprKind::Call(Func::Coalesce, vec![four, six]);
                parts.push(Expr { ty: Type::Int, kind });
            }
            return Some(parts);
        }
        let e = self.expr(scope, tree)?;
        let wanted = [Type::Ip, Type::Int, Type::Ip, Type::Int, Type::Int];
        if e.ty == Type::Tuple(wanted.to_vec()) {
            let Type::Tuple(types) = e.ty.clone() else { unreachable!("compared above") };
            return Some(lower::parts(e, &types));
        }
        let message = format!(
            "`community_id` takes `conn`, or a tuple of address, port, address, port and \
             protocol, and this is {}",
            a(&e.ty)
        );
        let d = Diagnostic::new(Code::WrongArgument, tree.span, message);
        self.report(d.help("write `community_id(conn)`"));
        None
    }
}

/// The key that a text is, or that its digits say.
fn secret(text: &str) -> Option<[u8; 32]> {
    if let Ok(key) = text.as_bytes().try_into() {
        return Some(key);
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.len() != 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |i: usize| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok();
    let bytes: Vec<u8> = (0..32).map(byte).collect::<Option<_>>()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read() {
        assert_eq!(secret(&"a".repeat(32)), Some([b'a'; 32]));
        assert_eq!(secret(&"0f".repeat(32)), Some([15; 32]));
        assert_eq!(secret(&format!("0x{}", "0f".repeat(32))), Some([15; 32]));
        assert_eq!(secret("short"), None);
        assert_eq!(secret(&"é".repeat(32)), None);
        assert_eq!(secret(&"g".repeat(64)), None);
    }
}
