#!/usr/bin/env bash
# Installs what the tests need and runs all of them: what CI runs.
set -euo pipefail
cd "$(dirname "$0")"

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    missing=
    for package in tcpdump libpcap0.8 gcc libc6-dev pkg-config procps iproute2 util-linux ethtool tshark tmux nfdump softflowd openssl python3; do
        dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
    if [ -n "$missing" ]; then
        apt-get update -q
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
    fi
fi

# DPDK and its drivers, for the feature of that name.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! pkg-config --exists libdpdk 2>/dev/null; then
    apt-get update -q || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends libdpdk-dev || true
fi

# What the client of Kafka is built with, and what a broker to test with runs on (cluster/kafka.sh).
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    missing=
    for package in make libssl-dev zlib1g-dev; do
        dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
    command -v java >/dev/null || missing="$missing default-jre-headless"
    command -v mvn >/dev/null || missing="$missing maven"
    if [ -n "$missing" ]; then
        apt-get update -q || true
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing || true
    fi
fi

# Prometheus, which reads the metrics of a run in a test. It is only unpacked: the package would
# start a service.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v prometheus >/dev/null &&
    [ ! -e target/prometheus/usr/bin/prometheus ]; then
    mkdir -p target/prometheus
    (cd target/prometheus && apt-get download -q prometheus && dpkg -x prometheus_*.deb . &&
        rm prometheus_*.deb) || echo "there is no prometheus to test with" >&2
fi

# Receivers of alerts: a server of syslog, one of mail, and Alertmanager with the templates that it
# wants there. They are only unpacked, too.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && [ ! -e target/receivers/usr/sbin/rsyslogd ]; then
    mkdir -p target/receivers
    (cd target/receivers && apt-get download -q rsyslog rsyslog-gnutls libestr0 libfastjson4 \
        python3-aiosmtpd python3-attr python3-public prometheus-alertmanager &&
        for package in *.deb; do dpkg -x "$package" .; done && rm ./*.deb &&
        mkdir -p /usr/share/prometheus &&
        cp -rn usr/share/prometheus/alertmanager /usr/share/prometheus/) ||
        echo "there are no receivers of alerts to test with" >&2
fi

# InfluxDB, which reads rows in a test: only unpacked, as well.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v influxd >/dev/null &&
    [ ! -e target/influxdb/usr/bin/influxd ]; then
    mkdir -p target/influxdb
    (cd target/influxdb && apt-get download -q influxdb && dpkg -x influxdb_*.deb . &&
        rm influxdb_*.deb) || echo "there is no influxdb to test with" >&2
fi

# What builds the page, for the feature `serve`, and the browser of its tests.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    missing=
    command -v npm >/dev/null || missing="nodejs npm"
    command -v chromium >/dev/null || missing="$missing chromium"
    if [ -n "$missing" ]; then
        apt-get update -q || true
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing || true
    fi
fi

# Java, Maven and pip, for the tests of Flink (cluster/flink.sh fetches Flink itself).
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
    ! { command -v javac && command -v mvn && command -v pip; } >/dev/null; then
    apt-get update -q || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        default-jdk-headless maven python3-pip || true
fi

# The same random inputs each time; other seeds look for more (CONTRIBUTING.md).
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-7}

# What the compiler keeps to build again faster fills more disk than everything that it builds.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

# A test that hangs fails here by its name, instead of holding up the whole check without end.
run="timeout --kill-after=10 2400 cargo test --no-fail-fast"

cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# Features whose libraries or tools are here, all in one build of the workspace.
features= tests=
if pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null; then
    features="$features,weir/dpdk" tests="$tests --test dpdk --test held"
else
    echo "SKIPPED the feature dpdk: there is no libdpdk (Debian: apt-get install libdpdk-dev)" >&2
fi
if command -v make >/dev/null && pkg-config --exists 'openssl >= 1.1' 2>/dev/null; then
    features="$features,weir/kafka,weir-bench/kafka" tests="$tests --test kafka --test cluster"
else
    echo "SKIPPED the feature kafka: it takes make and OpenSSL (Debian: libssl-dev)" >&2
fi
if command -v npm >/dev/null; then
    features="$features,weir/serve" tests="$tests --test page"
else
    echo "SKIPPED the feature serve: there is no npm (Debian: apt-get install npm)" >&2
fi
if [ -n "$features" ]; then
    cargo clippy --workspace --features "${features#,}" --all-targets --quiet -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --features "${features#,}" --no-deps --quiet
    # Of the crates whose code the features are: one selection of packages, so that what they
    # depend on is built for it once. Their units are tested with them.
    # shellcheck disable=SC2086
    $run -p weir -p weir-bench -p weir-kafka -p weir-dpdk --features "${features#,}" --lib $tests
fi

$run --workspace
