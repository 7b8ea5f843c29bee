#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# --json: one object with the promised fields, on standard output or in a file; --timeline.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../interrupt.sh"

nccl all_reduce -b 8 -e 64K -f 16 -n 4 --ranks 2 -g 2 --json
python3 - "$TMP/out" <<'PY' || fail "the object on standard output"
import json, sys
o = json.load(open(sys.argv[1]))
assert o["program"] == "ha nccl" and o["operation"] == "all_reduce" and len(o["ranks"]) == 2 and o["nccl_ranks"] == 4, o
assert o["nccl"]["version"] == "2.29.7" and o["cuda"]["version"] == "12.4" and o["cuda"]["softcuda"] is False
assert o["ranks"][1]["rank"] == 2 and o["ranks"][1]["dev"] == 2 and o["ranks"][1]["gpus"] == 2
network, = o["networks"]
assert network["name"] is None and network["plugin_loaded"] is False and network["connections"] == 0
assert [r["size"] for r in o["results"]] == [8, 128, 2048, 32768], o["results"]
for r in o["results"]:
    for key in "count type redop root time_us algbw busbw wrong p50_us p99_us max_us cpu_us_per_msg cpu_us_per_iter".split():
        assert key in r, key
    assert r["count"] * 4 == r["size"] and r["type"] == "float" and r["redop"] == "sum" and r["wrong"] == 0
    assert 0 < r["p50_us"] <= r["p99_us"] <= r["max_us"] and r["time_us"] > 0 and r["cpu_us_per_iter"] > 0
    assert r["messages"] is None and r["cpu_us_per_msg"] is None, "nobody has counted messages"
    assert abs(r["busbw"] - r["algbw"] * 1.5) < 1e-9  # 2(n-1)/n of four NCCL ranks
    assert r["in_place"]["wrong"] == 0
PY
nccl alltoall -b 8K -e 8K -n 12 --ranks 4 --net hawser --vs socket --rounds 6 --json "$TMP/file.json"
python3 - "$TMP/file.json" <<'PY' || fail "the object in a file"
import json, statistics, sys
o = json.load(open(sys.argv[1]))
assert [n["name"] for n in o["networks"]] == ["HA", "Socket"]
r, = o["results"]
assert r["in_place"] is None and r["vs"]["wrong"] == 0 and r["iters"] == r["vs"]["iters"] == 12
rounds = r["rounds"]
assert len(rounds["time_us"]) == 2 and all(len(side) == 6 for side in rounds["time_us"] + rounds["p50_us"] + rounds["cpu_us"])
ratios = [b / a for a, b in zip(*rounds["time_us"])]
assert abs(rounds["ratio_time"] - statistics.median(ratios)) < 1e-9
assert abs(statistics.mean(rounds["time_us"][0]) - r["time_us"]) < 1e-6 * r["time_us"]
PY
grep -q '^ A ' "$TMP/out" && grep -q '^ B ' "$TMP/out" && grep -q 'B/A' "$TMP/out" || fail "--vs in the table"
nccl all_reduce -b 4K -e 4K --ranks 2 --duration 100s --at 100ms 'true' --at 200ms 'false' --at 300ms "$END_RUN" \
	--timeline "$TMP/timeline.json"
python3 - "$TMP/timeline.json" <<'PY' || fail "the timeline"
import json, sys
o = json.load(open(sys.argv[1]))
assert o["program"] == "ha nccl timeline" and o["operation"] == "all_reduce" and o["wrong"] == 0 and o["iterations"] > 0
assert sum(o["bytes"]) == o["iterations"] * 4096 * 2
assert [m["status"] for m in o["marks"]][:2] == [0, 1] and len(o["ranks"]) == 2 and len(o["networks"]) == 1
assert o["zero_monotonic_ns"] > 0 and o["step_ns"] == 1000000
PY
TESTNCCL_FAULT=corrupt:1 nccl sendrecv --ranks 2 -b 4K -e 4K -n 1 --json
[ $STATUS -eq 1 ] || fail "status $STATUS with wrong elements"
python3 -c "import json,sys; o = json.load(open(sys.argv[1])); assert o['wrong'] == 1 == o['results'][0]['wrong']" "$TMP/out" ||
	fail "wrong elements in the object"
# before anything is measured: no rank has loaded NCCL, only the process that looks what NCCL it is
rm -f "$TMP/loaded"
refused 1 '--json /nonexistent/x.json: /nonexistent: No such file or directory; name a file' \
	all_reduce -b 8 -e 8 --ranks 1 --json=/nonexistent/x.json
[ "$(wc -l <"$TMP/loaded")" -eq 1 ] || fail "loaded NCCL before --json was looked at"
[ -s "$TMP/out" ] && fail "measured before --json was looked at"
refused 1 "--json $TMP: it is a directory" all_reduce -b 8 -e 8 --ranks 2 --json="$TMP"
[ -s "$TMP/out" ] && fail "two ranks measured before --json was looked at"
refused 1 '--timeline /nonexistent/x: /nonexistent: No such' \
	all_reduce -b 8 -e 8 --duration 1s --timeline /nonexistent/x
# nor is a folder for NCCL's logs left, or named, when there are none
mkdir "$TMP/logs"
TMPDIR=$TMP/logs LD_LIBRARY_PATH=$STAND_INS/soft:$STAND_INS timeout 800 "$HA" nccl --nccl "$STAND_INS/libnccl.so.2" all_reduce -b 8 -e 8 \
	--ranks 2 --net socket --json=/nonexistent/x.json >"$TMP/out" 2>"$TMP/err"
[ $? -eq 1 ] && [ -z "$(ls "$TMP/logs")" ] || fail "an empty folder is left: $(ls "$TMP/logs")"
[ "$(wc -l <"$TMP/err")" -eq 1 ] && ! grep -q "NCCL's log" "$TMP/err" || fail "logs that are not there are named"
finish
