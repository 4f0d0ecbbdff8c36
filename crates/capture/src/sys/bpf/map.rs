//! Maps.

use super::call::{MapCreate, address, bpf, bpf_fd, name_of};
use crate::sys::error::KernelError;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, OwnedFd};

/// Commands, from `enum bpf_cmd`.
pub(super) const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP_ELEM: libc::c_int = 1;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const MAP_DELETE_ELEM: libc::c_int = 3;

/// The kind of a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum MapKind {
    /// From keys to values.
    Hash = 1,
    /// Values by number.
    Array = 2,
    /// From keys to a value for each CPU.
    PerCpuHash = 5,
    /// Values by number and CPU.
    PerCpuArray = 6,
    /// Interfaces by number, to which programs redirect frames.
    Interfaces = 14,
    /// AF_XDP sockets by number.
    Xsk = 17,
}

/// A map: memory that programs and this process share.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    key_bytes: usize,
    /// Of one CPU.
    value_bytes: usize,
    /// How many values an entry has.
    copies: usize,
}

#[repr(C)]
struct MapElement {
    fd: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl Map {
    /// A map with room for `entries`. Keys of arrays, and of maps of sockets and interfaces, have 4
    /// bytes.
    ///
    /// # Errors
    /// Without the capability CAP_BPF (of Linux before 5.11 also beyond the limit of locked
    /// memory), or where the kernel does not have this kind of map.
    pub fn new(
        kind: MapKind,
        name: &str,
        key_bytes: usize,
        value_bytes: usize,
        entries: u32,
    ) -> io::Result<Map> {
        let mut attr = MapCreate {
            kind: kind as u32,
            key_size: u32::try_from(key_bytes).unwrap_or(u32::MAX),
            value_size: u32::try_from(value_bytes).unwrap_or(u32::MAX),
            max_entries: entries,
            flags: 0,
            inner_map_fd: 0,
            numa_node: 0,
            name: name_of(name),
        };
        // SAFETY: the struct that BPF_MAP_CREATE reads, without pointers; it makes a descriptor.
        let fd = unsafe { bpf_fd(MAP_CREATE, &mut attr)? };
        let copies = match kind {
            MapKind::PerCpuArray | MapKind::PerCpuHash => possible_cpus()?,
            _ => 1,
        };
        Ok(Map { fd, key_bytes, value_bytes, copies })
    }

    /// Its number in this process, for [`EbpfInstruction::LoadMap`](weir_ebpf::EbpfInstruction).
    pub fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Bytes of an entry: its value, or where there is one for each CPU all of them, each filled up
    /// to 8 bytes.
    fn entry_bytes(&self) -> usize {
        if self.copies == 1 {
            return self.value_bytes;
        }
        self.value_bytes.next_multiple_of(8) * self.copies
    }

    fn element(&self, key: &[u8], value: &[u8]) -> io::Result<MapElement> {
        let right = key.len() == self.key_bytes && value.len() == self.entry_bytes();
        if !right {
            let (given, map) = ([key.len(), value.len()], [self.key_bytes, self.entry_bytes()]);
            return Err(KernelError::MapLengths { given, map }.into());
        }
        Ok(MapElement {
            fd: self.number() as u32,
            pad: 0,
            key: address(key),
            value: address(value),
            flags: 0,
        })
    }

    /// Sets an entry; of a map by CPU, the values of all CPUs, each filled up to 8 bytes.
    ///
    /// # Errors
    /// When key or value have the wrong length, or the map is full.
    pub fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let mut attr = self.element(key, value)?;
        // SAFETY: key and value have the lengths that the map was made with, and are only read.
        unsafe { bpf(MAP_UPDATE_ELEM, &mut attr) }.map(|_| ())
    }

    /// Reads an entry; of a map by CPU, the values of all possible CPUs one after the other, each
    /// filled up to 8 bytes. `None`: there is none.
    ///
    /// # Errors
    /// When the key has the wrong length.
    pub fn lookup(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut value = vec![0; self.entry_bytes()];
        Ok(self.lookup_into(key, &mut value)?.then_some(value))
    }

    /// The same into memory that is there; whether there is such an entry.
    ///
    /// # Errors
    /// When key or value have the wrong length.
    pub fn lookup_into(&self, key: &[u8], value: &mut [u8]) -> io::Result<bool> {
        let mut attr = self.element(key, value)?;
        attr.value = value.as_mut_ptr() as u64;
        // SAFETY: key and value have the lengths that the map was made with; the value, which is
        // written, is ours alone.
        match unsafe { bpf(MAP_LOOKUP_ELEM, &mut attr) } {
            Ok(_) => Ok(true),
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Removes an entry; whether there was one.
    ///
    /// # Errors
    /// When the key has the wrong length, or the map is an array.
    pub fn delete(&self, key: &[u8]) -> io::Result<bool> {
        let mut attr = self.element(key, &vec![0; self.entry_bytes()])?;
        attr.value = 0;
        // SAFETY: the key has the length that the map was made with.
        match unsafe { bpf(MAP_DELETE_ELEM, &mut attr) } {
            Ok(_) => Ok(true),
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(e) => Err(e),
        }
    }
}

/// How many CPUs the kernel keeps values for.
fn possible_cpus() -> io::Result<usize> {
    Ok(all_cpus()?.into_iter().map(|cpus| cpus.count()).sum())
}

/// The number after that of the last CPU there may be: what memory by CPU needs room for.
///
/// # Errors
/// Where the list of CPUs can't be read.
pub fn cpu_numbers() -> io::Result<usize> {
    Ok(all_cpus()?.into_iter().map(|cpus| cpus.end() + 1).max().unwrap_or(0))
}

fn all_cpus() -> io::Result<Vec<RangeInclusive<usize>>> {
    const LIST: &str = "/sys/devices/system/cpu/possible";
    let wrong = |reason| KernelError::Processors { path: LIST, reason };
    let list = std::fs::read_to_string(LIST).map_err(|e| wrong(e.to_string()))?;
    Ok(cpus_in(&list).ok_or_else(|| wrong(format!("{:?}", list.trim())))?)
}

/// CPUs in a list such as `0-3,8`; the kernel has no values for those in gaps.
fn cpus_in(list: &str) -> Option<Vec<RangeInclusive<usize>>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(first..=last)
    };
    list.trim().split(',').map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        let cases = [("0\n", Some(vec![0..=0])), ("0-3,8\n", Some(vec![0..=3, 8..=8]))];
        for (list, cpus) in cases.into_iter().chain([("", None), ("3-1", None)]) {
            assert_eq!(cpus_in(list), cpus, "{list:?}");
        }
    }
}
