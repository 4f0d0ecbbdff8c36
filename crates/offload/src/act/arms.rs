//! From the arms of a plan to those that the kernel decides.

use super::{Deed, OUTLETS_MAX, Outcome};
use crate::lower::{Columns, lower, lower_test, upper_bound};
use crate::options::{HandOut, KernelOutlet, OutletPlace};
use crate::value::Test;
use weir_packet::egress::Outlet;
use weir_plan::Expr;
use weir_plan::ends::{Act, Arm, Edit, To, text_word};

/// Reads the arms of a stage.
pub(super) struct Reader<'a> {
    pub(super) columns: &'a Columns,
    pub(super) hand_out: HandOut<'a>,
    /// Why frames go up, the first reason.
    pub(super) why: Option<String>,
}

impl Reader<'_> {
    /// The condition of an arm, or one that holds wherever it does; whether it is the former.
    pub(super) fn condition(&mut self, when: &Expr) -> Option<(Test, bool)> {
        let why = match lower_test(when, self.columns) {
            Ok(test) => return Some((test, true)),
            Err(why) => why,
        };
        let bound = upper_bound(when, self.columns);
        self.why.get_or_insert(why);
        Some((bound?, false))
    }

    pub(super) fn outcome(&mut self, arm: &Arm) -> Outcome {
        match self.deeds(&arm.acts) {
            Ok(deeds) => Outcome::Deeds { deeds, goes_on: arm.next },
            Err(why) => {
                self.why.get_or_insert(why);
                Outcome::Up
            }
        }
    }

    /// What is done with the frames of an arm, or why the kernel can't do all of it.
    fn deeds(&self, acts: &[Act]) -> Result<Vec<Deed>, String> {
        let mut deeds = Vec::new();
        for act in acts {
            self.act(act, &mut deeds)?;
        }
        let mut tags = deeds.iter().filter_map(Deed::tag);
        if let Some(first) = tags.next()
            && tags.any(|tag| tag != first)
        {
            return Err(SAME.to_owned());
        }
        let (mut all, mut sends) = (0_u64, 0);
        for deed in &deeds {
            let Deed::Send(n, _) = deed else { continue };
            if all >> n & 1 != 0 {
                return Err(TWICE.to_owned());
            }
            all |= 1 << n;
            let sent =
                |place: &OutletPlace| matches!(place, OutletPlace::Interface | OutletPlace::Host);
            sends += usize::from(sent(&self.outlets()[*n].place));
        }
        let to_host = |n: usize| self.outlets()[n].place == OutletPlace::Host;
        if sends > 1
            && (0..self.outlets().len().min(OUTLETS_MAX)).any(|n| all >> n & 1 != 0 && to_host(n))
        {
            return Err("the kernel gives a packet either to the host or to interfaces".to_owned());
        }
        if sends > 1 && !self.hand_out.copies {
            return Err(
                "before Linux 5.13, the kernel sends a packet to one output only".to_owned()
            );
        }
        Ok(deeds)
    }

    fn act(&self, act: &Act, deeds: &mut Vec<Deed>) -> Result<(), String> {
        let tag = self.tag(act)?;
        match &act.to {
            To::Drop => deeds.push(Deed::Drop),
            To::Pass => deeds.push(Deed::Send(self.outlet(&Outlet::Pass)?, tag)),
            To::Forward(name) => deeds.push(Deed::Send(self.output(name)?, tag)),
            To::Broadcast(names) => {
                for name in names {
                    deeds.push(Deed::Send(self.output(name)?, tag));
                }
            }
            To::Steer { keys, outputs } => deeds.push(self.steer(keys, outputs, tag)?),
        }
        Ok(())
    }

    /// The tag that a frame gets before it goes out, or why the kernel does not edit it so.
    fn tag(&self, act: &Act) -> Result<Option<u16>, String> {
        let id = match act.edits[..] {
            [] => return Ok(None),
            [Edit::Tag(id)] => id,
            [Edit::Tag(_), Edit::Tag(_), ..] => {
                return Err("the kernel puts one tag on a packet".to_owned());
            }
            [Edit::Trim(_), ..] | [_, Edit::Trim(_), ..] => {
                return Err("the kernel does not run `trim`".to_owned());
            }
            [Edit::Anonymize(_), ..] | [_, Edit::Anonymize(_), ..] => {
                return Err("the kernel does not run `anonymize`".to_owned());
            }
        };
        let to_host = |outlet: &Outlet| {
            let place = self.outlets().iter().find(|known| known.outlet == *outlet);
            place.is_some_and(|known| known.place == OutletPlace::Host)
        };
        let why = match &act.to {
            To::Drop => "the kernel puts no tag on what it drops",
            to if to.outlets().iter().any(to_host) => {
                "the kernel puts no tag on what the host gets"
            }
            _ if !self.hand_out.tags => "the kernel puts no tag on packets where it counts some",
            _ => return Ok(Some(id)),
        };
        Err(why.to_owned())
    }

    fn outlets(&self) -> &[KernelOutlet] {
        self.hand_out.outlets
    }

    fn steer(&self, keys: &[Expr], outputs: &[String], tag: Option<u16>) -> Result<Deed, String> {
        let keys = keys.iter().map(|key| lower(key, self.columns)).collect::<Result<_, _>>()?;
        let output = |name: &String| Ok((text_word(name.as_bytes()), self.output(name)?));
        Ok(Deed::Steer(keys, outputs.iter().map(output).collect::<Result<_, String>>()?, tag))
    }

    fn output(&self, name: &str) -> Result<usize, String> {
        self.outlet(&Outlet::Named(name.to_owned()))
    }

    /// The number of an outlet to which the kernel sends, or why it does not.
    fn outlet(&self, outlet: &Outlet) -> Result<usize, String> {
        match self.outlets().iter().position(|known| known.outlet == *outlet) {
            None => Err(format!("the kernel does not know where {outlet} is")),
            Some(n) if n >= OUTLETS_MAX => {
                Err(format!("the kernel sends to {OUTLETS_MAX} outputs of a program, no more"))
            }
            Some(n) => match &self.outlets()[n].place {
                OutletPlace::UserSpace(why) => Err(why.clone()),
                _ => Ok(n),
            },
        }
    }
}

/// Why frames go up that outlets get with several tags.
pub(crate) const SAME: &str =
    "the kernel sends the same packet to all outputs, with or without tag";

/// Why frames go up that an outlet gets twice.
pub(crate) const TWICE: &str = "the kernel sends a packet to an output once";
