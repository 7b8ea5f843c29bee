# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of `ha nccl`. Arguments of every test: the ha program, the folder of what stands in for NCCL.
set -u
HA=$1
STAND_INS=$2
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
# nothing of the machine's own launcher or settings may reach the tests
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT NCCL_DEBUG NCCL_DEBUG_FILE NCCL_NET_PLUGIN NCCL_NET TESTNCCL_FAULT 2>/dev/null
export HA_NCCL_STATUS_DIR=$TMP/status TESTNCCL_FOLDER=$TMP
FAILED=0

fail() {
	echo "FAIL: $*"
	[ -s "$TMP/out" ] && tail -5 "$TMP/out"
	[ -s "$TMP/err" ] && tail -5 "$TMP/err"
	FAILED=1
}

# nccl ARGUMENTS: runs ha nccl with the stand-ins, output in $TMP/out and $TMP/err, status in $STATUS
nccl() {
	LD_LIBRARY_PATH=$STAND_INS timeout 800 "$HA" nccl --nccl "$STAND_INS/libnccl.so.2" "$@" >"$TMP/out" 2>"$TMP/err"
	STATUS=$?
}

# clean ROWS ARGUMENTS: a run that must end well, with so many rows and no wrong element
clean() {
	local rows=$1
	shift
	nccl "$@"
	[ $STATUS -eq 0 ] || fail "status $STATUS: $*"
	grep -q '^# Out of bounds values : 0 OK$' "$TMP/out" || fail "no clean footer: $*"
	[ "$(grep -cE '^ +(A |B )? *[0-9]' "$TMP/out")" -eq "$rows" ] || fail "not $rows rows: $*"
}

# refused STATUS PATTERN ARGUMENTS: a run that must end with that status and exactly one line, which has the pattern
refused() {
	local want=$1 pattern=$2
	shift 2
	nccl "$@"
	[ $STATUS -eq "$want" ] || fail "status $STATUS instead of $want: $*"
	grep -qE -- "$pattern" "$TMP/err" || fail "no '$pattern': $*"
	[ "$(wc -l <"$TMP/err")" -eq 1 ] || fail "not one line: $*"
}

finish() {
	[ $FAILED -eq 0 ] && echo "all right"
	exit $FAILED
}
