#!/usr/bin/env bash
# Installs what the tests need and runs all of them: what CI runs.
set -euo pipefail
cd "$(dirname "$0")"

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    missing=
    for package in tcpdump libpcap0.8 gcc libc6-dev procps iproute2 util-linux ethtool; do
        dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
    if [ -n "$missing" ]; then
        apt-get update -q
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
    fi
fi

# The same random inputs each time; other seeds look for more (CONTRIBUTING.md).
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-7}

cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
cargo test --workspace --no-fail-fast
