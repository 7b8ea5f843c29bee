#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# ha gpu-moe called wrongly: status 2, nothing on standard output, and one line that says what it was. test_moe_misuse.sh PATH-OF-HA
set -u
ha=$1

wrong() { # part of the line, then arguments
	part=$1
	shift
	out=$("$ha" gpu-moe "$@" 2>&1)
	status=$?
	if [ $status = 2 ] && [ "$(printf '%s\n' "$out" | wc -l)" = 1 ]; then
		case $out in *"$part"*) return ;; esac
	fi
	echo "ha gpu-moe $*: status $status, said: $out"
	exit 1
}

wrong "a multiple of 8 (of 512 for FP8)" --hidden 1000
wrong "a multiple of the ranks" --ranks 3 --experts 10
wrong "not more than there are experts" --experts 3 --topk 4
wrong "at most 64" --warps 32 --lanes 3
wrong "--ranks takes" --ranks 1
wrong "--tokens takes" --tokens many
wrong "--launches takes" --launches -1
wrong "--launches takes" --launches 4294967296
wrong "--seed takes" --seed 99999999999999999999999
wrong "no part 'nothing'" --part nothing
wrong "no way 'nothing'" --kind nothing
wrong "--seed needs N" --seed
wrong "no option --nonsense" --nonsense
wrong "'more' is one word too many" more
export HA_GPU_QP_DEPTH=3
wrong "HA_GPU_QP_DEPTH" --launches 1
unset HA_GPU_QP_DEPTH
# What the line advises helps: 32 experts of a rank are too many for two connections, and not for four.
wrong "HA_GPU_RC_PER_PE" --ranks 2 --experts 64 --part quiet --launches 1 --tokens 1 --hidden 8
out=$(HA_GPU_RC_PER_PE=2 "$ha" gpu-moe --ranks 2 --experts 64 --part quiet --launches 1 --tokens 1 --hidden 8 2>&1) ||
	{ echo "32 experts of a rank with HA_GPU_RC_PER_PE=2: $out"; exit 1; }
