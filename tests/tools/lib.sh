# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of `ha perf`. Arguments of every test: the ha program, the testsock plugin.
set -u
HA=$1
PLUGIN=$2
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
# nothing of the machine's own launcher or settings may reach the tests
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT NCCL_DEBUG NCCL_NET_PLUGIN TESTSOCK_FAULT 2>/dev/null
# and nobody's `ha cut soft0`
export SOFTROCE_CONTROL=$TMP/control HA_NCCL_STATUS_DIR=$TMP/status
mkdir -m 700 "$SOFTROCE_CONTROL"
FAILED=0

fail() {
	echo "FAIL: $*"
	[ -s "$TMP/out" ] && tail -5 "$TMP/out"
	[ -s "$TMP/err" ] && tail -5 "$TMP/err"
	FAILED=1
}

# said: how many lines are in $TMP/err. How far a run has come, which one says that takes longer than ten seconds, does not count.
said() {
	grep -cvE '^ha perf: [a-z]+, [0-9]+ bytes, ' "$TMP/err"
}

# perf ARGUMENTS: runs ha perf with the test plugin, output in $TMP/out and $TMP/err, status in $STATUS
perf() {
	timeout 800 "$HA" perf --plugin "$PLUGIN" "$@" >"$TMP/out" 2>"$TMP/err"
	STATUS=$?
}

# clean ARGUMENTS: a run that must end well, with N rows (or any number: 0) and no wrong element
clean() {
	local rows=$1
	shift
	perf "$@"
	[ $STATUS -eq 0 ] || fail "status $STATUS: $*"
	grep -q '^# Out of bounds values : 0 OK$' "$TMP/out" || fail "no clean footer: $*"
	[ "$rows" -eq 0 ] || [ "$(grep -c '^ ' "$TMP/out")" -eq "$rows" ] || fail "not $rows rows: $*"
}

# refused STATUS PATTERN ARGUMENTS: a run that must end with that status and exactly one line, which has the pattern
refused() {
	local want=$1 pattern=$2
	shift 2
	perf "$@"
	[ $STATUS -eq "$want" ] || fail "status $STATUS instead of $want: $*"
	grep -q -- "$pattern" "$TMP/err" || fail "no '$pattern': $*"
	[ "$(said)" -eq 1 ] || fail "more than one line: $*"
}

finish() {
	[ $FAILED -eq 0 ] && echo "all right"
	exit $FAILED
}
