# shellcheck shell=bash
# What bench.sh, cluster.sh and telemetry.sh have in common; they source it. It starts servers,
# records measurements and ends all that it started. Whoever sources it sets
# $seconds, and $scratch where the servers are to store elsewhere than usual.

seconds=${seconds:-2} # of each measurement
round=1               # which one a measurement belongs to
limit=120             # seconds before a measurement or a benchmark counts as hung
start_tenths=100      # tenths of a second for a server to open its port
stop_tenths=150       # the same for all of them to end, before they are killed

# What the caller's own server and clients are told is not for these.
unset CLIENT_TOKENS CLIENT_TOKENS_FILE TICKETING_TOKEN TICKETING_TOKEN_FILE TICKETING_ADDR
unset "${!OTEL_@}" "${!TRACE_@}"

work=$(mktemp -d -p "${scratch:-${TMPDIR:-/tmp}}")
results=$work/results
: >"$results"
declare -A pids # of the servers that run, by name
running=

end_all() {
  trap - EXIT
  for pid in "${pids[@]}" $running; do
    kill "$pid" 2>/dev/null || true
    kill -CONT "$pid" 2>/dev/null || true
  done
  for ((i = 0; i < stop_tenths; i++)); do
    any_alive || break
    sleep 0.1
  done
  for pid in "${pids[@]}" $running; do
    kill -KILL "$pid" 2>/dev/null || true
  done
  wait
  rm -rf "$work"
}

any_alive() {
  for pid in "${pids[@]}" $running; do
    kill -0 "$pid" 2>/dev/null && return 0 # said outright: a trap would return its own
  done
  return 1
}

trap end_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { echo "bench: $*" >&2; }

# launch NAME COMMAND...: start a server. Its log goes on where the one of its name ended.
launch() {
  local name=$1
  shift
  "$@" >>"$work/$name.log" 2>&1 &
  pids[$name]=$!
}

# await_port NAME ADDR: wait until a server takes connections.
await_port() {
  local name=$1 addr=$2
  for ((i = 0; i < start_tenths; i++)); do
    if (exec 3<>"/dev/tcp/${addr%:*}/${addr#*:}") 2>/dev/null; then
      return
    fi
    kill -0 "${pids[$name]}" 2>/dev/null || break
    sleep 0.1
  done
  say "$name does not serve on $addr:"
  cat "$work/$name.log" >&2
  exit 1
}

# serve NAME ADDR COMMAND...: start a server and wait until it takes connections.
serve() {
  launch "$1" "${@:3}"
  await_port "$1" "$2"
}

# stop SIGNAL NAME...: send processes a signal that ends them, and wait for their end.
stop() {
  local signal=$1 name
  shift
  for name in "$@"; do
    kill "-$signal" "${pids[$name]}"
  done
  for name in "$@"; do
    wait "${pids[$name]}" 2>/dev/null || true
    unset "pids[$name]"
  done
}

# bounded COMMAND...: run it, its output in $work/out, and end it when it hangs.
# It runs beside the script, so that a signal to the script ends it at once.
bounded() {
  timeout --kill-after=10 "$limit" "$@" >"$work/out" 2>"$work/err" &
  running=$!
  local code=0
  wait "$running" || code=$?
  running=
  if ((code != 0)); then
    say "exit code $code of: $*"
    cat "$work/err" "$work/out" >&2
    exit 1
  fi
}

# measure WORKLOAD COMMAND...: record the measurement that the command prints.
measure() {
  local workload=$1
  shift
  bounded "$@"
  printf '{"workload":"%s","round":%d,"result":%s}\n' \
    "$workload" "$round" "$(tr -d '\n' <"$work/out")" >>"$results"
}

# loop WORKLOAD PEER ADDR WORKERS [FLAGS]: the same loop against any of the peers.
loop() {
  measure "$1" "$peers" run -peer "$2" -addr "$3" -workers "$4" -time "${seconds}s" "${@:5}"
}

# build: the two programs that measure.
build() {
  say "building"
  peers=$work/peers
  ticketing=$work/ticketing
  (cd cmd/peers && go build -o "$peers" .)
  go build -o "$ticketing" ./cmd/ticketing
}

# machine: what the figures were measured on, as one line begins.
machine() {
  local cpu
  cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
  echo "$(nproc) cores (${cpu:-unknown}), $(go env GOVERSION)"
}
