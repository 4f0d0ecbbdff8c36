//! How rows are written, in whatever format.

use weir_base::address::AddressForm;
use weir_plan::TimeZone;

/// How times are written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TimeFormat {
    /// RFC 3339 in UTC, with as many decimals as the nanoseconds need.
    #[default]
    Rfc3339,
    /// RFC 3339 in the local time of a zone, with its distance from UTC.
    Local(TimeZone),
    /// Seconds since 1970 with nine decimals.
    Epoch,
    /// Nanoseconds since 1970, a whole number.
    EpochNs,
}

/// How rows are written, in whatever format.
#[derive(Clone, Copy, Default, Debug)]
pub struct RowOptions {
    /// How times are written.
    pub time: TimeFormat,
    /// How addresses are written by formats that can hold their bytes.
    pub addresses: AddressForm,
    /// Whether headings are bold, for a terminal.
    pub color: bool,
    /// Whether rows are shown whenever the sink is flushed, as befits a stream that may pause,
    /// rather than when there are enough of them for a steady layout.
    pub stream: bool,
    /// Whether each row, or a title above it, says which output it is of even where there is one
    /// only, since others may come.
    pub titles: bool,
}
