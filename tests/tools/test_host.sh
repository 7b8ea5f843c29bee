#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts that are not as one expects: a wall clock that jumps, /dev/shm full, no IPv6, a host name that nothing resolves.
# Traffic goes on, also over a failover. In namespaces of its own, as root. Usage: test_host.sh HA JUMPS-LIBRARY
set -u
HA=$1
JUMPS=$2
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
export HA_NCCL_VERBS=soft SOFTROCE_CONTROL=$TMP/control HA_NCCL_STATUS_DIR=$TMP/status TMP
mkdir -m 700 "$SOFTROCE_CONTROL"
export SOFTROCE_DEVICES="127.175.$(($$ % 250)).0/24,127.176.$(($$ % 250)).0/24"
FAILED=0

fail() {
	echo "FAIL: $*"
	tail -20 "$TMP/out"
	FAILED=1
}

# The NIC that carries is cut at one end. Arguments: what to run it with.
traffic() {
	"$@" timeout 800 "$HA" perf sendrecv --ranks 2 -b 64K -e 64K --duration 3s --at 1s "'$HA' cut soft0" \
		--at 2s "'$HA' heal soft0" >"$TMP/out" 2>&1
}

# Nothing may hang on the wall clock: no deadline, no pause, no age.
traffic env LD_PRELOAD="$JUMPS" || fail "a wall clock that jumps: status $?"
found=$(cd "$ROOT" && grep -rnE 'CLOCK_REALTIME|gettimeofday|[^_a-z]time\(NULL\)' --include='*.c' plugin base rdma softroce |
	grep -vE '^plugin/report/(journal|status|status_file)\.c')
[ -z "$found" ] || fail "the wall clock is read where no date is written: $found"

if ! unshare --mount --net --uts true 2>/dev/null; then
	echo "skipped the rest: no namespaces here"
	[ $FAILED -eq 0 ] && exit 77
	exit 1
fi

cat >"$TMP/full" <<'EOF'
ip link set lo up
mount -t tmpfs -o size=64k none /dev/shm
dd if=/dev/zero of=/dev/shm/fill bs=4k 2>/dev/null
exec "$@"
EOF
# Pages and control files have no room: nobody can look or cut from outside, and traffic goes on.
unshare --mount --net sh "$TMP/full" env -u HA_NCCL_STATUS_DIR -u SOFTROCE_CONTROL NCCL_DEBUG=INFO \
	timeout 800 "$HA" perf sendrecv --ranks 2 -b 64K -e 64K --duration 1s >"$TMP/out" 2>&1 || fail "/dev/shm full: status $?"
grep -q 'no page for .ha status.' "$TMP/out" || fail "/dev/shm full: no line about the page"

cat >"$TMP/inet" <<'EOF'
ip link set lo up
for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ -e "$f" ] && echo 1 >"$f"; done
ip -6 addr 2>/dev/null | grep -q inet6 && exit 9
exec "$@"
EOF
traffic unshare --mount --net sh "$TMP/inet" || fail "no IPv6: status $?"

cat >"$TMP/name" <<'EOF'
ip link set lo up
: >"$TMP/empty"
mount --bind "$TMP/empty" /etc/hosts
mount --bind "$TMP/empty" /etc/resolv.conf 2>/dev/null
hostname no-such-host-anywhere
getent hosts no-such-host-anywhere && exit 9
exec "$@"
EOF
traffic unshare --mount --net --uts sh "$TMP/name" || fail "a host name that nothing resolves: status $?"

[ $FAILED -eq 0 ] && echo "all right"
exit $FAILED
