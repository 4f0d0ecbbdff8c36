#!/usr/bin/env bash
# Runs the commands that the README begins with on a machine that has nothing yet: in a Debian root
# made for that, over a clone of the last commit of this repository, with nothing beside it. CI and
# developers run where packages were installed before, and don't see that one is missing.
#
#   sudo packaging/fresh.sh [-c FILE]... [COMMAND]...
#
# Without a COMMAND, the first two of the README's section Start are run, which takes an hour. -c
# copies a file of this machine to the same place there, such as certificates and settings without
# which registries can't be reached; variables of the environment are there as they are here.
#
# It takes root, debootstrap, and a mirror that apt knows. FRESH_SUITE names the release (bookworm),
# FRESH_SECONDS says when it is stopped (7200), FRESH_FOLDER where the root is made (/var/tmp).
# Mounts and processes are in namespaces of their own, and end with the script, however it ends.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
suite=${FRESH_SUITE:-bookworm}
say() { echo "fresh.sh: $*" >&2; }

# The first two blocks of commands of the section Start.
readme() {
    awk '/^## /{on = /^## Start/} on && /^```$/ && inside {inside = 0; blocks++}
         inside {print} on && /^```sh$/ && blocks < 2 {inside = 1}' "$here/README.md"
}

# A root with what the README asks for: a C compiler, and what rustup and git take.
make_root() {
    local mirror
    # Two formats of files say which it is; apt reads both.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
    [ -n "$mirror" ] || { say "apt knows no mirror"; exit 1; }
    debootstrap --variant=minbase --include=ca-certificates,curl,gcc,git,libc6-dev \
        "$suite" "$root" "$mirror" >"$root.log" || { tail -n 20 "$root.log" >&2; exit 1; }
    rm -f "$root/etc/apt/sources.list"
    cp -r /etc/apt/. "$root/etc/apt/"
    cp -L /etc/hosts /etc/resolv.conf "$root/etc/"
    for file in "${copied[@]}"; do
        mkdir -p "$root$(dirname "$file")"
        cp -L "$file" "$root$file"
    done
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
}

# Runs a command in the root.
inside() {
    chroot "$root" /usr/bin/env -u CARGO_TARGET_DIR -u TMPDIR -u WEIR_CAPTURES -u RUSTUP_HOME \
        -u CARGO_HOME HOME=/root LC_ALL=C.UTF-8 \
        PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        bash -c "$1"
}

# Rust by rustup; where that can't be fetched, the toolchains of this machine.
install_rust() {
    local script='curl -sSf --max-time 60 https://sh.rustup.rs | sh -s -- -y -q --profile default'
    if inside "set -o pipefail; $script" 2>"$root.log"; then
        return
    fi
    say "rustup can't be fetched; the toolchains of this machine are used: $(tail -n 1 "$root.log")"
    mkdir -p "$root/root/.cargo" "$root/root/.rustup"
    cp -r "${CARGO_HOME:-$HOME/.cargo}/bin" "$root/root/.cargo/"
    mount --bind "${RUSTUP_HOME:-$HOME/.rustup}" "$root/root/.rustup"
    mount -o remount,bind,ro "$root/root/.rustup"
}

if [ "${1:-}" = --inside ]; then
    root=$2 copied=()
    shift 2
    while [ "${1:-}" = -c ]; do
        copied+=("$2")
        shift 2
    done
    make_root
    say "a root of $suite is made: $root"
    install_rust
    git clone -q "$here" "$root/root/weir"
    [ $# -gt 0 ] || { mapfile -t commands < <(readme); set -- "${commands[@]}"; }
    for command in "$@"; do
        say "$command"
        began=$SECONDS
        inside "cd /root/weir && $command" || { say "failed: $command"; exit 1; }
        say "done after $((SECONDS - began)) s"
    done
    exit 0
fi

[ "$(id -u)" = 0 ] || { say "this takes root"; exit 2; }
command -v debootstrap >/dev/null || { say "this takes debootstrap (apt-get install)"; exit 2; }
[ -z "$(git -C "$here" status --porcelain)" ] || say "what is not committed is not tried"
root=$(mktemp -d "${FRESH_FOLDER:-/var/tmp}/weir-fresh.XXXXXX")
# Other users go through it, too.
chmod 755 "$root"
# Nothing is mounted there outside of the namespace.
trap 'rm -rf --one-file-system "$root" "$root.log"' EXIT
timeout --kill-after=30 "${FRESH_SECONDS:-7200}" \
    unshare --mount --pid --fork --kill-child "$0" --inside "$root" "$@" &
trap 'kill %1 2>/dev/null; wait; exit 130' INT TERM HUP
wait %1
