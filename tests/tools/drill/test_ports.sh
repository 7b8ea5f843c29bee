#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `ha drill --watch --yes-take-ports-down`: interfaces taken down by ip(8) in a network namespace of its own, put back with their
# routes and addresses, also when the drill is killed. The NICs on the interfaces are software NICs, whose ports follow the
# carrier; the drill does not see their control pages, and takes them for real ports.
if [ "${IN_NAMESPACE:-}" = "" ]; then
	[ "$(id -u)" = 0 ] || { echo "skipped: not root: no network namespace"; exit 77; }
	IN_NAMESPACE=yes exec unshare --net "$0" "$@"
fi
source "$(dirname "$0")/lib.sh"
ip link set lo up
ip link add type veth >/dev/null 2>&1 || { echo "skipped: this kernel has no veth"; exit 77; }
ip link del veth0 2>/dev/null || true

mkdir -p "$TMP/sysfs/sys/class/infiniband"
for i in 0 1; do
	ip link add port$i type veth peer name switch$i
	ip link set port$i up
	ip link set switch$i up
	ip address add 10.119.$i.1/24 dev port$i
	ip address add 10.119.$i.2/24 dev port$i
	ip -6 address add fd00:119:$i::1/64 dev port$i nodad
	ip route add 10.120.$i.0/24 via 10.119.$i.9 dev port$i
	ip -6 route add fd00:120:$i::/64 via fd00:119:$i::9 dev port$i
	ip route add 10.121.$i.0/24 via 10.119.$i.9 dev port$i table 101
	ip route add default via 10.119.$i.9 dev port$i table $((102 + i))
	ip route add multicast 239.119.$i.0/24 dev port$i table 101
	ip -6 route add fd00:121:$i::/64 via fd00:119:$i::9 dev port$i table 101
	ip -6 address add fd00:119:$i::77/64 dev port$i
	folder=$TMP/sysfs/sys/class/infiniband/soft$i/ports/1
	mkdir -p "$folder/gid_attrs/ndevs" "$folder/counters"
	echo port$i >"$folder/gid_attrs/ndevs/0"
	echo 0 >"$folder/counters/port_rcv_data"
	echo 0 >"$folder/counters/port_xmit_data"
done
# What the interfaces have, without what the kernel makes by itself and counts.
state() {
	ip -o address show scope global | awk '{ print $2, $4 }' | sort
	ip -4 route show table all | sed 's/ linkdown//' | sort
	ip -6 route show table all | grep -v fe80 | sed 's/ linkdown//; s/ pref medium//' | sort
	ip -o link show | sed 's/^[0-9]*: //; s/ .*state / /; s/ mode.*//' | sort
}
await "carriers" sh -c '[ "$(ip -o link show up | grep -c LOWER_UP)" = 5 ]'
await "addresses without duplicates" sh -c "! ip -6 address show | grep -q tentative"
# Of an address that detects duplicates: refused as long as it does.
for i in 0 1; do
	ip -6 route add fd00:122:$i::/64 via fd00:119:$i::9 dev port$i src fd00:119:$i::77
done
state >"$TMP/before"
for route in 10.120.1.0 10.121.1.0 239.119.1.0 fd00:121:1:: fd00:122:1:: 'default via 10.119.0.9 dev port0 table 102'; do
	grep -q "$route" "$TMP/before" || fail "the test's own routes: $route"
done

# A software NIC's address is one process's, so each rank is started with its own. What is to be noticed is the port's event: on a
# busy machine the path's silence was, before the event came.
rank() {
	SOFTROCE_DEVICES=10.119.0.$(($1 + 1)),10.119.1.$(($1 + 1)) HA_NCCL_VERBS=soft HA_NCCL_SILENCE_MS=0 NCCL_SOCKET_IFNAME=lo \
		exec "$HA" perf allreduce --rank "$1" --ranks 2 --rendezvous 127.0.0.1:20000 -b 64K -e 64K --duration 600s --compute 10ms \
		>"$TMP/job$1.out" 2>"$TMP/job$1.err"
}
rank 0 &
JOB=$!
rank 1 &
OTHER=$!
await_protected
drill=(env "SOFTROCE_CONTROL=$TMP/none" "HA_NCCL_SYSFS_ROOT=$TMP/sysfs" "$HA" drill --watch)
mkdir -m 700 "$TMP/none"

# Nothing is touched unless it is asked for, nor the way to the machine.
rc=0
"${drill[@]}" >"$TMP/refused.out" 2>"$TMP/refused.err" || rc=$?
[ $rc = 1 ] && grep -q -- '--yes-take-ports-down' "$TMP/refused.err" || fail "ports without the word: $rc"
state | cmp - "$TMP/before" || fail "a refusal has changed something"

"${drill[@]}" --yes-take-ports-down --before 200ms --hold 1s --json="$TMP/drill.json" >"$TMP/drill.out" 2>"$TMP/drill.err" || fail "status $?"
grep -q '^2 of 2 drills survived' "$TMP/drill.out" || fail "no sum"
python3 - "$TMP/drill.json" <<'END' || fail "the report"
import json, sys
drills = json.load(open(sys.argv[1]))["drills"]
assert [d["places"][0]["netdev"] for d in drills] == ["port0", "port1"], drills
for d in drills:
    assert d["fault"] == "port" and d["verdict"] == "survived" and d["noticed"]["cause"] == "port_down", d
