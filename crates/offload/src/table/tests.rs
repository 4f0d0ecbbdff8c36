//! Tables in the kernel, against a model.

use super::code::{TableCode, TableExits, TablePlaces};
use super::*;
use proptest::prelude::*;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use weir_capture::ebpf::{
    Program, ProgramKind, SharedMemory, can_wait_for_programs, cpu_numbers, wait_for_programs,
};
use weir_ebpf::Reg::*;
use weir_ebpf::{Alu, Assembler, Code, Cond, Helper, Reg, Size};
use weir_plan::limits::GROUPS_MAX;
use weir_plan::physical::PipelineId;
use weir_plan::{Agg, AggFunc, Expr, Summarize, Type, Value, Window};

/// Whether this test may load programs; says that it is skipped where not.
#[expect(clippy::print_stderr, reason = "tests say what they leave out")]
fn may(test: &str) -> bool {
    let refused = SharedMemory::new("weir-test", 1).err();
    if let Some(why) = &refused {
        eprintln!("SKIPPED {test} needs root and bpf(2): {why}");
    }
    refused.is_none() && can_wait_for_programs()
}

const WORD: ValueShape = ValueShape::Word { least: 0, greatest: 0xffff, is_nullable: false };
const OPTIONAL: ValueShape = ValueShape::Word { least: 0, greatest: 0xff, is_nullable: true };
const SIGNED: ValueShape = ValueShape::Word { least: -9, greatest: 1 << 30, is_nullable: true };
const LONG: ValueShape =
    ValueShape::Word { least: i64::MIN / 2, greatest: i64::MAX / 2, is_nullable: false };
const TIME: ValueShape = ValueShape::Word { least: 0, greatest: i64::MAX - 1, is_nullable: true };
const TRUTH: ValueShape = ValueShape::Word { least: 0, greatest: 1, is_nullable: true };
const ADDRESS: ValueShape = ValueShape::Address { is_nullable: false };
const SOME_ADDRESS: ValueShape = ValueShape::Address { is_nullable: true };

/// One aggregate: what it computes, and its argument.
type TestAgg = (AggFunc, Option<ValueShape>);

fn plan(keys: usize, aggs: &[TestAgg]) -> Summarize {
    let expr = || Expr::constant(Value::Int(1));
    let agg = |&(func, arg): &TestAgg| Agg {
        name: "a".to_owned(),
        func,
        arg: arg.map(|_| expr()),
        cond: None,
        ty: Type::Int,
    };
    Summarize {
        keys: (0..keys).map(|k| (k.to_string(), expr())).collect(),
        aggs: aggs.iter().map(agg).collect(),
        window: Window::Tumbling(1_000_000_000),
        lateness_ns: 0,
        fill: None,
        until: None,
        unless: None,
        zone: None,
        max_groups: GROUPS_MAX,
    }
}

/// A table whose CPUs have room for `1 << bits` slots.
fn table(keys: &[ValueShape], aggs: &[TestAgg], bits: u32) -> Table {
    let cpus = u32::try_from(cpu_numbers().expect("there are CPUs")).expect("few");
    let options = TableOptions { cpus, secret: [0x1234_5678_9abc_def0, 0x9e37_79b9_7f4a_7c15] };
    let args: Vec<_> = aggs.iter().map(|agg| agg.1).collect();
    let plan = plan(keys.len(), aggs);
    let mut table = Table::new(PipelineId(0), &plan, keys, &args, options).expect("it can");
    if table.slots > 1 {
        table.slots = 1 << bits;
    }
    table
}

/// Tables in the kernel, and a program that reads what it takes from the packet: by table the parts
/// of the key, each after whether it is there, then the arguments of aggregates in the same way.
struct Kernel {
    tables: Vec<Table>,
    shapes: Vec<Shapes>,
    memory: Vec<SharedMemory>,
    control: SharedMemory,
    program: Program,
    packet_bytes: usize,
}

#[derive(Clone)]
struct Shapes {
    keys: Vec<ValueShape>,
    aggs: Vec<TestAgg>,
}

/// The key and the arguments that a packet gives to one table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Told {
    key: Vec<Option<u128>>,
    args: Vec<Option<i64>>,
}

/// Where on the stack of the test's program it is when a frame came.
const ARRIVAL: i16 = -48;

