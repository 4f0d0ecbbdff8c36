//! The code that decides and does.

use super::{Acting, DROP, Outcome};
use crate::emit::{Emit, TooDeep, Ways};
use crate::frame::{Access, DEEDS, Slot, WAY, get};
use crate::options::{KernelOutlet, OutletPlace};
use crate::program::{ActionMemory, TO_HOST, redirect_to};
use crate::writer::{Place, Writer};
use weir_ebpf::{Alu, Cond, EbpfInstruction, Helper, Reg::*, Size};

/// Bytes of a VLAN tag, by which a frame may be longer than an outlet says.
const TAG: i32 = 4;

/// Where frames go on.
#[derive(Clone, Copy)]
pub(crate) struct ActEnds {
    /// The pipeline is done with the frame, and others are asked.
    pub(crate) next: Place,
    /// The frame goes up.
    pub(crate) up: Place,
}

/// All pipelines that do something with frames.
pub(crate) struct ActAll<'a> {
    pub(crate) outlets: &'a [KernelOutlet],
    pub(crate) access: Access,
    /// The memory in which deeds are counted, and its number among the maps.
    pub(crate) memory: ActionMemory,
    pub(crate) map: i32,
    /// How many pipelines there are.
    pub(crate) pipelines: usize,
}

impl ActAll<'_> {
    /// Begins: nothing is done.
    pub(crate) fn begin(&self, w: &mut Writer) {
        for number in 0..self.pipelines {
            w.store(Size::DW, R10, deed_place(number), 0);
        }
    }

    /// Decides what pipeline `number` of these does with the frame. Uses `R0` to `R5`.
    pub(crate) fn decide(
        &self,
        w: &mut Writer,
        number: usize,
        acting: &Acting,
        ends: ActEnds,
    ) -> Result<(), TooDeep> {
        for arm in &acting.arms {
            let (takes, other) = (w.label("arm"), w.label("next_arm"));
            let ways = Ways { yes: takes, no: other, absent: other };
            Emit::new(w, self.access).condition(&arm.when, ways)?;
            w.bind(takes);
            self.outcome(w, number, &arm.outcome, ends)?;
            w.bind(other);
        }
        self.outcome(w, number, &acting.rest, ends)
    }

    fn outcome(
        &self,
        w: &mut Writer,
        number: usize,
        outcome: &Outcome,
        ends: ActEnds,
    ) -> Result<(), TooDeep> {
        match outcome {
            Outcome::Up => w.jump(ends.up),
            Outcome::Nothing => w.jump(ends.next),
            Outcome::Deed(deed) => {
                self.fits(w, *deed, ends.up);
                w.store(Size::DW, R10, deed_place(number), *deed);
                w.jump(ends.next);
            }
            Outcome::Steer(key, outputs) => {
                Emit::new(w, self.access).steer(key, outputs)?;
                w.store(Size::DW, R10, deed_place(number), R0);
                for &(_, deed) in outputs {
                    let other = w.label("another_output");
                    w.jump_if(Cond::Ne, R0, deed, other);
                    self.fits(w, deed, ends.up);
                    w.jump(ends.next);
                    w.bind(other);
                }
                w.jump(ends.up);
            }
        }
        Ok(())
    }

    /// Goes on at `up` where the outlet of a deed does not take the frame. Uses `R1` and `R2`.
    fn fits(&self, w: &mut Writer, deed: i32, up: Place) {
        let Some(n) = usize::try_from(deed - DROP - 1).ok() else { return };
        if !matches!(self.outlets[n].place, OutletPlace::Interface) {
            return;
        }
        let offset = self.memory.longest(n) as u32 * 8;
        w.push(EbpfInstruction::LoadMapValue { dst: R1, fd: self.map, offset });
        w.load(Size::DW, R1, R1, 0);
        let fits = w.label("fits");
        get(w, R2, Slot::Len);
        w.jump_if(Cond::Le, R2, R1, fits).alu(Alu::Sub, R2, TAG).jump_if(Cond::Gt, R2, R1, up);
        get(w, R2, Slot::Tags);
        w.jump_if(Cond::Eq, R2, 0, up);
        w.bind(fits);
    }

    /// Finds the one way that the frame goes, and leaves its deed on the stack: 0 where there is
    /// none. Goes on at `several` where there are several. Uses `R0` and `R1`.
    pub(crate) fn one_way(&self, w: &mut Writer, several: Place) {
        w.store(Size::DW, R10, WAY, 0);
        for number in 0..self.pipelines {
            let next = w.label("no_way");
            w.load(Size::DW, R0, R10, deed_place(number)).jump_if(Cond::Le, R0, DROP, next);
            w.load(Size::DW, R1, R10, WAY).jump_if(Cond::Ne, R1, 0, several);
            w.store(Size::DW, R10, WAY, R0);
            w.bind(next);
        }
    }

    /// Counts the deeds, and goes on at `none` where there are none. Uses `R0` to `R5`.
    pub(crate) fn count(&self, w: &mut Writer, cpus: u32, none: Place) {
        let (some, counted) = (w.label("some_deed"), w.label("deeds_counted"));
        for number in 0..self.pipelines {
            w.load(Size::DW, R0, R10, deed_place(number)).jump_if(Cond::Ne, R0, 0, some);
        }
        w.jump(none);
        w.bind(some);
        w.call(Helper::GET_SMP_PROCESSOR_ID);
        w.jump_if(Cond::Ge, R0, cpus.max(1) as i32, counted);
        w.alu(Alu::Mul, R0, self.memory.cpu_words() as i32 * 8);
        let offset = self.memory.counts() as u32 * 8;
        w.push(EbpfInstruction::LoadMapValue { dst: R5, fd: self.map, offset });
        w.alu(Alu::Add, R5, R0);
        get(w, R2, Slot::Len);
        for number in 0..self.pipelines {
            let next = w.label("next_deed");
            w.load(Size::DW, R1, R10, deed_place(number)).jump_if(Cond::Eq, R1, 0, next);
            w.alu(Alu::Sub, R1, 1);
            w.jump_if(Cond::Gt, R1, self.outlets.len() as i32, next);
            w.alu(Alu::Mul, R1, 16).mov(R3, R5).alu(Alu::Add, R3, R1);
            w.load(Size::DW, R4, R3, 0).alu(Alu::Add, R4, 1).store(Size::DW, R3, 0, R4);
            w.load(Size::DW, R4, R3, 8).alu(Alu::Add, R4, R2).store(Size::DW, R3, 8, R4);
            w.bind(next);
        }
        w.jump(counted);
        w.bind(counted);
    }

    /// Returns where the frame goes. Uses `R0` and `R1`.
    pub(crate) fn return_way(&self, w: &mut Writer) {
        w.load(Size::DW, R1, R10, WAY);
        for (n, outlet) in self.outlets.iter().enumerate() {
            let way = match outlet.place {
                OutletPlace::Interface => redirect_to(n),
                OutletPlace::Host => TO_HOST,
                OutletPlace::Nowhere | OutletPlace::UserSpace(_) => continue,
            };
            let other = w.label("another_way");
            w.jump_if(Cond::Ne, R1, super::deed_of(n), other).mov(R0, way);
            w.exit();
            w.bind(other);
        }
        w.mov(R0, 0);
        w.exit();
    }
}

/// Where the deed of a pipeline is on the stack.
fn deed_place(number: usize) -> i16 {
    DEEDS - 8 * number as i16
}
