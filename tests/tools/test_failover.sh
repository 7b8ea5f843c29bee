#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The demo's cut cable and the bench of the failover: what they say is true of a plugin that fails over, and of one that
# does not. Nothing is timed. Uses build/.
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
# NICs and faults of its own: other tests may run at the same time
export HA_NCCL_VERBS=soft SOFTROCE_CONTROL=$TMP/control
mkdir -m 700 "$SOFTROCE_CONTROL"
export SOFTROCE_DEVICES="127.173.$(($$ % 250)).0/24,127.174.$(($$ % 250)).0/24"
FAILED=0

fail() {
	echo "FAIL: $*"
	tail -20 "$TMP/out"
	FAILED=1
}

# The cable is out for longer than a NIC tries again by itself (0.54 s by default), and back long before the end: a busy
# machine starts `ha heal` late.
demo() {
	timeout 800 "$ROOT/scripts/demo-failover" --ranks 2 --size 256K --seconds 9 --cut 0.8 --heal 3 --png "$TMP/demo.png" \
		>"$TMP/out" 2>&1
}

demo || fail "the demo: status $?"
grep -q 'every one verified whole: not one byte was wrong' "$TMP/out" || fail "no closing sentence"
grep -q 'rail 0 soft0:1 *failed_over .*posted again' "$TMP/out" || fail "no failover in the list"
if command -v gnuplot >/dev/null; then
	[ "$(head -c 4 "$TMP/demo.png" | tail -c 3)" = PNG ] || fail "no PNG"
	grep -q 'bytes that arrived' "$TMP/out" || fail "no plot"
fi

HA_NCCL_ENABLE_BACKUP=0 demo && fail "the demo does not notice that the job dies"
grep -q 'did NOT survive' "$TMP/out" || fail "no word about the death"

timeout 800 "$ROOT/bench/failover" port --cuts 1 --json "$TMP/bench.json" >"$TMP/out" 2>&1 || fail "the bench"
python3 - "$TMP/bench.json" <<'PY' || fail "the bench's figures"
import json, sys
port = json.load(open(sys.argv[1]))["parts"]["port"]
for end in port.values():
    assert end["survived"] == end["failed_over"] == 1 and end["wrong"] == 0, end
    # A gap of 0 is shorter than the timeline notes; none at all: the machine itself stood still.
    assert not end["stall_ms"] or end["stall_ms"]["worst"] > 0, end
PY
HA_NCCL_ENABLE_BACKUP=0 timeout 800 "$ROOT/bench/failover" kill --cuts 1 --json "$TMP/bench.json" --keep "$TMP/keep" \
	>"$TMP/out" 2>&1
python3 - "$TMP/bench.json" <<'PY' || fail "the bench does not notice that the job dies"
import json, sys
kill = json.load(open(sys.argv[1]))["parts"]["kill"]
assert all(end["survived"] == 0 and end["errors"] for end in kill.values()), kill
PY
grep -rq '"event":"lost"' "$TMP"/keep/*/events || fail "--keep"

[ $FAILED -eq 0 ] && echo "all right"
exit $FAILED