const COUNTED: u32 = 0;
const FULL: u32 = 1;
const ENDED: u32 = 2;

impl Kernel {
    fn new(shapes: &[Shapes], bits: u32) -> Kernel {
        let tables: Vec<Table> = shapes.iter().map(|s| table(&s.keys, &s.aggs, bits)).collect();
        let map = |t: &Table| SharedMemory::new("weir-table", t.words()).expect("memory");
        let memory: Vec<_> = tables.iter().map(map).collect();
        let words = Control { tables: tables.len() }.words();
        let control = SharedMemory::new("weir-control", words).expect("memory");
        let value = |shape: &ValueShape| match shape {
            ValueShape::Address { .. } => 24,
            ValueShape::Word { .. } => 16,
        };
        let of = |s: &Shapes| s.keys.iter().map(value).sum::<usize>() + 16 * s.aggs.len();
        let packet_bytes = shapes.iter().map(of).sum::<usize>().max(14);
        let code = Kernel::code(&tables, shapes, packet_bytes);
        let mut fds: Vec<i32> = memory.iter().map(SharedMemory::number).collect();
        fds.push(control.number());
        let program = Program::load(ProgramKind::Xdp, "weir-test", &code.with_maps(&fds));
        let program = program.unwrap_or_else(|e| panic!("{e}\n{code}"));
        let shapes = shapes.to_vec();
        Kernel { tables, shapes, memory, control, program, packet_bytes }
    }

    fn code(tables: &[Table], shapes: &[Shapes], packet_bytes: usize) -> Code {
        let mut a = Assembler::new();
        let (full, ended, whole) = (a.label("full"), a.label("ended"), a.label("whole"));
        a.load(Size::W, R6, R1, 0).load(Size::W, R4, R1, 4);
        a.mov(R5, R6).add(R5, packet_bytes as i32).jump_if(Cond::Le, R5, R4, whole);
        a.mov(R0, 3).exit();
        a.bind(whole);
        TableCode::begin(&mut a, -8);
        a.call(Helper::KTIME_GET_NS).store(Size::DW, R10, ARRIVAL, R0);
        let mut at = 0;
        let codes: Vec<TableCode<'_>> = tables
            .iter()
            .enumerate()
            .map(|(number, table)| {
                let slot = -16 - 8 * number as i16;
                let places = TablePlaces { cpu: -8, key: -200, slot, arrival: ARRIVAL };
                let control = tables.len() as i32;
                TableCode { table, map: number as i32, control, number, places }
            })
            .collect();
        let mut args_at = Vec::new();
        for (code, shapes) in codes.iter().zip(shapes) {
            code.key().begin(&mut a);
            for (p, shape) in shapes.keys.iter().enumerate() {
                optional(&mut a, at, |a| match shape {
                    ValueShape::Address { .. } => {
                        a.load(Size::DW, R0, R6, at + 8).load(Size::DW, R1, R6, at + 16);
                        code.key().set_address(a, p, R0, R1);
                    }
                    ValueShape::Word { .. } => {
                        a.load(Size::DW, R0, R6, at + 8);
                        code.key().set_word(a, p, R0, R1);
                    }
                });
                at += if matches!(shape, ValueShape::Address { .. }) { 24 } else { 16 };
            }
            code.find(&mut a, TableExits { full, ended });
            args_at.push(at);
            at += 16 * shapes.aggs.len() as i16;
        }
        for ((code, shapes), at) in codes.iter().zip(shapes).zip(args_at) {
            code.slot(&mut a, R7);
            code.count(&mut a, R7, R0);
            for c in 0..shapes.aggs.len() {
                let at = at + 16 * c as i16;
                optional(&mut a, at, |a| {
                    a.load(Size::DW, R0, R6, at + 8);
                    // The lower half of a test's address follows from the upper one.
                    a.mov(R1, R0).alu(Alu::Xor, R1, -1);
                    code.update(a, c, R7, [R0, R1], R2);
                });
            }
        }
        a.mov(R0, COUNTED as i32).exit();
        if codes.iter().any(TableCode::may_be_full) {
            a.bind(full);
            a.mov(R0, FULL as i32).exit();
        }
        a.bind(ended);
        a.mov(R0, ENDED as i32).exit();
        a.finish().unwrap_or_else(|e| panic!("{e}"))
    }

