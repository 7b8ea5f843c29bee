#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two ranks of Open MPI over UCX over softroce: every byte of what they send and reduce is checked, and UCX has no other
# way to the peer: with a device that is not there, the same run must fail. Usage: mpi.sh BUILD_DIR
set -uo pipefail
build=$1
here=$(dirname "$0")
for need in mpirun ucx_info; do
	command -v $need >/dev/null || { echo "skipped: $need is not installed"; exit 77; }
done
/usr/bin/python3 -c 'import mpi4py' 2>/dev/null || { echo "skipped: python3-mpi4py is not installed"; exit 77; }
SOFTROCE_CONTROL=$(mktemp -d)
export SOFTROCE_CONTROL SOFTROCE_DEVICES=127.117.0.0/24
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
trap 'rm -rf "$SOFTROCE_CONTROL"' EXIT

ranks() { # device
	timeout 800 mpirun --oversubscribe -n 2 --mca pml ucx --mca osc ucx -x UCX_NET_DEVICES="$1" \
		-x UCX_TLS=rc_verbs,ud_verbs,self "$build/softroce-run" /usr/bin/python3 "$here/mpi_ring.py" 2>&1
}
out=$(ranks soft0:1)
# mpirun may join the two ranks' words on one line.
if [ "$(grep -o 'rank [01] of 2: every byte right' <<<"$out" | sort -u | wc -l)" != 2 ]; then
	echo "two ranks on soft0 failed:"
	echo "$out"
	exit 1
fi
if other=$(ranks soft7:1); then
	echo "it runs without the device too, so it does not use it:"
	echo "$other"
	exit 1
fi
grep -o 'rank [01] of 2: every byte right' <<<"$out"
