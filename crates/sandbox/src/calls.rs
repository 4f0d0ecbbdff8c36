//! System calls that a run does not use, refused by a filter of the kernel (seccomp(2)).
//!
//! The filter lists the calls that are forbidden, not those that are allowed: the calls that a
//! thread makes depend on the C library and the standard library, and change with their versions. A
//! run that ends after weeks because a new version waits by another call would be worse than the
//! fault that the filter should contain. Forbidden are the calls that exploits need: those that
//! start programs, reach other processes, change the whole machine, or open sockets that see or
//! make any packet, and parts of the kernel that are seldom used. Such a call fails with EPERM, and
//! the run goes on.

use crate::error::GiveUpError;
use crate::needs::{Connects, Needs};
use crate::sys::{FilterError, filter_system_calls};
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};
use std::collections::BTreeMap;

/// Calls that are refused whatever their arguments.
const NEVER: &[c_long] = &[
    // Programs, and other processes.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_kill,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    // File systems and namespaces.
    libc::SYS_chroot,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    libc::SYS_unshare,
    // Files of others, of which Landlock knows nothing.
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_mknodat,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
    // The machine.
    libc::SYS_acct,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_personality,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    // Parts of the kernel with a history, of which a run uses none.
    libc::SYS_add_key,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_keyctl,
    libc::SYS_perf_event_open,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_vmsplice,
];

/// Newer calls for the same, by their numbers, which are those of all processors.
const NEWER: &[c_long] = &[
    // fchmodat2, setxattrat, removexattrat, open_tree_attr, file_setattr.
    FCHMODAT2, 463, 466, 467, 469,
];
const FCHMODAT2: c_long = 452;

/// The same by older names, which newer processors never had.
#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_lchown,
    libc::SYS_mknod,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[c_long] = &[];

/// Restricts all threads of this process; says what they can't do any more.
pub(super) fn restrict(needs: &Needs) -> Result<String, GiveUpError> {
    let Ok(processor) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok("any system calls (no filter is known for this processor)".to_owned());
    };
    let program =
        program(needs, processor).map_err(GiveUpError::when("making a filter of system calls"))?;
    match filter_system_calls(&program) {
        Ok(()) => Ok(summary(needs).to_owned()),
        Err(FilterError::Kernel(e))
            if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) =>
        {
            Ok("any system calls (this kernel has no seccomp filters)".to_owned())
        }
        Err(e) => Err(GiveUpError::when("restricting system calls (seccomp)")(e)),
    }
}

/// The programs and sockets that are out of reach, in short.
fn summary(needs: &Needs) -> &'static str {
    match &needs.connects {
        Connects::Nowhere if needs.names || needs.links => {
            "no programs, no sockets but UDP (seccomp)"
        }
        Connects::Nowhere => "no programs, no sockets (seccomp)",
        _ => "no programs, no sockets but TCP and UDP (seccomp)",
    }
}

/// The whole program. The first calls fail as if the kernel did not have them, so that the C
/// library makes the older call instead.
fn program(needs: &Needs, processor: TargetArch) -> Result<BpfProgram, seccompiler::Error> {
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules(needs)?, SeccompAction::Allow, refused, processor)?;
    let rest: BpfProgram = filter.try_into()?;
    Ok(absent().into_iter().chain(rest).collect())
}

