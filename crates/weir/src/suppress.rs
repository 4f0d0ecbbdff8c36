//! Lists of alerts that are not reported, from files.

use crate::exit::usage;
use std::path::PathBuf;
use weir_plan::Suppression;

/// The lines of all files (`--suppress`).
pub(crate) fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Suppression>> {
    let mut all = Vec::new();
    for path in files {
        let shown = path.display();
        let text =
            std::fs::read_to_string(path).map_err(|e| usage(format!("--suppress {shown}: {e}")))?;
        let lines = weir_lang::suppressions(&text)
            .map_err(|bad| usage(format!("--suppress {shown}, {bad}")))?;
        all.extend(lines);
    }
    let most = weir_lang::limits::SUPPRESSIONS_MAX;
    if all.len() > most {
        return Err(usage(format!("--suppress: the files have more than {most} lines together")));
    }
    Ok(all)
}
