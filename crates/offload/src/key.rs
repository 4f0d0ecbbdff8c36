//! The code that makes the key of a frame.

use crate::emit::{Emit, TooDeep};
use crate::frame::Access;
use crate::table::{KeyCode, ValueShape};
use crate::value::{Lowered, Num, Range};
use crate::writer::Writer;
use weir_ebpf::Reg::*;
use weir_plan::Expr;

/// Makes the key of a frame on the stack. Uses `R0` to `R5`.
pub(crate) fn write_key(
    w: &mut Writer,
    access: Access,
    keys: &[Lowered],
    code: KeyCode<'_>,
) -> Result<(), TooDeep> {
    w.embed(&[], |a, _| code.begin(a));
    for (p, key) in keys.iter().enumerate() {
        let absent = w.label("absent_part");
        match key {
            Lowered::Addr(addr) => {
                Emit::new(w, access).address(addr, absent)?;
                w.embed(&[], |a, _| code.set_address(a, p, R0, R1));
            }
            Lowered::Num(num) => {
                Emit::new(w, access).number(num, absent)?;
                w.embed(&[], |a, _| code.set_word(a, p, R0, R1));
            }
            Lowered::Test(test) => {
                Emit::new(w, access).number(&Num::truth(test.clone()), absent)?;
                w.embed(&[], |a, _| code.set_word(a, p, R0, R1));
            }
        }
        w.bind(absent);
    }
    Ok(())
}

/// The known shape of the values of a part of a key, which is this expression.
pub(crate) fn shape(value: &Lowered, e: &Expr) -> ValueShape {
    let is_nullable = !e.always_present();
    match value {
        Lowered::Num(num) => word(num.range, is_nullable),
        Lowered::Test(_) => word(Range { min: 0, max: 1 }, is_nullable),
        Lowered::Addr(_) => ValueShape::Address { is_nullable },
    }
}

/// The known shape of numbers in a range.
pub(crate) fn word(range: Range, is_nullable: bool) -> ValueShape {
    ValueShape::Word { least: range.min, greatest: range.max, is_nullable }
}
