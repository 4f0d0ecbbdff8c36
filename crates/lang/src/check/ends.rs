//! Ends: where packets go, and how they look there.

use super::words::a;
use super::{Built, Checker};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::names::{Meaning, Scope};
use crate::tree::{Act, BranchArm, Expr as TreeExpr, ExprKind as Tree, Spanned};
use std::collections::BTreeSet;
use weir_packet::fields;
use weir_plan::ends::{Arm, Edit, Ends, To};
use weir_plan::limits::{ACTS_MAX, ARMS_MAX, EDITS_MAX};
use weir_plan::{Expr, ExprKind, Value};

/// VLAN ids that a tag may have: 0 says that there is none, and 4095 is reserved (IEEE 802.1Q).
const VLAN_IDS: std::ops::RangeInclusive<i64> = 1..=4094;

/// The acts of an arm so far.
struct Chain {
    edits: Vec<Edit>,
    /// Where the last edit is that no frame went out after.
    idle: Option<Span>,
    acts: Vec<weir_plan::ends::Act>,
    sound: bool,
}

impl<'t> Checker<'t> {
    /// A stage that does one thing with all packets.
    pub(super) fn act_stage(
        &mut self,
        built: &mut Built,
        act: &Act,
        span: Span,
    ) -> Option<weir_plan::Stage> {
        if !self.are_packets(&built.scope, word(act), span) {
            return None;
        }
        let mut chain = Chain::new(&built.scope);
        self.act(&built.scope, &mut chain, act, span);
        built.idle_edit = chain.idle.or(built.idle_edit.filter(|_| chain.acts.is_empty()));
        built.scope.edits = chain.edits;
        let next = act.is_open();
        if let Act::Anonymize { .. } = act {
            // Rows show what it did.
            built.idle_edit = None;
            self.anonymize_fields(&mut built.scope, span);
        }
        if !next {
            built.end = Some((span, word(act)));
        }
        let arms = vec![Arm { when: None, acts: chain.acts, next }];
        let silent = arms[0].acts.is_empty();
        (chain.sound && !silent).then_some(weir_plan::Stage::Ends(Ends { arms }))
    }

    /// `branch`
    pub(super) fn branch(
        &mut self,
        built: &mut Built,
        arms: &[Spanned<BranchArm>],
        span: Span,
    ) -> Option<weir_plan::Stage> {
        let word = Span::new(span.start, span.start + "branch".len());
        if !self.are_packets(&built.scope, "branch", word) {
            return None;
        }
        if let Some(beyond) = arms.get(ARMS_MAX) {
            let message = format!("a branch has at most {ARMS_MAX} arms");
            self.report(Diagnostic::new(Code::TooLarge, beyond.span, message));
            return None;
        }
        let (mut out, mut sound) = (Vec::new(), true);
        for arm in arms {
            let BranchArm { when, acts } = &arm.node;
            let condition =
                when.as_ref().map(|e| self.condition(&built.scope, e, "an arm of `branch`"));
            let mut chain = Chain::new(&built.scope);
            for act in acts {
                self.act(&built.scope, &mut chain, &act.node, act.span);
            }
            if let Some(idle) = chain.idle {
                let message = "no packets leave after this, so it changes no frame";
                let d = Diagnostic::new(Code::Unused, idle, message);
                self.report(d.help("rows that go on keep their whole frames"));
            }
            if let Some(beyond) = acts.get(ACTS_MAX) {
                let message = format!("an arm does at most {ACTS_MAX} things");
                self.report(Diagnostic::new(Code::TooLarge, beyond.span, message));
                sound = false;
            }
            let next = acts.last().is_some_and(|act| act.node == Act::Next);
            sound &= chain.sound && condition != Some(None);
            out.push(Arm { when: condition.flatten(), acts: chain.acts, next });
        }
        built.idle_edit = None;
        let has_else = arms.iter().any(|arm| arm.node.when.is_none());
        if has_else && !out.iter().any(|arm| arm.next) {
            built.end = Some((word, "branch"));
        }
        sound.then_some(weir_plan::Stage::Ends(Ends { arms: out }))
    }

    /// Whether rows are packets that can go out; reports it if not.
    fn are_packets(&mut self, scope: &Scope, word: &str, span: Span) -> bool {
        if scope.of_records() {
            self.only_packets(word, span);
            return false;
        }
        if scope.packets || scope.lenient {
            return scope.packets;
        }
        let message = format!("`{word}` takes packets, and these rows are none any more");
        let d = Diagnostic::new(Code::NotPackets, span, message);
        self.report(match scope.dropped {
            Some((stage, dropped)) => d
                .note_at(dropped, format!("`{stage}` made rows of them"))
                .help(format!("put `{word}` before it, or in a pipeline of its own")),
            None => d,
        });
        false
    }

