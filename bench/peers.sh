#!/usr/bin/env bash
# Weir beside other flow meters, on the same trace: `bench/peers.sh [--install] [OPTIONS]`. With
# --install it first installs them: packages (as root), ipfixprobe from its source release, and
# NFStream into a Python environment, the last two below bench/out. What is missing is named and
# left out. The options are those of `weir-bench peers`.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/bench/out

if [ "${1:-}" = --install ]; then
    shift
    mkdir -p "$out"
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        nfdump softflowd gcc libc6-dev libpcap-dev python3-venv \
        g++ make autoconf automake libtool pkg-config curl ca-certificates

    # A peer that cannot be installed is left out, so that the others still run.
    {
        python3 -m venv "$out/nfstream"
        "$out/nfstream/bin/pip" install -q nfstream==6.6.0
    } || echo "NFStream could not be installed" >&2

    # The last release that needs neither a newer compiler nor further libraries.
    version=4.11.1
    {
        curl -fsSL --max-time 120 -o "$out/ipfixprobe.tar.gz" \
            "https://github.com/CESNET/ipfixprobe/archive/refs/tags/v$version.tar.gz" &&
            tar -xzf "$out/ipfixprobe.tar.gz" -C "$out" &&
            (
                cd "$out/ipfixprobe-$version" && autoreconf -i &&
                    ./configure -q --with-pcap --without-raw CXXFLAGS='-O3 -march=native' &&
                    make -s -j "$(nproc)"
            ) && cp "$out/ipfixprobe-$version/ipfixprobe" "$out/ipfixprobe"
    } || echo "ipfixprobe could not be installed" >&2
fi

cargo build --release -p weir -p weir-bench
exec cargo run --release -q -p weir-bench -- peers "$@"
