#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `ha doctor --fabric` under mpirun, over software NICs: one port whose cable is pulled, and one that is slow, are named; a failover
# on every other path is survived; text, JSON, picture. Argument: ha.
set -euo pipefail
ha=$1
command -v mpirun.openmpi >/dev/null || { echo "skipped: mpirun.openmpi is not installed"; exit 77; }
command -v gnuplot >/dev/null || { echo "skipped: gnuplot is not installed"; exit 77; }
tmp=$(mktemp -d)
trap 'kill $job 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$tmp"' EXIT
job=
mkdir "$tmp/control"
export HA_NCCL_VERBS=soft SOFTROCE_CONTROL=$tmp/control NCCL_SOCKET_IFNAME=lo HOME=$tmp HA=$ha
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT NCCL_DEBUG NCCL_IB_HCA

fail() {
	echo "FAIL: $*"
	tail -n 30 "$tmp/out" "$tmp/err" 2>/dev/null
	exit 1
}

# Rank 2 comes last: by then the others have opened their NICs, and wait.
cat >"$tmp/rank" <<'END'
#!/bin/sh
n=$OMPI_COMM_WORLD_RANK
echo $$ >"$FOLDER/pid$n.new" && mv "$FOLDER/pid$n.new" "$FOLDER/pid$n"
[ $n != 1 ] || export SOFTROCE_RATE=0,5
while [ $n = 2 ] && [ ! -e "$FOLDER/go" ]; do sleep 0.05; done
exec "$HA" doctor --fabric "$@"
END
chmod +x "$tmp/rank"
export FOLDER=$tmp

mpirun.openmpi -np 3 "$tmp/rank" --json --png "$tmp/fabric.png" --slow 20 --time 20ms --timeout 100 >"$tmp/out" 2>"$tmp/err" &
job=$!
until [ -s "$tmp/pid0" ] && "$ha" soft "soft0:$(cat "$tmp/pid0")" >"$tmp/soft" 2>/dev/null && grep -q soft0 "$tmp/soft"; do
	kill -0 $job 2>/dev/null || fail "mpirun ended early"
	sleep 0.1
done
"$ha" cut soft0 --pid "$(cat "$tmp/pid0")" >/dev/null || fail "ha cut"
touch "$tmp/go"
rc=0
wait $job || rc=$?
job=
[ $rc -ne 0 ] || fail "a port is down, and the status says that all is well"
python3 - "$tmp/out" <<'END' || fail "the report"
import json, sys
report = json.load(open(sys.argv[1]))
ports = report["ports"]
name = lambda i: ports[i]["host"].split("#")[1] + " " + ports[i]["port"]
assert report["hosts"] == 3 and len(ports) == 6 and report["all_pairs"], ports
assert [name(i) for i, p in enumerate(ports) if not p["up"]] == ["0 soft0:1"], "which port is down"
paths = {(name(p["from"]), name(p["to"])): p for p in report["paths"]}
assert len(paths) == 24, "every port to every other of the other hosts"
for (a, b), path in paths.items():
    if "0 soft0:1" in (a, b):
        assert path["state"] == "port_down", (a, b, path)
        continue
    assert path["state"] == "reached" and path["mb_per_s"] > 0 and path["latency_us"] > 0, (a, b, path)
    assert path["failover"] == "survived" and path["stall_ms"] > 0, (a, b, path)
    assert a != "1 soft1:1" or path["mb_per_s"] < 8, ("limited to 5 MB/s", a, b, path)
findings = {f["subject"].split("#")[-1]: f for f in report["findings"] if f["check"] == "fabric.port"}
assert "is down" in findings["0 soft0:1"]["text"] and findings["0 soft0:1"]["severity"] == "error", findings
slow = findings["1 soft1:1"]
assert slow["severity"] == "warning" and slow["text"].startswith("sends ") and "MB/s on 3 of 3 paths" in slow["text"], findings
END
[ "$(head -c 4 "$tmp/fabric.png" | tail -c 3)" = PNG ] || fail "no picture"
# Rank 0 ends by itself, with a status that makes mpirun kill those that have not ended yet.
left=$(ls "$tmp/control" | grep "\.$(cat "$tmp/pid0")$" || true)
[ -z "$left" ] || fail "control pages are left behind: $left"

# Without a failover nothing makes up for a NIC whose thread has no processor for half a second.
export HA_NCCL_FORCE_IB_TIMEOUT=18 HA_NCCL_RTO_MS=60000

# As text, forked here, ports of one name only; and a host without any device beside it is named.
"$ha" doctor --fabric --ranks 2 --pairs rail --slow 1 --time 20ms --no-failover >"$tmp/out" 2>"$tmp/err" || fail "as text"
grep -q '^fine\|^0 errors' "$tmp/out" || fail "no sum"
[ "$(grep -c '^from' "$tmp/out")" = 2 ] || fail "not a table for each name"
[ ! -s "$tmp/err" ] || fail "lines on standard error"
# A picture that cannot be written or drawn is said before anything is measured, on one line.
rc=0
"$ha" doctor --fabric --ranks 2 --no-failover --png "$tmp/none/x.png" >"$tmp/out" 2>"$tmp/err" || rc=$?
[ $rc = 1 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" = 1 ] || fail "--png into nowhere: $rc"
grep -q -- '--png .*none/x.png: .*: No such file or directory; name a file' "$tmp/err" || fail "--png into nowhere, what it says"
rc=0
PATH=$tmp/none "$ha" doctor --fabric --ranks 2 --no-failover --png "$tmp/x.png" >"$tmp/out" 2>"$tmp/err" || rc=$?
[ $rc = 1 ] && [ ! -s "$tmp/out" ] && grep -q -- '--png needs gnuplot' "$tmp/err" || fail "--png without gnuplot: $rc"

rc=0
mpirun.openmpi -np 1 env HA_NCCL_VERBS="$tmp/none.so" "$ha" doctor --fabric : -np 2 "$ha" doctor --fabric --time 20ms --no-failover \
	>"$tmp/out" 2>"$tmp/err" || rc=$?
[ $rc -ne 0 ] && grep -q '^error    fabric.host .*rank 0 has no RDMA port' "$tmp/out" || fail "a host without devices"
[ "$(grep -c '^2 hosts, 4 ports' "$tmp/out")" = 1 ] || fail "the others do not go on"
echo "all right"
