#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# ha gpu-check called wrongly: status 2 and one line that says what it was. test_check_misuse.sh PATH-OF-HA
set -u
ha=$1

wrong() {
	out=$("$ha" gpu-check "$@" 2>&1)
	status=$?
	[ $status = 2 ] && [ -n "$out" ] && [ "$(printf '%s\n' "$out" | wc -l)" = 1 ] && return
	echo "ha gpu-check $*: status $status, said: $out"
	exit 1
}

wrong --rounds 0
wrong --rounds many
wrong --rounds
wrong --cut -1
wrong --rank 2 --root 127.0.0.1:1
wrong --rank 0
wrong --root 127.0.0.1:1
wrong --soft --rank 0 --root 127.0.0.1:1
wrong --only nothing
wrong --nonsense
export HA_GPU_QP_DEPTH=3
wrong --soft
unset HA_GPU_QP_DEPTH
"$ha" gpu-check --list | grep -q '^doorbells ' || { echo "--list does not list"; exit 1; }
"$ha" gpu-check --help | grep -q 'Exit status' || { echo "--help does not help"; exit 1; }
