//! Programs and pipelines.

use crate::capture::Capture;
use crate::ends::Ends;
use crate::metric::Metric;
use crate::schema::Schema;
use crate::stage::Stage;
use weir_packet::egress::Outlet;

/// A checked program: pipelines in an order such that each reads only packets or earlier ones.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Program {
    /// The pipelines.
    pub pipelines: Vec<Pipeline>,
    /// The source of its pipelines that read no others.
    pub source: SourceKind,
}

/// The input that a source delivers, and a program reads.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SourceKind {
    /// Packets.
    #[default]
    Packets,
    /// Flow records of exporters. Plans treat them as they treat packets; they have other fields
    /// ([`weir_packet::fields::RECORD_FIELDS`]), and no bytes.
    FlowRecords,
}

impl SourceKind {
    /// How queries name it.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Packets => "packets",
            SourceKind::FlowRecords => "flows",
        }
    }

    /// The name of several of them.
    pub fn plural(self) -> &'static str {
        match self {
            SourceKind::Packets => "packets",
            SourceKind::FlowRecords => "flow records",
        }
    }
}

impl Program {
    /// A program of pipelines that read packets, or others of them.
    pub fn of(pipelines: Vec<Pipeline>) -> Program {
        Program { pipelines, source: SourceKind::Packets }
    }

    /// Every stage that hands packets out, with the number of its pipeline and its place there.
    pub fn ends(&self) -> impl Iterator<Item = (usize, usize, &Ends)> {
        let pipelines = self.pipelines.iter().enumerate();
        pipelines.filter(|(_, p)| p.input == Input::Packets).flat_map(|(p, pipeline)| {
            let stages = pipeline.stages.iter().enumerate();
            stages.filter_map(move |(at, stage)| match stage {
                Stage::Ends(ends) => Some((p, at, ends)),
                _ => None,
            })
        })
    }

    /// All outlets, in the order that the program names them first.
    pub fn outlets(&self) -> Vec<Outlet> {
        let mut all = Vec::new();
        for outlet in self.ends().flat_map(|(.., e)| e.acts()).flat_map(|act| act.to.outlets()) {
            if !all.contains(&outlet) {
                all.push(outlet);
            }
        }
        all
    }

    /// Leaves the pipelines that print, send packets or are read by such ones: no level takes the
    /// rows of others.
    pub fn leave_unread(&mut self) {
        let acts = |pipeline: &Pipeline| {
            pipeline.printed || pipeline.stages.iter().any(|s| matches!(s, Stage::Ends(_)))
        };
        let mut needed: Vec<bool> = self.pipelines.iter().map(acts).collect();
        for number in (0..needed.len()).rev() {
            if needed[number] {
                self.pipelines[number].sources().for_each(|source| needed[source] = true);
            }
        }
        let mut numbers = Vec::with_capacity(needed.len());
        let mut left = Vec::new();
        for (mut pipeline, is_needed) in std::mem::take(&mut self.pipelines).into_iter().zip(needed)
        {
            numbers.push(left.len());
            if is_needed {
                pipeline.renumber(|source| numbers[source]);
                left.push(pipeline);
            }
        }
        self.pipelines = left;
    }

    /// The stages that ask for packets around their rows.
    pub fn captures(&self) -> impl Iterator<Item = &Capture> {
        self.pipelines.iter().filter(|p| p.printed).filter_map(Pipeline::capture)
    }
}

/// One pipeline.
#[derive(Clone, PartialEq, Debug)]
pub struct Pipeline {
    /// Its name where a `let` gave one.
    pub name: Option<String>,
    /// Where its rows come from.
    pub input: Input,
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// The columns that leave the last stage.
    pub schema: Schema,
    /// Whether its rows are printed. A named pipeline that others read is not, unless it is the
    /// program's only output.
    pub printed: bool,
}

impl Pipeline {
    /// The pipelines whose rows it takes: its input, and the other sides of its first stage. One
    /// may come several times.
    pub fn sources(&self) -> impl Iterator<Item = usize> {
        let input = match self.input {
            Input::Packets => None,
            Input::Pipeline(i) => Some(i),
        };
        let others = match self.stages.first() {
            Some(Stage::Join(join)) => std::slice::from_ref(&join.right),
            Some(Stage::Union(union)) => &union.others,
            _ => &[],
        };
        input.into_iter().chain(others.iter().copied())
    }

    /// The capture that it asks for with each of its rows.
    pub fn capture(&self) -> Option<&Capture> {
        match self.stages.last()? {
            Stage::Capture(capture) => Some(capture),
            _ => None,
        }
    }

    /// The metrics that its rows are exported as.
    pub fn metrics(&self) -> impl Iterator<Item = &Metric> {
        let before_capture = self.stages.len() - usize::from(self.capture().is_some());
        let last = self.stages[..before_capture].iter().rev();
        last.map_while(
            |stage| if let Stage::Metric(metric) = stage { Some(&**metric) } else { None },
        )
    }

    /// Gives the pipelines that it takes rows of other numbers.
    pub fn renumber(&mut self, mut number: impl FnMut(usize) -> usize) {
        if let Input::Pipeline(i) = &mut self.input {
            *i = number(*i);
        }
        match self.stages.first_mut() {
            Some(Stage::Join(join)) => join.right = number(join.right),
            Some(Stage::Union(union)) => {
                union.others.iter_mut().for_each(|other| *other = number(*other));
            }
            _ => {}
        }
    }
}

/// Where a pipeline's rows come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// The packets of the capture, or the flow records of the exporters ([`Program::source`]). The
    /// input schema has no columns: they are read through fields.
    Packets,
    /// The rows of an earlier pipeline, by its number.
    Pipeline(usize),
}
