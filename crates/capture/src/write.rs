//! Where frames go: capture files.
//!
//! A name that ends in `.pcapng` is a pcapng file, which takes frames of any link types, an
//! interface for each; any other is a pcap file, all of whose frames have the link type of its
//! first. Both keep nanoseconds. `-` is standard output, as pcap. An existing file is overwritten,
//! unless the run reads it or has it as another output. An outlet that comes when packets are being
//! sent already is a new file in a folder that was given for that.

mod error;
mod folder;
mod format;
mod id;
mod in_use;
mod made;
mod output;
mod rotate;
mod stoppable;
mod untouched;

pub use error::{ReadAs, WriteError};
pub use folder::Folder;
pub use format::to_pcapng;
pub use in_use::FilesInUse;
pub use made::Made;
pub use rotate::Rotation;
pub use stoppable::StoppableWriter;
pub use untouched::Untouched;

use folder::NewFiles;
pub(crate) use format::Format;
use id::FileId;
pub(crate) use output::Missing;
use output::{Output, OutputFile, Target};
use rotate::RotatedFiles;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_packet::egress::{Egress, Outlet, Refused, Sent};
use weir_packet::interface::InterfaceNames;

/// Whether a path leads to a plain file that is among the captures being read, by whatever name.
pub fn is_read(path: &Path, captures: &[String]) -> bool {
    let id = std::fs::metadata(path).ok().and_then(|meta| FileId::of(&meta));
    id.is_some() && captures.iter().any(|name| FileId::of_read(Path::new(name)) == id)
}

/// Capture files that frames go to, by the names of their outlets.
pub struct Files {
    pass: Option<String>,
    /// The files that the run reads and writes, ...
    in_use: FilesInUse,
    /// ... and those among them that are outlets.
    own: Vec<FileId>,
    /// Names that are not files.
    others: Vec<String>,
    /// The open files, ...
    outputs: Vec<Output>,
    /// ... and by outlet which of them it is; none where frames are not wanted.
    by_outlet: Vec<Option<usize>>,
    prompt: bool,
    rotation: Option<Rotation>,
    /// Files that were made for outlets which are not open yet.
    made: Made,
    /// Whether outlets were opened once: packets come.
    begun: bool,
    /// Where outlets may be files that come from then on.
    later: NewFiles,
    /// Whether the others go on where one can't be written, ...
    outlives: bool,
    /// ... and what went wrong since that was last asked for.
    errors: Vec<io::Error>,
    /// The names of interfaces, for formats that say them.
    names: InterfaceNames,
    /// The flags that end the run: readers that take nothing are not waited for then.
    stops: Vec<Arc<AtomicBool>>,
}

impl Files {
    /// Files for the outlets of a run that reads the captures `read`. Packets that pass go to the
    /// file `pass`; without it they are not wanted.
    pub fn new(read: &[String], pass: Option<&str>) -> Files {
        let in_use = FilesInUse::default();
        read.iter().for_each(|name| in_use.reads(name, ReadAs::Capture));
        Files {
            pass: pass.map(str::to_owned),
            made: Made::among(&in_use),
            in_use,
            own: Vec::new(),
            others: Vec::new(),
            outputs: Vec::new(),
            by_outlet: Vec::new(),
            prompt: false,
            rotation: None,
            begun: false,
            later: NewFiles::default(),
            outlives: false,
            errors: Vec::new(),
            names: InterfaceNames::default(),
            stops: Vec::new(),
        }
    }

    /// The files that the run reads and writes, captures among them; the outlets are none of them.
    pub(crate) fn among(&mut self, in_use: &FilesInUse) {
        self.in_use = in_use.clone();
        self.made = Made::among(in_use);
    }

    /// Once this is set, a reader of a pipe that takes nothing is not waited for any more.
    pub fn stop_by(&mut self, stop: &Arc<AtomicBool>) {
        self.stops.push(Arc::clone(stop));
    }

    /// Says what the interfaces are called that frames came by, which pcapng files tell: the table
    /// of the sources that they come from.
    pub fn name_interfaces(&mut self, names: &InterfaceNames) {
        self.names = names.clone();
    }

