#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What ha-backend says when it is called wrongly or cannot run here: one line, and what to do. Usage: test_options.sh HA_BACKEND
set -euo pipefail
backend=$1
top=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$top"' EXIT
unset NETCCL_BIND_ADDR NETCCL_CONTROLLER_ADDR NETCCL_BACKEND NETCCL_PACKET_LOOPBACK NETCCL_WORKER_LOOPBACK NETCCL_LB_LOOPBACK

fail() { echo "$1" >&2; exit 1; }

# refused STATUS WORDS ARGUMENT...
refused() {
	local want=$1 words=$2 status=0
	shift 2
	"$backend" "$@" >"$top/out" 2>&1 || status=$?
	[ $status = "$want" ] || fail "$*: status $status, not $want: $(cat "$top/out")"
	[ "$(wc -l <"$top/out")" = 1 ] || fail "$*: not one line: $(cat "$top/out")"
	grep -qF -- "$words" "$top/out" || fail "$*: no '$words' in: $(cat "$top/out")"
}

refused 2 "--bind (NETCCL_BIND_ADDR) is missing: the IPv4 address of the card"
refused 2 "--controller (NETCCL_CONTROLLER_ADDR) is missing: where ha-controller is" --bind=127.0.0.1
refused 2 "--workers takes a power of two from 1 to 64, not '3'" --workers=3
refused 2 "--workers takes a power of two from 1 to 64, not '256'" --workers=256
refused 2 "--bind takes an IPv4 address" --bind=10.0.0
refused 2 "--net takes packet, dpdk or loopback, not 'carrier-pigeon'" --net=carrier-pigeon
refused 2 "--switch-mac takes six bytes" --switch-mac=02:00:00
refused 2 "six bytes" --switch-mac='02:00:0a: 0:+0:fe'
refused 2 "the address of one interface" --switch-mac=01:00:5e:00:00:01
refused 2 "--idle-us takes a whole number from 0 to 1000000000, not 'abc'" --idle-us=abc
refused 2 "--peer-timeout takes a number from 0.01 to 86400, not '0'" --peer-timeout=0
refused 2 "--mode takes an octal mode" --mode=9
refused 2 "--slots: two for each worker at least" --workers=16 --slots=16
refused 2 "--port is missing" --bind=127.0.0.1 --controller=unix:/none --net=dpdk
refused 1 "no interface of this host has the address 192.0.2.77" --bind=192.0.2.77 --controller=unix:/none
refused 2 "write numbers and ranges, as in 2-5,8" --net=loopback --cpus=x
refused 2 "--cpus and --shared" --net=loopback --cpus=0-7 --shared
refused 1 "$top/none/sock" --net=loopback --socket="$top/none/sock"
grep -qF "No such file or directory); make its directory, or name a socket elsewhere: --socket here" "$top/out" || fail "no advice: $(cat "$top/out")"
[ -d /run/hawser ] || refused 1 "/run/hawser/ina.sock: no socket for clients (the lock beside it: No such file or directory); make" --net=loopback
NETCCL_BIND_ADDR=here refused 2 "NETCCL_BIND_ADDR is no IPv4 address"

"$backend" --help | grep -q '^usage: ha-backend'

# The loopback modes need nothing, and a second one at the same socket is refused; metrics are OpenMetrics.
for mode in PACKET WORKER LB; do
	env NETCCL_${mode}_LOOPBACK=1 "$backend" --socket="$top/sock" --metrics=none --idle-us=0 &
	pid=$!
	for _ in $(seq 3000); do
		[ -S "$top/sock" ] && break
		sleep 0.02
	done
	[ -S "$top/sock" ] || fail "$mode: it does not start"
	refused 1 "$top/sock" --net=loopback --socket="$top/sock" --metrics=none
	# Its sums are no sums: ha ina-perf says so, once, instead of counting wrong elements.
	"${backend%/*}/ha" ina-perf all -b 4K -e 4K -n 2 --each --backend "$top/sock" >"$top/out" 2>"$top/err" || fail "$mode: ha ina-perf: $(cat "$top/err")"
	[ "$(grep -c 'this backend is a loopback: .*not verified' "$top/err")" = 1 ] || fail "$mode: ha ina-perf does not say that it is a loopback"
	grep -q 'not verified; groups: 1' "$top/out" && ! grep -q 'wrong' "$top/err" || fail "$mode: ha ina-perf counts wrong elements"
	! grep -qE ' 0 wrong|  0     0.00$' "$top/out" && grep -qE '^all_reduce .* N/A +N/A$' "$top/out" || fail "$mode: a count of what is not verified"
	kill $pid
	wait $pid || fail "$mode: it ended with $?"
	pid=
	[ ! -e "$top/sock" ] || fail "$mode: its socket is left behind"
done