/// Calls that fail with ENOSYS: `clone3`, into whose arguments a filter can't look, and on x86-64
/// those by the numbers of x32, which would pass by the rules.
fn absent() -> BpfProgram {
    // `linux/filter.h`: load a word, jump if equal, jump if not less, return.
    const LOAD: u16 = 0x20;
    const EQUAL: u16 = 0x15;
    const NOT_LESS: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    let step = |code, jf, k| sock_filter { code, jt: 0, jf, k };
    let leave = || step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
    let mut all = vec![step(LOAD, 0, 0)];
    if cfg!(target_arch = "x86_64") {
        all.extend([step(NOT_LESS, 1, X32), leave()]);
    }
    all.extend([step(EQUAL, 1, libc::SYS_clone3 as u32), leave()]);
    all
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// By the number of a call, when it is refused: always, or where all conditions of one of its rules
/// hold.
fn rules(needs: &Needs) -> Result<Rules, seccompiler::Error> {
    let never = NEVER.iter().chain(NEWER).chain(NEVER_HERE);
    let mut rules: Rules = never.map(|&call| (call, Vec::new())).collect();
    // A process may signal itself, as abort(3) does; musl asks for that by the call without the
    // number of the process.
    rules.insert(libc::SYS_tgkill, vec![rule([(0, Op::Ne, std::process::id().into())])?]);
    if !cfg!(target_env = "musl") {
        rules.insert(libc::SYS_tkill, Vec::new());
    }
    rules.insert(libc::SYS_socket, sockets(needs)?);
    // Namespaces of users and more are a way to parts of the kernel that take privileges else.
    let namespaces = libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWUTS;
    let each = (0..32).map(|bit| 1 << bit).filter(|bit| namespaces as u64 & bit != 0);
    rules.insert(libc::SYS_clone, each.map(|flag| has(0, flag)).collect::<Result<_, _>>()?);
    // Memory is written or run, never both.
    let (write, run) = (libc::PROT_WRITE as u64, libc::PROT_EXEC as u64);
    rules.insert(libc::SYS_mmap, vec![has(2, write | run)?]);
    rules.insert(libc::SYS_mprotect, vec![has(2, run)?]);
    rules.insert(libc::SYS_pkey_mprotect, vec![has(2, run)?]);
    rules.insert(libc::SYS_shmat, vec![has(2, SHM_EXEC)?]);
    // Typing into the terminal that the run was started from.
    let typing: [u64; 2] = [libc::TIOCSTI as _, libc::TIOCLINUX as _];
    rules.insert(
        libc::SYS_ioctl,
        typing.map(|what| rule([(1, Op::Eq, what)])).into_iter().collect::<Result<_, _>>()?,
    );
    let bpf = if needs.maps { vec![rule([(0, Op::Ne, BPF_MAP_LOOKUP_ELEM)])?] } else { Vec::new() };
    rules.insert(libc::SYS_bpf, bpf);
    Ok(rules)
}

/// `SHM_EXEC` of `linux/shm.h`.
const SHM_EXEC: u64 = 0o100_000;

/// `BPF_MAP_LOOKUP_ELEM` of `linux/bpf.h`.
const BPF_MAP_LOOKUP_ELEM: u64 = 1;

/// Which sockets are refused: all, but for datagrams of IP and netlink's for routes and links where
/// names are looked up or a library asks about interfaces; TCP where others are connected to; and
/// AF_XDP where interfaces may come back.
fn sockets(needs: &Needs) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let ip = [libc::AF_INET as u64, libc::AF_INET6 as u64];
    let netlink = libc::AF_NETLINK as u64;
    let asks = needs.names || needs.links;
    let asked = asks.then(|| ip.into_iter().chain([netlink])).into_iter().flatten();
    let xdp = needs.xdp.then_some(libc::AF_XDP as u64);
    let other: Vec<_> = asked.chain(xdp).map(|family| (0, Op::Ne, family)).collect();
    if other.is_empty() {
        // No conditions: whatever it is.
        return Ok(Vec::new());
    }
    let mut rules = vec![rule(other)?];
    rules.push(rule([(0, Op::Eq, netlink), (2, Op::Ne, libc::NETLINK_ROUTE as u64)])?);
    let stream = (needs.connects == Connects::Nowhere).then_some(libc::SOCK_STREAM);
    let kinds = [libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, SOCK_DCCP];
    let kinds: Vec<_> = kinds.into_iter().chain(stream).collect();
    for family in ip {
        for &kind in &kinds {
            let kind = (1, Op::MaskedEq(SOCK_TYPE_MASK), kind as u64);
            rules.push(rule([(0, Op::Eq, family), kind])?);
        }
    }
    Ok(rules)
}

/// `linux/net.h`: what of the second argument of socket(2) is its type.
const SOCK_TYPE_MASK: u64 = 0xf;
const SOCK_DCCP: libc::c_int = 6;

/// Refuses where all of these bits are set in an argument.
fn has(argument: u8, bits: u64) -> Result<SeccompRule, seccompiler::Error> {
    rule([(argument, Op::MaskedEq(bits), bits)])
}

/// Refuses where all of this holds of arguments. The kernel looks at their lower halves too.
fn rule(
    conditions: impl IntoIterator<Item = (u8, Op, u64)>,
) -> Result<SeccompRule, seccompiler::Error> {
    let condition = |(n, op, value)| SeccompCondition::new(n, Len::Dword, op, value);
    let conditions: Result<_, _> = conditions.into_iter().map(condition).collect();
    Ok(SeccompRule::new(conditions?)?)
}
