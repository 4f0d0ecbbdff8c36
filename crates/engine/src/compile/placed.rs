//! A program whose stages have their places.

use crate::functions::BuildContext;
use weir_plan::Program;
use weir_plan::physical::Physical;

/// A placed program that is compiled, level by level.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub(crate) program: &'a Program,
    pub(crate) plan: &'a Physical,
    pub(crate) with: BuildContext<'a>,
}