    /// Adds to a chain what is done with a packet.
    fn act(&mut self, scope: &Scope, chain: &mut Chain, act: &Act, span: Span) {
        let whose = format!("`{}`", word(act));
        let to = match act {
            Act::Next => return,
            Act::Trim(n) => {
                let n = self.positive(scope, n, &whose);
                let n = n.map(|n| Edit::Trim(u32::try_from(n).unwrap_or(u32::MAX)));
                return self.edit(chain, n, span);
            }
            Act::Tag(id) => {
                let id = self.vlan_id(scope, id).map(Edit::Tag);
                return self.edit(chain, id, span);
            }
            Act::Anonymize { fields, key } => {
                let how = self.anonymization(scope, fields, key).map(Edit::Anonymize);
                return self.edit(chain, how, span);
            }
            Act::Pass => Some(To::Pass),
            Act::Drop => Some(To::Drop),
            Act::Forward(e) | Act::Mirror(e) => self.output(scope, e, &whose).map(To::Forward),
            Act::Broadcast(e) => self.outputs(scope, e, &whose).map(To::Broadcast),
            Act::Steer { keys, to } => {
                let keys = self.key_parts(scope, keys);
                let outputs = self.outputs(scope, to, &whose);
                keys.zip(outputs).map(|(keys, outputs)| To::Steer { keys, outputs })
            }
        };
        // Dropped packets show no edits, and nothing else either.
        if !matches!(act, Act::Drop) {
            chain.idle = None;
            self.leaves_as_it_came(scope, word(act), span);
        }
        chain.sound &= to.is_some();
        let edits = chain.edits.clone();
        chain.acts.extend(to.map(|to| weir_plan::ends::Act { edits, to }));
    }

    /// Reports fields that columns replaced, where the packet leaves with what it came with: who
    /// hides an address would send it all the same.
    fn leaves_as_it_came(&mut self, scope: &Scope, word: &str, leaves: Span) {
        for (field, &span) in &scope.replaced {
            let code = Code::ReplacedField;
            if self.diagnostics.iter().any(|d| d.code == code && d.span == span) {
                continue;
            }
            let message =
                format!("`{field}` is replaced in the row only: the packet leaves with its own");
            let d = Diagnostic::new(code, span, message)
                .label("the packet does not have this value")
                .note_at(leaves, format!("`{word}` sends the packet as it was captured"));
            let known = weir_packet::rewrite::Address::ALL.iter().any(|a| a.name() == field);
            let remedy = match known {
                true => format!("`| anonymize {field} with KEY` rewrites packets"),
                false => {
                    format!("no stage rewrites it: emit rows, as with `| project ts, {field}`")
                }
            };
            self.report(d.help(format!(
                "{remedy}; or where packets may leave as they are, give the column a name of its \
                 own"
            )));
        }
    }

    fn edit(&mut self, chain: &mut Chain, edit: Option<Edit>, span: Span) {
        chain.idle = Some(span);
        chain.sound &= edit.is_some();
        chain.edits.extend(edit);
        if chain.edits.len() > EDITS_MAX {
            let message = format!("a frame is trimmed and tagged at most {EDITS_MAX} times");
            self.report(Diagnostic::new(Code::TooLarge, span, message));
            chain.edits.truncate(EDITS_MAX);
        }
    }

    fn vlan_id(&mut self, scope: &Scope, e: &TreeExpr) -> Option<u16> {
        let d = match self.constant(scope, e, "the VLAN id of `tag`")? {
            Value::Int(id) if VLAN_IDS.contains(&id) => return u16::try_from(id).ok(),
            Value::Int(id) => {
                Diagnostic::new(Code::BadConstant, e.span, format!("{id} is no VLAN id"))
            }
            v => {
                let found = v.ty().map_or_else(String::new, |ty| a(&ty));
                let message = format!("`tag` takes a VLAN id, and this is {found}");
                Diagnostic::new(Code::BadConstant, e.span, message)
            }
        };
        self.report(d.help("VLAN ids are 1 to 4094"));
        None
    }

