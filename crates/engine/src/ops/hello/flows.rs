//! The flows of a `hello`: found by key, forgotten when they are idle or when room is needed.
//!
//! They stand in a list by the time at which a packet was last taken in, in the order that packets
//! came. So those that are given up stand first, and which ones these are does not depend on when
//! anybody looked.

use super::stream::{Arrival, CompleteHello, Intake, Scratch, Stream};
use crate::limits::{EVICT_AT_ONCE, HELLO_PIECES_EACH, HELLO_PIECES_MIN};
use crate::room::{RoomCharge, RoomShare};
use crate::table::{HashKey, Index, Keys};
use weir_packet::limits::BATCH;
use weir_packet::read::Transport;

/// No flow.
const NONE: u32 = u32::MAX;

/// The flows and their keys.
pub(super) struct Flows {
    idle_ns: i64,
    share: RoomShare,
    charge: RoomCharge,
    /// Flows that there may be now.
    max_flows: usize,
    /// Words of a key.
    stride: usize,
    keys: Vec<u64>,
    index: Index,
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// The ends of the list.
    oldest: u32,
    newest: u32,
    /// Bytes of memory for pieces.
    held: usize,
    unfinished: u64,
    evicted: u64,
}

struct Flow {
    /// `None`: the place is free.
    stream: Option<Stream>,
    /// The largest time of its packets.
    last: i64,
    older: u32,
    newer: u32,
}

/// Flows that there may be now.
fn max_flows(share: &RoomShare) -> usize {
    share.bound().clamp(1, (NONE as usize - BATCH) as u64) as usize
}

impl Flow {
    /// Bytes of memory for pieces.
    fn held(&self) -> usize {
        self.stream.as_ref().map_or(0, Stream::held)
    }
}

impl Flows {
    /// None yet, with keys of so many words.
    pub(super) fn new(idle_ns: i64, share: RoomShare, stride: usize, hash_key: HashKey) -> Flows {
        Flows {
            idle_ns,
            max_flows: max_flows(&share),
            charge: share.charge(),
            share,
            stride,
            keys: Vec::new(),
            index: Index::new(hash_key),
            flows: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            held: 0,
            unfinished: 0,
            evicted: 0,
        }
    }