END
await "everything as it was" sh -c "$(declare -f state); state | cmp - '$TMP/before'"

# The way to the machine is left alone: by IPv4 or IPv6, also where several ports share the default route; not one of a table of its own.
refused() {
	local rc=0
	"${drill[@]}" --yes-take-ports-down --before 200ms --hold 200ms >"$TMP/drill.out" 2>"$TMP/drill.err" || rc=$?
	grep -q "default route leads over $1" "$TMP/drill.err" || fail "the way to the machine is not seen: $2: $rc"
}
ip -6 route add default via fd00:119:1::9 dev port1
refused port1 "IPv6"
! grep -q 'default route leads over port0' "$TMP/drill.err" || fail "port0 has no default route in main"
ip -6 route del default via fd00:119:1::9 dev port1
ip route add default nexthop via 10.119.0.9 dev port0 nexthop via 10.119.1.9 dev port1
refused port1 "the second of two next hops"
grep -q 'default route leads over port0' "$TMP/drill.err" || fail "the first of two next hops"
ip route del default
await "everything as it was" sh -c "$(declare -f state); state | cmp - '$TMP/before'"

# An ip(8) that fails to restore: once where broken/once is there, as long as broken/always is.
mkdir "$TMP/broken"
cat >"$TMP/broken/ip" <<END
#!/bin/sh
case "\$*" in
*"route restore")
	echo >>"$TMP/broken/tries"
	! rm "$TMP/broken/once" 2>/dev/null || exit 1
	[ ! -e "$TMP/broken/always" ] || exit 1 ;;
esac
exec "$(command -v ip)" "\$@"
END
chmod +x "$TMP/broken/ip"
failing=(env "PATH=$TMP/broken:$PATH" "${drill[@]}" --yes-take-ports-down)

# What could not be put back at first is put back before the next drill, and said.
touch "$TMP/broken/once"
rc=0
"${failing[@]}" --before 200ms --hold 200ms --json="$TMP/drill.json" >"$TMP/drill.out" 2>"$TMP/drill.err" || rc=$?
state | cmp - "$TMP/before" || fail "what failed once was not put back"
[ $rc = 1 ] || fail "status $rc where it could not be put back at first"
grep -q '^1 of 2 drills survived' "$TMP/drill.out" || fail "no sum"
grep -q '"verdict": "not put back"' "$TMP/drill.json" || fail "the report of what was not put back"

# A drill that hangs: the guard tries again and again, but not without a pause. (The links come up again, only their routes do not:
# the port is down for as long as it is held, and must be seen so on a busy machine.)
touch "$TMP/broken/always"
rm -f "$TMP/broken/tries"
"${failing[@]}" --before 200ms --hold 5s >"$TMP/drill.out" 2>"$TMP/drill.err" &
DRILL=$!
await "a port that is down" sh -c "ip -o link show port0 | grep -q 'state DOWN'"
kill -STOP "$DRILL"
await "the guard's first try" test -s "$TMP/broken/tries"
begin=$SECONDS
sleep 2
tries=$(wc -l <"$TMP/broken/tries")
took=$((SECONDS - begin))
[ "$tries" -le $((took + 4)) ] || fail "$tries tries in $took seconds" # (without a pause there were 42)
await "the guard's line" grep -q 'could not be put back' "$TMP/drill.err"
[ "$(grep -c 'could not be put back' "$TMP/drill.err")" = 1 ] || fail "it is said more than once"
rm "$TMP/broken/always"
await "the guard to put back at last" sh -c "$(declare -f state); state | cmp - '$TMP/before'"
kill -KILL "$DRILL"
wait "$DRILL" 2>/dev/null || true
DRILL=

# A drill that is killed: the same.
touch "$TMP/broken/always"
rm -f "$TMP/broken/tries"
"${failing[@]}" --before 200ms --hold 600s >"$TMP/drill.out" 2>"$TMP/drill.err" &
DRILL=$!
await "a port that is down" sh -c "ip -o link show port0 | grep -q 'state DOWN'"
kill -KILL "$DRILL"
wait "$DRILL" 2>/dev/null || true
DRILL=
await "the guard's first try" test -s "$TMP/broken/tries"
rm "$TMP/broken/always"
await "the guard to put back after the drill" sh -c "$(declare -f state); state | cmp - '$TMP/before'"

# Killed in the middle.
ip route add default via 10.119.1.9 dev port1
state >"$TMP/before"
"${drill[@]}" --yes-take-ports-down --before 200ms --hold 600s >"$TMP/drill.out" 2>"$TMP/drill.err" &
DRILL=$!
await "a port that is down" sh -c "ip -o link show port0 | grep -q 'state DOWN'"
kill -KILL "$DRILL"
wait "$DRILL" 2>/dev/null || true
DRILL=
await "the guard to put back" sh -c "$(declare -f state); state | cmp - '$TMP/before'"
grep -q 'default route leads over port1' "$TMP/drill.err" || fail "the way to the machine would have been cut"

kill -INT "$JOB"
wait "$JOB" || fail "the job failed"
wait "$OTHER" || fail "the other rank failed"
JOB= OTHER=
grep -q 'Out of bounds values : 0 OK' "$TMP/job0.out" || fail "wrong elements"
echo "all right"
