//! Users and capabilities: credentials(7), capabilities(7).

use crate::error::GiveUpError;
use nix::unistd::{
    Uid, User, geteuid, getgroups, getresgid, getresuid, initgroups, setgid, setuid,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
};
use std::ffi::CString;
use std::fmt;
use std::io;

/// Capabilities that opening interfaces and tunnels may still take once root is given up.
const OPENING: CapabilitySet = CapabilitySet::NET_RAW
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::IPC_LOCK);

/// Why a process can't become a user.
#[derive(Debug)]
#[non_exhaustive]
pub enum UserError {
    /// There is no such user.
    Unknown,
    /// Only root can become another user.
    NotRoot,
    /// The system refused a step, or something of the former user is left.
    Failed(io::Error),
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UserError::Unknown => f.write_str("there is no such user (see: getent passwd)"),
            UserError::NotRoot => f.write_str("only root can become another user"),
            UserError::Failed(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for UserError {}

/// The numbers of a user and of its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserIds {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
}

/// Becomes another user, given by name or number, with the groups of that user and no way back. The
/// process keeps those capabilities that opening interfaces may take. Says who it is now.
///
/// # Errors
/// If there is no such user, or only root could become that user.
pub fn become_user(name: &str) -> Result<String, UserError> {
    let user = find(name)?;
    let who = format!("running as {} (uid {}, gid {})", user.name, user.uid, user.gid);
    if geteuid() == user.uid {
        return Ok(who);
    }
    if !geteuid().is_root() {
        return Err(UserError::NotRoot);
    }
    change(&user).map_err(UserError::Failed)?;
    Ok(who)
}

fn change(user: &User) -> io::Result<()> {
    bound_none(capabilities(None)?.effective).map_err(io::Error::other)?;
    set_keep_capabilities(true)?;
    initgroups(&CString::new(user.name.as_str())?, user.gid)?;
    setgid(user.gid)?;
    setuid(user.uid)?;
    set_keep_capabilities(false)?;
    keep(OPENING).map_err(io::Error::other)?;
    check(user)
}

/// The numbers of a user, given by name or number.
///
/// # Errors
/// If there is no such user.
pub fn look_up(name: &str) -> Result<UserIds, UserError> {
    let user = find(name)?;
    Ok(UserIds { user: user.uid.as_raw(), group: user.gid.as_raw() })
}

fn find(name: &str) -> Result<User, UserError> {
    let user = match name.parse() {
        Ok(uid) => User::from_uid(Uid::from_raw(uid)),
        Err(_) => User::from_name(name),
    };
    user.map_err(|e| UserError::Failed(e.into()))?.ok_or(UserError::Unknown)
}

/// Checks that everything was changed, and for good.
fn check(user: &User) -> io::Result<()> {
    let (uids, gids) = (getresuid()?, getresgid()?);
    let uids = [uids.real, uids.effective, uids.saved];
    let gids = [gids.real, gids.effective, gids.saved];
    if uids != [user.uid; 3] || gids != [user.gid; 3] {
        let kept = format!("the kernel kept users {uids:?} and groups {gids:?}");
        return Err(io::Error::other(kept));
    }
    let root = nix::unistd::Gid::from_raw(0);
    if user.gid != root && getgroups()?.contains(&root) {
        return Err(io::Error::other("the group of root was kept; is the user a member of it?"));
    }
    if setuid(Uid::from_raw(0)).is_ok() {
        return Err(io::Error::other("the process could become root again"));
    }
    Ok(())
}

/// Gives up all capabilities but these, of which the process need not have any; says what it has
/// now.
pub(super) fn keep(needed: CapabilitySet) -> Result<String, GiveUpError> {
    let own = || capabilities(None).map_err(GiveUpError::when("asking for capabilities"));
    let have = own()?;
    let keep = have.permitted & needed;
    bound_none(have.effective)?;
    // Capabilities that could be inherited are gone with them, and so is the ambient set.
    let sets =
        CapabilitySets { effective: keep, permitted: keep, inheritable: CapabilitySet::empty() };
    if have == sets {
        return Ok(names(keep));
    }
    let doing = "giving up capabilities";
    set_capabilities(None, sets).map_err(GiveUpError::when(doing))?;
    let left = own()?;
    if left.permitted != keep {
        let kept = format!("the kernel kept {}", names(left.permitted));
        return Err(GiveUpError::when(doing)(kept));
    }
    Ok(names(keep))
}

/// Empties the bounding set of the calling thread, if it may with these capabilities. A program
/// that it starts then gains none, whatever its file says.
fn bound_none(have: CapabilitySet) -> Result<(), GiveUpError> {
    if !have.contains(CapabilitySet::SETPCAP) {
        return Ok(());
    }
    let doing = "giving up the bounding set of capabilities";
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(one) {
            Ok(true) => {
                remove_capability_from_bounding_set(one).map_err(GiveUpError::when(doing))?;
            }
            Ok(false) => {}
            // The kernel knows no capability of this number, and none of the next.
            Err(_) => break,
        }
    }
    Ok(())
}

/// Promises to gain no privileges, which allows everybody to give up more.
pub(super) fn gain_none() -> Result<(), GiveUpError> {
    set_no_new_privs(true)
        .map_err(GiveUpError::when("giving up new privileges (PR_SET_NO_NEW_PRIVS)"))
}

/// The names that capabilities(7) uses.
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
    fn a_user_that_is_not_there_is_refused() {
        let error = become_user("no such user").expect_err("refused").to_string();
        assert_eq!(error, "there is no such user (see: getent passwd)");
        assert!(become_user("4294967290").is_err());
    }
}
