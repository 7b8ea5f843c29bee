#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two network namespaces joined by a veth pair: devices named by interface, IPv4 and link-local GIDs, MTU from the
# interface, traffic across, and the link's state followed when the interface goes down and up and its address changes.
# Usage: netns.sh BUILD_DIR
set -uo pipefail
build=$1
here=$(dirname "$0")
watcher=
command -v ibv_rc_pingpong >/dev/null || { echo "skipped: ibv_rc_pingpong is not installed"; exit 77; }
. "$here/veth.sh"
. "$here/waiting.sh"
wait_for() { # pattern file
	for _ in $(seq 1200); do
		grep -q "$1" "$2" && return 0
		sleep 0.05
	done
	return 1
}

in_a ibv_devinfo -v >"$log" 2>&1 || fail "ibv_devinfo"
grep -q 'active_mtu:.*2048' "$log" || fail "MTU 2200 leaves room for 2048"
grep -q 'GID\[  0\]:.*::ffff:10.99.0.1' "$log" || fail "GID 0 is the IPv4 address"
grep -q 'GID\[  1\]:.*fe80::' "$log" || fail "GID 1 is the link-local address"

for gid in 0 1; do
	for gso in 1 0; do
		export SOFTROCE_GSO=$gso
		in_a timeout 800 ibv_rc_pingpong -d soft0 -g $gid -c -m 2048 -s 100000 -n 200 >"$log" 2>&1 & # ends by itself
		server=$!
		listening 18515 $server "$inside" "$a"
		in_b timeout 800 ibv_rc_pingpong -d soft0 -g $gid -c -m 2048 -s 100000 -n 200 10.99.0.1 >"$log.client" 2>&1 ||
			{ cat "$log.client"; fail "pingpong over veth, GID $gid, GSO $gso"; }
		wait $server || fail "pingpong server, GID $gid, GSO $gso"
	done
done
unset SOFTROCE_GSO

# Not by in_a: $! must be the program itself, which never ends by itself.
"$inside" "$a" env SOFTROCE_DEVICES=va "$build/softroce-run" ibv_asyncwatch -d soft0 >"$log" 2>&1 &
watcher=$!
wait_for 'async event FD' "$log" || fail "ibv_asyncwatch"
ip_in "$a" link set va down
wait_for IBV_EVENT_PORT_ERR "$log" || fail "interface down: no port error"
ip_in "$a" link set va up
wait_for IBV_EVENT_PORT_ACTIVE "$log" || fail "interface up: port not active"
: >"$log.mark"
ip_in "$b" link set vb down # the carrier goes at the other end
for _ in $(seq 1200); do [ "$(grep -c PORT_ERR "$log")" -ge 2 ] && break; sleep 0.05; done
[ "$(grep -c PORT_ERR "$log")" -ge 2 ] || fail "carrier lost: no port error"
ip_in "$b" link set vb up
ip_in "$a" addr add 10.99.0.7/24 dev va
ip_in "$a" addr del 10.99.0.1/24 dev va
wait_for IBV_EVENT_GID_CHANGE "$log" || fail "address changed: no GID change"
echo "veth: IPv4 and IPv6 traffic, with and without offloads; down, up, carrier and address followed"