    fn packet(&self, told: &[Told]) -> Vec<u8> {
        let mut packet = Vec::new();
        let mut word = |word: u64| packet.extend_from_slice(&word.to_ne_bytes());
        for (told, shapes) in told.iter().zip(&self.shapes) {
            for (part, shape) in told.key.iter().zip(&shapes.keys) {
                word(part.is_some().into());
                if let ValueShape::Address { .. } = shape {
                    word((part.unwrap_or(0) >> 64) as u64);
                }
                word(part.unwrap_or(0) as u64);
            }
            for arg in &told.args {
                word(arg.is_some().into());
                word(arg.unwrap_or(0) as u64);
            }
        }
        packet.resize(self.packet_bytes, 0);
        packet
    }

    fn run(&self, told: &[Told], repeat: u32) -> u32 {
        self.program.test_run(&self.packet(told), repeat).expect("a packet that fits").returned
    }

    /// Has programs write to the other half of a table, and takes what is in the one before.
    fn flip(&self, t: usize) -> TableGroups {
        let half = &self.control.words()[Control { tables: self.tables.len() }.half(t)];
        let before = half.load(Ordering::Relaxed);
        half.store(1 - before, Ordering::SeqCst);
        wait_for_programs().expect("it works here");
        let mut groups = TableGroups::default();
        self.tables[t].take(self.memory[t].words(), before as usize, &mut groups);
        groups
    }
}

fn optional(a: &mut Assembler, at: i16, write: impl FnOnce(&mut Assembler)) {
    let absent = a.label("absent");
    let presence: Reg = R0;
    a.load(Size::DW, presence, R6, at).jump_if(Cond::Eq, presence, 0, absent);
    write(a);
    a.bind(absent);
}

/// Values that came to an aggregate of a group, and how many frames the group has.
type Model = BTreeMap<Vec<Option<u128>>, (u64, Vec<Vec<i64>>)>;

fn add_to(model: &mut Model, told: &Told) {
    let fresh = || (0, vec![Vec::new(); told.args.len()]);
    let (frames, values) = model.entry(told.key.clone()).or_insert_with(fresh);
    *frames += 1;
    values.iter_mut().zip(&told.args).for_each(|(values, arg)| values.extend(arg));
}

/// Cells of the groups of several CPUs together.
fn merged(groups: &TableGroups, shapes: &Shapes) -> BTreeMap<Vec<Option<u128>>, Vec<CellValue>> {
    let mut all: BTreeMap<Vec<Option<u128>>, Vec<CellValue>> = BTreeMap::new();
    let (parts, aggs) = (shapes.keys.len(), shapes.aggs.len());
    for g in 0..groups.groups {
        let key = groups.keys[g * parts..(g + 1) * parts].to_vec();
        let cells = &groups.cells[g * aggs..(g + 1) * aggs];
        let Some(so_far) = all.get_mut(&key) else {
            all.insert(key, cells.to_vec());
            continue;
        };
        for ((into, from), (func, _)) in so_far.iter_mut().zip(cells).zip(&shapes.aggs) {
            if from.values == 0 {
                continue;
            }
            if matches!(func, AggFunc::First | AggFunc::Last) {
                let is_later = from.at > into.at;
                if into.values == 0 || is_later == (*func == AggFunc::Last) {
                    *into = *from;
                }
                continue;
            }
            let (a, b) = (into.word as i64, from.word as i64);
            let none = into.values == 0;
            into.word = match func {
                AggFunc::Min if !none => a.min(b) as u64,
                AggFunc::Max if !none => a.max(b) as u64,
                AggFunc::Min | AggFunc::Max => b as u64,
                AggFunc::BitOr | AggFunc::Any | AggFunc::All => into.word | from.word,
                _ => into.word.wrapping_add(from.word),
            };
            into.values += from.values;
        }
    }
    all
}

