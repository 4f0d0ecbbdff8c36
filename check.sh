#!/usr/bin/env bash
# Installs what the tests need and runs all of them: what CI runs. `./check.sh install` stops then;
# `./check.sh quick` installs nothing, and runs what tells most mistakes in a few minutes.
#
# CONTRIBUTING.md says what each package is for, and what is skipped without it. They come by apt,
# as root; elsewhere nothing is installed, and what misses something says that it is skipped.
set -euo pipefail
cd "$(dirname "$0")"

# What is installed, each by its package; one with `=` is there where a command is.
installed="tcpdump libpcap0.8 gcc g++ libc6-dev make pkg-config procps iproute2 util-linux ethtool
    tshark tmux nfdump softflowd openssl python3 libdpdk-dev libssl-dev zlib1g-dev
    default-jdk-headless=javac maven=mvn python3-pip=pip nodejs=node npm=npm chromium=chromium"

# What is only unpacked, into target/unpacked: some of these packages would start a service.
unpacked="prometheus influxdb prometheus-alertmanager rsyslog rsyslog-gnutls libestr0 libfastjson4
    python3-aiosmtpd python3-attr python3-public"

log=target/check.log
mkdir -p target/unpacked
: >"$log"

fail() { echo "check.sh: $*" >&2; exit 1; }
skip() { echo "SKIPPED $*" | tee -a "$log" >&2; }

# Those of some packages that are not there.
missing() {
    local package
    for package; do
        case $package in
            *=*) command -v "${package#*=}" >/dev/null || echo "${package%=*}" ;;
            *) [[ $(dpkg-query -Wf '${db:Status-Status} ' "$package" 2>&1) = installed* ]] ||
                echo "$package" ;;
        esac
    done
}

not_unpacked() {
    local package
    for package in $unpacked; do
        [ -e "target/unpacked/$package.is_there" ] || echo "$package"
    done
}

# Lists of packages are words.
# shellcheck disable=SC2086,SC2046
install_packages() {
    local package packages
    packages=$(missing $installed)
    [ -n "$packages$(not_unpacked)" ] || return 0
    apt-get update -q || fail "apt-get update fails"
    [ -z "$packages" ] || DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
        --no-install-recommends $packages || fail "not installed:" $(missing $installed)
    for package in $(not_unpacked); do
        (cd target/unpacked && apt-get download -q "$package" && dpkg -x "$package"_*.deb . &&
            rm "$package"_*.deb) || fail "not unpacked: $package"
        touch "target/unpacked/$package.is_there"
    done
    # Alertmanager wants its templates where its package has them.
    [ -e /usr/share/prometheus/alertmanager ] || {
        mkdir -p /usr/share/prometheus
        cp -r target/unpacked/usr/share/prometheus/alertmanager /usr/share/prometheus/
    }
}

if [ "${1:-}" = quick ]; then
    :
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    install_packages
else
    skip "installing packages: that takes root and apt"
fi
[ "${1:-}" != install ] || exit 0

# What was skipped is listed in the end, however that comes, and counted with the tests; before it
# what failing tests said, and after it their names, since of a long log the end is what is read.
# Programs are named, too: one that was ended for its time has no total.
totals() {
    local status=$? skipped failed
    failed=$(grep -oE '^ +`-p [^`]+`' "$log" | sort -u) || true
    if [ -n "$failed" ]; then
        awk '/^failures:$/ { on = !on } /^test result: / { on = 0 } on' "$log" |
            grep -vE '^ +([0-9]+: |at )' | cut -c -2000 || true
    fi
    skipped=$(grep -o 'SKIPPED .*' "$log" | sort -u) || true
    if [ -n "$skipped" ]; then
        echo "Skipped:"
        echo "${skipped//SKIPPED /  }"
    fi
    echo "Slowest programs, in seconds:"
    sed -nE 's/^ +Running .*\/([a-z0-9_]+)-[0-9a-f]+\)$/\1/p; s/.*finished in ([0-9]+).*/\1/p' "$log" |
        awk '/^[0-9]+$/ { print "  ", $1, name; next } { name = $1 }' | sort -k 1nr | head -n 15 || true
    if [ -n "$failed" ]; then
        printf 'Failed:\n%s\n' "$failed"
        sed -n 's/^test \(.*\) \.\.\. FAILED$/    \1/p' "$log"
    fi
    sed -n 's/.*test result: [a-zA-Z]*\. \([0-9]*\) passed; \([0-9]*\) failed;.*/\1 \2/p' "$log" |
        awk -v skipped="$(grep -c . <<<"$skipped")" '{ passed += $1; failed += $2 }
            END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }'
    exit "$status"
}
trap totals EXIT

