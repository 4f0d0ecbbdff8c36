//! From a plan to the program of its kernel level.

use crate::count::{CountAll, CountEnds};
use crate::emit::{Emit, Ways};
use crate::frame::{Access, CONTEXT, FACTS, Facts, SKB_IFINDEX, SKB_PACKET_TYPE, Slot, get};
use crate::options::{NotOffloaded, OffloadOptions, Refuse, SNAPLEN_MIN};
use crate::prefix::{Pipeline, asks_for_losses, pipelines};
use crate::program::{FrameCount, Hook, KernelProgram, MapSpec, WHOLE};
use crate::table::{Control, Table, TableOptions};
use crate::trim::{TRANSPORT_KEPT, why_whole};
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
    let cpus = options.cpus.max(1);
    let tables = options.groups.map(|secret| TableOptions { cpus, secret });
    let pipelines = pipelines(plan, tables.ok_or(options.without_groups))?;
    let whole = why_whole(plan);
    let mut program = Program::new(*options, whole.is_none());
    program.refuse();
    program.walk();
    program.decide(&pipelines)?;
    program.verdicts();
    let code = program.w.finish().map_err(|e| NotOffloaded::TooLong(e.to_string()))?;
    let counting = pipelines.iter().filter_map(|pipeline| pipeline.counting.as_ref());
    let tables: Vec<Table> = counting.map(|counting| counting.table.clone()).collect();
    let mut maps = vec![memory("frames", cpus as usize * FrameCount::WORDS)];
    if !tables.is_empty() {
        maps.push(memory("control", Control { tables: tables.len() }.words()));
        maps.extend(tables.iter().map(|table| memory("groups", table.words())));
    }
    Ok(KernelProgram {
        hook: options.hook,
        code,
        maps,
        tables,
        asks_for_losses: asks_for_losses(plan),
        whole,
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

fn memory(name: &str, words: usize) -> MapSpec {
    MapSpec { name: name.to_owned(), words }
}

/// A program that is being written.
struct Program<'a> {
    w: Writer,
    access: Access,
    options: OffloadOptions<'a>,
    /// Whether frames are cut after their headers.
    trims: bool,
    ends: Ends,
}

/// Where what was decided of a frame is carried out.
#[derive(Clone, Copy)]
struct Ends {
    unclear: Place,
    wanted: Place,
    filtered: Place,
    counted: Place,
    /// What comes after counting does not ask what headers the frame has: so the verifier need not
    /// follow that for frames of each kind apart.
    full: Place,
    /// The run ends.
    ended: Place,
    /// The frame is none of the capture's.
    refused: Place,
}

impl<'a> Program<'a> {
    fn new(options: OffloadOptions<'a>, trims: bool) -> Program<'a> {
        let mut w = Writer::new();
        let ends = Ends {
            unclear: w.label("unclear"),
            wanted: w.label("wanted"),
            filtered: w.label("filtered"),
            counted: w.label("counted"),
            full: w.label("full"),
            ended: w.label("ended"),
            refused: w.label("refused"),
        };
        Program { w, access: Access { hook: options.hook }, options, trims, ends }
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

    /// Asks each pipeline whether it wants the frame. Where none does, those count it that count.
    fn decide(&mut self, pipelines: &[Pipeline]) -> Result<(), NotOffloaded> {
        let all = pipelines.iter().filter_map(|pipeline| pipeline.counting.as_ref()).collect();
        let count = CountAll { all, access: self.access };
        count.begin(&mut self.w);
        let mut number = 0;
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
            if pipeline.counting.is_some() {
                count.note(&mut self.w, number);
                number += 1;
            } else {
                self.w.jump(self.ends.wanted);
            }
            self.w.bind(next);
        }
        if number == 0 {
            self.w.jump(self.ends.filtered);
            return Ok(());
        }
        let Ends { full, ended, filtered, counted, .. } = self.ends;
        count.write(&mut self.w, CountEnds { full, ended, none: filtered }).map_err(|_| {
            NotOffloaded::Plan("an expression of what it counts nests too deep".to_owned())
        })?;
        self.w.jump(counted);
        Ok(())
    }

    /// Counts frames by what became of them, and ends.
    fn verdicts(&mut self) {
        let Ends { unclear, wanted, filtered, counted, full, ended, refused } = self.ends;
        for (place, count, up) in [
            (filtered, FrameCount::Filtered, Up::Nothing),
            (counted, FrameCount::Counted, Up::Nothing),
            (full, FrameCount::Full, Up::Whole),
            (ended, FrameCount::Wanted, Up::Whole),
            (wanted, FrameCount::Wanted, Up::Headers),
            (unclear, FrameCount::Unclear, Up::Whole),
        ] {
            self.w.bind(place);
            self.count(count);
            self.return_bytes(up);
        }
        self.w.bind(refused);
        self.return_bytes(Up::Nothing);
    }

    /// Returns how many bytes of the frame go up. A socket takes no more than the snap length.
    fn return_bytes(&mut self, up: Up) {
        let most = match (up, self.options.hook) {
            (Up::Nothing, _) => 0,
            (_, Hook::Socket) => i32::try_from(self.options.snaplen).unwrap_or(WHOLE),
            (_, Hook::Tcx | Hook::Xdp) => WHOLE,
        };
        let w = &mut self.w;
        w.mov(R0, most);
        if up == Up::Headers && self.trims {
            let (ip, all) = (w.label("ip_headers"), w.label("all_bytes"));
            w.jump_if(Cond::Set, FACTS, Facts::IPV4.and(Facts::IPV6).0, ip);
            w.jump(all);
            w.bind(ip);
            get(w, R1, Slot::L3);
            get(w, R2, Slot::IpHeader);
            w.alu(Alu::Add, R1, R2).alu(Alu::Add, R1, TRANSPORT_KEPT);
            w.jump_if(Cond::Gt, R1, R0, all).mov(R0, R1);
            w.jump(all);
            w.bind(all);
        }
        w.exit();
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

/// How much of a frame goes up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Up {
    Nothing,
    /// Its headers, if that is all that workers need.
    Headers,
    Whole,
}

/// The type of packets that the machine sends, from `linux/if_packet.h`.
const PACKET_OUTGOING: i32 = 4;
