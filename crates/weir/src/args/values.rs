//! The values that options take.

use crate::zone::Zone;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::num::NonZeroUsize;
use std::time::Duration;
use weir_base::address::AddressForm;
use weir_engine::limits::WORKERS_MAX;
use weir_kafka::address::KafkaTopic;
use weir_sink::limits::QUEUE_BATCHES_MAX;
use weir_sink::{FORMATS, Format, TimeFormat};

/// The name of a format for rows.
pub(super) fn format() -> impl TypedValueParser<Value = &'static Format> {
    let value = |format: &&'static Format| PossibleValue::new(format.name).help(format.about);
    PossibleValuesParser::new(FORMATS.iter().map(value))
        .try_map(|name| Format::by_name(&name).ok_or("no such format"))
}

/// The name and value of a parameter.
pub(super) fn param(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// The stream that a probe writes to and a merge reads from.
pub(super) fn stream(text: &str) -> Result<String, String> {
    match text.split_once("://") {
        Some(("kafka", _)) => KafkaTopic::parse(text).map(|_| text.to_owned()),
        Some((scheme, _)) if scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => Err(format!(
            "{scheme} is not supported; expected a file, a named pipe, `-` or kafka://"
        )),
        _ => Ok(text.to_owned()),
    }
}

/// A collector of flow records, and what it is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExportVersion {
    Ipfix,
    Netflow9,
}

/// Where `--export` sends rows to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ExportTo {
    pub(crate) version: ExportVersion,
    /// HOST:PORT.
    pub(crate) host: String,
}

/// A collector: HOST:PORT, or with a scheme before it.
pub(super) fn export(text: &str) -> Result<ExportTo, String> {
    let (version, host) = match text.split_once("://") {
        None => (ExportVersion::Ipfix, text),
        Some(("ipfix", host)) => (ExportVersion::Ipfix, host),
        Some(("netflow9", host)) => (ExportVersion::Netflow9, host),
        Some((scheme, _)) => {
            return Err(format!("{scheme} is not exported; expected ipfix:// or netflow9://"));
        }
    };
    Ok(ExportTo { version, host: host.to_owned() })
}

/// A number of workers, or one per processor.
pub(super) fn workers(text: &str) -> Result<NonZeroUsize, String> {
    let n = match text {
        "auto" => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        _ => text.parse().map_err(|_| "expected a number from 1, or `auto`".to_owned())?,
    };
    match n.get() {
        0..=WORKERS_MAX => Ok(n),
        _ if text == "auto" => Ok(NonZeroUsize::new(WORKERS_MAX).unwrap_or(n)),
        _ => Err(format!("expected at most {WORKERS_MAX}")),
    }
}

/// Nanoseconds of a duration.
pub(super) fn duration(text: &str) -> Result<i64, String> {
    weir_packet::time::parse_duration(text)
        .filter(|ns| *ns >= 0)
        .ok_or_else(|| "expected a duration such as 500ms or 2s".to_owned())
}

/// A number of seconds, such as `10` or `0.5`.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().ok().filter(|&n: &f64| n >= 0.001);
    let duration = number.and_then(|n| Duration::try_from_secs_f64(n).ok());
    duration.ok_or_else(|| "expected a number of seconds, at least 0.001".to_owned())
}

/// A number of batches.
pub(super) fn batches(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=QUEUE_BATCHES_MAX) => Ok(n),
        _ => Err(format!("expected a number of batches, from 1 to {QUEUE_BATCHES_MAX}")),
    }
}

/// A number of bytes: in millions, or with k, m, g in KiB, MiB, GiB.
pub(crate) fn file_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1_000_000),
    };
    let size = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    size.filter(|n| *n > 0).ok_or_else(|| "expected a size such as 100, 500k or 2g".to_owned())
}

/// The packet of a frame that fields are read from.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Headers {
    /// The outermost packet: that of the tunnel itself
    Outer,
    /// The innermost packet: the one in the tunnel
    Inner,
}

impl From<Headers> for weir_packet::walk::Headers {
    fn from(headers: Headers) -> weir_packet::walk::Headers {
        match headers {
            Headers::Outer => weir_packet::walk::Headers::OUTER,
            Headers::Inner => weir_packet::walk::Headers::INNER,
        }
    }
}

/// The fate of rows that a sink does not take in time.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlowSink {
    /// Rows wait, and packets wait with them
    Wait,
    /// Rows are left out and counted
    Drop,
}

/// The format of times.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Time {
    /// Date and time, in UTC or --time-zone
    Rfc3339,
    /// Seconds since 1970, with nine decimals
    Epoch,
    /// Nanoseconds since 1970
    EpochNs,
}

impl Time {
    /// The format in a zone.
    pub(crate) fn format(self, zone: Zone) -> TimeFormat {
        match (self, zone) {
            (Time::Rfc3339, Zone(Some(zone))) => TimeFormat::Local(zone),
            (Time::Rfc3339, Zone(None)) => TimeFormat::Rfc3339,
            (Time::Epoch, _) => TimeFormat::Epoch,
            (Time::EpochNs, _) => TimeFormat::EpochNs,
        }
    }
}

/// The form of addresses, where a format has both.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Addresses {
    /// Their 16 or 6 bytes
    Bytes,
    /// As people write them
    Text,
}

impl From<Addresses> for AddressForm {
    fn from(addresses: Addresses) -> AddressForm {
        match addresses {
            Addresses::Bytes => AddressForm::Bytes,
            Addresses::Text => AddressForm::Text,
        }
    }
}

/// The tool whose names columns have.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Names {
    /// Weir's own
    Native,
    /// Zeek's logs
    Zeek,
    /// Suricata's EVE records
    Eve,
    /// The Elastic Common Schema
    Ecs,
    /// The information elements of IPFIX
    Ipfix,
}

impl From<Names> for weir_sink::Names {
    fn from(names: Names) -> weir_sink::Names {
        match names {
            Names::Native => weir_sink::Names::Native,
            Names::Zeek => weir_sink::Names::Zeek,
            Names::Eve => weir_sink::Names::Eve,
            Names::Ecs => weir_sink::Names::Ecs,
            Names::Ipfix => weir_sink::Names::Ipfix,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_have_a_name() {
        assert_eq!(param("a=x=y"), Ok(("a".to_owned(), "x=y".to_owned())));
        assert!(param("noequals").is_err());
        assert!(param("=1").is_err());
    }

    #[test]
    fn collectors_have_a_scheme() {
        let to = |version, host: &str| Ok(ExportTo { version, host: host.to_owned() });
        assert_eq!(export("a:1"), to(ExportVersion::Ipfix, "a:1"));
        assert_eq!(export("ipfix://[::1]:4739"), to(ExportVersion::Ipfix, "[::1]:4739"));
        assert_eq!(export("netflow9://a:1"), to(ExportVersion::Netflow9, "a:1"));
        assert!(export("sflow://a:1").is_err_and(|why| why.contains("netflow9://")));
    }

    #[test]
    fn numbers_and_durations() {
        assert!(workers("0").is_err());
        assert!(workers("100000").is_err());
        assert!(workers("auto").is_ok());
        assert!(duration("-1s").is_err());
    }

    #[test]
    fn sizes_of_files() {
        assert_eq!(file_size("2"), Ok(2_000_000));
        assert_eq!((file_size("3k"), file_size("1G")), (Ok(3072), Ok(1 << 30)));
        for wrong in ["", "0", "k", "1kk", "1x", "-1", "99999999999999999999g"] {
            assert!(file_size(wrong).is_err(), "{wrong}");
        }
    }
}
