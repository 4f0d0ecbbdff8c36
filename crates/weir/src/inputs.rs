//! The files that a run reads, which it does not write over.

use crate::args::{MergeArgs, RowArgs, RunOptions};
use crate::programs::Programs;
use std::path::PathBuf;
use weir_capture::write::{FilesInUse, ReadAs};

/// The files that a run reads by its options and queries, which are compiled.
pub(crate) fn of_run(options: &RunOptions, programs: &Programs) -> FilesInUse {
    let in_use = FilesInUse::default();
    options.read.iter().for_each(|name| in_use.reads(name, ReadAs::Capture));
    let given = [&options.site.site, &options.filter_file];
    let given = [given, [&options.publish.kafka_config, &options.http.http_token_file]].concat();
    of_options(&in_use, &options.rows, &given);
    of_queries(&in_use, programs);
    in_use
}

/// The files that a merge reads by its arguments and queries, which are compiled.
pub(crate) fn of_merge(args: &MergeArgs, programs: &Programs) -> FilesInUse {
    let in_use = FilesInUse::default();
    args.from.iter().for_each(|name| in_use.reads(name, ReadAs::Partials));
    of_options(&in_use, &args.rows, &[&args.site.site, &args.kafka.kafka_config]);
    of_queries(&in_use, programs);
    in_use
}

fn of_options(in_use: &FilesInUse, rows: &RowArgs, given: &[&Option<PathBuf>]) {
    let given = given.iter().copied().flatten();
    let all = given.chain(&rows.suppress).chain(&rows.deliver.alert_config);
    all.for_each(|path| in_use.reads(path, ReadAs::OfOption));
}

fn of_queries(in_use: &FilesInUse, programs: &Programs) {
    programs.sources().iter().for_each(|source| source.read_from.pass_to(in_use));
}
