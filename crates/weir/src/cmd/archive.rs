//! `weir archive`: what is stored, whether it is whole, and the removal of what is old.

use crate::args::ArchiveArgs;
#[cfg(feature = "tables")]
use crate::args::ArchiveCommand;
use crate::exit::Status;
use crate::term::Term;

/// Runs one of its commands.
#[cfg(not(feature = "tables"))]
pub(crate) fn run(_: &ArchiveArgs, _: &Term) -> anyhow::Result<Status> {
    Err(crate::exit::usage(weir_archive::NOT_LINKED))
}

/// Runs one of its commands.
#[cfg(feature = "tables")]
pub(crate) fn run(args: &ArchiveArgs, term: &Term) -> anyhow::Result<Status> {
    match &args.command {
        ArchiveCommand::Ls(args) => stored::list(args, term),
        ArchiveCommand::Check(args) => stored::check(&args.folder, term),
        ArchiveCommand::Expire(args) => stored::expire(args, term),
    }
}

#[cfg(feature = "tables")]
mod stored {
    use crate::args::{ExpireArgs, ListStoredArgs};
    use crate::exit::{Status, usage};
    use crate::output::print_values;
    use crate::term::Term;
    use anyhow::Context as _;
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::time::{Duration, SystemTime};
    use weir_archive::{Expiry, Inventory, StoredFile, StoredHour};
    use weir_plan::{Type, Value};

    /// How long nothing writes to a file before it is that of a run that was killed.
    const LEFT: Duration = Duration::from_secs(3600);

    fn inventory(folder: &Path) -> anyhow::Result<Inventory> {
        Inventory::read(folder).map_err(|e| usage(format!("{}: {e}", folder.display())))
    }

    /// Lists outputs, or the hours of one.
    pub(super) fn list(args: &ListStoredArgs, term: &Term) -> anyhow::Result<Status> {
        let stored = inventory(&args.folder)?;
        let mut groups: BTreeMap<(&str, Option<StoredHour>), Vec<&StoredFile>> = BTreeMap::new();
        for file in &stored.files {
            let hour = args.output_name.as_ref().map(|_| file.hour);
            if args.output_name.as_ref().is_none_or(|name| *name == file.output) {
                groups.entry((&file.output, hour)).or_default().push(file);
            }
        }
        if let (true, Some(name)) = (groups.is_empty(), &args.output_name) {
            return Err(usage(format!("{}: no rows of `{name}` are there", args.folder.display())));
        }
        let mut rows = Vec::new();
        for ((output, hour), files) in groups {
            let timed = || files.iter().filter(|file| file.hour != StoredHour::Unknown);
            let time = |time: Option<i64>| time.map_or(Value::Absent, Value::Time);
            let first = match hour {
                Some(StoredHour::Unknown) => None,
                _ => timed().map(|file| file.name.first).min(),
            };
            let mut count = 0;
            for file in &files {
                count += file.rows().with_context(|| file.path.display().to_string())?;
            }
            rows.push([
                Value::Str(output.into()),
                time(first),
                time(timed().map(|file| file.name.last).max()),
                Value::Int(files.len() as i64),
                Value::Int(files.iter().map(|file| file.bytes).sum::<u64>() as i64),
                Value::Int(count as i64),
            ]);
        }
        let columns = [
            ("output", Type::Str),
            ("first", Type::Time),
            ("last", Type::Time),
            ("files", Type::Int),
            ("bytes", Type::Int),
            ("rows", Type::Int),
        ];
        print_values(columns, &rows, args.output, term)?;
        Ok(Status::Ok)
    }

    /// Reads all files, and tells of those that are wrong.
    pub(super) fn check(folder: &Path, term: &Term) -> anyhow::Result<Status> {
        let stored = inventory(folder)?;
        let (mut rows, mut wrong) = (0, 0);
        for file in &stored.files {
            match file.check() {
                Ok(n) => rows += n,
                Err(e) => {
                    wrong += 1;
                    term.error(format_args!("{}: {e}", file.path.display()));
                }
            }
        }
        for other in &stored.others {
            term.warning(format_args!("{}: this was not stored by Weir", other.display()));
        }
        for (part, _) in &stored.parts {
            let is_left = "a run still writes this, or was killed before it was whole";
            term.warning(format_args!("{}: {is_left}", part.display()));
        }
        let files = stored.files.len();
        term.say(format_args!("{files} files with {rows} rows were read; {wrong} are wrong"));
        Ok(if wrong == 0 { Status::Ok } else { Status::Failed })
    }

    /// Removes the oldest files, and what killed runs left.
    pub(super) fn expire(args: &ExpireArgs, term: &Term) -> anyhow::Result<Status> {
        let stored = inventory(&args.folder)?;
        let now = now();
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let since = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        let before = args.older_than.map(|age| since.saturating_sub(age));
        let expired = stored.expired(Expiry { before, bytes: args.keep });
        let is_left =
            |written: &SystemTime| now.duration_since(*written).is_ok_and(|age| age >= LEFT);
        let left = stored.parts.iter().filter(|(_, written)| is_left(written));
        let left: Vec<&Path> = left.map(|(path, _)| path.as_path()).collect();
        if !args.dry_run {
            for file in expired {
                file.remove().with_context(|| file.path.display().to_string())?;
            }
            for path in &left {
                std::fs::remove_file(path).with_context(|| path.display().to_string())?;
            }
        }
        let bytes: u64 = expired.iter().map(|file| file.bytes).sum();
        let verb = if args.dry_run { "would be" } else { "were" };
        let (files, parts) = (expired.len(), left.len());
        let of = stored.files.len();
        term.say(format_args!("{files} of {of} files ({bytes} bytes) {verb} removed"));
        if parts > 0 {
            term.say(format_args!("{parts} files of runs that were killed {verb} removed"));
        }
        Ok(Status::Ok)
    }

    #[expect(clippy::disallowed_methods, reason = "the age of rows is that on the wall")]
    fn now() -> SystemTime {
        SystemTime::now()
    }
}
