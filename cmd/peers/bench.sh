#!/usr/bin/env bash
# Measures Ticketing beside an echo server (the floor) and beside Redis where it
# is installed, all on loopback and in turns, and prints Markdown tables. It
# installs nothing and ends all that it starts. README.md says what a row means.
#
#   BENCH_ROUNDS      how often every workload is measured (8)
#   BENCH_SECONDS     seconds of each measurement, whole or with decimals (1.5)
#   BENCH_PAIRS       pairs of the workloads with a fixed number (40000)
#   BENCH_GO          1: run the Go benchmarks too, 0: don't (1)
#   BENCH_TELEMETRY   1: measure what telemetry costs too, 0: don't (1); telemetry.sh alone
#                     measures nothing else
#   BENCH_ETCD        1: measure etcd too, built from its Go module (0)
#   BENCH_ZOOKEEPER   1: measure ZooKeeper too, where Debian's is installed (0)
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${BENCH_ROUNDS:-8}
seconds=${BENCH_SECONDS:-1.5}
pairs=${BENCH_PAIRS:-40000}

# shellcheck source=cmd/peers/measure.sh
source cmd/peers/measure.sh

# broker WORKLOAD FLAGS: the client library, all of whose workers share a broker.
broker() {
  measure "$1" "$ticketing" bench --addr "$ticketing_addr" --connections 1 --json "${@:2}"
}

# go_benchmark PACKAGE PATTERN [FLAGS]: record what a package's benchmarks print.
go_benchmark() {
  say "benchmarks of $1"
  go test -c -o "$work/go.test" "./$1"
  bounded env -C "$1" "$work/go.test" -test.run '^$' -test.bench "$2" -test.benchmem "${@:3}"
  cat "$work/out" >>"$results"
}

build

# Many connections of the benchmarks have both of their ends in one process.
ulimit -n "$(ulimit -Hn)"

mapfile -t addrs < <("$peers" ports 6)
echo_addr=${addrs[0]} ticketing_addr=${addrs[1]} redis_addr=${addrs[2]}
etcd_addr=${addrs[3]} etcd_peer_addr=${addrs[4]} zookeeper_addr=${addrs[5]}
serve echo "$echo_addr" "$peers" echo "$echo_addr"
serve ticketing "$ticketing_addr" "$ticketing" serve --listen "$ticketing_addr"
redis=
if command -v redis-server >/dev/null; then
  redis=$(redis-server --version | sed 's/.* v=\([^ ]*\).*/\1/')
  serve redis "$redis_addr" redis-server --bind 127.0.0.1 --port "${redis_addr#*:}" \
    --save '' --appendonly no --dir "$work"
else
  say "redis-server is not installed: its rows are left out"
fi
if [[ ${BENCH_ETCD:-0} == 1 ]]; then
  (cd cmd/peers/etcd && go build -o "$work/etcd-server" .)
  serve etcd "$etcd_addr" "$work/etcd-server" --data-dir "$work/etcd" --log-level error \
    --listen-client-urls "http://$etcd_addr" --advertise-client-urls "http://$etcd_addr" \
    --listen-peer-urls "http://$etcd_peer_addr" --initial-advertise-peer-urls "http://$etcd_peer_addr" \
    --initial-cluster "default=http://$etcd_peer_addr"
fi
if [[ ${BENCH_ZOOKEEPER:-0} == 1 ]]; then
  mkdir "$work/zookeeper"
  printf '%s\n' tickTime=2000 "dataDir=$work/zookeeper" admin.enableServer=false \
    clientPortAddress=127.0.0.1 "clientPort=${zookeeper_addr#*:}" >"$work/zookeeper.cfg"
  serve zookeeper "$zookeeper_addr" env ZOO_LOG_DIR="$work" \
    /usr/share/zookeeper/bin/zkServer.sh start-foreground "$work/zookeeper.cfg"
fi

for ((round = 1; round <= rounds; round++)); do
  say "round $round of $rounds"
  loop echo-16 echo "$echo_addr" 16
  loop ticketing-16 ticketing "$ticketing_addr" 16
  [[ -z $redis ]] || loop redis-16 redis "$redis_addr" 16
  loop ticketing-16-on-4 ticketing "$ticketing_addr" 16 -keys 4
  loop echo-64 echo "$echo_addr" 64
  broker broker-64 --workers 64 --duration "${seconds}s"
  broker broker-64-try --workers 64 --wait 0s --duration "${seconds}s"
  broker broker-64-on-32 --workers 64 --keys 32 --count "$pairs"
  loop echo-256 echo "$echo_addr" 256
  broker broker-256 --workers 256 --duration "${seconds}s"
  broker broker-256-try --workers 256 --wait 0s --duration "${seconds}s"
  loop echo-4 echo "$echo_addr" 4
  broker broker-4-on-4 --workers 4 --keys 4 --count "$pairs"
  [[ ${BENCH_ETCD:-0} != 1 ]] || loop etcd-16 etcd "$etcd_addr" 16
  [[ ${BENCH_ZOOKEEPER:-0} != 1 ]] || loop zookeeper-16 zookeeper "$zookeeper_addr" 16
done

if [[ ${BENCH_GO:-1} == 1 ]]; then
  go_benchmark core/lock '^BenchmarkGrantRelease$'
  go_benchmark core/node '^Benchmark(HeldKeys|IdleConnections|Waiters|MassExpiry)$' -test.benchtime 1x
fi

echo "$(machine), Redis ${redis:-not installed};" \
  "medians of $rounds rounds of $seconds s, ratios taken inside each round."
echo
"$peers" table "$results"

[[ ${BENCH_TELEMETRY:-1} == 1 ]] || exit 0
end_all # what was measured until here is out of the way of what follows
echo
exec cmd/peers/telemetry.sh