    /// Lets outlets that come once packets are sent be new files in these folders.
    pub(crate) fn create_in(&mut self, folders: Vec<Folder>) {
        self.later = NewFiles(folders);
    }

    /// Lets the other files go on where one can't be written any more: that is no error then, but
    /// for [`Files::take_errors`] and at the end.
    pub(crate) fn outlive(&mut self) {
        self.outlives = true;
    }

    /// The errors since this was last called.
    pub(crate) fn take_errors(&mut self) -> Vec<io::Error> {
        std::mem::take(&mut self.errors)
    }

    /// The frames for this outlet that came into no file since outlets were opened, and their
    /// lengths on the wire.
    pub(crate) fn missing(&self, outlet: u32) -> Missing {
        let place = self.by_outlet.get(outlet as usize).copied().flatten();
        place.map_or(Missing::default(), |place| self.outputs[place].missing())
    }

    /// Cuts the capture of packets that pass into files.
    pub fn rotate(&mut self, rotation: Option<Rotation>) {
        self.rotation = rotation;
    }

    /// Folders in which further files are made once those of the outlets are open.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let rotated = self.outputs.iter().filter_map(|output| output.rotated.as_ref());
        let later = self.later.0.iter().map(|folder| folder.path().to_owned());
        rotated.map(RotatedFiles::folder).chain(later).collect()
    }

    /// The frames that an outlet did not take since outlets were opened.
    pub(crate) fn refused_by(&self, outlet: u32) -> Refused {
        let place = self.by_outlet.get(outlet as usize).copied().flatten();
        place.map_or(Refused::default(), |place| self.outputs[place].refused())
    }

    /// Whether all files were written that are to be, and no frame has a place any more.
    pub(crate) fn is_over(&self) -> bool {
        self.outputs.iter().any(Output::is_over)
    }

    /// Whether frames are written out as soon as they come, instead of when some have gathered.
    pub fn prompt(&mut self, prompt: bool) {
        self.prompt = prompt;
    }

    /// A file can't be written any more.
    fn fails(&mut self, e: io::Error) -> io::Result<()> {
        if !self.outlives {
            return Err(e);
        }
        self.errors.push(e);
        Ok(())
    }

    /// Opens the file of an outlet, which stays as it is; of a capture that is cut, the first.
    fn open_output(
        &self,
        outlet: &Outlet,
        name: &str,
        opening: &mut Opening,
    ) -> io::Result<Output> {
        if let Some(ending) = [".gz", ".zst"].into_iter().find(|e| name.ends_with(e)) {
            let plain = name.strip_suffix(ending).unwrap_or(name).to_owned();
            return Err(WriteError::Compressed { name: name.to_owned(), plain }.into());
        }
        let rotation = self.rotation.filter(|_| *outlet == Outlet::Pass);
        let rotated = rotation.map(|r| RotatedFiles::new(r, name)).transpose()?;
        if let Some(folder) = rotated.as_ref().map(RotatedFiles::folder).filter(|f| !f.is_dir()) {
            return Err(WriteError::NoFolder { name: name.to_owned(), folder }.into());
        }
        let format = Format::of(name);
        if name == "-" && !self.begun {
            opening.note_stdout()?;
            let target = Target::Open(StoppableWriter::stdout(&self.stops)?);
            let id = Some(FileId::STDOUT);
            return Ok(Output::new(outlet, OutputFile { name, id, target }, format, None));
        }
        let Some(rotated) = rotated else {
            let (file, id) = self.open_file(name, opening)?;
            let target = Target::Untouched(Untouched::new(file));
            return Ok(Output::new(outlet, OutputFile { name, id, target }, format, None));
        };
        let name = &rotated.name();
        if rotated.waits() {
            let file = OutputFile { name, id: None, target: Target::None };
            return Ok(Output::new(outlet, file, format, Some(rotated.begun())));
        }
        let (file, id) = self.open_file(name, opening)?;
        let target = Target::Untouched(Untouched::new(file));
        let file = OutputFile { name, id, target };
        Ok(Output::new(outlet, file, format, Some(rotated.begun())))
    }

    /// Opens a file, which stays as it is, and finds out which it is; `None` of what several
    /// outlets may write to. While packets come, it is a new one.
    fn open_file(&self, name: &str, opening: &mut Opening) -> io::Result<(File, Option<FileId>)> {
        let named = WriteError::of(name);
        let file = match self.begun {
            false => opening.made.open(Path::new(name)).map_err(&named)?,
            true => {
                let (path, file) = self.later.create(name)?;
                opening.made.note(path, &file);
                file
            }
        };
        let meta = file.metadata().map_err(&named)?;
        Ok((file, FileId::of(&meta)))
    }

    /// Leaves outlets to others that have this name.
    pub(crate) fn leave(&mut self, name: &str) {
        if !self.others.iter().any(|other| other == name) {
            self.others.push(name.to_owned());
        }
    }

    /// The name of the file for an outlet.
    fn name<'a>(&'a self, outlet: &'a Outlet) -> Option<&'a str> {
        let name = match outlet {
            Outlet::Pass => self.pass.as_deref(),
            Outlet::Named(name) => Some(name.as_str()),
        };
        name.filter(|name| !self.others.iter().any(|other| other == name))
    }
}

