//! Aggregates of a `summarize` over rows, as SQL.

use crate::expr::{condition, value};
use crate::term::Term;
use weir_plan::{Agg, AggFunc, Schema, Type};

/// An aggregate as SQL.
///
/// # Errors
/// Names what SQL does not do as Weir does it.
pub(crate) fn aggregate(agg: &Agg, input: &Schema) -> Result<String, String> {
    let filter = match &agg.cond {
        None => String::new(),
        Some(cond) => format!(" FILTER (WHERE {})", condition(cond, input)?),
    };
    let refused = || Err(format!("`{}` in a further `summarize`", agg.func.name()));
    let Some(arg) = &agg.arg else {
        return match agg.func {
            AggFunc::Count => Ok(format!("COUNT(*){filter}")),
            _ => refused(),
        };
    };
    // Floats are added in the order of rows, which a cluster does not keep.
    let rounds = arg.ty == Type::Float;
    let call = match agg.func {
        AggFunc::Count => "COUNT",
        AggFunc::Sum if !rounds => "weir_sum",
        AggFunc::Avg if arg.ty == Type::Duration => "weir_avg_duration",
        AggFunc::Avg if !rounds => "weir_avg",
        AggFunc::Min if is_number(&arg.ty) => "MIN",
        AggFunc::Max if is_number(&arg.ty) => "MAX",
        AggFunc::Min if rounds => "weir_min_float",
        AggFunc::Max if rounds => "weir_max_float",
        AggFunc::Any => "weir_any",
        AggFunc::All => "weir_all",
        AggFunc::Distinct if !rounds && !matches!(arg.ty, Type::Tuple(_)) => {
            let text = value(arg, input)?;
            let counted = match arg.ty {
                // SQL counts no different bytes.
                Type::Ip | Type::Bytes => format!("weir_hex({text})"),
                _ => text.to_string(),
            };
            return Ok(format!("COUNT(DISTINCT {counted}){filter}"));
        }
        AggFunc::DistinctUpTo(limit) if !rounds && !matches!(arg.ty, Type::Tuple(_)) => {
            let (value, ty) = (value(arg, input)?, arg.ty.to_string());
            let limit = Term::Int(i64::try_from(limit).unwrap_or(i64::MAX));
            let all = vec![value, limit, Term::Text(ty)];
            return Ok(format!("{}{filter}", Term::Call("weir_distinct_up_to", all)));
        }
        _ => return refused(),
    };
    Ok(format!("{call}({}){filter}", value(arg, input)?))
}

fn is_number(ty: &Type) -> bool {
    matches!(ty, Type::Int | Type::Time | Type::Duration | Type::Mac)
}
