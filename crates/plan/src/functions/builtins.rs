//! The table of built-in functions: what each takes, what it gives, and its row of the reference.
//! The language checks calls by it, a plan that is read is checked by it, and a test compares
//! the reference with it.

use super::func::{Func, Math, Part, Rounding, Secret};
use super::parameter::{
    ANY, BINNED, BYTES, CONNECTION, FLOAT, INT, INT_OR_BYTES, IP, KEY, LENGTH, NUMBER, ORDERED,
    PATTERN, SIGNED, STEP, TEXT, TEXT_OR_BYTES, TIME, TO_FLOAT, TO_INT,
};
use super::parameter::{Gives, Parameter, Relation, Role};
use crate::address::Block;
use crate::types::Type;
use Gives::{Conversion, First};
use Relation::{Free, Same, Step};
use Type::{Bool, Bytes, Duration, Float, Int, Ip, Str, Time};

/// A built-in function.
#[derive(Debug)]
pub struct Builtin {
    /// A call of it with the names of its parameters, such as `concat(s, t)`.
    pub call: &'static str,
    /// The function that plans call. Where constants of a call become part of it, those here mean
    /// nothing.
    pub func: Func,
    /// The arguments that a call must give. `prefix` takes its last parameter twice if need be, and
    /// `community_id` a seed.
    pub takes: &'static [Parameter],
    /// How the types of the arguments must agree.
    pub relation: Relation,
    /// The type of the result.
    pub gives: Gives,
    /// The meaning of the result, for the reference.
    pub doc: &'static str,
}

impl Builtin {
    /// The name in queries.
    pub fn name(&self) -> &'static str {
        self.call.split('(').next().unwrap_or(self.call)
    }

    /// The parameter that argument number `i` must fit.
    pub fn parameter(&self, i: usize) -> &'static Parameter {
        &self.takes[i.min(self.takes.len() - 1)]
    }

    /// The type of a call in a plan; `None` where it does not take arguments of these types.
    pub fn result(&self, args: &[&Type]) -> Option<Type> {
        if matches!(self.takes, [Parameter { role: Role::Connection, .. }]) {
            return CONNECTION_PARTS
                .iter()
                .any(|p| p.iter().eq(args.iter().copied()))
                .then_some(Str);
        }
        let takes = || self.takes.iter().filter(|p| p.role != Role::Constant);
        let fits = |(takes, ty): (&Parameter, &&Type)| match takes.role {
            Role::Float => **ty == Float,
            _ => takes.types.contains(ty),
        };
        let (&first, others) = args.split_first()?;
        let agree = match self.relation {
            Free => true,
            Same => others.iter().all(|ty| *ty == first),
            Step => *others == [if *first == Int { &Int } else { &Duration }],
        };
        let sound = agree && takes().count() == args.len() && takes().zip(args).all(fits);
        match &self.gives {
            _ if !sound => None,
            Gives::Type(ty) => Some(ty.clone()),
            First => Some(first.clone()),
            Conversion(ty) => (first != ty).then(|| ty.clone()),
        }
    }
}

impl Func {
    /// The row of a built-in function; `None` for one that is registered, and for `lookup`.
    pub fn builtin(&self) -> Option<&'static Builtin> {
        let is = |other: &Func| match (self, other) {
            (Func::Prefix { .. }, Func::Prefix { .. }) => true,
            (Func::CommunityId { .. }, Func::CommunityId { .. }) => true,
            (Func::Anonymize(_), Func::Anonymize(_)) => true,
            (one, other) => one == other,
        };
        BUILTINS.iter().find(|row| is(&row.func))
    }
}

/// The built-in function of this name.
pub fn by_name(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|row| row.name() == name)
}

/// The parts of a connection in a plan: both ends, the protocol, and where they are known the type
/// and code of ICMP.
const CONNECTION_PARTS: [&[Type]; 2] =
    [&[Ip, Int, Ip, Int, Int], &[Ip, Int, Ip, Int, Int, Int, Int]];

const PREFIX: Func = Func::Prefix { v4: 32, v6: 128 };
const ANONYMIZE: Func = Func::Anonymize(Secret([0; 32]));
const COMMUNITY_ID: Func = Func::CommunityId { seed: 0 };

