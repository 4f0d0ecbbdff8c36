//! What programs decide of frames, run in the kernel (`BPF_PROG_TEST_RUN`), against what the engine
//! keeps: a frame is filtered only if no pipeline keeps it, and wanted only if one does.

#![expect(clippy::print_stderr, reason = "tests say what they leave out, and what they counted")]

use proptest::prelude::*;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use weir_capture::ebpf::{Program, ProgramKind, SharedMemory};
use weir_engine::conform::Frames;
use weir_engine::functions::Functions;
use weir_engine::naive;
use weir_offload::{FrameCount, Hook, KernelProgram, OffloadOptions, compile};
use weir_packet::craft::Frame;
use weir_packet::fields::{FieldId, FieldType};
use weir_packet::source::LinkType;
use weir_plan::physical::Physical;
use weir_plan::stage::{Column, Schema, Stage};
use weir_plan::{Expr, Program as Plan, Value};
