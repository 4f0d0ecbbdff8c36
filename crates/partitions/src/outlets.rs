//! Where the packets of a run go: to files and wires, and those that pass to Kafka, if they do.

use super::spread::Spreader;
use std::io;
use weir_capture::outlets::Outlets;
use weir_packet::egress::{Egress, Outlet, Refused, Sent};

/// Where the packets of a run go.
pub struct PacketOutlets {
    outlets: Outlets,
    spreader: Option<Spreader>,
    /// The number of the outlet whose packets are spread.
    pass: Option<u32>,
    /// Scratch: frames for other outlets, and for partitions.
    others: Vec<Sent>,
    spread: Vec<Sent>,
}

impl PacketOutlets {
    /// The outlets of a program, and packets that pass to a topic.
    pub fn new(outlets: Outlets, spreader: Option<Spreader>) -> PacketOutlets {
        let (others, spread) = (Vec::new(), Vec::new());
        PacketOutlets { outlets, spreader, pass: None, others, spread }
    }

    /// Whether a rotated capture has as many files as it was to have.
    pub fn is_over(&self) -> bool {
        self.outlets.is_over()
    }
}

impl Egress for PacketOutlets {
    fn open(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        let pass = outlets.iter().position(|outlet| *outlet == Outlet::Pass);
        self.pass = pass.filter(|_| self.spreader.is_some()).map(|at| at as u32);
        self.outlets.open(outlets)
    }

    fn prepare(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        self.outlets.prepare(outlets)
    }

    fn settle(&mut self) {
        self.outlets.settle();
    }

    fn wants(&self, outlet: &Outlet) -> bool {
        self.spreader.is_some() && *outlet == Outlet::Pass || self.outlets.wants(outlet)
    }

    fn send(&mut self, memory: &[u8], frames: &[Sent]) -> io::Result<()> {
        let (Some(spreader), Some(pass)) = (&mut self.spreader, self.pass) else {
            return self.outlets.send(memory, frames);
        };
        if frames.iter().all(|frame| frame.outlet == pass) {
            return spreader.take(memory, frames);
        }
        self.spread.clear();
        self.others.clear();
        for frame in frames {
            match frame.outlet == pass {
                true => self.spread.push(*frame),
                false => self.others.push(*frame),
            }
        }
        spreader.take(memory, &self.spread)?;
        self.outlets.send(memory, &self.others)
    }

    fn is_away(&mut self, outlet: u32) -> bool {
        self.outlets.is_away(outlet)
    }

    fn refused(&self, outlet: u32) -> Refused {
        match &self.spreader {
            Some(spreader) if self.pass == Some(outlet) => spreader.refused(),
            _ => self.outlets.refused(outlet),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(spreader) = &mut self.spreader {
            spreader.flush()?;
        }
        self.outlets.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        let spread = self.spreader.as_mut().map_or(Ok(()), Spreader::finish);
        self.outlets.finish().and(spread)
    }
}
