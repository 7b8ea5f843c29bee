#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `ha drill --software`: each NIC cut, losing everything and slow, each rail cut; what it reports, as text, JSON and picture.
source "$(dirname "$0")/lib.sh"

png=
! command -v gnuplot >/dev/null || png=--png=$TMP/drill.png
# (Without a look at silence: on a busy machine that sees a cut before the port's event has come.)
HA_NCCL_SILENCE_MS=0 "$HA" drill --software --size 256K --hold 1500ms --json="$TMP/drill.json" $png >"$TMP/drill.out" 2>"$TMP/drill.err" ||
	fail "status $?"
[ ! -s "$TMP/drill.err" ] || fail "more than its report"
grep -q '^8 of 8 drills survived$' "$TMP/drill.out" || fail "no sum"

python3 - "$TMP/drill.json" <<'END' || fail "the report"
import json, sys
r = json.load(open(sys.argv[1]))
drills = r["drills"]
assert r["all_well"] and r["job"]["own"] and r["job"]["ended_well"], r["job"]
assert r["job"]["iterations"] > 0 and r["job"]["wrong"] == 0 and r["job"]["events_missed"] == 0, r["job"]
assert [d["fault"] for d in drills] == ["cut", "drop", "rate", "cut", "drop", "rate", "cut", "cut"], drills
assert [len(d["places"]) for d in drills] == [1] * 6 + [2, 2], drills
assert {d["places"][0]["device"] for d in drills} == {"soft0", "soft1"}
for d in drills:
    assert d["verdict"] == "survived" and d["lost"] == 0, d
    assert d["put_back_ms"] - d["taken_ms"] >= 1500, d
    if d["fault"] == "cut":  # the port says so itself, at the process whose NIC it is
        n = d["noticed"]
        assert n["cause"] == "port_down" and n["after_ms"] >= 0, d
        assert n["pid"] in [p["pid"] for p in d["places"]], d
        assert n["device"].split(":")[0] == d["places"][0]["device"], d
        assert d["unprotected"] and d["protected_again_ms"] is not None and d["failovers"] > 0, d
    if d["fault"] == "drop":  # no port speaks: the NIC's retries, or heartbeats
        assert d["noticed"]["cause"] in ("work_failed", "heartbeat", "timeout", "peer_notice"), d
        assert d["noticed"]["after_ms"] > 1, d
    if d["fault"] == "rate":
        assert d["rate_bytes_per_s"] >= 10**6, d
assert sum(d["bandwidth_before"] is not None for d in drills) >= 4, "hardly a bandwidth was measured"
assert any(d["stall_ms"] > 0 for d in drills), "no failover stalled anything"
times = [t for t, _ in r["arrived"]]
assert times == sorted(times) and any(b > 0 for _, b in r["arrived"])
# The text says the same.
text = open(sys.argv[1][:-4] + "out").read()
for d in drills:
    assert d["target"] in text, d["target"]
    if d["fault"] == "cut":
        assert "%.1f ms: port_down" % d["noticed"]["after_ms"] in text, d
END

if [ -n "$png" ]; then
	python3 - "$TMP/drill.png" <<'END' || fail "the picture"
import struct, sys, zlib
data = open(sys.argv[1], "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
assert width >= 900 and height == 560, (width, height)
at, body = 8, b""
while at < len(data):
    size, kind = struct.unpack(">I4s", data[at:at + 8])
    body += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
    at += size + 12
channels = {2: 3, 6: 4}[colour]
raw = zlib.decompress(body)
stride, rows, last = width * channels, [], bytes(width * channels)
for y in range(height):  # the filters of PNG 1.2, chapter 6
    kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
    for x in range(stride):
        a = line[x - channels] if x >= channels else 0
        b, c = last[x], last[x - channels] if x >= channels else 0
        p = a + b - c
        paeth = a if abs(p - a) <= abs(p - b) and abs(p - a) <= abs(p - c) else b if abs(p - b) <= abs(p - c) else c
        line[x] = (line[x] + (0, a, b, (a + b) // 2, paeth)[kind]) & 255
    rows.append(line)
    last = line
seen = {}
for line in rows:
    for x in range(0, stride, channels):
        key = bytes(line[x:x + 3])
        seen[key] = seen.get(key, 0) + 1
for name, colour in {"cut": "f2b8b5", "drop": "f7d9a8", "rate": "c9daf8", "curve": "1a4f8b"}.items():
    assert seen.get(bytes.fromhex(colour), 0) > 200, "nothing of the colour of " + name
END
fi

# Nothing is left, and wrong calls are refused before anything is touched.
[ -z "$(find "$TMP" -name 'ha-drill-*')" ] || fail "files are left"
for call in "" "--software --watch" "--software --yes-take-ports-down" "--software --faults cut,nonsense" "--software --hold 1ms"; do
	rc=0
	"$HA" drill $call >"$TMP/refused.out" 2>"$TMP/refused.err" || rc=$?
	[ $rc = 2 ] && [ -s "$TMP/refused.err" ] || fail "status $rc of: ha drill $call"
done
for words in --json=$TMP/none/x --png=$TMP/none/x.png; do
	rc=0
	"$HA" drill --software "$words" >"$TMP/refused.out" 2>"$TMP/refused.err" || rc=$?
	[ $rc = 1 ] && [ ! -s "$TMP/refused.out" ] || fail "drilled before it was seen that nothing can be written: $words: $rc"
	grep -qE "none/x|needs gnuplot" "$TMP/refused.err" && [ "$(wc -l <"$TMP/refused.err")" = 1 ] || fail "$words: no line"
done
rc=0
PATH=$TMP/none "$HA" drill --software --png="$TMP/x.png" >"$TMP/refused.out" 2>"$TMP/refused.err" || rc=$?
[ $rc = 1 ] && [ ! -s "$TMP/refused.out" ] && grep -q 'needs gnuplot' "$TMP/refused.err" || fail "--png without gnuplot: $rc"
rc=0
"$HA" drill --watch >"$TMP/refused.out" 2>"$TMP/refused.err" || rc=$?
[ $rc = 1 ] && grep -q 'no such job' "$TMP/refused.err" || fail "--watch without a job: $rc"
echo "all right${png:+, with its picture}"