/// Files that are opened together.
struct Opening {
    /// Whether standard output is an outlet already.
    has_stdout: bool,
    /// Files that were not there before.
    made: Made,
}

impl Opening {
    /// Notes that standard output is an outlet, which it can be once.
    fn note_stdout(&mut self) -> Result<(), WriteError> {
        match std::mem::replace(&mut self.has_stdout, true) {
            true => Err(WriteError::SecondStdout),
            false => Ok(()),
        }
    }
}

impl Egress for Files {
    /// A file that no outlet names any more stays open: a later program may name it again, and the
    /// run that wrote it must not empty it.
    fn open(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        self.prepare(outlets)?;
        for at in 0..self.outputs.len() {
            if let Err(e) = self.outputs[at].begin(&self.stops) {
                self.fails(e)?;
            }
        }
        self.made.keep();
        self.begun = true;
        self.outputs.iter_mut().for_each(Output::count_anew);
        let place =
            |outlet: &Outlet| self.outputs.iter().position(|output| output.outlet == *outlet);
        self.by_outlet = outlets.iter().map(place).collect();
        self.flush()
    }

    /// Opens all files, and leaves them as they are. Where one is refused, those that were made for
    /// it are removed again, and so are all where the outlets are never opened.
    fn prepare(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        let has_stdout = self.outputs.iter().any(|output| output.id == Some(FileId::STDOUT));
        let mut opening = Opening { has_stdout, made: Made::among(&self.in_use) };
        let mut opened = Vec::new();
        for outlet in outlets {
            if self.outputs.iter().any(|output| output.outlet == *outlet) {
                continue;
            }
            if let Some(name) = self.name(outlet) {
                opened.push(self.open_output(outlet, name, &mut opening)?);
            }
        }
        self.made.and(opening.made);
        self.own.extend(opened.iter().filter_map(|output: &Output| output.id));
        self.outputs.append(&mut opened);
        let mut others = self.in_use.ids();
        others.retain(|id| !self.own.contains(id));
        for at in 0..self.outputs.len() {
            let outlets = self.outputs.iter().enumerate().filter(|(other, _)| *other != at);
            let outlets = outlets.filter_map(|(_, output)| output.id);
            let taken = outlets.chain(others.iter().copied()).collect();
            if let Some(rotated) = &mut self.outputs[at].rotated {
                rotated.spare(taken);
            }
        }
        Ok(())
    }

    fn wants(&self, outlet: &Outlet) -> bool {
        self.name(outlet).is_some()
    }

    /// Goes on with the others where one fails, so that each frame is written or counted.
    fn send(&mut self, memory: &[u8], frames: &[Sent]) -> io::Result<()> {
        let mut result = Ok(());
        for frame in frames {
            if let Some(Some(place)) = self.by_outlet.get(frame.outlet as usize)
                && let Err(e) = self.outputs[*place].frame(frame, frame.bytes(memory), &self.names)
            {
                result = result.and(self.fails(e));
            }
        }
        if self.prompt { result.and(self.flush()) } else { result }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for at in 0..self.outputs.len() {
            if let Err(e) = self.outputs[at].flush() {
                result = result.and(self.fails(e));
            }
        }
        result
    }

