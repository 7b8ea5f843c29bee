#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# --duration: every iteration verified at full pace; --timeline: every byte in it, gaps; --at: commands and their marks.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/interrupt.sh"

T=$TMP/timeline.json
# (the run is longer than it need be: what is started early must have ended before the end, on a busy machine too)
NAP=100.$$
clean 1 allreduce --ranks 3 -b 300K -e 300K --protocol simple --duration 4s --progress 100ms --timeline "$T" --timeline-step 2ms \
	--at 0.2s 'kill -0 $HA_PERF_PID_0 $HA_PERF_PID_2 && sleep 0.1; ha version >/dev/null' --at 100ms 'exit 3' --at 0.9 "exec sleep $NAP" \
	--json "$TMP/run.json"
[ "$(grep -c '^ha perf: allreduce, 307200 bytes, iteration [0-9]*$' "$TMP/err")" -ge 2 ] || fail "no lines of progress"
python3 - "$T" "$TMP/run.json" <<'PY' || fail "the timeline"
import json, sys
t, run = (json.load(open(f)) for f in sys.argv[1:])
assert (t["operation"], t["size"], t["step_ns"], t["wrong"]) == ("allreduce", 307200, 2000000, 0), t
# ring all-reduce: each of 3 ranks receives 2 * 2/3 of the data
assert sum(t["bytes"]) == t["iterations"] * t["size"] * 4, (sum(t["bytes"]), t["iterations"])
assert len(t["bytes"]) >= 1990 and t["ranks"][0]["end_ns"] >= 4 * 10**9
for r in t["ranks"]:
    assert r["gaps_omitted"] == 0 and r["longest_gap_ns"] > 0
    assert all(g[1] >= 2000000 for g in r["gaps"]) and r["longest_gap_ns"] >= max([0] + [g[1] for g in r["gaps"]])
    assert all(a[0] + a[1] <= b[0] for a, b in zip(r["gaps"], r["gaps"][1:])), "gaps do not overlap"
a, b, c = t["marks"]
assert a["at_ns"] == 200000000 <= a["begin_ns"] < a["begin_ns"] + 100000000 <= a["end_ns"] and a["status"] == 0, a
assert b["at_ns"] == 100000000 <= b["begin_ns"] < b["end_ns"] and b["status"] == 3, b
assert b["begin_ns"] < a["begin_ns"] and c["begin_ns"] >= 900000000 and c["end_ns"] is None, c
row, = run["results"]
assert row["iters"] == t["iterations"] and row["verified_iters"] >= row["iters"] and row["in_place"] is None
assert run["duration_s"] == 4
PY
for _ in $(seq 600); do
	pgrep -f "^sleep $NAP\$" >/dev/null || break # it has got SIGTERM
	sleep 0.1
done
pgrep -f "^sleep $NAP\$" >/dev/null && fail "a command outlives the run"

# two that are due at once, since what starts them was stopped: in the order of their moments
clean 1 sendrecv --ranks 2 -b 4K -e 4K --duration 100s --timeline "$T" --at 0 'kill -STOP $PPID; sleep 0.3; kill -CONT $PPID' \
	--at 0.2s 'kill -INT $HA_PERF_PID_0' --at 0.1s true
python3 -c "import json,sys; _, a, b = json.load(open(sys.argv[1]))['marks']; sys.exit(not b['begin_ns'] < a['begin_ns'])" "$T" ||
	fail "two commands in the wrong order"

# a rank that stops is a gap in all of them (in the other's from when it has read what was on its way: on a busy machine that takes a while)
clean 1 sendrecv --ranks 2 -b 64K -e 64K --duration 100s --timeline "$T" \
	--at 0.3s 'kill -STOP $HA_PERF_PID_1; sleep 2; kill -CONT $HA_PERF_PID_1' --at 0.4s "$END_RUN"
python3 - "$T" <<'PY' || fail "the gap"
import json, sys
t = json.load(open(sys.argv[1]))
mark, _ = t["marks"]
for r in t["ranks"]:  # there may be longer ones: the machine's own
    assert any(length >= 1e9 and at <= mark["end_ns"] and at + length >= mark["begin_ns"] + 1.98e9 for at, length in r["gaps"]), r
    assert r["longest_gap_ns"] >= 1e9, r
PY

# wrong bytes in the middle of the measured time, behind the 8 iterations before it and before the one after it
for fault in corrupt:60 stale:60 swap:62; do
	TESTSOCK_FAULT=$fault perf sendrecv -b 512K -e 512K --protocol simple --duration 2s --json "$TMP/run.json"
	[ $STATUS -eq 1 ] || fail "$fault: status $STATUS"
	python3 -c "import json,sys; sys.exit(not 0 < json.load(open(sys.argv[1]))['wrong'])" "$TMP/run.json" ||
		fail "$fault: not counted"
done
TESTSOCK_FAULT=corrupt:60 perf sendrecv -b 4K -e 4K --protocol simple --duration 2s
grep -q '^# Out of bounds values : 2 FAILED' "$TMP/out" || fail "one flipped bit in each of two ranks is not 2 elements"
TESTSOCK_FAULT=corrupt:60 perf sendrecv -b 4K -e 4K --protocol simple --duration 2s --check-every 0
[ $STATUS -eq 0 ] || fail "--check-every 0 verifies"
# results that not every rank gets, parts of buffers that nobody writes
for op in pingpong broadcast reduce allgather reducescatter alltoall; do
	clean 1 $op --ranks 3 -b 96K -e 96K -r 1 --duration 100ms --check-every 2
done

clean 1 allreduce -b 64K -e 64K --duration 50s --timeline "$T" --at 0.3s 'kill -INT $HA_PERF_PID_0'
python3 -c "import json,sys; sys.exit(json.load(open(sys.argv[1]))['ranks'][0]['end_ns'] > 20e9)" "$T" || fail "SIGINT"

# as a training step computes
clean 1 allreduce -b 64K -e 64K --duration 500ms --compute 100ms --json "$TMP/run.json"
python3 -c "import json,sys; sys.exit(not 1 <= json.load(open(sys.argv[1]))['results'][0]['iters'] <= 6)" "$TMP/run.json" || fail "--compute"
refused 2 'needs --duration' allreduce -b 8 -e 8 --compute 1ms

TESTSOCK_FAULT=drop:60 refused 1 'nothing has moved for 3 s' sendrecv -b 64K -e 64K --duration 60s -T 3 --at 0.9s 'sleep 99'
for wrong in '--duration x' '--duration 5h' '--timeline-step 1us' '--progress often' '--at soon true' '--compute long'; do
	# shellcheck disable=SC2086
	refused 2 ' takes .*, not ' allreduce -b 8 -e 8 $wrong
done
refused 2 'one size' allreduce -b 8 -e 16 --duration 1s
refused 2 'one size' allreduce -b 8 -e 8 -d all --duration 1s
refused 2 'does not go with --vs' allreduce -b 8 -e 8 --vs x --duration 1s
refused 2 'after the end' allreduce -b 8 -e 8 --duration 1s --at 1s true
refused 2 'at needs TIME COMMAND' allreduce -b 8 -e 8 --duration 1s --at 1s
refused 2 'needs --duration' allreduce -b 8 -e 8 --at 1s true
refused 2 'needs --duration' allreduce -b 8 -e 8 --timeline "$T"
RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 refused 2 'forked here' allreduce -b 8 -e 8 --duration 1s --at 0s true
refused 1 'name a file in a directory that you may write to' allreduce -b 8 -e 8 --duration 50ms --timeline /nonexistent/x.json
finish
