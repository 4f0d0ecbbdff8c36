//! From a plan to the program of its kernel level.

use crate::emit::{Emit, Ways};
use crate::frame::{Access, CONTEXT, SKB_IFINDEX, SKB_PACKET_TYPE};
use crate::options::{NotOffloaded, OffloadOptions, Refuse, SNAPLEN_MIN};
use crate::prefix::{Pipeline, pipelines};
use crate::program::{FrameCount, Hook, KernelProgram, MapSpec, WHOLE};
use crate::walk::{Rules, Walk};
use crate::writer::{Place, Writer};
use weir_ebpf::{Alu, Cond, EbpfInstruction, Helper, Reg::*, Size};
use weir_packet::source::LinkType;
use weir_packet::walk::Headers;
use weir_plan::physical::Physical;

/// The program for the kernel level of a plan.
///
/// # Errors
/// Where the kernel could not keep any frame from the workers: why.
pub fn compile(
    plan: &Physical,
    options: &OffloadOptions<'_>,
) -> Result<KernelProgram, NotOffloaded> {
    possible(options)?;
    let pipelines = pipelines(plan)?;
    let mut program = Program::new(*options);
    program.refuse();
    program.walk();
    program.decide(&pipelines)?;
    program.verdicts();
    let code = program.w.finish().map_err(|e| NotOffloaded::TooLong(e.to_string()))?;
    Ok(KernelProgram {
        hook: options.hook,
        code,
        maps: vec![frames(options.cpus)],
        prefixes: pipelines.into_iter().map(|pipeline| pipeline.prefix).collect(),
    })
}

/// Whether frames of this source can be understood in the kernel.
fn possible(options: &OffloadOptions<'_>) -> Result<(), NotOffloaded> {
    let no = |why: String| Err(NotOffloaded::Plan(why));
    if options.link != LinkType::ETHERNET {
        return no("the kernel level reads Ethernet only".to_owned());
    }
    if options.snaplen < SNAPLEN_MIN {
        let snaplen = options.snaplen;
        return no(format!("a snap length of {snaplen} bytes, under {SNAPLEN_MIN}, cuts headers"));
    }
    Ok(())
}

/// The map that counts frames.
fn frames(cpus: u32) -> MapSpec {
    let words = cpus.max(1) as usize * FrameCount::WORDS;
    MapSpec { name: "frames".to_owned(), words }
}

/// A program that is being written.
struct Program<'a> {
    w: Writer,
    access: Access,
    options: OffloadOptions<'a>,
    ends: Ends,
}

/// Where what was decided of a frame is carried out.
#[derive(Clone, Copy)]
struct Ends {
    unclear: Place,
    wanted: Place,
    filtered: Place,
    /// The frame is none of the capture's.
    refused: Place,
}

impl<'a> Program<'a> {
    fn new(options: OffloadOptions<'a>) -> Program<'a> {
        let mut w = Writer::new();
        let ends = Ends {
            unclear: w.label("unclear"),
            wanted: w.label("wanted"),
            filtered: w.label("filtered"),
            refused: w.label("refused"),
        };
        Program { w, access: Access { hook: options.hook }, options, ends }
    }

    /// Leaves out frames that the capture does not take.
    fn refuse(&mut self) {
        let w = &mut self.w;
        w.mov(CONTEXT, R1);
        if self.options.hook == Hook::Xdp {
            return;
        }
        for refuse in self.options.refuse {
            let kept = w.label("kept");
            w.load(Size::W, R0, CONTEXT, SKB_PACKET_TYPE);
            match *refuse {
                Refuse::Outgoing => {
                    w.jump_if(Cond::Eq, R0, PACKET_OUTGOING, self.ends.refused);
                }
                Refuse::Incoming => {
                    w.jump_if(Cond::Ne, R0, PACKET_OUTGOING, self.ends.refused);
                }
                Refuse::OutgoingBy(index) => {
                    w.jump_if(Cond::Ne, R0, PACKET_OUTGOING, kept);
                    w.load(Size::W, R0, CONTEXT, SKB_IFINDEX).constant(R1, index.into());
                    w.jump_if(Cond::Eq, R0, R1, self.ends.refused);
                }
            }
            w.bind(kept);
        }
    }

    fn walk(&mut self) {
        let rules = Rules {
            inner: self.options.headers == Headers::Inner,
            fragments: self.options.fragments,
        };
        let unclear = self.ends.unclear;
        Walk { w: &mut self.w, access: self.access, rules, unclear }.write();
    }

    /// Asks each pipeline whether it wants the frame.
    fn decide(&mut self, pipelines: &[Pipeline]) -> Result<(), NotOffloaded> {
        for pipeline in pipelines {
            let next = self.w.label("next");
            for test in &pipeline.tests {
                let passes = self.w.label("passes");
                let ways = Ways { yes: passes, no: next, absent: next };
                Emit::new(&mut self.w, self.access).condition(test, ways).map_err(|_| {
                    let why = "its condition nests too deep".to_owned();
                    NotOffloaded::Pipeline(pipeline.prefix.pipeline, why)
                })?;
                self.w.bind(passes);
            }
            self.w.jump(self.ends.wanted);
            self.w.bind(next);
        }
        self.w.jump(self.ends.filtered);
        Ok(())
    }

    /// Counts frames by what became of them, and ends.
    fn verdicts(&mut self) {
        let Ends { unclear, wanted, filtered, refused } = self.ends;
        for (place, count, up) in [
            (filtered, FrameCount::Filtered, false),
            (wanted, FrameCount::Wanted, true),
            (unclear, FrameCount::Unclear, true),
        ] {
            self.w.bind(place);
            self.count(count);
            self.w.mov(R0, if up { self.bytes_up() } else { 0 });
            self.w.exit();
        }
        self.w.bind(refused);
        self.w.mov(R0, 0);
        self.w.exit();
    }

    /// What is returned for frames that go up. To a socket it is the snap length.
    fn bytes_up(&self) -> i32 {
        match self.options.hook {
            Hook::Socket => i32::try_from(self.options.snaplen).unwrap_or(WHOLE),
            Hook::Tcx | Hook::Xdp => WHOLE,
        }
    }

    /// Counts the frame in this CPU's part of the first map.
    fn count(&mut self, count: FrameCount) {
        let other = self.w.label("other_cpu");
        let w = &mut self.w;
        w.call(Helper::GET_SMP_PROCESSOR_ID);
        w.jump_if(Cond::Ge, R0, self.options.cpus.max(1) as i32, other);
        w.alu(Alu::Mul, R0, (FrameCount::WORDS * 8) as i32);
        w.push(EbpfInstruction::LoadMapValue { dst: R1, fd: 0, offset: count as u32 * 8 });
        w.alu(Alu::Add, R1, R0).load(Size::DW, R2, R1, 0).alu(Alu::Add, R2, 1);
        w.store(Size::DW, R1, 0, R2);
        w.bind(other);
    }
}

/// The type of packets that the machine sends, from `linux/if_packet.h`.
const PACKET_OUTGOING: i32 = 4;
