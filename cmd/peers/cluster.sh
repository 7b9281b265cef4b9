#!/usr/bin/env bash
# Measures a cluster of three nodes of Ticketing beside one of etcd, built from its
# Go module, on loopback and in turns, and prints Markdown tables. Both write every
# step to disk before they answer. It installs nothing and ends all that it starts.
# README.md says what a row means.
#
#   BENCH_ROUNDS      how often every workload is measured (5)
#   BENCH_SECONDS     seconds of each measurement, whole or with decimals (2)
#   BENCH_PAIRS       pairs of the workload with a fixed number (40000)
#   BENCH_REST        seconds over which a cluster at rest is looked at; 0: not at all (20)
#   BENCH_RESTARTS    how often all nodes are killed and started with many keys (3)
#   BENCH_KEYS        keys that are held then (58000)
#   BENCH_LOG         seconds of load whose log the nodes read again then (25)
#   BENCH_ETCD        0: leave etcd out (1)
#   BENCH_DIR         where the nodes store, on a disk: a folder in memory has no fsync (build)
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${BENCH_ROUNDS:-5}
seconds=${BENCH_SECONDS:-2}
pairs=${BENCH_PAIRS:-40000}
rest_seconds=${BENCH_REST:-20}
restarts=${BENCH_RESTARTS:-3}
held_keys=${BENCH_KEYS:-58000}
log_seconds=${BENCH_LOG:-25}
etcd=${BENCH_ETCD:-1}
scratch=${BENCH_DIR:-build}
mkdir -p "$scratch"
scratch=$(realpath "$scratch")
# shellcheck source=cmd/peers/measure.sh
source cmd/peers/measure.sh

# A cluster's node is 1, 2 or 3; its process is called by its system and its number.
nodes=(1 2 3)

# node N FLAGS: start a node of Ticketing, on the data that it has.
node() {
  local n=$1
  shift
  launch "ticketing-$n" "$ticketing" serve --listen "${client[$n]}" --admin-listen "${admin[$n]}" \
    --cluster-node-id "n$n" --cluster-data-dir "$data/n$n" --cluster-listen "${raft[$n]}" \
    --cluster-members "$members" "$@"
}

# start FLAGS: start all nodes of Ticketing and wait until they serve.
start() {
  local n
  for n in "${nodes[@]}"; do
    node "$n" "$@"
  done
  for n in "${nodes[@]}"; do
    await_port "ticketing-$n" "${client[$n]}"
  done
  bounded "$peers" ready "$all"
}

etcd_node() {
  local n=$1
  launch "etcd-$n" "$work/etcd-server" --name "e$n" --data-dir "$data/e$n" --log-level error \
    --listen-client-urls "http://${etcd_client[$n]}" --advertise-client-urls "http://${etcd_client[$n]}" \
    --listen-peer-urls "http://${etcd_peer[$n]}" --initial-advertise-peer-urls "http://${etcd_peer[$n]}" \
    --initial-cluster "$etcd_members"
}

# follower LEADER: print the number of a node that does not lead.
follower() {
  local n
  for n in "${nodes[@]}"; do
    if [[ ${client[$n]} != "$1" ]]; then
      echo "$n"
      return
    fi
  done
}

figure() { printf '{"figure":"%s","round":%d,"value":%s}\n' "$1" "$round" "$2" >>"$results"; }

# ticks PID: processor time that a process has used, in hundredths of a second.
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

# rest SYSTEM FIGURE: what the busiest node uses while nobody asks for anything.
rest() {
  local n pid used most=0 memory largest=0
  local -A before
  for n in "${nodes[@]}"; do
    before[$n]=$(ticks "${pids[$1-$n]}")
  done
  sleep "$rest_seconds"
  for n in "${nodes[@]}"; do
    pid=${pids[$1-$n]}
    used=$(($(ticks "$pid") - before[$n]))
    memory=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")
    ((used <= most)) || most=$used
    ((memory <= largest)) || largest=$memory
  done
  # A tick is a hundredth of a second, so ticks a second are percents.
  figure "$2-cpu" "$(awk -v t="$most" -v s="$rest_seconds" 'BEGIN { print t / s }')"
  figure "$2-memory" "$(awk -v k="$largest" 'BEGIN { print k / 1024 }')"
}

rest_all() {
  ((rest_seconds > 0)) || return 0
  say "at rest"
  rest ticketing "rest$1"
  [[ $etcd != 1 ]] || rest etcd "etcd3-rest$1"
}

