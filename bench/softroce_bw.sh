#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How much of what plain UDP moves does softroce move? ib_write_bw at 1 MiB, udp_plain and udp_plain --checked (the least
# that RoCE costs behind a socket) take turns on the same machine: where the scheduler puts them, each end on a processor of
# its own, and both ends on one. Medians and the median of the rounds' ratios are printed, and the latency of small writes.
# Usage: softroce_bw.sh BUILD_DIR [ROUNDS [fifo]]
# With fifo (as root) everything runs for fractions of a second under SCHED_FIFO: figures that mean something on a machine
# with other work, which stands still meanwhile.
# Exit 1 when the ratio where the scheduler decides is below one half.
set -euo pipefail
build=$1 rounds=${2:-5} seconds=1 count=2000 scheduler=()
[ -z "${3:-}" ] || { scheduler=(chrt -f 1); seconds=0.2 count=600; }
command -v ib_write_bw >/dev/null || { echo "skipped: perftest is not installed"; exit 77; }
SOFTROCE_CONTROL=$(mktemp -d)
export SOFTROCE_CONTROL SOFTROCE_DEVICES=127.62.0.0/24
trap 'rm -rf "$SOFTROCE_CONTROL"' EXIT
read -ra cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))')

on() { # a processor or "any", and a command
	local processor=(taskset -c "$1")
	[ "$1" != any ] || processor=()
	"${processor[@]}" "${scheduler[@]}" "${@:2}"
}
# On a busy machine the other end may be without a processor for longer than the usual 0.5 s: -u 18 waits for 8 s.
pair() { # the sender's processor, the receiver's, program and arguments; the client's output
	local sender=$1 receiver=$2 server
	shift 2
	set -- "$@" -u 18 -d soft0 -p 20162
	on "$receiver" "$build/softroce-run" "$@" >"$SOFTROCE_CONTROL/server" 2>&1 &
	server=$!
	until grep -qsE '^ *[0-9]+: [0-9A-F]+:4EC2 [0-9A-F:]+ 0A' /proc/net/tcp /proc/net/tcp6; do
		kill -0 $server 2>/dev/null || break # it has ended; the client says so
		sleep 0.05
	done
	if ! on "$sender" "$build/softroce-run" "$@" 127.0.0.1 2>"$SOFTROCE_CONTROL/client" || ! wait $server; then
		echo "$* failed:" >&2
		tail -n 4 "$SOFTROCE_CONTROL/client" "$SOFTROCE_CONTROL/server" >&2
		return 1
	fi
}
udp() { # the sender's processor, the receiver's, and options; MB/s
	local processors=("$1" "$2")
	[ "$1" != any ] || processors=()
	"${scheduler[@]}" "$build/bench/udp_plain" "${@:3}" $seconds "${processors[@]}" | cut -d' ' -f1
}
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
ratio() { # two files with a figure a round; the median of the rounds' ratios
	paste "$1" "$2" | awk '{ printf "%.4f\n", $2 ? $1 / $2 : 0 }' >"$SOFTROCE_CONTROL/ratios"
	printf '%.2f' "$(median "$SOFTROCE_CONTROL/ratios")"
}

places=("the scheduler decides:any any")
[ ${#cpus[@]} -lt 2 ] || places+=("a processor for each end:${cpus[0]} ${cpus[1]}")
places+=("one processor for both:${cpus[0]} ${cpus[0]}")
for _ in $(seq "$rounds"); do
	for i in "${!places[@]}"; do
		read -r sender receiver <<<"${places[$i]#*:}"
		udp "$sender" "$receiver" >>"$SOFTROCE_CONTROL/plain.$i"
		udp "$sender" "$receiver" --checked >>"$SOFTROCE_CONTROL/checked.$i"
		pair "$sender" "$receiver" ib_write_bw -s 1048576 -n $count | awk '$1 == 1048576 { print $4 }' >>"$SOFTROCE_CONTROL/roce.$i"
	done
done
printf '%-32s %9s %11s %11s %9s %10s\n' "1 MiB, MB/s, median of $rounds" "plain UDP" "checked UDP" ib_write_bw "of plain" "of checked"
for i in "${!places[@]}"; do
	plain=$SOFTROCE_CONTROL/plain.$i checked=$SOFTROCE_CONTROL/checked.$i roce=$SOFTROCE_CONTROL/roce.$i
	[ "$i" != 0 ] || of_plain=$(ratio "$roce" "$plain")
	printf '%-32s %9.0f %11.0f %11.0f %9s %10s\n' "${places[$i]%:*}" "$(median "$plain")" "$(median "$checked")" \
		"$(median "$roce")" "$(ratio "$roce" "$plain")" "$(ratio "$roce" "$checked")"
done
for program in ib_write_lat ib_send_lat; do
	pair any any $program -s 8 -n 5000 | awk -v p=$program '$1 == 8 {
		printf "%-12s, 8 B:          %s us typical, %s us average, %s us at 99 %%\n", p, $5, $6, $8 }'
done
awk -v r="$of_plain" 'BEGIN { exit !(r >= 0.5) }' || {
	echo "where the scheduler decides it moves $of_plain of what plain UDP does, less than half" >&2
	exit 1
}
