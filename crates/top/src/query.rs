//! The programs that count for the screen, as text of the query language.

use crate::filter::condition_stages;
use crate::limits::{GROUPS_MAX, ROWS_OF_WINDOW};
use crate::queried::LibraryQuery;
use crate::table::Data;
use weir_lang::{Options, Query, ReadingRules, compile, render};
use weir_plan::{Input, Program};

/// How the time of a run goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Packets come from a wire, and time goes on while none comes.
    Live,
    /// Packets come from a stream that can't be read again.
    Stream,
    /// Packets come from files, which are read from the beginning at each change.
    Whole,
}

/// The setup by which the run counts from some time on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The kinds of counts.
    pub data: Vec<Data>,
    /// The keys of [`Data::Keys`], in the query language.
    pub keys: String,
    /// The query of [`Data::Query`].
    pub query: Option<LibraryQuery>,
    /// The condition that packets have to meet; empty for none.
    pub filter: String,
    /// How time goes on.
    pub pace: Pace,
    /// How many threads count.
    pub workers: usize,
    /// The rules by which the texts of queries are read, from the options of the run.
    pub rules: ReadingRules,
    /// Grows with each change of the filter.
    pub filters: u64,
    /// Grows with each change.
    pub changes: u64,
}

/// The role of the rows of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Packets and bytes by interface.
    Totals {
        /// [`Setup::filters`].
        filters: u64,
        /// [`Setup::changes`].
        changes: u64,
    },
    /// Packets and bytes by key: sent, or in both directions.
    Sent(Data),
    /// Packets and bytes received by key.
    Received(Data),
    /// Names of addresses.
    Names,
    /// The rows of the query of the library. Its program is called as the query is, since its
    /// alerts are called as their program.
    Query,
}

impl Role {
    /// The name of a program with this role; a query has its own.
    fn name(self) -> String {
        match self {
            Role::Totals { filters, changes } => format!("totals-{filters}-{changes}"),
            Role::Sent(data) => format!("{}-sent", data.word()),
            Role::Received(data) => format!("{}-received", data.word()),
            Role::Names => "names-of-hosts".to_owned(),
            Role::Query => String::new(),
        }
    }

    /// The role of the program of an output.
    pub(crate) fn of_output(name: &str) -> Role {
        let name = name.split('.').next().unwrap_or(name);
        let totals = || {
            let (filters, changes) = name.strip_prefix("totals-")?.split_once('-')?;
            let (filters, changes) = (filters.parse().ok()?, changes.parse().ok()?);
            Some(Role::Totals { filters, changes })
        };
        let counted = Data::FIXED.into_iter().chain([Data::Keys]);
        let sides = counted.flat_map(|data| [Role::Sent(data), Role::Received(data)]);
        let known = || sides.chain([Role::Names]).find(|role| role.name() == name);
        totals().or_else(known).unwrap_or(Role::Query)
    }
}

/// Names of addresses: those that DNS answers give, and those that clients ask servers for. The
/// filter does not apply to them: one for HTTPS would leave out the answers of DNS that name its
/// servers.
const NAMES: &str = "\
let answers = packets
    | where dns.qr
    | each dns.answer
    | where exists(answer.addr)
    | summarize n = count() by addr = answer.addr, name = coalesce(dns.qname, answer.name)";
const HELLOS: &str = "\
packets
    | where exists(tls.sni) or exists(quic.sni)
    | summarize n = count() by addr = ip.dst, name = coalesce(tls.sni, quic.sni)";

impl Setup {
    /// The names and texts of all programs.
    pub(crate) fn texts(&self) -> Vec<(String, String)> {
        let totals = Role::Totals { filters: self.filters, changes: self.changes };
        let mut all = vec![(totals.name(), self.totals())];
        for &data in &self.data {
            if data == Data::Query {
                all.extend(self.query.iter().map(|query| (query.name.clone(), query.text.clone())));
                continue;
            }
            all.push((Role::Sent(data).name(), self.groups(data, false)));
            if data.has_directions() {
                all.push((Role::Received(data).name(), self.groups(data, true)));
            }
        }
        if self.data.contains(&Data::Hosts) {
            all.push((Role::Names.name(), self.names()));
        }
        all
    }

    /// The packets that meet the filter. The filter has a line of its own: it may end in a comment.
    fn packets(&self) -> String {
        match self.filter.trim() {
            "" => "packets\n".to_owned(),
            filter => format!("packets\n| where {filter}\n"),
        }
    }

    fn totals(&self) -> String {
        // Rates of a whole capture are of the time between its packets, not of windows.
        let (ends, every) = match self.pace {
            Pace::Live => ("", "every 1s fill"),
            Pace::Stream => ("", "every 1s"),
            Pace::Whole => ("first = min(ts), last = max(ts), ", "every 100ms"),
        };
        let packets = self.packets();
        format!(
            "{packets}| summarize {ends}packets = count(), bytes = sum(len) by interface {every}\n"
        )
    }

    fn groups(&self, data: Data, is_received: bool) -> String {
        let packets = self.packets();
        let keys = match data {
            // A line of their own, as the filter.
            Data::Keys => format!("{}\n   ", self.keys),
            data => data.keys(is_received).to_owned(),
        };
        format!(
            "{packets}| summarize packets = count(), bytes = sum(len) by {keys}{}{}\n\
             | top {ROWS_OF_WINDOW} by bytes\n",
            self.windows(),
            self.bound()
        )
    }

    fn names(&self) -> String {
        let (windows, bound) = (self.windows(), self.bound());
        let top = format!("| top {ROWS_OF_WINDOW} by n");
        format!(
            "{NAMES}{windows}{bound}\n    {top}\n    | print\n\n{HELLOS}{windows}{bound}\n{top}\n"
        )
    }

