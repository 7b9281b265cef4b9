#!/usr/bin/env bash
# Measures what telemetry costs: the same server told differently what to tell, beside
# one that is built without observers, on loopback and in turns, and prints Markdown
# tables. It installs nothing and ends all that it starts. README.md says what a row means.
#
#   BENCH_ROUNDS      how often every server is measured (8)
#   BENCH_SECONDS     seconds of each measurement, whole or with decimals (2)
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${BENCH_ROUNDS:-8}
seconds=${BENCH_SECONDS:-2}

# shellcheck source=cmd/peers/measure.sh
source cmd/peers/measure.sh

servers=(untold untold-again metrics traced sent hanging all-sent)
receivers=(sent hanging all-sent) # of the servers of their names
declare -A client admin receiver

# server NAME PROGRAM [VARIABLE=VALUE...]: start a server with an environment.
server() {
  serve "$1" "${client[$1]}" env "${@:3}" \
    "$2" serve --listen "${client[$1]}" --admin-listen "${admin[$1]}"
}

# receive NAME [FLAGS]: start what a server sends its traces to.
receive() { serve "receiver-$1" "${receiver[$1]}" "$peers" collector "${receiver[$1]}" "${@:2}"; }

# dropped NAME: print how many traces and spans a server did not send.
dropped() {
  exec 3<>"/dev/tcp/${admin[$1]%:*}/${admin[$1]#*:}"
  printf 'GET /metrics HTTP/1.0\r\nHost: %s\r\n\r\n' "${admin[$1]}" >&3
  timeout 5 cat <&3 | awk '
    /^ticketing_traces_recorded_total/ { recorded += $2 }
    /^ticketing_telemetry_dropped_total{signal="traces"}/ { traces = $2 }
    /^ticketing_telemetry_dropped_total{signal="spans"}/ { spans = $2 }
    END { printf "%d traces recorded, and dropped %d traces, %d spans\n", recorded, traces, spans }'
  exec 3>&-
}

build
go build -tags untold -o "$work/untold" ./cmd/ticketing

mapfile -t addrs < <("$peers" ports $((2 * ${#servers[@]} + ${#receivers[@]})))
for name in "${servers[@]}"; do
  client[$name]=${addrs[0]} admin[$name]=${addrs[1]}
  addrs=("${addrs[@]:2}")
done
for name in "${receivers[@]}"; do
  receiver[$name]=${addrs[0]}
  addrs=("${addrs[@]:1}")
done

receive sent
receive hanging -hang
receive all-sent
server untold "$work/untold"
server untold-again "$work/untold"
server metrics "$ticketing" OTEL_SDK_DISABLED=true
server traced "$ticketing"
server sent "$ticketing" OTEL_EXPORTER_OTLP_ENDPOINT="http://${receiver[sent]}"
server hanging "$ticketing" OTEL_EXPORTER_OTLP_ENDPOINT="http://${receiver[hanging]}"
server all-sent "$ticketing" OTEL_EXPORTER_OTLP_ENDPOINT="http://${receiver[all-sent]}" \
  OTEL_TRACES_SAMPLER=always_on

for ((round = 1; round <= rounds; round++)); do
  say "telemetry, round $round of $rounds"
  # In another order each time: what comes after what makes a difference of its own.
  # What a server has still to send when its turn ends, the next one's warm-up covers.
  mapfile -t order < <(shuf -e "${servers[@]}")
  for name in "${order[@]}"; do
    loop "$name-16" ticketing "${client[$name]}" 16
  done
done

# What a row says of a receiver is true only when traces came to it.
for name in "${receivers[@]}"; do
  say "$name: $(dropped "$name")"
done
stop TERM "${servers[@]}" # which send what they have
stop TERM "${receivers[@]/#/receiver-}"
for name in "${receivers[@]}"; do
  say "$name: its receiver $(cat "$work/receiver-$name.log")"
  if grep -qE ' 0 bytes' "$work/receiver-$name.log"; then
    say "no traces came: its rows mean nothing"
    exit 1
  fi
done

echo "$(machine), 16 connections with a key each;" \
  "medians of $rounds rounds of $seconds s, ratios taken inside each round."
echo
"$peers" table "$results"
