#!/usr/bin/env bash
# Apache Kafka on loopback: one node, which is its own controller (KRaft). Its jars come from Maven
# Central into target/cluster.
#
#   cluster/kafka.sh fetch    only fetches the jars
#   cluster/kafka.sh up       starts it, if it does not run, and prints its address
#   cluster/kafka.sh topic NAME [PARTITIONS [CONFIG=VALUE]...]
#                             makes a topic, if it is not there
#   cluster/kafka.sh down     ends it
#
# KAFKA_PORT sets the port (19092); the controller has the next one. KAFKA_HOME sets the folder of
# the node, so that several can run beside each other.
set -euo pipefail
cd "$(dirname "$0")/.."
VERSION=4.3.0
PORT=${KAFKA_PORT:-19092}
mkdir -p target/cluster
jars=$PWD/target/cluster/kafka-$VERSION
home=${KAFKA_HOME:-$PWD/target/cluster/kafka}

say() { echo "cluster/kafka.sh: $*" >&2; }

# The jars, whole or not at all.
fetch() {
    [ -e "$jars/.whole" ] && return
    command -v mvn >/dev/null || { say "Maven is missing (apt-get install maven)"; exit 3; }
    mkdir -p "$jars"
    cat >"$jars/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>weir</groupId>
  <artifactId>kafka-jars</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>$VERSION</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-tools</artifactId>
      <version>$VERSION</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>2.25.4</version>
    </dependency>
  </dependencies>
</project>
POM
    (cd "$jars" && mvn -q -B -Dstyle.color=never dependency:copy-dependencies -DoutputDirectory=libs \
        -DincludeScope=runtime >&2) || { say "its jars could not be fetched"; exit 3; }
    touch "$jars/.whole"
}

# Whether the process that was started is still that one, by its arguments.
runs() {
    local pid
    pid=$(cat "$home/kafka.pid" 2>/dev/null) || return 1
    grep -qs kafka.Kafka "/proc/$pid/cmdline"
}

java_() { java -Xmx512m -XX:+UseSerialGC -Dlog4j2.configurationFile="$home/log4j2.yaml" \
    -cp "$jars/libs/*" "$@"; }

configure() {
    mkdir -p "$home"
    cat >"$home/log4j2.yaml" <<YAML
Configuration:
  Appenders:
    Console: {name: out, PatternLayout: {pattern: "%d %p %m (%c)%n"}}
  Loggers:
    Root: {level: INFO, AppenderRef: {ref: out}}
YAML
    [ -e "$home/server.properties" ] && return
    cat >"$home/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((PORT + 1))
listeners=PLAINTEXT://127.0.0.1:$PORT,CONTROLLER://127.0.0.1:$((PORT + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$PORT
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$home/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
PROPERTIES
}

up() {
    fetch
    configure
    if ! runs; then
        command -v java >/dev/null || { say "Java is missing (apt-get install default-jre)"; exit 3; }
        if [ ! -e "$home/data/meta.properties" ]; then
            java_ kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qg \
                -c "$home/server.properties" >"$home/format.log" 2>&1 ||
                { say "the folder could not be formatted: $home/format.log"; exit 1; }
        fi
        : >"$home/broker.log"
        # Its own session: a Ctrl-C here is not meant for it.
        setsid java -Xmx512m -XX:+UseSerialGC -Dlog4j2.configurationFile="$home/log4j2.yaml" \
            -cp "$jars/libs/*" kafka.Kafka "$home/server.properties" \
            >>"$home/broker.log" 2>&1 </dev/null &
        echo $! >"$home/kafka.pid"
    fi
    for _ in $(seq 600); do
        grep -q "Kafka Server started" "$home/broker.log" && { echo "kafka://127.0.0.1:$PORT"; return; }
        runs || { say "it has ended: see $home/broker.log"; tail -3 "$home/broker.log" >&2; exit 1; }
        sleep 0.1
    done
    say "it has not started within a minute: see $home/broker.log"
    exit 1
}

topic() {
    local name=$1 partitions=${2:-4} config=()
    for setting in "${@:3}"; do config+=(--config "$setting"); done
    java_ org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$PORT" --create \
        --if-not-exists --topic "$name" --partitions "$partitions" --replication-factor 1 \
        "${config[@]}" >"$home/topic.log" 2>&1 || { cat "$home/topic.log" >&2; exit 1; }
}

down() {
    runs || return 0
    local pid
    pid=$(cat "$home/kafka.pid")
    kill "$pid"
    for _ in $(seq 100); do
        runs || { rm -f "$home/kafka.pid"; return; }
        sleep 0.1
    done
    kill -9 "$pid"
    rm -f "$home/kafka.pid"
}

case ${1:-} in
fetch) fetch ;;
up) up ;;
topic) topic "${@:2}" ;;
down) down ;;
*)
    say "expected fetch, up, topic or down"
    exit 2
    ;;
esac
