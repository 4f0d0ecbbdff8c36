//! How captures are read.

use crate::bpf::Filter;
use weir_packet::interface::InterfaceNames;

/// How to read a capture.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Deliver only the frames that match; the others are counted.
    pub filter: Option<Filter>,
    /// Deliver frames of link types that are not decoded too, instead of ending with
    /// [`SourceError::LinkType`](weir_packet::source::SourceError::LinkType) at the first of them.
    pub any_link: bool,
    /// Map all pages of a plain file when it is opened, instead of some ahead of the reader: for
    /// measuring the work apart from the mapping. Takes as much address space and, as far as the
    /// page cache goes, memory as the file is long.
    pub populate: bool,
    /// In which order several captures are read.
    pub order: Order,
    /// Captures that may be read at the same time, among which pages of mapped files are divided:
    /// 0 is as 1. [`Captures`](crate::Captures) sets it where it merges.
    pub at_once: usize,
    /// Where the names of interfaces go that files say: one table for all of a run, its
    /// [outlets](crate::outlets::Outlets::name_interfaces) among them.
    pub interfaces: InterfaceNames,
}

/// In which order several captures are read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Order {
    /// Merged by the times of their packets. Of equal times, the capture named first comes first;
    /// each keeps its own order. One that breaks off ends by itself: the others are read to their
    /// end, and then the error comes.
    #[default]
    Time,
    /// One after the other, as they are named. An error is the end of all.
    Given,
}