/// Checks what came out of a half against what went in.
fn check(groups: &TableGroups, shapes: &Shapes, model: &Model) {
    let found = merged(groups, shapes);
    assert_eq!(found.keys().collect::<Vec<_>>(), model.keys().collect::<Vec<_>>());
    for (key, (frames, values)) in model {
        for (c, (func, arg)) in shapes.aggs.iter().enumerate() {
            let (cell, values) = (found[key][c], &values[c]);
            let n = values.len() as u64;
            let signed = cell.word as i64;
            match func {
                AggFunc::Count if arg.is_none() => assert_eq!(cell.word, *frames),
                AggFunc::Count => assert_eq!(cell.word, n, "{key:?}"),
                _ if n == 0 => assert_eq!(cell.values, 0, "{func:?} {key:?}"),
                AggFunc::First | AggFunc::Last => {
                    let one = if *func == AggFunc::First { values.first() } else { values.last() };
                    let is_address = matches!(arg, Some(ValueShape::Address { .. }));
                    let got = if is_address { cell.high as i64 } else { signed };
                    assert_eq!(Some(&got), one, "{func:?} {key:?}");
                    assert_eq!(cell.high, if is_address { !cell.word } else { 0 });
                }
                AggFunc::Sum => {
                    assert_eq!(i128::from(signed), values.iter().map(|&v| i128::from(v)).sum());
                    assert!(cell.values > 0);
                }
                AggFunc::Avg => {
                    assert_eq!(i128::from(signed), values.iter().map(|&v| i128::from(v)).sum());
                    assert_eq!(cell.values, n);
                }
                AggFunc::Min => assert_eq!(Some(&signed), values.iter().min(), "{key:?}"),
                AggFunc::Max => assert_eq!(Some(&signed), values.iter().max(), "{key:?}"),
                AggFunc::Any | AggFunc::All => {
                    assert_eq!(cell.word, values.iter().fold(0, |seen, v| seen | 1 << v));
                }
                AggFunc::BitOr => assert_eq!(signed, values.iter().fold(0, |all, v| all | v)),
                other => unreachable!("{other:?}"),
            }
        }
    }
    assert_eq!(groups.frames, model.values().map(|group| group.0).sum::<u64>());
}

fn all_aggs() -> Vec<TestAgg> {
    vec![
        (AggFunc::Count, None),
        (AggFunc::Count, Some(OPTIONAL)),
        (AggFunc::Sum, Some(WORD)),
        (AggFunc::Sum, Some(SIGNED)),
        (AggFunc::Avg, Some(SIGNED)),
        (AggFunc::Avg, Some(WORD)),
        (AggFunc::Min, Some(LONG)),
        (AggFunc::Max, Some(LONG)),
        (AggFunc::Min, Some(TIME)),
        (AggFunc::Max, Some(SIGNED)),
        (AggFunc::Any, Some(TRUTH)),
        (AggFunc::All, Some(TRUTH)),
        (AggFunc::BitOr, Some(OPTIONAL)),
        (AggFunc::BitOr, Some(WORD)),
        (AggFunc::First, Some(OPTIONAL)),
        (AggFunc::Last, Some(LONG)),
        (AggFunc::First, Some(ADDRESS)),
        (AggFunc::Last, Some(SOME_ADDRESS)),
    ]
}

fn value(shape: ValueShape) -> BoxedStrategy<Option<i64>> {
    let (least, greatest, is_nullable) = match shape {
        ValueShape::Word { least, greatest, is_nullable } => (least, greatest, is_nullable),
        ValueShape::Address { is_nullable } => (i64::MIN, i64::MAX, is_nullable),
    };
    let edges = [least, least + 1, greatest - 1, greatest, 0.clamp(least, greatest)];
    let value = prop_oneof![proptest::sample::select(edges.to_vec()), least..=greatest];
    match is_nullable {
        true => prop_oneof![1 => Just(None), 4 => value.prop_map(Some)].boxed(),
        false => value.prop_map(Some).boxed(),
    }
}

/// A part of a key, one of few values.
fn part(shape: ValueShape) -> BoxedStrategy<Option<u128>> {
    match shape {
        ValueShape::Word { .. } => {
            value(shape).prop_map(|word| word.map(|word| u128::from(word as u64))).boxed()
        }
        ValueShape::Address { is_nullable } => {
            let some = prop_oneof![
                (0..3_u128).prop_map(|low| 0xffff_0a00_0000 + low),
                (0..3_u128).prop_map(|high| u128::MAX - (high << 64)),
            ];
            match is_nullable {
                true => prop_oneof![Just(None), some.prop_map(Some)].boxed(),
                false => some.prop_map(Some).boxed(),
            }
        }
    }
}

