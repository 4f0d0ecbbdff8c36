#!/usr/bin/env bash
# Apache Flink on loopback: a job manager and task managers, and the jar of Weir's job. The jars of
# Flink come from PyPI, that of its Kafka connector from Maven Central, all into target/cluster. The
# engine in the jar is for this machine, and for aarch64 and x86_64 where cargo has built it for
# these targets; WEIR_NATIVE names a library that is built already.
#
#   cluster/flink.sh up           builds the jar, starts what does not run, and prints the address
#   cluster/flink.sh jar          builds the jar alone, and prints where it is
#   cluster/flink.sh kill N       ends task manager N at once (SIGKILL), or the job manager where N
#                                 is `jobmanager`; `up` starts it again
#   cluster/flink.sh down         ends everything
#
# FLINK_PORT sets the port of the REST interface (18081); the next three are used, too. With
# FLINK_HA=1 a server of ZooKeeper runs beside it, which Flink's jars have: a job manager that was
# killed goes on with its jobs then. FLINK_TASKMANAGERS sets how many task managers there are (1), each of 2 slots. FLINK_HOME
# sets the folder of what runs, so that several can run beside each other.
set -euo pipefail
cd "$(dirname "$0")/.."
VERSION=2.3.0
PORT=${FLINK_PORT:-18081}
TASKMANAGERS=${FLINK_TASKMANAGERS:-1}
HA=${FLINK_HA:-}
mkdir -p target/cluster
jars=$PWD/target/cluster/flink-$VERSION
built=$PWD/target/cluster/weir-flink
home=${FLINK_HOME:-$PWD/target/cluster/flink}

say() { echo "cluster/flink.sh: $*" >&2; }

# The jars, whole or not at all: Flink's, and those of the job, which pom.xml names. One fetches
# them at a time.
fetch() {
    (flock 8; fetch_missing) 8>"$jars.lock"
}

fetch_missing() {
    [ -e "$jars/.whole" ] || fetch_flink
    cmp -s flink/pom.xml "$jars/job/pom.xml" || fetch_job
}

fetch_job() {
    command -v mvn >/dev/null || { say "Maven is missing (apt-get install maven)"; exit 3; }
    rm -rf "$jars/job"
    (cd flink && mvn -q -B -Dstyle.color=never dependency:copy-dependencies \
        -DoutputDirectory="$jars/job" -DincludeScope=runtime >&2) ||
        { say "the jars of the job could not be fetched"; exit 3; }
    cp flink/pom.xml "$jars/job/pom.xml"
}

