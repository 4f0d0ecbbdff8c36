//! Builds the page by npm, if the feature asks for it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

/// The media type of a file, by its ending.
const TYPES: [(&str, &str); 4] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("svg", "image/svg+xml"),
];

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=programs");
    for part in ["src", "index.html", "style.css", "build.mjs", "package.json", "package-lock.json"]
    {
        println!("cargo::rerun-if-changed=web/{part}");
    }
    if env::var_os("CARGO_FEATURE_BUILD").is_none() {
        return ExitCode::SUCCESS;
    }
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // A line of cargo's ends with the line.
            let why = why.trim_end().replace('\n', "\ncargo::error=");
            println!("cargo::error=the page of `weir serve` can't be built: {why}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).ok_or(format!("no {name}"));
    let (root, out) = (folder("CARGO_MANIFEST_DIR")?, folder("OUT_DIR")?);
    // In the build folder: npm writes beside what it reads.
    let work = out.join("web");
    copy(&root.join("web"), &work).map_err(|e| format!("copying web/: {e}"))?;
    copy(&root.join("programs"), &out.join("programs")).map_err(|e| format!("programs: {e}"))?;
    npm(&work, &["ci", "--omit=dev", "--ignore-scripts", "--no-progress", "--prefer-offline"])?;
    let dist = work.join("dist");
    // Files of an earlier build have other names.
    if dist.exists() {
        fs::remove_dir_all(&dist).map_err(|e| format!("{}: {e}", dist.display()))?;
    }
    npm(&work, &["run", "--silent", "build"])?;
    let mut names = names(&dist).map_err(|e| format!("{}: {e}", dist.display()))?;
    names.sort();
    let mut text = "/// The files of the page.\npub const FILES: &[BuiltFile] = &[\n".to_owned();
    for name in &names {
        let ending = name.rsplit('.').next().unwrap_or_default();
        let Some((_, kind)) = TYPES.iter().find(|(known, _)| *known == ending) else {
            return Err(format!("{name}: what is a .{ending} file?"));
        };
        let path = dist.join(name);
        let _ = writeln!(
            text,
            "    BuiltFile {{ name: {name:?}, kind: {kind:?}, bytes: include_bytes!({path:?}) }},"
        );
    }
    text += "];\n";
    fs::write(out.join("files.rs"), text).map_err(|e| format!("files.rs: {e}"))
}

/// Runs npm, whose output is shown if it fails.
fn npm(folder: &Path, args: &[&str]) -> Result<(), String> {
    let output = Command::new("npm").args(args).current_dir(folder).output();
    let line = format!("npm {}", args.join(" "));
    let output = output.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => "npm was not found; install Node.js 20 or later with npm \
                                    (Debian: apt-get install npm), or build without the feature \
                                    `serve`"
            .to_owned(),
        _ => format!("{line}: {e}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (said(&output.stdout), said(&output.stderr));
    Err(format!(
        "`{line}` failed ({}); it needs Node.js 20 or later, and the registry of npm or its cache \
         for what package-lock.json names:\n{out}{err}",
        output.status
    ))
}

/// Copies the files of a folder, but for what npm makes there.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (path, name) = { entry.map(|entry| (entry.path(), entry.file_name()))? };
        if name == "node_modules" || name == "dist" || name == "tests" {
            continue;
        }
        match path.is_dir() {
            true => copy(&path, &to.join(name))?,
            false => drop(fs::copy(&path, to.join(name))?),
        }
    }
    Ok(())
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect()
}