fn told(shapes: &Shapes) -> impl Strategy<Value = Told> + use<> {
    let key: Vec<_> = shapes.keys.iter().map(|&shape| part(shape)).collect();
    let arg = |agg: &TestAgg| agg.1.map_or_else(|| Just(Some(0)).boxed(), value);
    let args: Vec<_> = shapes.aggs.iter().map(arg).collect();
    (key, args).prop_map(|(key, args)| Told { key, args })
}

fn on_cpu(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).is_ok()
}

/// Runs `test` in a thread, which may change its CPU.
fn aside(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(test).join()).unwrap_or_else(|panic| {
        std::panic::resume_unwind(panic);
    });
}

/// Frames of tables on all CPUs, in windows: what is counted and what is not.
fn run_model(kernel: &Kernel, windows: &[Vec<(Vec<Told>, usize)>]) {
    let cpus = cpu_numbers().expect("there are CPUs");
    for frames in windows {
        let mut models = vec![Model::new(); kernel.tables.len()];
        for (told, cpu) in frames {
            on_cpu(cpu % cpus);
            match kernel.run(told, 1) {
                COUNTED => models.iter_mut().zip(told).for_each(|(m, told)| add_to(m, told)),
                FULL => {}
                other => panic!("returned {other}"),
            }
        }
        for (t, model) in models.iter().enumerate() {
            check(&kernel.flip(t), &kernel.shapes[t], model);
            let empty = kernel.flip(t);
            assert_eq!((empty.groups, empty.frames), (0, 0));
        }
    }
}

fn three_tables() -> [Shapes; 3] {
    [
        Shapes { keys: vec![ADDRESS, OPTIONAL, WORD, TRUTH], aggs: all_aggs() },
        Shapes { keys: vec![SIGNED, SOME_ADDRESS], aggs: vec![(AggFunc::Sum, Some(WORD))] },
        Shapes { keys: vec![], aggs: vec![(AggFunc::Max, Some(SIGNED))] },
    ]
}

