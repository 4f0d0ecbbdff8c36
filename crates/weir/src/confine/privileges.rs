//! Users and capabilities: credentials(7), capabilities(7).

use crate::exit::usage;
use anyhow::{Context as _, bail};
use nix::unistd::{
    Uid, User, geteuid, getgroups, getresgid, getresuid, initgroups, setgid, setuid,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities,
    set_no_new_privs,
};
use std::ffi::CString;

/// What opening interfaces and tunnels may still take once root is given up.
const OPENING: CapabilitySet = CapabilitySet::NET_RAW
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::IPC_LOCK);

/// Becomes another user, as `-Z` asks, with the groups of that user and no way back. Of the
/// capabilities those remain that opening interfaces may take. Says who it is now.
///
/// # Errors
/// When there is no such user, or only root could become one.
pub(crate) fn become_user(name: &str) -> anyhow::Result<String> {
    let user = look_up(name)?;
    let who = format!("running as {} (uid {}, gid {})", user.name, user.uid, user.gid);
    if geteuid() == user.uid {
        return Ok(who);
    }
    if !geteuid().is_root() {
        return Err(usage(format!("-Z {name}: only root can become another user")));
    }
    let changed = || format!("-Z {name}: becoming that user");
    set_keep_capabilities(true).with_context(changed)?;
    initgroups(&CString::new(user.name.as_str())?, user.gid).with_context(changed)?;
    setgid(user.gid).with_context(changed)?;
    setuid(user.uid).with_context(changed)?;
    set_keep_capabilities(false).with_context(changed)?;
    keep(OPENING)?;
    check(&user).with_context(changed)?;
    Ok(who)
}

/// The numbers of the user of `-Z` and of its group.
pub(crate) fn ids(name: &str) -> anyhow::Result<(u32, u32)> {
    let user = look_up(name)?;
    Ok((user.uid.as_raw(), user.gid.as_raw()))
}

fn look_up(name: &str) -> anyhow::Result<User> {
    let user = match name.parse() {
        Ok(uid) => User::from_uid(Uid::from_raw(uid)),
        Err(_) => User::from_name(name),
    };
    let user = user.with_context(|| format!("-Z {name}: looking up the user"))?;
    user.ok_or_else(|| usage(format!("-Z {name}: there is no such user (see: getent passwd)")))
}

/// Looks whether everything was changed, and for good.
fn check(user: &User) -> anyhow::Result<()> {
    let (uids, gids) = (getresuid()?, getresgid()?);
    let uids = [uids.real, uids.effective, uids.saved];
    let gids = [gids.real, gids.effective, gids.saved];
    if uids != [user.uid; 3] || gids != [user.gid; 3] {
        bail!("the kernel kept users {uids:?} and groups {gids:?}");
    }
    let root = nix::unistd::Gid::from_raw(0);
    if user.gid != root && getgroups()?.contains(&root) {
        bail!("the group of root was kept; is the user a member of it?");
    }
    if setuid(Uid::from_raw(0)).is_ok() {
        bail!("root could be had back");
    }
    Ok(())
}

/// Gives up all capabilities but these, of which the process need not have any; says what it has
/// now.
pub(super) fn keep(needed: CapabilitySet) -> anyhow::Result<String> {
    let have = capabilities(None).context("asking for capabilities")?;
    let keep = have.permitted & needed;
    // Those that could be inherited are gone with them, and so is the ambient set.
    let sets =
        CapabilitySets { effective: keep, permitted: keep, inheritable: CapabilitySet::empty() };
    if have == sets {
        return Ok(names(keep));
    }
    set_capabilities(None, sets).context("giving up capabilities")?;
    let left = capabilities(None).context("asking for capabilities")?;
    if left.permitted != keep {
        bail!("the kernel kept capabilities: {}", names(left.permitted));
    }
    Ok(names(keep))
}

/// Promises to gain no privileges, which allows everybody to give up more.
pub(super) fn gain_none() -> anyhow::Result<()> {
    set_no_new_privs(true).context("giving up new privileges (PR_SET_NO_NEW_PRIVS)")
}

/// As capabilities(7) has them.
fn names(set: CapabilitySet) -> String {
    let names: Vec<_> = set.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
    if names.is_empty() { "no capabilities".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_have_the_names_of_the_manual() {
        assert_eq!(names(CapabilitySet::empty()), "no capabilities");
        assert_eq!(names(OPENING), "CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_BPF");
    }

    #[test]
    fn nobody_becomes_who_is_not_there() {
        let error = become_user("no such user").expect_err("refused").to_string();
        assert_eq!(error, "-Z no such user: there is no such user (see: getent passwd)");
        assert!(become_user("4294967290").is_err());
    }
}
