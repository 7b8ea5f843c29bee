#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The script for torchrun: starts ranks over the software NIC, and the all-reduce that checks itself (over gloo here).
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
echo "both ran under torchrun"