# both WORKLOAD WORKERS FLAGS: the loop against one cluster and then the other.
both() {
  loop "cluster-$1" ticketing "$all" "${@:2}"
  [[ $etcd != 1 ]] || loop "etcd3-$1" etcd "$etcd_all" "${@:2}"
}

# without_a_follower: the loop with all nodes, with a follower that is stopped, and
# with one that is dead. The clients go to the leader at once: to find out that a
# stopped node says nothing takes each of them seconds.
without_a_follower() {
  local leader n
  leader=$("$peers" leader "$all")
  n=$(follower "$leader")
  loop cluster-64-up ticketing "$leader" 64
  kill -STOP "${pids[ticketing-$n]}"
  loop cluster-64-slow ticketing "$leader" 64
  kill -CONT "${pids[ticketing-$n]}"
  sleep 1 # to catch up
  leader=$("$peers" leader "$all")
  n=$(follower "$leader")
  stop KILL "ticketing-$n"
  loop cluster-64-down ticketing "$leader" 64
  node "$n"
  await_port "ticketing-$n" "${client[$n]}"
  sleep 1
}

# restart: hold many keys, have them in a snapshot, put as long a log behind it as
# log_seconds of load make, kill all nodes, and start them. A new cluster each time.
restart() {
  local n
  say "restart $round of $restarts with $held_keys keys"
  data=$work/restart-$round
  start --cluster-snapshot-threshold 64 --cluster-snapshot-interval 1s
  bounded "$peers" hold "$all" "$held_keys"
  bounded "$peers" run -peer ticketing -addr "$all" -workers 1 -time 3s # entries that a snapshot is written for
  stop TERM ticketing-1 ticketing-2 ticketing-3
  start --cluster-snapshot-threshold 100000 --cluster-snapshot-interval 10m
  bounded "$peers" run -peer ticketing -addr "$all" -workers 16 -time "${log_seconds}s"
  stop KILL ticketing-1 ticketing-2 ticketing-3
  for n in "${nodes[@]}"; do
    node "$n"
  done
  bounded "$peers" ready "$all"
  figure restart "$(cat "$work/out")"
  stop KILL ticketing-1 ticketing-2 ticketing-3
  rm -rf "$data"
}

build
ulimit -n "$(ulimit -Hn)"
data=$work/data
mkdir "$data"

mapfile -t addrs < <("$peers" ports 15)
declare -A client raft admin etcd_client etcd_peer
members='' all='' etcd_members='' etcd_all=''
for n in "${nodes[@]}"; do
  client[$n]=${addrs[5 * n - 5]} raft[$n]=${addrs[5 * n - 4]} admin[$n]=${addrs[5 * n - 3]}
  etcd_client[$n]=${addrs[5 * n - 2]} etcd_peer[$n]=${addrs[5 * n - 1]}
  members+=,n$n=${raft[$n]}=${client[$n]}
  all+=,${client[$n]}
  etcd_members+=,e$n=http://${etcd_peer[$n]}
  etcd_all+=,${etcd_client[$n]}
done
members=${members#,} all=${all#,} etcd_members=${etcd_members#,} etcd_all=${etcd_all#,}

if [[ $etcd == 1 ]]; then
  say "building etcd"
  (cd cmd/peers/etcd && go build -o "$work/etcd-server" .)
  for n in "${nodes[@]}"; do
    etcd_node "$n"
  done
  for n in "${nodes[@]}"; do
    await_port "etcd-$n" "${etcd_client[$n]}"
  done
fi
start
rest_all ""

for ((round = 1; round <= rounds; round++)); do
  say "round $round of $rounds"
  both 1 1
  both 16 16
  both 64 64
  both 256 256
  both 16-on-4 16 -keys 4
  measure cluster-broker-64-on-32 env TICKETING_ADDR="$all" "$ticketing" bench --connections 1 --json \
    --workers 64 --keys 32 --count "$pairs"
  [[ $etcd != 1 ]] || loop etcd3-64-on-32 etcd "$etcd_all" 64 -keys 32
  without_a_follower
done

rest_all "-after"
stop TERM "${!pids[@]}"
for ((round = 1; round <= restarts; round++)); do
  restart
done

echo "$(machine), etcd $(go -C cmd/peers/etcd list -m -f '{{.Version}}' go.etcd.io/etcd/server/v3);" \
  "medians of $rounds rounds of $seconds s, ratios taken inside each round."
echo
"$peers" table "$results"
