//! Whether workers need no more of frames than their headers: then the others are cut before they
//! are copied.
//!
//! Only frames are cut whose headers the program found. The kept bytes hold every header to the end
//! of the transport header, so the walk over a cut frame finds what it finds in the whole one: it
//! asks how long the frame was on the wire, not how much of it there is.

use crate::field::field;
use weir_packet::fields::FieldId;
use weir_plan::physical::{Node, Physical, Work};
use weir_plan::stage::Stage;

/// Bytes that are kept from the transport header on: the longest header of TCP.
pub(crate) const TRANSPORT_KEPT: i32 = 60;

/// Fields of headers that the program does not read, but which stand before what is cut off, or
/// don't depend on bytes of the frame.
const KEPT: [&str; 23] = [
    "ts",
    "number",
    "interface",
    "direction",
    "protocol",
    "ip.id",
    "ip.frag",
    "ip.frag_offset",
    "ip.more_frags",
    "tcp.mss",
    "tcp.wscale",
    "tcp.sack_permitted",
    "tcp.sack_blocks",
    "tcp.sack_left",
    "tcp.sack_right",
    "tcp.tsval",
    "tcp.tsecr",
    "icmp.id",
    "icmp.seq",
    "icmp.mtu",
    "icmp6.id",
    "icmp6.seq",
    "icmp6.mtu",
];

/// Why workers need whole frames, if they do: one clause.
pub(crate) fn why_whole(plan: &Physical) -> Option<String> {
    let fragments = || plan.levels.iter().flat_map(|level| &level.fragments);
    let nodes = || fragments().flat_map(|fragment| &fragment.nodes);
    let hands_out = fragments().any(|fragment| fragment.carries.frame)
        || nodes().any(|node| node.carries.frame || matches!(node.whole_stage(), Stage::Ends(_)));
    if hands_out {
        return Some("packets are handed out".to_owned());
    }
    if let Some(node) = nodes().find(|node| !reads_fields_only(node)) {
        return Some(format!("{} looks into packets", node.id.pipeline));
    }
    let carried = fragments().flat_map(|fragment| &fragment.carries.fields);
    let mut read = nodes().flat_map(|node| &node.reads).chain(carried);
    let beyond = read.find(|field| !is_kept(**field))?;
    Some(format!("`{}` may be beyond the headers", beyond.name()))
}

/// Whether a field of a cut frame is that of the whole one.
pub(crate) fn is_kept(id: FieldId) -> bool {
    KEPT.contains(&&*id.name()) || field(id).is_ok()
}

/// Whether all that a stage reads of packets are the fields that it names.
fn reads_fields_only(node: &Node) -> bool {
    match &node.work {
        Work::Partial(_) | Work::Final(_) => true,
        Work::Stage(stage) => matches!(
            stage,
            Stage::Where(_)
                | Stage::Extend { .. }
                | Stage::Project { .. }
                | Stage::Reshape { .. }
                | Stage::Summarize(_)
                | Stage::Scan(_)
                | Stage::Top { .. }
                | Stage::Distinct(_)
                | Stage::Sample(_)
                | Stage::Limit(_)
                | Stage::Join(_)
                | Stage::Union(_)
                | Stage::Alert(_)
        ),
    }
}