    fn finish(&mut self) -> io::Result<()> {
        // All of them, though one may fail.
        let ends: Vec<_> = self.outputs.iter_mut().map(Output::finish).collect();
        ends.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_packet::interface::{CapturePoint, Direction};
    use weir_packet::source::LinkType;

    fn frame(outlet: u32, link: LinkType, ts: i64, caplen: u32) -> Sent {
        let (len, capture_point) = (caplen + 5, CapturePoint::UNKNOWN);
        Sent { outlet, link, ts, len, start: 0, caplen, trimmed: false, capture_point }
    }

    fn named(names: &[&str]) -> Vec<Outlet> {
        names.iter().map(|&n| Outlet::Named(n.to_owned())).collect()
    }

    /// The error of opening these outputs while reading `read`, all in one folder.
    fn open(folder: &std::path::Path, read: &str, outputs: &[&str]) -> io::Result<Files> {
        let place = |name: &str| folder.join(name).to_str().expect("a plain path").to_owned();
        let outlets: Vec<Outlet> = outputs.iter().map(|n| Outlet::Named(place(n))).collect();
        let mut files = Files::new(&[place(read)], None);
        files.open(&outlets).map(|()| files)
    }

    /// Prepared is not begun: what is there stays as it is, and what is made goes again.
    #[test]
    fn nothing_is_touched_before_it_is_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        let outlets: Vec<Outlet> = ["old.pcap", "new.pcap"]
            .map(|name| Outlet::Named(place(name).to_str().expect("a plain path").to_owned()))
            .to_vec();
        std::fs::write(place("old.pcap"), b"of yesterday").expect("writes");
        let mut files = Files::new(&[], None);
        files.prepare(&outlets).expect("can be opened");
        files.prepare(&outlets).expect("and again");
        assert!(place("new.pcap").exists());
        drop(files);
        assert_eq!(std::fs::read(place("old.pcap")).expect("stays"), b"of yesterday");
        assert!(!place("new.pcap").exists());
        let mut files = Files::new(&[], None);
        files.prepare(&outlets[..1]).expect("can be opened");
        files.open(&outlets).expect("opens");
        assert_eq!(std::fs::read(place("old.pcap")).expect("is there"), b"");
        let frame = frame(1, LinkType::ETHERNET, 1, 4);
        files.send(&[1, 2, 3, 4], &[frame]).expect("takes it");
        files.finish().expect("ends");
        drop(files);
        let records =
            |name| crate::fuzz::records_of(std::fs::read(place(name)).expect("stays")).len();
        assert_eq!(["old.pcap", "new.pcap"].map(records), [0, 1]);
    }

