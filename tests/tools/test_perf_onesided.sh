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

# row STATEMENT: holds for the row of the last run, a dict of its columns
row() {
	python3 - "$TMP/out" "$1" <<'END' || fail "not so: $1: $(cat "$TMP/out")"
import re, sys
head = next(line for line in open(sys.argv[1]) if re.match(r" *# bytes ", line))
names = re.findall(r"\S+(?: us| ms)|# bytes|\S+", head)
values = next(line for line in open(sys.argv[1]) if re.match(r" *[0-9]", line)).split()
r = {name: float(value) for name, value in zip(names, values, strict=True)}
sys.exit(not eval(sys.argv[2]))
END
}
# What is verified: what was asked for, on both ranks, and one iteration behind the measured ones.
clean 1 put --ranks 2 -b 8 -e 8 --duration 200ms --check-every 0
row 'r["verified"] == 2'
clean 1 get --ranks 2 -b 8 -e 8 --duration 200ms --check-every 4
row 'r["verified"] == 2 * (1 + -(-r["iterations"] // 4))'
# The time for it, about half of this run's, is not in the measured ones: 32 messages an iteration.
clean 1 moe --ranks 2 -b 1M -e 1M --duration 2s
row 'r["check ms"] > 100'
row 'r["us/op"] * 32 * r["iterations"] / 1000 + r["check ms"] < 1.25 * 2000 + 3 * r["longest ms"]'

timeout 800 "$HA" perf put --ranks 2 -b 8 -e 8 -n 0 --plugin "$PLUGIN" >"$TMP/out" 2>&1
[ $? -eq 2 ] && grep -q 'put measures nothing with -n 0' "$TMP/out" || fail "-n 0 was taken: $(cat "$TMP/out")"
timeout 800 "$HA" perf get --ranks 2 -b 8 -e 8 --plugin "$PLUGIN" --gin-version 12 >"$TMP/out" 2>&1 && fail "a get by version 12"
grep -q 'version 12 of the table has no iget' "$TMP/out" || fail "no reason: $(cat "$TMP/out")"
timeout 800 "$HA" perf moe --ranks 2 --json=- >"$TMP/out" 2>&1
[ $? -eq 2 ] || fail "--json was taken"
exit $FAILED
