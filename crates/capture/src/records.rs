//! Flow records of exporters as a source: from UDP sockets, or out of packets that carry them.
//!
//! Records come in batches of [`LinkType::FLOW_RECORDS`], each at its own time, which is that of
//! its end: in any order. So their times move no clock; what moves it is when datagrams come. A
//! window stays open for a span of lateness after its end, in which records of it may come.
//!
//! [`LinkType::FLOW_RECORDS`]: weir_packet::source::LinkType::FLOW_RECORDS

mod address;
mod batches;
mod drops;
mod packets;
mod report;
mod socket;

pub use address::{RecordAddress, is_record_address};
pub use packets::{PORTS, RecordPackets};
pub use report::{RecordReport, RecordSummary};
pub use socket::{RecordOptions, RecordSockets, open_record_sockets};
