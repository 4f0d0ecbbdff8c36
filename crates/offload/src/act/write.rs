//! The code that decides and does.

use super::acting::Acting;
use super::deed::{Deed, Edits, Outcome};
use super::routes::Routes;
use crate::emit::{Emit, TooDeep, Ways};
use crate::frame::{Access, CONTEXT, DROPS, EDITS, HANDED, Slot, WAY, get};
use crate::options::{KernelOutlet, OutletPlace};
use crate::program::ActionMemory;
use crate::writer::{Place, Writer};
use weir_ebpf::{Alu, Cond, EbpfInstruction, Helper, Reg::*, Size};
use weir_packet::vlan;

/// Bytes of a VLAN tag.
const TAG_LEN: i32 = vlan::TAG_LEN as i32;

/// Of `struct xdp_md`.
pub(super) const DATA: i16 = 0;
pub(super) const DATA_END: i16 = 4;

/// Where the halves of the word of [`Edits`] are on the stack.
pub(super) const TAG: i16 = EDITS + if cfg!(target_endian = "little") { 0 } else { 4 };
pub(super) const MOST: i16 = EDITS + if cfg!(target_endian = "little") { 4 } else { 0 };

/// Bytes of the addresses of an Ethernet frame, after which a tag stands.
const ADDRESSES: i16 = 12;

/// Where frames go on.
#[derive(Clone, Copy)]
pub(crate) struct ActEnds {
    /// The pipeline is done with the frame, and others are asked.
    pub(crate) next: Place,
    /// The frame goes up.
    pub(crate) up: Place,
}

/// All stages that do something with frames.
pub(crate) struct ActAll<'a> {
    pub(crate) outlets: &'a [KernelOutlet],
    pub(crate) access: Access,
    /// The memory in which deeds are counted, and its number among the maps.
    pub(crate) memory: ActionMemory,
    pub(crate) map: i32,
    /// Where frames may go; none, where there is no such stage.
    pub(crate) routes: Option<&'a Routes>,
}