    #[test]
    fn frames_read_back_as_they_were_sent() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut files =
            open(folder.path(), "in", &["a.pcap", "b.pcapng", "none.pcap", "no.pcapng"])
                .expect("opens");
        let memory: Vec<u8> = (0..200).collect();
        for i in 0..20_000i64 {
            let link = if i % 3 == 0 { LinkType::RAW } else { LinkType::ETHERNET };
            let caplen = (i % 200) as u32;
            let mut frames = vec![frame(1, link, i * 1001, caplen)];
            if link == LinkType::ETHERNET {
                frames.push(frame(0, link, i * 1001, caplen));
            }
            files.send(&memory, &frames).expect("takes frames");
        }
        files.finish().expect("ends");
        let read = |name: &str| {
            crate::fuzz::records_of(std::fs::read(folder.path().join(name)).expect("a file"))
        };
        let (a, b) = (read("a.pcap"), read("b.pcapng"));
        assert_eq!((a.len(), b.len()), (13_333, 20_000));
        assert_eq!(b[7], (1, 7007, 12, memory[..7].to_vec(), Default::default()));
        assert_eq!(b.iter().filter(|r| r.0 == 1).cloned().collect::<Vec<_>>(), a);
        assert!(read("none.pcap").is_empty() && read("no.pcapng").is_empty());
        assert_eq!(std::fs::metadata(folder.path().join("none.pcap")).expect("there").len(), 24);
    }

    /// The frames of each file that a capture of 100 frames of 66 bytes is cut into.
    fn cut(ending: &str, bytes: u64, files: u32) -> Vec<(String, usize)> {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().join(format!("x{ending}"));
        let mut out = Files::new(&[], name.to_str());
        let (bytes, files) = (Some(bytes), std::num::NonZeroU32::new(files));
        out.rotate(Some(Rotation { bytes, files, ..Rotation::default() }));
        out.open(&[Outlet::Pass]).expect("opens");
        for i in 0..100 {
            out.send(&[7; 50], &[frame(0, LinkType::ETHERNET, i, 50)]).expect("takes frames");
        }
        out.finish().expect("ends");
        let files = std::fs::read_dir(folder.path()).expect("a folder");
        let mut files: Vec<_> = files.map(|f| f.expect("a file").path()).collect();
        files.sort();
        let read = |path: std::path::PathBuf| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, crate::fuzz::records_of(std::fs::read(path).expect("there")).len())
        };
        files.into_iter().map(read).collect()
    }

    #[test]
    fn a_capture_goes_on_in_further_files() {
        let named = |files: &[(&str, usize)]| -> Vec<_> {
            files.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
        };
        // A file may have 24 + 46 * 66 = 3060 bytes before it is full, and one frame more.
        let all = named(&[("x.pcap", 46), ("x.pcap1", 46), ("x.pcap2", 8)]);
        assert_eq!(cut(".pcap", 3059, 0), all);
        assert_eq!(cut(".pcap", 1 << 30, 0), named(&[("x.pcap", 100)]));
        let round = named(&[("x.pcap0", 8), ("x.pcap1", 46)]);
        assert_eq!(cut(".pcap", 3059, 2), round);
        let each: usize = cut(".pcapng", 3000, 0).iter().map(|(_, n)| n).sum();
        assert_eq!(each, 100);
    }

    /// Programs that come later write over no file of a cut capture, and it over none of theirs.
    #[test]
    fn further_files_are_written_by_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_str().expect("plain").to_owned();
        let mut out = Files::new(&[], Some(&path("x.pcap")));
        out.create_in(vec![Folder::open(folder.path()).expect("opens")]);
        out.rotate(Some(Rotation { bytes: Some(3059), ..Rotation::default() }));
        out.open(&[Outlet::Pass]).expect("opens");
        let send = |out: &mut Files, n: u64| {
            (0..n).try_for_each(|i| out.send(&[7; 50], &[frame(0, LinkType::ETHERNET, i as _, 50)]))
        };
        send(&mut out, 50).expect("takes frames");
        let both = |name: &str| [Outlet::Pass, Outlet::Named(path(name))];
        let before = ["x.pcap", "x.pcap1"].map(|name| std::fs::read(path(name)).expect("there"));
        for name in ["x.pcap", "x.pcap1"] {
            let error = out.open(&both(name)).expect_err("it is there").to_string();
            assert!(error.contains("exists already"), "{error}");
        }
        let after = ["x.pcap", "x.pcap1"].map(|name| std::fs::read(path(name)).expect("there"));
        assert_eq!(before, after);
        out.open(&both("x.pcap2")).expect("is free");
        let error = send(&mut out, 60).expect_err("it is another's").to_string();
        assert_eq!(error, format!("{} is read or written otherwise by this run", path("x.pcap2")));
    }

    /// Packets that come later get to no file, and to standard output neither, where no folder was
    /// given; what a run made is its own from then on.
    #[test]
    fn outlets_that_come_later_are_new_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_str().expect("plain").to_owned();
        let mut out = Files::new(&[], None);
        out.open(&[]).expect("opens");
        for name in ["-", &path("x.pcap"), "/dev/null", "/dev/full"] {
            let error = out.open(&named(&[name])).expect_err("no folder").to_string();
            assert!(error.contains("--allow-write FOLDER"), "{error}");
        }
        assert!(!Path::new(&path("x.pcap")).exists());
        out.create_in(vec![Folder::open(folder.path()).expect("opens")]);
        for outlets in [&["a.pcap"][..], &["b.pcap"], &["b.pcap", "a.pcap"]] {
            let outlets: Vec<Outlet> = outlets.iter().map(|n| Outlet::Named(path(n))).collect();
            out.open(&outlets).expect("is new, or its own");
        }
        // One that is refused leaves no other.
        let both = ["c.pcap", "a.pcap/x"].map(|name| Outlet::Named(path(name)));
        out.open(&both).expect_err("is not in the folder");
        assert!(!Path::new(&path("c.pcap")).exists());
    }

    #[test]
    fn what_must_not_be_overwritten_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        std::fs::write(place("in.pcap"), b"precious").expect("writes");
        std::fs::write(place("old.pcap"), b"old").expect("writes");
        std::fs::hard_link(place("in.pcap"), place("other.pcap")).expect("links");
        let told = |outputs: &[&str]| {
            let error = open(folder.path(), "in.pcap", outputs).map(|_| ()).expect_err("refused");
            error.to_string().replace(&format!("{}/", folder.path().display()), "")
        };
        let reading = "is a capture being read, and would be overwritten";
        assert_eq!(told(&["old.pcap", "in.pcap"]), format!("in.pcap {reading}"));
        let linked = "is a capture being read, in.pcap, and would be overwritten";
        assert_eq!(told(&["other.pcap"]), format!("other.pcap {linked}"));
        assert_eq!(told(&["a.pcap", "./a.pcap"]), "./a.pcap is the same file as a.pcap");
        let packed = "a.pcap.gz: captures are not written compressed; name it a.pcap";
        assert_eq!(told(&["a.pcap.gz"]), packed);
        assert!(told(&["no/such/folder.pcap"]).starts_with("no/such/folder.pcap: "));
        // Nothing was emptied for it.
        assert_eq!(std::fs::read(place("old.pcap")).expect("there"), b"old");
        assert_eq!(std::fs::read(place("in.pcap")).expect("there"), b"precious");
        // And nothing new is left of it.
        assert!(!place("a.pcap").exists());
    }

    #[test]
    fn a_pcap_file_has_one_link_type() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut files = open(folder.path(), "in", &["a.pcap"]).expect("opens");
        let sent = [frame(0, LinkType::ETHERNET, 1, 60), frame(0, LinkType::RAW, 2, 60)];
        let error = files.send(&[0; 60], &sent).expect_err("another link type").to_string();
        assert!(error.ends_with(
            "a.pcap: a pcap file has frames of one link type, and these are ETHERNET and RAW; a \
             name that ends in .pcapng takes both"
        ));
        files.finish().expect("what came before is kept");
        let file = std::fs::read(folder.path().join("a.pcap")).expect("a file");
        assert_eq!(crate::fuzz::records_of(file).len(), 1);
    }

    /// A device that is always full stands for a disk that is.
    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        if !std::path::Path::new("/dev/full").exists() {
            return;
        }
        let mut files = Files::new(&[], None);
        files.open(&named(&["/dev/full"])).expect("opens");
        files.send(&[0; 60], &[frame(0, LinkType::ETHERNET, 1, 60)]).expect("is buffered");
        let error = files.finish().expect_err("it is full").to_string();
        assert!(error.starts_with("/dev/full: "), "{error}");
        files.finish().expect("told once");
    }

    #[test]
    fn packets_that_pass_are_wanted_where_they_have_a_file() {
        assert!(!Files::new(&[], None).wants(&Outlet::Pass));
        assert!(Files::new(&[], Some("x.pcap")).wants(&Outlet::Pass));
        assert!(Files::new(&[], None).wants(&named(&["x"])[0]));
    }

    proptest! {
        #[test]
        fn any_records(records in proptest::collection::vec(
            (
                proptest::sample::select(vec![1u16, 101, 113, 147, 276, 65_535]),
                prop_oneof![any::<i64>(), 0..i64::MAX],
                any::<u32>(),
                proptest::collection::vec(any::<u8>(), 0..80),
                (
                    proptest::option::of("[ab]{1,2}")
                        .prop_map(|name| name.map(|n| n.into_bytes().into())),
                    proptest::sample::select(vec![None, Some(Direction::In), Some(Direction::Out)]),
                ),
            ),
            0..20,
        )) {
            crate::fuzz::fuzz_rewrite(&records);
        }
    }
}
