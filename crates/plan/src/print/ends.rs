//! Ends as text.

use super::{expr, list};
use crate::ends::{Act, Arm, Edit, Ends, To};
use crate::stage::Schema;

/// Ends as a query would write them, over the columns of `input`.
pub(super) fn ends(ends: &Ends, input: &Schema) -> String {
    if let [arm @ Arm { when: None, .. }] = &ends.arms[..] {
        let chain = chain(arm, input);
        return chain.strip_suffix(" | next").map_or(chain.clone(), str::to_owned);
    }
    let arm = |arm: &Arm| match &arm.when {
        Some(when) => format!(" when {} -> {}", expr(when, input, &[]), chain(arm, input)),
        None => format!(" else -> {}", chain(arm, input)),
    };
    format!("branch{}", ends.arms.iter().map(arm).collect::<String>())
}

/// The edits and acts of an arm, one after the other.
fn chain(arm: &Arm, input: &Schema) -> String {
    let (mut parts, mut done) = (Vec::new(), 0);
    for (i, act) in arm.acts.iter().enumerate() {
        // Each act has all edits before it, those of the acts before too.
        parts.extend(act.edits.iter().skip(done).map(edit));
        done = act.edits.len();
        let goes_on = arm.next || i + 1 < arm.acts.len();
        parts.push(to(act, goes_on, input));
    }
    if arm.next {
        parts.push("next".to_owned());
    }
    parts.join(" | ")
}

fn edit(edit: &Edit) -> String {
    match edit {
        Edit::Trim(n) => format!("trim {n}"),
        Edit::Tag(id) => format!("tag {id}"),
        Edit::Anonymize(how) => {
            let fields: Vec<&str> = how.addresses.iter().map(|address| address.name()).collect();
            let named = how.ports.named().map(|(tunnel, port)| format!(", {tunnel}={port}"));
            format!("anonymize {} with …{}", fields.join(", "), named.collect::<String>())
        }
    }
}

fn to(act: &Act, goes_on: bool, input: &Schema) -> String {
    match &act.to {
        To::Drop => "drop".to_owned(),
        To::Pass => "pass".to_owned(),
        To::Forward(name) if goes_on => format!("mirror {name:?}"),
        To::Forward(name) => format!("forward {name:?}"),
        To::Broadcast(names) => format!("broadcast to {}", outputs(names)),
        To::Steer { keys, outputs: names } => {
            let by = list(keys, |k| expr(k, input, &[]));
            format!("steer by {by} to {}", outputs(names))
        }
    }
}

fn outputs(names: &[String]) -> String {
    match names {
        [name] => format!("{name:?}"),
        names => format!("({})", list(names, |name| format!("{name:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Expr;
    use crate::value::Value;
    use weir_packet::fields::by_name;

    #[test]
    fn ends_are_written_as_in_queries() {
        let check = |arms: Vec<Arm>, expected: &str| {
            assert_eq!(ends(&Ends { arms }, &Schema::default()), expected);
        };
        let act = |edits: &[Edit], to| Act { edits: edits.to_vec(), to };
        let arm = |when, acts, next| Arm { when, acts, next };
        let file = |n: &str| To::Forward(n.to_owned());
        let dns = || Some(Expr::field(by_name("dns").expect("a field")));
        check(vec![arm(None, vec![act(&[], To::Pass)], false)], "pass");
        check(vec![arm(None, vec![act(&[], file("a"))], true)], "mirror \"a\"");
        let edits = [Edit::Trim(96), Edit::Tag(7)];
        let both = vec![act(&edits[..1], file("a")), act(&edits, file("b"))];
        let both = vec![arm(dns(), both, false), arm(None, vec![act(&[], To::Drop)], true)];
        check(
            both,
            "branch when dns -> trim 96 | mirror \"a\" | tag 7 | forward \"b\" else -> drop | next",
        );
        let names = || vec!["a".to_owned(), "b c".to_owned()];
        let keys = vec![Expr::field(by_name("ip.src").expect("a field"))];
        let steer = act(&[], To::Steer { keys, outputs: names() });
        check(vec![arm(None, vec![steer], false)], "steer by ip.src to (\"a\", \"b c\")");
        let never = Some(Expr::constant(Value::Bool(false)));
        let all = act(&[], To::Broadcast(names()));
        check(
            vec![arm(never, vec![all], false)],
            "branch when false -> broadcast to (\"a\", \"b c\")",
        );
    }
}
