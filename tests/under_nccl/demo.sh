#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The demo's cut cable: what it says is true of a plugin that fails over, of one that does not, and of NCCL's own IB transport.
# Nothing is timed: the cable is out for far longer than the short time-outs take. Uses build/.
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
compgen -G "$ROOT/build/softcuda/nccl-2.29*/libnccl.so.2" >/dev/null || { echo "skipped: no NCCL 2.29 was linked"; exit 77; }
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
# NICs of its own: other tests may run at the same time
export SOFTROCE_DEVICES="127.175.$(($$ % 250)).0/24,127.176.$(($$ % 250)).0/24"
FAILED=0

fail() {
	echo "FAIL: $*"
	cat "$TMP/out"
	FAILED=1
}

# 10 ms between two all-reduces: ranks that do nothing else take both processors to the end of each job.
demo() {
	timeout 800 "$ROOT/scripts/demo-nccl" --ranks 2 --size 256K --compute 10ms --seconds 3.2 --cut 0.6 --heal 2.6 --nccl 2.29 --png "$TMP/demo.png" "$@" \
		>"$TMP/out" 2>&1
}

demo cut ib --ib short failover || fail "the demo: status $?"
grep -q "^NCCL's log, rank 0: Using network HA" "$TMP/out" || fail "NCCL's log does not name the plugin"
grep -q 'rail 0 soft0:1 *failed_over .*posted again' "$TMP/out" || fail "no failover in the list"
grep -q 'rail 0 soft0:1 *failed_back' "$TMP/out" || fail "no return in the list"
grep -q 'not one element was wrong' "$TMP/out" || fail "no closing sentence"
grep -qE "NCCL's IB, time-outs as short as hawser's +ENDED WITH AN ERROR " "$TMP/out" || fail "NCCL's IB does not end"
# (NCCL's own failover stalls for 1 to 69 s, and the job is given up after 20 s without one.)
grep -qE 'its port failover +(survived; .* 0 elements wrong|ENDED WITH AN ERROR .*nothing has moved)' "$TMP/out" || fail "NCCL's port failover"
grep -qE '^  hawser +survived; .* 0 elements wrong' "$TMP/out" || fail "hawser in the list"
if command -v gnuplot >/dev/null; then
	[ "$(head -c 4 "$TMP/demo.png" | tail -c 3)" = PNG ] || fail "no PNG"
	grep -q "bytes per second through rank 0's NICs" "$TMP/out" || fail "no plot"
	grep -qE '\|cut|\|failed over' "$TMP/out" || fail "no moments in the plot"
fi

HA_NCCL_ENABLE_BACKUP=0 demo cut && fail "the demo does not notice that the job dies"
grep -q 'did NOT survive the cut: rank' "$TMP/out" || fail "no word about the death"

[ $FAILED -eq 0 ] && echo "all right"
exit $FAILED
