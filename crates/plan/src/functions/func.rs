//! The functions that a plan can call.

use crate::address::Block;
use crate::table::SharedTable;
use crate::zone::TimeZone;

/// A scalar function. All built-in ones are absent where an argument is, except `exists` and
/// `coalesce`; predicates are false instead.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Func {
    /// `exists(x)`: whether `x` has a value. Any type, bool; always present.
    Exists,
    /// `coalesce(a, b)`: `a` where it has a value, else `b`. Two of one type.
    Coalesce,
    /// `contains(s, part)`. string string or bytes bytes, bool; always present.
    Contains,
    /// `starts_with(s, part)`. string string or bytes bytes, bool; always present.
    StartsWith,
    /// `ends_with(s, part)`. string string or bytes bytes, bool; always present.
    EndsWith,
    /// `matches(s, "regex")`: whether the pattern (the `regex` crate's syntax, a constant) is found
    /// anywhere in `s`, which may be bytes that are no UTF-8. string string or bytes string, bool;
    /// always present.
    Matches,
    /// `lower(s)`. string, string.
    Lower,
    /// `upper(s)`. string, string.
    Upper,
    /// `concat(a, b)`. string string, string. Of all functions that make a text: one beyond 4096
    /// bytes is absent, and counted.
    Concat,
    /// `str_len(s)`: length in bytes. string, int.
    StrLen,
    /// `string(x)`: `x` as text, as CSV output would show it. Any scalar, string.
    ToStr,
    /// `short(x)`: `x` as a person reads it. A float has four significant digits, from 10,000 to
    /// 10^15 with a factor of the language (`12.35k`), beyond that and below 0.0001 with an
    /// exponent (`1.235e-5`). A duration is a number of its largest unit, with four significant
    /// digits and all whole days (`1.8s`). Others as [`ToStr`](Func::ToStr). Any scalar, string.
    Short,
    /// `bytes_len(b)`: length in bytes. bytes, int.
    BytesLen,
    /// `trim(s)`: without white space at its ends. string, string.
    Trim,
    /// `slice(x, start, length)`: a part, counted in bytes from 0, or from the end where `start` is
    /// negative; what lies outside of `x` is left out, and so is a character of a string of which
    /// the part holds not all bytes. string int int, string; bytes int int, bytes.
    Slice,
    /// `replace(s, from, to)`: with `to` for each `from`; an empty `from` is nowhere. string string
    /// string, string.
    Replace,
    /// `split(s, by, n)`: part number `n` of what stands between the `by`s, counted from 0, or from
    /// -1 back from the end; absent where there is no such part. string string int, string.
    Split,
    /// `extract(s, "regex")`: what the first group of the pattern (a constant) holds where it is
    /// first found, or all of what was found without groups; absent where it is not found. string
    /// string, string.
    Extract,
    /// `hex(x)`: digits in lower case without `0x`: two for each byte of bytes, as few as needed
    /// for an int, whose sign is not kept (two's complement). bytes or int, string.
    Hex,
    /// `registered_domain(s)`: of a domain name the public suffix and the label before it, in lower
    /// case; absent where there is no such label, and of what is no name: an empty label, an IPv4
    /// address. Labels are as `dns.qname` writes them: a dot after a backslash is part of one, and
    /// a dot at the end means nothing. string, string.
    RegisteredDomain,
    /// `entropy_of(x)`: Shannon's entropy of the bytes of a text, in bits a byte; 0 of an empty
    /// one. string or bytes, float.
    EntropyOf,
    /// `bytes(s)`: the UTF-8 of a text. string, bytes.
    ToBytes,
    /// `text(b)`: bytes read as UTF-8, with U+FFFD for what is none. bytes, string.
    ToText,
    /// `float(x)`. int, duration (in seconds) or string, float. A text that is no finite number is
    /// absent.
    ToFloat,
    /// `int(x)`: towards zero. float, bool (0 or 1), duration (nanoseconds), time (nanoseconds
    /// since 1970), mac (48 bits) or string; int. A float outside 64 bits is absent and counted, a
    /// text that is no decimal number within 64 bits is absent.
    ToInt,
    /// `ip(s)`: a text read as an address; absent where it is none. string, ip.
    ToIp,
    /// `duration_ns(x)`: a span of that many nanoseconds. int, duration.
    ToDuration,
    /// `time_ns(x)`: the time that many nanoseconds after 1970. int, time.
    ToTime,
    /// `abs(x)`. int, float or duration; the same.
    Abs,
    /// `min_of(a, b)`: the smaller. Two of one ordered type; the same.
    MinOf,
    /// `max_of(a, b)`: the larger. Two of one ordered type; the same.
    MaxOf,
    /// `clamp(x, low, high)`: `low` below it, else `high` above it, else `x`: the smaller of `high`
    /// and the larger of `x` and `low`. Three of one ordered type; the same.
    Clamp,
    /// `floor(x)`, `ceil(x)`, `round(x)`. float, int. Outside 64 bits absent and counted.
    Round(Rounding),
    /// `sqrt(x)`, `exp(x)`, `log(x)`, … float, float. Absent and counted where not finite.
    Math(Math),
    /// `pow(x, y)`. float float, float. Absent and counted where not finite.
    Pow,
    /// `seq_diff(a, b)`: how far the 32-bit sequence number `a` is ahead of `b`, from -2^31 to
    /// 2^31 - 1 (RFC 1982); of larger ints, their low 32 bits. int int, int.
    SeqDiff,
    /// `seq_add(a, n)`: the 32-bit sequence number that is `n` after `a` (RFC 1982): the low 32
    /// bits of the sum, from 0 to 2^32 - 1; `n` may be negative. int int, int.
    SeqAdd,
    /// `year(t)`, `hour(t)`, …: a part of a time in UTC. time, int.
    Part(Part),
    /// `bin(t, d)`: `t` rounded down to a multiple of `d` since 1970 (towards minus infinity).
    /// time duration time; int int int; duration duration duration. `d` at or below 0 gives an
    /// absent value, counted.
    Bin,
    /// The local time of a zone at a time, as if it were UTC; what `year(t)`, `hour(t)`, … are
    /// taken of in a zone. time, time.
    LocalTime(TimeZone),
    /// `bin(t, d)` in a zone, as [`TimeZone::bin`]. time duration time.
    LocalBin(TimeZone),
    /// `is_ipv4(a)`. ip, bool; always present.
    IsIpv4,
    /// `is_ipv6(a)`. ip, bool; always present.
    IsIpv6,
    /// `is_private(a)`, `is_global(a)`, …: whether an address is one of those set aside for a
    /// purpose. ip, bool; always present.
    IsIn(Block),
    /// `prefix(a, n)`: the first `n` bits of an address, the others 0; `prefix(a, n4, n6)` with a
    /// length for each version. The lengths are constants in 0..32 (IPv4) and 0..128 (IPv6); a
    /// length above 32 keeps an IPv4 address whole. ip, ip.
    Prefix {
        /// Bits kept of an IPv4 address.
        v4: u8,
        /// Bits kept of an IPv6 address.
        v6: u8,
    },
    /// `community_id(conn)`: the Community ID (version 1) of a connection, with a seed. Arguments:
    /// source address and port, destination address and port, protocol, and where they are known
    /// ICMP type and code. Absent where a part that belongs to the ID is. ip int ip int int [int
    /// int], string.
    CommunityId {
        /// Mixed into the hash, so that sites can have IDs of their own.
        seed: u16,
    },
    /// `anonymize(a, key)`: another address, of the same version, that has as many leading bits in
    /// common with other such addresses as theirs (Crypto-PAn). ip, ip.
    Anonymize(Secret),
    /// `lookup("file.csv", key, "column")`: the text that a table has for a key; absent where it
    /// has none. ip, int, string or mac; string.
    Lookup(SharedTable),
    /// A registered Rust function, by its position in
    /// [`Signatures::scalars`](super::Signatures::scalars). Called only where all arguments are
    /// there; a result of another type than its own is absent.
    User(usize),
}

/// A key that is nobody's business: it does not show itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Secret(pub [u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Which integer stands for a float.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rounding {
    /// The next below.
    Floor,
    /// The next above.
    Ceil,
    /// The nearest; of two, the one away from zero.
    Nearest,
}

/// A function of one float.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Math {
    /// The square root.
    Sqrt,
    /// e to the power of x.
    Exp,
    /// The natural logarithm.
    Ln,
    /// The logarithm to base 2.
    Log2,
    /// The logarithm to base 10.
    Log10,
}

impl Math {
    /// Its value; not always finite.
    pub fn of(self, x: f64) -> f64 {
        match self {
            Math::Sqrt => x.sqrt(),
            Math::Exp => x.exp(),
            Math::Ln => x.ln(),
            Math::Log2 => x.log2(),
            Math::Log10 => x.log10(),
        }
    }
}

/// A part of a point in time, in the Gregorian calendar and UTC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// Such as 2026.
    Year,
    /// 1 to 12.
    Month,
    /// Of the month, 1 to 31.
    Day,
    /// 1 Monday to 7 Sunday, as in ISO 8601.
    Weekday,
    /// 0 to 23.
    Hour,
    /// 0 to 59.
    Minute,
    /// 0 to 59.
    Second,
}