    fn windows(&self) -> &'static str {
        if self.pace == Pace::Whole { "" } else { " every 1s" }
    }

    /// A bound by name is exact, and takes one worker for that.
    fn bound(&self) -> String {
        if self.workers > 1 { String::new() } else { format!(" max {GROUPS_MAX}") }
    }

    /// All programs, compiled.
    ///
    /// # Errors
    /// What is wrong with one of them, drawn under its text.
    pub fn compile(&self) -> Result<Vec<(String, Program)>, String> {
        let one = |(name, text): (String, String)| {
            let query = Query { name: &name, text: &text };
            let options = Options { program: &name, rules: self.rules, ..Options::default() };
            match compile(&query, &options) {
                Ok(compiled) => {
                    let is_query = Role::of_output(&name) == Role::Query;
                    let filter = if is_query { self.filter.as_str() } else { "" };
                    Ok((name.clone(), filtered(compiled.program, filter, self.rules)?))
                }
                Err(diagnostics) => Err(render(&diagnostics, &query, false)),
            }
        };
        self.texts().into_iter().map(one).collect()
    }
}

/// A program over the packets that meet a condition.
fn filtered(mut program: Program, condition: &str, rules: ReadingRules) -> Result<Program, String> {
    let conditions = condition_stages(condition, rules).map_err(|fault| fault.message)?;
    for pipeline in program.pipelines.iter_mut().filter(|p| p.input == Input::Packets) {
        pipeline.stages.splice(..0, conditions.iter().cloned());
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::fields::{FlowKey, KeyPart};

    const QUERY: &str = "let a = packets | where udp | project ts, ip.src, len
let b = packets | project ts, ip.src, len
a | union b | summarize n = count() by ip.src every 1s";

    fn setup(pace: Pace, filter: &str, workers: usize) -> Setup {
        let filter = filter.to_owned();
        let query = LibraryQuery {
            name: "both".to_owned(),
            title: "two".to_owned(),
            text: QUERY.to_owned(),
        };
        Setup {
            data: [&Data::FIXED[..], &[Data::Keys, Data::Query]].concat(),
            keys: "dport, port = min_of(sport, dport) # services".to_owned(),
            query: Some(query),
            filter,
            workers,
            filters: 3,
            changes: 12,
            ..Setup::first(pace, 1)
        }
    }

    #[test]
    fn keys_are_those_of_the_run() {
        let columns = |flow_key| {
            let rules = ReadingRules { flow_key, ..ReadingRules::default() };
            let data = vec![Data::Flows];
            let setup = Setup { data, rules, ..Setup::first(Pace::Live, 1) };
            let programs = setup.compile().expect("compiles");
            let (_, program) = programs.last().expect("a program");
            format!("{:?}", program.pipelines[0].schema)
        };
        assert!(columns(FlowKey::default().with(KeyPart::Vlan)).contains("vlan.inner"));
        assert!(!columns(FlowKey::default()).contains("vlan"));
    }

    #[test]
    fn programs_compile_whatever_is_asked_for() {
        for pace in [Pace::Live, Pace::Stream, Pace::Whole] {
            for filter in ["", "tcp and dport == 443", "udp # only these"] {
                for workers in [1, 4] {
                    let programs = setup(pace, filter, workers).compile().expect("compiles");
                    assert_eq!(programs.len(), 10);
                    let joined = weir_plan::together::side_by_side(programs).expect("few");
                    let outputs = joined.pipelines.iter().filter(|p| p.printed);
                    let names: Vec<_> = outputs.filter_map(|p| p.name.clone()).collect();
                    assert_eq!(names.len(), 11);
                    let queries = names.iter().filter(|name| Role::of_output(name) == Role::Query);
                    assert_eq!(queries.collect::<Vec<_>>(), ["both"]);
                }
            }
        }
    }

    #[test]
    fn roles_are_read_from_names() {
        let totals = Role::Totals { filters: u64::MAX, changes: 0 };
        for role in [totals, Role::Sent(Data::Flows), Role::Received(Data::Keys), Role::Names] {
            assert_eq!(Role::of_output(&role.name()), role);
        }
        for name in ["", "totals-1", "totals-x-1", "hosts", "hosts-sen", "names", "sources.a"] {
            assert_eq!(Role::of_output(name), Role::Query, "{name}");
        }
    }

    #[test]
    fn the_filter_holds_for_all_that_a_query_reads() {
        let program = |filter: &str| {
            let programs = setup(Pace::Live, filter, 1).compile().expect("compiles");
            programs.into_iter().find(|(name, _)| name == "both").expect("it is there").1
        };
        let (all, some) = (program(""), program("tcp or vlan.id == 7 # two"));
        let reads = |program: &Program| {
            let packets = program.pipelines.iter().filter(|p| p.input == Input::Packets);
            packets.map(|p| p.stages.clone()).collect::<Vec<_>>()
        };
        let (all, some) = (reads(&all), reads(&some));
        assert_eq!((all.len(), some.len()), (2, 2));
        for (all, some) in all.iter().zip(&some) {
            assert!(matches!(some[0], weir_plan::Stage::Where(_)), "{some:?}");
            assert_eq!(some[1..], all[..]);
        }
    }

    #[test]
    fn the_query_of_a_table() {
        let mut live = setup(Pace::Live, "tcp", 1);
        live.data = vec![Data::Pairs];
        let texts = live.texts();
        assert_eq!(
            texts[1].1,
            "packets\n| where tcp\n| summarize packets = count(), bytes = sum(len) by hosts every \
             1s max 262144\n| top 1000 by bytes\n"
        );
    }
}
