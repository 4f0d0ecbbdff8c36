//! The meaning of good queries, as compact prints of their plans.

use weir_lang::{Code, Options, Query, compile, render};
use weir_plan::alert::TextPart;
use weir_plan::{
    AggSignature, Expr, ExprKind, Input, Member, Order, Parts, Pipeline, Program, SampleBy,
    ScalarSignature, Signatures, Stage, Type, UnaryOp, Window,
};

fn program(text: &str, options: &Options<'_>) -> Program {
    let q = Query { name: "query.weir", text };
    match compile(&q, options) {
        Ok(compiled) => compiled.program,
        Err(d) => panic!("{}", render(&d, &q, false)),
    }
}

fn expr(e: &Expr) -> String {
    let list = |all: &[Expr]| all.iter().map(expr).collect::<Vec<_>>().join(", ");
    match &e.kind {
        ExprKind::Const(v) => v.to_string(),
        ExprKind::Field(id) => id.info().name.to_owned(),
        ExprKind::Column(i) => format!("#{i}"),
        ExprKind::State(i) => format!("s{i}"),
        ExprKind::Unary(UnaryOp::ToFloat, a) => format!("float!({})", expr(a)),
        ExprKind::Unary(op, a) => format!("{op:?}({})", expr(a)),
        ExprKind::Binary(op, a, b) => format!("({} {} {})", expr(a), op.symbol(), expr(b)),
        ExprKind::If(c, a, b) => format!("[{} ? {} : {}]", expr(c), expr(a), expr(b)),
        ExprKind::In(a, members) => {
            let member = |m: &Member| match m {
                Member::Value(v) | Member::Net(v) => v.to_string(),
                Member::Range(a, b) => format!("{a}..{b}"),
            };
            let members: Vec<_> = members.iter().map(member).collect();
            format!("{} in {{{}}}", expr(a), members.join(", "))
        }
        ExprKind::Call(f, args) => format!("{f:?}({})", list(args)),
        ExprKind::Tuple(parts) => format!("<{}>", list(parts)),
    }
}

