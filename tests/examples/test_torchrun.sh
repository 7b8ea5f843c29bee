#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The script for torchrun: starts ranks over the software NIC, and the all-reduce that checks itself (over gloo here). `ha doctor
# --fabric` under two torchruns that meet, as on two nodes.
. "$(dirname "$0")/lib.sh"
command -v torchrun >/dev/null && /usr/bin/python3 -c 'import torch' 2>/dev/null || { echo "skipped: no torch"; exit 77; }
export NPROC=2 HEAD=localhost PORT=0
# Debian's torch 1.13 with Python 3.11 starts nothing unless outputs are redirected; --tee brings them back.
out=(--redirects 1 --tee 1 --log_dir "$work/logs")
"$root/examples/torchrun/run.sh" "${out[@]}" --no_python "$HA" perf allreduce -b 64K -e 64K -n 20 >"$work/out" 2>&1 || fail "ha perf under torchrun"
grep -q '# ha perf .*: 2 ranks (.*torchrun)' "$work/out" || fail "not of two ranks of torchrun"
grep -q '# Out of bounds values : 0 OK' "$work/out" || fail "wrong elements"
"$root/examples/torchrun/run.sh" "${out[@]}" "$root/examples/torchrun/allreduce.py" 1 1 >"$work/out" 2>&1 || fail "allreduce.py"
[ "$(grep -c 'rank [01]: [1-9][0-9]* all-reduces, .* 0 elements wrong' "$work/out")" = 2 ] || fail "allreduce.py: not two ranks without a wrong element"

# A process that waits long for its processor is no broken cable.
export HA_NCCL_FORCE_IB_TIMEOUT=18
exec 3< <(exec "$(dirname "$0")/../base/held_port.py")
read -r port <&3
for node in 1 2; do
	torchrun "${out[@]}" --nnodes 2 --nproc_per_node 1 --rdzv_backend c10d --rdzv_endpoint "localhost:$port" --rdzv_id fabric --no_python \
		"$HA" doctor --fabric --json --slow 1 --time 20ms >"$work/fabric.$node" 2>"$work/out.$node" &
	pids+=($!)
done
for node in 1 2; do
	wait "${pids[$node - 1]}" || { cat "$work"/out.[12] >"$work/out"; fail "ha doctor --fabric under torchrun"; }
done
pids=()
python3 - "$work"/fabric.[12] <<'END' || { cat "$work"/fabric.[12] >"$work/out"; fail "the report of --fabric"; }
import json, sys
lines = [line.split(":", 1)[1] for name in sys.argv[1:] for line in open(name) if line.startswith("[default0]:")]
report = json.loads("".join(lines))
assert report["hosts"] == 2 and len(report["ports"]) == 4 and len(report["paths"]) == 8, report
for path in report["paths"]:
    assert path["state"] == "reached" and path["failover"] == "survived", path
END
echo "ha perf, the all-reduce and ha doctor --fabric ran under torchrun"