impl ActAll<'_> {
    /// Begins: nothing is done.
    pub(crate) fn begin(&self, w: &mut Writer) {
        if self.routes.is_some() {
            w.store(Size::DW, R10, HANDED, 0).store(Size::DW, R10, DROPS, 0);
            w.store(Size::DW, R10, EDITS, 0);
        }
    }

    /// Decides what a stage does with the frame, and goes on after this code where later stages see
    /// it. Uses `R0` to `R5`.
    pub(crate) fn decide(
        &self,
        w: &mut Writer,
        acting: &Acting,
        ends: ActEnds,
    ) -> Result<(), TooDeep> {
        let on = w.label("goes_on");
        for arm in &acting.arms {
            let (takes, other) = (w.label("arm"), w.label("next_arm"));
            let ways = Ways { yes: takes, no: other, absent: other };
            Emit::new(w, self.access).condition(&arm.when, ways)?;
            w.bind(takes);
            self.outcome(w, &arm.outcome, on, ends)?;
            w.bind(other);
        }
        self.outcome(w, &acting.rest, on, ends)?;
        w.bind(on);
        Ok(())
    }

    fn outcome(
        &self,
        w: &mut Writer,
        outcome: &Outcome,
        on: Place,
        ends: ActEnds,
    ) -> Result<(), TooDeep> {
        match outcome {
            Outcome::Up => w.jump(ends.up),
            Outcome::Deeds { deeds, goes_on } => {
                for deed in deeds {
                    self.deed(w, deed, ends.up)?;
                }
                w.jump(if *goes_on { on } else { ends.next });
            }
        }
        Ok(())
    }

    /// Notes that this is done with the frame.
    fn deed(&self, w: &mut Writer, deed: &Deed, up: Place) -> Result<(), TooDeep> {
        match deed {
            Deed::Drop => {
                w.load(Size::DW, R1, R10, DROPS).alu(Alu::Add, R1, 1);
                w.store(Size::DW, R10, DROPS, R1);
            }
            Deed::Send(outlet, edits) => self.hand(w, (*outlet, *edits), up),
            Deed::Steer(key, outputs, edits) => {
                let numbers = outputs.iter().map(|(word, n)| (*word, *n as i32));
                Emit::new(w, self.access).steer(key, &numbers.collect::<Vec<_>>())?;
                let steered = w.label("steered");
                for (_, outlet) in outputs {
                    let other = w.label("another_output");
                    w.jump_if(Cond::Ne, R0, *outlet as i32, other);
                    self.hand(w, (*outlet, *edits), up);
                    w.jump(steered);
                    w.bind(other);
                }
                w.jump(up);
                w.bind(steered);
            }
        }
        Ok(())
    }

    /// Notes that an outlet gets the frame. Goes on at `up` where it gets the frame already, or
    /// does not take it, or another outlet gets it with other edits. Uses `R1` and `R2`.
    fn hand(&self, w: &mut Writer, (outlet, edits): (usize, Edits), up: Place) {
        let Some(routes) = self.routes.filter(|routes| routes.may(outlet, edits)) else {
            return w.jump(up);
        };
        self.fits(w, (outlet, edits), up);
        if routes.edits() {
            let (first, same) = (w.label("first_outlet"), w.label("same_edits"));
            w.load(Size::DW, R1, R10, HANDED).constant(R2, edits.word());
            w.jump_if(Cond::Eq, R1, 0, first);
            w.load(Size::DW, R1, R10, EDITS).jump_if(Cond::Ne, R1, R2, up);
            w.jump(same);
            w.bind(first);
            w.store(Size::DW, R10, EDITS, R2);
            w.bind(same);
        }
        w.load(Size::DW, R1, R10, HANDED).constant(R2, (1_u64 << outlet).cast_signed());
        w.jump_if(Cond::Set, R1, R2, up).alu(Alu::Or, R1, R2);
        w.store(Size::DW, R10, HANDED, R1);
    }

    /// Goes on at `up` where an outlet does not take the frame once it is edited. Uses `R1` and
    /// `R2`.
    fn fits(&self, w: &mut Writer, (outlet, edits): (usize, Edits), up: Place) {
        if !matches!(self.outlets[outlet].place, OutletPlace::Interface) {
            return;
        }
        let offset = self.memory.longest(outlet) as u32 * 8;
        w.push(EbpfInstruction::LoadMapValue { dst: R1, fd: self.map, offset });
        w.load(Size::DW, R1, R1, 0);
        let fits = w.label("fits");
        get(w, R2, Slot::Len);
        if let Some(most) = edits.most {
            let short = w.label("short");
            let most = i32::from(most) - edits.tag_bytes();
            w.jump_if(Cond::Le, R2, most, short).mov(R2, most);
            w.bind(short);
        }
        if edits.tag.is_some() {
            // The tag goes besides, and one more counts.
            w.jump_if(Cond::Gt, R2, R1, up);
            return;
        }
        w.jump_if(Cond::Le, R2, R1, fits).alu(Alu::Sub, R2, TAG_LEN).jump_if(Cond::Gt, R2, R1, up);
        get(w, R2, Slot::Tags);
        w.jump_if(Cond::Eq, R2, 0, up);
        w.bind(fits);
    }

    /// Finds the route to all outlets that get the frame, and leaves on the stack what the program
    /// returns. Goes on at `none` where there is no such route. Uses `R1` and `R2`.
    pub(crate) fn find_route(&self, w: &mut Writer, none: Place) {
        let Some(routes) = self.routes else { return };
        let found = w.label("route");
        w.load(Size::DW, R1, R10, HANDED).constant(R2, routes.sends.cast_signed());
        w.alu(Alu::And, R1, R2);
        for (outlets, way) in routes.all() {
            let other = w.label("another_route");
            w.constant(R2, outlets.cast_signed()).jump_if(Cond::Ne, R1, R2, other);
            w.store(Size::DW, R10, WAY, way);
            w.jump(found);
            w.bind(other);
        }
        w.jump(none);
        w.bind(found);
    }

    /// Puts the tag on a frame that is sent. Goes on at `up` where there is no room for it. Uses
    /// `R0` to `R5`.
    pub(crate) fn put_tag(&self, w: &mut Writer, up: Place) {
        if !self.routes.is_some_and(Routes::tags) {
            return;
        }
        let (tagged, changed) = (w.label("tagged"), w.label("addresses"));
        w.load(Size::W, R1, R10, TAG).jump_if(Cond::Eq, R1, 0, tagged);
        w.load(Size::DW, R1, R10, WAY).jump_if(Cond::Eq, R1, 0, tagged);
        w.mov(R1, CONTEXT).mov(R2, -TAG_LEN).call(Helper::XDP_ADJUST_HEAD);
        w.jump_if(Cond::Ne, R0, 0, up);
        w.load(Size::W, R1, CONTEXT, DATA).load(Size::W, R2, CONTEXT, DATA_END);
        w.mov(R3, R1).alu(Alu::Add, R3, i32::from(ADDRESSES) + TAG_LEN);
        w.jump_if(Cond::Le, R3, R2, changed);
        // Only the verifier believes that it gets here: a frame has an Ethernet header.
        w.mov(R0, 0);
        w.exit();
        w.bind(changed);
        for (size, at) in [(Size::W, 0), (Size::W, 4), (Size::W, 8)] {
            w.load(size, R3, R1, at + TAG_LEN as i16).store(size, R1, at, R3);
        }
        w.load(Size::W, R3, R10, TAG).store(Size::W, R1, ADDRESSES, R3);
        w.jump(tagged);
        w.bind(tagged);
    }

    /// Counts the deeds, and goes on at `none` where there are none. Uses `R0` to `R5`.
    pub(crate) fn count(&self, w: &mut Writer, cpus: u32, none: Place) {
        let Some(routes) = self.routes else { return w.jump(none) };
        let (some, counted) = (w.label("some_deed"), w.label("deeds_counted"));
        w.load(Size::DW, R0, R10, HANDED).jump_if(Cond::Ne, R0, 0, some);
        w.load(Size::DW, R0, R10, DROPS).jump_if(Cond::Ne, R0, 0, some);
        w.jump(none);
        w.bind(some);
        w.call(Helper::GET_SMP_PROCESSOR_ID);
        w.jump_if(Cond::Ge, R0, cpus.max(1) as i32, counted);
        w.alu(Alu::Mul, R0, self.memory.cpu_words() as i32 * 8);
        let offset = self.memory.counts() as u32 * 8;
        w.push(EbpfInstruction::LoadMapValue { dst: R5, fd: self.map, offset });
        w.alu(Alu::Add, R5, R0);
        get(w, R2, Slot::Len);
        let undropped = w.label("undropped");
        w.load(Size::DW, R1, R10, DROPS).jump_if(Cond::Eq, R1, 0, undropped);
        w.load(Size::DW, R4, R5, 0).alu(Alu::Add, R4, R1).store(Size::DW, R5, 0, R4);
        w.alu(Alu::Mul, R1, R2);
        w.load(Size::DW, R4, R5, 8).alu(Alu::Add, R4, R1).store(Size::DW, R5, 8, R4);
        w.bind(undropped);
        if routes.tags() {
            let untagged = w.label("untagged");
            w.load(Size::W, R1, R10, TAG).jump_if(Cond::Eq, R1, 0, untagged);
            w.alu(Alu::Add, R2, TAG_LEN);
            w.bind(untagged);
        }
        for outlet in routes.handed_to() {
            let (gets, next) = (w.label("gets"), w.label("next_outlet"));
            w.load(Size::DW, R1, R10, HANDED).constant(R3, (1_u64 << outlet).cast_signed());
            w.jump_if(Cond::Set, R1, R3, gets);
            w.jump(next);
            w.bind(gets);
            let at = 16 * (1 + outlet as i16);
            w.load(Size::DW, R4, R5, at).alu(Alu::Add, R4, 1).store(Size::DW, R5, at, R4);
            let at = at + 8;
            w.load(Size::DW, R4, R5, at).alu(Alu::Add, R4, R2).store(Size::DW, R5, at, R4);
            w.bind(next);
        }
        w.jump(counted);
        w.bind(counted);
    }

    /// Returns where the frame goes. Uses `R0`.
    pub(crate) fn return_way(&self, w: &mut Writer) {
        w.load(Size::DW, R0, R10, WAY);
        w.exit();
    }
}
