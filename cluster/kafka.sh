#!/usr/bin/env bash
# Apache Kafka on loopback: one node, which is its own controller (KRaft). Its jars come from Maven
# Central into target/cluster.
#
#   cluster/kafka.sh fetch    only fetches the jars
#   cluster/kafka.sh up       starts it, if it does not run, and prints its address
#   cluster/kafka.sh topic NAME [PARTITIONS [CONFIG=VALUE]...]
#                             makes a topic, if it is not there
#   cluster/kafka.sh grow NAME PARTITIONS
#                             gives a topic so many partitions
#   cluster/kafka.sh read NAME
#                             prints what is committed in a topic: keys, a tab, values
#   cluster/kafka.sh down     ends it
#
# KAFKA_PORT sets the port (19092); the controller has the next one. KAFKA_HOME sets the folder of
# the node, so that several can run beside each other. KAFKA_HOST sets the address that it listens
# at (127.0.0.1): whoever reaches another one reads and writes all topics. With KAFKA_SECURE=1 when
# it is made, the port after these takes TLS, by the certificate tls/ca.pem in that folder, and
# SASL: the user is `probe`, its password `plain-secret` by PLAIN and `scram-secret` by
# SCRAM-SHA-512.
set -euo pipefail
cd "$(dirname "$0")/.."
VERSION=4.3.0
PORT=${KAFKA_PORT:-19092}
HOST=${KAFKA_HOST:-127.0.0.1}
mkdir -p target/cluster
jars=$PWD/target/cluster/kafka-$VERSION
home=${KAFKA_HOME:-$PWD/target/cluster/kafka}

say() { echo "cluster/kafka.sh: $*" >&2; }

# The jars, whole or not at all; one fetches them at a time.
fetch() {
    (flock 8; fetch_missing) 8>"$jars.lock"
}

fetch_missing() {
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

# Its tools run for a second: what the compiler would gain comes too late.
java_() { java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile="$home/log4j2.yaml" \
    -cp "$jars/libs/*" "$@"; }

configure() {
    mkdir -p "$home"
    cat >"$home/log4j2.yaml" <<YAML
Configuration:
  Appenders:
    Console: {name: out, target: SYSTEM_ERR, PatternLayout: {pattern: "%d %p %m (%c)%n"}}
  Loggers:
    Root: {level: INFO, AppenderRef: {ref: out}}
YAML
    [ -e "$home/server.properties" ] && return
    cat >"$home/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((PORT + 1))
listeners=PLAINTEXT://$HOST:$PORT,CONTROLLER://127.0.0.1:$((PORT + 1))
advertised.listeners=PLAINTEXT://$HOST:$PORT
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
    [ -z "${KAFKA_SECURE:-}" ] || secure
}

# A listener by TLS and SASL, with a certificate that it signs itself.
secure() {
    mkdir -p "$home/tls"
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=127.0.0.1 \
        -addext subjectAltName=IP:127.0.0.1,DNS:localhost \
        -keyout "$home/tls/key.pem" -out "$home/tls/ca.pem" 2>"$home/tls/openssl.log" ||
        { say "there is no certificate: $home/tls/openssl.log"; exit 3; }
    cat "$home/tls/key.pem" "$home/tls/ca.pem" >"$home/tls/broker.pem"
    local port=$((PORT + 2)) login=org.apache.kafka.common.security
    sed -i -e "/^\(listeners\|advertised.listeners\)=/s|\$|,SECURE://127.0.0.1:$port|" \
        -e '/^listener.security.protocol.map=/s|$|,SECURE:SASL_SSL|' "$home/server.properties"
    cat >>"$home/server.properties" <<PROPERTIES
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location=$home/tls/broker.pem
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.secure.plain.sasl.jaas.config=$login.plain.PlainLoginModule required user_probe="plain-secret";
listener.name.secure.scram-sha-512.sasl.jaas.config=$login.scram.ScramLoginModule required;
PROPERTIES
}

up() {
    fetch
    configure
    if ! runs; then
        command -v java >/dev/null || { say "Java is missing (apt-get install default-jre)"; exit 3; }
        if [ ! -e "$home/data/meta.properties" ]; then
            java_ kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qg \
                ${KAFKA_SECURE:+--add-scram "SCRAM-SHA-512=[name=probe,password=scram-secret]"} \
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
        grep -q "Kafka Server started" "$home/broker.log" && { echo "kafka://$HOST:$PORT"; return; }
        runs || { say "it has ended: see $home/broker.log"; tail -3 "$home/broker.log" >&2; exit 1; }
        sleep 0.1
    done
    say "it has not started within a minute: see $home/broker.log"
    exit 1
}

topic() {
    local name=$1 partitions=${2:-4} config=()
    for setting in "${@:3}"; do config+=(--config "$setting"); done
    java_ org.apache.kafka.tools.TopicCommand --bootstrap-server "$HOST:$PORT" --create \
        --if-not-exists --topic "$name" --partitions "$partitions" --replication-factor 1 \
        "${config[@]}" >"$home/topic-$name.log" 2>&1 || { cat "$home/topic-$name.log" >&2; exit 1; }
}

grow() {
    java_ org.apache.kafka.tools.TopicCommand --bootstrap-server "$HOST:$PORT" --alter \
        --topic "$1" --partitions "$2" >"$home/topic-$1.log" 2>&1 || { cat "$home/topic-$1.log" >&2; exit 1; }
}

read_() {
    java_ org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$HOST:$PORT" \
        --topic "$1" --from-beginning --isolation-level read_committed --timeout-ms 8000 \
        --formatter-property print.key=true 2>"$home/read-$1.log" || { cat "$home/read-$1.log" >&2; exit 1; }
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
grow) grow "$2" "$3" ;;
read) read_ "$2" ;;
down) down ;;
*)
    say "expected fetch, up, topic, grow, read or down"
    exit 2
    ;;
esac
