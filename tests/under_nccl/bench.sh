#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench/nccl: both transports take turns in the same processes, and its file has every round. Nothing is timed. Uses build/.
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
compgen -G "$ROOT/build/softcuda/nccl-2.29*/libnccl.so.2" >/dev/null || { echo "skipped: no NCCL 2.29 was linked"; exit 77; }
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
# NICs of its own: other tests may run at the same time
export SOFTROCE_DEVICES="127.177.$(($$ % 250)).0/24,127.178.$(($$ % 250)).0/24"

timeout 300 "$ROOT/bench/nccl" --quick --rounds 2 --most 10 sizes --json "$TMP/bench.json" >"$TMP/out" 2>&1 || {
	echo "FAIL: status $?"
	cat "$TMP/out"
	exit 1
}
python3 - "$TMP/bench.json" <<'PY' || { echo "FAIL: its file"; exit 1; }
import json, statistics, sys
bench = json.load(open(sys.argv[1]))
sizes = bench["parts"]["sizes"]
assert bench["rounds"] == 2 and bench["jobs"] == 2 and len(sizes) == 5, bench
for one in sizes.values():
    assert [job["first"] for job in one["jobs"]] == ["hawser", "ib"], one
    for job in one["jobs"]:
        for key in ("p50_us", "cpu_us"):
            assert len(job[key]) == 2 and all(min(pair) > 0 for pair in job[key]), job
    ratios = [statistics.median(ib / hawser for hawser, ib in job["p50_us"]) for job in one["jobs"]]
    assert abs(one["ratio_p50"] - statistics.median(ratios)) < 1e-9, one
PY
grep -q 'ratio of times, geometric mean over the sizes' "$TMP/out" || { echo "FAIL: no closing line"; exit 1; }
echo "all right"