fn stage(s: &Stage) -> String {
    let named = |columns: &[(String, Expr)]| {
        columns.iter().map(|(n, e)| format!("{n}={}", expr(e))).collect::<Vec<_>>().join(" ")
    };
    match s {
        Stage::Where(e) => format!("where {}", expr(e)),
        Stage::Extend { columns } => {
            let column = |(n, i, e): &(String, usize, Expr)| format!("{n}@{i}={}", expr(e));
            format!("extend {}", columns.iter().map(column).collect::<Vec<_>>().join(" "))
        }
        Stage::Project { columns } => format!("project {}", named(columns)),
        Stage::Reshape { columns, word } => format!("{word:?} {}", named(columns)),
        Stage::Summarize(s) => {
            let aggs = s.aggs.iter().map(|a| {
                let arg = a.arg.as_ref().map(expr).unwrap_or_default();
                let cond = a.cond.as_ref().map(|c| format!(" if {}", expr(c))).unwrap_or_default();
                format!("{}={}({arg}){cond}:{}", a.name, a.func.name(), a.ty)
            });
            let window = match s.window {
                Window::All => String::new(),
                Window::Tumbling(ns) => format!(" every {ns}"),
                Window::Session(w) => {
                    let until = s.until.as_ref().map(|e| format!(" until {}", expr(e)));
                    let linger = w.linger_ns.map(|ns| format!(" linger {ns}"));
                    let unless = s.unless.as_ref().map(|e| format!(" unless {}", expr(e)));
                    let (active, rows) = (w.active_ns, w.rows);
                    let clauses = [until, linger, unless].map(Option::unwrap_or_default);
                    format!(" session {} {active:?} {rows:?}{}", w.gap_ns, clauses.concat())
                }
                Window::Sliding { over, every } => format!(" over {over} every {every}"),
            };
            let late = match s.lateness_ns {
                0 => String::new(),
                ns => format!(" lateness {ns}"),
            };
            let fill = match s.fill {
                None => String::new(),
                Some(fill) if fill.from_start => " fill from start".to_owned(),
                Some(fill) => format!(" fill {:?}", fill.idle_ns),
            };
            let aggs = aggs.collect::<Vec<_>>().join(" ");
            let keys = named(&s.keys);
            format!("summarize {aggs} | {keys}{window}{late}{fill} max {}", s.max_groups)
        }
        Stage::Scan(s) => {
            let state = |s: &weir_plan::stage::ScanState| {
                format!("{}@{}={} => {}", s.name, s.output, expr(&s.init), expr(&s.update))
            };
            let states = s.states.iter().map(state).collect::<Vec<_>>().join("; ");
            let keys = s.keys.iter().map(expr).collect::<Vec<_>>().join(" ");
            format!("scan {states} | {keys} idle {} max {}", s.idle_ns, s.max_keys)
        }
        Stage::Top { n, by, windowed, per } => {
            let key = |k: &weir_plan::SortKey| {
                format!("{}{}", if k.order == Order::Ascending { "+" } else { "-" }, expr(&k.expr))
            };
            let by = by.iter().map(key).collect::<Vec<_>>().join(" ");
            let per = per.as_ref().map_or_else(String::new, |per| {
                let keys = per.keys.iter().map(expr).collect::<Vec<_>>().join(" ");
                format!(" per {keys} max {}", per.max_keys)
            });
            format!("top {n} {by}{per}{}", if *windowed { " windowed" } else { "" })
        }
        Stage::Limit(n) => format!("limit {n}"),
        Stage::Join(j) => {
            let columns: Vec<usize> = j.columns.iter().map(|c| c.from).collect();
            let within = j.within.map_or("-".to_owned(), |w| format!("{}..{}", w.from_ns, w.to_ns));
            let (kind, right, keys) = (j.kind.name(), j.right, &j.keys);
            format!("join {kind} [{right}] {keys:?} {within} {columns:?} max {}", j.max_rows)
        }
        Stage::Union(u) => {
            let from: Vec<_> = u.columns.iter().map(|c| (&c.name, &c.from)).collect();
            format!("union {:?} {from:?}{}", u.others, if u.timed { "" } else { " untimed" })
        }
        Stage::Deduplicate(d) => {
            let keys = d.keys.iter().map(expr).collect::<Vec<_>>().join(" ");
            format!("deduplicate {keys} within {} max {}", d.within_ns, d.max_packets)
        }
        Stage::Distinct(d) => {
            let keys = d.keys.iter().map(expr).collect::<Vec<_>>().join(" ");
            let windowed = if d.windowed { " windowed" } else { "" };
            format!("distinct {keys} idle {} max {}{windowed}", d.idle_ns, d.max_keys)
        }
        Stage::AnalyzeTcp(a) => {
            let keys = a.keys.iter().map(expr).collect::<Vec<_>>().join(" ");
            let at = a.columns.first().map_or(0, |(_, at, _)| *at);
            let columns = a.columns.len();
            format!(
                "analyze tcp {keys}: {columns} from @{at} idle {} max {}",
                a.idle_ns, a.max_keys
            )
        }
        Stage::Hello(h) => {
            let keys = h.keys.iter().map(expr).collect::<Vec<_>>().join(" ");
            format!("hello {keys} idle {} max {} at {:?}", h.idle_ns, h.max_flows, h.columns)
        }
        Stage::Sample(s) => {
            let by = match &s.by {
                SampleBy::Number(number) => expr(number),
                SampleBy::Order => "order".to_owned(),
                SampleBy::Key(keys) => keys.iter().map(expr).collect::<Vec<_>>().join(" "),
            };
            format!("sample {} of {} by {by}", s.take, s.of)
        }
        Stage::Each(each) => {
            let what = match &each.what {
                Parts::Packet(what) => what.info().name.to_owned(),
                Parts::Split { text, by } => format!("split {} {}", expr(text), expr(by)),
            };
            let columns = each.columns.iter().map(|(name, at, ty)| format!(" {name}@{at}:{ty}"));
            format!("each {what}:{}", columns.collect::<String>())
        }
        Stage::Capture(c) => {
            let key = |(id, column): &(weir_packet::fields::FieldId, usize)| {
                format!(" {}=#{column}", id.info().name)
            };
            let keys = c.keys.iter().map(key).collect::<String>();
            let times = format!("{}+{}+{}", c.before_ns, c.over_ns, c.after_ns);
            format!("capture @{} from #{} {times} |{keys}", c.output, c.start)
        }
        Stage::Alert(a) => {
            let part = |part: &TextPart| match part {
                TextPart::Text(text) => format!("{text:?}"),
                TextPart::Value(e) => expr(e),
            };
            let whole = |parts: &[TextPart]| parts.iter().map(part).collect::<Vec<_>>().join(" ");
            let (text, next) = (whole(&a.text), whole(&a.next));
            let said = (&a.category, &a.technique, next);
            let compared = a.compared.as_ref().map_or("-".to_owned(), |c| {
                format!("{} {:?} {} {}", c.field, c.peak, expr(&c.value), expr(&c.threshold))
            });
            let community = a.community.as_ref().map_or("-".to_owned(), expr);
            format!(
                "alert {} {} [{text}] {:?} from #{}+{} hold {} repeat {:?} max {}\n    \
                 compared {compared}\n    share {:?} community {community} packets {:?} said {said:?}",
                a.rule,
                a.severity.name(),
                a.keys,
                a.ts,
                a.over_ns,
                a.hold_ns,
                a.repeat_ns,
                a.max_keys,
                a.completeness,
                (a.first, a.last)
            )
        }
        Stage::Metric(m) => format!(
            "metric {:?} {} of {:?} by {:?} max {} {:?} at {:?}+{}",
            m.kind, m.name, m.value, m.labels, m.max_series, m.help, m.ts, m.over_ns
        ),
        Stage::Ends(_) => weir_plan::print::stage(s, &weir_plan::Schema::default()),
    }
}

fn pipeline(p: &Pipeline) -> String {
    let name = p.name.as_deref().unwrap_or("-");
    let input = match p.input {
        Input::Packets => "packets".to_owned(),
        Input::Pipeline(i) => format!("[{i}]"),
    };
    let mut out = format!("{name} {input}{}", if p.printed { "" } else { " hidden" });
    p.stages.iter().for_each(|s| out += &format!("\n  {}", stage(s)));
    let columns = p.schema.columns.iter().map(|c| format!("{}:{}", c.name, c.ty));
    out + "\n  -> " + &columns.collect::<Vec<_>>().join(" ")
}

fn lowered(text: &str) -> String {
    let program = program(text, &Options::default());
    program.pipelines.iter().map(pipeline).collect::<Vec<_>>().join("\n")
}

/// The condition that `where text` comes to.
fn condition(text: &str) -> String {
    let program = program(&format!("packets | where {text}"), &Options::default());
    match &program.pipelines[0].stages[0] {
        Stage::Where(e) => expr(e),
        other => panic!("{other:?}"),
    }
}

