#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two network namespaces joined by a veth pair: devices named by interface, IPv4 and link-local GIDs, MTU from the
# interface, traffic across, and the link's state followed when the interface goes down and up and its address changes.
# Usage: netns.sh BUILD_DIR
#
#	ns $a: va 10.99.0.1/24  ------  vb 10.99.0.2/24 :ns $b
set -uo pipefail
build=$1
a=softroce-a-$$ b=softroce-b-$$
for program in ip ibv_rc_pingpong; do
	command -v $program >/dev/null || { echo "skipped: $program is not installed"; exit 77; }
done
ip netns add "$a" 2>/dev/null || { echo "skipped: network namespaces need root"; exit 77; }
ip netns exec "$a" true || { ip netns del "$a"; echo "skipped: this root directory is no mount point, or mounting is forbidden"; exit 77; }
SOFTROCE_CONTROL=$(mktemp -d)
export SOFTROCE_CONTROL
log=$SOFTROCE_CONTROL/log
watcher=
finish() {
	[ -z "$watcher" ] || kill "$watcher" 2>/dev/null
	ip netns del "$a" 2>/dev/null
	ip netns del "$b" 2>/dev/null
	rm -rf "$SOFTROCE_CONTROL"
}
trap finish EXIT
fail() { echo "failed: $1"; cat "$log" 2>/dev/null; exit 1; }
in_a() { ip netns exec "$a" env SOFTROCE_DEVICES=va "$build/softroce-run" "$@"; }
in_b() { ip netns exec "$b" env SOFTROCE_DEVICES=vb "$build/softroce-run" "$@"; }
wait_for() { # pattern file
	for _ in $(seq 100); do
		grep -q "$1" "$2" && return 0
		sleep 0.05
	done
	return 1
}

ip netns add "$b"
ip link add va netns "$a" type veth peer name vb netns "$b" || { echo "skipped: no veth in this kernel"; exit 77; }
ip -n "$a" addr add 10.99.0.1/24 dev va
ip -n "$b" addr add 10.99.0.2/24 dev vb
for n in "$a:va" "$b:vb"; do
	ip -n "${n%:*}" link set lo up
	ip -n "${n%:*}" link set "${n#*:}" mtu 2200 up
done
# Link-local addresses cannot be used before they are known to be unique.
for _ in $(seq 100); do
	[ -n "$(ip -n "$a" -6 addr show dev va -tentative scope link)$(ip -n "$b" -6 addr show dev vb tentative)" ] &&
		[ -z "$(ip -n "$a" -6 addr show dev va tentative)$(ip -n "$b" -6 addr show dev vb tentative)" ] && break
	sleep 0.05
done

in_a ibv_devinfo -v >"$log" 2>&1 || fail "ibv_devinfo"
grep -q 'active_mtu:.*2048' "$log" || fail "MTU 2200 leaves room for 2048"
grep -q 'GID\[  0\]:.*::ffff:10.99.0.1' "$log" || fail "GID 0 is the IPv4 address"
grep -q 'GID\[  1\]:.*fe80::' "$log" || fail "GID 1 is the link-local address"

for gid in 0 1; do
	for gso in 1 0; do
		export SOFTROCE_GSO=$gso
		in_a timeout 30 ibv_rc_pingpong -d soft0 -g $gid -c -m 2048 -s 100000 -n 200 >"$log" 2>&1 & # ends by itself
		server=$!
		for _ in $(seq 100); do
			ip netns exec "$a" grep -qE '^ *[0-9]+: [0-9A-F]+:4853 [0-9A-F:]+ 0A' /proc/net/tcp /proc/net/tcp6 && break # 18515
			sleep 0.05
		done
		in_b timeout 30 ibv_rc_pingpong -d soft0 -g $gid -c -m 2048 -s 100000 -n 200 10.99.0.1 >"$log.client" 2>&1 ||
			{ cat "$log.client"; fail "pingpong over veth, GID $gid, GSO $gso"; }
		wait $server || fail "pingpong server, GID $gid, GSO $gso"
	done
done
unset SOFTROCE_GSO

# Not by in_a: $! must be the program itself, which never ends by itself.
ip netns exec "$a" env SOFTROCE_DEVICES=va "$build/softroce-run" ibv_asyncwatch -d soft0 >"$log" 2>&1 &
watcher=$!
wait_for 'async event FD' "$log" || fail "ibv_asyncwatch"
ip -n "$a" link set va down
wait_for IBV_EVENT_PORT_ERR "$log" || fail "interface down: no port error"
ip -n "$a" link set va up
wait_for IBV_EVENT_PORT_ACTIVE "$log" || fail "interface up: port not active"
: >"$log.mark"
ip -n "$b" link set vb down # the carrier goes at the other end
for _ in $(seq 100); do [ "$(grep -c PORT_ERR "$log")" -ge 2 ] && break; sleep 0.05; done
[ "$(grep -c PORT_ERR "$log")" -ge 2 ] || fail "carrier lost: no port error"
ip -n "$b" link set vb up
ip -n "$a" addr add 10.99.0.7/24 dev va
ip -n "$a" addr del 10.99.0.1/24 dev va
wait_for IBV_EVENT_GID_CHANGE "$log" || fail "address changed: no GID change"
echo "veth: IPv4 and IPv6 traffic, with and without offloads; down, up, carrier and address followed"
