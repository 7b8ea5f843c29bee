#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Under the real mpirun of Open MPI and of MPICH, as far as they are installed.
. "$(dirname "$0")/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
tried=0

for mpirun in mpirun.openmpi mpirun.mpich; do
	command -v $mpirun >/dev/null || continue
	tried=1
	timeout 800 $mpirun -np 3 "$HA" perf alltoall --plugin "$PLUGIN" -b 24 -e 64K -f 50 -n 2 >"$TMP/out" 2>"$TMP/err" ||
		fail "$mpirun: status"
	grep -q '^# ha perf .*: 3 ranks (.*mpirun)' "$TMP/out" || fail "$mpirun: no header, or not of 3 ranks"
	[ "$(grep -c '^# Out of bounds values : 0 OK$' "$TMP/out")" -eq 1 ] || fail "$mpirun: not one clean report"
	TESTSOCK_FAULT=error:3 timeout 800 $mpirun -np 3 "$HA" perf alltoall --plugin "$PLUGIN" -n 2 >"$TMP/out" 2>"$TMP/err"
	[ $? -ne 0 ] || fail "$mpirun: status of a failing run"
	lines=$(cat "$TMP/out" "$TMP/err" | grep '^ha perf: rank .*remote error')
	[ "$(grep -c . <<<"$lines")" -eq 1 ] || fail "$mpirun: not one line but '$lines'"
done
if [ $tried -eq 0 ]; then
	echo "skipped: neither mpirun.openmpi nor mpirun.mpich is installed"
	exit 77
fi
finish