    /// Hellos that did not complete, and those that were evicted.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.unfinished, self.evicted)
    }

    fn live(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    /// Forgets all flows.
    pub(super) fn finish(&mut self) {
        while self.oldest != NONE {
            self.forget(self.oldest, false);
        }
    }

    /// Hashes the keys of a batch, asks for where they stand in the index, and notes how many flows
    /// there are and may be.
    pub(super) fn hash(&mut self, keys: &mut Keys) {
        self.charge.set(self.live() as u64);
        self.max_flows = max_flows(&self.share);
        if self.index.is_crowded() {
            self.rekey();
        }
        self.index.reserve(keys.len);
        keys.hash(self.index.hash_key());
        keys.hashes[..keys.len].iter().for_each(|&hash| self.index.prefetch(hash));
    }

    /// Takes in the packet of key `j`; the hello that it completes is put into `scratch`.
    pub(super) fn take_in(
        &mut self,
        keys: &Keys,
        j: usize,
        at: Arrival,
        packet: Transport<'_>,
        scratch: &mut Scratch,
    ) -> Option<CompleteHello> {
        let found = self.index.find(keys.hashes[j], |flow| {
            let start = flow as usize * self.stride;
            let words = &self.keys[start..start + self.stride];
            words.iter().zip(&keys.words).all(|(word, plane)| *word == plane[j])
        });
        let flow = match found.ok() {
            Some(flow) if self.is_idle(flow, at.clock) => {
                self.forget(flow, false);
                None
            }
            known => known,
        };
        let flow = match flow {
            Some(flow) => flow,
            None => {
                let stream = match packet {
                    Transport::Tcp(tcp) => Stream::of_segment(&tcp, scratch)?,
                    Transport::Udp(udp) => Stream::of_datagram(udp.payload(), scratch)?,
                };
                self.add(keys, j, stream, at)
            }
        };
        self.go_on(flow, at, packet, scratch)
    }

    /// Lets a flow take in a packet.
    fn go_on(
        &mut self,
        flow: u32,
        at: Arrival,
        packet: Transport<'_>,
        scratch: &mut Scratch,
    ) -> Option<CompleteHello> {
        let known = &mut self.flows[flow as usize];
        let before = known.held();
        let outcome = match (&mut known.stream, packet) {
            (Some(Stream::Tcp(tcp)), Transport::Tcp(segment)) => tcp.take_in(&segment, at, scratch),
            (Some(Stream::Quic(quic)), Transport::Udp(udp)) => {
                quic.take_in(udp.payload(), at, scratch)
            }
            _ => Intake::Ignored,
        };
        self.held = self.held + known.held() - before;
        let (given_up, found) = match outcome {
            Intake::Ignored => return None,
            Intake::Taken(given_up) => (given_up, None),
            Intake::Complete(found, given_up) => (given_up, Some(found)),
            Intake::Over(given_up) => {
                self.unfinished += given_up;
                self.drop_flow(flow);
                return None;
            }
        };
        self.unfinished += given_up;
        let known = &mut self.flows[flow as usize];
        known.last = known.last.max(at.clock);
        self.unlink(flow);
        self.link(flow);
        self.fit_pieces(flow, at.clock);
        found
    }

    /// Gives up flows while their pieces take too much memory, but not this one.
    fn fit_pieces(&mut self, flow: u32, clock: i64) {
        let bound = self.max_flows.saturating_mul(HELLO_PIECES_EACH).max(HELLO_PIECES_MIN);
        while self.held > bound && self.oldest != flow {
            self.evict(clock);
        }
    }

    fn is_idle(&self, flow: u32, clock: i64) -> bool {
        clock.saturating_sub(self.flows[flow as usize].last) >= self.idle_ns
    }

    /// Forgets flows that are idle at this watermark, up to the first that is not.
    pub(super) fn sweep(&mut self, watermark: i64) {
        while self.oldest != NONE && self.is_idle(self.oldest, watermark) {
            self.forget(self.oldest, false);
        }
        // It may be others that need the room, while no packet comes here.
        self.max_flows = max_flows(&self.share);
        for _ in 0..self.live().saturating_sub(self.max_flows).min(EVICT_AT_ONCE) {
            self.evict(watermark);
        }
        self.charge.set(self.live() as u64);
    }

    /// Evicts the flow that took in no packet for longest; one that is idle by now is no loss.
    fn evict(&mut self, clock: i64) {
        let oldest = self.oldest;
        self.forget(oldest, !self.is_idle(oldest, clock));
    }

    /// Forgets a flow; a hello that it holds the start of counts as evicted or as unfinished.
    fn forget(&mut self, flow: u32, evicted: bool) {
        let stream = self.flows[flow as usize].stream.as_ref();
        let begun = u64::from(stream.is_some_and(Stream::is_begun));
        if evicted {
            self.evicted += begun;
        } else {
            self.unfinished += begun;
        }
        self.drop_flow(flow);
    }

    fn add(&mut self, keys: &Keys, j: usize, stream: Stream, at: Arrival) -> u32 {
        while self.live() >= self.max_flows {
            self.evict(at.clock);
        }
        let flow = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow { stream: None, last: 0, older: NONE, newer: NONE });
            self.keys.resize(self.flows.len() * self.stride, 0);
            self.flows.len() as u32 - 1
        });
        let start = flow as usize * self.stride;
        let words = &mut self.keys[start..start + self.stride];
        words.iter_mut().zip(&keys.words).for_each(|(word, plane)| *word = plane[j]);
        let hash = keys.hashes[j];
        let Err(place) = self.index.find(hash, |_| false) else { unreachable!("no flow is alike") };
        self.index.insert(place, hash, flow);
        let known = &mut self.flows[flow as usize];
        // It holds nothing yet.
        (known.stream, known.last) = (Some(stream), at.clock);
        self.link(flow);
        flow
    }

    /// Removes a flow that counts no more.
    fn drop_flow(&mut self, flow: u32) {
        self.unlink(flow);
        let known = &mut self.flows[flow as usize];
        self.held -= known.held();
        known.stream = None;
        self.index.remove(self.hash_of(flow), flow);
        self.free.push(flow);
    }

    /// Puts a flow at the new end of the list.
    fn link(&mut self, flow: u32) {
        let newest = std::mem::replace(&mut self.newest, flow);
        match self.flows.get_mut(newest as usize) {
            Some(before) => before.newer = flow,
            None => self.oldest = flow,
        }
        let known = &mut self.flows[flow as usize];
        (known.older, known.newer) = (newest, NONE);
    }

    /// Takes a flow out of the list.
    fn unlink(&mut self, flow: u32) {
        let Flow { older, newer, .. } = self.flows[flow as usize];
        match self.flows.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match self.flows.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
    }

    /// The hash of the key of a flow.
    fn hash_of(&self, flow: u32) -> u64 {
        let start = flow as usize * self.stride;
        self.index.hash_key().hash(self.keys[start..start + self.stride].iter().copied())
    }

    /// Finds all flows by a new key from now on.
    #[cold]
    fn rekey(&mut self) {
        let key = HashKey::random();
        let flows = (0..).zip(&self.flows).filter(|(_, flow)| flow.stream.is_some());
        let stride = self.stride;
        let words = |flow: u32| self.keys[flow as usize * stride..][..stride].iter().copied();
        self.index.rekey(key, flows.map(|(n, _)| (n, key.hash(words(n)))));
    }
}
