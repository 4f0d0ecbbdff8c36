//! The bounds of this crate.

/// Instructions of an eBPF program: what the kernel's verifier looks at
/// (`BPF_COMPLEXITY_LIMIT_INSNS`). A longer program is refused.
pub const EBPF_INSTRUCTIONS_MAX: usize = 1_000_000;
