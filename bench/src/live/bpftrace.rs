//! bpftrace, which counts frames by key in a program that it compiles at run time, as Weir does. It
//! is put where this kernel lets it count frames of one interface: at a tracepoint of the receive
//! path, after NAPI and before taps and traffic control.

use super::wire::{RECEIVER, pause};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Counts UDP over IPv4 by source, and prints the counts when it ends: to clear a map in between
/// would lose some.
const SCRIPT: &str = r#"
tracepoint:net:netif_receive_skb /str(args->name) == "RECEIVER"/ {
    $skb = (struct sk_buff *)args->skbaddr;
    if ($skb->protocol == 8) {
        $ip = (struct iphdr *)($skb->head + $skb->network_header);
        if ($ip->protocol == 17) { @[$ip->saddr] = count(); }
    }
}
"#;

/// bpftrace gets so many signals to end, with so many milliseconds in between, before it is killed.
const END_TRIES: u32 = 50;
const END_MS: u32 = 100;

/// Milliseconds after it says that it attaches its programs, by which they are.
const ATTACH_MS: u32 = 1000;

/// Starts it on a processor, in a mount namespace in which it finds the tracepoints, and waits
/// until it counts.
pub(super) fn start(cpu: usize) -> Result<Child> {
    let script = SCRIPT.replace("RECEIVER", RECEIVER);
    let run = "mount -t tracefs tracefs /sys/kernel/tracing && \
               exec bpftrace -B line -e \"$0\"";
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string(), "unshare", "-m", "sh", "-c", run]).arg(script);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("starting bpftrace")?;
    let out = child.stdout.as_mut().context("its output")?;
    // It says one line before, and nothing until its end.
    let mut said = String::new();
    BufReader::with_capacity(1, out).read_line(&mut said).context("reading bpftrace")?;
    pause(ATTACH_MS);
    let ended = child.try_wait().context("looking at bpftrace")?.is_some();
    ensure!(!ended && said.starts_with("Attaching"), "bpftrace did not begin: {said}");
    Ok(child)
}

/// Sees to it that it ends, of which a signal has told it: it may have missed that while it was
/// attaching its programs. One that does not end is killed.
pub(super) fn end(child: &mut Child) -> Result<()> {
    let id = rustix::process::Pid::from_child(child);
    for _ in 0..END_TRIES {
        pause(END_MS);
        if child.try_wait().context("looking at bpftrace")?.is_some() {
            return Ok(());
        }
        rustix::process::kill_process(id, rustix::process::Signal::INT).context("ending it")?;
    }
    child.kill().context("ending bpftrace")
}

/// How many frames it counted, by what it says at its end: `@[KEY]: COUNT` of each key.
pub(super) fn counted(said: &str) -> Result<u64> {
    let counts = said.lines().filter(|line| line.starts_with("@["));
    let count = |line: &str| line.rsplit(": ").next()?.trim().parse::<u64>().ok();
    counts.map(|line| count(line).with_context(|| line.to_owned())).sum()
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn counts_of_all_keys_add_up() {
        let said = "\n\n@[16777343]: 20\n@[1]: 18446744073709551000\n@other: 5\n";
        assert_eq!(counted(said).expect("counts"), 18_446_744_073_709_551_020);
        assert_eq!(counted("").expect("no key"), 0);
        assert!(counted("@[1]: many").is_err());
    }
}
