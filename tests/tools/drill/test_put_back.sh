#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What `ha drill` has taken away is put back after ^C, when the drill is killed, when its guard is killed, when it is stopped; the
# job that it watches goes on in each case.
source "$(dirname "$0")/lib.sh"
start_job

# In the middle of a cut; DRILL is its number.
begin() { # HOLD
	"$HA" drill --watch --faults cut --no-rails --before 100ms --hold "$1" >"$TMP/drill.out" 2>"$TMP/drill.err" &
	DRILL=$!
	await "the cut" is_cut
}
guard_of() {
	pgrep -P "$DRILL" -x ha-drill-guard
}

begin 600s
kill -INT "$DRILL"
rc=0
wait "$DRILL" || rc=$?
DRILL=
[ $rc = 1 ] || fail "^C ended it with $rc"
is_whole || fail "^C has left something: $("$HA" soft)"
grep -q 'interrupted' "$TMP/drill.out" || fail "the report does not say that it was interrupted"

begin 600s
guard=$(guard_of)
kill -KILL "$DRILL"
wait "$DRILL" 2>/dev/null || true
DRILL=
await "the guard of a killed drill to put back" is_whole
await "the end of the guard" sh -c "! ps -o stat= -p $guard | grep -qv '^Z'" # (whose child it is may not wait for it)
grep -q 'has been put back' "$TMP/drill.err" || fail "the guard said nothing"

begin 600s
kill -KILL "$(guard_of)"
kill -TERM "$DRILL"
wait "$DRILL" || true
DRILL=
is_whole || fail "without its guard the drill has left something"

end_stopped() {
	kill -CONT "$DRILL"
	kill -INT "$DRILL"
	wait "$DRILL" || true
	DRILL=
}
# On a busy machine the drill may have put back by itself when it is stopped.
for _ in 1 2 3 4 5; do
	begin 3s
	kill -STOP "$DRILL"
	! is_cut || break
	end_stopped
done
[ -n "$DRILL" ] || fail "the drill is never stopped in time"
await "the guard of a stopped drill to put back" is_whole
end_stopped

# Faults of somebody else stay as they were.
"$HA" drop soft1 1 tx >/dev/null
begin 600s
kill -INT "$DRILL"
wait "$DRILL" || true
DRILL=
"$HA" soft | grep -q 'tx: drops 1 %' || fail "the drill has taken another's fault away"
"$HA" heal soft1 >/dev/null

kill -0 "$JOB" || fail "the job has ended"
pkill -INT -P "$JOB"
wait "$JOB" || fail "the job failed"
JOB=
grep -q 'Out of bounds values : 0 OK' "$TMP/job.out" || fail "wrong elements"
echo "all right"
