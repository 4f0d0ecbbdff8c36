//! The name of a partition where its partial results are merged.

use crate::args::RunOptions;

/// The name of a partition as a probe: that of the probe or the group, and the number.
pub(crate) fn probe_of(options: &RunOptions, partition: i32) -> String {
    let name = options.publish.stream.probe.as_ref().or(options.partitions.group.as_ref());
    format!("{}/{partition}", name.map_or("", String::as_str))
}