# The same random inputs each time; other seeds look for more (CONTRIBUTING.md).
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-7}

# What the compiler keeps to build again faster fills more disk than everything that it builds.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

# Machines of Java run for minutes at most: what their better compiler would gain comes too late.
export JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# A test program that hangs is ended, and fails by its name while the others run. What tests start
# is not to be started so.
runner=CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)_RUNNER
export "$runner=env -u $runner timeout --kill-after=10 1200"

# What tests print is shown: that they are skipped.
run() {
    timeout --kill-after=10 5400 cargo test --no-fail-fast "$@" 2>&1 | tee -a "$log"
}

cargo fmt --all --check
if [ "${1:-}" = quick ]; then
    cargo clippy --workspace --all-targets --quiet -- -D warnings
    run --workspace --lib --bins --test sim --test tidy -- --show-output
    exit
fi

# Features whose libraries or tools are here, all in one build of the workspace.
features=()
if pkg-config --exists 'libdpdk >= 22.11'; then
    features+=(weir/dpdk)
else
    skip "the feature dpdk: there is no libdpdk (Debian: apt-get install libdpdk-dev)"
fi
if command -v make && command -v c++ && pkg-config --exists 'openssl >= 1.1'; then
    features+=(weir/kafka weir-bench/kafka)
else
    skip "the feature kafka: it takes make, c++ and OpenSSL (Debian: make g++ libssl-dev)"
fi
if command -v npm >/dev/null; then
    features+=(weir/serve)
else
    skip "the feature serve: there is no npm (Debian: apt-get install npm)"
fi
features+=(weir/tables weir/sql)
all=$(IFS=,; echo "${features[*]}")
cargo clippy --workspace --features "$all" --all-targets --quiet -- -D warnings
# Without these features, libraries and programs; the tests that differ then run below.
cargo clippy --workspace --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --features "$all" --no-deps --quiet

# Tests over Kafka, Flink, a browser and receivers of alerts wait more than they compute: they run
# beside those that only compute, which yield to them, and some of them beside each other. Tests on
# wires of their own wait, too, but watch a clock: they run beside each other alone, after those that
# compute. All others come one after the other.
waits=("cluster kafka" flink "deliver page")
computes="agree exchange floods hellos meters oracle populations privacy sim smoke together truth tshark"
wires=(wires "dpdk held" "live offload")
tests() { printf -- '--test %s ' "$@"; }
rest() {
    local file name
    for file in crates/*/tests/*.rs crates/*/tests/*/main.rs bench/tests/*.rs; do
        name=${file%/main.rs} name=${name%.rs} name=${name##*/}
        [[ " ${waits[*]} $computes ${wires[*]} " = *" $name "* ]] || echo "$name"
    done | sort -u
}
# Starts lists of programs beside each other; `ended` waits for all that were started, and shows what
# they printed.
# Names of tests are words.
# shellcheck disable=SC2086,SC2046
beside() {
    local some
    for some; do
        (
            log="target/beside.${some// /-}.log"
            run "${built[@]}" $(tests $some) -- --show-output >/dev/null
        ) &
        started+=($!)
    done
}
ended() {
    local one status=0
    for one in "${started[@]}"; do
        wait "$one" || status=$?
    done
    cat target/beside.*.log | tee -a "$log"
    rm -f target/beside.*.log
    started=()
    return "$status"
}
# shellcheck disable=SC2086,SC2046
run_all() {
    local built=(--workspace --features "$all") started=() status=0 one
    cargo test "${built[@]}" --no-run 2>&1 | tee target/built.log
    rm -f target/beside.*.log
    beside "${waits[@]}"
    (
        renice -n 10 "$BASHPID" >/dev/null
        run "${built[@]}" $(tests $computes) -- --show-output
    ) || status=$?
    ended || status=$?
    beside "${wires[@]}"
    ended || status=$?
    run "${built[@]}" --lib --bins --examples $(tests $(rest)) -- --show-output || status=$?
    run "${built[@]}" --doc || status=$?
    # A program that no list names would pass unseen.
    for one in $(sed -n 's/^ *Executable .*(\(.*\))$/\1/p' target/built.log); do
        grep -qF "($one)" "$log" || { echo "check.sh: not run: $one" >&2; status=1; }
    done
    return "$status"
}
run_all

# What a program says that was built without them.
run --workspace --test page --test kafka --test dpdk --test tables --test sql -- --show-output
