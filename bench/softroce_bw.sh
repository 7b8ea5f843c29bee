#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How much of what plain UDP moves does softroce move? ib_write_bw at 1 MiB and udp_plain take turns on the same
# machine; the medians and their ratio are printed, and the latency of small writes.
# Usage: softroce_bw.sh BUILD_DIR [ROUNDS]
# Exit 1 when the ratio is below one half.
set -euo pipefail
build=$1 rounds=${2:-5}
command -v ib_write_bw >/dev/null || { echo "skipped: perftest is not installed"; exit 77; }
SOFTROCE_CONTROL=$(mktemp -d)
export SOFTROCE_CONTROL SOFTROCE_DEVICES=127.62.0.0/24
trap 'rm -rf "$SOFTROCE_CONTROL"' EXIT

pair() { # program and arguments; the client's output
	"$build/softroce-run" "$@" -d soft0 -p 20162 >"$SOFTROCE_CONTROL/server" 2>&1 &
	local server=$!
	until grep -qsE '^ *[0-9]+: [0-9A-F]+:4EC2 [0-9A-F:]+ 0A' /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done
	"$build/softroce-run" "$@" -d soft0 -p 20162 127.0.0.1 2>/dev/null
	wait $server
}
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

for _ in $(seq "$rounds"); do
	"$build/bench/udp_plain" 1 >>"$SOFTROCE_CONTROL/udp"
	pair ib_write_bw -s 1048576 -n 2000 | awk '$1 == 1048576 { print $4 }' >>"$SOFTROCE_CONTROL/roce"
done
udp=$(median <"$SOFTROCE_CONTROL/udp") roce=$(median <"$SOFTROCE_CONTROL/roce")
echo "plain UDP with offloads:    $udp MB/s   ($(tr '\n' ' ' <"$SOFTROCE_CONTROL/udp"))"
echo "ib_write_bw, 1 MiB:         $roce MB/s   ($(tr '\n' ' ' <"$SOFTROCE_CONTROL/roce"))"
awk -v u="$udp" -v r="$roce" 'BEGIN { printf "ratio:                      %.2f\n", r / u }'
for program in ib_write_lat ib_send_lat; do
	pair $program -s 8 -n 5000 | awk -v p=$program '$1 == 8 {
		printf "%-12s, 8 B:          %s us typical, %s us average, %s us at 99 %%\n", p, $5, $6, $8 }'
done
awk -v u="$udp" -v r="$roce" 'BEGIN { exit !(r / u >= 0.5) }'