#[test]
fn expressions() {
    let check = |text: &str, expected: &str| assert_eq!(condition(text), expected, "{text}");
    check("tcp and udp or not arp", "((tcp and udp) or Not(arp))");
    check("1 + 2 * 3 - len % 4 < 0x10", "((7 - (len % 4)) < 16)");
    check("(tcp.flags & 3 | 4) == 5", "(((tcp.flags & 3) | 4) == 5)");
    check("tcp.flags & 0b11 == 2", "((tcp.flags & 3) == 2)");
    check("len > 1.5", "(float!(len) > 1.5)");
    check("len in {1, 2.5}", "float!(len) in {1.0, 2.5}");
    check("1k < len", "(1000 < len)");
    check("ts + 5s > @2023-11-14", "((ts + 5s) > 2023-11-14T00:00:00Z)");
    check("5s + ts > ts", "((ts + 5s) > ts)");
    check("ts - @2023-11-14 > 2 * 1h", "((ts - 2023-11-14T00:00:00Z) > 2h)");
    check("1h / 30m == 2", "(2.0 == 2.0)");
    check("ip.src in 10.0.0.0/8", "ip.src in {10.0.0.0/8}");
    check("ip.src in {10.0.0.0/8, ::1}", "ip.src in {10.0.0.0/8, ::1}");
    check("dport in 1..1023", "dport in {1..1023}");
    check("dport not in {53}", "(Exists(dport) and Not(dport in {53}))");
    check("len not in {53}", "Not(len in {53})");
    check("(ip.src, dport) == (10.0.0.1, 53)", "(<ip.src, dport> == <10.0.0.1, 53>)");
    check("hosts == (10.0.0.1, ::1)", "(<hosts.a, hosts.b> == <10.0.0.1, ::1>)");
    check("(len, ip.ttl) in {(1, 2.5)}", "<len, float!(ip.ttl)> in {(1, 2.5)}");
    check("exists(link)", "(Exists(link.a) and Exists(link.b))");
    check("if(tcp, len, 0) > 5", "([tcp ? len : 0] > 5)");
    check("coalesce(dport, 0) == 0", "(Coalesce(dport, 0) == 0)");
    check("float(len) > 0.5 and int(len) > 1", "((float!(len) > 0.5) and (len > 1))");
    check("matches(string(ip.src), \"^10\")", "Matches(ToStr(ip.src), \"^10\")");
    check("bin(ts, 1m) == ts", "(Bin(ts, 1m) == ts)");
    check("-len < - 5", "(Neg(len) < -5)");
    check("~0 == -1", "(-1 == -1)");
}

#[test]
fn columns_go_and_get_other_names() {
    let check = |text: &str, expected: &str| assert_eq!(lowered(text), expected, "{text}");
    let counted = "packets | summarize n = count(), bytes = sum(len) by ip.src, dport every 1s";
    let [_, summarize, columns] =
        lowered(counted).lines().map(str::to_owned).collect::<Vec<_>>().try_into().expect("three");
    assert_eq!(columns, "  -> ts:time ip.src:ip dport:int n:int bytes:int");
    let after = |stages: &str, expected: &[&str]| {
        let expected = [&["- packets", &summarize], expected].concat().join("\n");
        check(&format!("{counted} {stages}"), &expected);
    };
    let away = "  Away ts=#0 ip.src=#1 bytes=#4";
    after("| project-away n, dport", &[away, "  -> ts:time ip.src:ip bytes:int"]);
    let swapped = "  Rename start=#0 ip.src=#1 dport=#2 bytes=#3 n=#4";
    let columns = "  -> start:time ip.src:ip dport:int bytes:int n:int";
    after("| rename n = bytes, bytes = n, start = ts", &[swapped, columns]);
    let again = "  Rename ip.src=#0 port=#1 dport=#2";
    let columns = "  -> ip.src:ip port:int dport:int";
    let first = "  Away ip.src=#1 dport=#2 n=#3";
    after("| project-away ts, bytes | rename dport = n, port = dport", &[first, again, columns]);

    // Packets stay packets, with all other fields.
    let listed =
        "ts=ts len=len sport=sport ip.dst=ip.dst dport=dport ip.proto=ip.proto protocol=protocol";
    let columns = "ts:time len:int sport:int ip.dst:ip dport:int ip.proto:int protocol:string";
    check(
        "packets | project-away ip.src | where tcp.syn",
        &format!("- packets\n  where tcp.syn\n  project {listed}\n  -> {columns}"),
    );
    let text = "packets | extend x = len | rename client = ip.src, y = x \
                | project-away len, sport | extend z = y";
    let listed =
        "ts=ts client=#1 ip.dst=ip.dst dport=dport ip.proto=ip.proto protocol=protocol y=#2 z=#3";
    let columns = "ts:time client:ip ip.dst:ip dport:int ip.proto:int protocol:string y:int z:int";
    let stages = "extend x@0=len\n  extend client@1=ip.src y@2=#0\n  extend z@3=#2";
    check(text, &format!("- packets\n  {stages}\n  project {listed}\n  -> {columns}"));
}

#[test]
fn matches_become_choices() {
    let check = |text: &str, expected: &str| {
        assert_eq!(condition(&format!("{text} == 1")), format!("({expected} == 1)"), "{text}");
    };
    check(
        "match len { 1 => 10, 2 or 3..5 => 20, _ => 0 }",
        "[(len == 1) ? 10 : [len in {2, 3..5} ? 20 : 0]]",
    );
    check("match len { 1 => 10 }", "[(len == 1) ? 10 : absent]");
    check(
        "match ip.src { 10.0.0.0/8 => 1, {::1, ::2} => 2 }",
        "[ip.src in {10.0.0.0/8} ? 1 : [ip.src in {::1, ::2} ? 2 : absent]]",
    );
    check(
        "match (sport, dport) { (53, _) or (_, 53) => 1, (80 or 443, 1..9) => 2, _ => 3 }",
        "[((sport == 53) or (dport == 53)) ? 1 : \
          [(sport in {80, 443} and dport in {1..9}) ? 2 : 3]]",
    );
}

#[test]
fn a_float_result_makes_floats_of_the_others() {
    let text = "match len { 1 => 1, 2 => ip.ttl, _ => 2.5 } > 0.5";
    let expected = "([(len == 1) ? 1.0 : [(len == 2) ? float!(ip.ttl) : 2.5]] > 0.5)";
    assert_eq!(condition(text), expected);
}

