//! Pictures as SVG. They need no script, have a title and a description for readers that don't see
//! them, and are the same bytes for the same values.

mod area;
mod axis;
mod color;
mod frame;
mod lines;

pub(crate) use area::{Stack, stacked};
pub(crate) use color::color;
pub(crate) use frame::{Caption, Unit};
pub(crate) use lines::{Panel, PlotLine, panels};

/// The colours of lines and areas, in light and in dark: those of Okabe and Ito, which people with
/// any kind of colour vision tell apart, somewhat lighter on a dark ground.
pub(crate) const STYLE: &str = include_str!("plot/style.css");