/// Frames of windows, each with the CPU that takes it.
fn windows() -> impl Strategy<Value = Vec<Vec<(Vec<Told>, usize)>>> {
    let frame = (three_tables().iter().map(told).collect::<Vec<_>>(), 0..8_usize);
    proptest::collection::vec(proptest::collection::vec(frame, 0..120), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn tables_are_what_the_model_says(windows in windows(), bits in 1_u32..5) {
        if may("tables_are_what_the_model_says") {
            aside(|| run_model(&Kernel::new(&three_tables(), bits), &windows));
        }
    }
}

#[test]
fn a_full_table_sends_frames_up_and_counts_them_nowhere() {
    if !may("a_full_table_sends_frames_up_and_counts_them_nowhere") {
        return;
    }
    let shapes = [
        Shapes { keys: vec![TRUTH], aggs: vec![(AggFunc::Sum, Some(WORD))] },
        Shapes { keys: vec![WORD], aggs: vec![(AggFunc::Count, None)] },
    ];
    aside(|| {
        on_cpu(0);
        let kernel = Kernel::new(&shapes, 2);
        let mut models = [Model::new(), Model::new()];
        let mut full = BTreeSet::new();
        for round in 0..2 {
            for port in 0..200_u128 {
                let few = Told { key: vec![Some(port & 1)], args: vec![Some(port as i64)] };
                let many = Told { key: vec![Some(port)], args: vec![Some(0)] };
                match kernel.run(&[few.clone(), many.clone()], 1) {
                    COUNTED => {
                        add_to(&mut models[0], &few);
                        add_to(&mut models[1], &many);
                        assert!(!full.contains(&port), "round {round}");
                    }
                    FULL => assert!(full.insert(port) || round == 1),
                    other => panic!("returned {other}"),
                }
            }
        }
        let room = kernel.tables[1].groups_max();
        assert!(models[1].len() <= room && 2 * models[1].len() > room, "{}", models[1].len());
        for (t, model) in models.iter().enumerate() {
            check(&kernel.flip(t), &shapes[t], model);
        }
        // There is room again.
        let told = [
            Told { key: vec![Some(1)], args: vec![Some(1)] },
            Told { key: vec![Some(199)], args: vec![Some(0)] },
        ];
        assert_eq!(kernel.run(&told, 1), COUNTED);
    });
}

#[test]
fn what_was_only_found_stays_free() {
    if !may("what_was_only_found_stays_free") {
        return;
    }
    // The first table finds slots for frames that the second has no room for.
    let shapes = [
        Shapes { keys: vec![WORD], aggs: vec![(AggFunc::Min, Some(WORD))] },
        Shapes { keys: vec![WORD], aggs: vec![] },
    ];
    aside(|| {
        on_cpu(0);
        let kernel = Kernel::new(&shapes, 1);
        let frame = |a, b| {
            let one = |key| Told { key: vec![Some(key)], args: vec![Some(7)] };
            [one(a), Told { args: vec![], ..one(b) }]
        };
        let mut b = 0;
        while kernel.run(&frame(1, b), 1) == COUNTED {
            b += 1;
        }
        for a in 2..100 {
            assert_eq!(kernel.run(&frame(a, b), 1), FULL);
        }
        let groups = kernel.flip(0);
        assert_eq!((groups.groups, groups.frames), (1, b as u64), "only the first key counted");
        assert_eq!(groups.keys, [Some(1)]);
        assert_eq!(groups.cells, [CellValue { word: 7, values: 1, ..CellValue::default() }]);
    });
}

#[test]
fn a_run_that_ends_counts_nothing() {
    if !may("a_run_that_ends_counts_nothing") {
        return;
    }
    let shapes = [Shapes { keys: vec![], aggs: vec![(AggFunc::Count, None)] }];
    let kernel = Kernel::new(&shapes, 1);
    let told = [Told { key: vec![], args: vec![Some(0)] }];
    for (half, returned) in [(0, COUNTED), (1, COUNTED), (Control::ENDED, ENDED), (u64::MAX, ENDED)]
    {
        kernel.control.words()[0].store(half, Ordering::SeqCst);
        assert_eq!(kernel.run(&told, 1), returned);
    }
    kernel.control.words()[0].store(0, Ordering::SeqCst);
    assert_eq!((kernel.flip(0).frames, kernel.flip(0).frames), (1, 1));
}

#[test]
fn sums_end_before_they_leave_63_bits() {
    if !may("sums_end_before_they_leave_63_bits") {
        return;
    }
    let shapes = [Shapes { keys: vec![], aggs: vec![(AggFunc::Sum, Some(WORD))] }];
    let kernel = Kernel::new(&shapes, 1);
    let told = [Told { key: vec![], args: vec![Some(0xffff)] }];
    let cpu_words = kernel.tables[0].region_words();
    let most = kernel.tables[0].frames_max;
    assert_eq!(most, i64::MAX as u64 / 0xffff);
    for region in kernel.memory[0].words().chunks(cpu_words) {
        region[0].store(most - 1, Ordering::Relaxed);
    }
    aside(|| {
        on_cpu(0);
        assert_eq!([kernel.run(&told, 1), kernel.run(&told, 1)], [COUNTED, FULL]);
    });
}

#[test]
fn the_clock_is_that_of_the_kernel_and_what_is_added() {
    if !may("the_clock_is_that_of_the_kernel_and_what_is_added") {
        return;
    }
    let control = Control { tables: 3 };
    let memory = SharedMemory::new("weir-control", control.words()).expect("memory");
    memory.words()[control.clock()].store(1 << 60, Ordering::Relaxed);
    let mut a = Assembler::new();
    let short = a.label("short");
    a.load(Size::W, R6, R1, 0).load(Size::W, R4, R1, 4);
    a.mov(R5, R6).add(R5, 8).jump_if(Cond::Gt, R5, R4, short);
    TableCode::clock(&mut a, control, 0, R3);
    a.store(Size::DW, R6, 0, R3);
    a.bind(short);
    a.mov(R0, 2).exit();
    let code = a.finish().expect("well formed").with_maps(&[memory.number()]);
    let program = Program::load(ProgramKind::Xdp, "weir-test", &code).expect("accepted");
    let now = || {
        let data = program.test_run(&[0; 14], 1).expect("a packet").data;
        u64::from_ne_bytes(data[..8].try_into().expect("8 bytes"))
    };
    let (first, second) = (now(), now());
    assert!(first > 1 << 60 && second >= first && second - first < 1 << 36);
}

#[test]
fn no_frame_is_lost_or_counted_twice_when_halves_change() {
    if !may("no_frame_is_lost_or_counted_twice_when_halves_change") {
        return;
    }
    let shapes = [
        Shapes { keys: vec![WORD], aggs: vec![(AggFunc::Sum, Some(WORD))] },
        Shapes { keys: vec![], aggs: vec![(AggFunc::Count, None)] },
    ];
    // Few slots: some frames go up.
    let kernel = Kernel::new(&shapes, 4);
    let cpus = cpu_numbers().expect("there are CPUs");
    let ended = AtomicBool::new(false);
    let (mut counted, mut sum, mut alone) = (0, 0, 0);
    let (runs, up) = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..cpus.min(4))
            .map(|cpu| {
                let (kernel, ended) = (&kernel, &ended);
                scope.spawn(move || {
                    on_cpu(cpu);
                    let (mut runs, mut up) = (0, 0);
                    while !ended.load(Ordering::Relaxed) {
                        let key = (runs * 7 % 40) as u128;
                        let one = Told { key: vec![Some(key)], args: vec![Some(3)] };
                        let all = Told { key: vec![], args: vec![Some(0)] };
                        match kernel.run(&[one, all], 1) {
                            COUNTED => {}
                            FULL => up += 1,
                            other => panic!("returned {other}"),
                        }
                        runs += 1;
                    }
                    (runs, up)
                })
            })
            .collect();
        for round in 0..60 {
            let groups = kernel.flip(0);
            counted += groups.frames;
            sum += groups.cells.iter().map(|cell| cell.word).sum::<u64>();
            if round % 3 == 0 {
                alone += kernel.flip(1).frames;
            }
        }
        ended.store(true, Ordering::Relaxed);
        let ends = senders.into_iter().map(|sender| sender.join().expect("no panic"));
        ends.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    });
    for _ in 0..2 {
        let groups = kernel.flip(0);
        counted += groups.frames;
        sum += groups.cells.iter().map(|cell| cell.word).sum::<u64>();
        alone += kernel.flip(1).frames;
    }
    assert!(runs > 1000 && up > 0, "{runs} runs, {up} up");
    assert_eq!((counted + up, alone + up), (runs, runs));
    assert_eq!(sum, 3 * counted);
}