#[test]
fn packets_leave_with_their_usual_columns() {
    insta::assert_snapshot!(lowered("packets | where tcp | extend len = 1, x = dport"), @r"
    - packets
      where tcp
      extend len@0=1 x@1=dport
      project ts=ts len=#0 ip.src=ip.src sport=sport ip.dst=ip.dst dport=dport ip.proto=ip.proto protocol=protocol x=#1
      -> ts:time len:int ip.src:ip sport:int ip.dst:ip dport:int ip.proto:int protocol:string x:int
    ");
}

#[test]
fn syn_flood() {
    let text = "param threshold: int = 1000\nparam interval: duration = 10s\n\
        packets | where tcp\n\
        | summarize server = first(ip.src) where tcp.syn and tcp.ack,\n\
          completed = any(tcp.ack and not tcp.syn and not tcp.rst) by conn every interval\n\
        | where exists(server) and not completed\n\
        | summarize incomplete = count() by server every interval\n\
        | where incomplete > threshold";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      where tcp
      summarize server=first(ip.src) if (tcp.syn and tcp.ack):ip completed=any(((tcp.ack and Not(tcp.syn)) and Not(tcp.rst))):bool | conn.a_ip=conn.a_ip conn.a_port=conn.a_port conn.b_ip=conn.b_ip conn.b_port=conn.b_port ip.proto=ip.proto every 10000000000 max 67108864
      where (Exists(#6) and Not(#7))
      summarize incomplete=count():int | server=#6 every 10000000000 max 67108864
      where (#2 > 1000)
      -> ts:time server:ip incomplete:int
    ");
}

#[test]
fn knock() {
    let text = "packets | where tcp\n\
        | scan stage = 0 by ip.src, ip.dst idle 60s max 1M =>\n\
          match (stage, tcp.dport) { (0, 5123) => 1, (4, _) => 4, _ => 0 }\n\
        | scan open = false by flow => open or (stage == 4 and tcp.dport == 22)\n\
        | project flow, open";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      where tcp
      scan stage@0=0 => [((s0 == 0) and (tcp.dport == 5123)) ? 1 : [(s0 == 4) ? 4 : 0]] | ip.src ip.dst idle 60000000000 max 1000000
      scan open@1=false => (s0 or ((#0 == 4) and (tcp.dport == 22))) | ip.src sport ip.dst dport ip.proto idle 3600000000000 max 16777216
      project ip.src=ip.src sport=sport ip.dst=ip.dst dport=dport ip.proto=ip.proto open=#1
      -> ip.src:ip sport:int ip.dst:ip dport:int ip.proto:int open:bool
    ");
}

#[test]
fn several_states() {
    let text = "packets | scan n = 0, mean = 0 by flow idle 1h =>\n\
        if(tcp.syn, (1, float(len)), (n + 1, mean + (len - mean) / (n + 1)))\n\
        | project n, mean";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      scan n@0=0 => [tcp.syn ? 1 : (s0 + 1)]; mean@1=0.0 => [tcp.syn ? float!(len) : (s1 + ((float!(len) - s1) / float!((s0 + 1))))] | ip.src sport ip.dst dport ip.proto idle 3600000000000 max 16777216
      project n=#0 mean=#1
      -> n:int mean:float
    ");
}

#[test]
fn aggregates() {
    let text = "packets | summarize count(), count(tcp), count(dport) where udp, sum(len), avg(len),\n\
        distinct(flow), first = min(ts), syns = count(tcp.syn) where len > 60, r = bit_or(tcp.flags)\n\
        by ip.dst, kilo = len / 1000 max 1k";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      summarize count=count():int count_tcp=count() if tcp:int count_dport=count(dport) if udp:int sum_len=sum(len):int avg_len=avg(len):float distinct_flow=distinct(<ip.src, sport, ip.dst, dport, ip.proto>):int first=min(ts):time syns=count() if ((len > 60) and tcp.syn):int r=bit_or(tcp.flags):int | ip.dst=ip.dst kilo=(len / 1000) max 1000
      -> ip.dst:ip kilo:int count:int count_tcp:int count_dport:int sum_len:int avg_len:float distinct_flow:int first:time syns:int r:int
    ");
}

#[test]
fn distinct_keys_without_aggregates() {
    insta::assert_snapshot!(lowered("packets | summarize by hosts | limit 3"), @r"
    - packets
      summarize  | hosts.a=hosts.a hosts.b=hosts.b max 67108864
      limit 3
      -> hosts.a:ip hosts.b:ip
    ");
}

#[test]
fn columns_keep_the_names_of_fields() {
    let text = "packets | summarize bytes = sum(len) by flow\n\
        | summarize bytes = sum(bytes) by ip.dst | top 3 by bytes, ip.dst asc";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      summarize bytes=sum(len):int | ip.src=ip.src sport=sport ip.dst=ip.dst dport=dport ip.proto=ip.proto max 67108864
      summarize bytes=sum(#5):int | ip.dst=#2 max 67108864
      top 3 -#1 +#0
      -> ip.dst:ip bytes:int
    ");
}

#[test]
fn sliding_windows_with_lateness_and_filled_in() {
    let text = "param interval: duration = 10s\n\
        packets | summarize packets = rate(), behind = late() by ip.src \
          fill idle 1m lateness 5s over 6 * interval every interval max 1k";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      summarize packets=rate():float behind=late():int | ip.src=ip.src over 60000000000 every 10000000000 lateness 5000000000 fill Some(60000000000) max 1000
      -> ts:time ip.src:ip packets:float behind:int
    ");
}

#[test]
fn filled_in_from_the_start_a_top_is_that_of_all_windows() {
    let text = "packets | summarize n = count() by ip.src every 10s fill from start | top 3 by n";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      summarize n=count():int | ip.src=ip.src every 10000000000 fill from start max 67108864
      top 3 -#2
      -> ts:time ip.src:ip n:int
    ");
}

#[test]
fn sessions() {
    let text = "packets | summarize n = count(), why = end_reason() by ip.src session 15s active 60s \
        until tcp.rst linger 5s unless tcp.syn | top 3 by n | summarize n = count() every 1s";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      summarize n=count():int why=end_reason():int | ip.src=ip.src session 15000000000 Some(60000000000) None until tcp.rst linger 5000000000 unless tcp.syn max 16777216
      top 3 -#2
      summarize n=count():int |  every 1000000000 max 67108864
      -> ts:time n:int
    ");
    let text =
        "param size: int = 10\npackets | summarize bytes = sum(len) by flow every size rows max 5";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      summarize bytes=sum(len):int | ip.src=ip.src sport=sport ip.dst=ip.dst dport=dport ip.proto=ip.proto session 3600000000000 None Some(10) max 5
      -> ts:time ip.src:ip sport:int ip.dst:ip dport:int ip.proto:int bytes:int
    ");
}

#[test]
fn top_of_each_window() {
    let text = "packets | summarize packets = count() by ip.src every 1s\n\
        | top 3 by packets | project ts, ip.src, packets";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      summarize packets=count():int | ip.src=ip.src every 1000000000 max 67108864
      top 3 -#2 windowed
      project ts=#0 ip.src=#1 packets=#2
      -> ts:time ip.src:ip packets:int
    ");
}

#[test]
fn a_pipeline_of_rows_is_read_by_number() {
    let text = "let flows = packets | summarize bytes = sum(len) by flow\n\
        flows | where bytes > 1M\n\
        flows\n| summarize n = count()";
    insta::assert_snapshot!(lowered(text), @r"
    flows packets hidden
      summarize bytes=sum(len):int | ip.src=ip.src sport=sport ip.dst=ip.dst dport=dport ip.proto=ip.proto max 67108864
      -> ip.src:ip sport:int ip.dst:ip dport:int ip.proto:int bytes:int
    - [0]
      where (#5 > 1000000)
      -> ip.src:ip sport:int ip.dst:ip dport:int ip.proto:int bytes:int
    - [0]
      summarize n=count():int |  max 67108864
      -> n:int
    ");
}

#[test]
fn what_stands_before_a_join_is_a_pipeline_of_its_own() {
    let text = "
        let answers = packets | where udp | project answered = ts, id = dns.id, ip.src
        packets
        | project ts, id = dns.id, ip.dst
        | join left answers by id, ip.dst == ip.src within 3s default answered = @1970-01-01 max 9
        | where id > 1";
    let expected = "\
answers packets hidden
  where udp
  project answered=ts id=dns.id ip.src=ip.src
  -> answered:time id:int ip.src:ip
- packets hidden
  project ts=ts id=dns.id ip.dst=ip.dst
  -> ts:time id:int ip.dst:ip
- [1]
  join left [0] [(1, 1), (2, 2)] 0..3000000000 [0] max 9
  where (#1 > 1)
  -> ts:time id:int ip.dst:ip answered:time";
    assert_eq!(lowered(text), expected);
}

#[test]
fn a_pipeline_meets_itself_and_windows_meet_windows() {
    let text = "
        let talkers = packets | summarize n = count() by hosts every 1s
        let others = talkers | project ts, hosts.a, hosts.b, m = n
        talkers | join talkers by hosts.b == hosts.a, n within -1m..0s
        talkers | join anti others by hosts
        talkers | union others, talkers";
    let message = "both sides have columns `ts`, `hosts.b`";
    let q = Query { name: "query.weir", text };
    let errors = compile(&q, &Options::default()).expect_err("two columns of a name");
    assert_eq!(errors[0].message, message);
    let text = text.replace("join talkers by", "join anti talkers by");
    let expected = "\
- [0]
  join anti [0] [(2, 1), (3, 3)] -60000000000..0 [] max 4194304
  -> ts:time hosts.a:ip hosts.b:ip n:int
- [0]
  join anti [1] [(1, 1), (2, 2)] - [] max 4194304
  -> ts:time hosts.a:ip hosts.b:ip n:int
- [0]
  union [1, 0] [(\"ts\", [Some(0), Some(0), Some(0)]), \
(\"hosts.a\", [Some(1), Some(1), Some(1)]), (\"hosts.b\", [Some(2), Some(2), Some(2)]), \
(\"n\", [Some(3), None, Some(3)]), (\"m\", [None, Some(3), None])]
  -> ts:time hosts.a:ip hosts.b:ip n:int m:int";
    assert!(lowered(&text).ends_with(expected), "{}", lowered(&text));
}

#[test]
fn a_pipeline_of_packets_hands_on_packets() {
    let text = "let web = packets | where tcp.dport == 80 | extend kilo = len / 1000\n\
        let same = web\n\
        same | summarize n = count(tcp.syn) by kilo";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      where (tcp.dport == 80)
      extend kilo@0=(len / 1000)
      summarize n=count() if tcp.syn:int | kilo=#0 max 67108864
      -> kilo:int n:int
    ");
}

#[test]
fn print_shows_what_is_read_too() {
    let text =
        "let flows = packets | summarize by flow | print\nflows | limit 1\nlet alone = flows";
    let shown: Vec<(Option<String>, bool)> = program(text, &Options::default())
        .pipelines
        .into_iter()
        .map(|p| (p.name, p.printed))
        .collect();
    let alone = Some("alone".to_owned());
    assert_eq!(shown, [(Some("flows".to_owned()), true), (None, true), (alone, true)]);
}

#[test]
fn aliases_mean_what_is_there() {
    let text = "let web = tcp.dport in {80, 443}\nlet home = 10.0.0.0/8\nlet d = 2 * 5s\n\
        packets | where web and ip.src in home | summarize n = count() by tcp.dport every d\n\
        | where web";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      where (tcp.dport in {80, 443} and ip.src in {10.0.0.0/8})
      summarize n=count():int | tcp.dport=tcp.dport every 10000000000 max 67108864
      where #1 in {80, 443}
      -> ts:time tcp.dport:int n:int
    ");
}

#[test]
fn params_take_values_of_their_type() {
    let text = "param home: net = 10.0.0.0/8\nparam name: string = \"x\"\nparam f: float = 1\n\
        param d: duration = 1s\nparam t: time = @2023-01-01\nparam a: ip = ::1\n\
        param m: mac = 02:00:00:00:00:00\nparam b: bool = true\nparam n: int = -5\n\
        packets | where ip.src in home and name == \"y\" and f == f and ts - t > d and a == a \
        and m == m and b and n == n";
    let given = [
        ("home", "fe80::/10"),
        ("name", "y z"),
        ("f", "2"),
        ("d", "1.5h"),
        ("t", "@2024-01-01"),
        ("a", "10.0.0.1"),
        ("m", "02:00:5e:10:00:01"),
        ("b", "false"),
        ("n", "1"),
        ("n", "-0x10"),
    ];
    let params: Vec<_> = given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let program = program(text, &Options { params: &params, ..Options::default() });
    let Stage::Where(e) = &program.pipelines[0].stages[0] else { panic!("a condition") };
    let mut constants = Vec::new();
    e.visit(&mut |e| {
        if let ExprKind::Const(v) = &e.kind {
            constants.push(v.to_string());
        }
    });
    assert_eq!(
        constants.join(" "),
        "\"y z\" \"y\" 2.0 2.0 2024-01-01T00:00:00Z 90m 10.0.0.1 10.0.0.1 \
         02:00:5e:10:00:01 02:00:5e:10:00:01 false -16 -16"
    );
}

#[test]
fn registered_functions_are_called() {
    let signatures = Signatures {
        scalars: vec![ScalarSignature {
            name: "entropy".to_owned(),
            args: vec![Type::Str, Type::Float],
            ret: Type::Float,
        }],
        aggregates: vec![AggSignature {
            name: "typical".to_owned(),
            arg: Type::Float,
            ret: Type::Float,
        }],
    };
    let options = Options { signatures: &signatures, ..Options::default() };
    let text = "packets | extend e = entropy(string(ip.src), 1) | summarize m = typical(len)";
    let program = program(text, &options);
    insta::assert_snapshot!(pipeline(&program.pipelines[0]), @r"
    - packets
      extend e@0=User(0)(ToStr(ip.src), 1.0)
      summarize m=user(float!(len)):float |  max 67108864
      -> m:float
    ");
    let q = Query { name: "q", text: "packets | extend x = entropi(\"a\", 1), y = entropy(1, 2)" };
    let codes: Vec<Code> =
        compile(&q, &options).expect_err("wrong").iter().map(|d| d.code).collect();
    assert_eq!(codes, [Code::UnknownFunction, Code::WrongArgument]);
}

#[test]
fn long_conditions_stay_shallow() {
    let many = vec!["tcp.dport == 80"; 500].join(" or ");
    let text = condition(&many);
    assert_eq!(text.matches("==").count(), 500);
}

#[test]
fn a_column_can_be_called_like_a_word() {
    let text = "packets | summarize packets = count(), max = max(len), first = min(ts) by ip.src\n\
        | where packets > 5 and max > 100\n| top 5 by packets, max desc";
    insta::assert_snapshot!(lowered(text), @r"
    - packets
      summarize packets=count():int max=max(len):int first=min(ts):time | ip.src=ip.src max 67108864
      where ((#1 > 5) and (#2 > 100))
      top 5 -#1 -#2
      -> ip.src:ip packets:int max:int first:time
    ");
}

#[test]
fn rows_are_chosen_and_taken_apart() {
    let check = |text: &str, expected: &str| {
        let program = program(&format!("packets | {text}"), &Options::default());
        let stages = program.pipelines[0].stages.iter();
        let shown: Vec<String> =
            stages.take_while(|s| !matches!(s, Stage::Project { .. })).map(stage).collect();
        assert_eq!(shown.join(" | "), expected, "{text}");
    };
    check("top 3 by len per ip.dst", "top 3 -len per ip.dst max 1048576");
    check("top 1 by ts asc per hosts max 5", "top 1 +ts per hosts.a hosts.b max 5");
    check("distinct link", "distinct link.a link.b idle 9223372036854775807 max 16777216");
    check("distinct len idle 1s max 3", "distinct len idle 1000000000 max 3");
    check(
        "hello max 9",
        "hello ip.src sport ip.dst dport ip.proto idle 10000000000 max 9 \
         at [0, 1, 2, 3, 4, 5, 6, 7]",
    );
    check(
        "summarize n = count() by len every 1s | distinct n",
        "summarize n=count():int | len=len every 1000000000 max 67108864 | \
         distinct #2 idle 9223372036854775807 max 16777216 windowed",
    );
    check("sample 1 in 100", "sample 1 of 100 by number");
    check("sample 1% by hosts", "sample 1 of 100 by hosts.a hosts.b");
    check("sample 0.25%", "sample 1 of 400 by number");
    check("sample 100% by len, sport", "sample 1 of 1 by len sport");
    check(
        "summarize n = count() by len | sample 2 in 3",
        "summarize n=count():int | len=len max 67108864 | sample 2 of 3 by order",
    );
    check(
        "extend a = 1 | each vlan.tag | each x = vlan.tag",
        "extend a@0=1 | each vlan.tag: tag.id@1:int tag.pcp@2:int tag.dei@3:bool | \
         each vlan.tag: x.id@4:int x.pcp@5:int x.dei@6:bool",
    );
    check("each p = split(dns.qname, \".\")", "each split dns.qname \".\": p@0:string");
}

#[test]
fn ends_take_packets_out() {
    let text = "let workers = (\"a\", \"b\")\npackets | trim 64 | mirror \"copy\"\n\
                | branch when dns -> broadcast to workers when tcp -> tag 7 | pass | next\n\
                | where len > 1 | steer by hosts to workers";
    let expected = "- packets hidden
  trim 64 | mirror \"copy\"
  branch when dns -> trim 64 | broadcast to (\"a\", \"b\") when tcp -> trim 64 | tag 7 | pass | next
  where (len > 1)
  trim 64 | steer by hosts.a, hosts.b to (\"a\", \"b\")
  -> ";
    assert_eq!(lowered(text), expected);
}

/// A pipeline whose packets others take sends by itself; they only follow where it lets rows go.
#[test]
fn what_goes_out_goes_out_once() {
    let text = "let seen = packets | mirror \"all\" | where tcp\n\
                | branch when len > 100 -> mirror \"big\" | next when len > 50 -> drop | where udp\n\
                seen | pass\nseen | limit 1";
    let branch = "branch when len > 100 -> next when len > 50 -> ";
    let expected = format!(
        "seen packets hidden
  mirror \"all\"
  where tcp
  branch when len > 100 -> mirror \"big\" | next when len > 50 -> drop
  -> 
- packets hidden
  where tcp
  {branch}
  where udp
  pass
  -> 
- packets
  where tcp
  {branch}
  where udp
  limit 1
  project ts=ts len=len ip.src=ip.src sport=sport ip.dst=ip.dst dport=dport ip.proto=ip.proto protocol=protocol
  -> ts:time len:int ip.src:ip sport:int ip.dst:ip dport:int ip.proto:int protocol:string"
    );
    assert_eq!(lowered(text), expected);
}

#[test]
fn outputs_may_be_params() {
    let text =
        "param a: string = \"x.pcap\"\nlet both = (a, \"y.pcap\")\npackets | broadcast to both";
    let params = [("a".to_owned(), "z.pcap".to_owned())];
    let options = Options { params: &params, ..Options::default() };
    let outlets = program(text, &options).outlets();
    let names: Vec<String> = outlets.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["\"z.pcap\"", "\"y.pcap\""]);
}

#[test]
fn captures() {
    let text = "let scans = packets | summarize n = count() by attacker = ip.src, sport every 10s \
        | capture 30s after 5s by ip.src = attacker, sport\nscans | limit 3";
    let program = program(text, &Options::default());
    let capture = program.captures().next().expect("one");
    assert_eq!(capture.over_ns, 10_000_000_000);
    assert_eq!((capture.before_ns, capture.after_ns), (30_000_000_000, 5_000_000_000));
    insta::assert_snapshot!(expr(&capture.name), @r#"Concat(Concat(Concat(Concat(Concat(Concat(Concat("scans", "-"), Replace(Coalesce(ToStr(#0), "none"), ":", "")), "-"), Replace(Coalesce(ToStr(#1), "none"), ":", "_")), "-"), Replace(Coalesce(ToStr(#2), "none"), ":", "_")), ".pcapng")"#);
    insta::assert_snapshot!(lowered(text), @r"
    scans packets
      summarize n=count():int | attacker=ip.src sport=sport every 10000000000 max 67108864
      capture @4 from #0 30000000000+10000000000+5000000000 | ip.src=#1 sport=#2
      -> ts:time attacker:ip sport:int n:int capture:string
    - [0]
      limit 3
      -> ts:time attacker:ip sport:int n:int capture:string
    ");
}

#[test]
fn alerts() {
    let flood = "param limit: int = 3
let rate = limit * 2
packets
| summarize n = count(), completeness() by server = ip.dst, dport every 10s
| where dport == 80 and n > 3 * limit
| where server != 10.0.0.1
| alert \"{{{server}}} {rate} of {limit}\" severity critical repeat 1h max 7";
    insta::assert_snapshot!(lowered(flood));
    let others =
        "let x = packets | summarize n = count(), d = max(ts) by flow session 5s | where n < 200
x | where 1.5s <= d - ts | alert \"slow\" key ip.dst, sport hold 1ms
x | extend m = n | where d - ts > 1.5s | alert \"{ip.src}\" key flow
packets | project ts, ip.src | alert \"\"
packets | project ts, len | where len < 3 and 9 <= len * 2 | extend size = len, len = 1 | project ts, size | alert \"x\"
packets | project ts, len | where len < 3 and 9 <= len | rename size = len | extend n = 1 | alert \"x\"
packets | project ts, len | where len > 5 or len < 3 | alert \"x\" hold 1s | limit 5";
    insta::assert_snapshot!(lowered(others));
}

/// The `summarize` before an alert says when its packets were, unless the query does, or others see
/// its rows.
#[test]
fn an_alert_knows_when_its_packets_were() {
    let check = |text: &str, expected: &str| {
        let shown = lowered(text);
        let line = shown.lines().rev().find_map(|line| line.trim().split_once(" packets "));
        let (_, found) = line.expect("an alert");
        let (found, _) = found.split_once(" said ").expect("it says more");
        assert_eq!(found, expected, "{text}");
    };
    let count = "packets | summarize n = count() by ip.src every 1s";
    let (given, none) = ("(Some(3), Some(4))", "(None, None)");
    check(&format!("{count} | where n > 3 | alert \"x\""), given);
    check(&format!("{count} | extend m = n | top 3 by m | alert \"x\""), given);
    check(&format!("{count} | project ts, k = n | alert \"x\""), "(Some(2), Some(3))");
    check(&format!("{count} | project-away n | alert \"x\""), "(Some(2), Some(3))");
    check("packets | summarize n = count() by ip.src session 5s | alert \"x\"", given);
    check(
        "let tcp_only = packets | where tcp\ntcp_only | summarize n = count() every 1s | alert \"x\"",
        "(Some(2), Some(3))",
    );
    check(&format!("{count} | summarize m = max(n) every 1m | alert \"x\""), "(Some(2), Some(3))");
    // A name is left to the query.
    let own = "packets | summarize n = count(), alert.last = max(ts) by ip.src every 1s";
    check(&format!("{own} | alert \"x\""), "(None, Some(3))");
    check(&format!("{count} | extend alert.first = ts | alert \"x\""), "(Some(3), None)");
    // Rows of packets say themselves when they were.
    check("packets | project ts, ip.src | alert \"x\"", none);
    check(&format!("let c = {count}\nc | alert \"x\""), given);
    let totals = format!("let c = {count}\nlet t = c | summarize total = sum(n) every 1s\n");
    check(&format!("{totals}c | join t by ts | alert \"x\""), given);
    // Both sides of a join would have the columns.
    check(&format!("{totals}t | alert \"x\"\nc | join t by ts | alert \"x\""), given);
    check(&format!("{totals}c | join t by ts | alert \"x\"\nt | alert \"x\""), none);
    // Others print these rows.
    check(&format!("let c = {count}\nc | where n > 9\nc | alert \"x\""), none);
    check(&format!("let c = {count} | print\nc | alert \"x\""), none);
    let two = "let a = packets | summarize n = count() by ip.src every 1s\n\
               let b = packets | summarize n = count() by ip.src every 2s\n";
    check(&format!("{two}a | union b | alert \"x\""), given);
    let plain = two.replace("by ip.src every 2s", "by ip.src every 2s | project ts, ip.src, n");
    check(&format!("{plain}a | union b | alert \"x\""), given);
    let packets = "let a = packets | summarize n = count() by ip.src every 1s\n\
                   let b = packets | project ts, ip.src, n = len\n";
    check(&format!("{packets}a | union b | alert \"x\""), none);
}

/// The comparison of an alert is in the nearest `where` with a constant; where there is none, in
/// the nearest with another value of the row.
#[test]
fn an_alert_knows_the_nearest_comparison() {
    let check = |conditions: &str, expected: &str| {
        let groups = "packets | summarize n = count(), m = sum(len) by ip.src every 1s";
        let shown = lowered(&format!("{groups} | {conditions} | alert \"x\""));
        let line = shown.lines().find_map(|line| line.trim().strip_prefix("compared "));
        assert_eq!(line, Some(expected), "{conditions}");
    };
    check("where n > 9 | where m < 5", "m Least float!(#3) 5.0");
    check("where n > 9 | where m < n", "n Most float!(#2) 9.0");
    check("where m <= n and n > 9", "n Most float!(#2) 9.0");
    check("where n > 3 and m > 7 | where ip.src != 10.0.0.1", "n Most float!(#2) 3.0");
    check("where n > m | where m >= n + 1", "m Most float!(#3) float!((#2 + 1))");
    check("where n > 9 | extend n = 1 | where m > n", "m Most float!(#3) float!(#2)");
    check("where n > 9 | extend k = m | where k > 7 | project-away k", "n Most float!(#2) 9.0");
}

/// A histogram is known by what it is, whatever its column is called since.
#[test]
fn histograms_under_other_names() {
    let check = |stages: &str, of: &str, expected: Option<&str>| {
        let text = format!(
            "packets | summarize n = count(), h = histogram(len, 9), g = histogram(ip.len, 7) \
             by ip.src every 1s{stages} | metric histogram \"x\" of {of}"
        );
        let query = Query { name: "query", text: &text };
        let compiled = compile(&query, &Options::default());
        let step = compiled.ok().map(|compiled| {
            let last = compiled.program.pipelines.last().expect("one").stages.last().cloned();
            let Some(Stage::Metric(metric)) = last else { panic!("{text}: {last:?}") };
            format!("{:?}", metric.kind)
        });
        assert_eq!(step.as_deref(), expected, "{text}");
    };
    let (h, g) = (Some("Histogram(Int(9))"), Some("Histogram(Int(7))"));
    check("", "h", h);
    check(" | rename sizes = h", "sizes", h);
    check(" | rename sizes = h | rename all = sizes, h = g", "all", h);
    check(" | rename sizes = h | rename h = g", "h", g);
    check(" | project ts, b = g, a = h", "b", g);
    check(" | project-away n, h | where exists(g) | top 3 by ts", "g", g);
    check(" | extend k = h, n = 1", "k", h);
    check(" | where n > 3 | alert \"{n}\"", "h", h);
    check(" | extend h = \"9=5\"", "h", None);
    check(" | project ts, h = string(n)", "h", None);
    check(" | project ts, h = concat(h, g)", "h", None);
    check(" | summarize m = last(h) by ip.src", "m", None);
    check(" | rename sizes = n, n = h", "sizes", None);
    check(" | scan h = h by ip.src => concat(h, g)", "h", None);
}

#[test]
fn metrics() {
    let text = "let x = packets
| summarize n = count(), h = histogram(ip.len, 100) by ip.src, dport every 10s
| metric counter \"hosts_total\" of n
| metric histogram \"sizes_bytes\" of h by dport max 5 help \"é \\\"so\\\"\"
| print
packets | summarize n = count(), last = max(ts) by a = ip.src session 5s
| rename b = a | where n > 2 | metric gauge \"last_seconds\" of last by b | metric counter \"sessions\"
| capture 1s by ip.src = b";
    insta::assert_snapshot!(lowered(text));
}