fetch_flink() {
    command -v pip >/dev/null || { say "pip is missing (apt-get install python3-pip)"; exit 3; }
    rm -rf "$jars"
    mkdir -p "$jars/lib"
    pip download -q --no-deps -d "$jars/wheel" "apache-flink-libraries==$VERSION" >&2 ||
        { say "Flink could not be fetched"; exit 3; }
    python3 -m zipfile -e "$jars"/wheel/*.whl "$jars/wheel/all"
    mv "$jars"/wheel/all/pyflink/lib/*.jar "$jars/lib"
    rm -rf "$jars/wheel"
    touch "$jars/.whole"
}

# The jar of the job, with what it needs beside Flink; one builds it at a time.
jar_() {
    (flock 9; build) 9>"$built.lock"
}

build() {
    fetch
    local library newest
    library=$(native)
    newest=$(find flink/src/main flink/pom.xml "$library" -newer "$built/weir-flink.jar" -print -quit 2>/dev/null || echo new)
    if [ -n "$newest" ] || [ ! -e "$built/weir-flink.jar" ]; then
        command -v javac >/dev/null || { say "javac is missing (apt-get install default-jdk)"; exit 3; }
        rm -rf "$built/classes"
        mkdir -p "$built/classes"
        for jar in "$jars"/job/*.jar; do
            python3 -m zipfile -e "$jar" "$built/classes"
        done
        rm -rf "$built/classes/META-INF"/*.SF "$built/classes/META-INF"/*.RSA \
            "$built/classes/META-INF/MANIFEST.MF" "$built/classes/module-info.class"
        find flink/src/main/java -name '*.java' >"$built/sources"
        javac -nowarn --release 17 -d "$built/classes" -cp "$jars/job/*:$jars/lib/*" \
            "@$built/sources" >&2 || { say "the job could not be compiled"; exit 1; }
        pack "$library"
        jar --create --file "$built/new.jar" --main-class weir.job.Job -C "$built/classes" .
        mv "$built/new.jar" "$built/weir-flink.jar"
    fi
    echo "$built/weir-flink.jar"
}

# The engine for this machine: where it is.
native() {
    if [ -n "${WEIR_NATIVE:-}" ]; then
        echo "$WEIR_NATIVE"
        return
    fi
    command -v cargo >/dev/null || { say "cargo is missing, which builds the engine of the job"; exit 3; }
    cargo build --quiet --release -p weir-native >&2 || { say "the engine could not be built"; exit 1; }
    echo "$PWD/target/release/libweir_native.so"
}

# Puts libraries where the job looks for them.
pack() {
    local machine other place=$built/classes/native
    for machine in x86_64 aarch64; do
        other=target/$machine-unknown-linux-gnu/release/libweir_native.so
        [ "$machine" = "$(uname -m)" ] && other=$1
        [ -e "$other" ] || continue
        mkdir -p "$place/linux-$machine"
        cp "$other" "$place/linux-$machine/"
    done
}

configure() {
    mkdir -p "$home/conf" "$home/checkpoints" "$home/tmp"
    cat >"$home/conf/config.yaml" <<YAML
jobmanager.rpc.address: 127.0.0.1
jobmanager.bind-host: 127.0.0.1
jobmanager.rpc.port: $((PORT + 1))
jobmanager.memory.process.size: 1024m
blob.server.port: $((PORT + 2))
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: $PORT
rest.bind-port: $PORT
web.upload.dir: $home/tmp
taskmanager.host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
taskmanager.numberOfTaskSlots: 2
taskmanager.cpu.cores: 2
taskmanager.memory.framework.heap.size: 128m
taskmanager.memory.framework.off-heap.size: 128m
taskmanager.memory.task.heap.size: 384m
taskmanager.memory.task.off-heap.size: 64m
taskmanager.memory.managed.size: 64m
taskmanager.memory.network.min: 64m
taskmanager.memory.network.max: 64m
taskmanager.memory.jvm-metaspace.size: 256m
taskmanager.memory.jvm-overhead.min: 192m
taskmanager.memory.jvm-overhead.max: 192m
parallelism.default: 2
heartbeat.interval: 1000
metrics.fetcher.update-interval: 1000
heartbeat.timeout: 5000
restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 100
restart-strategy.fixed-delay.delay: 500ms
state.backend.type: hashmap
execution.checkpointing.dir: file://$home/checkpoints
execution.checkpointing.savepoint-dir: file://$home/savepoints
io.tmp.dirs: $home/tmp
YAML
    [ -z "$HA" ] && return
    cat >>"$home/conf/config.yaml" <<YAML
high-availability.type: zookeeper
high-availability.zookeeper.quorum: 127.0.0.1:$((PORT + 3))
high-availability.storageDir: file://$home/ha
YAML
    cat >"$home/conf/zookeeper" <<TEXT
tickTime=1000
dataDir=$home/zookeeper
clientPort=$((PORT + 3))
clientPortAddress=127.0.0.1
admin.enableServer=false
TEXT
}

log_settings() {
    # Flink has no reader of YAML for this.
    cat >"$home/conf/log4j2.xml" <<XML
<Configuration>
  <Appenders>
    <Console name="out"><PatternLayout pattern="%d %p %m (%c)%n%ex"/></Console>
  </Appenders>
  <Loggers>
    <Root level="INFO"><AppenderRef ref="out"/></Root>
    <Logger name="org.apache.flink.kafka.shaded" level="WARN"/>
  </Loggers>
</Configuration>
XML
}

opens=()
for package in java.lang java.lang.reflect java.net java.io java.nio java.text java.time java.util \
    java.util.concurrent java.util.concurrent.atomic java.util.concurrent.locks sun.nio.ch; do
    opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
done

zookeeper=org.apache.flink.shaded.zookeeper3.org.apache.zookeeper.server.ZooKeeperServerMain

# Whether the process of this name runs, by its arguments.
runs() {
    local pid
    pid=$(cat "$home/$1.pid" 2>/dev/null) || return 1
    grep -qs org.apache.flink "/proc/$pid/cmdline"
}

# Starts a process in a session of its own: a Ctrl-C here is not meant for it.
start() {
    local name=$1 memory=$2
    runs "$name" && return
    FLINK_CONF_DIR="$home/conf" setsid java "${opens[@]}" "-Xmx$memory" -XX:+UseSerialGC \
        -Dlog4j2.configurationFile="$home/conf/log4j2.xml" -cp "$jars/lib/*" "${@:3}" >>"$home/$name.log" 2>&1 </dev/null &
    echo $! >"$home/$name.pid"
}

slots() {
    python3 - "$PORT" <<'PYTHON'
import json, sys, urllib.request
try:
    with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/overview", timeout=2) as answer:
        print(json.load(answer)["taskmanagers"])
except OSError:
    print(0)
PYTHON
}

up() {
    command -v java >/dev/null || { say "Java is missing (apt-get install default-jre)"; exit 3; }
    jar_ >/dev/null
    configure
    log_settings
    [ -z "$HA" ] || start zookeeper 64m "$zookeeper" "$home/conf/zookeeper"
    start jobmanager 640m org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint \
        --configDir "$home/conf"
    for number in $(seq "$TASKMANAGERS"); do
        start "taskmanager$number" 512m -XX:MaxDirectMemorySize=320m \
            org.apache.flink.runtime.taskexecutor.TaskManagerRunner --configDir "$home/conf"
    done
    for _ in $(seq 240); do
        [ "$(slots)" -ge "$TASKMANAGERS" ] && { echo "http://127.0.0.1:$PORT"; return; }
        runs jobmanager || { say "it has ended: see $home/jobmanager.log"; exit 1; }
        sleep 0.5
    done
    say "its task managers have not come within two minutes: see $home/taskmanager1.log"
    exit 1
}

end() {
    local name=$1 signal=$2 pid
    runs "$name" || return 0
    pid=$(cat "$home/$name.pid")
    kill "-$signal" "$pid" || return 0
    for _ in $(seq 100); do
        runs "$name" || { rm -f "$home/$name.pid"; return; }
        sleep 0.1
    done
    kill -KILL "$pid"
    rm -f "$home/$name.pid"
}

down() {
    for file in "$home"/taskmanager*.pid "$home"/jobmanager.pid "$home"/zookeeper.pid; do
        [ -e "$file" ] && end "$(basename "$file" .pid)" TERM
    done
    return 0
}

case ${1:-} in
    up) up ;;
    jar) jar_ ;;
    kill) case ${2:-1} in
        jobmanager) end jobmanager KILL ;;
        *) end "taskmanager${2:-1}" KILL ;;
    esac ;;
    down) down ;;
    *) say "what to do: up, jar, kill N or down"; exit 2 ;;
esac
