//! From the arms of a plan to those that the kernel decides.

use super::deed::{Deed, Edits, OUTLETS_MAX, Outcome};
use crate::limits::{LENGTH_MAX, LENGTH_MIN};
use crate::lower::{Columns, lower, lower_test, upper_bound};
use crate::options::{HandOut, KernelOutlet, OutletPlace};
use crate::value::Test;
use weir_packet::egress::Outlet;
use weir_packet::vlan::TAG_LEN;
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

    /// The deeds for the frames of an arm, or why the kernel can't do all of them.
    fn deeds(&self, acts: &[Act]) -> Result<Vec<Deed>, String> {
        let mut deeds = Vec::new();
        for act in acts {
            self.act(act, &mut deeds)?;
        }
        let mut edits = deeds.iter().filter_map(Deed::edits);
        if let Some(first) = edits.next()
            && edits.any(|edits| edits != first)
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
        match &act.to {
            To::Drop => {
                // A tag counts among the bytes that are dropped, and a packet that can't be
                // anonymized is withheld, not dropped.
                for edit in &act.edits {
                    match edit {
                        Edit::Tag(_) => {
                            return Err("the kernel puts no tag on what it drops".to_owned());
                        }
                        Edit::Anonymize(_) => return Err(ANONYMIZE.to_owned()),
                        Edit::Trim(_) => {}
                    }
                }
                deeds.push(Deed::Drop);
            }
            To::Pass => deeds.push(self.send(self.outlet(&Outlet::Pass)?, &act.edits)?),
            To::Forward(name) => deeds.push(self.send(self.output(name)?, &act.edits)?),
            To::Broadcast(names) => {
                for name in names {
                    deeds.push(self.send(self.output(name)?, &act.edits)?);
                }
            }
            To::Steer { keys, outputs } => deeds.push(self.steer(keys, outputs, &act.edits)?),
        }
        Ok(())
    }

    fn send(&self, outlet: usize, edits: &[Edit]) -> Result<Deed, String> {
        Ok(Deed::Send(outlet, self.edits(edits, &[outlet])?))
    }

    /// The edits to a frame before these outlets get it, or why the kernel does not do them.
    fn edits(&self, edits: &[Edit], outlets: &[usize]) -> Result<Edits, String> {
        let is = |place: OutletPlace| outlets.iter().any(|n| self.outlets()[*n].place == place);
        let (mut tag, mut most) = (None, None);
        for edit in edits {
            match *edit {
                Edit::Tag(_) if tag.is_some() => {
                    return Err("the kernel puts one tag on a packet".to_owned());
                }
                Edit::Tag(id) => {
                    tag = Some(id);
                    most = most.map(|most: u32| most.saturating_add(TAG_LEN as u32));
                }
                Edit::Trim(n) => most = Some(most.map_or(n, |most| most.min(n))),
                Edit::Anonymize(_) => return Err(ANONYMIZE.to_owned()),
            }
        }
        if tag.is_none() && most.is_none() {
            return Ok(Edits::NONE);
        }
        if is(OutletPlace::Host) {
            return Err("the kernel gives the host packets as they came".to_owned());
        }
        if !self.hand_out.edits {
            return Err("the kernel edits no packets where it counts some".to_owned());
        }
        let (most, other) = match most {
            Some(most) if !(LENGTH_MIN..=LENGTH_MAX).contains(&most) => (None, Some(most)),
            most => (most, None),
        };
        // An outlet that only counts a frame counts its bytes on the wire.
        if let Some(other) = other.filter(|_| is(OutletPlace::Interface)) {
            return Err(format!("the kernel does not shorten packets to {other} bytes"));
        }
        Ok(Edits { tag, most: most.map(|most| most as u16) })
    }

    fn outlets(&self) -> &[KernelOutlet] {
        self.hand_out.outlets
    }

    fn steer(&self, keys: &[Expr], outputs: &[String], edits: &[Edit]) -> Result<Deed, String> {
        let keys = keys.iter().map(|key| lower(key, self.columns)).collect::<Result<_, _>>()?;
        let numbers =
            outputs.iter().map(|name| self.output(name)).collect::<Result<Vec<_>, _>>()?;
        let edits = self.edits(edits, &numbers)?;
        let words = outputs.iter().map(|name| text_word(name.as_bytes()));
        Ok(Deed::Steer(keys, words.zip(numbers).collect(), edits))
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

/// Why frames go up in which addresses get other names.
const ANONYMIZE: &str = "the kernel does not run `anonymize`";

/// Why frames go up that outlets get with several edits.
pub(crate) const SAME: &str =
    "the kernel sends the same packet to all outputs, with the same edits";

/// Why frames go up that an outlet gets twice.
pub(crate) const TWICE: &str = "the kernel sends a packet to an output once";