#[test]
fn what_the_kernel_cannot_sum_is_refused() {
    let options = TableOptions { cpus: 2, secret: [0, 0] };
    let new = |plan: &Summarize, keys: &[ValueShape], args: &[Option<ValueShape>]| {
        Table::new(PipelineId(0), plan, keys, args, options).expect_err("refused")
    };
    let of = |func, arg| new(&plan(0, &[(func, Some(arg))]), &[], &[Some(arg)]);
    let all = ValueShape::Word { least: i64::MIN, greatest: i64::MAX, is_nullable: false };
    for (func, arg, why) in [
        (AggFunc::Sum, LONG, "the sum of `a` might not fit in 64 bits"),
        (AggFunc::Avg, LONG, "the sum of `a` might not fit in 64 bits"),
        (AggFunc::Min, all, "`a` is of all integers of 64 bits"),
        (AggFunc::Max, all, "`a` is of all integers of 64 bits"),
        (AggFunc::Min, ADDRESS, "`a` is of addresses"),
        (AggFunc::Distinct, WORD, "the kernel does not compute `a`"),
        (AggFunc::Entropy, WORD, "the kernel does not compute `a`"),
    ] {
        assert_eq!(of(func, arg), why);
    }
    let exact = Summarize { max_groups: 10, ..plan(0, &[]) };
    assert_eq!(new(&exact, &[], &[]), "`max` is exact, so one worker has all groups");
    let many = TableOptions { cpus: 1 << 20, secret: [0, 0] };
    let error = Table::new(PipelineId(0), &plan(1, &[]), &[WORD], &[], many).expect_err("refused");
    assert_eq!(error, "there are too many CPUs for tables of each");
}

#[test]
fn parts_of_keys_share_words() {
    let flow = [ADDRESS, OPTIONAL, ADDRESS, OPTIONAL, WORD];
    assert_eq!(table(&flow, &[], 4).keys().words(), 5);
    assert_eq!(table(&[LONG, TRUTH], &[], 4).keys().words(), 2);
    assert_eq!(table(&[TIME], &[], 4).keys().words(), 1, "63 bits, and whether it is there");
}
