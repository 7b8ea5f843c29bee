#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `ha perf put`, putsignal, get and moe: hawser's one-sided tables over the software NIC, by old and new versions, against
# itself, and while a cable is out. Arguments: the ha program, the plugin.
. "$(dirname "$0")/lib.sh"
export HA_NCCL_VERBS=soft
export SOFTROCE_DEVICES="${SOFTROCE_DEVICES:-127.173.$(($$ % 250)).0/24,127.174.$(($$ % 250)).0/24}"

# clean ROWS ARGUMENTS: a run that must end well, with so many rows without a wrong word or counter, each of them verified
clean() {
	local rows=$1
	shift
	timeout 800 "$HA" perf "$@" --plugin "$PLUGIN" >"$TMP/out" 2>"$TMP/err" || fail "status $?: $*: $(cat "$TMP/err")"
	grep -q '^# Out of bounds values : 0 OK$' "$TMP/out" || fail "no clean footer: $*"
	[ "$(grep -cE '^ *[0-9]+ .* [1-9][0-9]* +0( +ratio [0-9.]+)?$' "$TMP/out")" -eq "$rows" ] ||
		fail "not $rows verified rows: $*: $(cat "$TMP/out")"
}

clean 2 putsignal --ranks 2 -b 8 -e 8K -f 1024 -n 5 --gin-version 11
grep -q ncclGinPlugin_v11 "$TMP/out" || fail "version 11 was not taken"
clean 1 put --ranks 3 -b 3000 -e 3000 -n 5 --steps 3 --check-all
grep -q ncclRmaPlugin_v17 "$TMP/out" || fail "not the newest table"
clean 2 get --ranks 2 -b 5000 -e 5000 -n 6 --gin-version 13 --vs "$PLUGIN"
clean 1 moe --ranks 3 -b 9000 -e 9000 --duration 1s --at 200ms 'ha cut soft0:$HA_RANK_PID_0' --at 600ms 'ha heal soft0:$HA_RANK_PID_0'

timeout 800 "$HA" perf get --ranks 2 -b 8 -e 8 --plugin "$PLUGIN" --gin-version 12 >"$TMP/out" 2>&1 && fail "a get by version 12"
grep -q 'version 12 of the table has no iget' "$TMP/out" || fail "no reason: $(cat "$TMP/out")"
timeout 800 "$HA" perf moe --ranks 2 --json=- >"$TMP/out" 2>&1
[ $? -eq 2 ] || fail "--json was taken"
exit $FAILED
