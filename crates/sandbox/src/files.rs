//! Files that a run may still open, by Landlock (landlock(7)): those that it needs, and no others.
//! Open files stay open. The run can't use TCP either, but for ports of others that it needs; nor
//! abstract sockets of other processes, nor send them signals.

use crate::error::GiveUpError;
use crate::needs::{Connects, Needs};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus,
    NetPort, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, Scope,
};
use std::path::{Path, PathBuf};

/// The version of Landlock's interface that the rules are written for; an older kernel applies
/// those that it knows. Later versions add nothing that a run could give up.
const ABI_WANTED: ABI = ABI::V6;

/// Files that libpcap reads where a filter names hosts, networks, ports or protocols, which it may
/// do again for each link type; and the libraries that look these names up.
const NAMES: [&str; 15] = [
    "/etc/ethers",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/networks",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/lib",
    "/lib64",
    "/run/systemd/resolve",
    "/usr/lib",
    "/usr/lib64",
];

/// Restricts the calling thread; says which files it may open.
pub(super) fn restrict(needs: &Needs) -> Result<String, GiveUpError> {
    let status = rules(needs).map_err(GiveUpError::when("restricting files (Landlock)"))?;
    Ok(match status.landlock {
        LandlockStatus::NotEnabled => "any files (Landlock is not among the kernel's lsm=)".into(),
        LandlockStatus::NotImplemented => "any files (this kernel has no Landlock)".into(),
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            let abi = kernel_abi.unwrap_or(effective_abi as i32);
            format!("{} (Landlock, ABI {abi})", summary(needs))
        }
    })
}

fn rules(needs: &Needs) -> Result<RestrictionStatus, landlock::RulesetError> {
    let ports = match needs.connects {
        Connects::Anywhere => AccessNet::BindTcp.into(),
        Connects::Nowhere | Connects::Ports(_) => AccessNet::from_all(ABI_WANTED),
    };
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI_WANTED))?
        .handle_access(ports)?
        .scope(Scope::from_all(ABI_WANTED))?;
    let mut rules = ruleset.create()?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::from_write(ABI::V1) & !(AccessFs::MakeBlock | AccessFs::MakeChar)
        | AccessFs::ReadFile
        | AccessFs::Truncate;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    // A panic reads the program's own file to name the place that it comes from.
    let itself = std::env::current_exe();
    let names = needs.names.then_some(NAMES).into_iter().flatten().map(Path::new);
    let itself = itself.as_deref().ok().into_iter();
    for path in needs.read.iter().map(PathBuf::as_path).chain(names).chain(itself) {
        rules = allow(rules, path, read)?;
    }
    for path in &needs.write {
        rules = allow(rules, path, write)?;
    }
    for path in &needs.remove {
        rules = allow(rules, path, AccessFs::RemoveFile.into())?;
    }
    for path in &needs.devices {
        rules = allow(rules, path, device)?;
    }
    if let Connects::Ports(ports) = &needs.connects {
        for port in ports {
            rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    rules.restrict_self()
}

/// Allows access to a path. A path that does not exist takes no rule; nor does a pipe without a
/// name, to which no restriction applies.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let Ok(meta) = std::fs::metadata(path) else { return Ok(rules) };
    let access = if meta.is_dir() { access } else { access & AccessFs::from_file(ABI_WANTED) };
    let Ok(fd) = PathFd::new(path) else { return Ok(rules) };
    // The pipe that `/dev/fd/63` leads to, as shells hand it over, has no name.
    if path.canonicalize().is_err() {
        return Ok(rules);
    }
    rules.add_rule(PathBeneath::new(fd, access))
}

/// How many paths that are read a line names before it only counts them.
const READ_SHOWN: usize = 3;

/// Which files those are: captures in short, and each folder in which something may change, by the
/// path that leads there without symbolic links.
fn summary(needs: &Needs) -> String {
    let shown = if needs.read.len() > READ_SHOWN + 1 { READ_SHOWN } else { needs.read.len() };
    let read = needs.read[..shown].iter().map(|path| format!("reads {}", path.display()));
    let more =
        (needs.read.len() > shown).then(|| format!("reads {} more", needs.read.len() - shown));
    let names = needs.names.then(|| "looks up names".to_owned());
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let each = |does: &'static str, paths: &[PathBuf]| -> Vec<String> {
        paths.iter().map(|path| format!("{does} {}", real(path).display())).collect()
    };
    let write = each("writes in", &needs.write);
    let remove = each("removes its socket from", &needs.remove);
    let devices = each("opens", &needs.devices);
    let connects = match &needs.connects {
        Connects::Nowhere => Vec::new(),
        Connects::Ports(ports) => {
            let port = |port| format!("connects to port {port} of others");
            ports.iter().map(port).collect()
        }
        Connects::Anywhere => vec!["connects to others".to_owned()],
    };
    let changes = write.into_iter().chain(remove).chain(devices);
    let all: Vec<String> = read.chain(more).chain(changes).chain(names).chain(connects).collect();
    match all.is_empty() {
        true => "no further files".to_owned(),
        false => all.join(", "),
    }
}
