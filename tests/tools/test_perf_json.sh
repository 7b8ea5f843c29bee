#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# --json: one object with the promised fields, on standard output or in a file; --vs: both plugins and ratios.
. "$(dirname "$0")/lib.sh"

perf allreduce -b 8 -e 64K -f 16 -n 4 --ranks 2 --json
python3 - "$TMP/out" <<'PY' || fail "the object on standard output"
import json, sys
o = json.load(open(sys.argv[1]))
assert o["operation"] == "allreduce" and len(o["ranks"]) == 2 and o["plugin"]["name"] == "testsock", o
assert [r["size"] for r in o["results"]] == [8, 128, 2048, 32768], o["results"]
for r in o["results"]:
    for key in "count type redop root time_us algbw busbw wrong p50_us p99_us max_us cpu_us_per_msg".split():
        assert key in r, key
    assert r["count"] * 4 == r["size"] and r["type"] == "float" and r["redop"] == "sum" and r["wrong"] == 0
    assert 0 < r["p50_us"] <= r["p99_us"] <= r["max_us"] and r["time_us"] > 0 and r["cpu_us_per_msg"] > 0
    assert abs(r["algbw"] - r["size"] / r["time_us"] / 1e3) < 1e-9 and abs(r["busbw"] - r["algbw"]) < 1e-9  # 2(n-1)/n = 1
    assert r["in_place"]["wrong"] == 0
PY
perf alltoall -b 8K -e 8K -n 8 --ranks 4 --vs "$PLUGIN" --vs-net-version 8 --json "$TMP/file.json"
python3 - "$TMP/file.json" <<'PY' || fail "the object in a file"
import json, sys
o = json.load(open(sys.argv[1]))
assert o["plugin"]["net_version"] == 12 and o["vs"]["net_version"] == 8
r, = o["results"]
assert r["in_place"] is None and r["vs"]["wrong"] == 0
assert abs(r["busbw"] / r["algbw"] - 0.75) < 1e-9
assert abs(r["ratio"]["time"] - r["vs"]["time_us"] / r["time_us"]) < 1e-9
assert abs(o["ratio"]["time"] - r["ratio"]["time"]) < 1e-9
PY
grep -q '^ A ' "$TMP/out" && grep -q '^ B ' "$TMP/out" && grep -q 'B/A' "$TMP/out" || fail "--vs in the table"
# every call of test(), when asked for: at least one per message of the measured iterations, and not without being asked
perf sendrecv -b 4K -e 4K -n 50 -c 0 --ranks 2 --protocol simple --time-test --json "$TMP/test.json"
python3 - "$TMP/test.json" <<'PY' || fail "the times of test()"
import json, sys
r, = json.load(open(sys.argv[1]))["results"]
t = r["test"]
assert t["calls"] >= 2 * 50 * r["messages"], t
assert 0 < t["p50_us"] <= t["p99_us"] <= t["p999_us"] <= t["max_us"], t
assert r["in_place"] is None
PY
grep -q '^# test(), out-of-place: [0-9]* calls, p50 ' "$TMP/out" || fail "the times of test() in the table"
perf sendrecv -b 4K -e 4K -n 5 --ranks 2 --json
grep -q '"test"' "$TMP/out" && fail "times of test() that nobody asked for"
perf allreduce -b 4K -e 4K -n 5 --ranks 2 --duration 100ms --time-test --json
grep -q '"p999_us"' "$TMP/out" || fail "the times of test() with --duration"
# wrong bytes are in the object too
TESTSOCK_FAULT=corrupt:1 perf sendrecv -b 4K -e 4K -n 1 -w 0 --check-all --protocol simple --json
[ $STATUS -eq 1 ] || fail "status $STATUS with wrong bytes"
python3 -c "import json,sys; o = json.load(open(sys.argv[1])); assert o['wrong'] == 2 == o['results'][0]['wrong']" "$TMP/out" ||
	fail "wrong bytes in the object"
perf pingpong -b 8 -e 8 --json=/nonexistent/x.json
[ $STATUS -eq 1 ] || fail "a file that cannot be written"
finish
