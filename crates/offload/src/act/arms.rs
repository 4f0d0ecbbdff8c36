//! From the arms of a plan to those that the kernel decides.

use super::{DROP, Outcome, deed_of};
use crate::lower::{Columns, lower, lower_test, upper_bound};
use crate::options::{KernelOutlet, OutletPlace};
use crate::value::Test;
use weir_packet::egress::Outlet;
use weir_plan::Expr;
use weir_plan::ends::{Act, Arm, Edit, To, text_word};

/// Reads the arms of a stage.
pub(super) struct Reader<'a> {
    pub(super) columns: &'a Columns,
    pub(super) outlets: &'a [KernelOutlet],
    /// Whether rows that the stage does not end are wanted.
    pub(super) goes_on: bool,
    /// Why frames go up, the first reason.
    pub(super) why: Option<String>,
}

impl Reader<'_> {
    /// Notes why frames go up.
    fn up(&mut self, why: String) -> Outcome {
        self.why.get_or_insert(why);
        Outcome::Up
    }

    /// What becomes of frames whose rows go on.
    pub(super) fn going_on(&mut self) -> Outcome {
        if self.goes_on {
            return self.up("later stages need the rows of packets that go on".to_owned());
        }
        Outcome::Nothing
    }

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
        let act = match &arm.acts[..] {
            [] if arm.next => return self.going_on(),
            [] => return Outcome::Nothing,
            [act] => act,
            _ => return self.up("the kernel sends a packet to one output only".to_owned()),
        };
        if arm.next && self.goes_on {
            return self.going_on();
        }
        self.act(act)
    }

    fn act(&mut self, act: &Act) -> Outcome {
        if let Some(edit) = act.edits.first() {
            let word = match edit {
                Edit::Trim(_) => "trim",
                Edit::Tag(_) => "tag",
                Edit::Anonymize(_) => "anonymize",
            };
            return self.up(format!("the kernel does not run `{word}`"));
        }
        match &act.to {
            To::Drop => Outcome::Deed(DROP),
            To::Pass => self.outlet(&Outlet::Pass),
            To::Forward(name) => self.outlet(&Outlet::Named(name.clone())),
            To::Broadcast(names) => match &names[..] {
                [one] => self.outlet(&Outlet::Named(one.clone())),
                _ => self.up("the kernel sends a packet to one output only".to_owned()),
            },
            To::Steer { keys, outputs } => self.steer(keys, outputs),
        }
    }

    fn steer(&mut self, keys: &[Expr], outputs: &[String]) -> Outcome {
        let keys = keys.iter().map(|key| lower(key, self.columns)).collect();
        let keys = match keys {
            Ok(keys) => keys,
            Err(why) => return self.up(why),
        };
        let mut deeds = Vec::new();
        for name in outputs {
            match self.outlet(&Outlet::Named(name.clone())) {
                Outcome::Deed(deed) => deeds.push((text_word(name.as_bytes()), deed)),
                _ => return Outcome::Up,
            }
        }
        Outcome::Steer(keys, deeds)
    }

    /// What is done with frames for an outlet.
    fn outlet(&mut self, outlet: &Outlet) -> Outcome {
        match self.outlets.iter().position(|known| known.outlet == *outlet) {
            None => self.up(format!("the kernel does not know where {outlet} is")),
            Some(n) => match &self.outlets[n].place {
                OutletPlace::UserSpace(why) => self.up(why.clone()),
                _ => Outcome::Deed(deed_of(n)),
            },
        }
    }
}
