//! Finds which packets go to which worker, lane by lane.

use crate::key::{Chosen, Direct, KeyPart, Layout, Pool, choose, narrow_rows, pack};
use crate::limits::PARTS_MAX;
use crate::partitioning::{Partitionings, SpreadBy};
use crate::processor::prefetch;
use crate::rows::Arena;
use crate::table::{HashKey, Keys};
use crate::view::{Packets, View};
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_packet::limits::BATCH;
use weir_packet::source::FrameBatch;
use weir_packet::walk::{Layers, classify};
use weir_plan::keys::{KeyField, PrefixBits};

/// The worker of each packet of a batch.
pub(super) type Owners = [u16; BATCH];

/// The workers that get the packets of a batch by a lane.
pub(super) enum Recipients<'a> {
    /// This worker gets all.
    All(usize),
    /// Each goes to a worker of its own.
    Each(&'a Owners),
}

/// How packets are spread. The layers of packets and the fields of keys, which lanes have in
/// common, are read once.
pub(super) struct Spread {
    workers: usize,
    hash_key: HashKey,
    lanes: Vec<Ways>,
    by_key: bool,
    layers: Layers,
    view: View,
    /// Recipients turn it is to get a whole batch.
    turn: usize,
}

/// How the packets of a lane are spread.
enum Ways {
    /// The next batch to the next worker.
    Batches,
    /// By the values of a key.
    Key(Box<ByKey>),
    /// All to this worker.
    Worker(usize),
}

/// Packets spread by key.
struct ByKey {
    parts: Vec<KeyPart>,
    /// One for each part.
    sources: Vec<Source>,
    layouts: Vec<Layout>,
    /// How keys of plain packets are made.
    direct: Vec<Direct>,
    /// Scratch: the packed keys of each layout.
    packed: Vec<Keys>,
    found: FoundOwners,
}

/// Recipients packets are.
struct FoundOwners {
    /// Of those whose keys are packed, the positions in the batch.
    positions: Vec<u16>,
    /// Of each that was found so far.
    owners: Box<Owners>,
}

/// Where the values of a part come from.
enum Source {
    /// A field of the view, by position.
    Field(usize),
    /// A text, as a hash of it: equal texts have equal keys, wherever they stand.
    Text(FieldId, Box<Column>),
    /// The network of an address, which is a field of the view, by position.
    Network(usize, PrefixBits, Box<Column>),
}

impl Spread {
    pub(super) fn new(partitionings: &Partitionings) -> Spread {
        let mut fields = Vec::new();
        let mut way = |by: &SpreadBy| match by {
            SpreadBy::Batches => Ways::Batches,
            SpreadBy::Worker(worker) => Ways::Worker(*worker),
            SpreadBy::Key(key) => Ways::Key(Box::new(ByKey::new(key, &mut fields))),
        };
        let ways: Vec<_> = partitionings.all.iter().map(|one| way(&one.by)).collect();
        Spread {
            workers: partitionings.workers,
            hash_key: partitionings.hash_key,
            by_key: ways.iter().any(|way| matches!(way, Ways::Key(_))),
            lanes: ways,
            layers: Layers::new(),
            view: View::new(&fields),
            turn: 0,
        }
    }

    /// Finds the worker of each packet of a batch. The headers of the `next` one are fetched
    /// meanwhile, if they will be looked at.
    pub(super) fn find_recipients(&mut self, frames: &FrameBatch, next: Option<&FrameBatch>) {
        let Spread { workers, hash_key, lanes, by_key, layers, view, turn } = self;
        *turn = (*turn + 1) % *workers;
        if !*by_key {
            return;
        }
        next.into_iter().for_each(fetch);
        classify(frames, layers);
        view.next_batch();
        let mut packets = view.packets(frames, layers);
        for lane in lanes {
            if let Ways::Key(key) = lane {
                key.find_owners(&mut packets, *workers, *hash_key);
            }
        }
    }

    /// How many lanes there are.
    pub(super) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The lanes by which one worker gets all packets, each with that worker.
    pub(super) fn single(&self) -> impl Iterator<Item = (usize, usize)> {
        self.lanes.iter().enumerate().filter_map(|(lane, way)| match way {
            Ways::Worker(worker) => Some((lane, *worker)),
            Ways::Batches | Ways::Key(_) => None,
        })
    }

    /// The workers that get the packets of that batch by a lane.
    pub(super) fn recipients(&self, lane: usize) -> Recipients<'_> {
        match &self.lanes[lane] {
            Ways::Batches => Recipients::All(self.turn),
            Ways::Worker(worker) => Recipients::All(*worker),
            Ways::Key(key) => Recipients::Each(&key.found.owners),
        }
    }
}

