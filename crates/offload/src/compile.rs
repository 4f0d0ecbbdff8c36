//! From a plan to the program of its kernel level.

use crate::act::{ActAll, ActEnds, Routes};
use crate::count::{CONTROL_MAP, CountAll, CountEnds};
use crate::emit::{Emit, TooDeep, Ways};
use crate::facts::Facts;
use crate::frame::{Access, CONTEXT, SKB_IFINDEX, SKB_PACKET_TYPE, Slot, WANTED, get, if_fact};
use crate::hook::Hook;
use crate::options::{HandOut, NO_OUTLETS, NotOffloaded, OffloadOptions, Refuse, SNAPLEN_MIN};
use crate::prefix::{Pipeline, Rest, Step, asks_for_losses, makes_groups, pipelines};
use crate::program::{ActionMemory, Actions, FrameCount, KernelProgram, MapSpec, WHOLE};
use crate::scan::{ScanAll, ScanEnds};
use crate::states::StateTable;
use crate::table::{Control, Table, TableOptions};
use crate::trim::{TRANSPORT_KEPT, why_whole};
use crate::walk::{Rules, Walk};
use crate::writer::{Place, Writer};
use weir_ebpf::{Alu, Cond, EbpfInstruction, Helper, Reg::*, Size};
use weir_packet::source::LinkType;
use weir_plan::physical::{Physical, PipelineId, Prefix};

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
    let copies = options.copies;
    // A frame that finds no room in a table goes up as it came.
    let edits = tables.is_none() || !makes_groups(plan);
    let hand_out = match options.hook {
        Hook::Xdp => options.outlets.map(|outlets| HandOut { outlets, copies, edits }),
        Hook::Socket | Hook::Tcx => Err(NO_OUTLETS),
    };
    let hand_out = (hand_out, options.interface);
    let pipelines = pipelines(plan, tables.ok_or(options.without_groups), hand_out)?;
    let whole = why_whole(plan);
    // Of what the walk could tell, the program notes only what it asks for: the verifier then has
    // fewer kinds of frames to tell apart. So it is written twice.
    let acts = pipelines.iter().any(|pipeline| pipeline.prefix.acts);
    let hand_out = HandOut { outlets: options.outlets.unwrap_or_default(), copies, edits };
    let routes = acts.then(|| Routes::of(pipelines.iter().flat_map(Pipeline::acting), hand_out));
    let frames = (&pipelines[..], routes.as_ref());
    let asked = Program::write(*options, whole.is_none(), Facts::ALL, frames)?.w.asked();
    let program = Program::write(*options, whole.is_none(), asked, frames)?;
    let code = program.w.finish().map_err(|e| NotOffloaded::TooLong(e.to_string()))?;
    let counting = pipelines.iter().filter_map(Pipeline::counting);
    let tables: Vec<Table> = counting.map(|counting| counting.table.clone()).collect();
    let scans = pipelines.iter().flat_map(Pipeline::scans);
    let states: Vec<StateTable> = scans.map(|scanning| scanning.table.clone()).collect();
    let words = FrameCount::hand_up(cpus) + usize::from(options.may_change);
    let mut maps = vec![memory("frames", words)];
    if !tables.is_empty() || !states.is_empty() {
        maps.push(memory("control", Control { tables: tables.len() }.words()));
        maps.extend(tables.iter().map(|table| memory("groups", table.words())));
        maps.extend(states.iter().map(|table| memory("states", table.words())));
    }
    let actions = routes.as_ref().map(|routes| Actions {
        outlets: hand_out.outlets.to_vec(),
        sets: routes.sets(),
        memory: action_memory(options),
    });
    maps.extend(actions.iter().map(|actions| memory("actions", actions.memory.words())));
    let mut prefixes: Vec<Prefix> = pipelines.into_iter().map(|p| p.prefix).collect();
    if let Some(why) = routes.as_ref().and_then(Routes::lacks) {
        for prefix in prefixes.iter_mut().filter(|prefix| prefix.acts) {
            prefix.stopped_by.get_or_insert_with(|| why.clone());
        }
    }
    Ok(KernelProgram {
        hook: options.hook,
        code,
        maps,
        tables,
        states,
        actions,
        asks_for_losses: asks_for_losses(plan),
        whole,
        prefixes,
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

/// The layout of the memory in which a program counts what it does with frames.
fn action_memory(options: &OffloadOptions<'_>) -> ActionMemory {
    let outlets = options.outlets.unwrap_or_default().len();
    ActionMemory { outlets, cpus: options.cpus.max(1) as usize }
}

/// A condition or key needs more of the stack than there is.
fn too_deep(pipeline: PipelineId) -> NotOffloaded {
    NotOffloaded::Pipeline(pipeline, "its condition nests too deep".to_owned())
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
    /// Its way is on the stack.
    acted: Place,
    /// The code after counting does not ask what headers the frame has: so the verifier need not
    /// follow it for frames of each kind apart.
    full: Place,
    /// The run ends.
    ended: Place,
    /// The frame is none of the capture's.
    refused: Place,
}

impl<'a> Program<'a> {
    /// The program whose walk notes these facts.
    fn write(
        options: OffloadOptions<'a>,
        trims: bool,
        facts: Facts,
        (pipelines, routes): (&[Pipeline], Option<&Routes>),
    ) -> Result<Program<'a>, NotOffloaded> {
        let mut program = Program::new(options, trims);
        program.refuse();
        // A program that holds states of a frame's key has to hand them up with it.
        if options.may_change && pipelines.iter().all(|pipeline| pipeline.scans().next().is_none())
        {
            let ended = program.ends.ended;
            program.if_all_go_up(|w| w.jump(ended));
        }
        program.walk(facts);
        program.decide(pipelines, routes)?;
        Ok(program)
    }

    fn new(options: OffloadOptions<'a>, trims: bool) -> Program<'a> {
        let mut w = Writer::new();
        let ends = Ends {
            unclear: w.label("unclear"),
            wanted: w.label("wanted"),
            filtered: w.label("filtered"),
            counted: w.label("counted"),
            acted: w.label("acted"),
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

    fn walk(&mut self, facts: Facts) {
        let rules =
            Rules { facts, headers: self.options.headers, fragments: self.options.fragments };
        let unclear = self.ends.unclear;
        Walk { w: &mut self.w, access: self.access, rules, unclear }.write();
    }

    /// Asks each pipeline whether it wants the frame. Where none wants to see it, those count it
    /// that count, and it goes where they hand it.
    fn decide(
        &mut self,
        pipelines: &[Pipeline],
        routes: Option<&Routes>,
    ) -> Result<(), NotOffloaded> {
        let all = pipelines.iter().filter_map(Pipeline::counting).collect();
        let count = CountAll { all, access: self.access };
        let tables = count.all.len();
        let scan = ScanAll {
            all: pipelines.iter().flat_map(Pipeline::scans).collect(),
            access: self.access,
            map: CONTROL_MAP + 1 + tables as i32,
            control: (CONTROL_MAP, Control { tables }),
        };
        let shared = tables + scan.all.len();
        let map = if shared == 0 { CONTROL_MAP } else { CONTROL_MAP + 1 + shared as i32 };
        let outlets = self.options.outlets.unwrap_or_default();
        let memory = action_memory(&self.options);
        let act = ActAll { outlets, access: self.access, memory, map, routes };
        count.begin(&mut self.w);
        act.begin(&mut self.w);
        scan.begin(&mut self.w);
        if self.options.may_change && !scan.all.is_empty() {
            // Frames of a plan that hands packets out go up whole in any case.
            self.if_all_go_up(|w| {
                w.store(Size::DW, R10, WANTED, 1);
            });
        }
        let mut counts = 0;
        for pipeline in pipelines {
            let next = self.w.label("next");
            let ends = self.pipeline_ends(&scan);
            let id = pipeline.prefix.pipeline;
            self.steps(pipeline, (&scan, &act), (next, ends)).map_err(|_| too_deep(id))?;
            match pipeline.rest {
                Rest::Up => self.w.jump(ends.up),
                Rest::Done => self.w.jump(next),
                Rest::Count(_) => {
                    count.note(&mut self.w, counts);
                    counts += 1;
                }
            }
            self.note_up(ends, next, &scan);
            self.w.bind(next);
        }
        if !scan.all.is_empty() {
            self.w.load(Size::DW, R0, R10, WANTED);
            self.w.jump_if(Cond::Eq, R0, ROOM_LACKS, self.ends.full);
            self.w.jump_if(Cond::Ne, R0, 0, self.ends.wanted);
        }
        self.finish_frame(&count, &act, &scan)?;
        self.verdicts(&scan);
        Ok(())
    }

    /// Where a pipeline goes on that wants to see the frame: at the end, unless `scan`s of others
    /// are to hand their states up, too.
    fn pipeline_ends(&mut self, scan: &ScanAll<'_>) -> ScanEnds {
        match scan.all.is_empty() {
            true => ScanEnds { up: self.ends.wanted, full: self.ends.full },
            false => ScanEnds { up: self.w.label("pipeline_wants"), full: self.w.label("no_room") },
        }
    }

    /// Notes that the frame goes up, where others are asked all the same. Uses no register.
    fn note_up(&mut self, ends: ScanEnds, next: Place, scan: &ScanAll<'_>) {
        if scan.all.is_empty() {
            return;
        }
        self.w.jump(next);
        for (place, note) in [(ends.up, 1), (ends.full, ROOM_LACKS)] {
            self.w.bind(place);
            self.w.store(Size::DW, R10, WANTED, note);
            self.w.jump(next);
        }
    }

    /// Goes on at `next` unless all tests of a pipeline hold; folds frames in and hands them out on
    /// the way.
    fn steps(
        &mut self,
        pipeline: &Pipeline,
        (scan, act): (&ScanAll<'_>, &ActAll<'_>),
        (next, ends): (Place, ScanEnds),
    ) -> Result<(), TooDeep> {
        for step in &pipeline.steps {
            match step {
                Step::Test(test) => {
                    let passes = self.w.label("passes");
                    let ways = Ways { yes: passes, no: next, absent: next };
                    Emit::new(&mut self.w, self.access).condition(test, ways)?;
                    self.w.bind(passes);
                }
                Step::Scan(scanning) => scan.write(&mut self.w, scanning, ends)?,
                Step::Act(acting, _) => {
                    act.decide(&mut self.w, acting, ActEnds { next, up: ends.up })?;
                }
            }
        }
        Ok(())
    }

    /// Finishes a frame that no pipeline wants to see.
    fn finish_frame(
        &mut self,
        count: &CountAll<'_>,
        act: &ActAll<'_>,
        scan: &ScanAll<'_>,
    ) -> Result<(), NotOffloaded> {
        let Ends { wanted, full, ended, filtered, counted, acted, .. } = self.ends;
        act.find_route(&mut self.w, wanted);
        act.can_shorten(&mut self.w, wanted);
        act.put_tag(&mut self.w, wanted);
        act.shorten(&mut self.w);
        let uncounted = self.w.label("uncounted");
        if count.all.is_empty() {
            self.w.jump(uncounted);
        } else {
            count.write(&mut self.w, CountEnds { full, ended, none: uncounted }).map_err(|_| {
                NotOffloaded::Plan("an expression of what it counts nests too deep".to_owned())
            })?;
            self.act(act, counted);
        }
        self.w.bind(uncounted);
        self.act(act, filtered);
        if act.routes.is_some() {
            self.w.bind(acted);
            scan.keep(&mut self.w);
            self.count(FrameCount::Acted);
            act.return_way(&mut self.w);
        }
        Ok(())
    }

    /// Counts what is done with the frame; where that is nothing, goes on at `none`.
    fn act(&mut self, act: &ActAll<'_>, none: Place) {
        act.count(&mut self.w, self.options.cpus, none);
        self.w.jump(self.ends.acted);
    }

    /// Counts frames by what became of them, and ends.
    fn verdicts(&mut self, scan: &ScanAll<'_>) {
        let Ends { unclear, wanted, filtered, counted, full, ended, refused, .. } = self.ends;
        for (place, count, up) in [
            (filtered, FrameCount::Filtered, Up::Nothing),
            (counted, FrameCount::Counted, Up::Nothing),
            (full, FrameCount::Full, Up::Whole),
            (ended, FrameCount::Wanted, Up::Whole),
            (wanted, FrameCount::Wanted, Up::Headers),
            (unclear, FrameCount::Unclear, Up::Whole),
        ] {
            self.w.bind(place);
            match count {
                FrameCount::Unclear => {}
                _ if up == Up::Nothing => scan.keep(&mut self.w),
                _ => scan.hand_up(&mut self.w),
            }
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
            if_fact(w, Facts::IPV4.and(Facts::IPV6), ip);
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

    /// Does this while all frames are to go up.
    fn if_all_go_up(&mut self, then: impl FnOnce(&mut Writer)) {
        let go_on = self.w.label("as_pipelines_say");
        let offset = FrameCount::hand_up(self.options.cpus.max(1)) as u32 * 8;
        self.w.push(EbpfInstruction::LoadMapValue { dst: R1, fd: 0, offset });
        self.w.load(Size::DW, R0, R1, 0).jump_if(Cond::Eq, R0, 0, go_on);
        then(&mut self.w);
        self.w.jump(go_on);
        self.w.bind(go_on);
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

/// On the stack, that a frame goes up since a table has no room.
const ROOM_LACKS: i32 = 2;

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