const fn row(
    call: &'static str,
    func: Func,
    takes: &'static [Parameter],
    gives: Gives,
    relation: Relation,
    doc: &'static str,
) -> Builtin {
    Builtin { call, func, takes, relation, gives, doc }
}

/// All built-in functions, in the order of the reference.
pub static BUILTINS: &[Builtin] = &[
    row("exists(x)", Func::Exists, &[ANY], Gives::Type(Bool), Free, "whether `x` has a value"),
    row(
        "coalesce(x, y)",
        Func::Coalesce,
        &[ANY, ANY],
        First,
        Same,
        "`x` where it has a value, else `y`",
    ),
    row("min_of(x, y)", Func::MinOf, &[ORDERED, ORDERED], First, Same, "the smaller"),
    row("max_of(x, y)", Func::MaxOf, &[ORDERED, ORDERED], First, Same, "the larger"),
    row(
        "clamp(x, low, high)",
        Func::Clamp,
        &[ORDERED, ORDERED, ORDERED],
        First,
        Same,
        "`low` below it, `high` above it, else `x`",
    ),
    row("string(x)", Func::ToStr, &[ANY], Gives::Type(Str), Free, "`x` as text"),
    row(
        "short(x)",
        Func::Short,
        &[ANY],
        Gives::Type(Str),
        Free,
        "`x` as a person reads it: a float with four significant digits, from 10,000 on with a \
         factor (`12.35k`), a duration as one number with its unit (`1.8s`), others as `string(x)`",
    ),
    row("abs(x)", Func::Abs, &[SIGNED], First, Free, "without its sign"),
    row(
        "floor(x)",
        Func::Round(Rounding::Floor),
        &[NUMBER],
        Conversion(Int),
        Free,
        "the int below",
    ),
    row("ceil(x)", Func::Round(Rounding::Ceil), &[NUMBER], Conversion(Int), Free, "the int above"),
    row(
        "round(x)",
        Func::Round(Rounding::Nearest),
        &[NUMBER],
        Conversion(Int),
        Free,
        "the nearest int; of two, the one away from zero",
    ),
    row(
        "int(x)",
        Func::ToInt,
        &[TO_INT],
        Conversion(Int),
        Free,
        "of a float towards zero; of a bool 0 or 1; of a duration or time its nanoseconds; of a \
         mac its 48 bits; of a text the decimal number that it is",
    ),
    row(
        "float(x)",
        Func::ToFloat,
        &[TO_FLOAT],
        Conversion(Float),
        Free,
        "of a duration its seconds; of a text the number that it is",
    ),
    row("sqrt(x)", Func::Math(Math::Sqrt), &[FLOAT], Gives::Type(Float), Free, "the square root"),
    row(
        "exp(x)",
        Func::Math(Math::Exp),
        &[FLOAT],
        Gives::Type(Float),
        Free,
        "e to the power of `x`",
    ),
    row(
        "log(x)",
        Func::Math(Math::Ln),
        &[FLOAT],
        Gives::Type(Float),
        Free,
        "the natural logarithm",
    ),
    row(
        "log2(x)",
        Func::Math(Math::Log2),
        &[FLOAT],
        Gives::Type(Float),
        Free,
        "the logarithm to base 2",
    ),
    row(
        "log10(x)",
        Func::Math(Math::Log10),
        &[FLOAT],
        Gives::Type(Float),
        Free,
        "the logarithm to base 10",
    ),
    row(
        "pow(x, y)",
        Func::Pow,
        &[FLOAT, FLOAT],
        Gives::Type(Float),
        Free,
        "`x` to the power of `y`",
    ),
    row(
        "bin(x, step)",
        Func::Bin,
        &[BINNED, STEP],
        First,
        Step,
        "`x` rounded down to a multiple of `step`, which is an int for an int, else a duration",
    ),
    row(
        "seq_diff(a, b)",
        Func::SeqDiff,
        &[INT, INT],
        Gives::Type(Int),
        Free,
        "how far the 32-bit sequence number `a` is ahead of `b`; negative if `b` is ahead (RFC \
         1982)",
    ),
    row(
        "seq_add(a, n)",
        Func::SeqAdd,
        &[INT, INT],
        Gives::Type(Int),
        Free,
        "the 32-bit sequence number that is `n` after `a`, which after 2^32 - 1 starts again at 0 \
         (RFC 1982); `n` may be negative",
    ),
    row(
        "contains(s, part)",
        Func::Contains,
        &[TEXT_OR_BYTES, TEXT_OR_BYTES],
        Gives::Type(Bool),
        Same,
        "whether `part` is anywhere in `s`",
    ),
    row(
        "starts_with(s, part)",
        Func::StartsWith,
        &[TEXT_OR_BYTES, TEXT_OR_BYTES],
        Gives::Type(Bool),
        Same,
        "whether `s` starts with `part`",
    ),
    row(
        "ends_with(s, part)",
        Func::EndsWith,
        &[TEXT_OR_BYTES, TEXT_OR_BYTES],
        Gives::Type(Bool),
        Same,
        "whether `s` ends with `part`",
    ),
    row(
        "matches(s, \"regex\")",
        Func::Matches,
        &[TEXT_OR_BYTES, PATTERN],
        Gives::Type(Bool),
        Free,
        "whether the regular expression is found anywhere in `s` (syntax of the Rust `regex` \
         crate)",
    ),
    row(
        "extract(s, \"regex\")",
        Func::Extract,
        &[TEXT, PATTERN],
        Gives::Type(Str),
        Free,
        "what the first group of the pattern holds where it is first found; without groups, all \
         that was found",
    ),
    row("lower(s)", Func::Lower, &[TEXT], Gives::Type(Str), Free, "in lower case"),
    row("upper(s)", Func::Upper, &[TEXT], Gives::Type(Str), Free, "in upper case"),
    row("trim(s)", Func::Trim, &[TEXT], Gives::Type(Str), Free, "without white space at its ends"),
    row("concat(s, t)", Func::Concat, &[TEXT, TEXT], Gives::Type(Str), Free, "one after the other"),
    row(
        "replace(s, from, to)",
        Func::Replace,
        &[TEXT, TEXT, TEXT],
        Gives::Type(Str),
        Free,
        "with `to` for each `from`",
    ),
    row(
        "split(s, by, n)",
        Func::Split,
        &[TEXT, TEXT, INT],
        Gives::Type(Str),
        Free,
        "part number `n` of what stands between the `by`s, from 0; from -1 back from the end",
    ),
    row(
        "slice(x, start, length)",
        Func::Slice,
        &[TEXT_OR_BYTES, INT, INT],
        First,
        Free,
        "so many bytes from there on, from 0, or from the end where `start` is negative; of a \
         string only whole characters",
    ),
    row("str_len(s)", Func::StrLen, &[TEXT], Gives::Type(Int), Free, "its length in bytes"),
    row(
        "bytes_len(b)",
        Func::BytesLen,
        &[BYTES],
        Gives::Type(Int),
        Free,
        "how many bytes there are",
    ),
    row(
        "entropy_of(x)",
        Func::EntropyOf,
        &[TEXT_OR_BYTES],
        Gives::Type(Float),
        Free,
        "how mixed its bytes are, in bits a byte: 0 where all are equal, at most `log2` of its \
         length, and at most 8",
    ),
    row(
        "registered_domain(s)",
        Func::RegisteredDomain,
        &[TEXT],
        Gives::Type(Str),
        Free,
        "the part of a domain name that somebody registered: what comes before a public suffix \
         ([publicsuffix.org](https://publicsuffix.org)) with one label more, in lower case: \
         `example.co.uk` of `www.example.co.uk`. A public suffix itself and an IPv4 address have \
         none. Cut a port off before: `split(http.host, \":\", 0)`",
    ),
    row("hex(x)", Func::Hex, &[INT_OR_BYTES], Gives::Type(Str), Free, "hexadecimal digits"),
    row("bytes(s)", Func::ToBytes, &[TEXT], Gives::Type(Bytes), Free, "its UTF-8"),
    row(
        "text(b)",
        Func::ToText,
        &[BYTES],
        Gives::Type(Str),
        Free,
        "what it reads as UTF-8; bytes that are no character read as U+FFFD, so that several bytes \
         may have one text, and `hex(b)` tells them apart",
    ),
    row("is_ipv4(a)", Func::IsIpv4, &[IP], Gives::Type(Bool), Free, "whether it is IPv4"),
    row("is_ipv6(a)", Func::IsIpv6, &[IP], Gives::Type(Bool), Free, "whether it is IPv6"),
    row(
        "is_private(a)",
        Func::IsIn(Block::Private),
        &[IP],
        Gives::Type(Bool),
        Free,
        "whether it is of a private network (RFC 1918, RFC 4193)",
    ),
    row(
        "is_loopback(a)",
        Func::IsIn(Block::Loopback),
        &[IP],
        Gives::Type(Bool),
        Free,
        "whether it is of one host",
    ),
    row(
        "is_link_local(a)",
        Func::IsIn(Block::LinkLocal),
        &[IP],
        Gives::Type(Bool),
        Free,
        "whether it is of one link",
    ),
    row(
        "is_multicast(a)",
        Func::IsIn(Block::Multicast),
        &[IP],
        Gives::Type(Bool),
        Free,
        "whether it is of a group",
    ),
    row(
        "is_global(a)",
        Func::IsIn(Block::Global),
        &[IP],
        Gives::Type(Bool),
        Free,
        "whether it is one host of the Internet: no group, and in no network that the IANA \
         registries (RFC 6890) call not globally reachable",
    ),
    row(
        "prefix(a, n)",
        PREFIX,
        &[IP, LENGTH],
        Gives::Type(Ip),
        Free,
        "its first `n` bits, the others 0; `prefix(a, n4, n6)` keeps `n4` bits of an IPv4 address \
         and `n6` of an IPv6 address",
    ),
    row("ip(s)", Func::ToIp, &[TEXT], Gives::Type(Ip), Free, "the address that it names"),
    row(
        "anonymize(a, key)",
        ANONYMIZE,
        &[IP, KEY],
        Gives::Type(Ip),
        Free,
        "another address that keeps prefixes: those with n leading bits in common have n in \
         common (Crypto-PAn). The key has 32 bytes, or 64 hexadecimal digits: `param key: \
         string = …`, given with `-p`. It is for rows: packets leave as they came, so a query \
         that replaces `ip.src` and lets packets leave is refused; the stage \
         [`anonymize`](operators.md#pass-drop-forward-broadcast-steer-mirror-\
         trim-tag-anonymize-branch) \
         rewrites packets",
    ),
    row(
        "community_id(conn)",
        COMMUNITY_ID,
        &[CONNECTION],
        Gives::Type(Str),
        Free,
        "the [Community ID](https://github.com/corelight/community-id-spec), as Zeek and Suricata \
         write it, of the key `conn` or `flow` or such a tuple; a second argument is the seed. \
         Of rows that are no packets any more, ICMP has none: its type is not part of `conn`",
    ),
    row(
        "year(t)",
        Func::Part(Part::Year),
        &[TIME],
        Gives::Type(Int),
        Free,
        "the year, in the time zone of the run",
    ),
    row("month(t)", Func::Part(Part::Month), &[TIME], Gives::Type(Int), Free, "1 to 12"),
    row("day(t)", Func::Part(Part::Day), &[TIME], Gives::Type(Int), Free, "the day of the month"),
    row(
        "weekday(t)",
        Func::Part(Part::Weekday),
        &[TIME],
        Gives::Type(Int),
        Free,
        "1 for Monday to 7 for Sunday",
    ),
    row("hour(t)", Func::Part(Part::Hour), &[TIME], Gives::Type(Int), Free, "0 to 23"),
    row("minute(t)", Func::Part(Part::Minute), &[TIME], Gives::Type(Int), Free, "0 to 59"),
    row("second(t)", Func::Part(Part::Second), &[TIME], Gives::Type(Int), Free, "0 to 59"),
    row(
        "duration_ns(n)",
        Func::ToDuration,
        &[INT],
        Gives::Type(Duration),
        Free,
        "so many nanoseconds",
    ),
    row(
        "time_ns(n)",
        Func::ToTime,
        &[INT],
        Gives::Type(Time),
        Free,
        "the time so many nanoseconds after 1970",
    ),
];
