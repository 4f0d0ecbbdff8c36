#!/usr/bin/env bash
# PostgreSQL on loopback, for rows of jobs (docs/flink.md): Debian's packages, unpacked into
# target/cluster and not installed, since they would start a service. Everybody on this machine may
# connect as the user `weir`, without a password.
#
#   cluster/postgres.sh fetch        unpacks the server
#   cluster/postgres.sh up           starts it unless it runs, with a database `weir`; prints its URL
#   cluster/postgres.sh sql 'TEXT'   runs SQL there, and prints rows
#   cluster/postgres.sh kill         ends it at once (SIGKILL); `up` starts it again
#   cluster/postgres.sh down         ends it
#
# POSTGRES_PORT sets the port (15432), POSTGRES_HOME the folder of what it stores.
set -euo pipefail
cd "$(dirname "$0")/.."
PORT=${POSTGRES_PORT:-15432}
mkdir -p target/cluster
package=$PWD/target/cluster/postgres-package
home=${POSTGRES_HOME:-$PWD/target/cluster/postgres}

say() { echo "cluster/postgres.sh: $*" >&2; }

# The packages, whole or not at all.
fetch() {
    if [ ! -e "$package/.whole" ]; then
        command -v dpkg >/dev/null || { say "this takes a Debian, whose packages it unpacks"; exit 3; }
        rm -rf "$package"
        mkdir -p "$package"
        (cd "$package" && apt-get download -q postgresql-15 postgresql-client-15 libpq5 \
            >fetch.log 2>&1) || { say "PostgreSQL could not be fetched: $package/fetch.log"; exit 3; }
        for one in "$package"/*.deb; do dpkg -x "$one" "$package"; done
        rm "$package"/*.deb
        touch "$package/.whole"
    fi
    bin=$package/usr/lib/postgresql/15/bin
    LD_LIBRARY_PATH=$(echo "$package"/usr/lib/*-linux-gnu)
    export LD_LIBRARY_PATH
    "$bin/postgres" --version >/dev/null 2>&1 ||
        { say "a library of PostgreSQL is missing: ldd $bin/postgres"; exit 3; }
}

# PostgreSQL refuses to run as root. In a user namespace root is somebody else, who owns the same
# files.
unprivileged() {
    if [ "$(id -u)" = 0 ]; then
        set -- unshare --user --map-user=65534 --map-group=65534 "$@"
    fi
    exec "$@"
}

# Whether the process that was started is still that one, by its arguments.
runs() {
    local pid
    pid=$(cat "$home/postgres.pid" 2>/dev/null) || return 1
    grep -qs "$home/data" "/proc/$pid/cmdline"
}

answers() { "$bin/pg_isready" -q -h 127.0.0.1 -p "$PORT"; }

sql() {
    "$bin/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$PORT" -U weir "$@"
}

# In a session of its own: a Ctrl-C here is not meant for it.
start() {
    rm -f "$home/data/postmaster.pid"
    (unprivileged setsid "$bin/postgres" -D "$home/data" -p "$PORT" -h 127.0.0.1 -k '') \
        >>"$home/server.log" 2>&1 </dev/null &
    echo $! >"$home/postgres.pid"
}

up() {
    fetch
    if [ ! -e "$home/data/PG_VERSION" ]; then
        mkdir -p "$home"
        (unprivileged "$bin/initdb" -D "$home/data" -U weir -A trust -E UTF8 --locale=C \
            --no-sync) >"$home/initdb.log" 2>&1 ||
            { say "its folder could not be made: $home/initdb.log"; exit 3; }
    fi
    for _ in $(seq 300); do
        answers && break
        # It does not start while children of one that was killed still end.
        runs || start
        sleep 0.1
    done
    answers || { say "it does not answer: see $home/server.log"; exit 1; }
    [ "$(sql -d postgres -c "SELECT count(*) FROM pg_database WHERE datname = 'weir'")" = 1 ] ||
        sql -d postgres -c "CREATE DATABASE weir"
    echo "jdbc:postgresql://127.0.0.1:$PORT/weir?user=weir"
}

end() {
    local pid
    runs || return 0
    pid=$(cat "$home/postgres.pid")
    kill "-$1" "$pid"
    for _ in $(seq 100); do
        runs || return 0
        sleep 0.1
    done
    kill -KILL "$pid"
}

case ${1:-} in
    fetch) fetch ;;
    up) up ;;
    sql) fetch && sql -d weir -c "${2:?the SQL}" ;;
    kill) end KILL ;;
    down) end INT ;;
    *) say "what to do: fetch, up, sql TEXT, kill or down"; exit 2 ;;
esac