impl ByKey {
    /// For these fields, which the view comes to have.
    fn new(key: &[KeyField], fields: &mut Vec<FieldId>) -> ByKey {
        let source = |&KeyField { field: id, network }: &KeyField| {
            let column = || Box::new(Column::new(id.info().ty.repr()));
            if id.info().ty.is_text() {
                return Source::Text(id, column());
            }
            let at = fields.iter().position(|field| *field == id).unwrap_or_else(|| {
                fields.push(id);
                fields.len() - 1
            });
            match network {
                None => Source::Field(at),
                Some(network) => Source::Network(at, network, column()),
            }
        };
        let parts: Vec<_> = key.iter().map(|part| KeyPart::of(&part.expr()).hashed()).collect();
        let (narrow, wide) = Layout::both(&parts);
        let layouts: Vec<_> = [Some(narrow), wide].into_iter().flatten().collect();
        let whole = key.iter().map(|part| part.network.is_none().then_some(part.field));
        let whole: Option<Vec<FieldId>> = whole.collect();
        ByKey {
            sources: key.iter().map(source).collect(),
            direct: whole.map(|key| Direct::new(&key, &layouts)).unwrap_or_default(),
            packed: layouts.iter().map(|layout| Keys::new(layout.words)).collect(),
            found: FoundOwners {
                positions: Vec::with_capacity(BATCH),
                owners: Box::new([0; BATCH]),
            },
            parts,
            layouts,
        }
    }

    /// Finds the worker of each packet.
    fn find_owners(&mut self, packets: &mut Packets<'_>, workers: usize, hash_key: HashKey) {
        let mut left = Bits::first(packets.frames().len());
        for direct in &self.direct {
            let plain = packets.plain(direct.family);
            let rows = direct.rows(&plain).and(left);
            if rows.is_empty() {
                continue;
            }
            let keys = &mut self.packed[direct.layout];
            if direct.pack(&plain, self.found.choose(rows), keys, hash_key, |_| {}) {
                self.found.assign(keys, workers);
                left = left.minus(rows);
            }
        }
        if !left.is_empty() {
            self.by_columns(packets, left, workers, hash_key);
        }
    }

    /// Finds the workers of some packets by the values of their fields.
    fn by_columns(
        &mut self,
        packets: &mut Packets<'_>,
        rows: Bits,
        workers: usize,
        hash_key: HashKey,
    ) {
        for source in &mut self.sources {
            match source {
                Source::Field(field) => packets.ensure(*field, rows),
                Source::Text(id, column) => {
                    packets.texts(*id, rows, column, |text| hash_key.hash_text(text))
                }
                Source::Network(field, network, column) => {
                    packets.ensure(*field, rows);
                    let whole = packets.column(*field);
                    column.present = whole.present.and(rows);
                    for i in column.present.iter() {
                        column.set_raw(i, network.of(whole.raw(i)));
                    }
                }
            }
        }
        // Unused entries need some column to point at.
        let mut columns = [self.sources[0].column(packets); PARTS_MAX];
        let sources = columns.iter_mut().zip(&self.sources);
        sources.for_each(|(column, source)| *column = source.column(packets));
        let columns = &columns[..self.parts.len()];
        let narrow = narrow_rows(&self.parts, columns, rows);
        let both = self.layouts.iter().zip(&mut self.packed).zip([narrow, rows.minus(narrow)]);
        for ((layout, keys), rows) in both.filter(|(_, rows)| !rows.is_empty()) {
            // There are no texts, only hashes of them.
            let (pool, arena) = (&mut Pool::default(), &Arena::default());
            pack(layout, columns, self.found.choose(rows), pool, arena, keys);
            keys.hash(hash_key);
            self.found.assign(keys, workers);
        }
    }
}

impl Source {
    fn column<'a>(&'a self, packets: &'a Packets<'_>) -> &'a Column {
        match self {
            Source::Field(field) => packets.column(*field),
            Source::Text(_, column) | Source::Network(_, _, column) => column,
        }
    }
}

impl FoundOwners {
    /// Makes these packets the ones whose keys are packed.
    fn choose(&mut self, rows: Bits) -> Chosen<'_> {
        choose(rows, &mut self.positions);
        Chosen { set: rows, positions: &self.positions }
    }

    /// Gives them their workers. Tables go by the higher halves of the same hashes, so the keys of
    /// one worker spread in its tables like any others.
    fn assign(&mut self, keys: &Keys, workers: usize) {
        for (&hash, &i) in keys.hashes.iter().zip(&self.positions) {
            let part = (u64::from(hash as u32) * workers as u64) >> 32;
            self.owners[usize::from(i) % BATCH] = part as u16;
        }
    }
}

/// Prefetches the headers of packets, which may be farther away than in the nearest cache.
pub(super) fn fetch(frames: &FrameBatch) {
    let bytes = frames.bytes();
    for &offset in frames.offsets() {
        // They reach into the next line as often as not.
        prefetch(bytes, offset as usize);
        prefetch(bytes, offset as usize + HEADERS);
    }
}

/// Where the common headers of a frame end, about.
const HEADERS: usize = 48;