    /// One output.
    fn output(&mut self, scope: &Scope, e: &TreeExpr, whose: &str) -> Option<String> {
        let names = self.outputs(scope, e, whose)?;
        let n = names.len();
        if let Ok([name]) = <[String; 1]>::try_from(names) {
            return Some(name);
        }
        let message = format!("{whose} takes one output, and these are {n}");
        let d = Diagnostic::new(Code::BadOutput, e.span, message);
        self.report(d.help(
            "`broadcast to …` sends each packet to all of them, `steer by hosts to …` to one",
        ));
        None
    }

    /// Outputs: a name in quotes, or several in brackets.
    fn outputs(&mut self, scope: &Scope, e: &TreeExpr, whose: &str) -> Option<Vec<String>> {
        if self.lacks_quotes(scope, e) {
            return None;
        }
        let out = self.root(scope, e)?;
        let parts = match out.kind {
            ExprKind::Tuple(parts) => parts,
            kind => vec![Expr { ty: out.ty, kind }],
        };
        let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
        for part in parts {
            let what = format!("an output of {whose}");
            let message = match self.constant_value(&part, e.span, &what)? {
                Value::Str(name) if name.is_empty() || name.contains('\0') => {
                    format!("{:?} is not the name of an output", &*name)
                }
                Value::Str(name) if !seen.insert(name.clone()) => {
                    format!("the output {:?} is given twice", &*name)
                }
                Value::Str(name) => {
                    names.push(name.into_string());
                    continue;
                }
                v => {
                    let found = v.ty().map_or_else(String::new, |ty| a(&ty));
                    format!("an output is named by a string, and this is {found}")
                }
            };
            self.report(Diagnostic::new(Code::BadOutput, e.span, message).help(OUTPUTS));
            return None;
        }
        Some(names)
    }

    /// Whether a name of a file stands there as if it were one of the query; reports it.
    fn lacks_quotes(&mut self, scope: &Scope, e: &TreeExpr) -> bool {
        let Tree::Name(name) = e.node.unbracketed() else { return false };
        let pipeline =
            matches!(self.definitions.find(name).map(|d| &d.meaning), Some(Meaning::Pipeline(_)));
        let known = self.definitions.find(name).is_some()
            || self.below.contains_key(name.as_str())
            || scope.position(name).is_some()
            || scope.poisoned.contains(name)
            || fields::by_name(name).is_some()
            || fields::key_by_name(name).is_some();
        if known && !pipeline {
            return false;
        }
        let message = match pipeline {
            true => format!("`{name}` is a pipeline, and packets go to outputs"),
            false => format!("`{name}` is no output by itself"),
        };
        let d = Diagnostic::new(Code::BadOutput, e.span, message);
        self.report(match pipeline {
            true => d.help(OUTPUTS),
            false => d.help(format!("names of outputs are in quotes: `\"{name}\"`")),
        });
        true
    }
}

const OUTPUTS: &str = "outputs are named like files: `\"a.pcap\"`, or `(\"a.pcap\", \"b.pcapng\")`";

impl Chain {
    fn new(scope: &Scope) -> Chain {
        Chain { edits: scope.edits.clone(), idle: None, acts: Vec::new(), sound: true }
    }
}

/// The word of an act.
fn word(act: &Act) -> &'static str {
    match act {
        Act::Pass => "pass",
        Act::Drop => "drop",
        Act::Forward(_) => "forward",
        Act::Mirror(_) => "mirror",
        Act::Broadcast(_) => "broadcast",
        Act::Steer { .. } => "steer",
        Act::Trim(_) => "trim",
        Act::Tag(_) => "tag",
        Act::Anonymize { .. } => "anonymize",
        Act::Next => "next",
    }
}

/// The stages that another pipeline takes over with the packets: what goes out goes out once.
pub(super) fn without_ends(stages: &[weir_plan::Stage]) -> Vec<weir_plan::Stage> {
    let silent = |stage: &weir_plan::Stage| match stage {
        weir_plan::Stage::Ends(ends) if ends.arms.iter().all(|arm| arm.next) => None,
        weir_plan::Stage::Ends(ends) => Some(weir_plan::Stage::Ends(ends.silent())),
        stage => Some(stage.clone()),
    };
    stages.iter().filter_map(silent).collect()
}

/// How many of the stages there are up to the last that sends something; 0 if none does.
pub(super) fn until_last_end(stages: &[weir_plan::Stage]) -> usize {
    let sends = |stage: &weir_plan::Stage| match stage {
        weir_plan::Stage::Ends(ends) => ends.acts().next().is_some(),
        _ => false,
    };
    stages.iter().rposition(sends).map_or(0, |at| at + 1)
}
